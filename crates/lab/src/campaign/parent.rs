//! One record out of the records of many runs.

use super::recommend::{LoadPoint, interpolate};
use super::subject::Subject;
use tacho_record::{
    Capacity, Cause, Environment, Estimator, FigureRow, Finding, Observation, Obstacle, PhaseKind,
    Recommendation, RunData, RunKind, RunRecord, SCHEMA_VERSION, SUSTAINED_PERCENT, Series,
    SeriesRow, Severity, Skipped, Step, StepCurves, StepSecond, Timestamp, Verdict, WhoseCpu,
};
use tacho_scenario::threshold::Thresholds;

use crate::findings::finding;
use crate::run::{Ending, Outcome};
use crate::verdict;

/// Collects the runs of a ladder, a search or a suite.
#[derive(Debug)]
pub struct Campaign {
    record: RunRecord,
    curves: Vec<StepCurves>,
    environment: Option<Environment>,
    /// Messages and CPU of each second, per step.
    seconds: Vec<Vec<(f64, f64)>>,
    /// Which rung of its series a step is.
    rungs: Vec<usize>,
    /// Thresholds of the scenarios.
    thresholds: Thresholds,
    verdicts: Vec<Verdict>,
}

/// Where a run belongs in a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// Name of its series.
    pub series: String,
    /// Which step of the series it is; repeats share it.
    pub rung: usize,
    /// For people.
    pub label: String,
    /// Value of the stepped variable.
    pub x: Option<f64>,
    /// The run's directory below the campaign's.
    pub directory: String,
    /// Does its verdict count for the campaign's? That of a step at which a ladder was asked to
    /// end, and that of a trial, does not; a broken QoS contract always does.
    pub counts: bool,
}

impl Campaign {
    /// Begins a campaign.
    pub fn new(kind: RunKind, subject: Subject<'_>, name: &str) -> Self {
        Self {
            record: RunRecord {
                schema_version: SCHEMA_VERSION,
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                kind,
                scenario: subject.name.to_owned(),
                description: subject.description.to_owned(),
                description_zh: subject.description_zh.to_owned(),
                name: name.to_owned(),
                started_at: Timestamp::now().rfc3339(),
                ..RunRecord::default()
            },
            curves: Vec::new(),
            environment: None,
            seconds: Vec::new(),
            rungs: Vec::new(),
            thresholds: Thresholds::default(),
            verdicts: Vec::new(),
        }
    }

    /// Begins a series; its steps follow with [`Campaign::add`].
    pub fn series(&mut self, series: Series) {
        self.record.series.push(series);
    }

    /// Notes a point that could not be run.
    pub fn skip(&mut self, series: &str, label: &str, obstacle: Obstacle) {
        let (series, label) = (series.to_owned(), label.to_owned());
        let obstacle = Some(obstacle);
        self.record.skipped.push(Skipped { series, label, obstacle, ..Skipped::default() });
    }

    /// Adds a finished run. Returns the position of its step, if it measured one.
    pub fn add(
        &mut self,
        place: Place,
        outcome: &Outcome,
        thresholds: &Thresholds,
    ) -> Option<usize> {
        let child = &outcome.data.record;
        self.take_head(child);
        if self.environment.is_none() {
            self.environment.clone_from(&outcome.data.environment);
        }
        for threshold in &thresholds.0 {
            if !self.thresholds.0.contains(threshold) {
                self.thresholds.0.push(threshold.clone());
            }
        }
        let first = self.record.steps.len();
        // Rows of different series may have the same label.
        let whole_label = match self.record.kind {
            RunKind::Suite if place.label != place.series => {
                format!("{}, {}", place.series, place.label)
            }
            _ => place.label.clone(),
        };
        if place.counts || always_counts(child.verdict) {
            self.judge(&whole_label, child);
        }
        for finding in &child.findings {
            let step = finding.step.map(|step| first + step);
            self.finding(Finding { step, ..finding.clone() }, &whole_label);
        }
        for (index, step) in child.steps.iter().enumerate() {
            let mut step = step.clone();
            step.label.clone_from(&place.label);
            step.series.clone_from(&place.series);
            step.directory.clone_from(&place.directory);
            step.x = place.x;
            // A run of one window: what holds for the run (a client that failed, a threshold)
            // holds for the step.
            step.verdict = child.verdict;
            self.seconds.push(seconds(&step, &outcome.data.rows));
            self.rungs.push(place.rung);
            let curves = outcome.data.curves.get(index).cloned().unwrap_or_default();
            let seconds = match child.steps.len() {
                1 => StepSecond::of(&outcome.data.rows),
                _ => Vec::new(),
            };
            self.curves.push(StepCurves { seconds, ..curves });
            let position = self.record.steps.len();
            if let Some(series) =
                self.record.series.iter_mut().find(|series| series.name == place.series)
            {
                series.steps.push(position);
            }
            self.record.steps.push(step);
        }
        (!child.steps.is_empty()).then_some(first)
    }

    /// Lets a series have a step that was measured for another one.
    pub fn share(&mut self, series: &str, position: usize) {
        if let Some(series) = self.record.series.iter_mut().find(|known| known.name == series) {
            series.steps.push(position);
        }
    }

    /// Makes the verdict of a run count that was added as one that does not.
    pub fn count(&mut self, label: &str, child: &RunRecord) {
        if !always_counts(child.verdict) {
            self.judge(label, child);
        }
    }

    fn judge(&mut self, label: &str, child: &RunRecord) {
        self.verdicts.push(child.verdict);
        if child.verdict != Verdict::Ok {
            self.record
                .causes
                .extend(child.causes.iter().map(|cause| cause.clone().in_step(label)));
        }
    }

    /// What all runs share comes from the first, what differs is the largest.
    fn take_head(&mut self, child: &RunRecord) {
        let record = &mut self.record;
        if record.targets.is_empty() {
            record.target = child.target.clone();
            record.targets.clone_from(&child.targets);
            record.placement = child.placement.clone();
            record.vars.clone_from(&child.vars);
            record.seed = child.seed;
            record.monitors.clone_from(&child.monitors);
        }
        if child.clients >= record.clients {
            record.clients = child.clients;
            record.clients_connected = child.clients_connected;
        }
        record.client_failures += child.client_failures;
        let room = 10_usize.saturating_sub(record.first_failures.len());
        record.first_failures.extend(child.first_failures.iter().take(room).cloned());
        for remark in &child.remarks {
            if !record.remarks.contains(remark) {
                record.remarks.push(remark.clone());
            }
        }
    }

    /// Adds a finding of the step called `label`.
    fn finding(&mut self, finding: Finding, label: &str) {
        let (sentence, place) = (String::new(), label.to_owned());
        self.record.findings.push(Finding { sentence, place, ..finding });
    }

    /// Adds what a reader should know about the campaign.
    pub fn remark(&mut self, code: &str, severity: Severity, observation: Observation) {
        self.record.findings.push(finding(code, severity, observation, None));
    }

    /// Adds a verdict with its cause.
    pub fn reason(&mut self, verdict: Verdict, cause: Cause) {
        self.verdicts.push(verdict);
        self.record.causes.push(cause);
    }

    /// The steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.record.steps
    }

    /// Computes the recommended workload of every series of climbing load: where mean CPU
    /// reaches `percent`.
    pub fn recommend(&mut self, percent: f64) {
        let recommendations =
            self.record.series.iter().filter_map(|series| self.recommended(series, percent));
        self.record.recommendations = recommendations.collect();
    }

    fn whose_cpu(&self, series: &Series) -> Option<WhoseCpu> {
        let steps = series.steps.iter().filter_map(|position| self.record.steps.get(*position));
        steps.filter_map(|step| step.whose_cpu.as_deref()).find_map(WhoseCpu::parse)
    }

    /// Whether the offered load climbs from step to step: a payload or a model is no load.
    fn is_a_load(&self, series: &Series) -> bool {
        let offered = |position: &usize| {
            let step = &self.record.steps[*position];
            (self.rungs[*position], step.offered_in_per_s + step.offered_out_per_s)
        };
        let mut rungs: Vec<(usize, f64)> = series.steps.iter().map(offered).collect();
        rungs.sort_by_key(|(rung, _)| *rung);
        rungs.dedup_by_key(|(rung, _)| *rung);
        rungs.len() >= 2 && rungs.windows(2).all(|pair| pair[1].1 > pair[0].1)
    }

    fn recommended(&self, series: &Series, percent: f64) -> Option<Recommendation> {
        let mut positions = Vec::new();
        let mut points: Vec<LoadPoint> = Vec::new();
        let mut whose = None;
        for position in &series.steps {
            let step = self.record.steps.get(*position)?;
            if !step.verdict.counts() {
                continue;
            }
            let Some(cpu_percent) = step.cpu_percent else { continue };
            whose = whose.or_else(|| step.whose_cpu.as_deref().and_then(WhoseCpu::parse));
            positions.push(*position);
            points.push(LoadPoint {
                rung: self.rungs[*position],
                tps: step.tps,
                cpu_percent,
                sustained: step.achieved_percent() >= SUSTAINED_PERCENT,
                seconds: self.seconds[*position].clone(),
            });
        }
        if !self.is_a_load(series) {
            return None;
        }
        let found = interpolate(&points, percent, self.record.seed);
        let whose = whose.or_else(|| self.whose_cpu(series)).unwrap_or(WhoseCpu::BrokerProcess);
        Some(Recommendation {
            series: series.name.clone(),
            objective: format!("cpu<={percent}%"),
            whose_cpu: whose.name().to_owned(),
            position: found.position,
            tps: found.tps.map(whole),
            low: found.low.map(whole),
            high: found.high.map(whole),
            method: String::new(),
            estimator: Some(Estimator::Interpolation { whose_cpu: whose }),
            nearest_step: found.nearest.map(|index| positions[index]),
        })
    }

    /// Notes the statistics over its runs.
    pub fn repeated(&mut self, figures: Vec<FigureRow>) {
        self.record.repeated = figures;
    }

    /// Ends the campaign.
    pub fn finish(mut self, elapsed_s: f64, capacity: Option<Capacity>) -> RunData {
        self.record.elapsed_s = (elapsed_s * 1e3).round() / 1e3;
        self.record.capacity = capacity;
        if self.record.steps.is_empty() && self.verdicts.is_empty() {
            let cause = match self.record.skipped.is_empty() {
                true => Cause::NothingMeasured,
                false => Cause::NoPointRuns,
            };
            self.reason(Verdict::Aborted, cause);
        }
        self.record.thresholds = verdict::judge_thresholds(&self.thresholds, &self.record.steps);
        self.record.verdict = verdict::worst(self.verdicts);
        RunData {
            record: self.record,
            curves: self.curves,
            environment: self.environment,
            ..RunData::default()
        }
    }
}

/// A broken contract and a run that could not end are the campaign's too, whatever its steps are
/// for.
fn always_counts(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::QosViolation | Verdict::LoginViolation | Verdict::Aborted)
}

fn whole(value: f64) -> f64 {
    value.round()
}

/// Messages per second and CPU of each full second of a step's window.
fn seconds(step: &Step, rows: &[SeriesRow]) -> Vec<(f64, f64)> {
    let whose = step.whose_cpu.as_deref().and_then(WhoseCpu::parse);
    let per_core = match (step.cpu_percent, step.broker_cpu_percent) {
        (Some(share), Some(total)) if total > 0.0 => share / total,
        _ => 1.0,
    };
    let cpu = |row: &SeriesRow| match whose? {
        WhoseCpu::Host => row.host_busy_percent,
        WhoseCpu::BrokerCores => row.broker_cores_busy_percent,
        WhoseCpu::BrokerProcess => row.broker_cpu_percent.map(|cpu| cpu * per_core),
    };
    rows.iter()
        .filter(|row| row.phase == PhaseKind::Measure && row.length_s > 0.9 && !row.disturbed)
        .filter_map(|row| Some((row.sent_per_s + row.received_per_s, cpu(row)?)))
        .collect()
}

/// Whether the broker could not be used any more after a run.
pub fn target_failed(outcome: &Outcome) -> Option<&str> {
    match &outcome.ending {
        Ending::TargetFailed(sentence) | Ending::GeneratorFailed(sentence) => Some(sentence),
        Ending::Completed | Ending::Aborted => None,
    }
}

#[cfg(test)]
mod tests {
    use tacho_record::Position;

    use super::*;

    /// A ladder whose steps have these loads, CPU percentages and verdicts.
    fn ladder(steps: &[(f64, f64, Verdict)]) -> Campaign {
        let subject = Subject { name: "symmetric", ..Subject::default() };
        let mut campaign = Campaign::new(RunKind::Ladder, subject, "run");
        let (name, steps_of) = ("symmetric".to_owned(), (0..steps.len()).collect());
        campaign.series(Series { name, steps: steps_of, ..Series::default() });
        for (rung, (load, cpu, verdict)) in steps.iter().enumerate() {
            campaign.record.steps.push(Step {
                verdict: *verdict,
                offered_in_per_s: *load,
                achieved_in_per_s: *load,
                tps: 2.0 * load,
                cpu_percent: Some(*cpu),
                whose_cpu: Some("host".to_owned()),
                ..Step::default()
            });
            campaign.rungs.push(rung);
            campaign.seconds.push(Vec::new());
        }
        campaign.recommend(75.0);
        campaign
    }

    fn recommended(steps: &[(f64, f64, Verdict)]) -> Option<(Position, Option<f64>)> {
        let campaign = ladder(steps);
        let found = campaign.record.recommendations.first()?;
        let text = tacho_report::recommendation_text(found, campaign.steps());
        assert!(text.starts_with("recommended workload of symmetric, cpu<=75% (host): "), "{text}");
        Some((found.position, found.tps))
    }

    #[test]
    fn only_valid_steps_of_a_load_recommend_something() {
        let (ok, bound) = (Verdict::Ok, Verdict::GeneratorBound);
        let good = [(10.0, 50.0, ok), (20.0, 70.0, ok), (30.0, 80.0, ok)];
        assert_eq!(recommended(&good), Some((Position::Within, Some(50.0))));
        // Without the step in the middle it is further to interpolate.
        let late = [(10.0, 50.0, ok), (20.0, 70.0, bound), (30.0, 80.0, ok)];
        assert_eq!(recommended(&late), Some((Position::Within, Some(53.0))));
        let invalid = [(10.0, 50.0, bound), (20.0, 70.0, bound)];
        assert_eq!(recommended(&invalid), Some((Position::Unknown, None)));
        let payloads = [(10.0, 50.0, ok), (10.0, 80.0, ok)];
        assert_eq!(recommended(&payloads), None);
        assert_eq!(recommended(&good[..1]), None);
    }

    #[test]
    fn a_campaign_without_steps_is_no_success() {
        let subject = Subject { name: "guide", ..Subject::default() };
        let campaign = Campaign::new(RunKind::Suite, subject, "run");
        let results = campaign.finish(1.0, None);
        assert_eq!(results.record.verdict, Verdict::Aborted);
        assert_eq!(results.record.causes, [Cause::NothingMeasured]);
    }
}
