//! Scenarios by name: built in, or files.

use std::io::ErrorKind;
use std::path::Path;

use super::adjust::Adjustment;
use super::builtin::{BUILTIN, Builtin};
use super::error::{ScenarioError, SourceText};
use super::limits::Limits;
use super::types::Scenario;

impl Scenario {
    /// The scenario called `name`: a built-in one, or the path of a file. `vars` are the values of
    /// `--var`.
    ///
    /// # Errors
    /// When there is no such scenario, or the first thing that is wrong with it. An error that is
    /// about this machine alone has a [`ScenarioError::shortage`].
    pub fn load(
        name: &str,
        vars: &[(String, String)],
        adjustment: &Adjustment,
        limits: Limits,
    ) -> Result<Self, ScenarioError> {
        Self::parse_adjusted(&SourceText::load(name)?, vars, adjustment, limits)
    }
}

impl SourceText {
    /// The text of the scenario called `name`: a built-in one, or the path of a file.
    ///
    /// # Errors
    /// When there is no such scenario, or its file cannot be read.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        if let Some(builtin) = Builtin::find(name) {
            return Ok(builtin.source());
        }
        match std::fs::read_to_string(name) {
            Ok(text) => Ok(Self::file(Path::new(name), &text)),
            Err(error) if error.kind() == ErrorKind::NotFound && !name.contains(['/', '.']) => {
                let names = BUILTIN.map(|builtin| builtin.name).join(", ");
                let help = match Builtin::closest(name) {
                    Some(word) => format!("did you mean '{word}'?"),
                    None => format!("built in: {names}"),
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
