//! What a command line would do, for the console: parsed and checked by what runs it.

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};
use serde_json::{Value, json};
use tacho_console::{ToolOffer, ToolPreview, ToolProblem, ToolText};
use tacho_lab::doctor::{Row, examine};
use tacho_lab::needs::estimate;
use tacho_report::Lang;
use tacho_scenario::suite::Misprint;
use tacho_scenario::{BenchmarkName, Group, Needs, Scenario, ScenarioVariable};

use crate::exit::Failure;
use crate::run::{OutputArguments, TargetArguments, planned};
use crate::{Cli, Command, estimates};

/// What the command line would do, and what is wrong with it.
pub(crate) fn preview(arguments: &[String]) -> ToolPreview {
    if let Some(problem) = secret(arguments) {
        return refused(problem);
    }
    let words = std::iter::once("tacho").chain(arguments.iter().map(String::as_str));
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refused(wrong_argument(&error)),
    };
    let (scenario, (targets, output)) = match &cli.command {
        Command::Run(arguments) => (arguments.first_scenario(), arguments.parts()),
        Command::Ladder(arguments) => (arguments.first_scenario(), arguments.parts()),
        Command::Capacity(arguments) => (arguments.first_scenario(), arguments.parts()),
        Command::Compare(arguments) => (arguments.first_scenario(), arguments.parts()),
        _ => {
            let message = "the console starts runs, ladders, searches and comparisons".to_owned();
            return refused(ToolProblem { flag: None, message });
        }
    };
    let is_comparison = matches!(cli.command, Command::Compare(_));
    match scenario {
        Err(failure) => refused(problem(arguments, &failure)),
        Ok(scenario) => {
            let mut preview = described(&scenario);
            let name = arguments.get(1).map(String::as_str).unwrap_or_default();
            preview.warnings.extend(misprint(name));
            preview.variables = variables(name);
            let checks = checks(&scenario, targets, output, is_comparison);
            preview.problems = checks.iter().map(|failure| problem(arguments, failure)).collect();
            preview
        }
    }
}

/// What is checked beside the scenario before anything starts; the brokers are not asked.
fn checks(
    scenario: &Scenario,
    targets: &TargetArguments,
    output: &OutputArguments,
    is_comparison: bool,
) -> Vec<Failure> {
    let names: Vec<&str> = scenario.targets_in_use().into_iter().map(|(name, _)| name).collect();
    // The sides of a comparison have been checked, each with its own names.
    let targets = if is_comparison { Ok(()) } else { targets.check(&names) };
    [targets, output.out.check()].into_iter().filter_map(Result::err).collect()
}

fn refused(problem: ToolProblem) -> ToolPreview {
    ToolPreview { problems: vec![problem], ..ToolPreview::default() }
}

/// A word with a secret: the command line of a run can be read by all users of the machine.
fn secret(arguments: &[String]) -> Option<ToolProblem> {
    let at = tacho_lab::secret_word(arguments)?;
    let flag = arguments.get(..=at)?.iter().rfind(|word| word.starts_with("--"));
    let flag = flag.map(|flag| flag.split('=').next().unwrap_or(flag).to_owned());
    let message = "a password or token cannot stand here, where it would be kept and shown: name a \
                   file with it (password_file, token-file=...)";
    Some(ToolProblem { flag, message: message.to_owned() })
}

/// The first sentence of an error of the command line, and its flag.
fn wrong_argument(error: &clap::Error) -> ToolProblem {
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => shown.split([' ', '=']).next().map(str::to_owned),
        Some(ContextValue::Strings(all)) => {
            all.first().and_then(|shown| shown.split([' ', '=']).next()).map(str::to_owned)
        }
        _ => None,
    };
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let message = paragraph.strip_prefix("error: ").unwrap_or(paragraph).trim().to_owned();
    ToolProblem { flag: flag.filter(|flag| flag.starts_with("--")), message }
}

/// A failure with the flag that it names, if that was given.
fn problem(arguments: &[String], failure: &Failure) -> ToolProblem {
    let message = plain(failure.sentence());
    let is_named = |word: &&String| {
        let flag = word.split('=').next().unwrap_or(word);
        flag.starts_with("--") && message.contains(flag)
    };
    let flag = arguments.iter().find(is_named);
    let flag = flag.map(|flag| flag.split('=').next().unwrap_or(flag).to_owned());
    ToolProblem { flag, message: without_excerpt(&message) }
}

/// A message without the colours that a terminal shows: the console may have been started in one.
fn plain(message: &str) -> String {
    let mut parts = message.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let text = part.strip_prefix('[').and_then(|part| part.split_once('m'));
        plain.push_str(text.map_or(part, |(_, text)| text));
    }
    plain.trim().to_owned()
}

/// A message about a scenario file without the lines of the file, which a terminal shows beside it:
/// what is wrong, where, what stands under the place, and the help.
pub(crate) fn without_excerpt(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let mut place = None;
    let mut parts = vec![first.to_owned()];
    for line in lines {
        let line = line.trim_start();
        if let Some(file) = line.strip_prefix("--> ") {
            // Those that come with the program are not the reader's to mend.
            place = Some(file).filter(|file| !file.contains("(built in)"));
        } else if let Some(help) = line.strip_prefix("= help: ") {
            parts.push(help.to_owned());
        } else if let Some((_, label)) = line.rsplit_once('^') {
            parts.extend(Some(label.trim().to_owned()).filter(|label| !label.is_empty()));
        }
    }
    match place {
        Some(place) => format!("{place}: {}", parts.join("; ")),
        None => parts.join("; "),
    }
}

/// The variables of a scenario of the benchmark grammar, which is in no list.
fn variables(name: &str) -> Value {
    match BenchmarkName::parse(name) {
        Some(Ok(known)) => json!(ScenarioVariable::of(&known.source())),
        _ => Value::Null,
    }
}

fn misprint(name: &str) -> Option<ToolText> {
    let misprint = Misprint::of(name)?;
    let en = format!("{}; that row is '{}'", Lang::En.misprint(misprint), misprint.meant);
    let zh = format!("{}；该行为“{}”", Lang::Zh.misprint(misprint), misprint.meant);
    Some(ToolText::new(en, zh))
}

/// A setting that limits a load, with what changes it.
pub(crate) fn limiting(row: &Row) -> ToolText {
    let Row { name, why, why_zh, command, .. } = row;
    match command {
        Some(command) => ToolText::new(
            format!("{name}: {why} ({command})"),
            format!("{name}：{why_zh}（{command}）"),
        ),
        None => ToolText::new(format!("{name}: {why}"), format!("{name}：{why_zh}")),
    }
}

/// The scenario, its load, and what its reader should know.
fn described(scenario: &Scenario) -> ToolPreview {
    let calibration = estimates::of_this_machine();
    let needs = match estimate(scenario, estimates::costs(calibration.as_ref())) {
        Ok(needs) => needs,
        Err(error) => {
            return refused(ToolProblem { flag: None, message: error.to_string() });
        }
    };
    // Notes about the translation of a plan name its elements.
    let mut warnings: Vec<ToolText> =
        scenario.notes.iter().map(|note| ToolText::english(note)).collect();
    if calibration.is_none() {
        warnings.push(ToolText::new(
            "This machine is not calibrated: the cores of the generator are estimated with figures \
             of a typical machine. Run 'tacho calibrate' once.",
            "本机尚未校准：负载生成器所需的核数按典型机器估算。请运行一次 tacho calibrate。",
        ));
    }
    let brokers = scenario.targets_in_use();
    let is_here = |broker: Option<&tacho_scenario::BrokerUrl>| {
        broker.is_none_or(tacho_scenario::BrokerUrl::is_loopback)
    };
    let one_machine = brokers.iter().any(|(_, target)| is_here(target.broker.as_ref()));
    let rows = examine(&needs, one_machine);
    warnings.extend(rows.iter().filter(|row| row.limits).map(limiting));
    if needs.closed {
        warnings.push(ToolText::new(
            "Some publishers send as fast as the broker lets them.",
            "部分发布者以 Broker 允许的最快速度发送。",
        ));
    }
    ToolPreview {
        scenario_toml: Some(scenario.to_toml()),
        offered: Some(offer(scenario, &needs)),
        variables: Value::Null,
        warnings,
        problems: Vec::new(),
    }
}

fn offer(scenario: &Scenario, needs: &Needs) -> ToolOffer {
    let of = |does: fn(&Group) -> bool| {
        let groups = scenario.groups.values().filter(|group| does(group));
        groups.map(|group| u64::from(group.clients)).sum()
    };
    let known = |rate: f64| (!needs.closed).then_some(rate);
    ToolOffer {
        clients: needs.clients,
        publishers: of(|group| !group.publish.is_empty()),
        subscribers: of(|group| !group.subscribe.is_empty()),
        messages_in_per_s: known(needs.in_per_s),
        messages_out_per_s: known(needs.out_per_s),
        bytes_in_per_s: known(needs.in_bytes_per_s),
        bytes_out_per_s: known(needs.out_bytes_per_s),
        duration_s: planned(scenario).as_secs_f64(),
        descriptors: needs.descriptors,
        cores: needs.generator_cores,
    }
}

#[cfg(test)]
mod tests {
    use tacho_scenario::{Adjustment, Limits};

    use super::*;

    fn previewed(line: &str) -> ToolPreview {
        preview(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn flag(line: &str) -> String {
        let preview = previewed(line);
        assert!(!preview.problems.is_empty(), "{line} has no problem");
        preview.problems[0].flag.clone().unwrap_or_default()
    }

    #[test]
    fn a_run_is_described_before_it_starts() {
        let preview = previewed(
            "run symmetric --var publishers=10 --var subscribers=10 --var target_throughput=100 \
             --var payload_size=100 --hold 4s --warmup 1s --ramp-up 2s",
        );
        assert_eq!(preview.problems, []);
        let offered = preview.offered.expect("is known");
        assert_eq!((offered.clients, offered.publishers, offered.subscribers), (20, 10, 10));
        let rates = [offered.messages_in_per_s, offered.bytes_out_per_s]
            .map(|rate| rate.expect("is open").round());
        assert_eq!((rates, offered.duration_s), ([100.0, 10_000.0], 7.0));
        assert!(preview.scenario_toml.expect("is shown").contains("name = \"symmetric\""));
    }

    #[test]
    fn problems_name_the_flag_that_they_are_about() {
        for (line, expected) in [
            ("run symmetric --hold soon", "--hold"),
            ("run symmetric --broker ftp://h", "--broker"),
            ("run symmetric --threshold p99", "--threshold"),
            ("run symmetric --out nowhere", "--out"),
            ("run symmetric --agents 4", "--agents"),
            ("run symmetric --agents local:0", "--agents"),
            ("run symmetric --agents 4 --bus ftp://h", "--bus"),
            ("run symmetric --password-file /no/such/file", "--password-file"),
            ("run symmetric --broker mqtt://u:pw@127.0.0.1:1", "--broker"),
            ("run symmetric --monitor agent://h:1?token=abc", "--monitor"),
            ("ladder symmetric nothing=1,2", ""),
            ("run no-such-scenario", ""),
            ("serve", ""),
        ] {
            assert_eq!(flag(line), expected, "{line}: {:?}", previewed(line).problems);
        }
        let unknown = previewed("run symmetric --var nothing=1");
        assert!(unknown.problems[0].message.contains("'nothing'"), "{:?}", unknown.problems);
    }

    #[test]
    fn what_is_wrong_is_said_in_chinese_too() {
        for line in [
            "run symmetric --var nothing=1",
            "run symmetric --var qos=x",
            "run symmetric --var qos=3",
            "run symmetric --var payload_size=3",
            "run symmetric --var publishers=-1",
            "run symmetric --hold soon",
            "run symmetric --hold 1ms",
            "run symmetric --threshold p99",
            "run symmetric --threshold p98<1ms",
            "run symmetric --threshold p99~1ms",
            "run symmetric --threshold p99<soon",
            "run symmetric --out nowhere",
            "run symmetric --out paper=x",
            "run symmetric --out influxdb=h:1/db",
            "run symmetric --out influxdb=http://h:1/db?token=x",
            "run symmetric --out influxdb=http://h:1/db?nothing=x",
            "run symmetric --password-file /no/such/file",
            "run symmetric --broker ftp://h",
            "run symmetric --broker mqtt://h:0",
            "run symmetric --broker mqtt://u:pw@127.0.0.1:1",
            "run symmetric --broker a=mqtt://h:1",
            "run symmetric --monitor x",
            "run symmetric --monitor agent://h",
            "run symmetric --monitor agent://h:1?token=abc",
            "run symmetric --virtual-users pub",
            "run symmetric --virtual-users nope=3",
            "run symmetric --machines 0",
            "run symmetric --agents 0",
            "run symmetric --agents local:0",
            "run symmetric --agents 4",
            "run symmetric --agents local:2 --bus nats://h",
            "run symmetric --agents local:2 --agents local:1",
            "run symmetric --agents 4 --bus ftp://h",
            "run symmetric --agents 4 --bus nats://u:p@h",
            "run symmetric --nothing",
            "run symmetric --hold",
            "run symmetric --jmx-loops 3",
            "run symmetric --scale 0",
            "run symmetric --tolerate-nothing",
            "ladder symmetric nothing=1,2",
            "ladder symmetric qos",
            "ladder symmetric publishers=5..1:1",
            "ladder symmetric publishers=1..5",
            "ladder symmetric",
            "capacity symmetric --objective p99",
            "capacity symmetric --variable nothing",
            "compare symmetric --brokers builtin",
            "compare symmetric --brokers builtin,elsewhere",
            "run no-such-scenario",
            "run symetric",
            "run no/such/file.toml",
            "run 1_1_qos3_p32_1mps",
            "run 1_1_qos1_p3_1mps",
            "run guide --only nothing",
            "serve",
        ] {
            let preview = previewed(line);
            let problem = preview.problems.first().unwrap_or_else(|| panic!("{line} is fine"));
            let said = tacho_report::said(&problem.message);
            let said = said.unwrap_or_else(|| panic!("{line}: not in the book: {problem:?}"));
            let is_chinese = said.zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            let english = ["cannot", " is ", " no ", "write", "there"];
            let has_english = english.iter().any(|word| said.zh.contains(word));
            assert!(is_chinese && !has_english, "{line}: {}", said.zh);
        }
    }

    #[test]
    fn every_kind_of_run_is_described() {
        for line in [
            "ladder symmetric target_throughput=100,200 --var publishers=2 --var subscribers=2",
            "capacity symmetric --var publishers=2 --var subscribers=2 --var target_throughput=10",
            "compare symmetric --brokers builtin,builtin --var publishers=2 --var subscribers=2 --var target_throughput=10",
            "run guide --scale 0.001 --scale-clients 0.001",
            "run symmetric --virtual-users pub=3 --virtual-users sub=3 --var target_throughput=10",
        ] {
            let preview = previewed(line);
            assert_eq!(preview.problems, [], "{line}");
            assert!(preview.offered.is_some_and(|offered| offered.clients > 0), "{line}");
        }
    }

    #[test]
    fn names_of_published_rows_have_their_variables() {
        let preview = previewed("run 2_2_qos1_p256_1mps --var rate=5");
        assert_eq!(preview.problems, []);
        let variables = preview.variables.as_array().expect("has some").clone();
        let rate = variables.iter().find(|one| one["name"] == "rate").expect("is there");
        assert_eq!((&rate["default"], &rate["kind"]), (&json!("1"), &json!("rate")));
        assert!(variables.iter().all(|one| one["help_zh"].is_string()), "{variables:?}");
        assert_eq!(previewed("run symmetric").variables, Value::Null);
    }

    #[test]
    fn messages_have_no_colours() {
        let error = Scenario::load("no-such-thing", &[], &Adjustment::NONE, Limits::NONE);
        let error = error.expect_err("there is none");
        assert!(error.render(true).contains('\u{1b}'), "a terminal shows colours");
        let styled = without_excerpt(&plain(&error.render(true)));
        assert_eq!(styled, without_excerpt(&error.render(false)));
        assert!(styled.starts_with("'no-such-thing' is neither"), "{styled}");
        assert_eq!(plain("a \u{1b}[1m\u{1b}[31mb\u{1b}[0m c \u{1b}"), "a b c");
    }

    #[test]
    fn messages_about_files_have_no_lines_of_them() {
        let of_file = "too small\n --> a.toml:3:20\n  |\n3 | size = 3\n  |        ^ at least 24\n  |\n  \
                       = help: more\n  = help: or less";
        assert_eq!(without_excerpt(of_file), "a.toml:3:20: too small; at least 24; more; or less");
        let own = "too small\n --> x.toml (built in):3:20\n  |\n3 | a\n  | ^";
        assert_eq!(without_excerpt(own), "too small");
        assert_eq!(without_excerpt("one line"), "one line");
        let settings =
            vec!["run".to_owned(), "symmetric".to_owned(), "--var=payload_size=3".to_owned()];
        let message = &preview(&settings).problems[0].message;
        assert!(message.contains("too small") && !message.contains(['|', '^', '\n']), "{message}");
    }
}
