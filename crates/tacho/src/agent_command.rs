//! `tacho agent`: makes load for controllers on a bus.

use std::path::Path;
use std::thread::available_parallelism;

use clap::Args;
use tacho_bus::BusError;
use tacho_lab::agents::{
    Agent, AgentCard, AgentError, AgentLimits, AgentSettings, AllowedTarget, Labels,
};
use tacho_lab::calibration;
use tacho_load::division::skew_clock;
use tacho_scenario::TimeSpan;

use crate::bus_arguments::{self, BusAddress, BusLogin};
use crate::exit::{self, Failure};
use crate::signals::stop_flag;

/// Make load for 'tacho run --bus ... --agents ...' on other machines.
///
/// The agent registers on the bus, waits to be hired, and runs its part of the load, until Ctrl-C
/// or SIGTERM. It loads only brokers that --allow-target lists. One run has it at a time; when the
/// controller or the bus is gone for 5 seconds, it stops its load, or keeps it for a bounded time
/// where the run can be taken up. See docs/agents.md.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 it was stopped; 1 the bus ended or its name is taken; 104 an \
                        argument is invalid"
)]
pub(crate) struct AgentArguments {
    /// The bus: a NATS server with JetStream, nats://HOST:PORT or tls://HOST:PORT
    #[arg(long, value_name = "URL")]
    bus: BusAddress,

    /// Name on the bus, letters, digits, '-' and '_'; default: the host's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// A label by which --agents NAME=VALUE:N chooses agents; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,

    /// Generator threads, the agent's share of a load by weight; default: one per core, but one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// A broker that the agent may load: an address, a network such as 10.0.0.0/24, a host name or
    /// 'loopback', with :PORT for one port only; may be given several times
    #[arg(long = "allow-target", value_name = "TARGET", help_heading = "Limits")]
    targets: Vec<AllowedTarget>,

    /// Refuse loads that send more messages and logins per second from here
    #[arg(long, value_name = "N", help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..))]
    rate_max: Option<u64>,

    /// Refuse loads with more clients here
    #[arg(long, value_name = "N", help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..))]
    clients_max: Option<u32>,

    /// Refuse runs that can take longer, and stop the load of a run after this time
    #[arg(long, value_name = "TIME", help_heading = "Limits", default_value = "24h",
          value_parser = TimeSpan::parse)]
    time_max: TimeSpan,

    /// Keep the load of a run whose controller is gone for this time at most, whatever the run's
    /// --resume-within says
    #[arg(long, value_name = "TIME", help_heading = "Limits", default_value = "10m",
          value_parser = TimeSpan::parse)]
    unattended_max: TimeSpan,

    /// For tests: take this machine's clock for one that is this many milliseconds ahead and runs
    /// this many parts per million faster
    #[arg(long, value_name = "MS,PPM", help_heading = "Tests", value_parser = ClockSkew::parse,
          allow_hyphen_values = true)]
    clock_skew: Option<ClockSkew>,

    /// Print errors only
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    login: BusLogin,
}

/// A clock for tests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClockSkew {
    ahead_ms: f64,
    drift_ppm: f64,
}

impl ClockSkew {
    /// Reads `MS,PPM`: at most a day, and 1 %.
    fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once(',').and_then(|(ms, ppm)| {
            let number = |text: &str, most: f64| {
                text.parse().ok().filter(|number: &f64| number.abs() <= most)
            };
            Some((number(ms, 86_400_000.0)?, number(ppm, 10_000.0)?))
        });
        let (ahead_ms, drift_ppm) = parts.ok_or_else(|| {
            format!("'{text}': write MS,PPM, such as 10000,100, at most a day and 10000 ppm")
        })?;
        Ok(Self { ahead_ms, drift_ppm })
    }
}

/// Works until the end.
pub(crate) fn agent(arguments: &AgentArguments) -> Result<u8, Failure> {
    let stop = stop_flag()?;
    if let Some(skew) = arguments.clock_skew {
        skew_clock((skew.ahead_ms * 1e6) as i64, (skew.drift_ppm * 1e3) as i64);
    }
    let bus = arguments.login.connect(&arguments.bus)?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => host_name(),
    };
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or_else(|| (cores - 1).max(1), usize::from);
    let labels: Labels = arguments.labels.iter().cloned().collect();
    let mut card = AgentCard::of_this_machine(&name, labels, threads);
    // Its clock is not this machine's, as far as others can tell.
    card.boot = card.boot.filter(|_| arguments.clock_skew.is_none());
    card.calibrated_messages_per_s = calibrated();
    card.addresses = arguments.bus.own_address().into_iter().collect();
    let limits = AgentLimits {
        targets: arguments.targets.clone(),
        per_second_max: arguments.rate_max.map(|max| max as f64),
        clients_max: arguments.clients_max.map(|max| max as usize),
        time_max: arguments.time_max.0,
        unattended_max: arguments.unattended_max.0,
    };
    let agent = Agent::register(bus, AgentSettings { card, limits }).map_err(failure)?;
    let tell = |line: &str| {
        if !arguments.quiet {
            eprintln!("{line}");
        }
    };
    tell(&format!("agent {name} is on the bus, with {threads} generator threads"));
    if arguments.targets.is_empty() {
        eprintln!("warning: without --allow-target this agent refuses every run");
    }
    match agent.serve(&stop, &tell) {
        Ok(()) => Ok(exit::OK),
        // The run that has started this agent is over.
        Err(AgentError::Bus(BusError::Closed { .. })) if arguments.bus.is_socket() => Ok(exit::OK),
        Err(error) => Err(failure(error)),
    }
}

/// What all threads of this machine send and receive per second by its calibration, with many
/// clients at QoS 0.
fn calibrated() -> Option<f64> {
    let calibration = calibration::load(&calibration::path()?)?;
    let rates = calibration.scheduled.iter().filter(|cell| cell.qos == 0);
    rates.map(|cell| cell.messages_per_s).reduce(f64::max)
}

fn failure(error: AgentError) -> Failure {
    match error {
        AgentError::Bus(error) => bus_arguments::failure(error),
        error => Failure::new(exit::UNEXPECTED, error),
    }
}

/// The host's name as far as a name on the bus can have it.
fn host_name() -> String {
    let text = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname"));
    let text = text.unwrap_or_default();
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = text.trim().chars().map(fit).take(64).collect();
    if name.is_empty() { "agent".to_owned() } else { name }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let complain = || format!("'{text}': write NAME=VALUE, without ':' and '='");
    let (name, value) = text.split_once('=').ok_or_else(complain)?;
    let is_plain = |part: &str| !part.is_empty() && part.len() <= 64 && !part.contains([':', '=']);
    match is_plain(name) && is_plain(value) && name != "local" {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(complain()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_is_two_numbers_within_bounds() {
        let skew = ClockSkew { ahead_ms: -1.5, drift_ppm: 100.0 };
        assert_eq!(ClockSkew::parse("-1.5,100"), Ok(skew));
        for bad in ["", "1", "1,", "a,1", "1,nan", "86400001,0", "0,10001", "inf,0"] {
            assert!(ClockSkew::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_are_names_with_values() {
        assert_eq!(parse_label("region=eu"), Ok(("region".to_owned(), "eu".to_owned())));
        for bad in ["", "region", "=eu", "region=", "a=b=c", "a:b=c", "local=x"] {
            assert!(parse_label(bad).is_err(), "{bad}");
        }
    }
}
