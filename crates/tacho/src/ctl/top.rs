//! What takes most, what was slow, and messages of chosen filters.

use serde_json::{Value, json};

use super::Said;
use super::arguments::{TopCommand, TopicMetricsCommand};
use super::client::CtlClient;
use super::shown::{Column, list, number, rows_shown, text, time_of_day};
use crate::exit::Failure;
use crate::table::{bytes, printable, span};

const QUEUES: [Column; 6] = [
    ("client", |row| text(row, "client_id")),
    ("user", |row| text(row, "user")),
    ("connected", |row| text(row, "connected")),
    ("messages", |row| text(row, "queue_len")),
    ("size", |row| bytes(number(row, "queue_bytes"))),
    ("in flight", |row| text(row, "inflight")),
];

const RETAINED: [Column; 4] = [
    ("topic", |row| text(row, "topic")),
    ("user", |row| text(row, "user")),
    ("QoS", |row| text(row, "qos")),
    ("size", |row| bytes(number(row, "payload_bytes"))),
];

const PUBLISHERS: [Column; 5] = [
    ("client", |row| text(row, "client_id")),
    ("user", |row| text(row, "user")),
    ("address", |row| text(row, "address")),
    ("messages/s", |row| text(row, "messages_per_s")),
    ("payloads/s", |row| bytes(number(row, "bytes_per_s"))),
];

const SLOW: [Column; 6] = [
    ("client", |row| text(row, "client_id")),
    ("user", |row| text(row, "user")),
    ("queue", |row| text(row, "queue_len")),
    ("unsent", |row| bytes(number(row, "output_bytes"))),
    ("blocked", |row| milliseconds(number(row, "blocked_ms"))),
    ("dropped", |row| text(row, "dropped")),
];

const SLOW_BEFORE: [Column; 4] = [
    ("client", |row| text(row, "client_id")),
    ("ended", |row| format!("{} ago", span(number(row, "ended_s_ago")))),
    ("blocked", |row| milliseconds(number(row, "blocked_ms"))),
    ("dropped", |row| text(row, "dropped")),
];

const TOPICS: [Column; 7] = [
    ("filter", |row| text(row, "filter")),
    ("since", |row| format!("{}Z", time_of_day(number(row, "since_ms") / 1_000))),
    ("in", |row| text(row, "messages_in")),
    ("size", |row| bytes(number(row, "bytes_in"))),
    ("out", |row| text(row, "messages_out")),
    ("size", |row| bytes(number(row, "bytes_out"))),
    ("dropped", |row| text(row, "dropped")),
];

fn milliseconds(ms: u64) -> String {
    if ms == 0 { "-".to_owned() } else { format!("{ms} ms") }
}

/// What a list says that does not have everything.
fn unless_complete(answer: &Value) -> &'static str {
    match answer["complete"] == true {
        true => "",
        false => "... not everything was looked at: the broker is busy, or has very many of them\n",
    }
}

pub(super) fn top(client: &CtlClient, command: &TopCommand) -> Result<Said, Failure> {
    match command {
        TopCommand::Publishers { limit, seconds } => publishers(client, *limit, *seconds),
        TopCommand::Queues { limit } => {
            let answer = client.get("/top/queues", &[("limit", Some(&limit.to_string()))])?;
            let none = "No session has a queue.";
            let shown = rows_shown(list(&answer, "clients"), &QUEUES, 3, none);
            let shown = shown + unless_complete(&answer);
            Ok(Said::new(answer, shown))
        }
        TopCommand::Retained { limit } => {
            let answer = client.get("/top/retained", &[("limit", Some(&limit.to_string()))])?;
            let none = "There are no retained messages.";
            let shown = rows_shown(list(&answer, "retained"), &RETAINED, 2, none);
            let shown = shown + unless_complete(&answer);
            Ok(Said::new(answer, shown))
        }
    }
}

fn publishers(client: &CtlClient, limit: u64, seconds: u64) -> Result<Said, Failure> {
    let (limit, seconds) = (limit.to_string(), seconds.to_string());
    let query = [("limit", Some(&*limit)), ("seconds", Some(&*seconds))];
    let answer = client.get("/top/publishers", &query)?;
    let counted_ms = number(&answer, "counted_ms").max(1);
    let per_s = |row: &Value, key: &str| number(row, key) * 1_000 / counted_ms;
    let rows: Vec<Value> = list(&answer, "clients")
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row["messages_per_s"] = per_s(&row, "messages").into();
            row["bytes_per_s"] = per_s(&row, "bytes").into();
            row
        })
        .collect();
    let shown = rows_shown(&rows, &PUBLISHERS, 3, "No client has published anything.");
    Ok(Said::new(json!({"counted_ms": counted_ms, "clients": rows}), shown))
}

pub(super) fn slow(client: &CtlClient, limit: u64) -> Result<Said, Failure> {
    let answer = client.get("/slow", &[("limit", Some(&limit.to_string()))])?;
    let now = rows_shown(list(&answer, "now"), &SLOW, 2, "No client is slow.");
    let before = rows_shown(list(&answer, "past"), &SLOW_BEFORE, 1, "None was slow before.");
    let shown = format!("{now}{}\n{before}", unless_complete(&answer));
    Ok(Said::new(answer, shown))
}

pub(super) fn topics(client: &CtlClient, command: &TopicMetricsCommand) -> Result<Said, Failure> {
    match command {
        TopicMetricsCommand::List => {
            let answer = client.get("/topic-metrics", &[])?;
            let none = "No filter is counted: `tacho ctl topic-metrics add FILTER`.";
            let shown = rows_shown(list(&answer, "topics"), &TOPICS, 2, none);
            Ok(Said::new(answer, shown))
        }
        TopicMetricsCommand::Add { filter } => {
            let answer = client.post("/topic-metrics", &json!({"filter": filter}))?;
            let shown = format!("messages of {} are counted\n", printable(filter));
            Ok(Said::new(answer, shown))
        }
        TopicMetricsCommand::Remove { filter } => {
            let answer = client.delete("/topic-metrics", &[("filter", Some(filter))])?;
            let shown = format!("messages of {} are counted no longer\n", printable(filter));
            Ok(Said::new(answer, shown))
        }
    }
}
