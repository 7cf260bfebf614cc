//! A stage: brokers that are ready and cores that are divided, on which scenarios run one after
//! another.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_console::{
    Live, LiveSettings, MachineLock, Outlook, ProcessId, ProgressFile, Running, RunningFile, Stop,
};
use tacho_lab::campaign::Performance;
use tacho_lab::run::{Kills, Outcome, Progress, RunConfig, RunError, RunTarget};
use tacho_lab::spinning::Spinning;
use tacho_load::PhaseKind;
use tacho_monitor::MonitorSpec;
use tacho_output::Outputs;
use tacho_record::{
    DisturbanceLimits, Given, Placement, RunDirectory, RunKind, RunRecord, Timestamp,
};
use tacho_report::Lang;
use tacho_rig::{BridgeWatch, BrokerShare, CommandRunner, Cores, Killer, Network};
use tacho_scenario::{Scenario, Timing};

use super::broker::{Broker, Site};
use super::crew::Crew;
use super::keeping::Keeping;
use super::progress::Display;
use super::target::Target;
use super::target_arguments::TargetArguments;
use super::{crew, follow, live_feed, progress_news};
use crate::exit::{self, Failure};
use crate::out_arguments::OutArguments;
use crate::signals::stop_flag;
use crate::ui_arguments::PageWish;

/// Brokers under test with what a run needs beside its scenario.
#[derive(Debug)]
pub(crate) struct Stage {
    brokers: Vec<Broker>,
    /// The agents that make the load, where this process does not.
    crew: Option<Crew>,
    cores: Cores,
    /// Brokers that know of each other.
    network: Arc<Network>,
    monitors: Vec<MonitorSpec>,
    limits: DisturbanceLimits,
    stop: Arc<AtomicBool>,
    quiet: bool,
    lang: Lang,
    given: Given,
    live: Option<Arc<Live>>,
    progress: Option<Arc<ProgressFile>>,
    outputs: Arc<Outputs>,
    keeping: Keeping,
}

/// What does not change from stage to stage: the arguments, the division of the cores, the stop
/// flag.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The arguments for the scenario whose targets were requested last.
    arguments: TargetArguments,
    all_arguments: TargetArguments,
    /// The scenarios that are run have different brokers.
    is_for_several: bool,
    cores: Option<Cores>,
    stop: Stop,
    quiet: bool,
    /// Language of reports.
    lang: Lang,
    /// What the user says about each run; of campaigns only about the whole.
    given: Given,
    live: Option<Arc<Live>>,
    /// Where figures go while they arise.
    outputs: Arc<Outputs>,
    /// Tells others that it goes on.
    running: Option<RunningFile>,
    /// Tells them how far it is.
    progress: Option<Arc<ProgressFile>>,
    /// The right to make load, until everything has been measured.
    machine: Option<MachineLock>,
    keeping: Keeping,
}

impl Setting {
    /// Takes over the process: signals raise the stop flag, descriptors are as many as allowed.
    /// Waits until no other run has the machine.
    pub(crate) fn new(arguments: &TargetArguments, quiet: bool) -> Result<Self, Failure> {
        let stop = Stop::new(stop_flag()?);
        let machine = arguments.machine.take(&stop)?;
        // Best effort: scenarios above the hard limit are refused when checked, and any other
        // shortage of descriptors is reported where it occurs.
        let _ = tacho_net::raise_fd_limit();
        Ok(Self {
            arguments: arguments.clone(),
            all_arguments: arguments.clone(),
            is_for_several: false,
            cores: None,
            stop,
            quiet,
            lang: Lang::default(),
            given: Given::default(),
            live: None,
            outputs: Arc::default(),
            running: None,
            progress: None,
            machine: Some(machine),
            keeping: Keeping::No,
        })
    }

    /// Lets the only run of the next stage outlive its controller, or takes it up.
    pub(crate) fn keep(&mut self, keeping: Keeping) {
        self.keeping = keeping;
    }

    /// Chooses the language of the reports; English otherwise.
    pub(crate) fn report_in(&mut self, lang: Lang) {
        self.lang = lang;
    }

    /// Sets what the user says about the run.
    pub(crate) fn give(&mut self, given: Given) {
        self.given = given;
    }

    /// From now on each scenario uses only the arguments about its own brokers.
    pub(crate) fn for_several(&mut self) {
        self.is_for_several = true;
    }

    /// From now on brokers come from other arguments.
    pub(crate) fn take_arguments(&mut self, arguments: &TargetArguments) {
        self.arguments = arguments.clone();
        self.all_arguments = arguments.clone();
    }

    /// Divides the cores once for several conditions, so that the generator has the same ones
    /// under each, and checks what each needs.
    pub(crate) fn divide_for(
        &mut self,
        sides: &[(&TargetArguments, &Scenario)],
    ) -> Result<(), Failure> {
        let mut targets = Vec::new();
        for (arguments, scenario) in sides {
            targets.extend(Target::of(arguments, scenario)?);
        }
        self.cores = Some(divide(&self.arguments, &targets)?);
        Ok(())
    }

    /// Serves the live page if one is asked for, under the name of the scenario, suite or
    /// campaign. Its results go to `directory`. Comes after [`Setting::targets`], which
    /// divides the cores.
    pub(crate) fn serve(
        &mut self,
        wish: Option<PageWish>,
        (name, kind): (&str, RunKind),
        directory: &Path,
    ) -> Result<(), Failure> {
        let cores = self.cores.as_ref();
        let cpus = cores.map(|cores| cores.of_bystanders(false)).unwrap_or_default();
        let Some(PageWish { listen, outlook, token }) = wish else { return Ok(()) };
        let is_for_all = token.is_none();
        let stop = self.stop.clone();
        let live = Live::start(LiveSettings {
            listen,
            outlook,
            name,
            kind,
            directory,
            stop,
            cpus,
            token,
        })?;
        if is_for_all {
            eprintln!("live page: {}", live.url());
        }
        if is_for_all && !live.address().ip().is_loopback() {
            eprintln!(
                "warning: anyone with access to {} can watch and stop the run",
                live.address()
            );
        }
        self.live = Some(Arc::new(live));
        Ok(())
    }

    /// Opens the outputs that the arguments or the environment name. Comes after
    /// [`Setting::targets`], which divides the cores.
    pub(crate) fn open_outputs(&mut self, outputs: &OutArguments) -> Result<(), Failure> {
        let cores = self.cores.as_ref();
        let cpus = cores.map(|cores| cores.of_bystanders(false)).unwrap_or_default();
        self.outputs = Arc::new(outputs.open(cpus)?);
        Ok(())
    }

    /// Leaves in the run's directory, until the end, that it goes on and where its live page is.
    /// Comes after [`Setting::serve`].
    pub(crate) fn announce(
        &mut self,
        directory: &RunDirectory,
        (scenario, kind): (&str, RunKind),
    ) -> Result<(), Failure> {
        if let Some(machine) = &mut self.machine {
            // For people who wait; the run itself is as good without.
            let _ = machine.tell_directory(directory.path());
        }
        let running = Running {
            process: ProcessId::own(),
            kind: kind.name().to_owned(),
            scenario: scenario.to_owned(),
            started_at: Timestamp::now().rfc3339(),
            page: self.live.as_ref().map(|live| live.url()),
        };
        let file = RunningFile::create(directory.path(), &running).map_err(|error| {
            let path = directory.path().display();
            Failure::new(exit::UNEXPECTED, format!("cannot write to {path}: {error}"))
        })?;
        self.running = Some(file);
        self.progress = Some(Arc::new(ProgressFile::new(directory.path())));
        Ok(())
    }

    /// Tells the live page how everything ended. Returns when it is to be served no more.
    pub(crate) fn conclude(&mut self, record: Option<&RunRecord>) {
        self.progress = None;
        self.running = None;
        // A page that stays makes no load.
        self.machine = None;
        if let Some(live) = self.live.take() {
            let reasons = record.map_or(&[][..], |record| &record.reasons);
            if live.end(record.map(|record| record.verdict.name()), reasons) == Outlook::Stays {
                eprintln!("the page stays at {} until Ctrl-C", live.url());
                live.wait();
            }
            // Stages that still show their runs on the page end before this.
            let missed = Arc::into_inner(live).map_or(0, Live::close);
            if missed > 0 {
                eprintln!("live page: {missed} rows were not shown to slow browsers");
            }
        }
    }

    /// Was the process asked to stop?
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }

    /// Waits, or until the process is asked to stop.
    pub(crate) fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        while !self.is_stopped() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks `scenario` before anything is created: brokers that run already answer,
    /// cores exist.
    pub(crate) fn targets(&mut self, scenario: &Scenario) -> Result<Vec<Target>, Failure> {
        if self.is_for_several {
            self.arguments = self.all_arguments.narrowed(scenario);
        }
        let targets = Target::of(&self.arguments, scenario)?;
        if self.cores.is_none() {
            self.cores = Some(divide(&self.arguments, &targets)?);
        }
        Ok(targets)
    }

    /// Starts the brokers that are to be started, their output below `directory`.
    pub(crate) fn stage(
        &mut self,
        targets: Vec<Target>,
        directory: &RunDirectory,
    ) -> Result<Stage, Failure> {
        let cores = match &self.cores {
            Some(cores) => cores.clone(),
            None => divide(&self.arguments, &targets)?,
        };
        let count = targets.len();
        let mut brokers = Vec::with_capacity(count);
        let network = Target::network(&targets)?;
        let site = Site { cores: &cores, directory, network: &network };
        for (index, target) in targets.into_iter().enumerate() {
            brokers.push(site.ready(target, BrokerShare { index, count }, self.stop.flag())?);
        }
        network.wait(self.stop.flag())?;
        cores.pin_generator();
        let monitors = self.arguments.monitors.clone();
        let keeping = std::mem::take(&mut self.keeping);
        let crew = &self.arguments.crew;
        let crew = Crew::gather(crew, &brokers, (&cores, &keeping), self.stop.flag())?;
        Ok(Stage {
            brokers,
            crew,
            cores,
            network: Arc::new(network),
            monitors,
            limits: self.arguments.tolerate.limits(),
            stop: Arc::clone(self.stop.flag()),
            quiet: self.quiet,
            lang: self.lang,
            given: self.given.clone(),
            live: self.live.clone(),
            progress: self.progress.clone(),
            outputs: Arc::clone(&self.outputs),
            keeping,
        })
    }
}

impl Stage {
    /// Runs one scenario; its files go to `directory`.
    pub(crate) fn perform(
        &self,
        performance: Performance,
        directory: &RunDirectory,
    ) -> Result<Outcome, Failure> {
        let Performance { scenario, name, title, step } = performance;
        let config = self.config(scenario, name);
        let killers = self.begin_kills(&config);
        let commands = self.commands(&config, directory)?;
        let watch = self.watch_bridges(&config)?;
        let mut display = Display::new(self.quiet, &config, title.as_deref());
        if let Some(progress) = &self.progress {
            progress_news::begin(progress, &config.scenario, step, title.as_deref());
        }
        let live = self.live.as_ref().map(|live| live.run(live_feed::about(&config, title)));
        let on_progress = |news: Progress| {
            if let Progress::Phase { kind, planned, .. } = &news {
                killers.iter().for_each(|(killer, kills)| {
                    follow::plan_kills(killer, kills, *kind, *planned);
                });
                if let (PhaseKind::Measure, Some(commands)) = (kind, &commands) {
                    commands.begin();
                }
            }
            if let Some(live) = &live {
                live_feed::show(live, &news);
            }
            if let Some(progress) = &self.progress {
                progress_news::show(progress, &config.scenario.thresholds, &news);
            }
            display.show(news);
        };
        let run = || tacho_lab::run::run(&config, directory, &self.stop, on_progress);
        let outcome = on_own_thread(run);
        display.end();
        if self.outputs.failure().is_some() {
            // It ends a campaign, too.
            self.stop.store(true, Ordering::Relaxed);
        }
        drop(watch);
        killers.iter().for_each(|(killer, _)| killer.end());
        let outcome = outcome.and_then(|mut outcome| {
            tacho_report::write_run(directory, &mut outcome.data, self.lang)?;
            if let Some(Err(error)) = outcome.left.as_ref().map(|left| left.clear(directory)) {
                eprintln!("warning: the log of the run stays on the bus for a day: {error}");
            }
            Ok(outcome)
        });
        if let (Some(live), Ok(outcome)) = (&live, &outcome) {
            live.end(&outcome.data.record);
        }
        if let (Some(progress), Ok(outcome)) = (&self.progress, &outcome) {
            progress.end(outcome.data.record.verdict.name());
        }
        outcome.map_err(|error| match error {
            RunError::Plan(error) => Failure::new(exit::INVALID_CONFIG, error),
            RunError::Monitor(error) => Failure::new(exit::INVALID_CONFIG, error),
            RunError::Agents(error) => crew::failure(&error),
            error => Failure::new(exit::UNEXPECTED, error),
        })
    }

    fn config(&self, scenario: Scenario, name: String) -> RunConfig {
        let count = self.brokers.len();
        let target = |(index, broker): (usize, &Broker)| RunTarget {
            record: broker.record(),
            addresses: broker.addresses(),
            cores: self.cores.of_broker(BrokerShare { index, count }).to_vec(),
            is_local: broker.is_local(),
            data_dir: broker.data_dir(),
            course: Arc::new(broker.course()),
            bridges: Arc::default(),
        };
        RunConfig {
            name,
            given: self.given.clone(),
            outputs: Arc::clone(&self.outputs),
            targets: self.brokers.iter().enumerate().map(target).collect(),
            commands: Arc::default(),
            placement: self.placement(&scenario),
            monitors: self.monitors.clone(),
            limits: self.limits,
            fleet: self.crew.as_ref().map(Crew::fleet),
            resume: self.keeping.resumed().cloned().map(Box::new),
            scenario,
        }
    }

    /// Tells the killers that a run begins; each with the kills that the run wants of it.
    fn begin_kills(&self, config: &RunConfig) -> Vec<(&Killer, Kills)> {
        let mut killers = Vec::new();
        for (broker, target) in self.brokers.iter().zip(&config.targets) {
            let Some(killer) = broker.killer() else { continue };
            killer.begin(follow::process_events(&target.course), &self.stop);
            killers.push((killer, Kills::of(&config.scenario, broker.name())));
        }
        killers
    }

    /// The commands of the scenario's timed actions.
    fn commands(
        &self,
        config: &RunConfig,
        directory: &RunDirectory,
    ) -> Result<Option<CommandRunner>, Failure> {
        let first = self.brokers.first().map(|broker| (broker.pid(), broker.port()));
        let commands = follow::timed_commands(config, directory, first.unwrap_or_default());
        let report = follow::command_log(config);
        Ok(CommandRunner::new(commands, &self.stop, report)?)
    }

    fn watch_bridges(&self, config: &RunConfig) -> Result<Option<BridgeWatch>, Failure> {
        let brokers = config.targets.iter();
        let brokers = brokers.map(|target| {
            (target.record.name.as_str(), follow::bridge_log(Arc::clone(&target.bridges)))
        });
        Ok(BridgeWatch::start(&self.network, brokers)?)
    }

    /// Why a broker has ended by itself; `None` while all that were started live.
    pub(crate) fn broker_failure(&self) -> Option<String> {
        self.brokers.iter().find_map(Broker::failure)
    }

    /// Was a broker killed that could not be started again?
    pub(crate) fn lost_a_broker(&self) -> bool {
        self.brokers.iter().any(Broker::stayed_away)
    }

    fn placement(&self, scenario: &Scenario) -> Placement {
        let local = self.brokers.iter().filter(|broker| broker.is_local());
        let pids: Vec<Option<u32>> = local.map(Broker::pid).collect();
        let is_elsewhere = self.crew.as_ref().is_some_and(|crew| !crew.is_local());
        let generator_cores =
            if is_elsewhere { Vec::new() } else { self.cores.generator().to_vec() };
        let one_machine = !pids.is_empty() && self.crew.as_ref().is_none_or(Crew::is_here);
        let threads = match &self.crew {
            Some(crew) => crew.fleet().threads(),
            None => self.cores.generator_threads(scenario.load.threads, one_machine),
        };
        let timing = match scenario.load.timing {
            Timing::Auto => tacho_record::Timing::Auto,
            Timing::Sleep => tacho_record::Timing::Sleep,
            Timing::Spin => tacho_record::Timing::Spin,
            Timing::Batch => tacho_record::Timing::Batch,
        };
        let spinning = Spinning::new(timing, &generator_cores, threads, &pids);
        Placement {
            one_machine,
            broker_cores: self.cores.broker().to_vec(),
            generator_cores,
            generator_threads: threads,
            timing,
            spin_budget_percent: spinning.budget_percent,
            no_own_core: spinning.no_own_core,
            background_cores: self.cores.of_bystanders(spinning.budget_percent.is_some()),
            batched_writes: (!is_elsewhere).then(|| tacho_net::probe_batch_writes().is_ok()),
        }
    }
}

/// Calls `run` on a thread of its own, whose cores and priority it may change.
fn on_own_thread<T: Send>(run: impl FnOnce() -> Result<T, RunError> + Send) -> Result<T, RunError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".to_owned());
        let thread = thread.spawn_scoped(scope, run).map_err(RunError::System)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Divides the cores as the arguments ask.
fn divide(arguments: &TargetArguments, targets: &[Target]) -> Result<Cores, Failure> {
    arguments.cores(targets.iter().any(Target::starts_a_broker))
}

/// Creates a run directory.
pub(crate) fn create(path: &Path) -> Result<RunDirectory, Failure> {
    RunDirectory::create(path).map_err(|error| Failure::new(exit::UNEXPECTED, error))
}
