//! When to try again.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause of our own.
const LONGEST: Duration = Duration::from_secs(15);
/// The longest pause that a service may ask for.
const ASKED_MAX: Duration = Duration::from_secs(60);

/// Growing pauses between attempts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure; `asked` is what the service asks for. `chance` from 0 to 1
    /// spreads the attempts of many senders over a quarter of the pause.
    pub(super) fn failed(&mut self, asked: Option<Duration>, chance: f64) -> Duration {
        let own = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        match asked {
            Some(asked) => asked.min(ASKED_MAX),
            None => own.mul_f64(1.0 - 0.25 * chance),
        }
    }

    /// An attempt succeeded.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u128> = (0..7).map(|_| backoff.failed(None, 0.0).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
        backoff.succeeded();
        assert_eq!(backoff.failed(None, 1.0), Duration::from_millis(375));
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(backoff.failed(asked(3), 0.5), Duration::from_secs(3));
        assert_eq!(backoff.failed(asked(86_400), 0.5), ASKED_MAX);
        (0..100).for_each(|_| _ = backoff.failed(None, 0.5));
        assert!(backoff.failed(None, 0.0) <= LONGEST);
    }
}
