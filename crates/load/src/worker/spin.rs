//! Spinning: polling instead of sleeping while something is about to happen.
//!
//! A sleeping thread distorts what it measures. It wakes up tens of microseconds late, which every
//! latency includes, and on one machine the broker pays for waking it: a write to a socket whose
//! reader sleeps ends with an interrupt to the reader's core. A thread that polls takes each
//! message at its time and costs the broker nothing more
//! (bench/runs/2026-11-23-timing).
//!
//! So a thread with a core of its own sleeps until shortly before the next message is due, and
//! spins from then on, and after each read or write while an answer is likely. It also spins
//! between the batches in which it serves a load that fills its core ([`super::rest`]). Its budget
//! bounds the CPU time that this takes; when it is used up, the thread sleeps until the next
//! period.

use tacho_net::Next;

use crate::plan::Timing;

/// A message due within this time is not worth a sleep: waking up takes up to a tenth of a
/// millisecond in a virtual machine.
const LEAD_NS: u64 = 150_000;
/// Time after a read or write in which answers and deliveries are likely.
const LINGER_NS: u64 = 150_000;
/// The budget is granted for one period at a time.
const PERIOD_NS: u64 = 100_000_000;
/// A turn without reads and writes takes about a microsecond. What it took beyond this was not
/// spinning: the thread was interrupted, or worked.
const IDLE_TURN_NS_MAX: u64 = 20_000;

/// The spinning of one thread.
#[derive(Debug)]
pub(super) struct Spin {
    /// Nanoseconds per period; `u64::MAX` for a thread that never sleeps.
    budget_ns: u64,
    /// Number of the current period.
    period: u64,
    /// Of this period's budget.
    spent_ns: u64,
    /// Of all periods.
    total_ns: u64,
    /// The thread went on without sleeping after its last turn, although it had no work.
    is_spinning: bool,
    last_turn_ns: u64,
    /// Reads and writes until the last turn.
    last_activity: u64,
    /// When the thread last sent, read or wrote.
    last_active_ns: u64,
    /// Rests in which the clock was polled, until the last turn.
    last_polled_rest_ns: u64,
}

impl Spin {
    pub(super) fn new(timing: Timing) -> Self {
        Self::with_budget(match timing {
            Timing::Sleep | Timing::Batch => 0,
            Timing::Spin => u64::MAX,
            Timing::SleepAndSpin => PERIOD_NS / 100 * u64::from(Timing::SPIN_BUDGET_PERCENT),
        })
    }

    const fn with_budget(budget_ns: u64) -> Self {
        Self {
            budget_ns,
            period: 0,
            spent_ns: 0,
            total_ns: 0,
            is_spinning: budget_ns == u64::MAX,
            last_turn_ns: 0,
            last_activity: 0,
            last_active_ns: 0,
            last_polled_rest_ns: 0,
        }
    }

    /// Time spent spinning so far.
    pub(super) const fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// A turn began at `now_ns`; `activity` is the number of reads and writes so far, and
    /// `polled_rest_ns` the time of all rests in which the clock was polled.
    #[inline]
    pub(super) fn note_turn(&mut self, now_ns: u64, activity: u64, polled_rest_ns: u64) {
        let rest_ns = polled_rest_ns - self.last_polled_rest_ns;
        if rest_ns > 0 {
            self.last_polled_rest_ns = polled_rest_ns;
            self.spent_ns = self.spent_ns.saturating_add(rest_ns);
            self.total_ns += rest_ns;
        }
        if activity != self.last_activity {
            (self.last_activity, self.last_active_ns) = (activity, now_ns);
        } else if self.is_spinning {
            let took_ns = now_ns.saturating_sub(self.last_turn_ns).min(IDLE_TURN_NS_MAX);
            self.spent_ns = self.spent_ns.saturating_add(took_ns);
            self.total_ns += took_ns;
        }
        self.last_turn_ns = now_ns;
    }

    /// A message was sent in the current turn; it is written when the turn ends.
    #[inline]
    pub(super) const fn note_send(&mut self, now_ns: u64) {
        self.last_active_ns = now_ns;
    }

    /// How to wait for `next` after a turn that began at `now_ns`.
    #[inline]
    pub(super) fn wait(&mut self, next: Next, now_ns: u64) -> Next {
        let due_ns = match next {
            _ if self.budget_ns == 0 => return next,
            // The event loop never sleeps.
            _ if self.budget_ns == u64::MAX => return next,
            Next::At(due_ns) => due_ns,
            Next::Sleep => u64::MAX,
            Next::Again => {
                self.is_spinning = false;
                return next;
            }
            Next::Rest { until_ns, at_ns, .. } => {
                self.is_spinning = false;
                let polls = self.has_budget(now_ns, until_ns.saturating_sub(now_ns));
                return Next::Rest { until_ns, polls, at_ns };
            }
        };
        let is_close = due_ns.saturating_sub(now_ns) <= LEAD_NS
            || now_ns.saturating_sub(self.last_active_ns) < LINGER_NS;
        self.is_spinning = is_close && self.has_budget(now_ns, IDLE_TURN_NS_MAX);
        match next {
            _ if self.is_spinning => Next::Again,
            Next::At(due_ns) if !is_close => Next::At(due_ns - LEAD_NS),
            next => next,
        }
    }

    /// Whether the budget of the current period lasts for so much more.
    fn has_budget(&mut self, now_ns: u64, more_ns: u64) -> bool {
        let period = now_ns / PERIOD_NS;
        if period != self.period {
            (self.period, self.spent_ns) = (period, 0);
        }
        self.spent_ns + more_ns <= self.budget_ns
    }
}

#[cfg(test)]
mod tests;
