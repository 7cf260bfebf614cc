//! `cargo xtask crash`: kills a broker repeatedly and checks what it has lost.

use anyhow::{Result, bail};
use clap::Args;

use crate::shell;

/// Kills without --kills and --minutes.
const KILLS: u64 = 200;

#[derive(Args)]
pub(crate) struct Options {
    /// Number of kills after which the run ends [default: 200, or any number if --minutes is given]
    #[arg(long)]
    kills: Option<u64>,
    /// Minutes after which the run ends at the latest
    #[arg(long)]
    minutes: Option<f64>,
    /// Seed of the run; without it a different one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Fixed number of shards; without it a different number at each start
    #[arg(long)]
    shards: Option<usize>,
    /// Shell command to start instead of Tacho; {port} stands for the port to listen on, {dir} for
    /// the data directory, {shards} for the number of shards of this start
    #[arg(long, value_name = "COMMAND")]
    broker_cmd: Option<String>,
    /// Continue after a finding, to count them all
    #[arg(long)]
    keep_going: bool,
    /// Put a disk under the broker that is slow, writes by halves, and fails to sync now and then
    /// (64-bit Linux with glibc and a C compiler)
    #[arg(long, conflicts_with = "broker_cmd")]
    disk_faults: bool,
}

/// Builds the crash test in release and runs it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let variables = options.variables()?;
    let mut cargo = shell::cargo();
    cargo.args(["test", "--release", "--locked", "-p", "tacho", "--test", "crash", "--"]);
    cargo.args(["--ignored", "--exact", "--nocapture", "kills_for_as_long_as_asked"]);
    for (name, value) in variables {
        match value {
            Some(value) => cargo.env(name, value),
            None => cargo.env_remove(name),
        };
    }
    shell::run(&mut cargo)
}

impl Options {
    /// Environment variables of the test.
    fn variables(&self) -> Result<[(&'static str, Option<String>); 7]> {
        if self.minutes.is_some_and(|minutes| !(0.01..=1e5).contains(&minutes)) {
            bail!("--minutes must be between 0.01 and 100000");
        }
        if self.shards.is_some_and(|shards| !(1..=64).contains(&shards)) {
            bail!("--shards must be between 1 and 64");
        }
        let has = |what| self.broker_cmd.as_ref().is_none_or(|command| command.contains(what));
        if self.shards.is_some() && !has("{shards}") {
            bail!("--shards needs {{shards}} in --broker-cmd");
        }
        if !has("{port}") {
            bail!("--broker-cmd needs {{port}}");
        }
        let kills = match (self.kills, self.minutes) {
            (None, None) => Some(KILLS),
            (kills, _) => kills,
        };
        let text = |value: Option<u64>| value.map(|value| value.to_string());
        Ok([
            ("TACHO_CRASH_KILLS", text(kills)),
            ("TACHO_CRASH_MINUTES", self.minutes.map(|minutes| minutes.to_string())),
            ("TACHO_CRASH_SEED", text(self.seed)),
            ("TACHO_CRASH_SHARDS", text(self.shards.map(|shards| shards as u64))),
            ("TACHO_CRASH_BROKER_CMD", self.broker_cmd.clone()),
            ("TACHO_CRASH_KEEP_GOING", self.keep_going.then(|| "1".to_owned())),
            ("TACHO_CRASH_DISK_FAULTS", self.disk_faults.then(|| "1".to_owned())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let (kills, minutes, seed, shards) = (None, None, None, None);
        let broker_cmd = None;
        Options { kills, minutes, seed, shards, broker_cmd, keep_going: false, disk_faults: false }
    }

    fn variable(options: &Options, name: &str) -> Option<String> {
        let all = options.variables().expect("valid options");
        all.into_iter().find(|(known, _)| *known == name).and_then(|(_, value)| value)
    }

    #[test]
    fn a_run_ends_by_kills_or_by_time() {
        assert_eq!(variable(&options(), "TACHO_CRASH_KILLS").as_deref(), Some("200"));
        let timed = Options { minutes: Some(1.5), ..options() };
        assert_eq!(variable(&timed, "TACHO_CRASH_KILLS"), None);
        assert_eq!(variable(&timed, "TACHO_CRASH_MINUTES").as_deref(), Some("1.5"));
        let both = Options { kills: Some(7), ..timed };
        assert_eq!(variable(&both, "TACHO_CRASH_KILLS").as_deref(), Some("7"));
    }

    #[test]
    fn invalid_options_are_refused() {
        assert!(Options { minutes: Some(f64::NAN), ..options() }.variables().is_err());
        assert!(Options { shards: Some(0), ..options() }.variables().is_err());
        let command = Some("mosquitto".to_owned());
        assert!(Options { broker_cmd: command, ..options() }.variables().is_err());
        let command = Some("mosquitto -p {port}".to_owned());
        let two = Options { broker_cmd: command.clone(), shards: Some(2), ..options() };
        assert!(two.variables().is_err());
        let command_with_shards = Some("tacho broker --shards {shards} -p {port}".to_owned());
        let with_shards = Options { broker_cmd: command_with_shards, shards: Some(2), ..options() };
        assert!(with_shards.variables().is_ok());
        assert!(Options { broker_cmd: command, ..options() }.variables().is_ok());
    }
}
