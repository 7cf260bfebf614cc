//! `tacho scenario`: what there is, what it says, whether it is right.

use clap::{Args, Subcommand};
use tacho_lab::scenario::{BUILTIN, Builtin, Limits, Scenario, SourceText};

use crate::exit::{self, Failure};

#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    #[command(subcommand)]
    command: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
enum ScenarioCommand {
    /// List the built-in scenarios
    List,
    /// Print a scenario as it is written: a start for one of your own
    Show {
        /// Name of a built-in scenario, or a file
        scenario: String,
    },
    /// Check a scenario and print it resolved: variables replaced, defaults spelled out
    Check {
        /// Name of a built-in scenario, or a file
        scenario: String,
        /// Set a variable of the scenario; may be given several times
        #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
        vars: Vec<(String, String)>,
    },
}

pub(crate) fn scenario(arguments: &ScenarioArguments) -> Result<u8, Failure> {
    match &arguments.command {
        ScenarioCommand::List => {
            for builtin in BUILTIN {
                println!("{:<14} {}", builtin.name, load(builtin.name, &[])?.description);
            }
        }
        ScenarioCommand::Show { scenario } => print!("{}", source(scenario)?.text),
        ScenarioCommand::Check { scenario, vars } => print!("{}", load(scenario, vars)?.to_toml()),
    }
    Ok(exit::OK)
}

/// Splits `name=value`.
pub(crate) fn parse_var(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write name=value".to_owned()),
    }
}

/// The text of a built-in scenario or a file.
pub(crate) fn source(name: &str) -> Result<SourceText, Failure> {
    if let Some(builtin) = Builtin::find(name) {
        return Ok(builtin.source());
    }
    match std::fs::read_to_string(name) {
        Ok(text) => Ok(SourceText::new(name, &text)),
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && !name.contains(['/', '.']) =>
        {
            let names = BUILTIN.map(|builtin| builtin.name).join(", ");
            let help = match Builtin::closest(name) {
                Some(word) => format!("did you mean '{word}'?"),
                None => format!("built in: {names}"),
            };
            Err(Failure::new(
                exit::INVALID_CONFIG,
                format!("'{name}' is neither a built-in scenario nor a file; {help}"),
            ))
        }
        Err(error) => Err(Failure::new(
            exit::INVALID_CONFIG,
            format!("cannot read the scenario '{name}': {error}"),
        )),
    }
}

/// Parses and checks a scenario.
pub(crate) fn load(name: &str, vars: &[(String, String)]) -> Result<Scenario, Failure> {
    use std::io::IsTerminal as _;
    let source = source(name)?;
    Scenario::parse(&source, vars, Limits::of_this_process()).map_err(|error| Failure {
        code: exit::INVALID_CONFIG,
        message: error.render(std::io::stderr().is_terminal()),
    })
}
