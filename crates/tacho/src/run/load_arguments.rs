//! Arguments about the scenario's load and about the results.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tacho_record::{Given, RunDirectory, RunRecord, Timestamp};
use tacho_report::Lang;
use tacho_report::{badge, junit, markdown};
use tacho_scenario::threshold::Threshold;
use tacho_scenario::{
    Limits, Scenario, ScenarioError, SourceAddresses, SourceText, Timing, TlsOptions,
};

use super::credentials;
use super::given_arguments::GivenArguments;
use super::stage::create;
use super::target_arguments::TargetArguments;
use crate::exit::{self, Failure};
use crate::out_arguments::OutArguments;
use crate::scenario::{AdjustArguments, parse_var};
use crate::ui_arguments::UiArguments;

/// Changes to a scenario.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArguments {
    /// Set a variable of the scenario; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
    pub(crate) vars: Vec<(String, String)>,

    /// Clients of a group of the scenario, instead of its own number, whatever --scale-clients
    /// says; may be given several times
    #[arg(long = "virtual-users", value_name = "GROUP=N", value_parser = parse_virtual_users)]
    virtual_users: Vec<(String, u32)>,

    #[command(flatten)]
    pub(crate) adjust: AdjustArguments,

    /// Fail the run unless this condition holds, for example 'e2e_p99<10ms'; may be given several
    /// times
    ///
    /// Figures: e2e_, service_, send_delay_, ack_, rtt_ and connect_ with mean, p50, p90, p95, p99,
    /// p999 or max (p99 alone is e2e_p99); loss (percent), lost, acknowledged_lost, sessions_lost,
    /// duplicates, out_of_order, achieved (percent of the offered rate), tps; cpu (percent of the
    /// broker's host, or of its cores on a shared machine), memory, broker_cpu, host_cpu,
    /// broker_rss. Comparisons: <, <=, >, >=, ==.
    #[arg(long = "threshold", value_name = "CONDITION", value_parser = Threshold::parse)]
    pub(crate) thresholds: Vec<Threshold>,

    /// Generator threads; default: one per generator core
    #[arg(long, help_heading = "Generator", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How generator threads wait for the next message: auto (default), sleep, spin or batch
    ///
    /// auto: threads with a core of their own sleep until shortly before a message is due, then
    /// spin, and spin while answers are likely, for at most 95 % of the core; other threads sleep.
    /// sleep: uses less CPU; wake-ups add to latencies and to the CPU of a broker on the same
    /// machine. spin: uses whole cores. batch: uses the least CPU and adds up to half a millisecond
    /// of latency.
    #[arg(long, help_heading = "Generator", value_name = "HOW")]
    timing: Option<TimingArgument>,

    /// Addresses of this machine that clients connect from, in turn: addresses and ranges with
    /// commas between. Default: the system's choice
    ///
    /// Each address allows one connection per local port, about 28,000 with Linux's default range.
    #[arg(long, help_heading = "Generator", value_name = "10.0.0.2-10.0.0.9,10.0.1.1",
          value_parser = SourceAddresses::parse)]
    source_address: Option<SourceAddresses>,

    /// Publish as fast as the broker allows, with N messages in flight per publisher, instead of at
    /// the scenario's rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65535))]
    closed_window: Option<u32>,

    /// Run loads, too, that exceed what 'tacho calibrate' measured here, or what a typical machine
    /// is estimated to carry
    ///
    /// Without it such a load is refused before anything is started; steps and rows beyond it are
    /// skipped. With it, a generator that cannot keep up gives the verdict generator_bound.
    #[arg(long, help_heading = "Generator")]
    pub(crate) beyond_calibration: bool,

    /// Seed of payloads and random phases, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// The text of the scenario, where it is not found by its name.
    #[arg(skip)]
    pub(crate) source: Option<SourceText>,
}

/// Destinations and forms of the results.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Directory for the results, instead of runs/<time>-<name>
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Replace the run that --dir holds
    #[arg(long, requires = "dir")]
    force: bool,

    #[command(flatten)]
    named: GivenArguments,

    /// Print no progress and no table; the exit code and the files hold the result
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print the run record (summary.json) to standard output instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write the JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Also append summary.md to this file; in a job of GitHub Actions, the summary of the step
    /// ($GITHUB_STEP_SUMMARY) unless a file is given
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Also write a badge with the result to this file, as SVG
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,

    /// Language of the report: en or zh; terminal output stays English
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = Lang::parse)]
    pub(crate) lang: Lang,

    #[command(flatten)]
    pub(crate) out: OutArguments,

    #[command(flatten)]
    pub(crate) ui: UiArguments,
}

impl OutputArguments {
    /// What the user calls the run and says about it.
    pub(crate) fn given(&self) -> Given {
        self.named.given()
    }

    /// The name of the run that begins now: its time with the name that it was given, or else with
    /// `own`.
    pub(crate) fn run_name(&self, own: &str) -> String {
        RunDirectory::run_name(Timestamp::now(), self.named.name().unwrap_or(own))
    }

    /// Creates the directory of the results, unless it holds an earlier run.
    pub(crate) fn create(&self, path: &Path) -> Result<RunDirectory, Failure> {
        self.check_place(path)?;
        create(path)
    }

    /// Checks that the directory of the results holds no earlier run, unless it is to be replaced.
    pub(crate) fn check_place(&self, path: &Path) -> Result<(), Failure> {
        if !self.force && RunDirectory::holds_run(path) {
            let sentence = format!(
                "{} holds an earlier run: choose another directory with --dir, or replace the run \
                 with --dir and --force",
                path.display()
            );
            return Err(Failure::new(exit::INVALID_CONFIG, sentence));
        }
        Ok(())
    }

    /// Writes the record to the files outside its directory that the arguments name.
    pub(super) fn write_elsewhere(&self, record: &RunRecord) -> Result<(), Failure> {
        self.write_texts(|| junit(record), || markdown(record), || badge(record))
    }

    /// Writes the JUnit report, the Markdown page and the badge that the arguments ask for.
    pub(crate) fn write_texts(
        &self,
        junit: impl FnOnce() -> String,
        markdown: impl Fn() -> String,
        badge: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let written = |path: &Path, result: std::io::Result<()>| {
            result.map_err(|error| {
                let sentence = format!("cannot write {}: {error}", path.display());
                Failure::new(exit::UNEXPECTED, sentence)
            })
        };
        if let Some(path) = &self.junit {
            written(path, std::fs::write(path, junit()))?;
        }
        if let Some(path) = &self.badge {
            written(path, std::fs::write(path, badge()))?;
        }
        let append = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(markdown().as_bytes()))
        };
        if let Some(path) = &self.markdown {
            return written(path, append(path));
        }
        // The job offers this file, no argument asked for it: the run is as good without.
        let of_step = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
        if let Some(path) = of_step.map(PathBuf::from)
            && let Err(error) = append(&path)
        {
            let path = path.display();
            eprintln!("warning: cannot write the summary of the step {path}: {error}");
        }
        Ok(())
    }
}

/// Reads `GROUP=N`.
fn parse_virtual_users(text: &str) -> Result<(String, u32), String> {
    let found = text
        .rsplit_once('=')
        .and_then(|(group, count)| Some((group.trim().to_owned(), count.trim().parse().ok()?)));
    found.ok_or_else(|| "write the name of a group and a number: pub=100".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimingArgument {
    /// Spin for up to 95 % of a core of its own; sleep without one
    Auto,
    /// Sleep until the next message is due
    Sleep,
    /// Never sleep; uses a whole core per thread
    Spin,
    /// Handle events in batches of half a millisecond: uses the least CPU and adds up to that time
    /// to every latency
    Batch,
}

impl LoadArguments {
    /// The scenario `name` with all changes of the command line, whether or not this machine can
    /// run it; `vars` come after the command line's own.
    pub(crate) fn try_scenario(
        &self,
        name: &str,
        vars: &[(String, String)],
        targets: &TargetArguments,
    ) -> Result<Scenario, ScenarioError> {
        let vars: Vec<(String, String)> = self.vars.iter().chain(vars).cloned().collect();
        let adjustment = self.adjust.adjustment();
        let scenario = match &self.source {
            Some(source) => Scenario::parse_adjusted(source, &vars, &adjustment, Limits::NONE)?,
            None => Scenario::load(name, &vars, &adjustment, Limits::NONE)?,
        };
        self.applied(scenario.with_clients(&self.virtual_users)?, targets)
    }

    fn applied(
        &self,
        mut scenario: Scenario,
        targets: &TargetArguments,
    ) -> Result<Scenario, ScenarioError> {
        for threshold in &self.thresholds {
            // A file has one condition per figure, and the command line wins.
            scenario.thresholds.0.retain(|known| known.metric != threshold.metric);
            scenario.thresholds.0.push(threshold.clone());
        }
        if let Some(threads) = self.threads {
            scenario.load.threads = Some(threads);
        }
        match self.timing {
            Some(TimingArgument::Auto) => scenario.load.timing = Timing::Auto,
            Some(TimingArgument::Sleep) => scenario.load.timing = Timing::Sleep,
            Some(TimingArgument::Spin) => scenario.load.timing = Timing::Spin,
            Some(TimingArgument::Batch) => scenario.load.timing = Timing::Batch,
            None => {}
        }
        if let Some(addresses) = &self.source_address {
            scenario.load.source_addresses = addresses.clone();
        }
        if let Some(window) = self.closed_window {
            scenario.close(window);
        }
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        let located = targets.located(&scenario);
        let only_named = scenario.has_only_named_targets();
        scenario.forget_shared_addresses(|name| located.contains_key(name));
        let named = scenario.targets.iter_mut().map(|(name, target)| (name.as_str(), target));
        let default = (Scenario::DEFAULT_TARGET, &mut scenario.target);
        for (name, target) in std::iter::once(default).chain(named) {
            if let Some(broker) = located.get(name) {
                target.broker.clone_from(broker);
            }
            if let Some(argument) = targets.broker(name, only_named)
                && argument.tls != TlsOptions::default()
            {
                target.tls = argument.tls.clone();
            }
            target.tls = targets.transport.tls(target).map_err(ScenarioError::new)?;
        }
        let of_broker =
            |name: &str| targets.broker(name, only_named).map(|broker| &broker.credentials);
        credentials::apply(&targets.credentials, of_broker, &mut scenario)
            .map_err(ScenarioError::new)?;
        Ok(scenario)
    }
}
