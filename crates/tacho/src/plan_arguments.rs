//! Arguments for JMeter plans, which leave these settings to the platform.

use clap::{Args, ValueEnum};
use tacho_scenario::{Adjustment, TimeSpan};
use tacho_scenario::{JmxOptions, Pacing, PayloadStyle, PlanLoops, RowDivision};

/// Division and start of clients, and the interpretation of JMeter plans.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PlanArguments {
    /// Virtual load machines to divide every group over, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    machines: Option<u32>,

    /// Time within which the clients of every group connect, instead of the scenario's
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse)]
    ramp_up: Option<TimeSpan>,

    /// Pacing of constant throughput timers
    #[arg(long, help_heading = "JMeter plans", value_name = "HOW", default_value = "exact")]
    jmx_pacing: PacingArgument,

    /// Form of random messages
    #[arg(long, help_heading = "JMeter plans", value_name = "HOW", default_value = "exact-size")]
    jmx_payload: PayloadArgument,

    /// Unacknowledged messages of each publisher, instead of what mqtt.pub_inflight says
    ///
    /// 1 waits for each acknowledgement, as the public plugin does.
    #[arg(long, help_heading = "JMeter plans", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    jmx_inflight: Option<u16>,

    /// Rows of the plan's data files: split over all load machines, or a copy of all of them for
    /// each, instead of what the plan says
    #[arg(long, help_heading = "JMeter plans", value_name = "HOW")]
    jmx_rows: Option<RowsArgument>,

    /// Times that each thread runs through its group, or 'forever', instead of the plan's
    ///
    /// Loops inside a group keep their own counts.
    #[arg(long, help_heading = "JMeter plans", value_name = "N|forever",
          value_parser = PlanLoops::parse)]
    jmx_loops: Option<PlanLoops>,

    /// Skip unsupported elements instead of refusing the plan
    #[arg(long, help_heading = "JMeter plans")]
    ignore_unknown: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PacingArgument {
    /// Exact throughput on an absolute schedule
    Exact,
    /// As JMeter: steps of whole milliseconds, without catching up
    Jmeter,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PayloadArgument {
    /// The size that the plan gives
    ExactSize,
    /// As JMeter's MQTT samplers: prefixed with time stamp and 'ts_sep_flag', 24 bytes more
    #[value(alias = "compat")]
    Jmeter,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RowsArgument {
    /// No two clients have the same row while there are enough, whatever machine they are on
    Split,
    /// Each machine has all rows, and begins with the first
    Copy,
}

impl PlanArguments {
    /// The same with another time within which clients connect.
    pub(crate) fn ramped_up(self, ramp_up: TimeSpan) -> Self {
        Self { ramp_up: Some(ramp_up), ..self }
    }

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
                inflight: self.jmx_inflight,
                rows: self.jmx_rows.map(|rows| match rows {
                    RowsArgument::Split => RowDivision::Split,
                    RowsArgument::Copy => RowDivision::Copy,
                }),
                loops: self.jmx_loops,
                ignore_unknown: self.ignore_unknown,
            },
            ..Adjustment::NONE
        }
    }
}
