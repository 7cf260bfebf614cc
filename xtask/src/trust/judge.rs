//! Whether a figure is right, by the responder's own record.

use serde::{Deserialize, Serialize};

use super::responder::{CATCH_UP_NS, Fault, Testimony};

/// How far a latency may be from the recorded one: this share of it, or this time.
pub(super) const LATENCY_SHARE: f64 = 0.01;
pub(super) const LATENCY_US: f64 = 100.0;
/// How far the ends of a capacity may be from the truth.
pub(super) const CAPACITY_SHARE: f64 = 0.05;
/// Share of the offered load that must arrive for a trial to pass.
const ACHIEVED_SHARE: f64 = 0.99;
/// From this share of steal on, in percent, a window is not judged.
pub(super) const STEAL_PERCENT_MAX: f64 = 1.0;
/// Exit codes of the program.
const EXIT_FOUND: i32 = 0;
const EXIT_VIOLATION: i32 = 110;
const EXIT_INVALID: i32 = 111;

/// What a piece of evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Judgement {
    Right,
    Wrong,
    /// The program said that it cannot tell, or the machine was disturbed.
    Undecided,
}

/// A percentile by two accounts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Percentile {
    pub(super) name: String,
    pub(super) reported_us: f64,
    /// Undisturbed, the figure would have been between this and the reported one. Absent where the
    /// program states no interval.
    #[serde(default)]
    pub(super) reported_us_min: Option<f64>,
    pub(super) recorded_us: f64,
}

impl Percentile {
    pub(super) fn tolerance_us(&self) -> f64 {
        (self.recorded_us * LATENCY_SHARE).max(LATENCY_US)
    }

    /// The interval must contain the truth, give or take the tolerance; without one the figure is
    /// its own interval. A disturbance only raises latencies: where some is tolerated
    /// (`is_disturbed`) and no interval stated, a figure above the truth tells nothing.
    fn judge(&self, is_disturbed: bool) -> Judgement {
        let tolerance_us = self.tolerance_us();
        let low = self.reported_us_min.unwrap_or(self.reported_us).min(self.reported_us);
        if self.reported_us < self.recorded_us - tolerance_us {
            Judgement::Wrong
        } else if low <= self.recorded_us + tolerance_us {
            Judgement::Right
        } else if is_disturbed && self.reported_us_min.is_none() {
            Judgement::Undecided
        } else {
            Judgement::Wrong
        }
    }
}

/// One run against a responder that holds messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LatencyRun {
    /// What the responder did, such as `5 ms held`.
    pub(super) shown: String,
    /// It did the same at all times. Then a verdict that the figures still moved is not about it.
    #[serde(default)]
    pub(super) is_uniform: bool,
    /// The verdict of the run.
    pub(super) verdict: String,
    pub(super) steal_percent: f64,
    /// Some seconds do not count in the reported figures, but do in the record.
    pub(super) is_left_out: bool,
    /// Disturbed seconds count; what they can have changed is within the program's tolerance.
    #[serde(default)]
    pub(super) is_within_tolerance: bool,
    pub(super) percentiles: Vec<Percentile>,
}

impl LatencyRun {
    /// Right only if all percentiles are.
    pub(super) fn judge(&self) -> Judgement {
        if self.is_disturbed() {
            return Judgement::Undecided;
        }
        let judgements: Vec<_> = self.percentiles.iter().map(|one| self.judge_one(one)).collect();
        if judgements.is_empty() || judgements.contains(&Judgement::Wrong) {
            Judgement::Wrong
        } else if judgements.contains(&Judgement::Undecided) {
            Judgement::Undecided
        } else {
            Judgement::Right
        }
    }

    /// One percentile of it.
    pub(super) fn judge_one(&self, percentile: &Percentile) -> Judgement {
        if self.is_disturbed() {
            return Judgement::Undecided;
        }
        match ["ok", "not_steady"].contains(&self.verdict.as_str()) {
            true => percentile.judge(self.is_within_tolerance),
            false => Judgement::Wrong,
        }
    }

    /// Whether its figures do not count.
    fn is_disturbed(&self) -> bool {
        let is_invalid =
            ["generator_bound", "disturbed", "network_bound"].contains(&self.verdict.as_str());
        // Stalls may well be called a load that is not steady: their figures remain. A broker that
        // is always the same cannot be; whatever made its figures move is not in its record.
        let is_unsteady = self.verdict == "not_steady" && self.is_uniform;
        is_invalid || self.is_left_out || is_unsteady || self.steal_percent >= STEAL_PERCENT_MAX
    }
}

/// One search against the limited forwarder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SearchRun {
    /// Messages per second that the forwarder passes.
    pub(super) limit: f64,
    /// Cores that another program burned; empty without one.
    pub(super) burned: String,
    /// Measured seconds of a trial of full length.
    pub(super) hold_s: u64,
    /// Absent when the program did not end in time.
    pub(super) exit_code: Option<i32>,
    pub(super) highest_pass: Option<f64>,
    pub(super) lowest_fail: Option<f64>,
    pub(super) trials: u64,
    pub(super) seconds: u64,
    pub(super) steal_percent: f64,
}

impl SearchRun {
    /// The highest load that passes. Loads above the limit pass as long as 99 % of them arrive,
    /// and the forwarder may catch up a little at the beginning of the window.
    pub(super) fn truth(&self) -> (f64, f64) {
        let catch_up = CATCH_UP_NS as f64 / 1e9 / self.hold_s.max(1) as f64;
        (self.limit, self.limit / ACHIEVED_SHARE * (1.0 + catch_up))
    }

    fn interval(&self) -> Option<(f64, f64)> {
        self.highest_pass.zip(self.lowest_fail)
    }

    fn contains_truth(&self) -> bool {
        let (low, high) = self.truth();
        self.interval().is_some_and(|(pass, fail)| pass <= high && fail >= low)
    }

    /// Distance of the farther end from the truth, as a share of the limit.
    pub(super) fn distance(&self) -> Option<f64> {
        let (low, high) = self.truth();
        let (pass, fail) = self.interval()?;
        Some((low - pass).max(fail - high).max(0.0) / self.limit)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.burned.is_empty()
    }

    pub(super) fn judge(&self) -> Judgement {
        if self.is_quiet() && self.steal_percent >= STEAL_PERCENT_MAX {
            return Judgement::Undecided;
        }
        let is_near = !self.is_quiet() || self.distance().is_some_and(|far| far <= CAPACITY_SHARE);
        match self.exit_code {
            Some(EXIT_INVALID) => Judgement::Undecided,
            Some(EXIT_FOUND) if self.contains_truth() && is_near => Judgement::Right,
            _ => Judgement::Wrong,
        }
    }
}

/// One run against a responder that treats every n-th message wrongly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FaultRun {
    pub(super) fault: Fault,
    pub(super) verdict: String,
    pub(super) exit_code: Option<i32>,
    pub(super) lost: u64,
    pub(super) duplicates: u64,
    pub(super) out_of_order: u64,
    /// Deliveries that are wrong in other ways.
    pub(super) others: u64,
    pub(super) record: Testimony,
}

impl FaultRun {
    /// What the responder did, and what the run counted.
    pub(super) fn counts(&self) -> (u64, u64) {
        match self.fault {
            Fault::Lose => (self.record.lost, self.lost),
            Fault::Double => (self.record.doubled, self.duplicates),
            Fault::Reorder => (self.record.reordered, self.out_of_order),
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        let (made, counted) = self.counts();
        let all = self.lost + self.duplicates + self.out_of_order + self.others;
        let is_exact = made > 0 && counted == made && all == made;
        let is_said = self.verdict == "qos_violation" && self.exit_code == Some(EXIT_VIOLATION);
        if is_exact && is_said { Judgement::Right } else { Judgement::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::Judgement::{Right, Undecided, Wrong};
    use super::*;

    fn latency(recorded_us: f64, reported_us: f64) -> LatencyRun {
        let percentile = |name: &str| Percentile {
            name: name.into(),
            reported_us,
            reported_us_min: None,
            recorded_us,
        };
        LatencyRun {
            shown: "1 ms held".into(),
            is_uniform: true,
            verdict: "ok".into(),
            steal_percent: 0.2,
            is_left_out: false,
            is_within_tolerance: false,
            percentiles: vec![percentile("p50"), percentile("p99")],
        }
    }

    #[test]
    fn a_latency_must_be_within_a_percent_or_100_us() {
        assert_eq!(latency(1_000.0, 1_100.0).judge(), Right);
        assert_eq!(latency(1_000.0, 1_101.0).judge(), Wrong);
        assert_eq!(latency(1_000.0, 899.0).judge(), Wrong, "less than it was held");
        assert_eq!(latency(50_000.0, 50_500.0).judge(), Right);
        assert_eq!(latency(50_000.0, 50_501.0).judge(), Wrong);
        let one_wrong = |mut run: LatencyRun| {
            run.percentiles[1].reported_us += 5_000.0;
            run.judge()
        };
        assert_eq!(one_wrong(latency(1_000.0, 1_000.0)), Wrong);
        let run = LatencyRun { percentiles: Vec::new(), ..latency(1.0, 1.0) };
        assert_eq!(run.judge(), Wrong, "without figures");
    }

    /// A run with tolerated disturbances, whose p99 was between these two.
    fn tolerated(low_us: Option<f64>, p99_us: f64) -> LatencyRun {
        let mut run = LatencyRun { is_within_tolerance: true, ..latency(50_000.0, 50_200.0) };
        run.percentiles[1].reported_us = p99_us;
        run.percentiles[1].reported_us_min = low_us;
        run
    }

    #[test]
    fn the_interval_of_a_disturbed_figure_must_contain_the_truth() {
        assert_eq!(tolerated(Some(50_100.0), 53_700.0).judge(), Right);
        assert_eq!(tolerated(Some(49_000.0), 53_700.0).judge(), Right);
        assert_eq!(tolerated(Some(50_600.0), 53_700.0).judge(), Wrong, "all of it is above");
        assert_eq!(tolerated(Some(40_000.0), 49_400.0).judge(), Wrong, "all of it is below");
        // Delays raise figures, but how far is not stated.
        assert_eq!(tolerated(None, 53_700.0).judge(), Undecided);
        assert_eq!(tolerated(None, 49_400.0).judge(), Wrong);
        let run = tolerated(None, 53_700.0);
        let each: Vec<_> = run.percentiles.iter().map(|one| run.judge_one(one)).collect();
        assert_eq!(each, [Right, Undecided], "the median does not depend on the tail");
        let undisturbed = LatencyRun { is_within_tolerance: false, ..tolerated(None, 53_700.0) };
        assert_eq!(undisturbed.judge(), Wrong);
        let mut both = tolerated(None, 53_700.0);
        both.percentiles[0].reported_us = 40_000.0;
        assert_eq!(both.judge(), Wrong, "one that is wrong decides");
    }

    #[test]
    fn a_disturbed_latency_is_not_judged_and_a_violation_is_wrong() {
        let run = latency(1_000.0, 9_000.0);
        let verdict = |verdict: &str| LatencyRun { verdict: verdict.into(), ..run.clone() }.judge();
        assert_eq!(verdict("generator_bound"), Undecided);
        assert_eq!(verdict("disturbed"), Undecided);
        let fine = LatencyRun { verdict: "qos_violation".into(), ..latency(1_000.0, 1_000.0) };
        // A broker that is always the same cannot make a run unsteady, one that stops can.
        assert_eq!(verdict("not_steady"), Undecided);
        let stall = LatencyRun { is_uniform: false, ..latency(1_000.0, 1_000.0) };
        let stall = LatencyRun { verdict: "not_steady".into(), ..stall };
        assert_eq!(stall.judge(), Right);
        assert_eq!(fine.judge(), Wrong);
        assert_eq!(LatencyRun { steal_percent: 1.0, ..run.clone() }.judge(), Undecided);
        assert_eq!(LatencyRun { is_left_out: true, ..run }.judge(), Undecided);
    }

    fn search(pass: f64, fail: f64) -> SearchRun {
        SearchRun {
            limit: 4_000.0,
            burned: String::new(),
            hold_s: 6,
            exit_code: Some(0),
            highest_pass: Some(pass),
            lowest_fail: Some(fail),
            trials: 12,
            seconds: 100,
            steal_percent: 0.0,
        }
    }

    #[test]
    fn a_capacity_must_contain_the_limit_and_be_near_it() {
        assert_eq!(search(3_950.0, 4_100.0).judge(), Right);
        assert_eq!(search(4_030.0, 4_100.0).judge(), Right, "99 % of 4,030 are below 4,000");
        assert_eq!(search(4_060.0, 4_200.0).judge(), Wrong, "above the limit");
        assert_eq!(search(3_800.0, 3_990.0).judge(), Wrong, "below the limit");
        assert_eq!(search(3_700.0, 4_100.0).judge(), Wrong, "too wide");
        assert_eq!(search(3_900.0, 4_300.0).judge(), Wrong, "too wide");
        let open = SearchRun { lowest_fail: None, ..search(3_900.0, 0.0) };
        assert_eq!(open.judge(), Wrong);
    }

    #[test]
    fn a_search_that_says_nothing_is_undecided_and_one_that_fails_is_wrong() {
        let exit = |code| SearchRun { exit_code: code, ..search(1.0, 2.0) }.judge();
        assert_eq!(exit(Some(111)), Undecided);
        assert_eq!(exit(Some(99)), Wrong);
        assert_eq!(exit(Some(112)), Wrong);
        assert_eq!(exit(None), Wrong);
        let steal = SearchRun { steal_percent: 1.5, ..search(1.0, 2.0) };
        assert_eq!(steal.judge(), Undecided);
    }

    #[test]
    fn a_noisy_search_may_be_wide_but_must_contain_the_limit() {
        let noisy = |pass, fail| SearchRun {
            burned: "broker".into(),
            steal_percent: 9.0,
            ..search(pass, fail)
        };
        assert_eq!(noisy(3_300.0, 4_400.0).judge(), Right);
        assert_eq!(noisy(3_000.0, 3_900.0).judge(), Wrong);
        assert_eq!(SearchRun { exit_code: Some(111), ..noisy(1.0, 2.0) }.judge(), Undecided);
    }

    fn fault(fault: Fault, made: u64) -> FaultRun {
        let record =
            Testimony { lost: made, doubled: made, reordered: made, ..Testimony::default() };
        let mut run = FaultRun {
            fault,
            verdict: "qos_violation".into(),
            exit_code: Some(110),
            lost: 0,
            duplicates: 0,
            out_of_order: 0,
            others: 0,
            record,
        };
        match fault {
            Fault::Lose => run.lost = made,
            Fault::Double => run.duplicates = made,
            Fault::Reorder => run.out_of_order = made,
        }
        run
    }

    #[test]
    fn faults_must_be_counted_exactly_and_called_a_violation() {
        for kind in [Fault::Lose, Fault::Double, Fault::Reorder] {
            let run = fault(kind, 10);
            assert_eq!(run.judge(), Right);
            assert_eq!(fault(kind, 0).judge(), Wrong, "none was made");
            let missed = FaultRun { record: fault(kind, 11).record, ..run.clone() };
            assert_eq!(missed.judge(), Wrong);
            assert_eq!(FaultRun { others: 1, ..run.clone() }.judge(), Wrong);
            assert_eq!(FaultRun { verdict: "ok".into(), ..run.clone() }.judge(), Wrong);
            assert_eq!(FaultRun { exit_code: Some(0), ..run }.judge(), Wrong);
        }
    }
}
