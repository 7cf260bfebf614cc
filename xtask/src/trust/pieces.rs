//! What is left to measure: a record is made in pieces, and goes on after an interruption.

use anyhow::Result;

use super::TrustPart;
use super::evidence::Evidence;
use super::judge::{FaultRun, Judgement, LatencyRun, SearchRun};
use super::parts::{self, DELAYS_MS, Extent, FAULTS, held, stopped};
use super::responder::Fault;
use super::runs::Laboratory;
use super::tools;
use crate::bench::machine::wait_until_idle;

/// A measurement whose machine was disturbed is made again, so many times in total.
const ATTEMPTS: usize = 3;
/// Seconds that a run takes beside its window and its wait for an idle machine.
const BESIDE_S: u64 = 10;
/// Seconds that a search takes on a quiet machine.
const SEARCH_S: u64 = 120;

/// The smallest measurement that a record keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Delay { ms: u64 },
    Stall,
    Fault { fault: Fault, qos: u8 },
    Tools,
    Search { number: usize },
    NoisySearch { number: usize },
}

impl Piece {
    /// Seconds that it takes unless something goes wrong.
    pub(super) fn seconds(self, extent: Extent) -> u64 {
        let run_s = match self {
            Self::Delay { .. } => extent.delay_s,
            Self::Stall => extent.stall_s,
            Self::Fault { .. } => extent.fault_s,
            Self::Tools => tools::SECONDS_MAX,
            Self::Search { .. } | Self::NoisySearch { .. } => SEARCH_S,
        };
        run_s + BESIDE_S + extent.idle_wait_s
    }

    pub(super) fn measure(
        self,
        lab: &Laboratory,
        extent: Extent,
        evidence: &mut Evidence,
    ) -> Result<()> {
        match self {
            Self::Delay { ms } => evidence.delays.push(parts::delay(lab, extent, ms)?),
            Self::Stall => evidence.stalls.push(parts::stall(lab, extent)?),
            Self::Fault { fault, qos } => {
                evidence.faults.push(parts::fault_run(lab, extent, fault, qos)?);
            }
            Self::Tools => evidence.tools = tools::all(lab)?,
            Self::Search { number } => {
                wait_until_idle(extent.idle_wait_s);
                evidence.searches.push(parts::search(lab, extent, number, "")?);
            }
            Self::NoisySearch { number } => {
                evidence.noisy_searches.push(parts::noisy_search(lab, extent, number)?);
            }
        }
        Ok(())
    }
}

/// What a part lacks first; `None` when it is complete.
pub(super) fn next(part: TrustPart, extent: Extent, evidence: &Evidence) -> Option<Piece> {
    match part {
        TrustPart::Delays => {
            let ms = DELAYS_MS.into_iter().find(|ms| is_open(&evidence.delays, &held(*ms)))?;
            Some(Piece::Delay { ms })
        }
        TrustPart::Stall => is_open(&evidence.stalls, &stopped()).then_some(Piece::Stall),
        TrustPart::Faults => {
            let has = |fault| evidence.faults.iter().any(|run: &FaultRun| run.fault == fault);
            let missing = FAULTS.into_iter().find(|(fault, _)| !has(*fault));
            let missing = missing.map(|(fault, qos)| Piece::Fault { fault, qos });
            missing.or_else(|| evidence.tools.is_empty().then_some(Piece::Tools))
        }
        TrustPart::Capacity => {
            let runs = &evidence.searches;
            let decided = runs.iter().map(SearchRun::judge).filter(is_decided).count();
            let is_complete = decided >= extent.searches || runs.len() >= extent.searches_max;
            (!is_complete).then_some(Piece::Search { number: runs.len() })
        }
        TrustPart::Noise => {
            let number = evidence.noisy_searches.len();
            (number < extent.noisy_searches).then_some(Piece::NoisySearch { number })
        }
    }
}

fn is_decided(judgement: &Judgement) -> bool {
    *judgement != Judgement::Undecided
}

fn is_open(runs: &[LatencyRun], shown: &str) -> bool {
    let runs: Vec<&LatencyRun> = runs.iter().filter(|run| run.shown == shown).collect();
    runs.len() < ATTEMPTS && !runs.iter().any(|run| is_decided(&run.judge()))
}

/// Forgets what a part has, so that it is measured from the beginning.
pub(super) fn clear(part: TrustPart, evidence: &mut Evidence) {
    evidence.measured.remove(part.name());
    match part {
        TrustPart::Delays => evidence.delays.clear(),
        TrustPart::Stall => evidence.stalls.clear(),
        TrustPart::Capacity => evidence.searches.clear(),
        TrustPart::Noise => evidence.noisy_searches.clear(),
        TrustPart::Faults => {
            evidence.faults.clear();
            evidence.tools.clear();
        }
    }
}

/// Forgets undecided latencies, so that they are tried again. Undecided searches stay: how many
/// there are is part of what the table says.
pub(super) fn clear_undecided(part: TrustPart, evidence: &mut Evidence) {
    match part {
        TrustPart::Delays => evidence.delays.retain(|run| is_decided(&run.judge())),
        TrustPart::Stall => evidence.stalls.retain(|run| is_decided(&run.judge())),
        TrustPart::Capacity | TrustPart::Noise | TrustPart::Faults => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::responder::Testimony;
    use super::super::tools::ToolRun;
    use super::*;

    fn latency(shown: String, verdict: &str) -> LatencyRun {
        let percentiles = Vec::new();
        LatencyRun { shown, verdict: verdict.into(), percentiles, ..LatencyRun::default() }
    }

    #[test]
    fn a_record_goes_on_with_what_it_lacks() {
        let full = Extent::FULL;
        let mut evidence = Evidence::default();
        let left = |evidence: &Evidence| next(TrustPart::Delays, full, evidence);
        assert_eq!(left(&evidence), Some(Piece::Delay { ms: 1 }));
        evidence.delays.push(latency(held(1), "ok"));
        assert_eq!(left(&evidence), Some(Piece::Delay { ms: 5 }));
        evidence.delays.extend([1, 2, 3].map(|_| latency(held(5), "disturbed")));
        assert_eq!(left(&evidence), Some(Piece::Delay { ms: 50 }), "tried often enough");
        clear_undecided(TrustPart::Delays, &mut evidence);
        assert_eq!((left(&evidence), evidence.delays.len()), (Some(Piece::Delay { ms: 5 }), 1));
        clear(TrustPart::Delays, &mut evidence);
        assert_eq!(left(&evidence), Some(Piece::Delay { ms: 1 }));
        assert_eq!(next(TrustPart::Stall, full, &evidence), Some(Piece::Stall));
        evidence.stalls.push(latency(stopped(), "ok"));
        assert_eq!(next(TrustPart::Stall, full, &evidence), None);
    }

    #[test]
    fn searches_go_on_until_enough_are_decided_or_too_many_are_made() {
        let full = Extent::FULL;
        let search = |code| SearchRun { exit_code: Some(code), hold_s: 6, ..SearchRun::default() };
        let mut evidence = Evidence { searches: vec![search(111); 19], ..Evidence::default() };
        let left = |evidence: &Evidence| next(TrustPart::Capacity, full, evidence);
        assert_eq!(left(&evidence), Some(Piece::Search { number: 19 }));
        clear_undecided(TrustPart::Capacity, &mut evidence);
        assert_eq!(left(&evidence), Some(Piece::Search { number: 19 }), "none is forgotten");
        evidence.searches = vec![search(0); 20];
        assert_eq!(left(&evidence), None);
        evidence.searches = vec![search(111); 40];
        assert_eq!(left(&evidence), None);
        let noisy = next(TrustPart::Noise, full, &evidence);
        assert_eq!(noisy, Some(Piece::NoisySearch { number: 0 }));
    }

    fn measured(fault: Fault) -> FaultRun {
        FaultRun {
            fault,
            verdict: "qos_violation".into(),
            exit_code: None,
            lost: 0,
            duplicates: 0,
            out_of_order: 0,
            others: 0,
            record: Testimony::default(),
        }
    }

    #[test]
    fn other_programs_come_after_the_faults() {
        let mut evidence = Evidence::default();
        let left = |evidence: &Evidence| next(TrustPart::Faults, Extent::FULL, evidence);
        for (fault, qos) in FAULTS {
            assert_eq!(left(&evidence), Some(Piece::Fault { fault, qos }));
            evidence.faults.push(measured(fault));
        }
        assert_eq!(left(&evidence), Some(Piece::Tools));
        evidence.tools.push(ToolRun::missing("x"));
        assert_eq!(left(&evidence), None);
    }
}
