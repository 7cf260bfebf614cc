//! The loop that drives the load generator through a scenario.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tacho_load::{End, Event, PhaseKind, PlanError, StartError};
use tacho_monitor::{MonitorSpec, Watch, WatchError};

use super::action_progress::ActionProgress;
use super::agents::Agents;
use super::bridge_log::{self, BridgeLog};
use super::brokers::Brokers;
use super::collector::Collector;
use super::commands::Commands;
use super::course::Again;
use super::ending::{Ending, ending};
use super::facts::RunFacts;
use super::figures::FigureFiles;
use super::group_files::GroupFiles;
use super::hosts::{Hosts, specs};
use super::load::{Load, LoadError};
use super::names::Names;
use super::numbers::round;
use super::outgoing::Outgoing;
use super::parts;
use super::planned_actions::PlannedActions;
use super::resume::{Left, ResumeFile, ResumeState};
use super::sample_files::SampleFiles;
use super::target::RunTarget;
use crate::agents::{Fleet, FleetError, KeptRun};
use crate::environment;
use crate::plan::{PlanOptions, plan};
use crate::points::{IntervalLatencies, RunPoints};
use crate::probe::{Probe, Samples};
use tacho_monitor::now_ns;
use tacho_output::Outputs;
use tacho_record::Timestamp;
use tacho_record::{
    ActionEffect, ActionState, BrokerRow, DisturbanceLimits, Given, OutputError, PartRow,
    Placement, Remark, ResourceRow, RunData, StepAgent,
};
use tacho_record::{RunDirectory, SeriesRow};
use tacho_rig::{lower_priority, move_to};
use tacho_scenario::Scenario;

/// How long the loop waits for an event before it looks at the stop flag.
const POLL: Duration = Duration::from_millis(100);

/// Everything that a run needs beside its scenario.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// What to run.
    pub scenario: Scenario,
    /// Name of the run.
    pub name: String,
    /// What the user calls it and says about it.
    pub given: Given,
    /// What to load, at least one broker.
    pub targets: Vec<RunTarget>,
    /// Where things run.
    pub placement: Placement,
    /// Limits from which on a second counts as disturbed.
    pub limits: DisturbanceLimits,
    /// What commands of the scenario did.
    pub commands: Arc<Commands>,
    /// Hosts to watch; this machine is watched anyway where a broker runs on it.
    pub monitors: Vec<MonitorSpec>,
    /// Where figures go while they arise.
    pub outputs: Arc<Outputs>,
    /// The agents that make the load; without them this process does.
    pub fleet: Option<Arc<Fleet>>,
    /// What another controller has left of the run, which is taken up.
    pub resume: Option<Box<ResumeState>>,
}

/// News of a running run.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A phase began.
    Phase {
        /// Which.
        kind: PhaseKind,
        /// How long it is planned to take; absent where that depends on the broker.
        planned: Option<Duration>,
        /// Which one of the scenario's phases it is, counted from 1.
        number: usize,
        /// How many phases there are.
        of: usize,
    },
    /// A second passed.
    Second {
        /// What happened in it.
        row: Box<SeriesRow>,
        /// Clients of the scenario.
        clients: u64,
        /// Its groups, and its brokers, where there are several.
        parts: Vec<PartRow>,
        /// The agents that make the load.
        agents: Vec<StepAgent>,
    },
    /// A watched host told what it spent.
    Host(Box<ResourceRow>),
    /// A client failed.
    Failed(String),
    /// An output has its first error. It goes on trying.
    Trouble {
        /// The output.
        output: String,
        /// The error.
        why: String,
    },
    /// A timed action began.
    Acted {
        /// What it does.
        effect: ActionEffect,
        /// To how many clients.
        clients: u64,
    },
    /// An agent was lost, and the run goes on without its share.
    AgentLost {
        /// The agent.
        agent: String,
        /// Its clients, and those of the run.
        clients: (u64, u64),
        /// Why.
        why: String,
    },
    /// More is known of a timed action that has begun.
    Action(Box<ActionState>),
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// What it measured.
    pub data: RunData,
    /// Why the engine ended.
    pub ending: Ending,
    /// What is left of the run for another controller; to be [cleared](Left::clear) once there is a
    /// record.
    pub left: Option<Left>,
}

/// A run that could not begin, or whose results could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario cannot run as a whole.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// The system refused a resource.
    #[error("{0}")]
    System(std::io::Error),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A host cannot be watched.
    #[error(transparent)]
    Monitor(#[from] WatchError),
    /// Agents do not make the load.
    #[error(transparent)]
    Agents(#[from] FleetError),
}

impl From<LoadError> for RunError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Here(StartError::Plan(error)) => Self::Plan(error),
            LoadError::Here(StartError::System(error)) => Self::System(error),
            LoadError::Divided(error) => Self::Agents(error),
        }
    }
}

/// Runs a scenario to its end or until `stop` becomes true, reports on the way, and leaves the
/// files of its samples in `directory`; the caller writes the record.
///
/// Where the placement has background cores, the calling thread moves there with the lowest
/// priority and stays, so it needs a thread of its own.
///
/// # Errors
/// When the scenario cannot run, threads cannot be started or files cannot be written. A broker
/// that cannot be reached is no error but an [`Ending`].
pub fn run(
    config: &RunConfig,
    directory: &RunDirectory,
    stop: &AtomicBool,
    on_progress: impl FnMut(Progress),
) -> Result<Outcome, RunError> {
    let plan = plan_of(config)?;
    // The threads that load starts to generate bind themselves to their own cores.
    let background = &config.placement.background_cores;
    move_to(background);
    let watched = specs(&config.monitors, &config.targets);
    let watch = Watch::start(&watched)?;
    let scenario_toml = config.scenario.to_toml();
    let environment = environment::read(config.placement.clone(), &scenario_toml);
    directory.write_scenario(&scenario_toml)?;
    directory.write_environment(&environment)?;
    let mut files = SampleFiles::open(directory, config.targets.len())?;
    let mut running = Running::new(config, directory, &plan, watch, &watched, on_progress)?;
    let fleet = config.fleet.as_deref();
    let mut load = running.begin(config, plan, stop)?;
    if !background.is_empty() {
        lower_priority();
    }
    let end = running.follow(&load, stop, &mut files)?;
    let left = running.left(load.take_kept(), &end)?;
    let (mut agents, about_agents) = load.end(fleet);
    files.flush_load()?;
    let Running {
        mut watch,
        mut collector,
        figures,
        group_files,
        broker_rows,
        started_ns,
        mut outgoing,
        ended_by,
        taken_up_s,
        ..
    } = running;
    let thinned = figures.end()?;
    group_files.end()?;
    if end == End::Completed {
        std::thread::sleep(Duration::from_nanos(collector.hosts_due_ns().saturating_sub(now_ns())));
    }
    files.write_last(watch.rows(), &mut collector.hosts, &outgoing)?;
    let reports = watch.stop();
    collector.describe_hosts(&config.targets, &watched, &reports);
    collector.hosts.end(reports);
    for (target, restarts) in config.targets.iter().zip(restarts(&config.targets)) {
        collector.restarted(&target.record.name, &restarts);
    }
    collector.commanded(config.commands.all());
    let (ending, aborted) = ending(end, ended_by);
    collector.agents.enter_losses(&mut agents);
    let elapsed_s = now_ns().saturating_sub(started_ns) as f64 / 1e9;
    let (mut record, rows, curves, hosts) = collector.finish(elapsed_s, aborted);
    record.given = config.given.clone();
    record.findings.extend(outgoing.end(&record));
    record.remarks.extend(thinned);
    record.remarks.extend(about_agents);
    record.remarks.extend(taken_up_s.map(|at_s| Remark::TakenUp { at_s }));
    record.agents = agents;
    let (brokers, environment) = (broker_rows, Some(environment));
    let data = RunData { record, rows, curves, hosts, brokers, environment };
    Ok(Outcome { data, ending, left })
}

/// The plan of a run, which is the same when it is taken up.
fn plan_of(config: &RunConfig) -> Result<tacho_load::Plan, PlanError> {
    let new_id = || (Timestamp::now().subsecond_ns() / 1000) ^ std::process::id();
    let options = PlanOptions {
        targets: config.targets.iter().flat_map(|target| target.addresses.clone()).collect(),
        threads: config.placement.generator_threads,
        cpus: config.placement.generator_cores.clone(),
        own_cores: config.placement.spin_budget_percent.is_some(),
        run_id: config.resume.as_deref().map_or_else(new_id, ResumeState::run_id),
    };
    plan(&config.scenario, &options)
}

/// A run while the engine works.
struct Running<'c, P> {
    /// The first broker, whose process the probe follows.
    first: Option<&'c RunTarget>,
    started: Timestamp,
    started_ns: u64,
    phases: Vec<tacho_load::Phase>,
    /// Names of the plan's groups.
    groups: Vec<String>,
    /// Names of the agents.
    agents: Vec<String>,
    clients: u64,
    names: Names,
    actions: PlannedActions,
    watch: Watch,
    probe: Probe,
    collector: Collector,
    brokers: Brokers,
    broker_rows: Vec<BrokerRow>,
    so_far: ActionProgress,
    figures: FigureFiles<'c>,
    group_files: GroupFiles<'c>,
    outgoing: Outgoing,
    /// The output whose failure ends the run, and its error.
    ended_by: Option<(String, String)>,
    directory: &'c RunDirectory,
    /// Where another controller could take the run up.
    resume: Option<ResumeFile<'c>>,
    /// What comes now happened while another controller had the run.
    is_past: bool,
    /// When this controller took the run up.
    taken_up_s: Option<f64>,
    on_progress: P,
}

impl<'c, P: FnMut(Progress)> Running<'c, P> {
    fn new(
        config: &'c RunConfig,
        directory: &'c RunDirectory,
        plan: &tacho_load::Plan,
        watch: Watch,
        watched: &[MonitorSpec],
        on_progress: P,
    ) -> Result<Self, OutputError> {
        let resumed = config.resume.as_deref();
        let now = || (Timestamp::now(), now_ns());
        let (started, started_ns) = resumed.map_or_else(now, ResumeState::started);
        let facts = RunFacts::of(
            &config.scenario,
            plan,
            config.name.clone(),
            started.rfc3339(),
            config.targets.iter().map(|target| target.record.clone()).collect(),
            config.placement.clone(),
        );
        let first = config.targets.first();
        let url = first.map_or("", |target| target.record.broker.as_str());
        let measured_s = plan.phases.iter().map(measured_s).sum();
        let figures = FigureFiles::begin(directory, started, url, facts.acknowledged, measured_s)?;
        let mut probe = Probe::new(
            first.and_then(|target| target.record.pid),
            first.map(|target| target.cores.clone()).unwrap_or_default(),
            first.is_some_and(|target| target.is_local),
        );
        if config.placement.is_divided() {
            probe = probe.with_generator();
        }
        let (clients, names, actions) = (facts.clients, facts.names.clone(), facts.actions.clone());
        let mut collector = Collector::new(facts, started_ns, probe.sample(), config.limits);
        collector.hosts = Hosts::new(started_ns, watched, &config.targets);
        let agents: Vec<String> = config.fleet.iter().flat_map(|fleet| fleet.names()).collect();
        collector.agents = Agents::new(agents.clone());
        let (name, scenario) = (&config.name, &config.scenario.name);
        let points = RunPoints::new(name, directory.path(), scenario, started);
        let courses = config.targets.iter();
        let courses =
            courses.map(|target| (target.record.name.clone(), Arc::clone(&target.course)));
        let commands = Arc::clone(&config.commands);
        Ok(Self {
            first,
            started,
            started_ns,
            phases: plan.phases.clone(),
            groups: plan.groups.iter().map(|group| group.name.clone()).collect(),
            agents,
            clients,
            names,
            watch,
            probe,
            collector,
            brokers: Brokers::new(&config.targets, started_ns),
            broker_rows: Vec::new(),
            so_far: ActionProgress::new(&actions, started_ns, courses.collect(), commands),
            actions,
            figures,
            group_files: GroupFiles::begin(directory, started, plan.groups.len())?,
            outgoing: Outgoing::new(points, Arc::clone(&config.outputs)),
            ended_by: None,
            directory,
            resume: None,
            is_past: resumed.is_some(),
            taken_up_s: None,
            on_progress,
        })
    }

    /// Begins the load, or takes it up, and leaves what another controller needs to know.
    fn begin(
        &mut self,
        config: &RunConfig,
        plan: tacho_load::Plan,
        stop: &AtomicBool,
    ) -> Result<Load, RunError> {
        let (fleet, run_id) = (config.fleet.as_deref(), plan.run_id);
        if let Some(state) = config.resume.as_deref() {
            let state = state.clone().next();
            self.resume = Some(ResumeFile::write(self.directory, state.clone())?);
            return Ok(Load::take_up(plan, fleet, &state, stop)?);
        }
        ResumeFile::forget(self.directory)?;
        let load = Load::start(plan, fleet, stop)?;
        if let Some(ticket) = load.ticket(fleet) {
            let began = (self.started, self.started_ns);
            let state = ResumeState::new(&config.name, began, run_id, ticket);
            let state = state.map_err(RunError::System)?;
            self.resume = Some(ResumeFile::write(self.directory, state)?);
        }
        Ok(load)
    }

    /// What is left for another controller at the end.
    fn left(&self, kept: Option<KeptRun>, end: &End) -> Result<Option<Left>, FleetError> {
        let Some(kept) = kept else { return Ok(None) };
        if kept.is_lost() {
            let why = "another controller has taken the run up while this one stood still";
            return Err(FleetError::NotTakenUp { why: why.to_owned() });
        }
        let has_begun = self.resume.as_ref().is_some_and(ResumeFile::has_begun);
        let is_open = has_begun && matches!(end, End::ShareLost { .. }) && kept.is_worked_on();
        Ok(Some(Left::new(kept, is_open)))
    }

    /// Takes what concerns another controller that could take the run up, or this one that has.
    fn resume(&mut self, event: &Event, samples: &Samples) -> Result<(), OutputError> {
        match (event, &mut self.resume) {
            (Event::Loading(begun), Some(resume)) => resume.begin(begun)?,
            (Event::ShareLost(part), Some(resume)) if !self.is_past => resume.lose(part)?,
            (Event::TakenUp { at_ns }, _) => {
                self.is_past = false;
                let at_s = at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
                self.taken_up_s = Some(round(at_s, 3));
                self.collector.take_up(samples.clone());
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes events and host samples until the engine ends.
    fn follow(
        &mut self,
        load: &Load,
        stop: &AtomicBool,
        files: &mut SampleFiles<'_>,
    ) -> Result<End, OutputError> {
        let engine = load.engine();
        let mut stopping = false;
        loop {
            if stop.load(Ordering::Relaxed) && !stopping {
                stopping = true;
                engine.abort();
            }
            for (output, why) in self.outgoing.troubles() {
                (self.on_progress)(Progress::Trouble { output, why });
            }
            self.ended_by = self.ended_by.take().or_else(|| self.outgoing.failure());
            if self.ended_by.is_some() && !stopping {
                stopping = true;
                engine.abort();
            }
            for row in self.watch.rows() {
                let row = self.collector.hosts.take(row);
                files.write_resource(row)?;
                self.outgoing.host(row);
                (self.on_progress)(Progress::Host(Box::new(row.clone())));
            }
            let asked_ns = now_ns();
            let Some(event) = engine.next_event(POLL) else {
                // An empty answer without the wait: the generator has ended without a report.
                if now_ns() - asked_ns < POLL.as_nanos() as u64 / 2 {
                    return Ok(End::Thread("it ended without a report".to_owned()));
                }
                continue;
            };
            let finished = match &event {
                Event::Finished(summary) => Some(summary.end.clone()),
                _ => None,
            };
            self.take(event, load, files)?;
            if let Some(end) = finished {
                return Ok(end);
            }
        }
    }

    /// Takes one event: samples, files, progress, the collector.
    fn take(
        &mut self,
        event: Event,
        load: &Load,
        files: &mut SampleFiles<'_>,
    ) -> Result<(), OutputError> {
        if let Some(first) = self.first {
            self.probe.follow(first.course.pid());
        }
        let is_past = self.is_past && !matches!(event, Event::TakenUp { .. });
        let samples = match Collector::wants_samples(&event) && !is_past {
            true => Samples { agents: load.samples(), ..self.probe.sample() },
            false => Samples::default(),
        };
        self.resume(&event, &samples)?;
        let parts = self.report(&event, files)?;
        self.so_far.take(&event);
        let latencies = match &event {
            Event::Interval(interval) => self.outgoing.latencies(interval),
            _ => IntervalLatencies::default(),
        };
        let has_news =
            matches!(event, Event::Interval(_) | Event::ActionStarted { .. } | Event::Finished(_));
        if let Some(row) = self.collector.handle(event, samples) {
            files.write_second(&row)?;
            if !is_past {
                self.outgoing.second(&row, latencies, &parts);
            }
            let (row, clients) = (Box::new(row), self.clients);
            let agents = self.collector.agents.latest();
            (self.on_progress)(Progress::Second { row, clients, parts, agents: agents.to_vec() });
        }
        if has_news {
            for news in self.so_far.news() {
                (self.on_progress)(Progress::Action(Box::new(news)));
            }
        }
        Ok(())
    }

    /// Reports an event as it is; the parts are those of an interval.
    fn report(
        &mut self,
        event: &Event,
        files: &mut SampleFiles<'_>,
    ) -> Result<Vec<PartRow>, OutputError> {
        match event {
            Event::Phase { kind, index, at_ns } => {
                let start_s = at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
                if !self.is_past {
                    self.outgoing.phase(round(start_s, 3), *kind);
                }
                (self.on_progress)(Progress::Phase {
                    kind: *kind,
                    planned: self.phases.get(*index).and_then(planned),
                    number: index + 1,
                    of: self.phases.len(),
                });
            }
            Event::Interval(interval) => {
                let start_s = interval.start_ns.saturating_sub(self.started_ns) as f64 / 1e9;
                self.figures.interval(start_s, interval)?;
                let mut parts = parts::of_interval(interval, &self.groups);
                self.group_files.interval(start_s, interval, &parts)?;
                let rows = self.brokers.complete(interval, &mut parts, &self.collector.hosts);
                files.write_brokers(&rows)?;
                self.broker_rows.extend(rows);
                return Ok(parts);
            }
            Event::Failed { client, why } | Event::Interrupted { client, why } => {
                let sentence = format!("{}: {why}", self.names.client(*client));
                (self.on_progress)(Progress::Failed(sentence));
            }
            Event::ActionStarted { action, clients, .. } => {
                if let Some(effect) = self.actions.effect(*action).cloned() {
                    (self.on_progress)(Progress::Acted { effect, clients: *clients });
                }
            }
            Event::ShareLost(part) => {
                let agent = self.agents.get(part.share).cloned().unwrap_or_default();
                let (clients, why) = ((part.clients, part.of), part.why.clone());
                (self.on_progress)(Progress::AgentLost { agent, clients, why });
            }
            Event::Measured(totals) => self.figures.measured(totals),
            Event::Finished(_) | Event::Loading(_) | Event::TakenUp { .. } => {}
        }
        Ok(Vec::new())
    }
}

/// The restarts of each broker, with what became of bridges.
fn restarts(targets: &[RunTarget]) -> Vec<Vec<Again>> {
    let logs: Vec<&BridgeLog> = targets.iter().map(|target| &*target.bridges).collect();
    let mut all: Vec<Vec<Again>> = targets.iter().map(|target| target.course.restarts()).collect();
    let kills: Vec<u64> = all.iter().flatten().map(|again| again.at_ns).collect();
    for again in all.iter_mut().flatten() {
        let next = kills.iter().copied().filter(|at_ns| *at_ns > again.at_ns).min();
        let until_ns = next.unwrap_or(u64::MAX);
        again.recovery = bridge_log::recovery(&logs, again.at_ns, again.back_ns, until_ns);
    }
    all
}

fn planned(phase: &tacho_load::Phase) -> Option<Duration> {
    match phase {
        tacho_load::Phase::WarmUp { duration_ns, .. }
        | tacho_load::Phase::Measure { duration_ns, .. } => {
            Some(Duration::from_nanos(*duration_ns))
        }
        _ => None,
    }
}

fn measured_s(phase: &tacho_load::Phase) -> f64 {
    match phase {
        tacho_load::Phase::Measure { duration_ns, .. } => *duration_ns as f64 / 1e9,
        _ => 0.0,
    }
}
