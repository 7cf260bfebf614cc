//! Scales: from values to positions, with ticks at round values.

use serde::Serialize;

use tacho_scenario::format;

/// The quantity of an axis, which determines the format of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Plain numbers: the axis title says of what.
    Number,
    /// Seconds since the start of the run.
    Seconds,
    /// Messages (or other events) per second.
    Rate,
    /// Microseconds, shown in the unit that suits each tick.
    Latency,
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// A quantile as -log10(1 - q): the number of nines.
    Nines,
}

/// How values map to positions.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, between two values.
    Linear {
        /// The least value.
        from: f64,
        /// The greatest value.
        to: f64,
        /// Distance of ticks.
        step: f64,
    },
    /// By logarithm, between two powers of ten.
    Log {
        /// The least value.
        from: f64,
        /// The greatest value.
        to: f64,
    },
    /// Quantiles by their nines, up to this number.
    Nines {
        /// The greatest number of nines.
        nines: f64,
    },
}

impl Unit {
    /// A value as a person reads it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Number if value.fract().abs() < 1e-9 => signed_thousands(value),
            Self::Number => format!("{value:.2}"),
            Self::Seconds => format!("{value:.1} s"),
            Self::Rate => format!("{}/s", format::rate(value)),
            Self::Latency => format::latency(value),
            Self::Percent => format::percent(value),
            Self::Bytes => format::bytes(value.max(0.0) as u64),
            Self::BytesPerS => format!("{}/s", format::bytes(value.max(0.0) as u64)),
            Self::Nines => quantile_label(value),
        }
    }

    /// True where ticks should be round in powers of two.
    const fn is_binary(self) -> bool {
        matches!(self, Self::Bytes | Self::BytesPerS)
    }
}

impl Scale {
    /// From zero to a round value above `max`.
    pub fn from_zero(max: f64, unit: Unit) -> Self {
        let to = if max > 0.0 { max } else { 1.0 };
        let step = step(to, unit);
        Self::Linear { from: 0.0, to: (to / step - 1e-9).ceil() * step, step }
    }

    /// Exactly from `from` to `to`, ticks at round values between.
    pub fn exactly(from: f64, to: f64, unit: Unit) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self::Linear { from, to, step: step(to - from, unit) }
    }

    /// Powers of ten around `min..max`.
    pub fn log(min: f64, max: f64) -> Self {
        let min = if min.is_finite() { min } else { 1.0 };
        let from = 10_f64.powf(min.max(1.0).log10().floor());
        let to = 10_f64.powf(max.max(1.0).log10().ceil());
        Self::Log { from, to: if to > from { to } else { from * 10.0 } }
    }

    /// Its ends.
    pub fn ends(&self) -> (f64, f64) {
        match self {
            Self::Linear { from, to, .. } | Self::Log { from, to } => (*from, *to),
            Self::Nines { nines } => (0.0, *nines),
        }
    }

    /// Where `value` lies, 0 to 1.
    pub fn position(&self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { from, to, .. } => (value - from) / (to - from),
            Self::Log { from, to } => (value.max(*from) / from).log10() / (to / from).log10(),
            Self::Nines { nines } => value / nines,
        };
        share.clamp(0.0, 1.0)
    }

    /// The values to mark, with their labels.
    pub fn ticks(&self, unit: Unit) -> Vec<(f64, String)> {
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
                let mut marks = vec![0.0, -(0.5_f64.log10())];
                marks.extend((1..=(nines + 1e-9).floor() as usize).map(|count| count as f64));
                marks.into_iter().map(|mark| (mark, quantile_label(mark))).collect()
            }
        }
    }
}

/// Position of a quantile on a scale of nines.
pub fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-12).log10()
}

/// A quantile, given as its nines, in percent with as many digits as tell it from its neighbours.
fn quantile_label(nines: f64) -> String {
    let digits = (nines - 1e-9).floor().max(0.0) as usize;
    let digits = if (nines - nines.round()).abs() < 1e-9 {
        (nines.round() as usize).saturating_sub(2)
    } else if nines < 0.5 {
        0
    } else {
        digits + 1
    };
    format!("{:.digits$} %", (1.0 - 10_f64.powf(-nines)) * 100.0)
}

/// A round step that divides `span` into at most six parts: 1, 2 or 5 times a power of ten, or a
/// power of two for bytes.
fn step(span: f64, unit: Unit) -> f64 {
    if unit.is_binary() && span > 6.0 {
        return 2_f64.powf((span / 6.0).log2().ceil());
    }
    let magnitude = 10_f64.powf((span / 6.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    steps.into_iter().find(|step| span / step <= 6.0 + 1e-9).unwrap_or(magnitude * 10.0)
}

/// A tick, with as many decimals as tell it from one that is `step` away.
pub fn label(value: f64, step: f64, unit: Unit) -> String {
    let digits = if step < 1.0 { (-step.log10() - 1e-9).ceil() as usize } else { 0 };
    match unit {
        Unit::Latency => round_latency(value),
        Unit::Bytes | Unit::BytesPerS => round_bytes(value),
        Unit::Nines => quantile_label(value),
        Unit::Rate if value >= 10_000.0 => format!("{}K", trimmed(value / 1e3)),
        _ if digits > 0 => format!("{value:.digits$}"),
        _ => format::thousands(value.max(0.0).round() as u64),
    }
}

/// Ticks are round values: no decimals that say nothing.
fn round_latency(us: f64) -> String {
    match us {
        // A unit would be another one than that of the other ticks.
        0.0 => "0".to_owned(),
        us if us < 1e3 => format!("{} µs", trimmed(us)),
        us if us < 1e6 => format!("{} ms", trimmed(us / 1e3)),
        us => format!("{} s", trimmed(us / 1e6)),
    }
}

fn round_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if bytes == 0.0 {
        return "0".to_owned();
    }
    let (mut scaled, mut unit) = (bytes, 0);
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(scaled), UNITS[unit])
}

/// Up to three decimals, without zeros at the end.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn signed_thousands(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", format::thousands(value.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, unit: Unit) -> Vec<String> {
        scale.ticks(unit).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::from_zero(10_234.0, Unit::Number);
        let shown = labels(&scale, Unit::Number);
        assert_eq!(shown, ["0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"]);
        assert!((scale.position(6000.0) - 0.5).abs() < 1e-9);
        let number = Unit::Number;
        assert_eq!(labels(&Scale::from_zero(0.0, number), number)[..2], ["0.0", "0.2"]);
        assert_eq!(labels(&Scale::exactly(0.0, 37.4, number), number), ["0", "10", "20", "30"]);
        let ticks = labels(&Scale::from_zero(60_000.0, Unit::Rate), Unit::Rate);
        assert_eq!(ticks.last().map(String::as_str), Some("60K"));
    }

    #[test]
    fn latency_ticks_carry_their_unit() {
        let shown = labels(&Scale::log(300.0, 20_000.0), Unit::Latency);
        assert_eq!(shown[..3], ["100 µs", "200 µs", "500 µs"]);
        assert_eq!(shown.last().map(String::as_str), Some("100 ms"));
        assert_eq!(labels(&Scale::log(0.0, 0.0), Unit::Latency)[0], "1 µs");
        assert_eq!(labels(&Scale::log(f64::INFINITY, 0.0), Unit::Latency)[0], "1 µs");
        let linear = labels(&Scale::from_zero(1500.0, Unit::Latency), Unit::Latency);
        assert_eq!(linear[..3], ["0", "500 µs", "1 ms"]);
    }

    #[test]
    fn byte_ticks_are_powers_of_two() {
        let shown = labels(&Scale::from_zero(5e9, Unit::Bytes), Unit::Bytes);
        assert_eq!(shown[..3], ["0", "1 GiB", "2 GiB"]);
        let shown = labels(&Scale::from_zero(1000.0, Unit::BytesPerS), Unit::BytesPerS);
        assert_eq!(shown[1], "256 B");
    }

    #[test]
    fn quantiles_by_nines() {
        let scale = Scale::Nines { nines: 4.0 };
        let shown = labels(&scale, Unit::Nines);
        assert_eq!(shown, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((scale.position(nines(0.99)) - 0.5).abs() < 1e-9);
        assert_eq!(scale.position(nines(1.0)), 1.0);
        assert_eq!(Unit::Nines.show(nines(0.995)), "99.500 %");
    }
}
