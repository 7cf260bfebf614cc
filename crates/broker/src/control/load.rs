//! Moving averages of rates per minute.

use std::time::Duration;

/// Time constants in seconds, with their names in topics.
pub(super) const SPANS: [(&str, f64); 3] = [("1min", 60.0), ("5min", 300.0), ("15min", 900.0)];

/// Exponentially weighted moving averages of the increments of a counter per minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Averages {
    last: u64,
    per_minute: [f64; SPANS.len()],
}

impl Averages {
    /// Adds a value of the counter, `elapsed` after the previous one or, for the first, after the
    /// start.
    pub(super) fn take(&mut self, value: u64, elapsed: Duration) {
        let elapsed_s = elapsed.as_secs_f64();
        if elapsed_s <= 0.0 {
            return;
        }
        let now_per_minute = value.wrapping_sub(self.last) as f64 * 60.0 / elapsed_s;
        self.last = value;
        for (average, (_, span_s)) in self.per_minute.iter_mut().zip(SPANS) {
            let kept = (-elapsed_s / span_s).exp();
            *average = now_per_minute + kept * (*average - now_per_minute);
        }
    }

    /// For one, five and fifteen minutes.
    pub(super) fn per_minute(&self) -> [f64; SPANS.len()] {
        self.per_minute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_approach_a_steady_rate_faster_over_shorter_spans() {
        let mut averages = Averages::default();
        let step = Duration::from_secs(10);
        for count in 1..=6 {
            averages.take(count * 100, step);
        }
        // 600 per minute for one minute.
        let [one, five, fifteen] = averages.per_minute();
        assert!((one - 600.0 * (1.0 - (-1.0_f64).exp())).abs() < 0.01, "{one}");
        assert!((five - 600.0 * (1.0 - (-0.2_f64).exp())).abs() < 0.01, "{five}");
        assert!((fifteen - 600.0 * (1.0 - (-1.0_f64 / 15.0).exp())).abs() < 0.01, "{fifteen}");
        for count in 7..=600 {
            averages.take(count * 100, step);
        }
        assert!(averages.per_minute().iter().all(|rate| (rate - 600.0).abs() < 1.5));
        for _ in 0..60 {
            averages.take(60_000, step);
        }
        assert!(averages.per_minute()[0] < 0.1, "it falls when nothing happens");
    }
}
