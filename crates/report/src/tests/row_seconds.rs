//! The measured seconds of a row of a suite.

use super::samples::Noise;
use tacho_record::StepSecond;

/// The seconds of a row of `rate` messages out.
pub(super) fn seconds_of_row(rate: f64, noise: &mut Noise) -> Vec<StepSecond> {
    let second = |index: u32| StepSecond {
        start_s: f64::from(index),
        length_s: 1.0,
        received_per_s: rate * (0.98 + 0.04 * noise.next()),
        mean_us: Some(170.0 * (0.9 + 0.2 * noise.next())),
        p99_us: Some((900.0 * (0.8 + 0.4 * noise.next())) as u64),
        // A second without deliveries.
        max_us: (index != 11).then(|| (4000.0 * (0.5 + noise.next())) as u64),
    };
    (0..30).map(second).collect()
}
