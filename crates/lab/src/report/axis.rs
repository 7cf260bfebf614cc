//! Scales: from values to positions, with ticks at round values.

use crate::format;

/// What a scale's values are, which decides how ticks are labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Plain numbers, also seconds and percent: the axis title has the unit.
    Number,
    /// Microseconds, shown in the unit that suits each tick.
    Latency,
}

/// How values map to positions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    /// Evenly, between two values.
    Linear { from: f64, to: f64, step: f64 },
    /// By logarithm, between two powers of ten.
    Log { from: f64, to: f64 },
    /// Quantiles by the logarithm of 1 / (1 - q), up to this many nines.
    Nines { nines: f64 },
}

impl Scale {
    /// From zero to a round value above `max`.
    pub(super) fn from_zero(max: f64) -> Self {
        let to = if max > 0.0 { max } else { 1.0 };
        let step = step(to);
        Self::Linear { from: 0.0, to: (to / step - 1e-9).ceil() * step, step }
    }

    /// Exactly from `from` to `to`, ticks at round values between.
    pub(super) fn exactly(from: f64, to: f64) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self::Linear { from, to, step: step(to - from) }
    }

    /// Powers of ten around `min..max`.
    pub(super) fn log(min: f64, max: f64) -> Self {
        let from = 10_f64.powf(min.max(1.0).log10().floor());
        let to = 10_f64.powf(max.max(1.0).log10().ceil());
        Self::Log { from, to: if to > from { to } else { from * 10.0 } }
    }

    /// Where `value` lies, 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { from, to, .. } => (value - from) / (to - from),
            Self::Log { from, to } => (value.max(*from) / from).log10() / (to / from).log10(),
            Self::Nines { nines } => -(1.0 - value).max(1e-12).log10() / nines,
        };
        share.clamp(0.0, 1.0)
    }

    /// The values to mark, with their labels.
    pub(super) fn ticks(&self, unit: Unit) -> Vec<(f64, String)> {
        match self {
            Self::Linear { from, to, step } => {
                let first = (from / step - 1e-9).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                let values = (first..=last).map(|index| index as f64 * step);
                values.map(|value| (value, label(value, *step, unit))).collect()
            }
            Self::Log { from, to } => {
                let decades = (to / from).log10().round() as i32;
                // Few decades have room for 2 and 5 between.
                let factors: &[f64] = if decades <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let decades = (0..=decades).map(|decade| from * 10_f64.powi(decade));
                let values = decades.flat_map(|decade| factors.iter().map(move |f| decade * f));
                let inside = values.filter(|value| *value <= to * 1.0001);
                inside.map(|value| (value, label(value, value, unit))).collect()
            }
            Self::Nines { nines } => {
                let mut ticks = vec![(0.0, "0 %".to_owned()), (0.5, "50 %".to_owned())];
                for count in 1..=(nines + 1e-9).floor() as usize {
                    let quantile = 1.0 - 10_f64.powi(-(count as i32));
                    let digits = count.saturating_sub(2);
                    ticks.push((quantile, format!("{:.digits$} %", quantile * 100.0)));
                }
                ticks
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `span` into at most six parts.
fn step(span: f64) -> f64 {
    let magnitude = 10_f64.powf((span / 6.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    steps.into_iter().find(|step| span / step <= 6.0).unwrap_or(magnitude * 10.0)
}

fn label(value: f64, step: f64, unit: Unit) -> String {
    let digits = if step < 1.0 { (-step.log10() - 1e-9).ceil() as usize } else { 0 };
    match unit {
        Unit::Latency => round_latency(value.round()),
        Unit::Number if digits > 0 => format!("{value:.digits$}"),
        Unit::Number => format::thousands(value.max(0.0).round() as u64),
    }
}

/// Ticks are round values: no decimals that say nothing.
fn round_latency(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us} µs"),
        us if us < 1e6 => format!("{} ms", us / 1e3),
        us => format!("{} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, unit: Unit) -> Vec<String> {
        scale.ticks(unit).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::from_zero(10_234.0);
        let shown = labels(&scale, Unit::Number);
        assert_eq!(shown, ["0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"]);
        assert!((scale.position(6000.0) - 0.5).abs() < 1e-9);
        assert_eq!(labels(&Scale::from_zero(0.0), Unit::Number)[..2], ["0.0", "0.2"]);
        assert_eq!(labels(&Scale::exactly(0.0, 37.4), Unit::Number), ["0", "10", "20", "30"]);
        assert_eq!(labels(&Scale::from_zero(10_000.0), Unit::Number).last().unwrap(), "10,000");
    }

    #[test]
    fn latency_ticks_carry_their_unit() {
        let shown = labels(&Scale::log(300.0, 20_000.0), Unit::Latency);
        assert_eq!(shown[..3], ["100 µs", "200 µs", "500 µs"]);
        assert_eq!(shown.last().map(String::as_str), Some("100 ms"));
        assert_eq!(labels(&Scale::log(0.0, 0.0), Unit::Latency)[0], "1 µs");
    }

    #[test]
    fn nines() {
        let scale = Scale::Nines { nines: 4.0 };
        let shown = labels(&scale, Unit::Number);
        assert_eq!(shown, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((scale.position(0.99) - 0.5).abs() < 1e-9);
        assert_eq!(scale.position(1.0), 1.0);
    }
}
