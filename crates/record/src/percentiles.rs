//! Percentile files (`.hgrm`), read back.

use std::fs;
use std::path::Path;

use crate::latency::CurvePoint;

/// Points per factor of ten of 1 / (1 - q).
const STEPS_PER_DECADE: u32 = 20;
/// Samples needed beyond a percentile, as everywhere.
const SAMPLES_BEYOND: f64 = 10.0;

/// Values in microseconds with how many samples are at or below them.
pub type Cumulative = Vec<(f64, u64)>;

/// The curve of one `.hgrm` file; `None` where there is no such file.
pub fn curve_of_file(path: &Path) -> Option<Vec<CurvePoint>> {
    Some(curve_of(&read_percentiles(path)?))
}

/// Reads value and total count of each line; `None` where there is no such file.
pub fn read_percentiles(path: &Path) -> Option<Cumulative> {
    let text = fs::read_to_string(path).ok()?;
    Some(parse_percentiles(&text))
}

/// The value and total count of each line.
pub fn parse_percentiles(text: &str) -> Cumulative {
    let numbers = |line: &str| {
        let mut words = line.split_whitespace();
        let value_ms: f64 = words.next()?.parse().ok()?;
        let total: u64 = words.nth(1)?.parse().ok()?;
        Some((value_ms * 1e3, total))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(numbers).collect()
}

/// The curve, up to the last percentile that has enough samples.
pub fn curve_of(samples: &Cumulative) -> Vec<CurvePoint> {
    let total = samples.last().map_or(0, |(_, total)| *total) as f64;
    let quantiles = (0..=6 * STEPS_PER_DECADE)
        .map(|step| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(STEPS_PER_DECADE)));
    quantiles
        .take_while(|quantile| total * (1.0 - quantile) >= SAMPLES_BEYOND - 1e-6)
        .filter_map(|quantile| {
            let at = samples.partition_point(|(_, below)| (*below as f64) < quantile * total);
            let (value, _) = samples.get(at)?;
            Some(CurvePoint { quantile, value_us: value.round() as u64 })
        })
        .collect()
}
