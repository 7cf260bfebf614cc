mod choices;

use super::*;
use crate::jmx_options::{Pacing, PayloadStyle};
use crate::{
    ClientPlace, Limits, Model, Payload, Publish, Rate, Scenario, Scheme, TimeSpan, VarValue,
};

/// A plan of the test's folder.
fn fixture(name: &str) -> SourceText {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let text = std::fs::read_to_string(&path).expect("a fixture");
    SourceText::new(name, &text)
}

fn vars(vars: &[(&str, &str)]) -> Vec<(String, String)> {
    vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn translated(name: &str, overrides: &[(&str, &str)], adjustment: &Adjustment) -> Translation {
    match translate(&fixture(name), &vars(overrides), adjustment) {
        Ok(translation) => translation,
        Err(error) => panic!("{name}: {error}"),
    }
}

fn scenario(name: &str, overrides: &[(&str, &str)], adjustment: &Adjustment) -> Scenario {
    let source = translated(name, overrides, adjustment).source;
    match Scenario::parse(&source, &[], Limits::NONE) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}\n{}", source.text),
    }
}

fn rate(publish: &Publish) -> Rate {
    match &publish.model {
        Model::Open { rate, .. } => *rate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_becomes_the_scenario_that_it_means() {
    let scenario = scenario("pairs.jmx", &[], &Adjustment::NONE);
    assert_eq!(scenario.name, "pairs");
    assert_eq!(scenario.vars["per_second"], VarValue::Integer(200));
    let url = scenario.target.broker.as_ref().expect("a broker");
    assert_eq!(url.to_string(), "mqtt://127.0.0.1:1883");
    assert_eq!(scenario.phases.connect_timeout, TimeSpan::from_secs(15));
    let senders = &scenario.groups["Senders"];
    assert_eq!((senders.clients, senders.connect.keep_alive), (10, TimeSpan::from_secs(120)));
    assert_eq!(senders.connect.ramp, Some(TimeSpan::from_secs(2)));
    let [publish] = &senders.publish[..] else { panic!("{senders:?}") };
    assert_eq!(publish.topic.expand(0), "pairs/m1/1");
    assert_eq!(publish.topic.expand(9), "pairs/m1/10");
    assert_eq!(publish.qos, 1);
    assert_eq!(rate(publish).total(10), 200.0);
    let receivers = &scenario.groups["Receivers"];
    assert_eq!(receivers.connect.ramp, Some(TimeSpan::from_secs(0)), "JMeter reads '$2' as 0");
    assert_eq!(receivers.subscribe[0].filter.expand(4), "pairs/m1/5");
    assert_eq!(receivers.subscribe[0].qos, 2);
    for group in [senders, receivers] {
        let id = group.client_id.expand(3);
        let (prefix, suffix) = id.split_at(4);
        assert_eq!((prefix, id.len()), ("dev_", 23));
        assert!(suffix.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    }
    assert_ne!(senders.client_id.expand(3), receivers.client_id.expand(3));
}

#[test]
fn a_dollar_too_many_is_told() {
    let notes = translated("pairs.jmx", &[], &Adjustment::NONE).notes;
    let note = notes.iter().find(|note| note.contains("ramp_time")).expect("a note");
    assert!(note.contains("Line 99") && note.contains("'$2'"), "{note}");
}

#[test]
fn variables_of_the_plan_are_set_from_outside() {
    let overrides = [("senders", "4"), ("q", "2"), ("per_second", "1k"), ("host", "::1")];
    let scenario = scenario("pairs.jmx", &overrides, &Adjustment::NONE);
    let senders = &scenario.groups["Senders"];
    assert_eq!((senders.clients, senders.publish[0].qos), (4, 2));
    assert_eq!(rate(&senders.publish[0]).total(4), 1000.0);
    assert_eq!(scenario.vars["per_second"], VarValue::Integer(1000));
    assert_eq!(scenario.target.broker.map(|url| url.host), Some("::1".to_owned()));
    let error = translate(&fixture("pairs.jmx"), &vars(&[("qos", "1")]), &Adjustment::NONE);
    let sentence = error.expect_err("there is no such variable").to_string();
    assert!(
        sentence.contains("no variable 'qos'") && sentence.contains("per_second"),
        "{sentence}"
    );
}

#[test]
fn converted_plans_are_scenarios_with_variables() {
    let text = translated("pairs.jmx", &[("bytes", "64")], &Adjustment::NONE).source.text;
    for line in [
        "bytes = 64  # Bytes",
        "clients = \"{{senders}}\"",
        "rate = { total = \"{{per_second}}\" }",
        "payload = { size = \"{{bytes}}\" }",
        "broker = \"mqtt://{{host}}:{{port}}\"",
        "# From the JMeter plan pairs.jmx.",
    ] {
        assert!(text.lines().any(|written| written == line), "no {line:?} in\n{text}");
    }
    let source = SourceText::new("pairs.toml", &text);
    let changed = Scenario::parse(&source, &vars(&[("per_second", "50")]), Limits::NONE);
    let changed = changed.expect("a scenario of its own");
    assert_eq!(rate(&changed.groups["Senders"].publish[0]).total(10), 50.0);
}

#[test]
fn machines_divide_groups() {
    let adjustment = Adjustment { machines: Some(4), ..Adjustment::NONE };
    let scenario = scenario("team.jmx", &[], &adjustment);
    assert_eq!((scenario.machines, scenario.groups["Senders"].clients), (4, 20));
    let place = |client| ClientPlace::new(client, 4);
    let filter = &scenario.groups["Receivers"].subscribe[0].filter;
    let filters: Vec<_> = (0..8).map(|client| filter.expand_at(place(client))).collect();
    for machine in 1..=4 {
        let wanted = format!("$share/workers/team/m{machine}");
        assert_eq!(filters.iter().filter(|filter| **filter == wanted).count(), 2);
    }
    assert_eq!(rate(&scenario.groups["Senders"].publish[0]).total(20), 200.0, "divided, not each");
    let notes = translated("team.jmx", &[], &adjustment).notes;
    assert!(notes.iter().all(|note| !note.contains("--machines")), "{notes:?}");
    let notes = translated("team.jmx", &[], &Adjustment::NONE).notes;
    assert!(notes.iter().any(|note| note.contains("--machines")), "{notes:?}");
}

#[test]
fn the_step_between_threads_is_whole_milliseconds() {
    let ramp = |senders: &str, machines, ramp_up| {
        let adjustment = Adjustment { machines, ramp_up, ..Adjustment::NONE };
        let scenario = scenario("pairs.jmx", &[("senders", senders)], &adjustment);
        scenario.groups["Senders"].connect.ramp.expect("a ramp").0.as_millis()
    };
    assert_eq!(ramp("10", None, None), 2000);
    assert_eq!(ramp("3", None, None), 2001, "667 ms each");
    assert_eq!(ramp("12", Some(4), None), 2001, "3 threads on each machine");
    assert_eq!(ramp("10", None, Some(TimeSpan::from_secs(5))), 5000);
    assert_eq!(ramp("10000", None, None), 0, "0.2 ms are none");
}

#[test]
fn two_servers_are_two_targets() {
    let scenario = scenario("bridged.jmx", &[("node2", "10.0.0.2")], &Adjustment::NONE);
    assert_eq!(scenario.targets.keys().collect::<Vec<_>>(), ["node1", "node2"]);
    assert_eq!(scenario.targets["node2"].broker.as_ref().expect("a broker").host, "10.0.0.2");
    let target = |group: &str| scenario.groups[group].target.as_deref();
    assert_eq!(target("Pub_A"), Some("node1"));
    assert_eq!(target("Sub_B"), Some("node2"));
    assert_eq!(scenario.groups["Sub_A"].subscribe[0].filter.expand(0), "remote/out/m1/1");
    let bridges: Vec<_> = scenario
        .bridges
        .iter()
        .map(|b| (b.from.as_str(), b.to.as_str(), b.filter.as_str(), b.prefix.as_str()))
        .collect();
    assert_eq!(
        bridges,
        [("node1", "node2", "out/#", "remote/"), ("node2", "node1", "out/#", "remote/")]
    );
}

#[test]
fn timers_controllers_and_conditions() {
    let overrides = [("broker.port", "1884")];
    let scenario = scenario("mixed.jmx", &overrides, &Adjustment::NONE);
    assert_eq!(scenario.target.broker.as_ref().map(|url| url.port), Some(1884), "a property");
    assert_eq!(scenario.groups.len(), 4, "one is switched off");
    let sensors = &scenario.groups["Sensors"];
    assert_eq!(sensors.inflight, 1, "samplers that wait for acknowledgements");
    assert_eq!(sensors.connect.username.as_ref().expect("a name").expand(2), "user3");
    assert!(sensors.client_id.expand(2).starts_with("sensor-3-"));
    // Two samplers with 100 ms in front of each: five turns a second.
    assert_eq!(rate(&sensors.publish[0]).total(1), 5.0);
    assert_eq!(rate(&sensors.publish[1]).total(1), 5.0);
    // 50 ms and up to 100 ms more.
    assert_eq!(rate(&scenario.groups["Finite"].publish[0]).total(1), 10.0);
    // 40 in 2 seconds, over the group, at random.
    let Model::Poisson { rate, .. } = &scenario.groups["Precise"].publish[0].model else {
        panic!()
    };
    assert_eq!(rate.total(2), 20.0);
    let filters = &scenario.groups["Listeners"].subscribe;
    assert_eq!(
        filters.iter().map(|f| f.filter.expand(0)).collect::<Vec<_>>(),
        ["mixed/+/1", "mixed/d"]
    );
    let deaf = [("listen", "false")];
    let error = translate(&fixture("mixed.jmx"), &vars(&deaf), &Adjustment::NONE);
    let error = error.expect_err("the other branch has an unknown element").to_string();
    assert!(error.contains("Never > Never reached"), "{error}");
}

#[test]
fn unsupported_elements_are_listed_at_once() {
    let plan = fixture("unknown.jmx");
    let error =
        translate(&plan, &[], &Adjustment::NONE).expect_err("is not understood").to_string();
    for words in [
        "4 unsupported elements",
        "line 22: Unknown > Headers: the element 'HeaderManager'",
        "line 70: Unknown > Senders > Loop > Script: the element 'JSR223Sampler'",
        "openssl pkcs12",
        "no variable 'missing'",
        "--ignore-unknown",
    ] {
        assert!(error.contains(words), "no {words:?} in {error}");
    }
    assert!(!error.contains("HTTPSamplerProxy"), "it is switched off: {error}");
    let mut adjustment = Adjustment::NONE;
    adjustment.jmx.ignore_unknown = true;
    let translation = translated("unknown.jmx", &[], &adjustment);
    let left_out = translation.notes.iter().filter(|note| note.starts_with("Left out")).count();
    assert_eq!(left_out, 4, "{:?}", translation.notes);
    let scenario = Scenario::parse(&translation.source, &[], Limits::NONE).expect("a scenario");
    // 600 a minute, over the two threads of the group.
    assert_eq!(rate(&scenario.groups["Senders"].publish[0]).total(2), 10.0);
    let secure = scenario.targets.values().find(|target| target.tls.insecure).expect("one");
    assert_eq!(secure.broker.as_ref().map(|url| url.scheme), Some(Scheme::Mqtts));
}

/// The plan of pairs with something else in one place.
fn changed(from: &str, to: &str) -> Result<Translation, ScenarioError> {
    let plan = fixture("pairs.jmx");
    assert!(plan.text.contains(from), "{from}");
    translate(&SourceText::new("changed.jmx", &plan.text.replace(from, to)), &[], &Adjustment::NONE)
}

#[test]
fn bad_values_are_told_with_their_line() {
    for (from, to, words) in [
        (
            "<stringProp name=\"mqtt.protocol\">TCP",
            "<stringProp name=\"mqtt.protocol\">UDP",
            "no protocol 'UDP'",
        ),
        ("3.1.1", "4.2", "no MQTT version '4.2'"),
        ("dev_", "a-prefix-of-more-than-23-characters", "longer than 23"),
        ("${q}", "high", "QoS cannot be 'high'"),
        ("Random string with fixed length", "Poem", "no message type 'Poem'"),
        ("${__xmeterThroughput(${per_second}, SEC)}", "0", "produces no samples"),
        ("${senders}", "${__groovy(1)}", "'${__groovy(1)}' is not supported"),
        ("pairs/${__machineName()}/${__threadNum}", "", "no topic"),
        ("ThreadGroup\" testname", "SetupThreadGroup\" testname", "'SetupThreadGroup'"),
    ] {
        let error = changed(from, to).map(|t| t.source.text).expect_err(to).to_string();
        assert!(error.contains(words) && error.contains("changed.jmx"), "{to}: {error}");
        let place = error.contains("line ") || error.contains("changed.jmx:");
        assert!(place, "{to}: {error}");
    }
}

#[test]
fn pacing_and_payload_as_jmeter_has_them_on_request() {
    let mut adjustment = Adjustment::NONE;
    adjustment.jmx.pacing = Pacing::Jmeter;
    adjustment.jmx.payload = PayloadStyle::Jmeter;
    let scenario = scenario("pairs.jmx", &[("bytes", "100")], &adjustment);
    let publish = &scenario.groups["Senders"].publish[0];
    let Model::Jmeter { rate, wait } = &publish.model else { panic!("{:?}", publish.model) };
    assert_eq!((rate.total(10), *wait), (200.0, false));
    assert_eq!(publish.payload, Payload::Jmeter { size: 100, timestamp: true });
    let exact = self::scenario("pairs.jmx", &[], &Adjustment::NONE);
    let publish = &exact.groups["Senders"].publish[0];
    assert_eq!(publish.payload, Payload::Random { size: 128 });
    assert!(matches!(publish.model, Model::Open { catch_up: true, .. }));
    let mixed = self::scenario("mixed.jmx", &[], &adjustment);
    let sensors = &mixed.groups["Sensors"].publish[0];
    assert!(matches!(sensors.model, Model::Open { .. }), "pauses are no throughput timer");
}

#[test]
fn what_differs_from_jmeter_is_told() {
    let note = |translation: &Translation, words: &str| {
        translation.notes.iter().filter(|note| note.contains(words)).count()
    };
    let plain = translated("pairs.jmx", &[], &Adjustment::NONE);
    assert_eq!(note(&plain, "--jmx-inflight 1"), 1, "{:?}", plain.notes);
    assert_eq!(note(&plain, "then all subscribe"), 1, "{:?}", plain.notes);
    assert_eq!(note(&plain, "scheduler"), 0);
    let unacknowledged = translated("pairs.jmx", &[("q", "0")], &Adjustment::NONE);
    assert_eq!(note(&unacknowledged, "--jmx-inflight 1"), 0, "nothing to wait for");

    let text = fixture("pairs.jmx").text;
    let scheduled = text.replacen(
        "<boolProp name=\"ThreadGroup.scheduler\">false</boolProp>",
        "<boolProp name=\"ThreadGroup.scheduler\">true</boolProp>\
         <stringProp name=\"ThreadGroup.duration\">45</stringProp>",
        1,
    );
    assert_ne!(scheduled, *text);
    let scheduled = SourceText::new("scheduled.jmx", &scheduled);
    let scheduled = translate(&scheduled, &[], &Adjustment::NONE).expect("translates");
    assert_eq!(note(&scheduled, "duration of 45 s is the measured phase"), 1, "{scheduled:?}");

    // The ramp of two seconds is not over when the measured phase begins.
    let mut adjustment = Adjustment { warmup: Some(TimeSpan::from_secs(1)), ..Adjustment::NONE };
    assert_eq!(note(&translated("pairs.jmx", &[], &adjustment), "growing load"), 0);
    adjustment.jmx.pacing = Pacing::Jmeter;
    assert_eq!(note(&translated("pairs.jmx", &[], &adjustment), "growing load"), 1);
    adjustment.warmup = Some(TimeSpan::from_secs(2));
    assert_eq!(note(&translated("pairs.jmx", &[], &adjustment), "growing load"), 0);
}

#[test]
fn publishers_wait_for_acknowledgements_on_request() {
    let with = |inflight, pacing| {
        let mut adjustment = Adjustment::NONE;
        (adjustment.jmx.inflight, adjustment.jmx.pacing) = (inflight, pacing);
        scenario("pairs.jmx", &[], &adjustment).groups["Senders"].clone()
    };
    assert_eq!(with(None, Pacing::Exact).inflight, 65_535);
    assert_eq!(with(Some(20), Pacing::Exact).inflight, 20);
    let waiting = with(Some(1), Pacing::Jmeter);
    assert_eq!(waiting.inflight, 1);
    assert!(matches!(waiting.publish[0].model, Model::Jmeter { wait: true, .. }));
}

#[test]
fn messages_of_given_text() {
    let text_of = |kind: &str, message: &str, style| {
        let plan = fixture("pairs.jmx");
        let text = plan
            .text
            .replace("Random string with fixed length", kind)
            .replace("mqtt.message_to_sent\"></", &format!("mqtt.message_to_sent\">{message}</"));
        let mut adjustment = Adjustment::NONE;
        adjustment.jmx.payload = style;
        let translation = translate(&SourceText::new("x.jmx", &text), &[], &adjustment)?;
        assert!(translation.notes.iter().any(|note| note.contains("44 more characters")));
        let scenario = Scenario::parse(&translation.source, &[], Limits::NONE)?;
        match &scenario.groups["Senders"].publish[0].payload {
            Payload::Text { text } => Ok::<_, ScenarioError>(text.clone()),
            other => panic!("{other:?}"),
        }
    };
    let plain = |kind, message| text_of(kind, message, PayloadStyle::ExactSize);
    assert_eq!(plain("String", "on ${q} at ${__time()}").expect("text"), "on 1 at {{time_ms}}");
    assert_eq!(plain("Hex string", "48656C6c6f").expect("text"), "Hello");
    let stamped = text_of("String", "on", PayloadStyle::Jmeter).expect("text");
    assert_eq!(stamped, "{{time_ms}}ts_sep_flagon");
    for (kind, message, words) in [
        ("Hex string", "4865F", "hexadecimal pairs"),
        ("Hex string", "ff00", "not text"),
        ("String", "${__threadNum}", "differs from client to client"),
    ] {
        let error = plain(kind, message).expect_err(message).to_string();
        assert!(error.contains(words), "{message}: {error}");
    }
}

#[test]
fn client_ids_and_credentials_come_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |file: &str, names: &str, prefix: &str| {
        std::fs::write(folder.path().join("users.csv"), file).expect("writes");
        let text = fixture("pairs.jmx").text.replacen(
            "<hashTree>\n        <net.xmeter.samplers.ConnectSampler",
            &format!(
                "<hashTree>\n<CSVDataSet testclass='CSVDataSet' testname='Users' enabled='true'>\
                 <stringProp name='filename'>users.csv</stringProp>\
                 <stringProp name='delimiter'>,</stringProp>\
                 <stringProp name='variableNames'>{names}</stringProp></CSVDataSet><hashTree/>\
                 <net.xmeter.samplers.ConnectSampler"
            ),
            1,
        );
        let text = text
            .replacen("dev_", prefix, 1)
            .replacen("_suffix\">true", "_suffix\">false", 1)
            .replacen(
                "<boolProp name=\"mqtt.client_id_suffix",
                "<stringProp name='mqtt.user_name'>${username}</stringProp>\
                 <boolProp name=\"mqtt.client_id_suffix",
                1,
            );
        let source = SourceText::file(&folder.path().join("users.jmx"), &text);
        let translation = translate(&source, &vars(&[("senders", "2")]), &Adjustment::NONE)?;
        Scenario::parse(&translation.source, &[], Limits::NONE)
    };
    let good = "client_id,username\none,u1\ntwo,u2\n";
    let scenario = with(good, "", "${client_id}").expect("a scenario");
    let group = &scenario.groups["Senders"];
    let second = ClientPlace::new(1, 1);
    assert_eq!(group.client_id(second), "two");
    assert_eq!(group.username(second).as_deref(), Some("u2"));
    assert!(with(good, "client_id,username", "x${__threadNum}").is_ok());
    for (file, names, prefix, words) in [
        ("client_id,username\none,u1\n", "", "${client_id}", "have the client id 'one'"),
        (good, "", "x-${client_id}", "whole client id"),
        (good, "", "${username}", "one column cannot be used as two"),
        ("", "", "x", "is empty"),
    ] {
        let error = with(file, names, prefix).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// The groups' client ids and user names, of a plan of two groups with a data set in front.
fn dealt_out(options: &str, machines: u32) -> Result<Vec<Vec<(String, String)>>, ScenarioError> {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..20).map(|row| format!("key{row};dev{row};user{row}\n")).collect();
    std::fs::write(folder.path().join("devices.csv"), rows).expect("writes");
    let set = format!(
        "<net.xmeter.XmCSVDataSet testclass='net.xmeter.XmCSVDataSet' testname='Devices' \
         enabled='true'><stringProp name='filename'>devices.csv</stringProp>\
         <stringProp name='variableNames'>key,device,login</stringProp>\
         <stringProp name='delimiter'>;</stringProp>{options}</net.xmeter.XmCSVDataSet><hashTree/>\
         <ThreadGroup testclass=\"ThreadGroup\" testname=\"Senders"
    );
    let head = "<ThreadGroup testclass=\"ThreadGroup\" testname=\"Senders";
    let suffix = "<boolProp name=\"mqtt.client_id_suffix\">true";
    let name = "<stringProp name='mqtt.user_name'>${login}</stringProp>\
                <boolProp name=\"mqtt.client_id_suffix\">false";
    let plan = fixture("pairs.jmx").text;
    assert!(plan.contains(head) && plan.contains(suffix));
    let text = plan.replacen(head, &set, 1).replace("dev_", "${device}").replace(suffix, name);
    let source = SourceText::file(&folder.path().join("devices.jmx"), &text);
    let adjustment = Adjustment { machines: Some(machines), ..Adjustment::NONE };
    let few = vars(&[("senders", "4"), ("receivers", "2")]);
    let translation = translate(&source, &few, &adjustment)?;
    let scenario = Scenario::parse(&translation.source, &[], Limits::NONE)?;
    let again = SourceText::file(&folder.path().join("again.toml"), &scenario.to_toml());
    let again = Scenario::parse(&again, &[], Limits::NONE).expect("its own text");
    assert_eq!(again, scenario);
    let group = |name: &str| {
        let group = &scenario.groups[name];
        let places = (0..u64::from(group.clients)).map(|client| ClientPlace::new(client, machines));
        let of = |place| (group.client_id(place), group.username(place).unwrap_or_default());
        places.map(of).collect()
    };
    Ok(vec![group("Senders"), group("Receivers")])
}

#[test]
fn rows_are_dealt_out_as_the_data_set_says() {
    let ids = |options: &str, machines| -> Vec<Vec<String>> {
        let groups = dealt_out(options, machines).expect(options);
        for (id, name) in groups.iter().flatten() {
            assert_eq!(id.strip_prefix("dev"), name.strip_prefix("user"), "{options}");
        }
        let id = |pair: (String, String)| pair.0.trim_start_matches("dev").to_owned();
        groups.into_iter().map(|group| group.into_iter().map(id).collect()).collect()
    };
    assert_eq!(ids("", 1), [vec!["0", "1", "2", "3"], vec!["4", "5"]], "no row twice");
    let option =
        |name: &str, value: &str| format!("<stringProp name='{name}'>{value}</stringProp>");
    let head = option("ignoreFirstLine", "true");
    assert_eq!(ids(&head, 1)[0], ["1", "2", "3", "4"]);
    let group = option("shareMode", "shareMode.group");
    assert_eq!(ids(&group, 1)[1], ["0", "1"]);
    let spread = option("rowsPerThread", "3");
    assert_eq!(ids(&spread, 1), [vec!["0", "3", "6", "9"], vec!["12", "15"]]);
    // Threads 0 and 2 are on the first machine, 1 and 3 on the second one.
    let machines = option("rowsForDockers", "10") + &group;
    assert_eq!(ids(&machines, 2)[0], ["0", "10", "1", "11"]);
    // The second group goes on behind the first one, on each machine.
    let shared = option("rowsForDockers", "3");
    assert_eq!(ids(&shared, 2), [vec!["0", "3", "1", "4"], vec!["2", "5"]]);
    for (options, words) in [
        (option("shareMode", "shareMode.thread"), "have the client id 'dev0'"),
        (option("rowsPerThread", "10"), "have the client id 'dev0'"),
        (option("rowsPerThread", "9") + &option("recycle", "false"), "rows, there are 20"),
        (option("rowsPerThread", "many"), "not a number of rows"),
        (option("fileEncoding", "UTF-16"), "only UTF-8"),
        (option("shareMode", "edit"), "'edit' is not supported"),
    ] {
        let error = dealt_out(&options, 1).expect_err(words).to_string();
        assert!(error.contains(words), "{options}: {error}");
    }
}

#[test]
fn clients_connect_again_as_often_as_the_plan_says() {
    let attempts = |first: &str, again: &str| {
        let plan = fixture("pairs.jmx");
        let from = "<stringProp name=\"mqtt.conn_attampt_max\">0</stringProp>";
        assert!(plan.text.contains(from));
        let to = format!(
            "<stringProp name='mqtt.conn_attampt_max'>{first}</stringProp>\
             <stringProp name='mqtt.reconn_attempt_max'>{again}</stringProp>"
        );
        let source = SourceText::new("x.jmx", &plan.text.replace(from, &to));
        let translation = translate(&source, &[], &Adjustment::NONE)?;
        let scenario = Scenario::parse(&translation.source, &[], Limits::NONE)?;
        let noted = translation.notes.iter().any(|note| note.contains("connect again"));
        let reconnect = scenario.groups["Senders"].reconnect;
        assert_eq!(noted, reconnect.is_some());
        Ok::<_, ScenarioError>(reconnect.map(|reconnect| reconnect.attempts))
    };
    assert_eq!(attempts("0", "0").expect("none"), None);
    assert_eq!(attempts("", "5").expect("five"), Some(5));
    assert_eq!(attempts("7", "5").expect("seven"), Some(7));
    assert_eq!(attempts("0", "-1").expect("without end"), Some(u32::MAX));
    assert!(attempts("some", "0").expect_err("no number").to_string().contains("'some'"));
}

#[test]
fn a_thread_may_have_many_connections() {
    let with = |capacity: &str, suffix: &str, tail: &str| {
        let plan = fixture("pairs.jmx");
        let (front, senders) = plan.text.split_once("testname=\"Senders\"").expect("a group");
        let (sampler, rest) = senders.split_once("<hashTree>").expect("children");
        let (_, receivers) = rest.split_once("<ThreadGroup").expect("another group");
        let text = format!(
            "{front}testname=\"Many\"{sampler}<hashTree>\
             <net.xmeter.samplers.EfficientConnectSampler \
             testclass='net.xmeter.samplers.EfficientConnectSampler' testname='Open' \
             enabled='true'>\
             <stringProp name='mqtt.server'>${{host}}</stringProp>\
             <stringProp name='mqtt.port'>${{port}}</stringProp>\
             <stringProp name='mqtt.conn_capacity'>{capacity}</stringProp>\
             <stringProp name='mqtt.client_id_prefix'>${{__threadNum}}</stringProp>\
             <boolProp name='mqtt.client_id_suffix'>{suffix}</boolProp>\
             <boolProp name='mqtt.sub_when_connected'>true</boolProp>\
             <stringProp name='mqtt.topic_name'>a/${{__threadNum}},b</stringProp>\
             <stringProp name='mqtt.qos_level'>1</stringProp>\
             </net.xmeter.samplers.EfficientConnectSampler><hashTree/>{tail}\
             <net.xmeter.samplers.EfficientDisConnectSampler \
             testclass='net.xmeter.samplers.EfficientDisConnectSampler' testname='Close' \
             enabled='true'/><hashTree/></hashTree><ThreadGroup{receivers}"
        );
        let translation = translate(&SourceText::new("x.jmx", &text), &[], &Adjustment::NONE)?;
        Scenario::parse(&translation.source, &[], Limits::NONE)
    };
    let scenario = with("5", "false", "").expect("a scenario");
    let many = &scenario.groups["Many"];
    assert_eq!(many.clients, 50, "ten threads");
    assert_eq!(many.client_id(ClientPlace::new(13, 1)), "3-xmeter-suffix-3");
    let filters = many.subscribe.iter().map(|subscribe| subscribe.filter.expand(13));
    assert_eq!(filters.collect::<Vec<_>>(), ["a/3", "b"]);
    assert_eq!((many.subscribe[0].qos, many.publish.len()), (1, 0));
    let random = with("5", "true", "").expect("a scenario");
    let id = random.groups["Many"].client_id(ClientPlace::new(13, 1));
    assert!(id.starts_with('3') && id.len() == 9, "{id}");
    let sampler = "<net.xmeter.samplers.PubSampler testclass='net.xmeter.samplers.PubSampler' \
                   testname='Pub' enabled='true'/><hashTree/>";
    let error = with("5", "false", sampler).expect_err("has no connection").to_string();
    assert!(error.contains("Many > Pub: connections of an efficient"), "{error}");
    assert!(with("0", "false", "").expect_err("none").to_string().contains("conn_capacity"));
}

#[test]
fn a_publisher_without_a_timer_is_closed() {
    let plan = fixture("pairs.jmx");
    let text = plan.text.replace(
        "<ConstantThroughputTimer testclass=\"ConstantThroughputTimer\" testname=\"Pace\" enabled=\"true\">",
        "<ConstantThroughputTimer testclass=\"ConstantThroughputTimer\" testname=\"Pace\" enabled=\"false\">",
    );
    assert_ne!(text, *plan.text);
    let source = SourceText::new("x.jmx", &text);
    let translation = translate(&source, &[], &Adjustment::NONE).expect("translates");
    let scenario = Scenario::parse(&translation.source, &[], Limits::NONE).expect("a scenario");
    let model = &scenario.groups["Senders"].publish[0].model;
    assert_eq!(*model, Model::Closed { window: 100 });
    assert!(translation.notes.iter().any(|note| note.contains("no timer")));
}
