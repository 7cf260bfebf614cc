//! Chores of the Tacho repository, run as `cargo xtask <chore>`.

#[cfg(target_os = "linux")]
mod bench;
mod conformance;
mod crash;
mod failures;
#[cfg(target_os = "linux")]
mod floor;
#[cfg(target_os = "linux")]
mod mqtt;
mod peers;
#[cfg(target_os = "linux")]
mod results;
mod shell;
mod sim;
mod test;
mod tidy;
mod web;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Tacho repository", version)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run everything that must pass before a change lands
    Test(test::Options),
    /// Check the repository's style rules alone
    Tidy,
    /// Write docs/conformance.md: which test covers which rule of MQTT
    Conformance,
    /// Measure the speed that the project promises, against its peers
    #[cfg(target_os = "linux")]
    Bench(bench::Options),
    /// Measure a published report again, with several brokers, and write docs/results
    #[cfg(target_os = "linux")]
    Results(Box<results::Options>),
    /// Measure the echo floor: the kernel's share of the symmetric scenario
    #[cfg(target_os = "linux")]
    Floor(floor::Options),
    /// Simulate whole shards of the broker, seed after seed, for minutes or hours
    Sim(sim::Options),
    /// Kill a broker with SIGKILL again and again, and look for what it has lost
    Crash(crash::Options),
    /// Install the independent programs that the tests talk to
    Peers,
    /// Make web/dist again from web/src (needs node)
    Web,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.chore {
        Chore::Test(options) => test::run(&options),
        Chore::Tidy => tidy::run(),
        Chore::Conformance => conformance::run(),
        #[cfg(target_os = "linux")]
        Chore::Bench(options) => bench::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Results(options) => results::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Floor(options) => floor::run(&options),
        Chore::Sim(options) => sim::run(&options),
        Chore::Crash(options) => crash::run(&options),
        Chore::Peers => peers::install(),
        Chore::Web => web::build(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
