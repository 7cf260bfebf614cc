//! Scenarios by name: built in, or files.

use std::io::ErrorKind;
use std::path::Path;

use super::adjust::Adjustment;
use super::benchmark_name::BenchmarkName;
use super::builtin::{BUILTIN, Builtin};
use super::error::{ScenarioError, SourceText};
use super::jmx_options::JmxOptions;
use super::limits::Limits;
use super::suite::Suite;
use super::types::Scenario;
use crate::jmx;

impl Scenario {
    /// The scenario called `name`: a built-in one, a name of the grammar of [`BenchmarkName`], or
    /// the path of a file, which may be a JMeter plan (`.jmx`). `vars` are the values of `--var`.
    ///
    /// # Errors
    /// When there is no such scenario, or the first thing that is wrong with it.
    pub fn load(
        name: &str,
        vars: &[(String, String)],
        adjustment: &Adjustment,
        limits: Limits,
    ) -> Result<Self, ScenarioError> {
        if jmx::is_plan(name) {
            return Self::load_plan(name, vars, adjustment, limits);
        }
        if adjustment.jmx != JmxOptions::DEFAULT {
            let error = ScenarioError::new(format!("'{name}' is not a JMeter plan (.jmx)"));
            return Err(error.help(
                "--ignore-unknown and the flags that begin with --jmx- apply to JMeter plans only",
            ));
        }
        if let Some(mut parsed) = benchmark_name(name)? {
            // The shape of such a scenario is its numbers: they are scaled first.
            let scaled = |count: u32| adjustment.count(count.into()) as u32;
            (parsed.publishers, parsed.subscribers) =
                (scaled(parsed.publishers), scaled(parsed.subscribers));
            let adjustment = Adjustment { scale_clients: 1.0, ..*adjustment };
            return Self::parse_adjusted(&parsed.source(), vars, &adjustment, limits);
        }
        Self::parse_adjusted(&SourceText::load(name)?, vars, adjustment, limits)
    }

    fn load_plan(
        name: &str,
        vars: &[(String, String)],
        adjustment: &Adjustment,
        limits: Limits,
    ) -> Result<Self, ScenarioError> {
        let translation = jmx::translate(&SourceText::load(name)?, vars, adjustment)?;
        // The text has taken the values of variables, machines and ramps.
        let adjustment = Adjustment { ramp_up: None, machines: None, ..*adjustment };
        let mut scenario = Self::parse_adjusted(&translation.source, &[], &adjustment, limits)?;
        scenario.notes = translation.notes;
        Ok(scenario)
    }
}

impl SourceText {
    /// The text of the scenario called `name`, as [`Scenario::load`] finds it.
    ///
    /// # Errors
    /// When there is no such scenario, or its file cannot be read.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        if let Some(builtin) = Builtin::find(name) {
            return Ok(builtin.source());
        }
        if let Some(parsed) = benchmark_name(name)? {
            return Ok(parsed.source());
        }
        match std::fs::read_to_string(name) {
            Ok(text) => Ok(Self::file(Path::new(name), &text)),
            Err(error) if error.kind() == ErrorKind::NotFound && !name.contains(['/', '.']) => {
                if let Some(suite) = Suite::find(name) {
                    return Err(ScenarioError::new(format!(
                        "'{name}' is a suite of {} scenarios, not one of them; 'tacho scenario \
                         show {name}' lists them",
                        suite.run_count()
                    )));
                }
                let names = BUILTIN.map(|builtin| builtin.name).join(", ");
                let help = match Builtin::closest(name).or_else(|| Suite::closest(name)) {
                    Some(word) => format!("did you mean '{word}'?"),
                    None => format!("built in: {names}; or a name such as 1k_1k_qos1_p32_10mps"),
                };
                Err(ScenarioError::new(format!(
                    "'{name}' is neither a built-in scenario nor a file; {help}"
                )))
            }
            Err(error) => {
                Err(ScenarioError::new(format!("cannot read the scenario '{name}': {error}")))
            }
        }
    }
}

fn benchmark_name(name: &str) -> Result<Option<BenchmarkName>, ScenarioError> {
    let is_file = || Path::new(name).is_file();
    BenchmarkName::parse(name).filter(|_| !is_file()).transpose().map_err(ScenarioError::new)
}
