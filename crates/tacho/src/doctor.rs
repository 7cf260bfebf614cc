//! `tacho doctor`: limits set by the system.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use tacho_broker::{Config, RawConfig};
use tacho_lab::doctor::{
    ListenerSockets, Row, examine, examine_broker_host, examine_listeners, sysctl_fragment,
};
use tacho_monitor::{HostDescription, MonitorSpec, SourceSpec, Watch};
use tacho_scenario::{Limits, Scenario};

use crate::exit::{self, Failure};
use crate::scenario::{AdjustArguments, failure, parse_var};

/// Show the system settings that limit a scenario on this machine, and the commands to change them.
///
/// Every setting that the EMQX guide and the BifroMQ report name is shown with its value here and
/// theirs. Whether it limits is worked out from what the scenario needs, and from what the kernel
/// has counted since the machine started. Nothing is changed.
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 nothing limits the scenario, 99 something does.")]
pub(crate) struct DoctorArguments {
    /// Name of a built-in scenario, a name such as 1k_1k_qos1_p32_10mps, or a file
    #[arg(default_value = "symmetric")]
    scenario: String,

    /// Set a variable of the scenario; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
    vars: Vec<(String, String)>,

    #[command(flatten)]
    adjust: AdjustArguments,

    /// The broker runs on another machine: this one has only the clients
    #[arg(long)]
    remote_broker: bool,

    /// The broker runs on the host of this agent (agent://HOST:PORT), which is examined too
    ///
    /// 'tacho monitor --listen' is the agent. It tells nofile of the broker's process where it
    /// knows that: agent://HOST:PORT?port=1883. Implies --remote-broker.
    #[arg(long, value_name = "SOURCE", conflicts_with = "remote_broker",
          value_parser = |text: &str| MonitorSpec::parse(text).map_err(|error| error.to_string()))]
    monitor: Option<MonitorSpec>,

    /// Also judge what the listeners of this broker configuration ask of the kernel: backlog,
    /// send_buffer_bytes, receive_buffer_bytes
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Write the settings that lift the limits of this machine to a new file for /etc/sysctl.d,
    /// with the values before in comments
    #[arg(long, value_name = "FILE")]
    sysctl: Option<PathBuf>,

    /// Print all settings as JSON
    #[arg(long)]
    json: bool,
}

/// How long an agent has to describe its host.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<u8, Failure> {
    // No limits: the command reports what this machine lacks instead of refusing the scenario.
    let adjustment = arguments.adjust.adjustment();
    let scenario = Scenario::load(&arguments.scenario, &arguments.vars, &adjustment, Limits::NONE);
    let scenario = scenario.map_err(|error| failure(&error))?;
    let needs = tacho_lab::needs::needs(&scenario);
    let needs = needs.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    let host = arguments.monitor.as_ref().map(described).transpose()?;
    let mut rows = examine(&needs, host.is_none() && !arguments.remote_broker);
    rows.extend(arguments.config.as_deref().map(listeners).transpose()?.unwrap_or_default());
    let there = host.as_ref().map_or_else(Vec::new, |host| examine_broker_host(&needs, host));
    if !arguments.json {
        print!("{}", table(&arguments.scenario, "here", &rows));
        if let Some(host) = &host {
            println!("\nThe broker's host, {}:\n", host.host);
            print!("{}", table(&arguments.scenario, "there", &there));
        }
    }
    rows.extend(there);
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows);
        println!("{}", text.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
    }
    if let Some(path) = &arguments.sysctl {
        let sentence = write_fragment(path, &rows, &arguments.scenario)?;
        if arguments.json { eprintln!("{sentence}") } else { println!("\n{sentence}") }
    }
    let limits = rows.iter().any(|row| row.limits);
    Ok(if limits { exit::THRESHOLD } else { exit::OK })
}

/// What the listeners of a configuration ask of the kernel.
fn listeners(path: &Path) -> Result<Vec<Row>, Failure> {
    let config = RawConfig::read(path).and_then(RawConfig::resolve);
    let config: Config = config.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    let sockets = config.listeners.iter().map(|listener| ListenerSockets {
        name: listener.to_string(),
        backlog: listener.sockets.backlog.map(u64::from),
        send_buffer_bytes: listener.sockets.send_buffer_bytes.map(u64::from),
        receive_buffer_bytes: listener.sockets.receive_buffer_bytes.map(u64::from),
    });
    Ok(examine_listeners(&sockets.collect::<Vec<_>>()))
}

/// Writes what lifts the limits of this machine; what to say about that.
fn write_fragment(path: &Path, rows: &[Row], scenario: &str) -> Result<String, Failure> {
    let shown = path.display();
    let Some(text) = sysctl_fragment(rows, &format!("'{scenario}'")) else {
        return Ok(format!("{shown} is not written: no setting limits that it could have."));
    };
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Failure::new(exit::INVALID_CONFIG, format!("{shown} cannot be written: {error}"))
    })?;
    Ok(format!("{shown} has what lifts the limits: it says how to apply and how to undo it."))
}

/// What the agent tells about its host.
fn described(spec: &MonitorSpec) -> Result<HostDescription, Failure> {
    let invalid = |why: String| Failure::new(exit::INVALID_CONFIG, why);
    if !matches!(spec.source, SourceSpec::Agent { .. }) {
        return Err(invalid(format!(
            "{} does not tell the settings of its host: run 'tacho monitor --listen' there, and \
             give its agent://HOST:PORT",
            spec.source
        )));
    }
    let watch =
        Watch::start(std::slice::from_ref(spec)).map_err(|error| invalid(error.to_string()))?;
    let started = Instant::now();
    while started.elapsed() < TOLD_WITHIN {
        let reports = watch.reports();
        if let Some(description) = reports.into_iter().find_map(|report| report.description) {
            return Ok(description);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(invalid(format!(
        "{} did not describe its host within {} s: older versions of Tacho cannot",
        spec.source,
        TOLD_WITHIN.as_secs()
    )))
}

/// `place` says whose values the second column has.
fn table(scenario: &str, place: &str, rows: &[Row]) -> String {
    let heads = ["setting", place, "EMQX guide", "BifroMQ"];
    let cells = |row: &Row| {
        let or_none = |value: Option<&str>| value.unwrap_or("-").to_owned();
        [
            row.name.to_owned(),
            or_none(row.current.as_deref()),
            or_none(row.guide),
            or_none(row.bifromq),
        ]
    };
    let mut widths = heads.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(cells(row)) {
            *width = (*width).max(cell.len());
        }
    }
    let mut text = String::new();
    let mut line = |cells: &[String; 4], last: &str| {
        for (cell, width) in cells.iter().zip(widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(last);
        text.push('\n');
    };
    line(&heads.map(str::to_owned), &format!("for '{scenario}'"));
    for row in rows {
        let verdict = if row.limits { "LIMITS: " } else { "" };
        line(&cells(row), &format!("{verdict}{}", row.why));
    }
    let commands: Vec<&str> = rows.iter().filter_map(|row| row.command.as_deref()).collect();
    if commands.is_empty() {
        text.push_str(&format!("\nNothing {place} limits the scenario.\n"));
    } else {
        text.push_str(&format!("\nCommands that lift these limits {place}:\n"));
        commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    }
    text
}
