//! Tacho: load-tests MQTT brokers, and includes a fast one.
//!
//! Arguments in, exit code out. The library crates implement the commands.

// Before the others: its macros replace those of the standard library.
#[macro_use]
mod output;

mod acl_command;
mod agent_command;
mod agents_command;
mod allocator;
mod bench;
mod bridge;
mod broker_command;
mod broker_log;
mod bus_arguments;
mod calibrate;
mod campaign;
mod compare;
mod console_preview;
mod console_repeat;
mod console_toolbox;
mod convert;
mod ctl;
mod doctor;
mod estimates;
mod exit;
mod hidden_commands;
mod journal_command;
mod machine;
mod monitor;
mod out_arguments;
mod ownership;
mod passwd_command;
mod password_input;
mod plan_arguments;
mod profile;
mod quick;
mod report_command;
mod run;
mod run_command;
mod scenario;
mod serve_command;
mod service;
mod shell_help;
mod signals;
mod table;
mod ui_arguments;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use exit::Failure;

/// With the commit and its date, if it is a release.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("TACHO_COMMIT"));

/// Load-tests MQTT brokers, and includes a fast one.
#[derive(Parser, Debug)]
#[command(name = "tacho", version = VERSION, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Load a broker with a scenario, verify every delivery, and report.
    ///
    /// Without --broker and --broker-cmd, Tacho's own broker is started for the run, on a free port
    /// of 127.0.0.1 and, where there is more than one core, on cores of its own.
    Run(Box<run_command::RunArguments>),
    /// Run a scenario step by step over the values of a variable, and find the recommended load.
    ///
    /// Every step is a run of its own, with fresh connections and a warm-up, in steps/ of the
    /// result's directory; the broker stays up in between. Only the measured window of each step
    /// counts. The recommended workload is where mean CPU reaches 75 %, interpolated between the
    /// neighbouring steps.
    Ladder(Box<campaign::LadderArguments>),
    /// Find the highest load at which a scenario meets its objectives.
    ///
    /// Short trials bracket the limit, longer ones narrow it down, and trials of full length
    /// confirm it. The result is an interval from the highest pass to the lowest fail. A trial in
    /// which the generator was the bottleneck is no failure of the broker.
    Capacity(Box<campaign::CapacityArguments>),
    /// Compare brokers, settings or versions: one scenario on all of them in turns.
    ///
    /// Every repeat is a run of its own. Differences of the medians come with confidence intervals,
    /// and are called "better" or "worse" only when they exceed the noise. To compare recorded
    /// runs, name their directories. docs/compare.md has the details.
    Compare(Box<compare::CompareArguments>),
    /// List, show and check scenarios.
    Scenario(scenario::ScenarioArguments),
    /// Convert a JMeter plan to an equivalent scenario file.
    Convert(convert::ConvertArguments),
    Calibrate(calibrate::CalibrateArguments),
    Doctor(doctor::DoctorArguments),
    Broker(Box<broker_command::BrokerArgs>),
    Ctl(ctl::CtlArguments),
    Pub(Box<quick::PublishArguments>),
    Sub(Box<quick::SubscribeArguments>),
    Bench(bench::BenchArguments),
    /// Show the state of a broker's bridges, or test them.
    Bridge(bridge::BridgeArguments),
    Journal(journal_command::JournalArguments),
    Passwd(passwd_command::PasswdArguments),
    Acl(acl_command::AclArguments),
    Monitor(Box<monitor::MonitorArguments>),
    Agent(Box<agent_command::AgentArguments>),
    Agents(agents_command::AgentsArguments),
    Serve(serve_command::ServeArguments),
    Report(report_command::ReportArguments),
    Completions(shell_help::CompletionsArguments),
    Man(shell_help::ManArguments),
    /// Become a shell command that ends with the process that started it.
    #[command(hide = true, name = tacho_rig::attached::SUBCOMMAND)]
    Attached(hidden_commands::AttachedArguments),
    /// Run a shell command, and end all processes that it started with it.
    #[command(hide = true, name = tacho_rig::supervisor::SUBCOMMAND)]
    Supervise(hidden_commands::SuperviseArguments),
    /// Acknowledge and forward messages, and nothing else: the target of a calibration.
    #[command(hide = true, name = hidden_commands::NULL_BROKER)]
    NullBroker(hidden_commands::NullBrokerArguments),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no error.
            let _ = error.print();
            let code = if error.use_stderr() { exit::UNEXPECTED } else { exit::OK };
            return ExitCode::from(code);
        }
    };
    let result = match &cli.command {
        Command::Run(arguments) => run_command::run(arguments),
        Command::Ladder(arguments) => campaign::ladder(arguments),
        Command::Capacity(arguments) => campaign::capacity(arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Scenario(arguments) => scenario::scenario(arguments),
        Command::Pub(arguments) => quick::publish(arguments),
        Command::Sub(arguments) => quick::subscribe(arguments),
        Command::Bench(arguments) => bench::bench(arguments),
        Command::Bridge(arguments) => bridge::bridge(arguments),
        Command::Ctl(arguments) => ctl::ctl(arguments),
        Command::Journal(arguments) => journal_command::journal(arguments),
        Command::Passwd(arguments) => passwd_command::passwd(arguments),
        Command::Acl(arguments) => acl_command::acl(arguments),
        Command::Monitor(arguments) => monitor::monitor(arguments),
        Command::Agent(arguments) => agent_command::agent(arguments),
        Command::Agents(arguments) => agents_command::agents(arguments),
        Command::Serve(arguments) => serve_command::serve(arguments),
        Command::Report(arguments) => report_command::report(arguments),
        Command::Completions(arguments) => Ok(shell_help::completions(Cli::command(), arguments)),
        Command::Man(arguments) => shell_help::man(Cli::command(), arguments),
        Command::Attached(arguments) => hidden_commands::attached(arguments),
        Command::Supervise(arguments) => hidden_commands::supervise(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(arguments),
        Command::NullBroker(arguments) => hidden_commands::null_broker(arguments),
        Command::Convert(arguments) => convert::convert(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::Broker(args) => {
            return broker_command::run(args).unwrap_or_else(|error| {
                eprintln!("tacho: {error:#}");
                ExitCode::FAILURE
            });
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, message }) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help texts of a command and those below, as they are written.
    fn texts(command: &clap::Command) -> Vec<String> {
        let of_arguments = command.get_arguments().flat_map(|argument| {
            [argument.get_help(), argument.get_long_help()].into_iter().flatten()
        });
        let own = [command.get_about(), command.get_long_about(), command.get_after_help()];
        let here = own.into_iter().flatten().chain(of_arguments).map(ToString::to_string);
        here.chain(command.get_subcommands().flat_map(texts)).collect()
    }

    /// It was the placeholder of `--provision`, and its help had a line break there.
    #[test]
    fn no_help_has_the_placeholder_that_clap_takes_for_a_line_break() {
        let all = texts(&Cli::command());
        assert!(all.len() > 100);
        for text in all {
            assert!(!text.contains("{n}"), "{text}");
        }
    }
}
