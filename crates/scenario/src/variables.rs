//! The variables of a scenario as a form shows them: kind, unit, bounds and help, read from the
//! lines of `[vars]` with their comments.

use serde::Serialize;

use super::error::SourceText;
use super::quantity::TimeSpan;
use super::steps::unit_of;
use super::variable_words::{help_in_chinese, unit_in_chinese};

/// A variable of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioVariable {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: VariableKind,
    /// Their unit; absent without one.
    pub unit: Option<&'static str>,
    /// The same in Chinese.
    pub unit_zh: Option<&'static str>,
    /// Its value in the file, as `--var` takes it.
    pub default: String,
    /// The least value.
    pub minimum: Option<f64>,
    /// The greatest value.
    pub maximum: Option<f64>,
    /// All values, where there are a few.
    pub choices: Option<Vec<String>>,
    /// What it is for; empty where the file does not say.
    pub help: String,
    /// The same in Chinese, of the scenarios that come with the program.
    pub help_zh: Option<&'static str>,
}

/// What the values of a variable are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Any text.
    Text,
    /// One of a few values.
    Choice,
    /// A length of time, such as `30s`.
    Duration,
    /// A number of bytes.
    Size,
    /// Messages or other events per second.
    Rate,
    /// True or false.
    Boolean,
}

impl ScenarioVariable {
    /// The variables of a scenario file, in its order.
    pub fn of(source: &SourceText) -> Vec<Self> {
        variable_lines(&source.text)
            .map(|(name, value, about)| Self::new(name, value, about))
            .collect()
    }

    fn new(name: &str, value: &str, about: &str) -> Self {
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let default = quoted.unwrap_or(value).to_owned();
        let choices = choices(name, about);
        let kind = match (&choices, quoted) {
            (Some(_), _) => VariableKind::Choice,
            (None, None) => kind_of_number(name, value, about),
            (None, Some(text)) => kind_of_text(text),
        };
        let is_share = name == "share" || name.ends_with("_share");
        let least = match kind {
            VariableKind::Integer | VariableKind::Size | VariableKind::Rate => Some(0.0),
            _ => is_share.then_some(0.0),
        };
        let unit = unit(name, kind, about);
        Self {
            unit,
            unit_zh: unit.and_then(unit_in_chinese),
            minimum: at_least(about).or(least),
            maximum: is_share.then_some(1.0),
            kind,
            default,
            choices,
            name: name.to_owned(),
            help: about.to_owned(),
            help_zh: help_in_chinese(about),
        }
    }
}

/// The lines of `[vars]`: name, value and comment of each.
pub(crate) fn variable_lines(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let section = text.lines().skip_while(|line| *line != "[vars]").skip(1);
    section.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let (name, rest) = line.split_once(" = ")?;
        let rest = rest.trim();
        // A text may contain the sign of a comment.
        let end = match rest.strip_prefix('"') {
            Some(inner) => closing_quote(inner)? + 2,
            None => rest.find('#').unwrap_or(rest.len()),
        };
        let (value, comment) = rest.split_at(end);
        Some((name.trim(), value.trim(), comment.trim().trim_start_matches('#').trim()))
    })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| match c {
        '"' if !escaped => Some(at),
        c => {
            escaped = c == '\\' && !escaped;
            None
        }
    })
}

fn kind_of_number(name: &str, value: &str, about: &str) -> VariableKind {
    if matches!(value, "true" | "false") {
        return VariableKind::Boolean;
    }
    if name.ends_with("_size") || about.starts_with("bytes") {
        return VariableKind::Size;
    }
    let is_rate = name == "rate" || name.ends_with("_rate") || name == "target_throughput";
    if is_rate || about.contains("per second") {
        return VariableKind::Rate;
    }
    match value.replace('_', "").parse::<i64>() {
        // A share is written as 0 where it is none.
        Ok(_) if !name.ends_with("share") => VariableKind::Integer,
        _ => VariableKind::Number,
    }
}

fn kind_of_text(text: &str) -> VariableKind {
    let is_measured = text.starts_with(|c: char| c.is_ascii_digit());
    if is_measured && (text.ends_with("/s") || text.ends_with("/m")) {
        return VariableKind::Rate;
    }
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    match is_measured && has_unit && TimeSpan::parse(text).is_ok() {
        true => VariableKind::Duration,
        false => VariableKind::Text,
    }
}

/// The values that a comment lists behind a colon: `0, 1 or 2`.
fn choices(name: &str, about: &str) -> Option<Vec<String>> {
    let listed = about.split_once(": ").and_then(|(_, list)| {
        let list = list.split(';').next().unwrap_or(list);
        let (front, last) = list.rsplit_once(" or ")?;
        let words: Vec<String> =
            front.split(", ").chain([last]).map(|word| word.trim().to_owned()).collect();
        words.iter().all(|word| !word.is_empty() && !word.contains(' ')).then_some(words)
    });
    let known = || match name {
        "qos" => Some(["0", "1", "2"].map(str::to_owned).to_vec()),
        "version" => Some(["3.1", "3.1.1", "5"].map(str::to_owned).to_vec()),
        _ => None,
    };
    listed.or_else(known)
}

fn unit(name: &str, kind: VariableKind, about: &str) -> Option<&'static str> {
    match kind {
        VariableKind::Size => Some("bytes"),
        VariableKind::Rate if about.starts_with("logins") => Some("logins/s"),
        VariableKind::Rate if about.starts_with("requests") => Some("requests/s"),
        VariableKind::Rate if about.starts_with("connections") => Some("connections/s"),
        VariableKind::Rate => Some("msg/s"),
        VariableKind::Integer | VariableKind::Number => {
            Some(unit_of(name)).filter(|unit| !unit.is_empty())
        }
        _ => None,
    }
}

/// The number of `at least 24`.
fn at_least(about: &str) -> Option<f64> {
    let (_, rest) = about.split_once("at least ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{BUILTIN, Builtin};
    use crate::{Adjustment, Limits, Scenario};

    fn variable(scenario: &str, name: &str) -> ScenarioVariable {
        let all = ScenarioVariable::of(&Builtin::find(scenario).expect("is built in").source());
        all.into_iter().find(|known| known.name == name).expect("is a variable")
    }

    #[test]
    fn comments_tell_kinds_units_bounds_and_choices() {
        let qos = variable("symmetric", "qos");
        assert_eq!(qos.kind, VariableKind::Choice);
        assert_eq!(qos.choices.as_deref(), Some(&["0", "1", "2"].map(str::to_owned)[..]));
        let size = variable("symmetric", "payload_size");
        assert_eq!(
            (size.kind, size.unit, size.minimum),
            (VariableKind::Size, Some("bytes"), Some(24.0))
        );
        let rate = variable("symmetric", "target_throughput");
        assert_eq!((rate.kind, rate.unit), (VariableKind::Rate, Some("msg/s")));
        assert_eq!(
            (rate.default.as_str(), rate.help.as_str()),
            ("10000", "publishes per second, over all publishers")
        );
        assert_eq!(variable("symmetric", "ramp_up").kind, VariableKind::Duration);
        assert_eq!(variable("churn", "cleanly").kind, VariableKind::Boolean);
        let share = variable("login", "wrong_share");
        assert_eq!((share.kind, share.maximum), (VariableKind::Number, Some(1.0)));
        let connect = variable("connect", "connect_rate");
        assert_eq!((connect.kind, connect.unit), (VariableKind::Rate, Some("connections/s")));
        assert_eq!(variable("bridge-restart", "killed").choices.map(|all| all.len()), Some(2));
    }

    #[test]
    fn every_variable_of_every_scenario_is_found() {
        for builtin in &BUILTIN {
            let scenario = Scenario::load(builtin.name, &[], &Adjustment::NONE, Limits::NONE);
            let scenario = scenario.expect("is one");
            let mut found: Vec<String> = ScenarioVariable::of(&builtin.source())
                .into_iter()
                .map(|known| known.name)
                .collect();
            found.sort();
            let known: Vec<String> = scenario.vars.keys().cloned().collect();
            assert_eq!(found, known, "{}", builtin.name);
        }
    }

    #[test]
    fn a_text_may_contain_the_sign_of_a_comment() {
        let text = "[vars]\ntopic = \"a/#\" # what it is\nquote = \"a\\\"#b\"\n[target]\nx = 1\n";
        let lines: Vec<_> = variable_lines(text).collect();
        assert_eq!(lines, [("topic", "\"a/#\"", "what it is"), ("quote", "\"a\\\"#b\"", "")]);
    }
}
