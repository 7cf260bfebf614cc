//! From the text of a scenario file to a checked [`Scenario`].

use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use crate::adjust::Adjustment;
use crate::check::Checker;
use crate::error::{ScenarioError, SourceText, closest};
use crate::limits::Limits;
use crate::raw::RawScenario;
use crate::types::Scenario;
use crate::vars::{Substitution, Variables};

impl Scenario {
    /// Parses and checks a scenario; `overrides` are `--var` names and values.
    ///
    /// # Errors
    /// The first thing that is wrong: syntax, unknown keys, wrong types, unknown variables, or
    /// values that make no sense or that `limits` forbid.
    pub fn parse(
        source: &SourceText,
        overrides: &[(String, String)],
        limits: Limits,
    ) -> Result<Self, ScenarioError> {
        Self::parse_adjusted(source, overrides, &Adjustment::NONE, limits)
    }

    /// Parses and checks a scenario with rates, clients and lengths adjusted.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_adjusted(
        source: &SourceText,
        overrides: &[(String, String)],
        adjustment: &Adjustment,
        limits: Limits,
    ) -> Result<Self, ScenarioError> {
        let syntax = |error: toml::de::Error| {
            ScenarioError::new(format!("this is not TOML: {}", one_line(error.message())))
                .at(source, error.span().unwrap_or(0..0))
        };
        let mut document = DeTable::parse(&source.text).map_err(syntax)?;
        let variables = Variables::take(document.get_mut(), overrides, source)?;
        // Parsed again, since replaced values borrow from the variables.
        let mut document = DeTable::parse(&source.text).map_err(syntax)?;
        document.get_mut().remove("vars");
        let mut substitution = Substitution::new(&variables);
        substitution.substitute(document.get_mut(), source)?;
        let checker = Checker { source, substitution: &substitution, adjustment, limits };
        let raw = RawScenario::deserialize(Deserializer::from(document))
            .map_err(|error| explain(&checker, &error))?;
        checker.scenario(raw, variables.values().clone())
    }
}

/// Turns a message about names and types into a sentence at its place.
fn explain(checker: &Checker<'_>, error: &toml::de::Error) -> ScenarioError {
    let message = one_line(error.message());
    let span = error.span().unwrap_or(0..0);
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, Some((typed, known))) =
        (message.starts_with("unknown field"), quoted.split_first())
    {
        let error = checker.error(span, format!("unknown key '{typed}'"));
        let error = match closest(typed, known.iter().copied()) {
            Some(word) => error.label(format!("did you mean '{word}'?")),
            None => error.label("unknown key"),
        };
        return match known.is_empty() {
            true => error,
            false => error.help(format!("known keys: {}", known.join(", "))),
        };
    }
    if let (true, [missing, ..]) = (message.starts_with("missing field"), quoted.as_slice()) {
        return checker.error(span, format!("the key '{missing}' is missing"));
    }
    if message.starts_with("invalid type") {
        return checker.error(span, "this value has the wrong type").label(message);
    }
    checker.error(span, message)
}

/// Messages of the parser may have line breaks; ours are sentences.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
