//! Clients.

use serde_json::{Value, json};

use super::Said;
use super::arguments::{ClientsArguments, KickArguments};
use super::client::{CtlClient, encoded};
use super::shown::{Column, lines, more, number, rows_shown, text};
use crate::exit::Failure;
use crate::table::{bytes, span};

const CLIENTS: [Column; 9] = [
    ("client", |row| text(row, "client_id")),
    ("state", |row| state(row).to_owned()),
    ("user", |row| text(row, "user")),
    ("address", |row| text(row, "address")),
    ("MQTT", |row| text(row, "version")),
    ("for", |row| row["for_s"].as_u64().map_or_else(|| "-".to_owned(), span)),
    ("subscriptions", |row| text(row, "subscriptions")),
    ("waiting", waiting),
    ("dropped", |row| text(row, "dropped")),
];

const SUBSCRIPTIONS: [Column; 5] = [
    ("filter", |row| text(row, "filter")),
    ("QoS", |row| text(row, "qos")),
    ("no local", |row| text(row, "no_local")),
    ("retain as published", |row| text(row, "retain_as_published")),
    ("identifier", |row| text(row, "subscription_id")),
];

fn state(row: &Value) -> &'static str {
    if row["connected"] == true { "connected" } else { "away" }
}

/// Messages that wait for a client, and those that it has not acknowledged.
fn waiting(row: &Value) -> String {
    (number(row, "queue_len") + number(row, "inflight")).to_string()
}

pub(super) fn list(client: &CtlClient, arguments: &ClientsArguments) -> Result<Said, Failure> {
    let query = [
        ("prefix", arguments.prefix.as_deref()),
        ("user", arguments.user.as_deref()),
        ("address", arguments.address.as_deref()),
        ("state", arguments.state.as_deref()),
    ];
    let rows_max = arguments.page.rows_max();
    let found = client.rows("/clients", (&query, "clients"), rows_max, |_| {})?;
    let table = rows_shown(&found.rows, &CLIENTS, 4, "There is no such client.");
    let table = format!("{table}{}", more(found.has_more));
    Ok(Said::new(json!({"clients": found.rows, "more": found.has_more}), table))
}

pub(super) fn client(client: &CtlClient, client_id: &str) -> Result<Said, Failure> {
    let answer = client.get(&format!("/clients/{}", encoded(client_id)), &[])?;
    let some = |key: &str| match answer[key].is_null() {
        true => String::new(),
        false => text(&answer, key),
    };
    let seconds = |key: &str| answer[key].as_u64().map(span).unwrap_or_default();
    let expiry = match answer["session_expiry_s"].as_u64() {
        None => "never".to_owned(),
        Some(0) => "with its connection".to_owned(),
        Some(expiry_s) => format!("{} after its connection", span(expiry_s)),
    };
    let queue = format!(
        "{} messages, {}{}",
        number(&answer, "queue_len"),
        bytes(number(&answer, "queue_bytes")),
        if answer["queue_full"] == true { ", full" } else { "" }
    );
    let pairs = [
        ("client", some("client_id")),
        ("state", format!("{} {}", state(&answer), seconds("for_s")).trim_end().to_owned()),
        ("address", some("address")),
        ("listener", some("listener")),
        ("user", some("user")),
        ("MQTT", some("version")),
        ("bridge", if answer["bridge"] == true { "yes".to_owned() } else { String::new() }),
        ("session ends", expiry),
        ("session ends in", seconds("session_ends_in_s")),
        ("durable", some("durable")),
        ("subscriptions", some("subscriptions")),
        ("queue", queue),
        (
            "in flight",
            format!("{} of {}", number(&answer, "inflight"), number(&answer, "inflight_max")),
        ),
        ("not acknowledged to it", some("inbound_unacked")),
        ("unsent output", bytes(number(&answer, "output_bytes"))),
        ("output blocked for", blocked(number(&answer, "blocked_ms"))),
        ("packets at most", some("packet_size_max")),
        ("dropped", dropped(&answer)),
        ("will", will(&answer["will"])),
        ("last connection", last_connection(&answer["last_connection"])),
        ("shard", some("shard")),
    ];
    let text = lines(&pairs);
    Ok(Said::new(answer, text))
}

fn blocked(blocked_ms: u64) -> String {
    if blocked_ms == 0 { String::new() } else { format!("{blocked_ms} ms") }
}

fn dropped(answer: &Value) -> String {
    let by_reason = answer["dropped_by_reason"].as_object();
    let named: Vec<String> = by_reason
        .into_iter()
        .flatten()
        .filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0))
        .map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")))
        .collect();
    match named.is_empty() {
        true => "0".to_owned(),
        false => named.join(", "),
    }
}

fn will(will: &Value) -> String {
    if will.is_null() {
        return String::new();
    }
    let retained = if will["retain"] == true { ", retained" } else { "" };
    let delay = match number(will, "delay_s") {
        0 => String::new(),
        delay_s => format!(", after {}", span(delay_s)),
    };
    let size = bytes(number(will, "payload_bytes"));
    format!("{}, QoS {}, {size}{retained}{delay}", text(will, "topic"), text(will, "qos"))
}

fn last_connection(last: &Value) -> String {
    if last.is_null() {
        return String::new();
    }
    let (ago, length) = (span(number(last, "ended_s_ago")), span(number(last, "duration_s")));
    format!("ended {ago} ago after {length}: {}", text(last, "reason"))
}

pub(super) fn kick(client: &CtlClient, arguments: &KickArguments) -> Result<Said, Failure> {
    let session = arguments.end_session.then_some("end");
    let path = format!("/clients/{}", encoded(&arguments.client_id));
    let answer = client.delete(&path, &[("session", session)])?;
    let connection = match answer["was_connected"] == true {
        true => "was disconnected",
        false => "was not connected",
    };
    let session = match answer["session_ended"] == true {
        true => "its session has ended",
        false => "its session stays",
    };
    let text = format!("{} {connection}; {session}\n", text(&answer, "client_id"));
    Ok(Said::new(answer, crate::table::printable(text.trim_end()) + "\n"))
}

pub(super) fn subscriptions(client: &CtlClient, client_id: &str) -> Result<Said, Failure> {
    let path = format!("/clients/{}/subscriptions", encoded(client_id));
    let mut rows: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut page = client.get(&path, &[("cursor", cursor.as_deref())])?;
        if let Some(Value::Array(more)) = page.get_mut("subscriptions").map(Value::take) {
            rows.extend(more);
        }
        cursor = page.get("next").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    rows.sort_by_cached_key(|row| text(row, "filter"));
    let table = rows_shown(&rows, &SUBSCRIPTIONS, 1, "It has no subscriptions.");
    Ok(Said::new(json!({"subscriptions": rows}), table))
}
