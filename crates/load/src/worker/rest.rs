//! Rests between the turns of a thread that would otherwise saturate its core.
//!
//! A turn that serves one packet costs several system calls, a timer, a sleep and a wake-up here,
//! and a wake-up of the broker: in a virtual machine each of the last three is an exit to the
//! hypervisor that can cost more than the packet. So a busy thread serves its sockets at most every
//! 50 us, in batches. Latencies of such loads increase by up to that, which is less than the
//! queueing delay of a saturated core; on a core with idle time every packet is served immediately.
//! The criterion is the CPU usage and not the packet rate, because the same load takes four times
//! the CPU on another machine (bench/runs/2026-11-22-generator).
//!
//! Without receivers, only acknowledgements are delayed: then a thread rests above a given rate,
//! and longer if its core stays saturated. With spin timing and in closed mode, where every pause
//! would cost throughput, it never rests; with batch timing it always does, ten times as long. A
//! thread that spins within a budget has nothing to save before its work fills its core: then it
//! rests with and without receivers. It polls the clock meanwhile, since a sleep of 50 us ends
//! tens of microseconds late (bench/runs/2026-11-23-timing) and its core is its own. Spinning is
//! no work.

use tacho_net::{Next, clock};

use super::Worker;
use crate::plan::{Pace, Plan, Timing};

/// Time from the start of one turn to the next, at first..
const TURN_NS: u64 = 50_000;
/// .. and at most, without receivers and with a core that stays saturated. With receivers, longer
/// rests were hardly cheaper.
const TURN_NS_MAX: u64 = 200_000;
/// CPU usage above which rests become longer, and below which they become short again.
const FULL_PERCENT: u64 = 90;
const EASY_PERCENT: u64 = 50;
/// Batch timing: sends are late by up to this plus the precision of the system's sleep; the sum
/// must stay well below the millisecond at which a run counts as bound by its generator.
const BATCH_NS: u64 = 500_000;
/// Packets per second, in and out, above which a thread rests without receivers..
const DENSE_PUBLISHING_PER_S: u64 = 60_000;
/// .. and below which it never rests with receivers: a turn would serve fewer than two.
const DENSE_PER_S: u64 = 40_000;
/// CPU usage from which a thread rests: at 80 % a run counts as bound by its generator.
const BUSY_PERCENT: u64 = 75;
/// Rests reduce the CPU usage, which therefore cannot tell when to stop: a thread stops resting
/// when the packet rate falls to this share of the rate at which it began.
const STAY_PERCENT: u64 = 70;
/// How often the decision is made.
const LOOK_NS: u64 = 20_000_000;
/// The same of a thread that spins within a budget: a rest distorts what it sends on time
/// otherwise, so a short disturbance must not begin one.
const LOOK_SPINNING_NS: u64 = 500_000_000;

/// The packet rate and CPU usage of a thread, and whether it rests.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    allowed: bool,
    look_ns: u64,
    /// Turns that ended with a rest.
    rests_taken: u64,
    /// The packet rate decides.
    by_rate: bool,
    only_publishes: bool,
    /// Length of a turn with its rest.
    turn_ns: u64,
    /// Batch timing: always rests.
    batches: bool,
    /// Packets since `since_ns`.
    pub(super) packets: u64,
    since_ns: u64,
    /// CPU time that the thread worked until then.
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
            look_ns: match plan.timing {
                Timing::SleepAndSpin => LOOK_SPINNING_NS,
                _ => LOOK_NS,
            },
            by_rate: plan.routes.is_empty() && plan.timing == Timing::Sleep,
            only_publishes: plan.routes.is_empty(),
            turn_ns: if batches { BATCH_NS } else { TURN_NS },
            batches,
            ..Self::default()
        }
    }

    /// Decides again once `look_ns` have passed.
    #[inline]
    fn look(&mut self, now_ns: u64, cpu_ns: impl FnOnce() -> u64) {
        if !self.batches && now_ns.saturating_sub(self.since_ns) >= self.look_ns {
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
            _ if self.by_rate => (per_s > DENSE_PUBLISHING_PER_S).then_some(DENSE_PUBLISHING_PER_S),
            Some(floor) => (per_s >= floor).then_some(floor),
            None => (is_busy && per_s >= DENSE_PER_S).then_some(per_s * STAY_PERCENT / 100),
        };
    }

    /// Turns that ended with a rest so far.
    pub(super) const fn rests_taken(&self) -> u64 {
        self.rests_taken
    }

    const fn rests(&self) -> bool {
        self.batches || self.rests_above_per_s.is_some()
    }
}

impl Worker {
    /// When the next turn begins, after a turn that began at `now_ns`.
    pub(super) fn rest(&mut self, next: Next, now_ns: u64) -> Next {
        if !self.traffic.allowed {
            return next;
        }
        let spin_ns = self.spin.total_ns();
        self.traffic.look(now_ns, || clock::thread_cpu_ns().saturating_sub(spin_ns));
        let at_ns = match next {
            Next::At(at_ns) => at_ns,
            Next::Sleep => u64::MAX,
            Next::Again | Next::Rest { .. } => return next,
        };
        if self.traffic.rests() && self.phase.is_loading(now_ns) {
            self.traffic.rests_taken += 1;
            // Whether it polls is decided by its budget.
            Next::Rest { until_ns: now_ns + self.traffic.turn_ns, polls: false, at_ns }
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

    /// Simulates one decision interval with this many packets and this CPU usage.
    fn after(traffic: &mut Traffic, packets: u64, busy_percent: u64) -> bool {
        let look_ns = traffic.look_ns;
        let (now_ns, cpu_ns) = (traffic.since_ns + look_ns, traffic.cpu_ns);
        traffic.packets = packets;
        traffic.look(now_ns - 1, || panic!("decided too early"));
        assert_eq!(traffic.packets, packets);
        traffic.look(now_ns, || cpu_ns + look_ns * busy_percent / 100);
        assert_eq!((traffic.packets, traffic.since_ns), (0, now_ns));
        traffic.rests()
    }

    #[test]
    fn a_thread_rests_on_a_busy_core_until_the_rate_falls() {
        let plan = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
        let mut traffic = Traffic::new(&plan);
        assert!(!after(&mut traffic, 100_000, BUSY_PERCENT - 1), "the core has idle time");
        let least = DENSE_PER_S * LOOK_NS / 1_000_000_000;
        assert!(!after(&mut traffic, least - 1, 100), "too few packets per turn");
        assert!(after(&mut traffic, 10_000, BUSY_PERCENT));
        assert!(after(&mut traffic, 7_000, 20), "less busy because it rests");
        assert!(!after(&mut traffic, 6_999, 90), "far fewer packets than at the beginning");
        assert!(after(&mut traffic, 6_999, 90), "it begins again at the current rate");
    }

    #[test]
    fn a_saturated_core_rests_longer_without_receivers() {
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
    fn batch_timing_always_rests() {
        let traffic = Traffic::new(&Plan { timing: Timing::Batch, ..Plan::default() });
        assert!(traffic.allowed && traffic.rests());
        assert_eq!(traffic.turn_ns, BATCH_NS);
    }

    #[test]
    fn without_receivers_the_rate_decides() {
        let mut traffic = Traffic::new(&Plan::default());
        assert!(traffic.allowed);
        let least = DENSE_PUBLISHING_PER_S * LOOK_NS / 1_000_000_000;
        for (packets, rests) in [(least, false), (least + 1, true), (least, false)] {
            assert_eq!(after(&mut traffic, packets, 1), rests, "{packets} packets");
        }
    }

    #[test]
    fn a_thread_that_spins_within_a_budget_rests_when_its_work_fills_its_core() {
        let plan = Plan { timing: Timing::SleepAndSpin, ..Plan::default() };
        let mut traffic = Traffic::new(&plan);
        assert!(!after(&mut traffic, 100_000, BUSY_PERCENT - 1));
        let least = DENSE_PER_S * LOOK_SPINNING_NS / 1_000_000_000;
        assert!(!after(&mut traffic, least - 1, 100), "too few packets per turn");
        assert!(after(&mut traffic, least, BUSY_PERCENT));
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
