//! What a running run sends to its outputs.

use std::sync::Arc;
use std::time::Duration;

use tacho_load::{IntervalSnapshot, PhaseKind};
use tacho_output::{OutputAccount, Outputs};
use tacho_record::{Finding, Observation, PartRow, ResourceRow, RunRecord, SeriesRow, Severity};

use crate::findings::finding;
use crate::points::{IntervalLatencies, RunPoints};

/// How long a run that has ended waits for its outputs to take the rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// The points of a run, and where they go. Without outputs nothing is made.
#[derive(Debug)]
pub(super) struct Outgoing {
    points: RunPoints,
    outputs: Arc<Outputs>,
}

impl Outgoing {
    /// The run begins.
    pub(super) fn new(points: RunPoints, outputs: Arc<Outputs>) -> Self {
        outputs.send(vec![points.started()]);
        Self { points, outputs }
    }

    /// A phase begins.
    pub(super) fn phase(&mut self, start_s: f64, kind: PhaseKind) {
        let note = self.points.phase(start_s, kind.into());
        self.outputs.send(vec![note]);
    }

    /// The latencies of an interval, if they are sent anywhere.
    pub(super) fn latencies(&self, interval: &IntervalSnapshot) -> IntervalLatencies {
        match self.outputs.is_empty() {
            true => IntervalLatencies::default(),
            false => IntervalLatencies::of(interval),
        }
    }

    /// A second has passed.
    pub(super) fn second(
        &mut self,
        row: &SeriesRow,
        latencies: IntervalLatencies,
        parts: &[PartRow],
    ) {
        if !self.outputs.is_empty() {
            self.outputs.send(self.points.second(row, latencies, parts));
        }
    }

    /// A host told what it spent.
    pub(super) fn host(&self, row: &ResourceRow) {
        if !self.outputs.is_empty() {
            self.outputs.send(vec![self.points.host(row)]);
        }
    }

    /// First errors of outputs, each once.
    pub(super) fn troubles(&self) -> Vec<(String, String)> {
        self.outputs.take_troubles()
    }

    /// The output whose failure ends the run, and its error.
    pub(super) fn failure(&self) -> Option<(String, String)> {
        self.outputs.failure()
    }

    /// The run has ended: sends the rest; what did not arrive are findings.
    pub(super) fn end(&mut self, record: &RunRecord) -> Vec<Finding> {
        if self.outputs.is_empty() {
            return Vec::new();
        }
        self.outputs.send(self.points.ended(record));
        let accounts = self.outputs.end_series(PATIENCE);
        accounts.into_iter().filter(|account| !account.is_clean()).map(lost).collect()
    }
}

fn lost(account: OutputAccount) -> Finding {
    let observation = Observation::OutputLost {
        lost: account.lost(),
        of: account.taken + account.lost(),
        output: account.target,
        last: account.last_error.unwrap_or_default(),
    };
    finding("output_lost", Severity::Warning, observation, None)
}
