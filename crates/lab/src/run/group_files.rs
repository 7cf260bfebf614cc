//! The seconds of groups of clients, where there are several.

use tacho_load::IntervalSnapshot;
use tacho_record::output::{GroupWriter, OutputError, RunDirectory};
use tacho_record::{GroupRow, PartBy, PartRow, Timestamp};

use super::numbers::round;

/// Writes them as the run goes on; nothing for a single group.
#[derive(Debug)]
pub(super) struct GroupFiles<'d>(Option<GroupWriter<'d>>);

impl<'d> GroupFiles<'d> {
    /// Begins the files of a run with so many groups.
    pub(super) fn begin(
        directory: &'d RunDirectory,
        started: Timestamp,
        groups: usize,
    ) -> Result<Self, OutputError> {
        let writer = (groups > 1).then(|| GroupWriter::begin(directory, started));
        Ok(Self(writer.transpose()?))
    }

    /// Takes one interval, which began `start_s` after the run, and its parts.
    pub(super) fn interval(
        &mut self,
        start_s: f64,
        interval: &IntervalSnapshot,
        parts: &[PartRow],
    ) -> Result<(), OutputError> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        let groups = parts.iter().filter(|part| part.by == PartBy::Group);
        let row = |part: &PartRow| GroupRow {
            start_s: round(start_s, 3),
            length_s: round(interval.len_ns as f64 / 1e9, 3),
            phase: interval.phase.into(),
            group: part.name.clone(),
            connected: part.connected,
            sent_per_s: part.sent_per_s,
            received_per_s: part.received_per_s,
        };
        writer.write(groups.map(row).zip(interval.groups.iter().map(|group| &group.e2e)))
    }

    /// The rows are complete.
    pub(super) fn end(self) -> Result<(), OutputError> {
        self.0.map_or(Ok(()), |mut writer| writer.flush())
    }
}
