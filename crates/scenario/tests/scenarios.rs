//! Scenario files: what they mean, and what is said about wrong ones.

use tacho_scenario::{
    Adjustment, BUILTIN, Builtin, Limits, Model, PerSecond, ProtocolVersion, Rate, Scenario,
    SourceText, TimeSpan,
};

const LIMITS: Limits = Limits { descriptors_max: 20_000, ..Limits::NONE };

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
    assert_eq!((publish.qos, publish.payload.size()), (1, Some(128)));
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

fn persistent(vars: &[(&str, &str)]) -> Result<Scenario, String> {
    parse(Builtin::find("persistent").expect("is built in").text, vars)
}

#[test]
fn persistent_lasts_as_long_as_its_messages_take() {
    let scenario = persistent(&[]).expect("parses");
    assert_eq!(scenario.clients(), 200);
    assert_eq!(scenario.phases.measure, TimeSpan::from_secs(10));
    assert!(scenario.groups["sub"].absent && !scenario.groups["pub"].absent);
    assert!(scenario.groups.values().all(|group| scenario.has_persistent_sessions(group)));
    assert_eq!(scenario.target.kills, 0);
    for (name, value) in [
        ("sessions", "7"),
        ("messages", "50"),
        ("rate", "20"),
        ("qos", "2"),
        ("payload_size", "32"),
        ("version", "3.1.1"),
        ("inflight", "3"),
        ("kills", "4"),
        ("ramp_up", "2s"),
        ("drain", "90s"),
    ] {
        let mut changed = persistent(&[(name, value)]).expect(name);
        changed.vars = scenario.vars.clone();
        assert_ne!(changed, scenario, "{name}");
    }
    assert_eq!(scenario.vars.len(), 10);
}

#[test]
fn absences_and_counted_messages_are_checked() {
    let publish = "[[groups.g.publish]]\ntopic = 't'\n";
    for (text, words) in [
        (
            "absent = true\noffline = { after = '1s', for = '1s' }\n".to_owned(),
            "'absent' and 'offline' exclude each other",
        ),
        (
            format!("{publish}rate = {{ total = 1 }}\n[phases]\nmessages = 5\nmeasure = '5s'\n"),
            "the measured phase ends by time or by number of messages",
        ),
        (
            format!("{publish}model = 'closed'\n[phases]\nmessages = 5\n"),
            "messages cannot be counted without a rate",
        ),
        (
            format!("{publish}rate = {{ total = 1000 }}\n[phases]\nmessages = 5\n"),
            "too short to measure anything",
        ),
        ("[target]\nkills = 1001\n".to_owned(), "the number of kills cannot be 1001"),
    ] {
        let text = format!("name = 'x'\n[groups.g]\nclients = 1\n{text}");
        let error = parse(&text, &[]).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn text_that_mqtt_forbids_is_refused_where_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("clients.csv");
    std::fs::write(&table, "client_id,username\na,b\nc,d\0\n").expect("is written");
    let credentials = format!("credentials = '{}'", table.display());
    let subscribe = "[[groups.g.subscribe]]\nfilter =";
    let too_long = format!("client_id = '{{{{i}}}}{}'", "x".repeat(65_536));
    for (line, words) in [
        ("client_id = \"a\\u0000{{i}}\"", "this client id cannot be sent: it contains the null"),
        ("client_id = \"a\\u0007{{i}}\"", "this client id cannot be sent: it contains a control"),
        (&too_long, "this client id cannot be sent: it has more than 65,535 bytes"),
        ("connect = { username = \"u\\u0000\" }", "this user name cannot be sent"),
        ("will = { topic = \"w\\u0000\", payload = '' }", "this topic cannot be sent"),
        (&format!("{subscribe} \"f\\u0000\""), "this filter cannot be sent"),
        (&format!("{subscribe} 'f'\nshare = \"s\\u0000\""), "this name of a shared group cannot"),
        (&credentials, "the user name in row 2 cannot be sent: it contains the null"),
    ] {
        let text = format!("name = 'x'\n[groups.g]\nclients = 2\n{line}\n");
        let error = parse(&text, &[]).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
    // A password is no text: any bytes may be sent.
    let text = "name = 'x'\n[groups.g]\nclients = 2\nconnect = { username = 'u', password = \"\\u0000\" }\n";
    parse(text, &[]).expect("can be sent");
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
         tls = { ca = 'ca.pem', cert = 'c.pem', key = 'k.pem', alpn = ['mqtt'], resume = true }\n\
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
        ("[target]", "[taget]", &["unknown key 'taget'", "did you mean 'target'?"]),
        ("clients = \"{{publishers}}\"", "clents = 5", &["'clents'", "did you mean 'clients'?"]),
        ("payload_size = 128", "payload_size = 23", &["23 bytes is too small", "at least 24"]),
        ("target_throughput = 10000", "target_throughput = 0", &["a rate of 0"]),
        ("target_throughput = 10000", "target_throughput = -1", &["a rate of -1"]),
        ("publishers = 1000", "publishers = 100000", &["open files", "ulimit -Hn", "19936"]),
        ("publishers = 1000", "publishers = 1.5", &["wrong type", "whole number"]),
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
        ("{ total = ", "{ per_clent = ", &["unknown key 'per_clent'", "'per_client'"]),
        ("measure = ", "phase = ", &["unknown key 'phase'"]),
        ("[phases]", "[phases", &["not TOML"]),
        ("[phases]", "[thresholds]\ne2e_p99 = '10ms'\n[phases]", &["does not start with <"]),
        ("[phases]", "[load]\ntiming = 'spinning'\n[phases]", &["cannot be 'spinning'"]),
        (
            "[target]\n",
            "[target]\nbroker = 'mqtt://x'\ntls = { insecure = true }\n",
            &["TLS settings for a mqtt:// broker", "mqtts://"],
        ),
        ("[target]\n", "[target]\ntls = { cert = 'x' }\n", &["has no key"]),
        ("[target]\n", "[target]\ntls = { key = 'x' }\n", &["has no certificate"]),
        (
            "[target]\n",
            "[target]\ntls = { ca = 'x', insecure = true }\n",
            &["turns verification off"],
        ),
        ("[target]\n", "[target]\ntls = { server_name = '' }\n", &["value is empty"]),
        (
            "[target]\n",
            "[target]\ntls = { cert = '{{i}}.pem', key = '{{i}}.key', resume = true }\n",
            &["of their own resume no session"],
        ),
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
    assert!(error.starts_with("x.toml:4:1: unknown key 'colour'"), "{error}");
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

fn adjusted(text: &str, adjustment: &Adjustment) -> Result<Scenario, String> {
    Scenario::parse_adjusted(&SourceText::new("x.toml", text), &[], adjustment, LIMITS)
        .map_err(|error| error.to_string())
}

#[test]
fn rates_clients_and_length_can_be_adjusted() {
    let hold = Some(TimeSpan::from_secs(3));
    let adjustment = Adjustment { scale: 0.5, scale_clients: 0.01, hold, ..Adjustment::NONE };
    let text = Builtin::find("symmetric").expect("is built in").text;
    let scenario = adjusted(text, &adjustment).expect("parses");
    assert_eq!(scenario.clients(), 20);
    let Model::Open { rate, .. } = &scenario.groups["pub"].publish[0].model else {
        panic!("not open")
    };
    assert_eq!(*rate, Rate::Total(PerSecond(5_000.0)));
    assert_eq!(scenario.phases.measure, TimeSpan::from_secs(3));
    assert_eq!(scenario.vars["publishers"].to_string(), "1000", "variables stay as given");
}

#[test]
fn machines_are_scaled_with_the_clients() {
    let text = "name = 'x'\nmachines = 20\n[groups.a]\nclients = 2000\n[[groups.a.publish]]\n\
                topic = 't/{{machine}}'\nrate = { total = 1 }\n";
    let tenth = Adjustment { scale_clients: 0.1, ..Adjustment::NONE };
    let scenario = adjusted(text, &tenth).expect("parses");
    assert_eq!((scenario.machines, scenario.clients()), (2, 200));
    let counted = text.replace("{{machine}}", "{{i % 7}}");
    let error = adjusted(&counted, &tenth).expect_err("counts");
    assert!(error.contains("clients cannot be scaled") && error.contains("x.toml:6:9"), "{error}");
    assert!(adjusted(&counted, &Adjustment::NONE).is_ok());
}

const TWO_BROKERS: &str = "name = 'x'\n[target]\nversion = '3.1.1'\n\
    [targets.node1]\nbroker = 'mqtt://127.0.0.1:1'\n[targets.node2]\nversion = '5'\n\
    [groups.a]\nclients = 1\ntarget = 'node1'\n[[groups.a.publish]]\ntopic = 't'\n\
    rate = { total = 1 }\n[groups.b]\nclients = 1\ntarget = 'node2'\n";

#[test]
fn groups_choose_among_several_brokers() {
    let scenario = parse(TWO_BROKERS, &[]).expect("parses");
    let names: Vec<_> = scenario.targets_in_use().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["node1", "node2"]);
    let (name, target) = scenario.target_of(&scenario.groups["a"]);
    assert_eq!((name, target.version), ("node1", ProtocolVersion::V311));
    assert_eq!(scenario.target_of(&scenario.groups["b"]).1.version, ProtocolVersion::V5);
    assert_eq!(parse(&scenario.to_toml(), &[]).expect("again"), scenario);
    assert_eq!(symmetric(&[]).expect("parses").targets_in_use()[0].0, Scenario::DEFAULT_TARGET);
    for (from, to, words) in [
        ("target = 'node1'", "target = 'node3'", "did you mean 'node1'?"),
        ("target = 'node1'", "target = 'elsewhere'", "no broker 'elsewhere'"),
        ("[targets.node2]", "[targets.'']", "cannot be the name of a broker"),
        ("[targets.node2]", "[targets.'a b']", "cannot be the name of a broker"),
    ] {
        let error = parse(&TWO_BROKERS.replacen(from, to, 1), &[]).expect_err(to);
        assert!(error.contains(words) && error.starts_with("x.toml:"), "{to}: {error}");
    }
}

#[test]
fn too_many_clients_for_this_machine_are_marked_where_most_are() {
    let text = "name = 'x'\n[groups.a]\nclients = 15000\n[[groups.a.publish]]\ntopic = 't'\n\
                rate = { total = 1 }\n[groups.b]\nclients = 15000\n";
    let source = SourceText::new("x.toml", text);
    let error = Scenario::parse(&source, &[], LIMITS).expect_err("too many together");
    assert!(error.to_string().starts_with("x.toml:3:11: 30000 clients need"), "{error}");
    assert!(error.render(false).contains("at most 19936 clients here"), "{error}");
}
