//! `tacho agents`: shows the agents on a bus.

use clap::Args;
use serde_json::{Value, json};
use tacho_bus::{Bus, BusError};
use tacho_lab::agents::{AgentCard, ClockOffset, agents as all_agents, clock_offset};
use tacho_monitor::ClockMap;

use crate::bus_arguments::{self, BusAddress, BusLogin};
use crate::exit::{self, Failure};

/// Exchanges with each agent's clock.
const EXCHANGES: usize = 10;

/// Show the agents on a bus: state, size, version, labels, and how their clocks stand to this one.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the list is complete, also without agents; 1 the bus cannot be \
                        reached; 104 an argument is invalid"
)]
pub(crate) struct AgentsArguments {
    /// The bus: a NATS server with JetStream, nats://HOST:PORT or tls://HOST:PORT
    #[arg(long, value_name = "URL")]
    bus: BusAddress,

    /// A JSON array instead of the table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    login: BusLogin,
}

/// Shows the agents.
pub(crate) fn agents(arguments: &AgentsArguments) -> Result<u8, Failure> {
    let bus = arguments.login.connect(&arguments.bus)?;
    if arguments.json {
        let all = listed(&*bus).map_err(bus_arguments::failure)?;
        let text = serde_json::to_string_pretty(&all);
        println!("{}", text.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
        return Ok(exit::OK);
    }
    let cards = all_agents(&*bus).map_err(bus_arguments::failure)?;
    let rows: Vec<_> = cards.iter().map(|card| (card, offset(&*bus, card))).collect();
    if rows.is_empty() {
        println!("no agents on this bus; 'tacho agent --bus ...' on a machine adds one");
        return Ok(exit::OK);
    }
    print!("{}", table(&rows));
    Ok(exit::OK)
}

/// The agents as JSON.
pub(crate) fn listed(bus: &dyn Bus) -> Result<Vec<Value>, BusError> {
    let cards = all_agents(bus)?;
    Ok(cards.iter().map(|card| json(card, offset(bus, card))).collect())
}

/// How an agent's clock stands; `None` if it does not answer.
fn offset(bus: &dyn Bus, card: &AgentCard) -> Option<ClockOffset> {
    clock_offset(bus, card, &mut ClockMap::default(), EXCHANGES).ok()
}

fn json(card: &AgentCard, offset: Option<ClockOffset>) -> Value {
    json!({
        "name": card.name,
        "run": card.run,
        "version": card.version,
        "labels": card.labels,
        "threads": card.threads,
        "cores": card.cores,
        "memory_bytes": card.memory_bytes,
        "descriptors": card.descriptors,
        "addresses": card.addresses,
        "calibrated_messages_per_s": card.calibrated_messages_per_s,
        "clock_shift_ns": offset.map(|offset| offset.shift_ns),
        "clock_error_ns": offset.map(|offset| offset.error_ns),
    })
}

const HEAD: [&str; 9] =
    ["NAME", "STATE", "THREADS", "CORES", "MEMORY", "FILES", "VERSION", "CLOCK", "LABELS"];

fn table(rows: &[(&AgentCard, Option<ClockOffset>)]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(|(card, offset)| line(card, *offset)));
    let mut widths = [0; HEAD.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths);
        let padded: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        text += padded.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn line(card: &AgentCard, offset: Option<ClockOffset>) -> [String; HEAD.len()] {
    let known =
        |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let memory = card.memory_bytes.map_or_else(
        || "-".to_owned(),
        |bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1_u32 << 30)),
    );
    let clock = match offset {
        None => "no answer".to_owned(),
        Some(ClockOffset { shift_ns: 0, error_ns: 0 }) => "this machine's".to_owned(),
        Some(ClockOffset { shift_ns, error_ns }) => {
            format!("{:+.3} ms, +-{:.3}", -shift_ns as f64 / 1e6, error_ns as f64 / 1e6)
        }
    };
    let labels: Vec<String> =
        card.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    [
        card.name.clone(),
        card.run.as_ref().map_or_else(|| "free".to_owned(), |run| format!("run {run}")),
        card.threads.to_string(),
        known(card.cores),
        memory,
        known(card.descriptors),
        card.version.clone(),
        clock,
        labels.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use tacho_lab::agents::Labels;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_agent() {
        let labels = Labels::from([("region".to_owned(), "eu".to_owned())]);
        let mut card = AgentCard::of_this_machine("load-1", labels, 3);
        (card.cores, card.memory_bytes, card.descriptors) = (Some(4), Some(3 << 29), None);
        let ahead = ClockOffset { shift_ns: -12_000_000, error_ns: 50_000 };
        let busy = AgentCard { name: "b".to_owned(), run: Some("7".to_owned()), ..card.clone() };
        let text = table(&[(&card, Some(ahead)), (&busy, None)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            words(lines[1]),
            format!("load-1 free 3 4 1.5 GiB - {version} +12.000 ms, +-0.050 region=eu")
        );
        assert!(words(lines[2]).starts_with("b run 7 3 4"), "{text}");
        let value = json(&card, None);
        assert_eq!((&value["name"], &value["clock_shift_ns"]), (&json!("load-1"), &Value::Null));
    }
}
