//! The loop that drives the load generator through a scenario.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tacho_load::{End, Engine, Event, PhaseKind, PlanError, StartError};
use tacho_monitor::{MonitorSpec, Watch, WatchError};

use super::bridge_log::{self, BridgeLog};
use super::brokers::Brokers;
use super::collector::{Collector, RunFacts};
use super::commands::Commands;
use super::course::{Again, Course};
use super::deeds_so_far::{DeedNews, DeedsSoFar};
use super::figures::FigureFiles;
use super::hosts::{Hosts, specs};
use super::parts;
use crate::environment;
use crate::plan::{PlanOptions, plan};
use crate::probe::{Probe, Samples};
use tacho_monitor::now_ns;
use tacho_record::Timestamp;
use tacho_record::{Cause, PartRow, Placement, ResourceRow, RunData, SeriesRow, TargetRecord};
use tacho_record::{OutputError, RunDirectory};
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
    /// When it began.
    pub started: Timestamp,
    /// What to load, at least one broker.
    pub targets: Vec<RunTarget>,
    /// Where things run.
    pub placement: Placement,
    /// What commands of the scenario did.
    pub commands: Arc<Commands>,
    /// Hosts to watch; this machine is watched anyway where a broker runs on it.
    pub monitors: Vec<MonitorSpec>,
}

/// A broker to load.
#[derive(Clone, Debug)]
pub struct RunTarget {
    /// For the record.
    pub record: TargetRecord,
    /// Its addresses, with how to reach them.
    pub addresses: Vec<tacho_load::Target>,
    /// Cores that it was given; empty when unknown.
    pub cores: Vec<usize>,
    /// Does it run on this machine?
    pub is_local: bool,
    /// What happens to it during the run.
    pub course: Arc<Course>,
    /// How its bridges to other brokers of the run stand; nothing is told where it has none.
    pub bridges: Arc<BridgeLog>,
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
    },
    /// A watched host told what it spent.
    Host(Box<ResourceRow>),
    /// A client failed.
    Failed(String),
    /// A timed action began.
    Acted {
        /// What happened, in words.
        what: String,
        /// To how many clients.
        clients: u64,
    },
    /// More is known of a timed action that has begun.
    Deed(Box<DeedNews>),
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// What it measured.
    pub data: RunData,
    /// Why the engine ended.
    pub ending: Ending,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All phases were run.
    Completed,
    /// Somebody stopped it.
    Aborted,
    /// The broker could not be reached, went away, or did not deliver the readiness probe.
    TargetFailed(String),
    /// The generator itself failed.
    GeneratorFailed(String),
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
}

/// Runs a scenario to its end or until `stop` becomes true, reports on the way, and leaves the
/// files of its samples in `directory`; the record is the caller's to write.
///
/// # Errors
/// When the scenario cannot run, threads cannot be started or files cannot be written. A broker
/// that cannot be reached is no error but an [`Ending`].
pub fn run(
    config: &RunConfig,
    directory: &RunDirectory,
    stop: &AtomicBool,
    mut on_progress: impl FnMut(Progress),
) -> Result<Outcome, RunError> {
    let plan = plan(
        &config.scenario,
        &PlanOptions {
            targets: config.targets.iter().flat_map(|target| target.addresses.clone()).collect(),
            threads: config.placement.generator_threads,
            cpus: config.placement.generator_cores.clone(),
            run_id: (config.started.subsecond_ns() / 1000) ^ std::process::id(),
        },
    )?;
    let watched = specs(&config.monitors, &config.targets);
    let mut watch = Watch::start(&watched)?;
    let scenario_toml = config.scenario.to_toml();
    let environment = environment::read(config.placement.clone(), &scenario_toml);
    directory.write_scenario(&scenario_toml)?;
    directory.write_environment(&environment)?;
    let mut series = directory.series()?;
    let mut resources = directory.resources()?;
    let facts = RunFacts::of(
        &config.scenario,
        &plan,
        config.name.clone(),
        config.started.rfc3339(),
        config.targets.iter().map(|target| target.record.clone()).collect(),
        config.placement.clone(),
    );
    let mut per_broker = match config.targets.len() {
        0 | 1 => None,
        _ => Some(directory.brokers()?),
    };
    let clients = facts.clients;
    let url = config.targets.first().map_or("", |target| target.record.broker.as_str());
    let mut figures = FigureFiles::begin(directory, config.started, url, facts.acknowledged)?;
    let (names, deeds) = (facts.names.clone(), facts.deeds.clone());
    let first = config.targets.first();
    let mut probe = Probe::new(
        first.and_then(|target| target.record.pid),
        first.map(|target| target.cores.clone()).unwrap_or_default(),
        first.is_some_and(|target| target.is_local),
    );
    let started_ns = now_ns();
    let mut collector = Collector::new(facts, started_ns, probe.sample());
    collector.hosts = Hosts::new(started_ns, &watched, &config.targets);
    let mut brokers = Brokers::new(&config.targets, started_ns);
    let mut broker_rows = Vec::new();
    let courses = config.targets.iter();
    let courses = courses.map(|target| (target.record.name.clone(), Arc::clone(&target.course)));
    let commands = Arc::clone(&config.commands);
    let mut so_far = DeedsSoFar::new(&deeds, started_ns, courses.collect(), commands);
    let phases = plan.phases.clone();
    let groups: Vec<String> = plan.groups.iter().map(|group| group.name.clone()).collect();
    let engine = Engine::start(plan).map_err(|error| match error {
        StartError::Plan(error) => RunError::Plan(error),
        StartError::System(error) => RunError::System(error),
    })?;

    let mut stopping = false;
    let end = loop {
        if stop.load(Ordering::Relaxed) && !stopping {
            stopping = true;
            engine.abort();
        }
        for row in watch.rows() {
            let row = collector.hosts.take(row);
            resources.write(row).map_err(|source| directory.error("resources.csv", source))?;
            on_progress(Progress::Host(Box::new(row.clone())));
        }
        let asked_ns = now_ns();
        let Some(event) = engine.next_event(POLL) else {
            // No event, and no wait for one either: the generator is gone without a last word.
            if now_ns() - asked_ns < POLL.as_nanos() as u64 / 2 {
                break End::Thread("it ended without a report".to_owned());
            }
            continue;
        };
        if let Some(first) = first {
            probe.follow(first.course.pid());
        }
        let samples =
            if Collector::wants_samples(&event) { probe.sample() } else { Samples::default() };
        let mut parts = Vec::new();
        match &event {
            Event::Phase { kind, index, .. } => on_progress(Progress::Phase {
                kind: *kind,
                planned: phases.get(*index).and_then(planned),
                number: index + 1,
                of: phases.len(),
            }),
            Event::Interval(interval) => {
                let start_s = interval.start_ns.saturating_sub(started_ns) as f64 / 1e9;
                figures.interval(start_s, interval)?;
                parts = parts::of_interval(interval, &groups);
                let rows = brokers.complete(interval, &mut parts, &collector.hosts);
                if let Some(out) = &mut per_broker {
                    let written = rows.iter().try_for_each(|row| out.write(row));
                    written.map_err(|source| directory.error("brokers.csv", source))?;
                }
                broker_rows.extend(rows);
            }
            Event::Failed { client, why } | Event::Interrupted { client, why } => {
                on_progress(Progress::Failed(format!("{}: {why}", names.client(*client))));
            }
            Event::ActionStarted { action, clients, .. } => {
                let (what, clients) = (deeds.sentence(*action).to_owned(), *clients);
                on_progress(Progress::Acted { what, clients });
            }
            Event::Measured(totals) => figures.measured(totals),
            Event::Finished(_) => {}
        }
        so_far.take(&event);
        let is_told =
            matches!(event, Event::Interval(_) | Event::ActionStarted { .. } | Event::Finished(_));
        let finished = match &event {
            Event::Finished(summary) => Some(summary.end.clone()),
            _ => None,
        };
        if let Some(row) = collector.handle(event, samples) {
            series.write(&row).map_err(|source| directory.error("timeseries.csv", source))?;
            on_progress(Progress::Second { row: Box::new(row), clients, parts });
        }
        if is_told {
            so_far.news().into_iter().for_each(|news| on_progress(Progress::Deed(Box::new(news))));
        }
        if let Some(end) = finished {
            break end;
        }
    };
    series.flush().map_err(|source| directory.error("timeseries.csv", source))?;
    if let Some(out) = &mut per_broker {
        out.flush().map_err(|source| directory.error("brokers.csv", source))?;
    }
    figures.end()?;
    if end == End::Completed {
        let left_ns = collector.hosts_due_ns().saturating_sub(now_ns());
        std::thread::sleep(Duration::from_nanos(left_ns));
    }
    for row in watch.rows() {
        resources
            .write(collector.hosts.take(row))
            .map_err(|source| directory.error("resources.csv", source))?;
    }
    resources.flush().map_err(|source| directory.error("resources.csv", source))?;
    collector.hosts.end(watch.stop());

    for (target, restarts) in config.targets.iter().zip(restarts(&config.targets)) {
        collector.restarted(&target.record.name, &restarts);
    }
    collector.commanded(config.commands.all());
    let (ending, aborted) = ending(end);
    let elapsed_s = now_ns().saturating_sub(started_ns) as f64 / 1e9;
    let (record, rows, curves, hosts) = collector.finish(elapsed_s, aborted);
    let data = RunData {
        record,
        rows,
        curves,
        hosts,
        brokers: broker_rows,
        environment: Some(environment),
    };
    Ok(Outcome { data, ending })
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

/// What the engine's end means: the ending, and the cause of the verdict `aborted`.
fn ending(end: End) -> (Ending, Option<Cause>) {
    let sentence = end.to_string();
    match end {
        End::Completed => (Ending::Completed, None),
        End::Aborted => (Ending::Aborted, Some(Cause::RunStopped)),
        End::Unreachable(why) => (Ending::TargetFailed(sentence), Some(Cause::Unreachable { why })),
        End::AllLost(why) => (Ending::TargetFailed(sentence), Some(Cause::AllLost { why })),
        End::ProbeFailed { missing, expected, waited_ms, first_topic } => {
            let cause = Cause::ProbeFailed { missing, expected, waited_ms, first_topic };
            (Ending::TargetFailed(sentence), Some(cause))
        }
        End::Thread(why) => (Ending::GeneratorFailed(sentence), Some(Cause::ThreadFailed { why })),
    }
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
