//! The arguments of `tacho compare`.

use clap::{Args, Parser};
use tacho_lab::compare::{FailIf, Regression};

use crate::run::{LoadArguments, OutputArguments, TargetArguments};

const HELP: &str = "\
Exit codes, see docs/exit-codes.md:
    0  the comparison was made, and all conditions hold
    1  wrong usage, or a command before a repeat failed
   99  a condition does not hold: --fail-if, --max-regression
  104  the scenario, a setting or the runs cannot be compared
  105  stopped by a signal
  110  a repeat broke the QoS contract
  111  a condition cannot be distinguished from noise, or too few repeats count
  112  a broker could not be reached, or went away
  113  another run has this machine, and --no-wait was given";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompareArguments {
    /// Name of a scenario, a scenario file or a JMeter plan; or two or more recorded runs
    ///
    /// A run is a run directory, several of them separated by commas as repeats of one side
    /// (runs/1,runs/2), or DIR@SIDE of a comparison. Ladders are compared step by step. The others
    /// are compared with the first.
    #[arg(required = true, value_name = "SCENARIO | RUN RUN...")]
    pub(super) what: Vec<String>,

    /// The brokers: URLs, 'builtin', or names that --broker NAME=URL or --broker-cmd NAME=COMMAND
    /// define. By default the sides are 'a' and 'b', and a side that nothing defines is Tacho's own
    /// broker
    #[arg(long = "brokers", value_name = "A,B", value_delimiter = ',')]
    pub(super) sides: Vec<String>,

    /// Repeats of each side, made in turns (a b b a ...) with a fresh broker each; from 5 on there
    /// are confidence intervals
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(super) repeats: u16,

    /// Further repeats of the first side, made in turns with the others (A/A), which measure the
    /// noise floor: 0, or 5 and more
    ///
    /// They have a column of their own and are not part of the first side's median. Without them
    /// the noise floor comes from the first side's own repeats.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = further)]
    pub(super) aa: u16,

    /// Replace at most N repeats that do not count because the generator or the network was the
    /// bottleneck; each of them at most twice
    #[arg(long = "make-up", value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u16).range(0..=100))]
    pub(super) make_up: u16,

    /// Run this command before each repeat of the first side, such as 'sysctl -w NAME=VALUE'
    ///
    /// It is run by sh, before the broker is started, with TACHO_SIDE and TACHO_REPEAT in its
    /// environment. Its output and exit code are recorded; the comparison ends when it fails or
    /// takes more than a minute. Nothing reverts its changes.
    #[arg(long, value_name = "COMMAND")]
    pub(super) before_a: Option<String>,

    /// The same before each repeat of the second side
    #[arg(long, value_name = "COMMAND")]
    pub(super) before_b: Option<String>,

    /// Further arguments of Tacho's own broker on the first side, such as '--shards 1' or
    /// '--config FILE'
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    pub(super) broker_args_a: Option<String>,

    /// The same on the second side
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    pub(super) broker_args_b: Option<String>,

    /// Fail when a figure is worse ('worse'), or also when none is better ('not-better'); may be
    /// given several times
    #[arg(long = "fail-if", value_name = "WHEN", value_parser = FailIf::parse)]
    pub(super) fail_if: Vec<FailIf>,

    /// Fail when a figure is worse, told from noise, by more than this: '5%', or of one figure
    /// 'e2e_p99=10%'; may be given several times
    ///
    /// Figures: tps, e2e_p50, e2e_p99, e2e_p999, e2e_max, ack_p99, broker_cpu_per_message, cpu,
    /// broker_rss, connect_rate, time_to_connected, time_to_reconnected, connect_p50, connect_p99,
    /// loss (in percent of the messages), acknowledged_lost (a number).
    #[arg(long = "max-regression", value_name = "[FIGURE=]LIMIT",
          value_parser = Regression::parse)]
    pub(super) regressions: Vec<Regression>,

    #[command(flatten)]
    pub(super) targets: TargetArguments,

    #[command(flatten)]
    pub(super) load: LoadArguments,

    #[command(flatten)]
    pub(super) output: OutputArguments,
}

/// Reads how many further repeats there are.
fn further(text: &str) -> Result<u16, String> {
    let least = tacho_lab::compare::REPEATS_MIN;
    match text.parse::<u16>() {
        Ok(count) if count == 0 || (least..=100).contains(&usize::from(count)) => Ok(count),
        _ => Err(format!("write 0, or {least} to 100: fewer say nothing about noise")),
    }
}

/// What says something about runs that are to be made, with nothing said.
#[derive(Debug, Parser)]
struct Silent {
    #[command(flatten)]
    targets: TargetArguments,
    #[command(flatten)]
    load: LoadArguments,
}

impl CompareArguments {
    /// Whether something is said about runs that are to be made.
    pub(super) fn is_about_new_runs(&self) -> bool {
        let given = !self.sides.is_empty()
            || [&self.before_a, &self.before_b, &self.broker_args_a, &self.broker_args_b]
                .iter()
                .any(|argument| argument.is_some());
        // A flag given with its default value counts as absent.
        let silent = Silent::try_parse_from(["tacho"]).ok();
        given
            || (self.repeats, self.aa, self.make_up) != (5, 0, 5)
            || !self.output.out.is_empty()
            || silent.is_some_and(|silent| {
                format!("{:?}", silent.targets) != format!("{:?}", self.targets)
                    || format!("{:?}", silent.load) != format!("{:?}", self.load)
            })
    }
}
