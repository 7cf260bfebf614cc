//! The arguments of `tacho run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tacho_lab::scenario::{BrokerUrl, Scenario, Timing};
use tacho_lab::threshold::Threshold;
use tacho_monitor::parse_cpu_list;

use crate::exit::{self, Failure};
use crate::scenario::{load, parse_var};

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RunArguments {
    /// Name of a built-in scenario (see 'tacho scenario list'), or a scenario file
    scenario: String,

    /// Load this broker, which is running already
    #[arg(long, value_name = "mqtt://HOST:PORT", value_parser = BrokerUrl::parse)]
    pub(super) broker: Option<BrokerUrl>,

    /// Process id of that broker, when it runs on this machine: its CPU and memory are then sampled
    #[arg(long, value_name = "PID", requires = "broker")]
    pub(super) broker_pid: Option<u32>,

    /// Start this broker for the run and stop it afterwards; {port} becomes a free loopback port
    ///
    /// The command is run by sh, must listen on 127.0.0.1 and stay in the foreground, for example
    /// --broker-cmd 'mosquitto -p {port}'. Its output goes to broker.log in the run directory.
    #[arg(long, value_name = "COMMAND", conflicts_with = "broker")]
    pub(super) broker_cmd: Option<String>,

    /// Shards (event loops) of Tacho's own broker; as many as it has cores by default
    #[arg(long, value_name = "N", conflicts_with_all = ["broker", "broker_cmd"],
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) shards: Option<u16>,

    /// Cores of a broker that the run starts, such as 0-3; half of all by default
    #[arg(long, value_name = "LIST", conflicts_with = "broker", value_parser = parse_cores)]
    pub(super) broker_cores: Option<CoreList>,

    /// Cores of the generator's threads, such as 4-7; the other half by default, or with --broker
    /// wherever the system puts them
    #[arg(long, value_name = "LIST", value_parser = parse_cores)]
    pub(super) generator_cores: Option<CoreList>,

    /// Set a variable of the scenario; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
    vars: Vec<(String, String)>,

    /// Fail the run unless this holds, for example 'e2e_p99<10ms'; may be given several times
    ///
    /// Figures: e2e_, service_ and send_delay_ with mean, p50, p90, p95, p99, p999 or max; lost,
    /// duplicates, out_of_order, achieved (percent of the offered rate), tps, broker_cpu, host_cpu,
    /// broker_rss. Comparisons: <, <=, >, >=, ==.
    #[arg(long = "threshold", value_name = "CONDITION", value_parser = Threshold::parse)]
    thresholds: Vec<Threshold>,

    /// Generator threads; one per generator core by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How generator threads wait for the next message: sleep, or spin, which takes whole cores
    #[arg(long, value_name = "HOW")]
    timing: Option<TimingArgument>,

    /// Publish as fast as the broker lets each publisher, with N messages under way, instead of at
    /// the scenario's rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65535))]
    closed_window: Option<u32>,

    /// Seed of payloads and random phases, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Directory for the results, instead of runs/<time>-<name>
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,

    /// No progress and no table; the exit code and the files tell
    #[arg(long, short)]
    pub(super) quiet: bool,

    /// Print the run record (summary.json) to standard output instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimingArgument {
    /// Sleep until the next message is due
    Sleep,
    /// Never sleep; takes a whole core per thread
    Spin,
}

/// Cores, at least one.
#[derive(Clone, Debug)]
pub(super) struct CoreList(pub(super) Vec<usize>);

fn parse_cores(text: &str) -> Result<CoreList, String> {
    match parse_cpu_list(text) {
        Some(cores) if !cores.is_empty() => Ok(CoreList(cores)),
        _ => Err("write core numbers such as 0-3,8".to_owned()),
    }
}

impl RunArguments {
    /// The scenario with everything that the command line says about it.
    pub(super) fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = load(&self.scenario, &self.vars)?;
        for threshold in &self.thresholds {
            // A file has one condition per figure, and the command line wins.
            scenario.thresholds.0.retain(|known| known.metric != threshold.metric);
            scenario.thresholds.0.push(threshold.clone());
        }
        if let Some(threads) = self.threads {
            scenario.load.threads = Some(threads);
        }
        match self.timing {
            Some(TimingArgument::Sleep) => scenario.load.timing = Timing::Sleep,
            Some(TimingArgument::Spin) => scenario.load.timing = Timing::Spin,
            None => {}
        }
        if let Some(window) = self.closed_window {
            scenario.close(window);
        }
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        if let Some(broker) = &self.broker {
            scenario.target.broker = Some(broker.clone());
        } else if self.broker_cmd.is_some() {
            scenario.target.broker = None;
        }
        Ok(scenario)
    }
}
