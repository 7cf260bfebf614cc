//! The figures that a scenario is for.

use serde::{Deserialize, Serialize};

use tacho_scenario::format;

/// A figure that stands above all others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Headline {
    /// Its name for programs.
    pub name: String,
    /// Its name for readers.
    pub label: String,
    /// The figure; absent where it was never reached, or there was too little to tell.
    pub value: Option<f64>,
    /// `microseconds`, `milliseconds`, `percent`, `per_second`, `count`, `bytes_per_hour` or
    /// `microseconds_per_hour`.
    pub unit: String,
}

impl Headline {
    /// A figure; `what` is its name for programs, for readers, and its unit.
    pub fn new(what: (&str, &str, &str), value: Option<f64>) -> Self {
        let (name, label, unit) = what;
        let (name, label) = (name.to_owned(), label.to_owned());
        Self { name, label, value: value.filter(|value| value.is_finite()), unit: unit.to_owned() }
    }

    /// The figure with its unit.
    pub fn shown(&self) -> String {
        let Some(value) = self.value else { return "never, or too little to tell".to_owned() };
        let sign = if value < 0.0 { "-" } else { "+" };
        match self.unit.as_str() {
            "microseconds" => format::latency(value),
            "milliseconds" => format::latency(value * 1e3),
            "percent" => format::percent(value),
            "per_second" => format!("{}/s", format::rate(value)),
            "count" => format::thousands(value.max(0.0).round() as u64),
            "bytes_per_hour" => {
                format!("{sign}{} per hour", format::bytes(value.abs().round() as u64))
            }
            "microseconds_per_hour" => format!("{sign}{} per hour", format::latency(value.abs())),
            unit => format!("{value:.2} {unit}"),
        }
    }
}
