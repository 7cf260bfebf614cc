use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn again(line: &str) -> ToolRepeat {
    repeat(&words(line), None, RepeatFrom::Line).unwrap_or_else(|why| panic!("{line}: {why}"))
}

/// A scenario file, as records have it.
fn recorded(line: &str) -> (tempfile::TempDir, String) {
    let preview = crate::console_preview::preview(&words(line));
    let toml = preview.scenario_toml.unwrap_or_else(|| panic!("{line}: {:?}", preview.problems));
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("scenario.toml");
    std::fs::write(&file, toml).expect("writes");
    let file = file.to_str().expect("is UTF-8").to_owned();
    (place, file)
}

#[test]
fn what_was_about_the_earlier_run_is_dropped_and_all_else_is_kept() {
    for (line, expected) in [
        ("run symmetric --var qos=1 --dir runs/x --ui --quiet", "run symmetric --var qos=1"),
        ("run --ui 9000 --hold=5s symmetric -q", "run symmetric --hold 5s"),
        ("run symmetric --duration 5s --ui-wait --ui", "run symmetric --hold 5s"),
        (
            "ladder symmetric qos=0,1 --stop-when cpu>95% --json --force --dir x",
            "ladder symmetric qos=0,1 --stop-when cpu>95%",
        ),
        (
            "compare symmetric --brokers builtin,builtin --repeats 5 --junit a --markdown b --badge c",
            "compare symmetric --brokers builtin,builtin --repeats 5",
        ),
        ("run guide --only QoS --no-wait", "run guide --only QoS"),
        ("run symmetric --broker-cmd=-x", "run symmetric --broker-cmd=-x"),
    ] {
        assert_eq!(again(line).words.join(" "), expected, "{line}");
    }
}

#[test]
fn a_line_becomes_a_request_and_what_has_no_field_is_named() {
    let repeat = again(
        "run symmetric --var qos=1 --virtual-users pub=3 --hold 1m --ramp-up 250ms --threshold \
         p99<10ms --threshold loss==0 --broker mqtt://h:1 --username u --ca /ca.pem --name Monday \
         --timing spin --monitor n1=local --repeat 3",
    );
    let expected = json!({
        "command": "run", "scenario": "symmetric", "variables": {"qos": "1"},
        "virtual_users": {"pub": 3}, "duration_s": 60.0, "ramp_up_s": 0.25,
        "thresholds": ["p99<10ms", "loss==0"], "broker": "mqtt://h:1",
        "credentials": {"username": "u"}, "tls": {"ca_file": "/ca.pem"}, "name": "Monday",
        "monitors": ["n1=local"], "repeat": 3,
    });
    assert_eq!(repeat.request, expected);
    assert_eq!(repeat.left_out, ["--timing spin"]);
    let ladder = again("ladder symmetric qos=0,1 --broker a=mqtt://h:1 --pause 1s");
    assert_eq!((&ladder.request["steps"], ladder.is_single), (&json!("qos=0,1"), false));
    assert_eq!(ladder.left_out, ["--broker a=mqtt://h:1", "--pause 1s"]);
    let divided = again("run symmetric --agents a=b:2 --agents 1 --bus nats://h --timing spin");
    assert_eq!(divided.request["agents"], json!(["a=b:2", "1"]));
    assert_eq!((&divided.request["bus"], divided.left_out.len()), (&json!("nats://h"), 1));
    assert_eq!(again("run guide").request["command"], "suite");
    let sides = again("compare symmetric --brokers builtin,mqtt://h:1");
    assert_eq!(sides.request["broker"], json!(["builtin", "mqtt://h:1"]));
}

#[test]
fn a_scenario_file_has_the_load_and_the_credentials() {
    let folder = tempfile::tempdir().expect("a folder");
    let password = folder.path().join("password");
    std::fs::write(&password, "hunter2\n").expect("writes");
    let line = format!(
        "run symmetric --var publishers=2 --var subscribers=2 --hold 5s --broker \
         mqtt://h:1,user=u,password-file={} --shards 2 --note done",
        password.display()
    );
    let (_place, file) = recorded(&line.replace(" --shards 2", ""));
    let own = line.replace("symmetric", "own.toml");
    assert!(again(&own).takes_file);
    let repeat = repeat(&words(&own), Some(&file), RepeatFrom::Ran).expect("can be made again");
    assert_eq!(
        repeat.words.join(" "),
        format!("run {file} --broker mqtt://h:1 --shards 2 --note done")
    );
    assert_eq!(repeat.problems, []);
    assert_eq!(repeat.request, json!({"command": "run", "broker": "mqtt://h:1", "note": "done"}));
    assert_eq!(repeat.left_out, ["--shards 2"]);
    for (value, expected) in [
        ("mqtt://…@h:1/p@q", "mqtt://h:1/p@q"),
        ("n1=mqtts://h:1,user=a", "n1=mqtts://h:1"),
        ("builtin,password-file=x", "builtin"),
        ("mqtt://h", "mqtt://h"),
    ] {
        assert_eq!(without_credentials(value), expected);
    }
}

#[test]
fn another_file_takes_the_place_of_a_scenario_file_and_all_flags_stay() {
    let line = words("ladder own.toml qos=0,1 --var publishers=2 --username u --hold 1s --quiet");
    let repeat = repeat(&line, None, RepeatFrom::File("/kept/own.toml")).expect("is one");
    assert_eq!(
        repeat.words.join(" "),
        "ladder /kept/own.toml qos=0,1 --var publishers=2 --username u --hold 1s"
    );
    assert!(repeat.takes_file && !repeat.is_single);
    let expected = json!({
        "command": "ladder", "steps": "qos=0,1", "variables": {"publishers": "2"},
        "credentials": {"username": "u"}, "duration_s": 1.0,
    });
    assert_eq!(repeat.request, expected);
}

#[test]
fn secrets_that_the_record_leaves_out_are_named() {
    for (line, named) in [
        ("run symmetric --broker mqtt://…@h:1", "--broker mqtt://…@h:1"),
        ("run symmetric --monitor agent://h:1?token=…", "--monitor"),
    ] {
        let repeat = again(line);
        assert!(repeat.problems[0].message.contains(named), "{line}: {:?}", repeat.problems);
        assert!(repeat.left_out[0].contains(named), "{line}");
    }
    let note = vec!["run".into(), "symmetric".into(), "--note".into(), "and … so on".into()];
    let note = repeat(&note, None, RepeatFrom::Line).expect("is one");
    assert_eq!((note.problems, &note.request["note"]), (vec![], &json!("and … so on")));
    // As a record has a password of a URL: only that there is one.
    let (_place, file) = recorded("run symmetric --broker mqtt://h:1 --username u");
    let text = std::fs::read_to_string(&file).expect("reads");
    let named =
        text.replace("username = \"u\"", "username = \"u\"\npassword_env = \"NOT_SET_HERE\"");
    assert_ne!(text, named);
    std::fs::write(&file, named).expect("writes");
    let repeat = repeat(&words("run own.toml"), Some(&file), RepeatFrom::Ran).expect("is one");
    assert!(repeat.problems[0].message.contains("variable NOT_SET_HERE"), "{:?}", repeat.problems);
    // Of a ladder the first step tells.
    let ladder = words("ladder symmetric qos=0,1 --broker mqtt://h:1");
    let ladder = super::repeat(&ladder, Some(&file), RepeatFrom::Line).expect("is one");
    assert!(ladder.problems[0].message.contains("variable NOT_SET_HERE"), "{:?}", ladder.problems);
    assert_eq!(ladder.words[1], "symmetric");
}

#[test]
fn what_cannot_be_made_again_says_why() {
    for (line, why) in [
        ("compare runs/a runs/b", "recorded runs"),
        ("serve", "makes no run"),
        ("run symmetric --flag-of-tomorrow", "--flag-of-tomorrow"),
        ("run", "no scenario"),
        ("run own.toml", "scenario.toml"),
    ] {
        let file = line.contains("run own").then_some("/no/such/scenario.toml");
        let from = if file.is_some() { RepeatFrom::Ran } else { RepeatFrom::Line };
        let said = repeat(&words(line), file, from).err().unwrap_or_default();
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn every_flag_that_is_named_exists() {
    let mut program = Cli::command();
    program.build();
    let run = program.find_subcommand("run").expect("is one");
    for flag in OF_EARLIER_RUN.iter().chain(&IN_SCENARIO).chain(&TEXTS) {
        assert!(run.get_arguments().any(|arg| arg.get_long() == Some(*flag)), "--{flag}");
    }
}
