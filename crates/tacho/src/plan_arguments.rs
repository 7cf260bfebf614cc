//! Arguments that a JMeter plan leaves to the platform that runs it.

use clap::{Args, ValueEnum};
use tacho_scenario::{Adjustment, TimeSpan};
use tacho_scenario::{JmxOptions, Pacing, PayloadStyle};

/// How clients are divided and started, and how a JMeter plan is understood.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PlanArguments {
    /// Virtual load machines that every group is divided over, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    machines: Option<u32>,

    /// Time within which the clients of every group connect, instead of the scenario's
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse)]
    ramp_up: Option<TimeSpan>,

    /// How the constant throughput timers of a JMeter plan pace
    #[arg(long, value_name = "HOW", default_value = "exact")]
    jmx_pacing: PacingArgument,

    /// What the random messages of a JMeter plan look like
    #[arg(long, value_name = "HOW", default_value = "exact-size")]
    jmx_payload: PayloadArgument,

    /// Leave out the elements of a JMeter plan that are not understood
    #[arg(long)]
    ignore_unknown: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PacingArgument {
    /// The throughput exactly, on an absolute schedule
    Exact,
    /// As JMeter: steps of whole milliseconds, without catching up
    Jmeter,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PayloadArgument {
    /// As many bytes as the plan says
    ExactSize,
    /// As JMeter's MQTT samplers: a time stamp and 'ts_sep_flag' in front, 24 bytes more
    #[value(alias = "compat")]
    Jmeter,
}

impl PlanArguments {
    /// The adjustment that these flags make to every scenario.
    pub(crate) fn adjustment(self) -> Adjustment {
        Adjustment {
            machines: self.machines,
            ramp_up: self.ramp_up,
            jmx: JmxOptions {
                pacing: match self.jmx_pacing {
                    PacingArgument::Exact => Pacing::Exact,
                    PacingArgument::Jmeter => Pacing::Jmeter,
                },
                payload: match self.jmx_payload {
                    PayloadArgument::ExactSize => PayloadStyle::ExactSize,
                    PayloadArgument::Jmeter => PayloadStyle::Jmeter,
                },
                ignore_unknown: self.ignore_unknown,
            },
            ..Adjustment::NONE
        }
    }
}
