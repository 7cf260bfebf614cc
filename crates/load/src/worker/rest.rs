//! Rests between turns of a thread that would otherwise fill its core.
//!
//! A turn that serves one packet costs several system calls, a timer, a sleep and a wake-up here,
//! and a wake-up of the broker: in a virtual machine each of the last three is an exit to the
//! hypervisor that can cost more than the packet. So a thread that is that busy looks at its
//! sockets every 50 us at most, and serves together what has come. Figures of such loads are late
//! by up to that, which is less than the queue that a full core puts into all of them; loads that
//! leave the core time are served as they come. What counts is how busy the core is and not how
//! many packets there are, because the same load takes four times the CPU on another machine
//! (bench/runs/2026-11-22-generator).
//!
//! Where nobody receives, only acknowledgements are late: there a thread rests from a rate on, and
//! longer if its core is full even so. With spin timing and in closed mode, where every pause would
//! cost throughput, it never rests; with batch timing always, and ten times as long.

use tacho_net::Next;

use super::{Worker, phase};
use crate::plan::{Pace, Plan, Timing};

/// From the beginning of one turn to that of the next, at first..
const TURN_NS: u64 = 50_000;
/// .. and at most, when nobody receives and the core is full although its thread rests. Where
/// somebody does, longer rests were hardly cheaper.
const TURN_NS_MAX: u64 = 200_000;
/// Such a core, and one that does not need rests that long.
const FULL_PERCENT: u64 = 90;
const EASY_PERCENT: u64 = 50;
/// Batch timing: sends are late by up to this and the precision of the system's sleep, which
/// together must stay well below the millisecond that makes a run bound by its generator.
const BATCH_NS: u64 = 500_000;
/// Packets per second, in and out, from which on a thread rests when nobody receives..
const DENSE_PUBLISHING_PER_S: u64 = 60_000;
/// .. and below which it never does when somebody does: a turn would serve less than two.
const DENSE_PER_S: u64 = 40_000;
/// Share of its core that a thread takes before it rests: at 80 % a run is bound by its generator.
const BUSY_PERCENT: u64 = 75;
/// A thread that rests is less busy, so that this does not tell when to stop: it stops when the
/// packets have fallen to this share of those with which it began.
const STAY_PERCENT: u64 = 70;
/// How often that is decided.
const LOOK_NS: u64 = 20_000_000;

/// How much there is to do.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    allowed: bool,
    only_publishes: bool,
    /// How long a turn with its rest takes.
    turn_ns: u64,
    /// Always, and nothing is decided.
    batches: bool,
    /// Packets since `since_ns`.
    pub(super) packets: u64,
    since_ns: u64,
    /// CPU time of the thread until then.
    cpu_ns: u64,
    /// While the thread rests: the packets per second below which it stops.
    rests_above_per_s: Option<u64>,
}

impl Traffic {
    pub(super) fn new(plan: &Plan) -> Self {
        let waits =
            |pace: &Pace| matches!(pace, Pace::Closed { .. } | Pace::Jmeter { wait: true, .. });
        let paces = || plan.groups.iter().flat_map(|group| &group.publish);
        let allowed = plan.timing != Timing::Spin && !paces().any(|block| waits(&block.pace));
        let batches = plan.timing == Timing::Batch;
        Self {
            allowed,
            only_publishes: plan.routes.is_empty(),
            turn_ns: if batches { BATCH_NS } else { TURN_NS },
            batches,
            ..Self::default()
        }
    }

    /// Decides anew, now and then.
    #[inline]
    fn look(&mut self, now_ns: u64, cpu_ns: impl FnOnce() -> u64) {
        if !self.batches && now_ns.saturating_sub(self.since_ns) >= LOOK_NS {
            self.decide(now_ns, cpu_ns());
        }
    }

    fn decide(&mut self, now_ns: u64, cpu_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.since_ns).max(1);
        let per_s = u128::from(self.packets) * 1_000_000_000 / u128::from(elapsed_ns);
        let per_s = u64::try_from(per_s).unwrap_or(u64::MAX);
        let busy_percent = cpu_ns.saturating_sub(self.cpu_ns).saturating_mul(100) / elapsed_ns;
        let is_busy = busy_percent >= BUSY_PERCENT;
        self.turn_ns = match self.rests() {
            true if busy_percent >= FULL_PERCENT && self.only_publishes => {
                (self.turn_ns * 2).min(TURN_NS_MAX)
            }
            true if busy_percent >= EASY_PERCENT => self.turn_ns,
            _ => TURN_NS,
        };
        (self.packets, self.since_ns, self.cpu_ns) = (0, now_ns, cpu_ns);
        self.rests_above_per_s = match self.rests_above_per_s {
            _ if self.only_publishes => {
                (per_s > DENSE_PUBLISHING_PER_S).then_some(DENSE_PUBLISHING_PER_S)
            }
            Some(floor) => (per_s >= floor).then_some(floor),
            None => (is_busy && per_s >= DENSE_PER_S).then_some(per_s * STAY_PERCENT / 100),
        };
    }

    const fn rests(&self) -> bool {
        self.batches || self.rests_above_per_s.is_some()
    }
}

impl Worker {
    /// When the turn after this one, which began at `now_ns`, is to begin.
    pub(super) fn rest(&mut self, next: Next, now_ns: u64) -> Next {
        if !self.traffic.allowed {
            return next;
        }
        self.traffic.look(now_ns, phase::thread_cpu_ns);
        let at_ns = match next {
            Next::At(at_ns) => at_ns,
            Next::Sleep => u64::MAX,
            Next::Again | Next::Rest { .. } => return next,
        };
        if self.traffic.rests() && self.phase.is_loading(now_ns) {
            Next::Rest { until_ns: now_ns + self.traffic.turn_ns, at_ns }
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

    /// Lets a thread serve so many packets in the time of one look, and take so much of its core.
    fn after(traffic: &mut Traffic, packets: u64, busy_percent: u64) -> bool {
        let (now_ns, cpu_ns) = (traffic.since_ns + LOOK_NS, traffic.cpu_ns);
        traffic.packets = packets;
        traffic.look(now_ns - 1, || panic!("looked too early"));
        assert_eq!(traffic.packets, packets);
        traffic.look(now_ns, || cpu_ns + LOOK_NS * busy_percent / 100);
        assert_eq!((traffic.packets, traffic.since_ns), (0, now_ns));
        traffic.rests()
    }

    #[test]
    fn a_thread_rests_when_its_core_fills_and_until_there_is_less_to_do() {
        let plan = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
        let mut traffic = Traffic::new(&plan);
        assert!(!after(&mut traffic, 100_000, BUSY_PERCENT - 1), "there is time left");
        let least = DENSE_PER_S * LOOK_NS / 1_000_000_000;
        assert!(!after(&mut traffic, least - 1, 100), "too few for a turn");
        assert!(after(&mut traffic, 10_000, BUSY_PERCENT));
        assert!(after(&mut traffic, 7_000, 20), "less busy because it rests");
        assert!(!after(&mut traffic, 6_999, 90), "much less to do than when it began");
        assert!(after(&mut traffic, 6_999, 90), "it begins anew from what there is now");
    }

    #[test]
    fn a_core_that_stays_full_rests_longer_unless_somebody_receives() {
        let plan = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
        let mut traffic = Traffic::new(&plan);
        for _ in 0..3 {
            assert!(after(&mut traffic, 10_000, 100));
            assert_eq!(traffic.turn_ns, TURN_NS);
        }
        let mut traffic = Traffic::new(&Plan::default());
        let mut turn_us_after = |busy_percent| {
            after(&mut traffic, 10_000, busy_percent);
            traffic.turn_ns / 1_000
        };
        assert_eq!([95, 89, 95, 90, 90].map(&mut turn_us_after), [50, 50, 100, 200, 200]);
        assert_eq!([EASY_PERCENT, EASY_PERCENT - 1].map(&mut turn_us_after), [200, 50]);
    }

    #[test]
    fn batch_timing_rests_whatever_there_is_to_do() {
        let traffic = Traffic::new(&Plan { timing: Timing::Batch, ..Plan::default() });
        assert!(traffic.allowed && traffic.rests());
        assert_eq!(traffic.turn_ns, BATCH_NS);
    }

    #[test]
    fn where_nobody_receives_the_rate_decides() {
        let mut traffic = Traffic::new(&Plan::default());
        assert!(traffic.allowed);
        let least = DENSE_PUBLISHING_PER_S * LOOK_NS / 1_000_000_000;
        for (packets, rests) in [(least, false), (least + 1, true), (least, false)] {
            assert_eq!(after(&mut traffic, packets, 1), rests, "{packets} packets");
        }
    }

    #[test]
    fn spinning_and_closed_threads_never_rest() {
        let spinning = Plan { timing: Timing::Spin, ..Plan::default() };
        assert!(!Traffic::new(&spinning).allowed);
        let mut closed = plan_of(vec![publisher("t", QoS::AtMostOnce)]);
        closed.groups[0].publish[0].pace = Pace::Closed { window: 1 };
        assert!(!Traffic::new(&closed).allowed);
    }
}
