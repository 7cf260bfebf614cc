use super::*;

fn request(json: &str) -> RunRequest {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn refused(json: &str) -> Problem {
    request(json).line(None).expect_err(json)
}

#[test]
fn requests_become_command_lines() {
    for (json, line) in [
        (r#"{"scenario": "symmetric", "variables": {"qos": 1}}"#, "run symmetric --var qos=1"),
        (
            r#"{"scenario": "fan-in", "broker": "mqtt://h:1", "duration_s": 1.5, "ramp_up_s": 0,
                "credentials": {"username": "u", "password_file": "/p w"}, "tls": null,
                "tags": null, "thresholds": ["p99<10ms", "loss==0"], "name": "it's"}"#,
            "run fan-in --broker mqtt://h:1 --username u --password-file '/p w' --ramp-up 0ms \
             --hold 1500ms --threshold 'p99<10ms' --threshold loss==0 --name 'it'\\''s'",
        ),
        (
            r#"{"command": "ladder", "scenario": "symmetric", "steps": "qos=0,1", "repeat": 2}"#,
            "ladder symmetric qos=0,1 --repeat 2",
        ),
        (
            r#"{"command": "capacity", "scenario": "symmetric", "objectives": ["cpu<=75%"]}"#,
            "capacity symmetric --objective 'cpu<=75%'",
        ),
        (
            r#"{"command": "capacity", "scenario": "symmetric", "variable": "publishers"}"#,
            "capacity symmetric --variable publishers",
        ),
        (
            r#"{"command": "ladder", "scenario": "symmetric", "steps": "qos=0,1",
                "stop_when": ["cpu>95%"]}"#,
            "ladder symmetric qos=0,1 --stop-when 'cpu>95%'",
        ),
        (
            r#"{"command": "suite", "scenario": "guide", "only": ["qos1*"]}"#,
            "run guide --only 'qos1*'",
        ),
        (
            r#"{"command": "compare", "scenario": "symmetric", "broker": ["builtin", "mqtt://h"],
                "repeat": 5, "virtual_users": {"pub": 7}}"#,
            "compare symmetric --repeats 5 --brokers builtin,mqtt://h --virtual-users pub=7",
        ),
        (
            r#"{"scenario": "symmetric", "agents": ["2", "region=eu:4"], "bus": "nats://h:4222",
                "bus_credentials": "/etc/tacho/bus.creds"}"#,
            "run symmetric --agents 2 --agents region=eu:4 --bus nats://h:4222 \
             --bus-credentials /etc/tacho/bus.creds",
        ),
        (r#"{"scenario": "symmetric", "agents": ["local:3"]}"#, "run symmetric --agents local:3"),
        (
            r#"{"scenario": "symmetric", "note": "--broker-cmd=x"}"#,
            "run symmetric --note=--broker-cmd=x",
        ),
    ] {
        assert_eq!(request(json).line(None).expect(json).shown(), format!("tacho {line}"));
    }
    let plan = r#"{"upload": "x", "machines": 4, "loops": "forever", "rows": "copy"}"#;
    let line = request(plan).line(Some("/1/plan.jmx")).expect("is one");
    assert_eq!(
        line.shown(),
        "tacho run /1/plan.jmx --machines 4 --jmx-loops forever --jmx-rows copy"
    );
    assert_eq!(line.field(Some("--jmx-loops"), "no number").as_deref(), Some("loops"));
    assert_eq!(line.field(Some("--jmx-rows"), "no plan").as_deref(), Some("rows"));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_field() {
    for (json, field) in [
        (r"{}", "scenario"),
        (r#"{"scenario": "../../etc/passwd"}"#, "scenario"),
        (r#"{"scenario": "--broker-cmd"}"#, "scenario"),
        (r#"{"scenario": "mine.toml"}"#, "scenario"),
        (r#"{"scenario": "symmetric", "steps": "qos=0,1"}"#, "steps"),
        (r#"{"command": "ladder", "scenario": "symmetric"}"#, "steps"),
        (r#"{"command": "ladder", "scenario": "symmetric", "steps": "--x"}"#, "steps"),
        (r#"{"scenario": "symmetric", "objectives": ["cpu<1%"]}"#, "objectives"),
        (r#"{"command": "suite", "scenario": "guide", "repeat": 2}"#, "repeat"),
        (r#"{"scenario": "symmetric", "variable": "qos"}"#, "variable"),
        (r#"{"scenario": "symmetric", "stop_when": ["cpu>1%"]}"#, "stop_when"),
        (r#"{"scenario": "symmetric", "only": ["x"]}"#, "only"),
        (r#"{"command": "compare", "scenario": "symmetric", "broker": ["a"]}"#, "broker"),
        (r#"{"scenario": "symmetric", "duration_s": -1}"#, "duration_s"),
        (r#"{"scenario": "symmetric", "tags": [""]}"#, "tags"),
        (r#"{"scenario": "symmetric", "bus": "nats://h:4222"}"#, "agents"),
    ] {
        assert_eq!(refused(json).field.as_deref(), Some(field), "{json}");
    }
    for json in [
        r#"{"scenario": "symmetric", "password": "x"}"#,
        r#"{"credentials": {"password": "x"}}"#,
        r#"{"variables": {"a": []}}"#,
    ] {
        assert!(serde_json::from_str::<RunRequest>(json).is_err(), "{json}");
    }
}

#[test]
fn messages_find_their_fields() {
    let line =
        request(r#"{"scenario": "symmetric", "variables": {"qos": 7, "x": 1}, "broker": "y"}"#);
    let line = line.line(None).expect("is one");
    let field = |flag, message| line.field(flag, message);
    assert_eq!(field(Some("--broker"), "no URL").as_deref(), Some("broker"));
    assert_eq!(field(Some("--var"), "there is no 'x'").as_deref(), Some("variables.x"));
    assert_eq!(field(None, "the variable 'qos' is 7").as_deref(), Some("variables.qos"));
    let lists = request(r#"{"scenario": "x", "thresholds": ["p99<1ms", "p98"]}"#);
    let lists = lists.line(None).expect("is one");
    let message = "invalid value 'p98' for '--threshold <CONDITION>'";
    assert_eq!(lists.field(Some("--threshold"), message).as_deref(), Some("thresholds[1]"));
    assert_eq!(lists.field(Some("--threshold"), "?").as_deref(), Some("thresholds[0]"));
    assert_eq!(field(None, "something else"), None);
    assert_eq!(field(Some("--hold"), "too short"), None);
}
