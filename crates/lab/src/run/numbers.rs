//! Figures as the record keeps them.

use tacho_load::ThreadUsage;

/// `value` rounded to this number of decimal digits.
pub(super) fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

/// Busy time of the generator's threads in percent of a core: the sum and the largest.
pub(super) fn busy_percent(threads: &[ThreadUsage]) -> (f64, f64) {
    let busy = || threads.iter().map(|thread| thread.busy() * 100.0);
    (round(busy().sum(), 2), round(busy().fold(0.0, f64::max), 2))
}

/// What the generator's threads spun, in percent of a core.
pub(super) fn spin_percent(threads: &[ThreadUsage]) -> f64 {
    round(threads.iter().map(|thread| thread.spun() * 100.0).sum(), 2)
}
