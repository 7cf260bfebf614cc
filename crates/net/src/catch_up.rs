//! After a late turn: what has arrived is read before timers fire.
//!
//! When the process was stopped or the machine suspended, timers that watch for silence are overdue
//! although their peers spoke in time: what they said lies in the sockets. So timers wait until all
//! readiness of that moment was reported and every connection that was ready then was read once.

/// A timer that is overdue by this much makes a turn late.
pub(crate) const LATE_NS: u64 = 100_000_000;

/// How far a loop has come with what arrived before a late turn.
#[derive(Debug, Default)]
pub(crate) struct CatchUp(Option<Step>);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Readiness is still being reported, in so many polls at most.
    Polling { polls_max: usize },
    /// So many of the ready connections, and of the newcomers, are still to be read.
    Reading { ready: usize, newcomers: usize },
}

impl CatchUp {
    /// Whether timers have to wait.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// A turn is late: its poll and those after it report what has arrived, `polls_max` at most.
    pub(crate) fn begin(&mut self, polls_max: usize) {
        self.0.get_or_insert(Step::Polling { polls_max });
    }

    /// A poll's events were recorded, and so many connections wait to be read now; `is_full` if
    /// there may be more events.
    pub(crate) fn polled(&mut self, is_full: bool, ready: usize, newcomers: usize) {
        if let Some(Step::Polling { polls_max }) = self.0 {
            self.0 = Some(if is_full && polls_max > 1 {
                Step::Polling { polls_max: polls_max - 1 }
            } else {
                Step::Reading { ready, newcomers }
            });
        }
    }

    /// So many ready connections and newcomers were served: whether timers may fire now.
    pub(crate) fn served(&mut self, served: usize, served_newcomers: usize) -> bool {
        if let Some(Step::Reading { ready, newcomers }) = &mut self.0 {
            *ready = ready.saturating_sub(served);
            *newcomers = newcomers.saturating_sub(served_newcomers);
            if (*ready, *newcomers) == (0, 0) {
                self.0 = None;
            }
        }
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_wait_until_all_events_are_reported_and_all_that_was_ready_is_read() {
        let mut catch_up = CatchUp::default();
        assert!(!catch_up.is_under_way() && catch_up.served(3, 3));
        catch_up.begin(10);
        catch_up.polled(true, 5, 0);
        assert!(!catch_up.served(5, 0), "there may be more events");
        catch_up.polled(false, 7, 2);
        assert!(!catch_up.served(4, 2));
        // What becomes ready later is not waited for.
        catch_up.polled(true, 100, 100);
        assert!(catch_up.served(3, 0) && !catch_up.is_under_way());
    }

    #[test]
    fn polls_that_stay_full_are_not_waited_for_without_end() {
        let mut catch_up = CatchUp::default();
        catch_up.begin(2);
        catch_up.polled(true, 5, 0);
        assert!(!catch_up.served(5, 0));
        catch_up.polled(true, 5, 0);
        assert!(catch_up.served(5, 0));
    }
}
