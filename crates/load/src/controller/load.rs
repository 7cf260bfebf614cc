//! Consecutive phases with load: ordered at once, so that threads need no controller until their
//! end.

use std::time::Duration;

use tacho_net::clock;

use super::intervals::Measured;
use super::{Controller, GIVE_UP_EVERY_NS, LOOK_EVERY};
use crate::events::{BegunPhase, End, Event, LoadBegun};
use crate::mail::{Enter, Mail, Task};
use crate::plan::Phase;

/// Load that has been ordered: consecutive phases up to and including the first `Measure`.
#[derive(Debug)]
pub(super) struct Load {
    /// Its phases with their starts; never none.
    starts: Vec<BegunPhase>,
    end_ns: u64,
    measured: Option<Measured>,
    /// How many of its phases have been announced.
    announced: usize,
}

impl Load {
    /// Position of its first phase.
    pub(super) fn first(&self) -> usize {
        self.starts.first().map_or(0, |start| start.index)
    }

    /// Position behind its last phase.
    pub(super) fn end(&self) -> usize {
        self.first() + self.starts.len()
    }
}

impl Controller {
    /// Orders the load that begins with this phase of the plan.
    pub(super) fn begin_load(&mut self, first: usize) -> Load {
        let start_ns = clock::now_ns() + self.crew.margin_ns();
        let (load, enters) = self.load_at(first, start_ns);
        if self.crew.is_elsewhere() && !self.is_loading {
            let phases = self.entered.iter().chain(&load.starts).copied().collect();
            let load_begun = LoadBegun { connect_start_ns: self.connect_start_ns, phases };
            self.emit(Event::Loading(Box::new(load_begun)));
        }
        self.is_loading = true;
        self.roll.listen(start_ns);
        for enter in enters {
            self.post_all(|| Mail::Enter(enter));
        }
        load
    }

    /// The load that begins with this phase at this time, and the orders for it.
    pub(super) fn load_at(&mut self, first: usize, mut start_ns: u64) -> (Load, Vec<Enter>) {
        let mut load = Load { starts: Vec::new(), end_ns: start_ns, measured: None, announced: 0 };
        let mut enters = Vec::new();
        for (index, phase) in self.context.plan.phases.iter().enumerate().skip(first) {
            let (duration_ns, scale, measure) = match *phase {
                Phase::WarmUp { duration_ns, scale } => (duration_ns, scale, false),
                Phase::Measure { duration_ns, scale } => (duration_ns, scale, true),
                _ => break,
            };
            let end_ns = start_ns + duration_ns;
            let enter = Enter { index, start_ns, task: Task::Load { end_ns, scale, measure } };
            load.starts.push(begun(&enter));
            enters.push(enter);
            load.end_ns = end_ns;
            if measure {
                load.measured = Some(Measured { index, start_ns, len_ns: duration_ns });
                self.measured_ns = start_ns;
                break;
            }
            start_ns = end_ns;
        }
        (load, enters)
    }

    /// Announces the phases of the load that have begun; returns when the next one does.
    pub(super) fn announce(&mut self, load: &mut Load, now_ns: u64) -> Option<u64> {
        while let Some(start) = load.starts.get(load.announced) {
            if start.at_ns > now_ns {
                return Some(start.at_ns);
            }
            load.announced += 1;
            self.emit(start.event());
        }
        None
    }

    /// Waits until the load is over; returns the measured window.
    pub(super) fn follow_load(&mut self, load: &mut Load) -> Result<Option<Measured>, End> {
        let mut check_ns = clock::now_ns();
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= check_ns && self.connects_during_load() {
                // Clients that connect again may get no CONNACK.
                check_ns = now_ns + GIVE_UP_EVERY_NS;
                let timeout_ns = self.connect_timeout_ns;
                self.post_all(|| Mail::GiveUp { timeout_ns });
            }
            let next_ns = self.announce(load, now_ns);
            if now_ns >= load.end_ns {
                return Ok(load.measured);
            }
            self.lose_silent(now_ns)?;
            let wait_ns = load.end_ns.min(next_ns.unwrap_or(u64::MAX)) - now_ns;
            let wait = Duration::from_nanos(wait_ns).min(LOOK_EVERY);
            if let Err(end) = self.receive_or_abort(wait) {
                return Err(self.cut_short(end, load.measured, load.first()));
            }
            if self.has_lost_all() {
                let end = End::AllLost(self.last_failure.clone());
                return Err(self.cut_short(end, load.measured, load.first()));
            }
        }
    }

    /// Whether clients connect while the load runs.
    fn connects_during_load(&self) -> bool {
        let plan = &self.context.plan;
        !plan.actions.is_empty() || plan.groups.iter().any(|group| group.login.is_some())
    }
}

pub(super) const fn begun(enter: &Enter) -> BegunPhase {
    BegunPhase { kind: enter.task.kind(), index: enter.index, at_ns: enter.start_ns }
}
