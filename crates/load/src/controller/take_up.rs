//! A controller that takes up the run of another one, which is gone since the load began.

use tacho_net::clock;

use super::Controller;
use super::load::Load;
use crate::events::{End, Event, PhaseKind};
use crate::mail::{Report, ReportBody};
use crate::plan::Phase;

impl Controller {
    /// Takes what threads have reported so far, as if it came now, and the load that goes on, or
    /// has ended. The first controller's events come again, those of one phase after the other;
    /// those of phases behind the load when this controller enters them.
    pub(super) fn take_up(&mut self) -> Result<Option<Load>, End> {
        let Some(begun) = self.past.as_ref().map(|past| past.begun().clone()) else {
            return Ok(None);
        };
        let is_load = |kind| matches!(kind, PhaseKind::WarmUp | PhaseKind::Measure);
        let before = begun.phases.iter().take_while(|phase| !is_load(phase.kind));
        let before: Vec<_> = before.copied().collect();
        let first = begun.phases.get(before.len()).map_or((0, 0), |load| (load.index, load.at_ns));
        self.connect_start_ns = begun.connect_start_ns;
        let connects = self.context.plan.phases.iter().take(first.0).rev();
        let timeout_ns = |phase: &Phase| match phase {
            Phase::Connect { timeout_ns } => Some(*timeout_ns),
            _ => None,
        };
        self.connect_timeout_ns = connects.filter_map(timeout_ns).next().unwrap_or(u64::MAX);
        self.entered.clone_from(&before);
        for phase in before {
            self.emit(phase.event());
            self.take_past(phase.index)?;
        }
        let (mut load, _) = self.load_at(first.0, first.1);
        self.is_loading = true;
        self.roll.listen(clock::now_ns());
        for index in load.first()..load.end() {
            self.announce(&mut load, begun.start_of(index));
            self.take_past(index)?;
        }
        let lost = self.past.as_mut().map(|past| past.take_lost()).unwrap_or_default();
        for (thread, lost, at_ns) in lost {
            self.lose_at(thread, lost, at_ns)?;
        }
        let now_ns = clock::now_ns();
        self.announce(&mut load, now_ns);
        self.roll.listen(now_ns);
        self.end_past();
        Ok(Some(load))
    }

    /// Takes what all threads reported to an earlier controller until the end of this phase.
    pub(super) fn take_past(&mut self, phase: usize) -> Result<(), End> {
        while let Some(past) = &mut self.past
            && let Some(Report { thread, body }) =
                past.next_of(phase).map_err(|error| End::Thread(error.to_string()))?
        {
            match body {
                // Answers to its questions, and its probes.
                ReportBody::Forward { .. } | ReportBody::Status(_) => {}
                ReportBody::Ends(ends) => self.closed.note_ends(thread, ends),
                ReportBody::Books(books) => self.closed.note_books(thread, *books),
                ReportBody::Interval(interval)
                    if interval.kind == PhaseKind::Drain && self.is_load(interval.index) =>
                {
                    // It was ending the run, with a drain in place of the load.
                    return Err(End::Aborted);
                }
                body => self.handle(Report { thread, body })?,
            }
        }
        Ok(())
    }

    /// Once all of the past is taken, what comes is new.
    pub(super) fn end_past(&mut self) {
        if self.past.as_ref().is_some_and(|past| past.is_taken()) {
            self.past = None;
            self.emit(Event::TakenUp { at_ns: clock::now_ns() });
        }
    }

    fn is_load(&self, phase: usize) -> bool {
        self.context.plan.phases.get(phase).is_some_and(Phase::is_load)
    }
}
