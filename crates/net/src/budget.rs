//! The time of a turn: work is charged in units, and what no time is left for waits.
//!
//! A unit is about a microsecond: a delivery, a packet, a subscription. The clock is read after
//! every 32 units at the earliest, so that a unit costs no more than an addition. Each part of a
//! turn has a share of its time; what a part leaves over is for those that follow. However late a
//! part begins, it does 32 units of work, so that none starves.

use crate::clock;
use crate::counters::Counters;

/// Units of work between two looks at the clock.
const LOOK_UNITS: u32 = 32;
/// A turn that takes longer counts as slow.
const SLOW_TURN_NS: u64 = 1_000_000;
/// Turns that begin within this time share one reading of the thread's CPU time, which costs a
/// system call of about 0.25 us. So the CPU time of a turn is known up to that of the turns that
/// began so short before it.
const CPU_MARK_NS: u64 = 200_000;
/// What the shares are parts of. Their sum is less: parts overrun theirs by up to 32 units.
const SHARES: u64 = 16;

/// The parts of a turn, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Mail,
    Timers,
    /// Reads of established connections.
    Reads,
    /// Reads of connections whose peers have closed them.
    Leavers,
    /// Calls of [`Handler::closed`](crate::Handler::closed).
    Ends,
    /// [`Handler::turn`](crate::Handler::turn).
    Work,
    /// Writes of what is first in line.
    Answers,
    /// Writes of what can wait, and what else is left to do.
    Rest,
}

impl Part {
    const fn share(self) -> u64 {
        match self {
            Self::Timers | Self::Leavers | Self::Ends => 1,
            Self::Mail | Self::Work | Self::Answers | Self::Rest => 2,
            Self::Reads => 4,
        }
    }

    /// The shares up to and including this part's.
    const fn shares(self) -> u64 {
        match self {
            Self::Mail => 2,
            Self::Timers => 3,
            Self::Reads => 7,
            Self::Leavers => 8,
            Self::Ends => 9,
            Self::Work => 11,
            Self::Answers => 13,
            Self::Rest => 15,
        }
    }
}

/// How time passes while work is done.
enum WorkClock {
    Real,
    /// A unit takes a time drawn from 0 to `unit_ns_max`.
    #[cfg(feature = "sim")]
    Drawn {
        unit_ns_max: u64,
        rng: fastrand::Rng,
        units_timed: u64,
    },
}

/// The thread's CPU time at some moment.
#[derive(Clone, Copy)]
struct CpuMark {
    at_ns: u64,
    cpu_ns: u64,
}

/// What is left of a turn. Charge the work that is done; once nothing is left, leave the rest of it
/// to the next turn.
pub struct TurnBudget {
    clock: WorkClock,
    /// How long a turn may take; 0 for any time.
    turn_ns_max: u64,
    /// One of [`SHARES`] of it.
    share_ns: u64,
    began_ns: u64,
    /// The time as of the last look at the clock.
    seen_ns: u64,
    /// When the present part of the turn is over.
    ends_ns: u64,
    /// How long it takes from the first look on, if that decides.
    lasts_ns: u64,
    unseen_units: u32,
    is_spent: bool,
    /// Of this turn.
    units: u64,
    /// Taken when this turn began, or up to [`CPU_MARK_NS`] before.
    cpu: Option<CpuMark>,
}

impl TurnBudget {
    pub(crate) fn new(turn_ns_max: u64) -> Self {
        Self {
            clock: WorkClock::Real,
            turn_ns_max,
            share_ns: turn_ns_max / SHARES,
            began_ns: 0,
            seen_ns: 0,
            ends_ns: u64::MAX,
            lasts_ns: 0,
            unseen_units: 0,
            is_spent: false,
            units: 0,
            cpu: None,
        }
    }

    /// Charges `units` of work that was done, and says whether there is time for more.
    #[inline]
    pub fn charge(&mut self, units: u32) -> bool {
        self.units += u64::from(units);
        self.unseen_units = self.unseen_units.saturating_add(units);
        if self.unseen_units >= LOOK_UNITS {
            self.look();
        }
        !self.is_spent
    }

    /// How many units of about `unit_ns` are left, as of the last look at the clock.
    pub(crate) fn units_left(&self, unit_ns: u64) -> u64 {
        if self.lasts_ns > 0 {
            return self.lasts_ns / unit_ns;
        }
        self.ends_ns.saturating_sub(self.seen_ns) / unit_ns
    }

    /// Whether nothing is left: further work waits for the next turn.
    #[must_use]
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Units of work that were charged in this turn.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// From now on the time that work takes is drawn.
    #[cfg(feature = "sim")]
    pub(crate) fn draw(&mut self, seed: u64) {
        let rng = fastrand::Rng::with_seed(seed);
        self.clock = WorkClock::Drawn { unit_ns_max: 0, rng, units_timed: 0 };
    }

    pub(crate) fn begin_turn(&mut self, now_ns: u64) {
        (self.began_ns, self.seen_ns) = (now_ns, now_ns);
        self.units = 0;
        self.mark_cpu(now_ns);
        self.begin(u64::MAX, 0);
    }

    fn mark_cpu(&mut self, now_ns: u64) {
        let is_real = matches!(self.clock, WorkClock::Real) && self.turn_ns_max > 0;
        let is_young = |mark: CpuMark| now_ns.saturating_sub(mark.at_ns) < CPU_MARK_NS;
        if is_real && !self.cpu.is_some_and(is_young) {
            self.cpu = Some(CpuMark { at_ns: now_ns, cpu_ns: clock::thread_cpu_ns() });
        }
    }

    /// Begins a simulated turn in which a unit of work takes a time drawn from 0 to `unit_ns_max`.
    #[cfg(feature = "sim")]
    pub(crate) fn begin_drawn_turn(&mut self, now_ns: u64, unit_ns_max: u64) {
        if let WorkClock::Drawn { unit_ns_max: units_max, units_timed, .. } = &mut self.clock {
            (*units_max, *units_timed) = (unit_ns_max, 0);
        }
        self.begin_turn(now_ns);
    }

    #[inline]
    pub(crate) fn begin_part(&mut self, part: Part) {
        let ends_ns = self.began_ns.saturating_add(self.shares_ns(part.shares()));
        self.begin_until(ends_ns, part.share());
    }

    /// Begins another kind of work in the same part of the turn.
    #[inline]
    pub(crate) fn begin_work(&mut self) {
        self.begin_until(self.ends_ns, 1);
    }

    /// Begins something that lasts until `ends_ns`, or for so many shares if that is longer.
    #[inline]
    fn begin_until(&mut self, ends_ns: u64, shares: u64) {
        if self.turn_ns_max == 0 {
            return self.lift();
        }
        self.begin(ends_ns.max(self.seen_ns.saturating_add(self.shares_ns(shares))), 0);
    }

    /// Of at most [`SHARES`] shares.
    #[inline]
    fn shares_ns(&self, shares: u64) -> u64 {
        self.share_ns * shares
    }

    /// A part of the turn that lasts so long from the first look at the clock on; 0: any time.
    pub(crate) fn begin_part_of(&mut self, lasts_ns: u64) {
        self.begin(u64::MAX, lasts_ns);
    }

    /// What follows in this turn is done whatever time it takes.
    pub(crate) fn lift(&mut self) {
        self.begin(u64::MAX, 0);
    }

    fn begin(&mut self, ends_ns: u64, lasts_ns: u64) {
        (self.ends_ns, self.lasts_ns) = (ends_ns, lasts_ns);
        self.unseen_units = 0;
        self.is_spent = false;
    }

    /// Looks at the clock.
    pub(crate) fn look(&mut self) {
        self.unseen_units = 0;
        if self.ends_ns == u64::MAX && self.lasts_ns == 0 {
            return;
        }
        self.seen_ns = self.now_ns();
        if self.lasts_ns > 0 {
            self.ends_ns = self.seen_ns.saturating_add(std::mem::take(&mut self.lasts_ns));
        }
        self.is_spent = self.seen_ns >= self.ends_ns;
    }

    fn now_ns(&mut self) -> u64 {
        match &mut self.clock {
            WorkClock::Real => clock::now_ns(),
            #[cfg(feature = "sim")]
            WorkClock::Drawn { unit_ns_max, rng, units_timed } => {
                let units = self.units - std::mem::replace(units_timed, self.units);
                self.seen_ns + units * rng.u64(..=*unit_ns_max)
            }
        }
    }

    /// Ends a turn that took so long, and counts it.
    pub(crate) fn end_turn(&mut self, turn_ns: u64, counters: &mut Counters) {
        counters.turn_units_max = counters.turn_units_max.max(self.units);
        counters.turn_ns_max = counters.turn_ns_max.max(turn_ns);
        if turn_ns > SLOW_TURN_NS && self.turn_ns_max > 0 {
            counters.slow_turns += 1;
            counters.turn_cpu_ns_max = counters.turn_cpu_ns_max.max(self.cpu_of_turn(turn_ns));
        }
    }

    /// Ends a simulated turn.
    #[cfg(feature = "sim")]
    pub(crate) fn end_drawn_turn(&mut self, counters: &mut Counters) {
        let turn_ns = self.now_ns() - self.began_ns;
        self.end_turn(turn_ns, counters);
    }

    /// CPU time of a turn that has just ended, at most. A thread that other programs or the
    /// hypervisor kept waiting used none meanwhile.
    fn cpu_of_turn(&self, turn_ns: u64) -> u64 {
        match self.cpu {
            Some(mark) => turn_ns.min(clock::thread_cpu_ns().saturating_sub(mark.cpu_ns)),
            None => turn_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN_NS: u64 = 1_600;
    const SHARE_NS: u64 = TURN_NS / SHARES;

    /// In a turn that began at 0.
    fn budget() -> TurnBudget {
        let mut budget = TurnBudget::new(TURN_NS);
        budget.begin_turn(0);
        budget
    }

    /// Whether nothing is left at this time.
    fn seen_at(budget: &mut TurnBudget, now_ns: u64) -> bool {
        budget.seen_ns = now_ns;
        now_ns >= budget.ends_ns
    }

    #[test]
    fn a_part_has_what_the_parts_before_it_left_over() {
        let mut budget = budget();
        budget.begin_part(Part::Reads);
        assert!(!seen_at(&mut budget, 7 * SHARE_NS - 1));
        assert!(seen_at(&mut budget, 7 * SHARE_NS));
    }

    #[test]
    fn a_part_that_begins_late_has_its_own_share_all_the_same() {
        let mut budget = budget();
        assert!(!seen_at(&mut budget, 100 * SHARE_NS));
        budget.begin_part(Part::Work);
        assert!(!seen_at(&mut budget, 102 * SHARE_NS - 1));
        assert!(seen_at(&mut budget, 102 * SHARE_NS));
    }

    #[test]
    fn each_kind_of_work_has_a_share_though_one_before_it_was_late() {
        let mut budget = budget();
        budget.begin_part(Part::Work);
        budget.begin_work();
        assert!(!seen_at(&mut budget, 11 * SHARE_NS - 1), "what is left over is for the first");
        assert!(seen_at(&mut budget, 20 * SHARE_NS));
        budget.begin_work();
        assert!(!seen_at(&mut budget, 21 * SHARE_NS - 1));
        assert!(seen_at(&mut budget, 21 * SHARE_NS));
    }

    #[test]
    fn every_part_does_some_work_before_the_clock_is_read() {
        // A nanosecond: over at the first look.
        let mut budget = TurnBudget::new(1);
        budget.begin_turn(clock::now_ns() - 1_000_000);
        for part in [Part::Mail, Part::Timers, Part::Reads, Part::Ends, Part::Work, Part::Rest] {
            budget.begin_part(part);
            for _ in 1..LOOK_UNITS {
                assert!(budget.charge(1), "{part:?}");
            }
            assert!(!budget.charge(1), "{part:?}");
            assert!(budget.is_spent());
        }
        assert_eq!(budget.units(), 6 * u64::from(LOOK_UNITS));
    }

    #[test]
    fn without_a_limit_nothing_is_ever_spent() {
        let mut budget = TurnBudget::new(0);
        budget.begin_turn(0);
        budget.begin_part(Part::Reads);
        assert!(budget.charge(1_000_000));
    }

    #[test]
    fn only_slow_turns_are_counted_and_the_longest_is_kept() {
        let (mut budget, mut counters) = (TurnBudget::new(SLOW_TURN_NS), Counters::default());
        for (turn_ns, units) in [(SLOW_TURN_NS, 7), (SLOW_TURN_NS + 1, 3), (5, 1)] {
            budget.begin_turn(10);
            budget.charge(units);
            budget.end_turn(turn_ns, &mut counters);
        }
        assert_eq!(counters.slow_turns, 1);
        assert_eq!((counters.turn_ns_max, counters.turn_units_max), (SLOW_TURN_NS + 1, 7));
    }

    #[test]
    fn time_in_which_the_thread_did_not_run_is_no_cpu_time() {
        let (mut budget, mut counters) = (TurnBudget::new(SLOW_TURN_NS), Counters::default());
        let began_ns = clock::now_ns();
        budget.begin_turn(began_ns);
        // Before the turn has looked at the clock for the first time.
        std::thread::sleep(std::time::Duration::from_millis(50));
        budget.end_turn(clock::now_ns() - began_ns, &mut counters);
        assert!(counters.turn_ns_max >= 50_000_000);
        assert!(counters.turn_cpu_ns_max < counters.turn_ns_max, "{counters:?}");
    }
}
