//! Factors and lengths that are put on a scenario from outside.

use std::time::Duration;

use super::jmx_options::JmxOptions;
use super::quantity::TimeSpan;

/// The shortest phase in which anything can be measured.
pub(crate) const MEASURE_MIN: Duration = Duration::from_millis(100);

/// Changes to every scenario of a run: `--scale`, `--scale-clients`, `--hold` and others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjustment {
    /// Multiplies every publish rate.
    pub scale: f64,
    /// Multiplies the clients of every group and the number of virtual machines.
    pub scale_clients: f64,
    /// Length of the measured phase.
    pub hold: Option<TimeSpan>,
    /// Length of the warm-up.
    pub warmup: Option<TimeSpan>,
    /// Within this time all clients of a group connect.
    pub ramp_up: Option<TimeSpan>,
    /// Virtual load machines.
    pub machines: Option<u32>,
    /// How JMeter plans are understood.
    pub jmx: JmxOptions,
}

impl Default for Adjustment {
    fn default() -> Self {
        Self::NONE
    }
}

impl Adjustment {
    /// Changes nothing.
    pub const NONE: Self = Self {
        scale: 1.0,
        scale_clients: 1.0,
        hold: None,
        warmup: None,
        ramp_up: None,
        machines: None,
        jmx: JmxOptions::DEFAULT,
    };

    /// Reads a factor of the command line.
    ///
    /// # Errors
    /// A sentence, when it is not a number above 0.
    pub fn parse_factor(text: &str) -> Result<f64, String> {
        match text.trim().parse::<f64>() {
            Ok(factor) if factor.is_normal() && factor > 0.0 && factor <= 1e6 => Ok(factor),
            _ => Err(format!("'{text}' is not a factor: write a number above 0, such as 0.1")),
        }
    }

    /// Reads the length of a measured phase.
    ///
    /// # Errors
    /// A sentence, when it is not a length of time or too short to measure anything.
    pub fn parse_hold(text: &str) -> Result<TimeSpan, String> {
        match TimeSpan::parse(text)? {
            span if span.0 < MEASURE_MIN => Err(format!("'{text}' is too short, at least 100ms")),
            span => Ok(span),
        }
    }

    /// A number of clients or machines, scaled; never below 1 if it was above 0.
    pub(crate) fn count(&self, count: u64) -> u64 {
        if count == 0 || self.scale_clients == 1.0 {
            return count;
        }
        ((count as f64 * self.scale_clients).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_at_least_one() {
        let tenth = Adjustment { scale_clients: 0.1, ..Adjustment::NONE };
        assert_eq!([0, 1, 4, 14, 2000].map(|count| tenth.count(count)), [0, 1, 1, 1, 200]);
        assert_eq!(Adjustment::NONE.count(u64::MAX), u64::MAX);
    }

    #[test]
    fn factors() {
        assert_eq!(Adjustment::parse_factor("0.25"), Ok(0.25));
        for bad in ["", "0", "-1", "inf", "NaN", "much"] {
            assert!(Adjustment::parse_factor(bad).is_err(), "{bad}");
        }
    }
}
