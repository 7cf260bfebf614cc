//! Scenario files: what to run, in TOML.
//!
//! A scenario goes through four steps, each with errors that point at the line:
//!
//! 1. the TOML is parsed,
//! 2. `[vars]` and `--var` are applied: every `{{name}}` is replaced ([`VarValue`]),
//! 3. names and types are checked,
//! 4. values are judged ([`Limits`] says what the machine allows), giving a [`Scenario`].
//!
//! Strings that differ from client to client keep `{{i}}` and `{{machine}}` as a [`Template`].

mod action;
mod adjust;
mod benchmark_name;
mod broker_url;
mod builtin;
mod check;
mod data;
mod draw;
mod error;
mod headline;
mod life;
mod limits;
mod load;
mod quantity;
mod raw;
mod reference;
mod rows;
mod schema;
mod stream;
pub mod suite;
mod template;
mod types;
mod vars;

use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

pub use action::{Action, Deed, Scheduled};
pub use adjust::Adjustment;
pub use benchmark_name::{BENCHMARK_GRAMMAR, BenchmarkName};
pub use broker_url::{BrokerUrl, Scheme};
pub use builtin::{BUILTIN, Builtin};
pub use data::{DataFile, Table};
pub use error::{ScenarioError, SourceText};
pub use headline::HeadlineKind;
pub use life::{DeclaredLoss, Disconnect, Offline, Reconnect, Will};
pub use limits::{Limits, Shortage};
pub use quantity::{PerSecond, TimeSpan};
pub use reference::reference;
pub use rows::Rows;
pub use schema::{documented_keys, schema};
pub use stream::{Arrivals, Model, Payload, PhasePolicy, Publish, Rate, RateFrom, Trace};
pub use template::{ClientPlace, Template};
pub use types::{
    Bridge, Connect, Group, LoadOptions, Phases, ProtocolVersion, Scenario, Subscribe, Target,
    Timing, TlsOptions,
};
pub use vars::VarValue;

use check::Checker;
use error::closest;
use raw::RawScenario;
use vars::{Substitution, Variables};

/// Smallest payload: the measurement header.
pub const PAYLOAD_BYTES_MIN: u64 = 24;

/// Descriptors that a run needs beside one per client: files, timers, the report.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 64;

/// Largest payload: MQTT packets end at 256 MiB, topic and properties included.
pub const PAYLOAD_BYTES_MAX: u64 = 268_000_000;

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
        let error = checker.error(span, format!("there is no key '{typed}' here"));
        let error = match closest(typed, known.iter().copied()) {
            Some(word) => error.label(format!("did you mean '{word}'?")),
            None => error.label("unknown key"),
        };
        return match known.is_empty() {
            true => error,
            false => error.help(format!("known here: {}", known.join(", "))),
        };
    }
    if let (true, [missing, ..]) = (message.starts_with("missing field"), quoted.as_slice()) {
        return checker.error(span, format!("the key '{missing}' is missing here"));
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
