//! Topics: who gets their messages, what is retained, what is published.

use std::fs;

use serde_json::{Value, json};

use super::Said;
use super::arguments::{
    CtlPublishArguments, PageArguments, RetainedCommand, SubscribersArguments, TopicArguments,
};
use super::client::CtlClient;
use super::shown::{Column, list, more, number, rows_shown, text};
use crate::exit::{self, Failure};
use crate::table::{bytes, printable, span};

const SUBSCRIBERS: [Column; 4] = [
    ("client", |row| text(row, "client_id")),
    ("filter", |row| text(row, "filter")),
    ("QoS", |row| text(row, "qos")),
    ("connected", |row| text(row, "connected")),
];

const GROUPS: [Column; 6] = [
    ("group", |row| text(row, "filter")),
    ("members", |row| text(row, "members")),
    ("connected", |row| text(row, "connected")),
    ("in flight", |row| text(row, "inflight")),
    ("waiting", |row| text(row, "waiting")),
    ("full", |row| text(row, "queue_full")),
];

const MEMBERS: [Column; 5] = [
    ("client", |row| text(row, "client_id")),
    ("QoS", |row| text(row, "qos")),
    ("connected", |row| text(row, "connected")),
    ("in flight", |row| text(row, "inflight")),
    ("waiting", |row| text(row, "queue_len")),
];

const RETAINED: [Column; 5] = [
    ("topic", |row| text(row, "topic")),
    ("user", |row| text(row, "user")),
    ("QoS", |row| text(row, "qos")),
    ("size", |row| bytes(number(row, "payload_bytes"))),
    ("expires in", |row| row["expires_in_s"].as_u64().map_or_else(|| "-".to_owned(), span)),
];

pub(super) fn subscribers(
    client: &CtlClient,
    arguments: &SubscribersArguments,
) -> Result<Said, Failure> {
    let query = [("filter", Some(&*arguments.filter))];
    let rows_max = arguments.page.rows_max();
    let found = client.rows("/subscribers", (&query, "subscribers"), rows_max, |_| {})?;
    let none = "No client has subscribed to this filter.";
    let table = rows_shown(&found.rows, &SUBSCRIBERS, 2, none);
    let table = format!("{table}{}", more(found.has_more));
    Ok(Said::new(json!({"subscribers": found.rows, "more": found.has_more}), table))
}

pub(super) fn topic(client: &CtlClient, arguments: &TopicArguments) -> Result<Said, Failure> {
    let query = [("topic", Some(&*arguments.topic))];
    let rows_max = arguments.page.rows_max();
    let (mut groups, mut bridges): (Vec<Value>, Vec<Value>) = Default::default();
    let found = client.rows("/receivers", (&query, "subscribers"), rows_max, |page| {
        // On the first page alone.
        groups.extend_from_slice(list(page, "groups"));
        bridges.extend_from_slice(list(page, "bridges"));
    })?;
    let none = "No client's own subscription matches.";
    let mut shown = rows_shown(&found.rows, &SUBSCRIBERS, 2, none);
    shown.push_str(more(found.has_more));
    if !groups.is_empty() {
        shown.push_str("\nOne member of each of these shared groups:\n");
        shown.push_str(&rows_shown(&groups, &GROUPS, 1, ""));
    }
    if !bridges.is_empty() {
        let names: Vec<&str> = bridges.iter().filter_map(Value::as_str).collect();
        shown.push_str(&format!("\nBridges: {}\n", printable(&names.join(", "))));
    }
    let json = json!({
        "topic": arguments.topic, "subscribers": found.rows, "groups": groups, "bridges": bridges,
        "more": found.has_more,
    });
    Ok(Said::new(json, shown))
}

pub(super) fn groups(client: &CtlClient, page: &PageArguments) -> Result<Said, Failure> {
    let found = client.rows("/groups", (&[], "groups"), page.rows_max(), |_| {})?;
    let table = rows_shown(&found.rows, &GROUPS, 1, "There are no shared groups.");
    let table = format!("{table}{}", more(found.has_more));
    Ok(Said::new(json!({"groups": found.rows, "more": found.has_more}), table))
}

pub(super) fn group(client: &CtlClient, filter: &str) -> Result<Said, Failure> {
    let answer = client.get("/group", &[("filter", Some(filter))])?;
    let mut shown = rows_shown(std::slice::from_ref(&answer), &GROUPS, 1, "");
    shown.push('\n');
    shown.push_str(&rows_shown(list(&answer, "member_list"), &MEMBERS, 1, "It has no members."));
    if answer["cut"] == true {
        shown.push_str("... and more\n");
    }
    Ok(Said::new(answer, shown))
}

pub(super) fn retained(client: &CtlClient, command: &RetainedCommand) -> Result<Said, Failure> {
    match command {
        RetainedCommand::List { filter, page } => {
            let query = [("filter", filter.as_deref())];
            let found = client.rows("/retained", (&query, "retained"), page.rows_max(), |_| {})?;
            let table = rows_shown(&found.rows, &RETAINED, 2, "There is no such message.");
            let table = format!("{table}{}", more(found.has_more));
            Ok(Said::new(json!({"retained": found.rows, "more": found.has_more}), table))
        }
        RetainedCommand::Show { topic } => {
            let answer = client.get("/retained/message", &[("topic", Some(topic))])?;
            let shown = match answer["payload"].as_str() {
                Some(payload) if payload.chars().all(|c| !c.is_control() || c == '\n') => {
                    format!("{payload}\n")
                }
                _ => format!("{} (base64)\n", text(&answer, "payload_base64")),
            };
            Ok(Said::new(answer, shown))
        }
        RetainedCommand::Delete { topic, filter } => {
            let mut deleted = 0;
            let mut cursor: Option<String> = None;
            loop {
                let query = [
                    ("topic", topic.as_deref()),
                    ("filter", filter.as_deref()),
                    ("cursor", cursor.as_deref()),
                ];
                let answer = client.delete("/retained", &query)?;
                deleted += number(&answer, "deleted");
                cursor = answer["next"].as_str().map(str::to_owned);
                if cursor.is_none() {
                    break;
                }
            }
            let plural = if deleted == 1 { "" } else { "s" };
            let text = format!("{deleted} retained message{plural} deleted\n");
            Ok(Said::new(json!({"deleted": deleted}), text))
        }
    }
}

pub(super) fn publish(
    client: &CtlClient,
    arguments: &CtlPublishArguments,
) -> Result<Said, Failure> {
    let CtlPublishArguments { topic, message, file, qos, retain, expiry } = arguments;
    let payload = match (message, file) {
        (Some(message), _) => message.clone().into_bytes(),
        (None, Some(path)) => fs::read(path).map_err(|error| {
            Failure::new(exit::INVALID_CONFIG, format!("{}: {error}", path.display()))
        })?,
        (None, None) => Vec::new(),
    };
    let mut body = json!({"topic": topic, "qos": qos, "retain": retain});
    if let Some(expiry_s) = expiry {
        body["expiry_s"] = (*expiry_s).into();
    }
    match String::from_utf8(payload) {
        Ok(text) => body["payload"] = text.into(),
        Err(error) => {
            use base64::Engine as _;
            let encoder = base64::engine::general_purpose::STANDARD;
            body["payload_base64"] = encoder.encode(error.as_bytes()).into();
        }
    }
    let answer = client.post("/publish", &body)?;
    let size = bytes(number(&answer, "payload_bytes"));
    let text = format!("published {size} to {}\n", printable(topic));
    Ok(Said::new(answer, text))
}
