//! Events and samples in, the run record out. Knows no threads, files or clocks.

use std::collections::BTreeMap;

use tacho_load::{
    ActionTotals, Event, Failure, IntervalSnapshot, PhaseKind, Summary, ThreadUsage, Totals,
};

use super::commands::CommandDone;
use super::course::Again;
use super::deeds::Deeds;
use super::headlines::{CalmSecond, Sources, headlines};
use super::hosts::Hosts;
use super::names::Names;
use super::row::series_row;
use super::window::step;
use crate::findings::{self, Evidence};
use crate::probe::{Samples, Usage};
use crate::verdict;
use tacho_record::{
    Cause, Check, LatencyStats, PhaseRecord, Placement, Remark, ResourceRow, Restart, RunKind,
    RunRecord, SCHEMA_VERSION, SeriesRow, Step, StepCurves, TargetRecord, Verdict, curve,
};
use tacho_scenario::threshold::Thresholds;
use tacho_scenario::{HeadlineKind, Scenario, VarValue};

/// Failures of single clients that the record quotes.
const FAILURES_QUOTED: usize = 10;

/// What is known about a run before it starts.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Scenario name.
    pub scenario: String,
    /// Run name.
    pub name: String,
    /// Description of the scenario.
    pub description: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// What is loaded, at least one broker.
    pub targets: Vec<TargetRecord>,
    /// Where things run.
    pub placement: Placement,
    /// Variables.
    pub vars: BTreeMap<String, VarValue>,
    /// Seed.
    pub seed: u64,
    /// What the scenario says about where it came from.
    pub notes: Vec<String>,
    /// Thresholds.
    pub thresholds: Thresholds,
    /// Clients of the plan.
    pub clients: u64,
    /// Delivery rate that the plan implies at its publish rate.
    pub offered_out_per_s: f64,
    /// Names of clients and topics.
    pub names: Names,
    /// What happens while the run is measured.
    pub deeds: Deeds,
    /// For each group of the plan, whether anything happens to it.
    pub concerned: Vec<bool>,
    /// Groups that ask and get answers.
    pub asking: Vec<String>,
    /// The figures that the scenario is for.
    pub headlines: Vec<HeadlineKind>,
    /// At least one publisher is closed: there is no rate to reach.
    pub closed: bool,
    /// Every publisher uses QoS 1 or 2: acknowledgements tell what the broker took.
    pub acknowledged: bool,
}

/// Collects one run.
#[derive(Debug)]
pub(super) struct Collector {
    facts: RunFacts,
    started_ns: u64,
    phase: Option<PhaseKind>,
    phase_index: usize,
    last: Samples,
    /// Samples at the beginning of the current window.
    opened: Option<Samples>,
    /// Usage of each closed window by phase index.
    windows: BTreeMap<usize, Usage>,
    rows: Vec<(usize, SeriesRow)>,
    steps: Vec<(usize, Step)>,
    /// Start of each step in seconds since the start of the run.
    starts_s: Vec<f64>,
    /// What watched hosts told.
    pub(super) hosts: Hosts,
    curves: Vec<StepCurves>,
    /// What happened in each phase so far.
    phases: Vec<PhaseRecord>,
    restarts: Vec<Restart>,
    /// What came of actions, of the load's and of commands.
    acted: Vec<ActionTotals>,
    commands: Vec<CommandDone>,
    /// The measured seconds of bystanders, where a headline is about them.
    calm: Vec<CalmSecond>,
    sessions_lost: u64,
    failures: u64,
    interruptions: u64,
    first_interruption: String,
    first_failures: Vec<String>,
    exhausted: bool,
    summary: Option<Box<Summary>>,
}

impl Collector {
    /// Begins a run at `started_ns` with the first samples.
    pub(super) fn new(facts: RunFacts, started_ns: u64, first: Samples) -> Self {
        Self {
            facts,
            started_ns,
            phase: None,
            phase_index: 0,
            last: first,
            opened: None,
            windows: BTreeMap::new(),
            rows: Vec::new(),
            steps: Vec::new(),
            starts_s: Vec::new(),
            hosts: Hosts::default(),
            curves: Vec::new(),
            phases: Vec::new(),
            restarts: Vec::new(),
            acted: Vec::new(),
            commands: Vec::new(),
            calm: Vec::new(),
            sessions_lost: 0,
            failures: 0,
            interruptions: 0,
            first_interruption: String::new(),
            first_failures: Vec::new(),
            exhausted: false,
            summary: None,
        }
    }

    /// Takes one event with samples taken right after it. Returns the row that it completes.
    pub(super) fn handle(&mut self, event: Event, samples: Samples) -> Option<SeriesRow> {
        match event {
            Event::Phase { kind, index, at_ns } => {
                self.close_window(&samples);
                self.phase_began(kind, at_ns);
                if kind == PhaseKind::Measure {
                    self.opened = Some(samples);
                }
                self.phase = Some(kind);
                self.phase_index = index;
                None
            }
            Event::Interval(interval) => Some(self.interval(&interval, samples)),
            Event::Interrupted { client, why } => {
                self.interrupted(client, &why);
                None
            }
            Event::Failed { client, why } => {
                self.failed(client, &why);
                None
            }
            Event::Measured(totals) => {
                self.close_window(&samples);
                self.measured(&totals);
                None
            }
            Event::ActionStarted { .. } => None,
            Event::Finished(summary) => {
                self.summary = Some(summary);
                None
            }
        }
    }

    /// Whether `kind` needs samples: those that bound a window or end a second.
    pub(super) fn wants_samples(event: &Event) -> bool {
        matches!(event, Event::Phase { .. } | Event::Interval(_) | Event::Measured(_))
    }

    fn close_window(&mut self, samples: &Samples) {
        if let Some(opened) = self.opened.take() {
            let mut samples = samples.clone();
            if samples.broker.is_none() {
                // It has ended: what it used until its last sample is better than nothing.
                samples.broker.clone_from(&self.last.broker);
            }
            self.windows.insert(self.phase_index, samples.since(&opened));
        }
    }

    fn phase_began(&mut self, kind: PhaseKind, at_ns: u64) {
        let start_s = at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        self.phase_ended(start_s);
        let name = kind.name().to_owned();
        let start_s = round(start_s, 3);
        self.phases.push(PhaseRecord { name, start_s, ..PhaseRecord::default() });
    }

    /// The phase that began last ends.
    fn phase_ended(&mut self, at_s: f64) {
        if let Some(last) = self.phases.last_mut() {
            last.length_s = round((at_s - last.start_s).max(0.0), 3);
        }
    }

    /// Takes what happened to a broker.
    pub(super) fn restarted(&mut self, target: &str, restarts: &[Again]) {
        self.restarts.extend(restarts.iter().map(|again| {
            let at_s = again.at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
            let phase = self.phases.iter().rev().find(|phase| phase.start_s <= at_s);
            Restart {
                target: target.to_owned(),
                phase: phase.map_or_else(String::new, |phase| phase.name.clone()),
                at_s: round(at_s, 3),
                serving_ms: round(again.serving_ns as f64 / 1e6, 1),
                waiting_max: again.recovery.map(|recovery| recovery.waiting_max),
                drained_ms: again
                    .recovery
                    .and_then(|recovery| recovery.drained_ns)
                    .map(|ns| round(ns as f64 / 1e6, 1)),
            }
        }));
    }

    fn wants_calm(&self) -> bool {
        let about = [HeadlineKind::Isolation, HeadlineKind::Churn];
        self.facts.headlines.iter().any(|kind| about.contains(kind))
    }

    /// Takes what commands did.
    pub(super) fn commanded(&mut self, commands: Vec<CommandDone>) {
        self.commands = commands;
    }

    fn interval(&mut self, interval: &IntervalSnapshot, samples: Samples) -> SeriesRow {
        if interval.phase == PhaseKind::Measure && self.wants_calm() {
            self.calm.push(CalmSecond::of(interval, self.started_ns, &self.facts.concerned));
        }
        let name = interval.phase.name();
        if let Some(phase) = self.phases.iter_mut().rev().find(|phase| phase.name == name) {
            phase.sent += interval.counters.sent;
            phase.acknowledged += interval.counters.acked;
            phase.received += interval.counters.received;
        }
        let usage = samples.since(&self.last);
        let broker = self.last.broker.take();
        self.last = samples;
        self.last.broker = self.last.broker.take().or(broker);
        let mut row = series_row(interval, self.started_ns, &usage);
        self.hosts.complete_row(&mut row);
        self.rows.push((interval.phase_index, row.clone()));
        row
    }

    fn interrupted(&mut self, client: u32, why: &Failure) {
        self.interruptions += 1;
        if self.first_interruption.is_empty() {
            self.first_interruption = format!("{}: {why}", self.facts.names.client(client));
        }
    }

    fn failed(&mut self, client: u32, why: &Failure) {
        self.failures += 1;
        self.sessions_lost += u64::from(*why == Failure::SessionLost);
        let sentence = format!("{}: {why}", self.facts.names.client(client));
        if let Failure::Connect(error) = why {
            self.exhausted |= error.cause.is_exhaustion();
        }
        if self.first_failures.len() < FAILURES_QUOTED {
            self.first_failures.push(sentence);
        }
    }

    fn measured(&mut self, totals: &Totals) {
        let usage = self.windows.get(&totals.phase_index).cloned().unwrap_or_default();
        let mut step = step(totals, &usage, &self.facts);
        step.gates =
            verdict::gates(&step, self.facts.closed, self.facts.placement.broker_cores.len());
        self.curves.push(StepCurves {
            latency: curve(&totals.e2e),
            service: curve(&totals.service),
            send_delay: curve(&totals.send_delay),
        });
        self.starts_s.push(totals.start_ns.saturating_sub(self.started_ns) as f64 / 1e9);
        self.acted.clone_from(&totals.actions);
        self.steps.push((totals.phase_index, step));
    }

    /// When hosts must have told about the last window: rows come once a second, and the end of a
    /// window is rarely that of a row. 0 when nothing was measured.
    pub(super) fn hosts_due_ns(&self) -> u64 {
        const GRACE_NS: u64 = 800_000_000;
        let end_s = self
            .starts_s
            .iter()
            .zip(&self.steps)
            .map(|(start_s, (_, step))| start_s + step.window_s);
        match end_s.reduce(f64::max) {
            Some(end_s) => self.started_ns + (end_s * 1e9) as u64 + GRACE_NS,
            None => 0,
        }
    }

    /// The record and what belongs to it, judged. `aborted` says why the run was cut short.
    pub(super) fn finish(
        mut self,
        elapsed_s: f64,
        aborted: Option<Cause>,
    ) -> (RunRecord, Vec<SeriesRow>, Vec<StepCurves>, Vec<ResourceRow>) {
        self.phase_ended(elapsed_s);
        let mut verdicts = Vec::new();
        let mut causes = Vec::new();
        if let Some(cause) = aborted {
            verdicts.push(Verdict::Aborted);
            causes.push(cause);
        } else if self.steps.is_empty() {
            verdicts.push(Verdict::Aborted);
            causes.push(Cause::EndedBeforeMeasuring);
        }
        let stats = |histogram: Option<&tacho_load::Histogram>| {
            histogram.map_or_else(LatencyStats::default, LatencyStats::of)
        };
        let summary = self.summary;
        let connect_us = stats(summary.as_ref().map(|summary| &summary.connect));
        let connecting = summary.as_ref().filter(|summary| summary.connect_span_ns > 0);
        let connect_s = connecting.map(|summary| summary.connect_span_ns as f64 / 1e9);
        let connect_per_s = connecting
            .zip(connect_s)
            .map(|(summary, seconds)| round(summary.connected as f64 / seconds, 1));
        let actions = match self.starts_s.last() {
            Some(start_s) => self.facts.deeds.records(
                *start_s,
                &self.acted,
                (&self.commands, self.started_ns),
                &self.restarts,
            ),
            None => Vec::new(),
        };
        let mut on_top = Vec::new();
        let mut steps = Vec::new();
        let mut findings = Vec::new();
        let monitors = self.hosts.records();
        for ((phase_index, mut step), start_s) in self.steps.into_iter().zip(&self.starts_s) {
            self.hosts.complete_step(&mut step, *start_s);
            step.connect_us = connect_us;
            step.connect_per_s = connect_per_s;
            step.connect_s = connect_s.map(|seconds| round(seconds, 6));
            step.sessions_lost = self.sessions_lost;
            step.kills = self.restarts.len() as u64;
            if step.kills > 0 {
                // What waits for a broker is no lateness of the generator.
                step.gates.retain(|gate| gate.name != Check::SendDelay.name());
            }
            let broker_cores = self.windows.get(&phase_index).and_then(|usage| usage.broker_cores);
            step.settle_cpu(&self.facts.placement, broker_cores);
            step.settle_busier();
            let rows: Vec<&SeriesRow> = self
                .rows
                .iter()
                .filter(|(index, row)| {
                    *index == phase_index && row.phase == "measure" && row.length_s > 0.9
                })
                .map(|(_, row)| row)
                .collect();
            let found = findings::of_step(
                &Evidence {
                    step: &step,
                    rows: &rows,
                    curve: self.curves.get(steps.len()).map_or(&[], |curves| &curves.latency),
                    one_machine: self.facts.placement.one_machine,
                    monitors: &monitors,
                },
                steps.len(),
            );
            let (mut verdict, found_causes) = verdict::judge_step(&step, &rows);
            causes.extend(found_causes);
            if let Some(bound) = found.iter().find(|found| found.code == findings::NETWORK_BOUND) {
                verdict = verdict::worst([verdict, Verdict::NetworkBound]);
                let observation = bound.observation.clone();
                causes.extend(observation.map(|observation| Cause::Observed { observation }));
            }
            findings.extend(found);
            step.verdict = verdict;
            verdicts.push(verdict);
            on_top = headlines(
                &self.facts.headlines,
                &Sources {
                    actions: &actions,
                    restarts: &self.restarts,
                    step: &step,
                    rows: &rows,
                    calm: &self.calm,
                    asking: &self.facts.asking,
                },
            );
            steps.push(step);
        }
        for (verdict, cause) in verdict::judge_actions(&actions) {
            verdicts.push(verdict);
            causes.push(cause);
        }
        if self.failures > 0 {
            verdicts.push(match self.exhausted {
                true => Verdict::GeneratorBound,
                false => Verdict::NotSustained,
            });
            let first = self.first_failures.first().cloned().unwrap_or_default();
            causes.push(Cause::ClientsFailed { count: self.failures, first });
        }
        let thresholds = verdict::judge_thresholds(&self.facts.thresholds, &steps);
        for result in thresholds.iter().filter(|result| !result.passed) {
            verdicts.push(Verdict::ThresholdFailed);
            causes.push(verdict::threshold_cause(result));
        }
        let windows: Vec<(f64, f64)> = self
            .starts_s
            .iter()
            .zip(&steps)
            .map(|(start_s, step)| (*start_s, step.window_s))
            .collect();
        findings.extend(self.hosts.findings(&windows));
        let mut remarks = remarks(&self.facts, &steps);
        let rtt_failure = summary.as_ref().and_then(|summary| summary.rtt_failure.clone());
        remarks.extend(rtt_failure.map(|why| Remark::RoundTripsMissing { why }));
        if !self.restarts.is_empty() {
            remarks.push(Remark::BrokerKilled);
        }
        if !self.facts.deeds.is_empty() {
            remarks.push(Remark::Eventful);
        }
        if self.interruptions > 0 {
            let (count, first) = (self.interruptions, self.first_interruption);
            remarks.push(Remark::Interrupted { count, first });
        }
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            remarks,
            kind: RunKind::Run,
            scenario: self.facts.scenario,
            name: self.facts.name,
            description: self.facts.description,
            started_at: self.facts.started_at,
            elapsed_s: round(elapsed_s, 3),
            verdict: verdict::worst(verdicts),
            causes,
            target: self.facts.targets.first().cloned().unwrap_or_default(),
            targets: self.facts.targets,
            placement: self.facts.placement,
            vars: self.facts.vars,
            seed: self.facts.seed,
            connect_us,
            handshake_us: stats(summary.as_ref().map(|summary| &summary.handshake)),
            connect_per_s,
            suback_us: stats(summary.as_ref().map(|summary| &summary.suback)),
            clients: self.facts.clients,
            clients_connected: summary.as_ref().map_or(0, |summary| summary.connected),
            client_failures: self.failures,
            first_failures: self.first_failures,
            thresholds,
            monitors,
            findings,
            phases: self.phases,
            restarts: self.restarts,
            actions,
            headlines: on_top,
            steps,
            ..RunRecord::default()
        };
        let rows = self.rows.into_iter().map(|(_, row)| row).collect();
        (record, rows, self.curves, self.hosts.into_rows())
    }
}

/// What a reader must know before comparing figures.
fn remarks(facts: &RunFacts, steps: &[Step]) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = facts.notes.iter().cloned().map(Remark::Message).collect();
    if facts.placement.one_machine {
        remarks.push(Remark::OneMachine);
    }
    if facts.closed {
        remarks.push(Remark::ClosedModel);
    }
    let unverified = facts.targets.iter().filter(|target| target.tls_verified == Some(false));
    remarks.extend(unverified.map(|target| {
        let broker = target.broker.clone();
        Remark::CertificateNotVerified { broker }
    }));
    if steps.iter().any(|step| step.broker_cpu_percent.is_none()) {
        remarks.push(Remark::BrokerNotObserved);
    }
    remarks
}

pub(super) fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

/// Busy time of the generator's threads in percent of a core: the sum and the largest.
pub(super) fn busy_percent(threads: &[ThreadUsage]) -> (f64, f64) {
    let busy = || threads.iter().map(|thread| thread.busy() * 100.0);
    (round(busy().sum(), 2), round(busy().fold(0.0, f64::max), 2))
}

/// The facts that a scenario knows; the rest is the machine's.
impl RunFacts {
    /// Takes over what the scenario says.
    pub fn of(
        scenario: &Scenario,
        plan: &tacho_load::Plan,
        name: String,
        started_at: String,
        targets: Vec<TargetRecord>,
        placement: Placement,
    ) -> Self {
        let paces = || plan.groups.iter().flat_map(|group| &group.publish);
        let deeds = Deeds::of(scenario);
        Self {
            scenario: scenario.name.clone(),
            name,
            description: scenario.description.clone(),
            started_at,
            targets,
            placement,
            vars: scenario.vars.clone(),
            seed: scenario.seed,
            notes: scenario.notes.clone(),
            thresholds: scenario.thresholds.clone(),
            clients: plan.client_count() as u64,
            offered_out_per_s: plan.offered_out_per_s(),
            names: Names::of(scenario, plan),
            concerned: plan.groups.iter().map(|group| deeds.concern(&group.name)).collect(),
            deeds,
            asking: plan
                .groups
                .iter()
                .filter(|group| {
                    let mut streams = group.clients.iter().flat_map(|client| &client.streams);
                    streams.any(|stream| stream.response_topic.is_some())
                })
                .map(|group| group.name.clone())
                .collect(),
            headlines: scenario.headlines.clone(),
            closed: paces().any(|block| block.pace.per_second().is_none()),
            acknowledged: paces().all(|block| u8::from(block.qos) > 0),
        }
    }
}
