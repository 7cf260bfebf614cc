//! Timed actions in scenario files: when they happen, and what is wrong with them.

use std::time::Duration;

use tacho_scenario::{ActionKind, BUILTIN, Limits, Scenario, SourceText};

const BASE: &str = "name = 'x'\n[groups.a]\nclients = 10\n\
    [[groups.a.publish]]\ntopic = 't/{{i}}'\nrate = { per_client = 1 }\n\
    [groups.gone]\nclients = 1\nabsent = true\n[phases]\nmeasure = '10s'\n[[actions]]\n";

fn parse(action: &str) -> Result<Scenario, String> {
    let source = SourceText::new("x.toml", &format!("{BASE}{action}"));
    Scenario::parse(&source, &[], Limits::NONE).map_err(|error| error.to_string())
}

#[test]
fn repetitions_fit_into_the_measured_phase() {
    let at = |action: &str| -> Vec<Duration> {
        let scenario = parse(action).expect(action);
        scenario.schedule().iter().map(|scheduled| scheduled.after).collect()
    };
    let seconds = |all: &[u64]| all.iter().map(|at| Duration::from_secs(*at)).collect::<Vec<_>>();
    assert_eq!(at("at = 4\ntakeover = { group = 'a' }\n"), seconds(&[4]));
    assert_eq!(at("at = 1\nevery = '3s'\nkill = {}\n"), seconds(&[1, 4, 7]));
    assert_eq!(at("at = 0\nevery = '5s'\nrun = 'true'\n"), seconds(&[0, 5]));
    assert_eq!(at("at = 0\nevery = '2s'\ntimes = 2\nrun = 'true'\n"), seconds(&[0, 2]));
    let scenario = parse("at = 1\ndisconnect = { group = 'a', share = 0.25 }\n").expect("parses");
    assert_eq!(scenario.actions[0].affected_clients(10), 3);
    assert_eq!(scenario.actions[0].affected_clients(1), 1);
    assert!(scenario.kill_actions("").is_empty());
}

#[test]
fn slips_are_named_with_their_line() {
    for (action, words) in [
        ("at = 1\n", "12:1: this action does nothing"),
        ("at = 1\nkill = {}\nrun = 'true'\n", "an action has exactly one kind"),
        ("at = 10\nkill = {}\n", "13:6: the action is due after the end of the measured phase"),
        ("at = 1\ntimes = 2\nkill = {}\n", "'times' needs 'every'"),
        ("at = 1\nevery = 5\ntimes = 3\nkill = {}\n", "too short for this number of times"),
        ("at = 1\nevery = '1ms'\nkill = {}\n", "the actions occur too often in one run"),
        ("at = 1\nevery = 0\nkill = {}\n", "the interval is too short"),
        ("at = 1\nkill = { target = 'b' }\n", "there is no broker 'b'"),
        ("at = 1\nrun = ' '\n", "the command is empty"),
        ("at = 1\nover = 1\nrun = 'true'\n", "'over' applies only to actions on clients"),
        ("at = 1\ntimeout = 1\nkill = {}\n", "'timeout' applies only to 'run'"),
        ("at = 1\ntakeover = { group = 'b' }\n", "14:22: there is no group 'b'"),
        ("at = 1\ntakeover = { group = 'gone' }\n", "leaves by 'absent' or 'offline' already"),
        ("at = 1\nsubscribe = { group = 'a' }\n", "group 'a' has no filters"),
        ("at = 1\ntakeover = { group = 'a', share = 0 }\n", "a share cannot be 0"),
        ("at = 1\ntakeover = { group = 'a', share = 1.5 }\n", "a share cannot be 1.5"),
        ("at = 1\npause = { group = 'a', for = 0 }\n", "a pause of 0 has no effect"),
        ("at = 1\npause = { group = 'a', for = '300s' }\n", "longer than the keep-alive"),
        ("at = 1\ndisconnect = { grup = 'a' }\n", "did you mean 'group'?"),
    ] {
        let error = parse(action).expect_err(action);
        assert!(error.contains(words), "{action}: {error}");
    }
}

#[test]
fn built_in_scenarios_run_no_commands() {
    let mut with_actions = 0;
    for builtin in BUILTIN {
        let scenario = Scenario::parse(&builtin.source(), &[], Limits::NONE).expect(builtin.name);
        let runs = |kind: &ActionKind| matches!(kind, ActionKind::Run(_));
        assert!(!scenario.actions.iter().any(|action| runs(&action.kind)), "{}", builtin.name);
        with_actions += usize::from(!scenario.actions.is_empty());
    }
    assert!(with_actions >= 7);
}
