//! The state of a running broker's bridges.

use std::time::Duration;

use tacho_rig::{BridgeAnswer, BridgeClient, BridgeFigures, BridgeState};

use super::{StatusArguments, config, no_such_bridge};
use crate::exit::{self, Failure};
use crate::table::{bytes, span, table};

/// How long the broker may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The command.
pub(super) fn status(arguments: &StatusArguments) -> Result<u8, Failure> {
    let url = match (&arguments.url, &arguments.config) {
        (Some(url), _) => url.clone(),
        (None, Some(path)) => match config(path)?.metrics {
            Some(address) => format!("http://{address}"),
            None => {
                let sentence = format!(
                    "{} does not say where the broker answers: set `metrics` in it, or pass --url",
                    path.display()
                );
                return Err(Failure::new(exit::INVALID_CONFIG, sentence));
            }
        },
        // Invariant: the parser insists on one of them.
        (None, None) => return Err(Failure::new(exit::UNEXPECTED, "pass --url or --config")),
    };
    let text = BridgeClient::new(TIMEOUT).ask_text(&url)?;
    let mut answer = BridgeClient::parse(&url, &text)?;
    if let Some(name) = &arguments.name {
        if !answer.bridges.iter().any(|bridge| bridge.name == *name) {
            let names = answer.bridges.iter().map(|bridge| bridge.name.as_str());
            return Err(no_such_bridge(name, names));
        }
        answer.bridges.retain(|bridge| bridge.name == *name);
    }
    match arguments.json {
        true => println!("{text}"),
        false => print!("{}", shown(&answer, arguments.verbose)),
    }
    Ok(if answer.bridges.iter().all(BridgeState::is_up) { exit::OK } else { exit::THRESHOLD })
}

/// The answer as a table, for people.
fn shown(answer: &BridgeAnswer, verbose: bool) -> String {
    if answer.bridges.is_empty() {
        return "This broker has no bridges.\n".to_owned();
    }
    let heads = [
        "bridge",
        "other broker",
        "state",
        "up",
        "sent",
        "acknowledged",
        "received",
        "in flight",
        "waiting",
        "dropped",
        "reconnects",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(answer.bridges.iter().map(|bridge| {
        let up = format!("{}/{}", bridge.connected, bridge.connections.len());
        let mut row =
            vec![bridge.name.clone(), bridge.remote.clone(), bridge.state.to_string(), up];
        row.extend(cells(&bridge.figures));
        row
    }));
    let mut text = table(&rows, 4);
    for bridge in &answer.bridges {
        for (count, problem) in bridge.problems() {
            let whose = match (count, bridge.connections.len()) {
                (_, 1) => String::new(),
                (1, _) => " (one connection)".to_owned(),
                (count, _) => format!(" ({count} connections)"),
            };
            text.push_str(&format!("\n{}{whose}: {problem}", bridge.name));
        }
        for (reason, count) in dropped(&bridge.figures) {
            text.push_str(&format!("\n{}: {count} messages dropped: {reason}", bridge.name));
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if verbose {
        answer.bridges.iter().for_each(|bridge| text.push_str(&connections(bridge)));
    }
    text
}

/// Each connection of a bridge.
fn connections(bridge: &BridgeState) -> String {
    let heads = [
        "connection",
        "state",
        "for",
        "sent",
        "acknowledged",
        "received",
        "in flight",
        "waiting",
        "dropped",
        "reconnects",
        "",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(bridge.connections.iter().map(|one| {
        let span = one.for_s.map_or_else(|| "-".to_owned(), span);
        let mut row = vec![one.connection.to_string(), one.state.to_string(), span];
        row.extend(cells(&one.figures));
        row.push(one.problem.clone().unwrap_or_default());
        row
    }));
    format!("\n{}:\n{}", bridge.name, table(&rows, 3))
}

/// The figures of a row.
fn cells(figures: &BridgeFigures) -> [String; 7] {
    let waiting = match figures.buffered_messages {
        0 => "0".to_owned(),
        count => format!("{count} ({})", bytes(figures.buffered_bytes)),
    };
    let dropped: u64 = dropped(figures).map(|(_, count)| count).sum();
    [
        figures.sent.to_string(),
        figures.acknowledged.to_string(),
        figures.received.to_string(),
        figures.inflight.to_string(),
        waiting,
        dropped.to_string(),
        figures.reconnects.to_string(),
    ]
}

/// Why messages were dropped, and how many.
fn dropped(figures: &BridgeFigures) -> impl Iterator<Item = (&'static str, u64)> {
    [
        ("they waited for too long", figures.dropped_expired),
        ("the buffer was full", figures.dropped_full),
        ("they had passed too many bridges", figures.dropped_looped),
        ("the other broker refused them", figures.dropped_refused),
        ("larger than the other broker takes", figures.dropped_too_large),
        ("no rule makes a message of them", figures.dropped_unmapped),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"bridges": [
        {"name": "cloud", "remote": "mqtts://b.example:8883", "state": "partly", "connected": 1,
         "sent": 12, "received": 3, "acknowledged": 10, "buffered_messages": 7,
         "buffered_bytes": 20480, "inflight": 2, "reconnects": 1, "dropped_refused": 4,
         "connections": [
            {"connection": 1, "state": "up", "for_s": 7500, "sent": 12},
            {"connection": 2, "state": "down", "for_s": 5, "problem": "connection refused"},
            {"connection": 3, "state": "down", "problem": "connection refused"}]},
        {"name": "b", "remote": "mqtt://c:1883", "state": "up", "connected": 1,
         "connections": [{"connection": 1, "state": "up", "for_s": 1}], "of_the_future": 1}]}"#;

    #[test]
    fn the_table_says_how_bridges_stand_and_why() {
        let answer: BridgeAnswer = serde_json::from_str(ANSWER).expect("an answer");
        let text = shown(&answer, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("bridge  other broker"), "{text}");
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        let expected = [
            "cloud",
            "mqtts://b.example:8883",
            "partly",
            "1/3",
            "12",
            "10",
            "3",
            "2",
            "7",
            "(20",
            "KiB)",
            "4",
            "1",
        ];
        assert_eq!(cells, expected, "{text}");
        assert!(text.contains("cloud (2 connections): connection refused\n"), "{text}");
        assert!(text.contains("cloud: 4 messages dropped: the other broker refused"), "{text}");
        assert!(!text.contains("2 h 5 min"), "{text}");
        let text = shown(&answer, true);
        assert!(text.contains("2 h 5 min") && text.contains("\nb:\n"), "{text}");
        assert!(!answer.bridges[0].is_up() && answer.bridges[1].is_up());
        let sentence = answer.bridges[0].to_string();
        assert_eq!(sentence, "cloud (mqtts://b.example:8883) is partly: connection refused");
        let none = BridgeAnswer { bridges: Vec::new() };
        assert_eq!(shown(&none, true), "This broker has no bridges.\n");
    }
}
