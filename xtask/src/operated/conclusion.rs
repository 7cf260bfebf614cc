//! What the rounds show together.
//!
//! A turn above the bound in any round fails. Whether it is the broker's, the other rounds tell:
//! each asks everything several times, so a request that makes a turn long does so in all of them,
//! while a host that stops a processor for some milliseconds of its CPU time does so in some.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::bench::figures::median;

/// The longest turn, in CPU time, and the clients' p99 with requests against without.
const TURN_MS_MAX: f64 = 5.0;
const P99_RATIO_MAX: f64 = 1.5;

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct OperatedBounds {
    /// The clients' median p99 with requests, divided by that without.
    p99_ratio: f64,
    /// The longest turn of a round: in the best round and in the worst.
    turn_cpu_ms: [f64; 2],
    /// The longest bare echo of a round, likewise.
    echo_cpu_ms: [f64; 2],
    lost: u64,
    passed: bool,
}

impl OperatedBounds {
    pub(super) fn of(rounds: &[Value]) -> Self {
        let values = |key: &str| -> Vec<f64> {
            rounds.iter().filter_map(|round| round[key].as_f64()).collect()
        };
        let median_of = |key| median(values(key)).unwrap_or(f64::NAN);
        let p99_ratio = median_of("p99_us_asked") / median_of("p99_us_alone");
        let turn_cpu_ms = range(&values("turn_cpu_ms_max"));
        let echo_cpu_ms = range(&values("echo_cpu_ms_max"));
        let lost = rounds.iter().filter_map(|round| round["lost"].as_u64()).sum();
        let passed = p99_ratio <= P99_RATIO_MAX && turn_cpu_ms[1] <= TURN_MS_MAX && lost == 0;
        Self { p99_ratio, turn_cpu_ms, echo_cpu_ms, lost, passed }
    }

    /// # Errors
    /// Unless everything is within its bound.
    pub(super) fn result(&self) -> Result<()> {
        let is_clients = self.p99_ratio > P99_RATIO_MAX || self.lost > 0;
        match self.passed {
            true => Ok(()),
            false if !is_clients && self.turn_cpu_ms[0] <= TURN_MS_MAX => bail!(
                "undecided: a turn was above the bound in some rounds and in others none was; run \
                 it on a machine whose bare echoes are short"
            ),
            false => bail!("clients or turns feel that the broker is operated"),
        }
    }
}

fn range(values: &[f64]) -> [f64; 2] {
    let of = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    [of(f64::min), of(f64::max)]
}

impl fmt::Display for OperatedBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p99_ratio, turn_cpu_ms: turn, echo_cpu_ms: echo, lost, .. } = self;
        write!(
            f,
            "p99 of the clients with requests against without: {p99_ratio:.2} x (at most \
             {P99_RATIO_MAX} x). Longest turn of a round: {:.2} to {:.2} ms of CPU (at most \
             {TURN_MS_MAX} ms); longest bare echo: {:.2} to {:.2} ms. Lost: {lost}.",
            turn[0], turn[1], echo[0], echo[1]
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round((alone_us, asked_us): (u64, u64), turn_ms: f64) -> Value {
        json!({
            "p99_us_alone": alone_us, "p99_us_asked": asked_us, "turn_cpu_ms_max": turn_ms,
            "echo_cpu_ms_max": 6.0, "lost": 0,
        })
    }

    #[test]
    fn a_long_turn_of_some_rounds_is_no_pass_but_undecided() {
        let conclusion =
            OperatedBounds::of(&[round((1_000, 1_200), 3.0), round((900, 1_100), 8.0)]);
        let error = conclusion.result().expect_err("8 ms are above the bound").to_string();
        assert!(!conclusion.passed && error.contains("undecided"), "{error}");
        assert!(conclusion.to_string().contains("3.00 to 8.00 ms of CPU"), "{conclusion}");
        let conclusion =
            OperatedBounds::of(&[round((1_000, 1_200), 5.5), round((900, 1_100), 8.0)]);
        let error = conclusion.result().expect_err("all are above the bound").to_string();
        assert!(!error.contains("undecided"), "{error}");
    }

    #[test]
    fn a_slower_p99_a_lost_message_and_no_round_fail() {
        let fine = round((1_000, 1_200), 3.0);
        assert!(OperatedBounds::of(std::slice::from_ref(&fine)).passed);
        assert!(!OperatedBounds::of(&[round((1_000, 1_600), 3.0)]).passed);
        let mut lossy = fine;
        lossy["lost"] = json!(1);
        assert!(!OperatedBounds::of(&[lossy]).passed);
        assert!(!OperatedBounds::of(&[]).passed);
    }
}
