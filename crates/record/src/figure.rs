//! The figures of a comparison.

use serde::{Deserialize, Serialize};
use tacho_scenario::format;

use crate::named::named;

named! {
    /// A figure that comparisons have.
    pub enum FigureName {
        /// Messages in and out per second.
        Tps = "tps",
        /// Median of the end-to-end latency.
        E2eP50 = "e2e_p50",
        /// 99th percentile of the end-to-end latency.
        E2eP99 = "e2e_p99",
        /// 99.9th percentile of the end-to-end latency.
        E2eP999 = "e2e_p999",
        /// Greatest end-to-end latency.
        E2eMax = "e2e_max",
        /// 99th percentile of the time to the acknowledgement.
        AckP99 = "ack_p99",
        /// CPU of the broker per message in or out.
        BrokerCpuPerMessage = "broker_cpu_per_message",
        /// CPU of the broker's host or cores.
        Cpu = "cpu",
        /// Resident memory of the broker.
        BrokerRss = "broker_rss",
        /// Connections per second.
        ConnectRate = "connect_rate",
        /// Time until all clients are connected.
        TimeToConnected = "time_to_connected",
        /// Time until 99 % of disconnected clients are connected again.
        TimeToReconnected = "time_to_reconnected",
        /// Median of the time to CONNACK.
        ConnectP50 = "connect_p50",
        /// 99th percentile of the time to CONNACK.
        ConnectP99 = "connect_p99",
        /// Lost deliveries in percent of those due.
        Loss = "loss",
        /// Deliveries lost although their publisher had the acknowledgement.
        AcknowledgedLost = "acknowledged_lost",
    }
}

/// Which way is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    #[default]
    Lower,
}

/// The meaning of a figure's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Messages per second.
    MessagesPerS,
    /// Anything else per second.
    PerSecond,
    /// Microseconds of time that passes.
    Microseconds,
    /// Microseconds of CPU.
    CpuMicroseconds,
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
    /// A number of something.
    #[default]
    Count,
}

/// How two figures are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// In percent of the first.
    #[default]
    Percent,
    /// In the figure's own unit, where zero is a usual value.
    Absolute,
}

impl Scale {
    /// A difference with its sign, in percent or in `unit`.
    pub fn signed(self, unit: FigureUnit, value: f64) -> String {
        match self {
            Self::Percent => format!("{value:+.1} %"),
            Self::Absolute if value < 0.0 => format!("-{}", unit.show(-value)),
            Self::Absolute => format!("+{}", unit.show(value)),
        }
    }
}

impl FigureUnit {
    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::MessagesPerS | Self::PerSecond => format!("{}/s", format::rate(value)),
            Self::Microseconds => format::latency(value),
            Self::CpuMicroseconds => format!("{value:.2} µs"),
            Self::Percent => match value != 0.0 && value.abs() < 1.0 {
                true => format!("{value:.3} %"),
                false => format::percent(value),
            },
            Self::Bytes => format::bytes(value.max(0.0) as u64),
            Self::Count => format::thousands(value.max(0.0).round() as u64),
        }
    }
}
