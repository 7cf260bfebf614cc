//! Events and samples in, the run record out. Knows no threads, files or clocks.

use std::collections::BTreeMap;

use tacho_load::{
    ActionTotals, ClientIndex, Event, Failure, IntervalSnapshot, PhaseKind, Summary, Totals,
};

use super::agents::Agents;
use super::broker_hosts;
use super::commands::CommandDone;
use super::connecting::Connecting;
use super::course::Again;
use super::disturbance::Disturbances;
use super::facts::RunFacts;
use super::headlines::{CalmSecond, Sources, headlines};
use super::hosts::Hosts;
use super::numbers::round;
use super::oversized::Oversized;
use super::row::series_row;
use super::target::RunTarget;
use super::window::step;
use crate::findings::{self, Evidence};
use crate::probe::{Samples, Usage};
use crate::verdict;
use tacho_monitor::{MonitorSpec, SourceReport};
use tacho_record::{
    ActionRecord, Cause, Check, DisturbanceLimits, Finding, Headline, MonitorRecord, PhaseRecord,
    Placement, Remark, ResourceRow, Restart, RunKind, RunRecord, SCHEMA_VERSION, SeriesRow, Step,
    StepCurves, Timing, Verdict, curve,
};
use tacho_scenario::HeadlineKind;

/// Failures of single clients that the record quotes.
const FAILURES_QUOTED: usize = 10;

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
    disturbances: Disturbances,
    /// Usage of each closed window by phase index.
    windows: BTreeMap<usize, Usage>,
    rows: Vec<PhaseRow>,
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
    oversized: Oversized,
    summary: Option<Box<Summary>>,
    pub(super) agents: Agents,
    is_taken_up: bool,
}

/// A second of a phase.
#[derive(Debug)]
struct PhaseRow {
    phase: PhaseKind,
    phase_index: usize,
    row: SeriesRow,
}

/// The verdicts of a run's parts, and the causes that the record names.
#[derive(Default)]
struct Judged {
    verdicts: Vec<Verdict>,
    causes: Vec<Cause>,
}

impl Judged {
    fn add(&mut self, verdict: Verdict, cause: Cause) {
        self.verdicts.push(verdict);
        self.causes.push(cause);
    }
}

/// The completed steps of a run and what they show.
#[derive(Default)]
struct JudgedSteps {
    steps: Vec<Step>,
    findings: Vec<Finding>,
    /// Those of the last step.
    headlines: Vec<Headline>,
}

impl Collector {
    /// Begins a run at `started_ns` with the first samples.
    pub(super) fn new(
        facts: RunFacts,
        started_ns: u64,
        first: Samples,
        limits: DisturbanceLimits,
    ) -> Self {
        let host_cores = first.host.as_ref().map_or(1, |host| host.cores.len());
        let offered_in_per_s = facts.offered_in_per_s;
        let fan_out = (!facts.closed && offered_in_per_s > 0.0)
            .then(|| facts.offered_out_per_s / offered_in_per_s);
        Self {
            disturbances: Disturbances::new(limits, fan_out, host_cores),
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
            oversized: Oversized::default(),
            summary: None,
            agents: Agents::default(),
            is_taken_up: false,
        }
    }

    /// Takes one event with samples taken right after it. Returns the row that it completes.
    pub(super) fn handle(&mut self, event: Event, samples: Samples) -> Option<SeriesRow> {
        match event {
            Event::Phase { kind, index, at_ns } => {
                self.close_window(&samples);
                self.phase_began(kind, at_ns);
                if kind == PhaseKind::Measure {
                    self.disturbances.open();
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
            Event::ShareLost(part) => {
                self.agents.lose(&part, self.started_ns);
                None
            }
            Event::ActionStarted { .. } | Event::Loading(_) | Event::TakenUp { .. } => None,
            Event::Finished(summary) => {
                self.summary = Some(summary);
                None
            }
        }
    }

    /// Whether `kind` needs samples: those that bound a window or end a second.
    pub(super) fn wants_samples(event: &Event) -> bool {
        matches!(
            event,
            Event::Phase { .. } | Event::Interval(_) | Event::Measured(_) | Event::TakenUp { .. }
        )
    }

    /// This controller has taken the run up: what was used before is not known.
    pub(super) fn take_up(&mut self, samples: Samples) {
        self.opened = self.opened.as_ref().map(|_| samples.clone());
        self.last = samples;
        self.is_taken_up = true;
    }

    fn close_window(&mut self, samples: &Samples) {
        if let Some(opened) = self.opened.take() {
            let mut samples = samples.clone();
            if samples.broker.is_none() {
                // It has ended: what it used until its last sample is better than nothing.
                samples.broker.clone_from(&self.last.broker);
            }
            let mut usage = samples.since(&opened);
            if self.is_taken_up {
                // Known to be of a part of the window, which a remark says.
                usage.between_ns = None;
            }
            self.windows.insert(self.phase_index, usage);
        }
    }

    fn phase_began(&mut self, kind: PhaseKind, at_ns: u64) {
        let start_s = at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        self.phase_ended(start_s);
        let start_s = round(start_s, 3);
        self.phases.push(PhaseRecord { name: kind.into(), start_s, ..PhaseRecord::default() });
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
                phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
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
        let kind = interval.phase;
        if let Some(phase) = self.phases.iter_mut().rev().find(|phase| phase.name == kind) {
            phase.sent += interval.counters.sent;
            phase.acknowledged += interval.counters.acked;
            phase.received += interval.counters.received;
        }
        let usage = samples.since(&self.last);
        let broker = self.last.broker.take();
        self.last = samples;
        self.last.broker = self.last.broker.take().or(broker);
        self.agents.second(interval, &usage);
        let mut row = series_row(interval, self.started_ns, &usage);
        self.hosts.complete_row(&mut row);
        row.disturbed = self.disturbances.second(interval, &row, usage.generator_waiting_percent);
        let (phase, phase_index) = (interval.phase, interval.phase_index);
        self.rows.push(PhaseRow { phase, phase_index, row: row.clone() });
        row
    }

    fn interrupted(&mut self, client: ClientIndex, why: &Failure) {
        self.interruptions += 1;
        if self.first_interruption.is_empty() {
            self.first_interruption = format!("{}: {why}", self.facts.names.client(client));
        }
    }

    fn failed(&mut self, client: ClientIndex, why: &Failure) {
        self.failures += 1;
        self.sessions_lost += u64::from(*why == Failure::SessionLost);
        self.oversized.note(|| self.facts.names.client(client), why);
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
        self.disturbances.settle(&mut step, &totals.e2e);
        self.agents.name(&mut step.agents);
        step.gates =
            verdict::gates(&step, self.facts.closed, self.facts.placement.broker_cores.len());
        let window = (totals.start_ns, totals.len_ns);
        let late = usage.between_ns.and_then(|taken| verdict::late_samples(taken, window));
        step.gates.extend(late);
        self.curves.push(StepCurves {
            latency: curve(&totals.e2e),
            service: curve(&totals.service),
            send_delay: curve(&totals.send_delay),
            seconds: Vec::new(),
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

    /// Takes what the brokers' hosts are, by their sources.
    pub(super) fn describe_hosts(
        &mut self,
        targets: &[RunTarget],
        watched: &[MonitorSpec],
        reports: &[SourceReport],
    ) {
        broker_hosts::describe(&mut self.facts.targets, targets, watched, reports);
    }

    /// The record and what belongs to it, judged. `aborted` says why the run was cut short.
    pub(super) fn finish(
        mut self,
        elapsed_s: f64,
        aborted: Option<Cause>,
    ) -> (RunRecord, Vec<SeriesRow>, Vec<StepCurves>, Vec<ResourceRow>) {
        self.phase_ended(elapsed_s);
        let mut judged = Judged::default();
        let unmeasured = self.steps.is_empty().then_some(Cause::EndedBeforeMeasuring);
        if let Some(cause) = aborted.or(unmeasured) {
            judged.add(Verdict::Aborted, cause);
        }
        let connecting = Connecting::from_summary(self.summary.as_deref());
        let actions = self.actions();
        let monitors = self.hosts.records();
        let JudgedSteps { steps, mut findings, headlines } =
            self.judge_steps(&connecting, &actions, &monitors, &mut judged);
        self.judge_clients(&actions, &mut judged);
        let thresholds = verdict::judge_thresholds(&self.facts.thresholds, &steps);
        for result in thresholds.iter().filter(|result| !result.passed) {
            judged.add(Verdict::ThresholdFailed, verdict::threshold_cause(result));
        }
        let starts = self.starts_s.iter().zip(&steps);
        let windows: Vec<_> = starts.map(|(start_s, step)| (*start_s, step.window_s)).collect();
        findings.extend(self.hosts.findings(&windows));
        findings.extend(std::mem::take(&mut self.oversized).findings());
        let record = RunRecord {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            remarks: self.remarks(&steps),
            kind: RunKind::Run,
            scenario: self.facts.scenario,
            name: self.facts.name,
            description: self.facts.description,
            description_zh: self.facts.description_zh,
            started_at: self.facts.started_at,
            elapsed_s: round(elapsed_s, 3),
            verdict: verdict::worst(judged.verdicts),
            causes: judged.causes,
            target: self.facts.targets.first().cloned().unwrap_or_default(),
            targets: self.facts.targets,
            placement: self.facts.placement,
            vars: self.facts.vars,
            seed: self.facts.seed,
            connect_us: connecting.connect_us,
            handshake_us: connecting.handshake_us,
            connect_per_s: connecting.connect_per_s,
            suback_us: connecting.suback_us,
            clients: self.facts.clients,
            clients_connected: connecting.connected,
            client_failures: self.failures,
            first_failures: self.first_failures,
            thresholds,
            monitors,
            findings,
            phases: self.phases,
            restarts: self.restarts,
            actions,
            headlines,
            steps,
            ..RunRecord::default()
        };
        let rows = self.rows.into_iter().map(|second| second.row).collect();
        (record, rows, self.curves, self.hosts.into_rows())
    }

    /// What came of timed actions in the last measured window.
    fn actions(&self) -> Vec<ActionRecord> {
        let Some(start_s) = self.starts_s.last() else { return Vec::new() };
        let commands = (&self.commands[..], self.started_ns);
        self.facts.actions.records(*start_s, &self.acted, commands, &self.restarts)
    }

    /// Takes the measured steps, completes and judges them.
    fn judge_steps(
        &mut self,
        connecting: &Connecting,
        actions: &[ActionRecord],
        monitors: &[MonitorRecord],
        judged: &mut Judged,
    ) -> JudgedSteps {
        let mut all = JudgedSteps::default();
        for (phase_index, mut step) in std::mem::take(&mut self.steps) {
            let index = all.steps.len();
            self.complete_step(&mut step, phase_index, self.starts_s[index], connecting);
            let rows = self.measured_rows(phase_index);
            all.findings.extend(self.judge_step(&mut step, index, &rows, monitors, judged));
            let sources = Sources {
                actions,
                restarts: &self.restarts,
                step: &step,
                rows: &rows,
                calm: &self.calm,
                asking: &self.facts.asking,
            };
            all.headlines = headlines(&self.facts.headlines, &sources);
            all.steps.push(step);
        }
        all
    }

    /// Adds to a step what was known only after its window.
    fn complete_step(
        &self,
        step: &mut Step,
        phase_index: usize,
        start_s: f64,
        connecting: &Connecting,
    ) {
        self.hosts.complete_step(step, start_s);
        step.connect_us = connecting.connect_us;
        step.connect_per_s = connecting.connect_per_s;
        step.connect_s = connecting.connect_s.map(|seconds| round(seconds, 6));
        step.sessions_lost = self.sessions_lost;
        step.kills = self.restarts.len() as u64;
        if step.kills > 0 {
            // Messages that wait for a killed broker do not make the generator late, and the
            // samples of one that was killed end with it.
            let of_kills = [Some(Check::SendDelay), Some(Check::LateSamples)];
            step.gates.retain(|gate| !of_kills.contains(&gate.name.known()));
        }
        let broker_cores = self.windows.get(&phase_index).and_then(|usage| usage.broker_cores);
        step.settle_cpu(&self.facts.placement, broker_cores);
        step.settle_busier();
    }

    /// The full measured seconds of a phase.
    fn measured_rows(&self, phase_index: usize) -> Vec<&SeriesRow> {
        let is_measured =
            |row: &&PhaseRow| row.phase_index == phase_index && row.phase == PhaseKind::Measure;
        let rows = self.rows.iter().filter(is_measured).map(|second| &second.row);
        rows.filter(|row| row.length_s > 0.9).collect()
    }

    /// Judges the step at `index`, and returns what it shows.
    fn judge_step(
        &self,
        step: &mut Step,
        index: usize,
        rows: &[&SeriesRow],
        monitors: &[MonitorRecord],
        judged: &mut Judged,
    ) -> Vec<Finding> {
        let evidence = Evidence {
            step,
            rows,
            curve: self.curves.get(index).map_or(&[], |curves| &curves.latency),
            one_machine: self.facts.placement.one_machine,
            monitors,
            targets: &self.facts.targets,
        };
        let found = findings::of_step(&evidence, index);
        let (mut verdict, causes) = verdict::judge_step(step, rows);
        judged.causes.extend(causes);
        let missing =
            self.agents.missing(self.starts_s.get(index + 1).copied().unwrap_or(f64::MAX));
        if !missing.is_empty() {
            verdict = verdict::worst([verdict, Verdict::GeneratorBound]);
        }
        judged.causes.extend(missing);
        if let Some(bound) = found.iter().find(|found| found.code == findings::NETWORK_BOUND) {
            verdict = verdict::worst([verdict, Verdict::NetworkBound]);
            let observation = bound.observation.clone();
            judged.causes.extend(observation.map(|observation| Cause::Observed { observation }));
        }
        step.verdict = verdict;
        judged.verdicts.push(verdict);
        found
    }

    /// Judges what came of actions, and failures of clients.
    fn judge_clients(&self, actions: &[ActionRecord], judged: &mut Judged) {
        for (verdict, cause) in verdict::judge_actions(actions) {
            judged.add(verdict, cause);
        }
        if self.failures > 0 {
            let verdict = match self.exhausted {
                true => Verdict::GeneratorBound,
                false => Verdict::NotSustained,
            };
            let first = self.first_failures.first().cloned().unwrap_or_default();
            judged.add(verdict, Cause::ClientsFailed { count: self.failures, first });
        }
    }

    /// What a reader must know before comparing figures.
    fn remarks(&self, steps: &[Step]) -> Vec<Remark> {
        let mut remarks = remarks(&self.facts, steps);
        let rtt_failure = self.summary.as_ref().and_then(|summary| summary.rtt_failure.clone());
        remarks.extend(rtt_failure.map(|why| Remark::RoundTripsMissing { why }));
        if !self.restarts.is_empty() {
            remarks.push(Remark::BrokerKilled);
        }
        if !self.facts.actions.is_empty() {
            remarks.push(Remark::Eventful);
        }
        if self.interruptions > 0 {
            let (count, first) = (self.interruptions, self.first_interruption.clone());
            remarks.push(Remark::Interrupted { count, first });
        }
        remarks
    }
}

/// The remarks that follow from the scenario, the machines and the steps.
fn remarks(facts: &RunFacts, steps: &[Step]) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = facts.notes.iter().cloned().map(Remark::Message).collect();
    if facts.placement.one_machine {
        remarks.push(Remark::OneMachine);
    }
    remarks.push(generator_remark(&facts.placement));
    let rested = steps.iter().any(|step| step.generator_rests > 0);
    if rested && facts.placement.timing != Timing::Batch {
        remarks.push(Remark::GeneratorRested);
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

/// How the generator's threads waited.
fn generator_remark(placement: &Placement) -> Remark {
    let threads = placement.generator_threads as u64;
    match (placement.timing, placement.spin_budget_percent) {
        (Timing::Batch, _) => Remark::GeneratorBatched,
        (Timing::Spin, _) => Remark::GeneratorNeverSlept { threads },
        (Timing::Auto, Some(budget_percent)) => Remark::GeneratorSpun { threads, budget_percent },
        (Timing::Auto | Timing::Sleep, _) => Remark::GeneratorSlept { why: placement.no_own_core },
    }
}
