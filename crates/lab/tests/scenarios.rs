//! Scenario files: what they mean, and what is said about wrong ones.

use tacho_lab::scenario::{
    BUILTIN, Builtin, Limits, Model, PerSecond, ProtocolVersion, Rate, Scenario, SourceText,
    TimeSpan,
};

const LIMITS: Limits = Limits { descriptors_max: 20_000 };

fn parse(text: &str, vars: &[(&str, &str)]) -> Result<Scenario, String> {
    let vars: Vec<_> = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Scenario::parse(&SourceText::new("x.toml", text), &vars, LIMITS)
        .map_err(|error| error.to_string())
}

fn symmetric(vars: &[(&str, &str)]) -> Result<Scenario, String> {
    parse(Builtin::find("symmetric").expect("is built in").text, vars)
}

#[test]
fn symmetric_has_the_defaults_of_the_documentation() {
    let scenario = symmetric(&[]).expect("parses");
    assert_eq!(scenario.name, "symmetric");
    assert_eq!(scenario.clients(), 2000);
    assert_eq!(scenario.target.version, ProtocolVersion::V5);
    let publish = &scenario.groups["pub"].publish[0];
    assert_eq!((publish.qos, publish.payload.size), (1, 128));
    let Model::Open { rate, .. } = &publish.model else { panic!("{:?}", publish.model) };
    assert_eq!(*rate, Rate::Total(PerSecond(10_000.0)));
    assert_eq!(publish.topic.expand(7), "test/m1/7");
    assert_eq!(scenario.groups["sub"].subscribe[0].qos, 2);
    assert_eq!(scenario.groups["sub"].connect.ramp, Some(TimeSpan::from_secs(2)));
    assert_eq!(scenario.phases.warmup, TimeSpan::from_secs(5));
    assert_eq!(scenario.phases.measure, TimeSpan::from_secs(30));
}

#[test]
fn every_variable_of_symmetric_has_an_effect() {
    let defaults = symmetric(&[]).expect("parses");
    for (name, value) in [
        ("publishers", "7"),
        ("subscribers", "7"),
        ("qos", "2"),
        ("payload_size", "32"),
        ("target_throughput", "5k"),
        ("ramp_up", "1s"),
        ("warmup", "1"),
        ("duration", "90s"),
    ] {
        let mut changed = symmetric(&[(name, value)]).expect(name);
        changed.vars = defaults.vars.clone();
        assert_ne!(changed, defaults, "{name}");
    }
    assert_eq!(defaults.vars.len(), 8);
}

#[test]
fn the_resolved_file_gives_the_same_scenario() {
    for builtin in BUILTIN {
        let scenario = parse(builtin.text, &[]).expect(builtin.name);
        let resolved = scenario.to_toml();
        assert_eq!(parse(&resolved, &[]).expect(&resolved), scenario, "{resolved}");
    }
    let mut scenario = parse(
        "name = 'x'\nseed = 7\n[target]\nbroker = 'wss://[::1]:1884/x'\nversion = '3.1.1'\n\
         tls = { ca = 'ca.pem', cert = 'c.pem', key = 'k.pem', alpn = ['mqtt'] }\n\
         [load]\nthreads = 3\ntiming = 'spin'\n[thresholds]\ne2e_p99 = '<10ms'\n\
         [groups.all]\nclients = 3\nconnect = { rate = '5/s', username = 'u{{i}}' }\n\
         [[groups.all.publish]]\ntopic = 'a/{{i % 2}}'\nrate = { per_client = 0.5 }\n\
         phase = 'random'\n[[groups.all.subscribe]]\nfilter = 'a/+'\nqos = 0\n",
        &[],
    )
    .expect("parses");
    assert_eq!(parse(&scenario.to_toml(), &[]).expect("again"), scenario);
    scenario.close(16);
    assert_eq!(parse(&scenario.to_toml(), &[]).expect("again"), scenario);
}

#[test]
fn client_numbers_can_be_computed_with_variables() {
    let scenario = parse(
        "name = 'x'\n[vars]\nn = 10\n[groups.a]\nclients = 100\n[[groups.a.publish]]\n\
         topic = 't/{{i % n}}/{{ i / n }}'\nrate = { total = 1 }\n",
        &[("n", "20")],
    )
    .expect("parses");
    assert_eq!(scenario.groups["a"].publish[0].topic.expand(47), "t/7/2");
}

/// The built-in scenario with one text replaced.
fn edited(from: &str, to: &str) -> String {
    let text = Builtin::find("symmetric").expect("is built in").text;
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn wrong_files_are_explained_where_they_are_wrong() {
    for (from, to, words) in [
        ("qos = 1 ", "qos = 3 ", &["there is no QoS 3", "0, 1 or 2", "'qos' is 3"][..]),
        ("[target]", "[taget]", &["there is no key 'taget'", "did you mean 'target'?"]),
        ("clients = \"{{publishers}}\"", "clents = 5", &["'clents'", "did you mean 'clients'?"]),
        ("payload_size = 128", "payload_size = 23", &["23 bytes is too small", "at least 24"]),
        ("target_throughput = 10000", "target_throughput = 0", &["a rate of 0"]),
        ("target_throughput = 10000", "target_throughput = -1", &["a rate of -1"]),
        ("publishers = 1000", "publishers = 100000", &["open files", "ulimit -Hn", "19936"]),
        ("publishers = 1000", "publishers = 1.5", &["wrong type", "whole number"]),
        ("publishers = 1000", "publishers = 0", &["no client publishes"]),
        ("publishers = 1000", "publishers = [1]", &["no usable value"]),
        ("publishers = 1000", "i = 1000", &["cannot be called 'i'"]),
        ("{{payload_size}}", "{{payload}}", &["no variable 'payload'", "its variables:"]),
        ("duration = \"30s\"", "duration = \"30 parsecs\"", &["not a length of time"]),
        ("duration = \"30s\"", "duration = \"1ms\"", &["too short"]),
        ("duration = \"30s\"", "duration = true", &["wrong type"]),
        ("version = \"5\"", "version = \"6\"", &["no MQTT version '6'"]),
        ("pub_{{machine}}_{{i}}", "same", &["same client id"]),
        ("topic = \"test/{{machine}}/{{i}}\"", "topic = \"a/#\"", &["wildcards"]),
        ("topic = \"test/{{machine}}/{{i}}\"", "topic = \"\"", &["empty"]),
        ("topic = \"test/{{machine}}/{{i}}\"\n", "", &["'topic' is missing"]),
        ("rate = { total = \"{{target_throughput}}\" }\n", "", &["no rate"]),
        ("{ total = ", "{ per_clent = ", &["no key 'per_clent'", "'per_client'"]),
        ("measure = ", "phase = ", &["no key 'phase'"]),
        ("[phases]", "[phases", &["not TOML"]),
        ("[phases]", "[thresholds]\ne2e_p99 = '10ms'\n[phases]", &["none of <"]),
        ("[phases]", "[load]\ntiming = 'spinning'\n[phases]", &["cannot be 'spinning'"]),
        (
            "[target]\n",
            "[target]\nbroker = 'mqtt://x'\ntls = { insecure = true }\n",
            &["TLS settings for a mqtt:// broker", "mqtts://"],
        ),
        ("[target]\n", "[target]\ntls = { cert = 'x' }\n", &["has no key"]),
        ("[target]\n", "[target]\ntls = { key = 'x' }\n", &["has no certificate"]),
        ("[target]\n", "[target]\ntls = { ca = 'x', insecure = true }\n", &["nothing is verified"]),
        ("[target]\n", "[target]\ntls = { server_name = '' }\n", &["cannot be empty"]),
        ("[target]\n", "[target]\nbroker = 'http://x'\n", &["'http' is not supported"]),
        ("connect = { ramp", "connect = { rate = 5, ramp", &["not by both"]),
    ] {
        let text = edited(from, to);
        let error = parse(&text, &[]).expect_err(to);
        for word in words {
            assert!(error.contains(word), "{to}: no {word:?} in {error}");
        }
        assert!(error.starts_with("x.toml:"), "{to}: no place in {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn errors_point_at_line_and_column() {
    let error = parse("name = 'x'\n[groups.a]\nclients = 1\ncolour = 2\n", &[]).expect_err("key");
    assert!(error.starts_with("x.toml:4:1: there is no key 'colour'"), "{error}");
}

#[test]
fn wrong_variables_are_explained() {
    for (name, value, words) in [
        ("publisher", "5", "did you mean 'publishers'?"),
        ("colour", "5", "no variable 'colour'"),
        ("qos", "two", "'two' is not a number"),
        ("qos", "3", "the variable 'qos' is 3 (set with --var)"),
        ("publishers", "-5", "cannot be -5"),
        ("publishers", "1.5", "whole number"),
        ("duration", "soon", "not a length of time"),
    ] {
        let error = symmetric(&[(name, value)]).expect_err(name);
        assert!(error.contains(words), "{name}={value}: {error}");
    }
}

#[test]
fn values_of_variables_may_be_written_short() {
    let scenario = symmetric(&[("publishers", "1.2k"), ("subscribers", "1_200")]).expect("parses");
    assert_eq!(scenario.clients(), 2400);
}
