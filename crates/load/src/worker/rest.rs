//! Rests between turns when there is a lot to do.
//!
//! A turn that serves one packet costs several system calls and often a sleep and a wake-up: at
//! tens of thousands of packets per second that takes a core whose work would take a third of it.
//! So a thread that is that busy looks at its sockets every 50 us at most. Figures of such loads
//! are late by up to that and the precision of the system's sleep. Where messages are received,
//! that would be in every latency: there a thread rests only under loads that fill its core
//! anyway. With spin timing and in closed mode, where every pause would cost throughput, it never
//! does.

use tacho_net::Next;

use super::Worker;
use crate::plan::{Pace, Plan, Timing};

/// From the beginning of one turn to that of the next.
const TURN_NS: u64 = 50_000;
/// Packets per second, in and out, from which on a thread rests: when nobody receives..
const DENSE_PUBLISHING_PER_S: u64 = 60_000;
/// .. and when somebody does (bench/runs/2026-11-21-generator: a core handled 225,000).
const DENSE_PER_S: u64 = 200_000;
/// How often that is decided.
const LOOK_NS: u64 = 10_000_000;

/// How much there is to do.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    allowed: bool,
    dense_per_s: u64,
    /// Packets since `since_ns`.
    pub(super) packets: u64,
    since_ns: u64,
    is_dense: bool,
}

impl Traffic {
    pub(super) fn new(plan: &Plan) -> Self {
        let waits =
            |pace: &Pace| matches!(pace, Pace::Closed { .. } | Pace::Jmeter { wait: true, .. });
        let paces = || plan.groups.iter().flat_map(|group| &group.publish);
        let allowed = plan.timing == Timing::Sleep && !paces().any(|block| waits(&block.pace));
        let dense_per_s = if plan.routes.is_empty() { DENSE_PUBLISHING_PER_S } else { DENSE_PER_S };
        Self { allowed, dense_per_s, ..Self::default() }
    }

    /// Decides anew, now and then.
    fn look(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        if elapsed_ns >= LOOK_NS {
            let threshold = u128::from(self.dense_per_s) * u128::from(elapsed_ns) / 1_000_000_000;
            self.is_dense = u128::from(self.packets) > threshold;
            (self.packets, self.since_ns) = (0, now_ns);
        }
    }
}

impl Worker {
    /// When the turn after this one, which began at `now_ns`, is to begin.
    pub(super) fn rest(&mut self, next: Next, now_ns: u64) -> Next {
        if !self.traffic.allowed {
            return next;
        }
        self.traffic.look(now_ns);
        let at_ns = match next {
            Next::At(at_ns) => at_ns,
            Next::Sleep => u64::MAX,
            Next::Again | Next::Rest { .. } => return next,
        };
        if self.traffic.is_dense && self.phase.is_loading(now_ns) {
            Next::Rest { until_ns: now_ns + TURN_NS, at_ns }
        } else {
            next
        }
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::tests::{plan_of, publisher, subscriber};

    #[test]
    fn only_dense_traffic_is_worth_a_rest() {
        let mut traffic = Traffic::new(&Plan::default());
        assert!(traffic.allowed);
        traffic.since_ns = 1_000;
        for (packets, dense) in [(600, false), (601, true), (100, false)] {
            traffic.packets = packets;
            traffic.look(traffic.since_ns + LOOK_NS);
            assert_eq!((traffic.is_dense, traffic.packets), (dense, 0), "{packets} in 10 ms");
        }
        traffic.packets = 9_999;
        traffic.look(traffic.since_ns + LOOK_NS - 1);
        assert_eq!((traffic.is_dense, traffic.packets), (false, 9_999));
        let plan = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
        assert_eq!(Traffic::new(&plan).dense_per_s, DENSE_PER_S);
        let spinning = Plan { timing: Timing::Spin, ..Plan::default() };
        assert!(!Traffic::new(&spinning).allowed);
    }
}
