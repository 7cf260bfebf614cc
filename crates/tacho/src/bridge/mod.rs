//! `tacho bridge`: the state of bridges, and whether a bridge would work.

mod import;
mod status;
mod trial;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tacho_broker::{Config, RawConfig};

use crate::exit::{self, Failure};

/// Show the state of a broker's bridges, test them, or translate those of EMQX.
///
/// Bridges are set up in the broker's configuration; docs/bridging.md says how.
#[derive(Args, Debug)]
pub(crate) struct BridgeArguments {
    #[command(subcommand)]
    command: BridgeCommand,
}

#[derive(Subcommand, Debug)]
enum BridgeCommand {
    /// Ask a running broker for the state of its bridges.
    ///
    /// It must answer by HTTP: `metrics = "127.0.0.1:9883"` in its configuration, or --metrics.
    #[command(after_help = "Exit codes: 0 all connections of all bridges are up, 99 one is not, \
                            104 there is no such bridge, or the configuration cannot be used, \
                            112 the broker does not answer.")]
    Status(StatusArguments),
    /// Test the bridges of a configuration from this machine, without a broker.
    ///
    /// Finds the other broker, connects as configured (with `-test` behind the client identifier,
    /// so that a running bridge is not disturbed), prints what it grants and refuses, makes the
    /// subscriptions of the ingress rules, and sends itself a message on a topic of its own.
    #[command(after_help = "Exit codes: 0 all of it works, 99 the other broker does not allow \
                            some of it, 104 there is no such bridge, or the configuration cannot \
                            be used, 112 the other broker cannot be reached or refuses the \
                            connection.")]
    Test(TestArguments),
    /// Translate the MQTT bridges of an emqx.conf to [[bridges]] of a broker.toml.
    ///
    /// Goes through `bridges.mqtt` key by key, and says of each line what differs here, what has no
    /// counterpart, and what is malformed. Passwords are not written.
    #[command(
        after_help = "Exit codes: 0 all is translated, 99 something has no counterpart or is \
                            malformed, 104 the file cannot be read, or has no bridge that can be \
                            translated."
    )]
    Import(ImportArguments),
}

#[derive(Args, Debug)]
struct ImportArguments {
    /// The configuration of EMQX
    file: PathBuf,

    /// Write to this file, which must not be there yet
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct StatusArguments {
    /// Only this bridge
    name: Option<String>,

    /// Where the broker answers questions, such as http://127.0.0.1:9883
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    url: Option<String>,

    /// The broker's configuration, which says where it answers
    #[arg(long, short, value_name = "FILE", conflicts_with = "url")]
    config: Option<PathBuf>,

    /// Show each connection
    #[arg(long, short)]
    verbose: bool,

    /// Print the broker's answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct TestArguments {
    /// The broker's configuration
    config: PathBuf,

    /// Only this bridge
    name: Option<String>,

    /// Topic there for the message that is sent and received; tacho-bridge-test/CLIENT-ID unless
    /// given
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
}

/// Runs the command; its exit code.
pub(crate) fn bridge(arguments: &BridgeArguments) -> Result<u8, Failure> {
    match &arguments.command {
        BridgeCommand::Status(arguments) => status::status(arguments),
        BridgeCommand::Test(arguments) => trial::test(arguments),
        BridgeCommand::Import(arguments) => import::import(arguments),
    }
}

fn config(path: &Path) -> Result<Config, Failure> {
    let config = RawConfig::read(path).and_then(RawConfig::resolve);
    config.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))
}

fn no_such_bridge<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let names: Vec<&str> = names.collect();
    let known = match names.is_empty() {
        true => "there is none".to_owned(),
        false => format!("there is {}", names.join(", ")),
    };
    Failure::new(exit::INVALID_CONFIG, format!("there is no bridge '{name}': {known}"))
}
