//! `tacho scenario`: what there is, what it says, whether it is right.

use clap::{Args, Subcommand};
use tacho_lab::scenario::{Adjustment, BUILTIN, Limits, Scenario, ScenarioError, SourceText};

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
                println!(
                    "{:<14} {}",
                    builtin.name,
                    load(builtin.name, &[], &Adjustment::NONE)?.description
                );
            }
        }
        ScenarioCommand::Show { scenario } => {
            print!("{}", SourceText::load(scenario).map_err(|error| failure(&error))?.text);
        }
        ScenarioCommand::Check { scenario, vars } => {
            print!("{}", load(scenario, vars, &Adjustment::NONE)?.to_toml());
        }
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

/// Parses and checks a scenario.
pub(crate) fn load(
    name: &str,
    vars: &[(String, String)],
    adjustment: &Adjustment,
) -> Result<Scenario, Failure> {
    Scenario::load(name, vars, adjustment, Limits::of_this_process()).map_err(|e| failure(&e))
}

fn failure(error: &ScenarioError) -> Failure {
    use std::io::IsTerminal as _;
    Failure { code: exit::INVALID_CONFIG, message: error.render(std::io::stderr().is_terminal()) }
}
