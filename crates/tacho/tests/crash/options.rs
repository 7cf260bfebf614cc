//! Options of a run, from `cargo xtask crash` or a test.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::broker::Program;

/// Length of a long run without another limit.
const MINUTES: f64 = 60.0;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// The run ends after this many kills or after this time, whichever is first.
    pub(crate) kills: u64,
    pub(crate) time: Duration,
    /// A fixed number of shards; otherwise a different one at each start.
    pub(crate) shards: Option<usize>,
    pub(crate) program: Program,
    /// Data and log of the broker; kept when there are findings.
    pub(crate) folder: PathBuf,
    /// Continue after a finding, to count them all.
    pub(crate) keep_going: bool,
    /// The disk is slow, writes by halves, and fails to sync now and then.
    pub(crate) disk_faults: bool,
    /// Print progress.
    pub(crate) prints_progress: bool,
}

impl Options {
    /// A short run; its folder has its name.
    pub(crate) fn short(name: &str, program: Program, kills: u64) -> Self {
        let seed = variable("TACHO_CRASH_SEED").unwrap_or_else(fresh_seed);
        Self {
            seed,
            kills,
            time: Duration::from_secs(3_600),
            shards: None,
            program,
            folder: folder(name, seed),
            keep_going: false,
            disk_faults: false,
            prints_progress: false,
        }
    }

    /// Options from the environment: `TACHO_CRASH_KILLS`, `_MINUTES`, `_SEED`, `_SHARDS`,
    /// `_BROKER_CMD`, `_KEEP_GOING` and `_DISK_FAULTS`.
    pub(crate) fn from_environment() -> Self {
        let minutes = variable::<f64>("TACHO_CRASH_MINUTES");
        let kills = variable("TACHO_CRASH_KILLS");
        let command = std::env::var("TACHO_CRASH_BROKER_CMD").ok();
        Self {
            kills: kills.unwrap_or(u64::MAX),
            time: Duration::from_secs_f64(minutes.unwrap_or(MINUTES) * 60.0),
            shards: variable("TACHO_CRASH_SHARDS"),
            keep_going: is_on("TACHO_CRASH_KEEP_GOING"),
            disk_faults: is_on("TACHO_CRASH_DISK_FAULTS"),
            prints_progress: true,
            ..Self::short("long", command.map_or(Program::Durable, Program::Command), 0)
        }
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn is_on(name: &str) -> bool {
    variable::<u8>(name).is_some_and(|value| value > 0)
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64 % 1_000_000_000
}

fn folder(name: &str, seed: u64) -> PathBuf {
    let name = format!("{name}-{seed}-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("crash").join(name)
}
