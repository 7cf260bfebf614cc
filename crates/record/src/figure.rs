//! The figures of a comparison.

use serde::{Deserialize, Serialize};
use tacho_scenario::format;

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
