//! `tacho doctor`: limits set by the system.

use std::fmt::Write as _;

use clap::Args;
use tacho_lab::doctor::{Row, examine};
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

    /// Print all settings as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<u8, Failure> {
    // No limits: the command reports what this machine lacks instead of refusing the scenario.
    let adjustment = arguments.adjust.adjustment();
    let scenario = Scenario::load(&arguments.scenario, &arguments.vars, &adjustment, Limits::NONE);
    let scenario = scenario.map_err(|error| failure(&error))?;
    let needs = tacho_lab::needs::needs(&scenario);
    let needs = needs.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    let rows = examine(&needs, !arguments.remote_broker);
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows);
        println!("{}", text.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
    } else {
        print!("{}", table(&arguments.scenario, &rows));
    }
    let limits = rows.iter().any(|row| row.limits);
    Ok(if limits { exit::THRESHOLD } else { exit::OK })
}

fn table(scenario: &str, rows: &[Row]) -> String {
    let heads = ["setting", "here", "EMQX guide", "BifroMQ"];
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
            let _ = write!(text, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{last}");
    };
    line(&heads.map(str::to_owned), &format!("for '{scenario}'"));
    for row in rows {
        let verdict = if row.limits { "LIMITS: " } else { "" };
        line(&cells(row), &format!("{verdict}{}", row.why));
    }
    let commands: Vec<&str> = rows.iter().filter_map(|row| row.command.as_deref()).collect();
    if commands.is_empty() {
        text.push_str("\nNothing here limits the scenario.\n");
    } else {
        text.push_str("\nCommands that lift these limits:\n");
        commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    }
    text
}
