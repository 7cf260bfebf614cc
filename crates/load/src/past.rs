//! What is known of a run whose controller is gone.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::events::{LoadBegun, PhaseKind};
use crate::mail::{LostShare, Report, ReportBody};
use crate::plan::Phase;
use crate::sound;
use crate::wire::{self, WireError};

/// What is known of a run whose controller is gone. Its plan has one load: warm-ups, and at most
/// one measured window.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// Its phases.
    pub begun: LoadBegun,
    /// What each share has reported, in order, without gaps.
    pub reports: Vec<VecDeque<Vec<u8>>>,
    /// The shares that were lost.
    pub lost: Vec<LostThen>,
}

/// A share that was lost before the controller was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostThen {
    /// Its position.
    pub share: usize,
    /// When.
    pub at_ns: u64,
    /// Why.
    pub why: String,
}

/// The same, checked; reports are read one by one, since they are many times larger than their
/// form.
#[derive(Debug)]
pub(crate) struct Past {
    begun: LoadBegun,
    shares: Vec<PastShare>,
    lost: Vec<(usize, LostShare, u64)>,
    context: Arc<RunContext>,
}

#[derive(Debug)]
struct PastShare {
    threads: Range<usize>,
    batches: VecDeque<Vec<u8>>,
    /// Those of the first batch that was not taken as a whole.
    waiting: VecDeque<Report>,
}

impl Past {
    pub(crate) fn new(
        past: PastRun,
        context: &Arc<RunContext>,
        parts: &[Range<usize>],
        names: &[String],
    ) -> Result<Self, WireError> {
        let PastRun { begun, reports, lost } = past;
        if reports.len() != parts.len() || !fits(&begun, &context.plan.phases) {
            return Err(WireError);
        }
        let shares = parts.iter().cloned().zip(reports).map(|(threads, batches)| PastShare {
            threads,
            batches,
            waiting: VecDeque::new(),
        });
        let lost = lost.into_iter().map(|LostThen { share, at_ns, why }| {
            let (threads, name) = parts.get(share).zip(names.get(share)).ok_or(WireError)?;
            let lost = LostShare { name: name.clone(), threads: threads.len(), why };
            Ok((threads.start, lost, at_ns))
        });
        let (shares, lost) = (shares.collect(), lost.collect::<Result<_, _>>()?);
        Ok(Self { begun, shares, lost, context: Arc::clone(context) })
    }

    pub(crate) const fn begun(&self) -> &LoadBegun {
        &self.begun
    }

    /// Lost shares: a thread of each, and when.
    pub(crate) fn take_lost(&mut self) -> Vec<(usize, LostShare, u64)> {
        std::mem::take(&mut self.lost)
    }

    /// The next report of this phase or an earlier one, of one share after the other.
    pub(crate) fn next_of(&mut self, phase: usize) -> Result<Option<Report>, WireError> {
        for share in &mut self.shares {
            if let Some(report) = share.next_of(phase, &self.context)? {
                return Ok(Some(report));
            }
        }
        Ok(None)
    }

    /// When this phase began, if a share has reported of it, and all before it is taken.
    pub(crate) fn start_of(&self, phase: usize) -> Option<u64> {
        let firsts = self.shares.iter().filter_map(|share| match &share.waiting.front()?.body {
            ReportBody::Interval(of) if of.index == phase => Some(of.start_ns),
            _ => None,
        });
        firsts.min()
    }

    /// Whether all of it is taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.shares.iter().all(|share| share.waiting.is_empty() && share.batches.is_empty())
    }
}

impl PastShare {
    fn next_of(&mut self, phase: usize, context: &RunContext) -> Result<Option<Report>, WireError> {
        while self.waiting.is_empty()
            && let Some(batch) = self.batches.pop_front()
        {
            self.waiting = wire::decode(&batch)?;
            if !self.waiting.iter().all(|report| sound::report(report, context, &self.threads)) {
                return Err(WireError);
            }
        }
        let is_later = |report: &Report| match &report.body {
            ReportBody::Interval(interval) => interval.index > phase,
            ReportBody::Done { index } => *index > phase,
            _ => false,
        };
        match self.waiting.front() {
            Some(report) if is_later(report) => Ok(None),
            _ => Ok(self.waiting.pop_front()),
        }
    }
}

/// Whether these are the first phases of the plan, with its load as a whole, which is the only one.
fn fits(begun: &LoadBegun, phases: &[Phase]) -> bool {
    let is_load = |phase: &&Phase| phase.is_load();
    let before = phases.iter().take_while(|phase| !is_load(phase)).count();
    let loads = phases.iter().skip(before).take_while(is_load);
    let warm_ups = loads.clone().take_while(|phase| matches!(phase, Phase::WarmUp { .. })).count();
    let loads = loads.count().min(warm_ups + 1);
    let mut behind = phases.iter().skip(before + loads);
    loads > 0
        && !behind.any(Phase::is_load)
        && begun.phases.len() == before + loads
        && begun
            .phases
            .iter()
            .zip(phases)
            .enumerate()
            .all(|(position, (begun, phase))| begun.index == position && begun.kind == kind(phase))
}

const fn kind(phase: &Phase) -> PhaseKind {
    match phase {
        Phase::Connect { .. } => PhaseKind::Connect,
        Phase::Subscribe { .. } => PhaseKind::Subscribe,
        Phase::Offline => PhaseKind::Offline,
        Phase::Probe { .. } => PhaseKind::Probe,
        Phase::WarmUp { .. } => PhaseKind::WarmUp,
        Phase::Measure { .. } => PhaseKind::Measure,
        Phase::Resume { .. } => PhaseKind::Resume,
        Phase::Drain { .. } => PhaseKind::Drain,
        Phase::Disconnect => PhaseKind::Disconnect,
    }
}
