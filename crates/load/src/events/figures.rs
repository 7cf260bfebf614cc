//! Figures of attempts, groups, brokers and shared groups.

use serde::{Deserialize, Serialize};

use super::delivery::{Counters, Delivery};
use crate::histogram::{Histogram, histogram};
use crate::plan::ClientIndex;

/// Attempts of one kind, and their durations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcomes {
    /// Attempts that succeeded.
    pub ok: u64,
    /// Attempts that failed: refused, timed out, or the connection broke.
    pub failed: u64,
    /// Duration of the successful attempts, in microseconds.
    #[serde(with = "crate::histogram::form")]
    pub ok_us: Histogram,
    /// Duration of the failed attempts.
    #[serde(with = "crate::histogram::form")]
    pub failed_us: Histogram,
}

impl Default for Outcomes {
    fn default() -> Self {
        Self { ok: 0, failed: 0, ok_us: histogram(), failed_us: histogram() }
    }
}

/// One group in a measured window.
#[derive(Debug, Clone)]
pub struct GroupTotals {
    /// Name of the group.
    pub name: String,
    /// Names of the brokers of its clients.
    pub targets: Vec<String>,
    /// Its clients.
    pub clients: u64,
    /// Messages that its clients sent and received inside the window.
    pub counters: Counters,
    /// Verdict on the deliveries to its clients; `sent` counts messages published by them. A shared
    /// group counts in the group of its first member.
    pub delivery: Delivery,
    /// Intended time to receipt at its clients.
    pub e2e: Histogram,
}

/// One broker in a measured window.
#[derive(Debug, Clone)]
pub struct TargetTotals {
    /// Its name.
    pub name: String,
    /// Clients connected to it.
    pub clients: u64,
    /// `sent` counts messages published to it, `received` its deliveries.
    pub counters: Counters,
    /// Verdict on the deliveries of this broker; `sent` counts messages published to it.
    pub delivery: Delivery,
    /// Intended time to receipt from it.
    pub e2e: Histogram,
    /// Round trips of PINGREQ and PINGRESP, if the plan requests them.
    pub rtt: Histogram,
}

/// One group in an interval.
#[derive(Debug, Clone)]
pub struct GroupInterval {
    /// Clients connected at its end.
    pub connected: u64,
    /// Counts, by the time of each occurrence.
    pub counters: Counters,
    /// Intended time to receipt at its clients.
    pub e2e: Histogram,
}

impl Default for GroupInterval {
    fn default() -> Self {
        Self { connected: 0, counters: Counters::default(), e2e: histogram() }
    }
}

/// One broker in an interval.
#[derive(Debug, Clone)]
pub struct TargetInterval {
    /// Its name.
    pub name: String,
    /// Clients connected at its end.
    pub connected: u64,
    /// Counts, by the time of each occurrence.
    pub counters: Counters,
    /// Round trip of PINGREQ and PINGRESP.
    pub rtt: Histogram,
}

/// Distribution of a shared group's messages over its members in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedTotals {
    /// Group name.
    pub name: String,
    /// Filter without the prefix `$share/group/`.
    pub filter: String,
    /// Messages received by each member, in order of clients.
    pub members: Vec<(ClientIndex, u64)>,
}

impl SharedTotals {
    /// The fewest and the most messages of one member.
    pub fn min_max(&self) -> (u64, u64) {
        let counts = || self.members.iter().map(|(_, count)| *count);
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    }

    /// Gini coefficient of the members' counts: 0 when all are equal, towards 1 when one member
    /// received all messages.
    pub fn gini(&self) -> f64 {
        let mut counts: Vec<u64> = self.members.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return 0.0;
        }
        let weighted: f64 =
            (1..).zip(&counts).map(|(rank, count)| f64::from(rank) * *count as f64).sum();
        let members = counts.len() as f64;
        (2.0 * weighted / (members * total as f64) - (members + 1.0) / members).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gini_of_known_distributions() {
        let gini = |counts: &[u64]| {
            let members = ClientIndex::all().zip(counts.iter().copied()).collect();
            SharedTotals { name: "g".into(), filter: "f".into(), members }.gini()
        };
        assert_eq!(gini(&[5, 5, 5, 5]), 0.0);
        assert!((gini(&[0, 0, 0, 8]) - 0.75).abs() < 1e-12);
        assert!((gini(&[3, 1, 2]) - 2.0 / 9.0).abs() < 1e-12);
        assert_eq!((gini(&[]), gini(&[0, 0])), (0.0, 0.0));
    }
}
