//! `cargo xtask sim`: simulates whole shards of the broker for a given time.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::shell;

#[derive(Args)]
pub(crate) struct Options {
    /// How long, in minutes
    #[arg(long, default_value_t = 5.0, conflicts_with = "hours")]
    minutes: f64,
    /// How long, in hours
    #[arg(long)]
    hours: Option<f64>,
    /// The first seed; without it a different one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Run only this seed, and print its events
    #[arg(long, value_name = "SEED", conflicts_with_all = ["minutes", "hours", "seed"])]
    replay: Option<u64>,
}

/// Builds the simulation in release and runs seed after seed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--release", "--locked", "-p", "tacho-broker", "--test", "sim", "--"]);
    cargo.args([
        "--nocapture",
        "whole_shards",
        "durable_shards",
        "bridged_shards",
        "ruled_shards",
        "any_packets",
    ]);
    for variable in ["TACHO_SIM_SEED", "TACHO_SIM_SEEDS"] {
        cargo.env_remove(variable);
    }
    if let Some(seed) = options.replay {
        cargo.env("TACHO_SIM_SEED", seed.to_string()).env("TACHO_SIM_TALK", "1");
        return shell::run(&mut cargo);
    }
    let seconds = seconds(options)?;
    let first = match options.seed {
        Some(seed) => seed,
        None => fresh_seed()?,
    };
    eprintln!("seeds from {first} for {seconds} s");
    cargo.env("TACHO_SIM_FROM", first.to_string()).env("TACHO_SIM_SECONDS", seconds.to_string());
    shell::run(&mut cargo)
}

fn seconds(options: &Options) -> Result<u64> {
    let seconds = options.hours.map_or(options.minutes * 60.0, |hours| hours * 3600.0);
    if !(1.0..=1e7).contains(&seconds) {
        bail!("the time must be between one second and a hundred days");
    }
    Ok(seconds as u64)
}

/// A seed outside the range of ordinary tests, different each second.
fn fresh_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_secs() * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked() {
        let options = |minutes, hours| Options { minutes, hours, seed: None, replay: None };
        assert_eq!(seconds(&options(2.0, None)).ok(), Some(120));
        assert_eq!(seconds(&options(5.0, Some(1.5))).ok(), Some(5400));
        assert!(seconds(&options(0.0, None)).is_err());
        assert!(seconds(&options(f64::NAN, None)).is_err());
    }
}
