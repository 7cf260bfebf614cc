//! Chores of the Tacho repository, run as `cargo xtask <chore>`.

#[cfg(target_os = "linux")]
mod agreement;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod brokers;
mod conformance;
mod crash;
mod dist;
#[cfg(feature = "results")]
mod documents;
mod failures;
mod findings;
#[cfg(target_os = "linux")]
mod floor;
#[cfg(target_os = "linux")]
mod kept_record;
#[cfg(any(target_os = "linux", feature = "results"))]
mod markers;
#[cfg(target_os = "linux")]
mod mqtt;
#[cfg(target_os = "linux")]
mod operated;
#[cfg(target_os = "linux")]
mod own_child;
mod peers;
#[cfg(target_os = "linux")]
mod results;
mod shell;
mod sim;
#[cfg(target_os = "linux")]
mod soak;
mod test;
mod tidy;
#[cfg(target_os = "linux")]
mod trust;
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
    /// Write the documents of a record of `results`
    #[cfg(feature = "results")]
    #[command(hide = true)]
    Documents(documents::Options),
    /// Measure the echo floor: the kernel's share of the symmetric scenario
    #[cfg(target_os = "linux")]
    Floor(floor::Options),
    /// Check that the load generator agrees with an independent client
    #[cfg(target_os = "linux")]
    Agreement(agreement::Options),
    /// Measure how far the program's figures can be trusted, and write docs/trust.md's table
    #[cfg(target_os = "linux")]
    Trust(trust::Options),
    /// Simulate whole shards of the broker, seed after seed, for minutes or hours
    Sim(sim::Options),
    /// Put half of what the broker sustains on it for half an hour: everything must stay flat
    #[cfg(target_os = "linux")]
    Soak(soak::Options),
    /// Ask a broker with a million sessions everything while clients load it
    #[cfg(target_os = "linux")]
    Operated(operated::Options),
    /// Kill a broker with SIGKILL again and again, and look for what it has lost
    Crash(crash::Options),
    /// Make an archive, packages, a wheel and a container's image of the program
    Dist(dist::Options),
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
        #[cfg(feature = "results")]
        Chore::Documents(options) => documents::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Floor(options) => floor::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Agreement(options) => agreement::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Trust(options) => trust::run(&options),
        Chore::Sim(options) => sim::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Soak(options) => soak::run(&options),
        #[cfg(target_os = "linux")]
        Chore::Operated(options) => operated::run(&options),
        Chore::Crash(options) => crash::run(&options),
        Chore::Dist(options) => dist::run(&options),
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use clap::Parser as _;

    use super::{Arguments, shell};

    /// What documents tell readers to type.
    #[test]
    fn chores_in_documents_are_there_with_their_flags() {
        let root = shell::root();
        let names = shell::files(&root).expect("the working tree can be read");
        let mut count = 0;
        for name in names.iter().filter(|name| name.ends_with(".md")) {
            let text = std::fs::read_to_string(root.join(name)).expect("reads");
            for line in text.lines() {
                let Some(rest) = line.trim().strip_prefix("cargo xtask ") else { continue };
                let (command, _) = rest.split_once(" # ").unwrap_or((rest, ""));
                let mut words = vec!["xtask"];
                for (part, text) in command.split('\'').enumerate() {
                    match part % 2 {
                        0 => words.extend(text.split_whitespace()),
                        _ => words.push(text),
                    }
                }
                let parsed = Arguments::try_parse_from(&words);
                assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.err().expect("failed"));
                count += 1;
            }
        }
        assert!(count >= 15, "{count} chores in all documents");
    }
}
