//! What a round shows.

use std::fmt;

use serde::Serialize;

use super::asked::Requests;

/// What a load showed, of a broker that had started just before.
#[derive(Debug, Serialize)]
pub(super) struct LoadSeen {
    pub(super) p99_us: f64,
    pub(super) lost: u64,
    pub(super) verdict: String,
    pub(super) turn_cpu_ms_max: f64,
    pub(super) turn_units_max: f64,
    /// Turns above 1 ms.
    pub(super) slow_turns: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct OperatedRound {
    pub(super) alone: LoadSeen,
    pub(super) asked: LoadSeen,
    pub(super) requests: Requests,
    /// The longest bare echo.
    pub(super) echo_cpu_ms_max: f64,
}

impl fmt::Display for OperatedRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, asked, requests, echo_cpu_ms_max } = self;
        write!(
            f,
            "p99 {:.0} us alone, {:.0} us with {} requests; longest turn {:.2} ms of CPU alone, \
             {:.2} ms with requests; longest bare echo {echo_cpu_ms_max:.2} ms",
            alone.p99_us,
            asked.p99_us,
            requests.count,
            alone.turn_cpu_ms_max,
            asked.turn_cpu_ms_max
        )
    }
}
