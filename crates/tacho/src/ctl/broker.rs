//! The broker as a whole.

use serde_json::{Value, json};
use tacho_broker::overload_effect;

use super::Said;
use super::arguments::{ConfigArguments, CtlExplainArguments, ListenerCommand, PageArguments};
use super::client::{CtlClient, encoded};
use super::shown::{Column, lines, list, more, number, rows_shown, text};
use crate::exit::{self, Failure};
use crate::table::{bytes, printable, span};

const USERS: [Column; 3] = [
    ("user", |row| text(row, "user")),
    ("roles", |row| joined(row, "roles")),
    ("listeners", |row| joined(row, "listeners")),
];

const LISTENERS: [Column; 7] = [
    ("address", |row| text(row, "address")),
    ("transport", |row| text(row, "transport")),
    ("state", |row| text(row, "state")),
    ("users from", |row| text(row, "password_file")),
    ("anonymous", |row| text(row, "allow_anonymous")),
    ("connections", |row| text(row, "connections")),
    ("at most", |row| text(row, "connections_max")),
];

const LIMITS: [Column; 3] = [
    ("limit", |row| text(row, "limit")),
    ("used", |row| text(row, "used")),
    ("at most", |row| text(row, "max")),
];

const BRIDGES: [Column; 10] = [
    ("bridge", |row| text(row, "name")),
    ("other broker", |row| text(row, "remote")),
    ("from", |row| text(row, "source")),
    ("mode", |row| text(row, "mode")),
    ("state", |row| text(row, "state")),
    ("up", |row| format!("{}/{}", text(row, "connected"), list(row, "connections").len())),
    ("sent", |row| text(row, "sent")),
    ("received", |row| text(row, "received")),
    ("waiting", |row| text(row, "buffered_messages")),
    ("", problem),
];

const VALUES: [Column; 4] = [
    ("key", |row| text(row, "key")),
    ("value", |row| text(row, "value")),
    ("from", source),
    ("applies", |row| text(row, "applies").replace('_', " ")),
];

/// `file broker.toml`, `default`.
fn source(row: &Value) -> String {
    let place = row["place"].as_str();
    place.map_or_else(|| text(row, "source"), |place| format!("{} {place}", text(row, "source")))
}

fn joined(row: &Value, key: &str) -> String {
    let texts: Vec<&str> = list(row, key).iter().filter_map(Value::as_str).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(", ") }
}

fn problem(bridge: &Value) -> String {
    let connections = list(bridge, "connections").iter();
    connections.filter_map(|one| one["problem"].as_str()).next().unwrap_or_default().to_owned()
}

pub(super) fn status(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/status", &[])?;
    let some = |key: &str| text(&answer, key);
    let overload = match number(&answer, "overload_level").min(4) {
        0 => "none".to_owned(),
        level => format!("{level}: {}", overload_effect(level)),
    };
    let drain = match answer["drain"].as_str() {
        None | Some("off") => String::new(),
        Some(phase) => phase.to_owned(),
    };
    let health = match answer["problem"].as_str() {
        None => "fine".to_owned(),
        Some(problem) => problem.to_owned(),
    };
    let bridges = match number(&answer, "bridges") {
        0 => String::new(),
        count => format!("{} of {count} up", number(&answer, "bridges_up")),
    };
    let shown = lines(&[
        ("version", some("version")),
        ("running for", span(number(&answer, "uptime_s"))),
        ("health", health),
        ("drain", drain),
        ("overload", overload),
        ("shards", some("shards")),
        ("clients connected", some("clients_connected")),
        ("sessions", some("sessions")),
        ("subscriptions", some("subscriptions")),
        ("retained, with $SYS", some("retained")),
        ("messages in", some("messages_in")),
        ("messages out", some("messages_out")),
        ("messages waiting", some("waiting")),
        ("queues and buffers", bytes(number(&answer, "memory_bytes"))),
        ("bridges", bridges),
    ]);
    Ok(Said::new(answer, shown))
}

/// Its answer is the exit code, for probes without a shell.
pub(super) fn health(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/status", &[])?;
    match answer["problem"].as_str() {
        None => Ok(Said::new(json!({"healthy": true}), "The broker is healthy.\n".to_owned())),
        Some(problem) => {
            Err(Failure::new(exit::THRESHOLD, format!("the broker is not healthy: {problem}")))
        }
    }
}

pub(super) fn users(client: &CtlClient, page: &PageArguments) -> Result<Said, Failure> {
    let found = client.rows("/users", (&[], "users"), page.rows_max(), |_| {})?;
    let none = "There are no users: no listener has a password file.";
    let table = format!("{}{}", rows_shown(&found.rows, &USERS, 3, none), more(found.has_more));
    Ok(Said::new(json!({"users": found.rows, "more": found.has_more}), table))
}

pub(super) fn roles(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/roles", &[])?;
    let columns: [Column; 1] = [("role", |row| text(row, "role"))];
    let table = rows_shown(list(&answer, "roles"), &columns, 1, "There are no roles.");
    Ok(Said::new(answer, table))
}

pub(super) fn explain(
    client: &CtlClient,
    arguments: &CtlExplainArguments,
) -> Result<Said, Failure> {
    let qos = arguments.qos.to_string();
    let answer = client.get(
        "/explain",
        &[
            ("action", Some(&*arguments.action)),
            ("topic", arguments.topic.as_deref()),
            ("qos", Some(&*qos)),
            ("retain", arguments.retain.then_some("true")),
            ("client_id", arguments.client_id.as_deref()),
            ("user", arguments.user.as_deref()),
        ],
    )?;
    let is_allowed = answer["allowed"] == true;
    let mut shown = String::new();
    if answer["of_session"] == true {
        let user = answer["user"].as_str().map_or("no user", |user| user);
        shown.push_str(&format!("as it is logged in: {}\n", printable(user)));
    }
    if !list(&answer, "roles").is_empty() {
        shown.push_str(&format!("roles: {}\n", printable(&joined(&answer, "roles"))));
    }
    let verdict = if is_allowed { "allowed" } else { "denied" };
    shown.push_str(&format!("{verdict}: {}\n", printable(&text(&answer, "why"))));
    let code = if is_allowed { exit::OK } else { exit::THRESHOLD };
    Ok(Said::new(answer, shown).with_code(code))
}

pub(super) fn listeners(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/listeners", &[])?;
    let table = rows_shown(list(&answer, "listeners"), &LISTENERS, 4, "There are no listeners.");
    Ok(Said::new(answer, table))
}

pub(super) fn listener(client: &CtlClient, command: &ListenerCommand) -> Result<Said, Failure> {
    let (address, action) = match command {
        ListenerCommand::Start { address } => (address, "start"),
        ListenerCommand::Stop { address } => (address, "stop"),
    };
    let path = format!("/listeners/{}/{action}", encoded(address));
    let answer = client.post_nothing(&path)?;
    let (address, state) = (text(&answer, "address"), text(&answer, "state"));
    let said = format!("{address} is {state}, with {} connections\n", text(&answer, "connections"));
    Ok(Said::new(answer, said))
}

pub(super) fn limits(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/limits", &[])?;
    let table = rows_shown(list(&answer, "limits"), &LIMITS, 1, "There are no limits.");
    Ok(Said::new(answer, table))
}

pub(super) fn bridges(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/bridges", &[])?;
    let table = rows_shown(list(&answer, "bridges"), &BRIDGES, 5, "This broker has no bridges.");
    Ok(Said::new(answer, table))
}

pub(super) fn journal(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.get("/journal", &[])?;
    let (some, size) = (|key: &str| text(&answer, key), |key: &str| bytes(number(&answer, key)));
    let shown = lines(&[
        ("directory", some("directory")),
        ("condition", some("condition")),
        ("segments", some("segments")),
        ("size", size("log_bytes")),
        ("needed", size("live_bytes")),
        ("garbage", size("garbage_bytes")),
        ("messages", some("live_messages")),
        ("queue entries", some("live_entries")),
        ("keys", some("live_keys")),
        ("commits", some("commits")),
        ("segments in quarantine", some("quarantined")),
    ]);
    Ok(Said::new(answer, shown))
}

pub(super) fn config(client: &CtlClient, arguments: &ConfigArguments) -> Result<Said, Failure> {
    let mut answer = client.get("/config", &[])?;
    if arguments.changed
        && let Some(values) = answer["values"].as_array_mut()
    {
        values.retain(|value| value["source"] != "default");
    }
    let table = rows_shown(list(&answer, "values"), &VALUES, 4, "Every value is the default.");
    Ok(Said::new(answer, table))
}

pub(super) fn reload(client: &CtlClient) -> Result<Said, Failure> {
    let answer = client.post_nothing("/reload")?;
    let mut said = ["certificates", "access"].map(|key| text(&answer, key) + "\n").concat();
    for (key, name) in [("applied", "applied"), ("waiting", "at the next start")] {
        for change in list(&answer, key) {
            let value = |key: &str| change[key].as_str().unwrap_or("unset").to_owned();
            let (from, to) = (value("from"), value("to"));
            said += &format!("{name}: {} {from} -> {to}\n", text(change, "key"));
        }
    }
    for problem in list(&answer, "problems").iter().filter_map(Value::as_str) {
        said += &format!("{problem}\n");
    }
    Ok(Said::new(answer, said))
}
