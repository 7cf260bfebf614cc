//! A controller that takes up the run of another one, which is gone while the load went on.

use tacho_net::clock;

use super::Controller;
use super::load::Load;
use crate::events::{End, Event, PhaseKind};
use crate::mail::{Report, ReportBody};
use crate::past::Past;
use crate::plan::Phase;

impl Controller {
    /// Takes what threads have reported so far, as if it came now, and the load that goes on. The
    /// first controller's events come again, those of one phase after the other.
    pub(super) fn take_up(&mut self, mut past: Past) -> Result<Load, End> {
        let begun = past.begun();
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
            self.take_past(&mut past, phase.index)?;
        }
        let (mut load, _) = self.load_at(first.0, first.1);
        self.is_loading = true;
        self.roll.listen(clock::now_ns());
        for index in load.first()..load.end() {
            self.announce(&mut load, begun.start_of(index));
            self.take_past(&mut past, index)?;
        }
        for (thread, lost, at_ns) in past.take_lost() {
            self.lose_at(thread, lost, at_ns)?;
        }
        let now_ns = clock::now_ns();
        self.announce(&mut load, now_ns);
        self.roll.listen(now_ns);
        self.emit(Event::TakenUp { at_ns: now_ns });
        Ok(load)
    }

    /// Takes what all threads reported until the end of this phase.
    fn take_past(&mut self, past: &mut Past, phase: usize) -> Result<(), End> {
        while let Some(Report { thread, body }) =
            past.next_of(phase).map_err(|error| End::Thread(error.to_string()))?
        {
            match body {
                // Answers to questions of the first controller, and its probes.
                ReportBody::Forward { .. }
                | ReportBody::Status(_)
                | ReportBody::Ends(_)
                | ReportBody::Books(_) => {}
                body => self.handle(Report { thread, body })?,
            }
        }
        Ok(())
    }
}
