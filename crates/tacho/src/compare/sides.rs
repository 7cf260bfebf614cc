//! The sides of a comparison, as the arguments define them.

use tacho_lab::compare::SidePlan;
use tacho_record::SideLabel;
use tacho_report::Lang;
use tacho_scenario::{BrokerUrl, Scenario};

use super::arguments::CompareArguments;
use crate::exit::{self, Failure};
use crate::run::{Fitting, SideBroker, TargetArguments};

/// Sides of a comparison at most.
const SIDES_MAX: usize = 8;

/// One side before its repeats.
#[derive(Debug)]
pub(super) struct PlannedSide {
    pub(super) targets: TargetArguments,
    pub(super) plan: SidePlan,
}

/// The sides, checked.
pub(super) fn plan(
    arguments: &CompareArguments,
    scenario: &str,
) -> Result<Vec<PlannedSide>, Failure> {
    let brokers = brokers(arguments)?;
    let names: Vec<&str> = brokers.iter().map(|(name, _)| name.as_str()).collect();
    let mut plans = Vec::new();
    for (index, (name, broker)) in brokers.iter().enumerate() {
        let of_side = |values: [&Option<String>; 2]| values.get(index).copied().cloned().flatten();
        let extra = of_side([&arguments.broker_args_a, &arguments.broker_args_b]);
        let extra = extra.map(|text| words(&text)).transpose()?.unwrap_or_default();
        let mut more = extra.clone();
        let shards = taken(&mut more, "--shards", |text| text.parse().ok())?;
        let level = taken(&mut more, "--durability", |text| text.parse().ok())?;
        let mut targets = arguments.targets.of_side((name, &names), broker.clone(), more);
        targets.set_builtin(shards, level);
        let loaded = Fitting::new(&arguments.load, &targets)?.only_scenario(scenario, &[])?;
        only_known_names(arguments, &names, &loaded)?;
        let what = what(&targets, &loaded, &extra)?;
        let label = Lang::En.side_label(&what);
        let before = of_side([&arguments.before_a, &arguments.before_b]);
        let plan = SidePlan { name: name.clone(), label, what, before, scenario: loaded };
        plans.push(PlannedSide { targets, plan });
    }
    Ok(plans)
}

/// Names of the sides with their brokers, where `--brokers` names one.
fn brokers(arguments: &CompareArguments) -> Result<Vec<(String, Option<SideBroker>)>, Failure> {
    let invalid = |sentence: String| Err(Failure::new(exit::INVALID_CONFIG, sentence));
    let given = &arguments.sides;
    if given.is_empty() {
        return Ok(["a", "b"].map(|name| (name.to_owned(), None)).into());
    }
    if given.len() < 2 || given.len() > SIDES_MAX {
        return invalid(format!("--brokers takes 2 to {SIDES_MAX} brokers with commas between"));
    }
    let mut sides = Vec::new();
    for (index, text) in given.iter().enumerate() {
        sides.push(if arguments.targets.tells_about(text) {
            (text.clone(), None)
        } else if text == "builtin" {
            (text.clone(), Some(SideBroker::BuiltIn))
        } else if text.contains("{port}") {
            let program = text.split_whitespace().next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or_default();
            (program.to_owned(), Some(SideBroker::Command(text.clone())))
        } else if text.contains(':') {
            let url = BrokerUrl::parse(text);
            let url = url.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
            (letter(index), Some(SideBroker::Url(url)))
        } else {
            return invalid(format!(
                "--brokers: '{text}' is no URL and not 'builtin', and neither --broker {text}=URL \
                 nor --broker-cmd '{text}=COMMAND' defines it"
            ));
        });
    }
    let mut names: Vec<&String> = sides.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        // The same broker on both sides: the sides differ in something else.
        for (index, (name, broker)) in sides.iter_mut().enumerate() {
            if broker.is_none() {
                return invalid(format!("--brokers names '{name}' twice"));
            }
            *name = letter(index);
        }
    }
    Ok(sides)
}

/// Name of a side that has no other: `a`, `b`, at most `h`.
fn letter(index: usize) -> String {
    char::from(b'a' + u8::try_from(index).unwrap_or(0)).to_string()
}

/// Refuses flags for a name that is neither a side nor a target of the scenario, and flags for
/// sides of a scenario that has no broker of that kind.
fn only_known_names(
    arguments: &CompareArguments,
    sides: &[&str],
    scenario: &Scenario,
) -> Result<(), Failure> {
    let targets = scenario.targets_in_use();
    for (flag, name) in arguments.targets.names() {
        let is_side = sides.contains(&name);
        let is_target = targets.iter().any(|(known, _)| *known == name);
        if !name.is_empty() && !is_side && !is_target {
            let sides = sides.join(", ");
            let sentence = format!("{flag} {name}=...: there is no side '{name}', only {sides}");
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
    }
    let has_default = targets.iter().any(|(name, _)| *name == Scenario::DEFAULT_TARGET);
    let tells =
        !arguments.sides.is_empty() || sides.iter().any(|side| arguments.targets.tells_about(side));
    if !has_default && tells {
        let targets: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
        let sentence = format!(
            "'{}' loads several brokers ({}): a side cannot be one of them",
            scenario.name,
            targets.join(", ")
        );
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    Ok(())
}

/// The description of a side.
fn what(
    targets: &TargetArguments,
    scenario: &Scenario,
    extra: &[String],
) -> Result<SideLabel, Failure> {
    if let Some(command) = targets.command() {
        refuse_extra(extra, "a command")?;
        return Ok(SideLabel::Text(command.clone()));
    }
    let in_use = scenario.targets_in_use();
    match in_use.first().and_then(|(_, target)| target.broker.as_ref()) {
        Some(url) => {
            refuse_extra(extra, "running already")?;
            Ok(SideLabel::Text(url.to_string()))
        }
        None => Ok(SideLabel::OwnBroker { arguments: extra.join(" ") }),
    }
}

fn refuse_extra(extra: &[String], what: &str) -> Result<(), Failure> {
    match extra.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("--broker-args-a and -b apply to Tacho's own broker only; this one is {what}"),
        )),
    }
}

/// Takes a flag with its value out of `words`: the run sets it for every broker of ours, and must
/// not say it twice.
fn taken<T>(
    words: &mut Vec<String>,
    flag: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let is_it = |word: &&String| {
        word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let Some(at) = words.iter().position(|word| is_it(&word)) else { return Ok(None) };
    let value = match words.remove(at).split_once('=') {
        Some((_, value)) => value.to_owned(),
        None if at < words.len() => words.remove(at),
        None => String::new(),
    };
    let unusable = || {
        let sentence = format!("--broker-args: '{value}' is not a value of {flag}");
        Failure::new(exit::INVALID_CONFIG, sentence)
    };
    read(&value).map(Some).ok_or_else(unusable)
}

/// Splits at blanks, with '...' and "..." as one word.
fn words(text: &str) -> Result<Vec<String>, Failure> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        None => Ok(words),
        Some(quote) => {
            Err(Failure::new(exit::INVALID_CONFIG, format!("a {quote} is not closed in '{text}'")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_a_shell_does() {
        let split = |text| words(text).expect("is closed");
        assert_eq!(split("--shards 1  --config 'a b'"), ["--shards", "1", "--config", "a b"]);
        assert_eq!(split("''"), [""]);
        assert!(split("  ").is_empty());
        let mut given = split("--config x --shards=3 --quiet");
        let shards = taken(&mut given, "--shards", |text| text.parse::<u16>().ok());
        assert_eq!(shards.expect("a number"), Some(3));
        assert_eq!(given, ["--config", "x", "--quiet"]);
        let none = taken(&mut split("--shards"), "--shards", |text| text.parse::<u16>().ok());
        assert!(none.expect_err("no value").message.contains("'' is not a value of --shards"));
        assert!(words("--config 'a").expect_err("is open").message.contains("not closed"));
    }
}
