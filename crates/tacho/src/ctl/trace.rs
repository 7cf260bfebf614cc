//! Packets and decisions, as they come: to the terminal or to a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::arguments::TraceArguments;
use super::client::CtlClient;
use super::shown::{text, time_of_day};
use crate::exit::{self, Failure};
use crate::signals;
use crate::table::printable;

/// Only its owner reads it: payloads may be in it.
const FILE_MODE: u32 = 0o600;

/// Prints entries until the trace ends or there have been enough; Ctrl-C ends it as well.
pub(super) fn trace(
    client: &CtlClient,
    arguments: &TraceArguments,
    json: bool,
) -> Result<u8, Failure> {
    let TraceArguments { client_id, user, address, topic, payload, out, count, .. } = arguments;
    let numbers = [arguments.payload_bytes, arguments.seconds, arguments.mib_max << 20];
    let [payload_bytes, seconds, bytes] = numbers.map(|number| number.to_string());
    let query = [
        ("client_id", client_id.as_deref()),
        ("user", user.as_deref()),
        ("address", address.as_deref()),
        ("topic", topic.as_deref()),
        ("payload", Some(payload.as_str())),
        ("payload_bytes", Some(&*payload_bytes)),
        ("seconds", Some(&*seconds)),
        ("bytes", Some(&*bytes)),
    ];
    let mut file = match out.as_deref() {
        Some(path) => Some((path, create(path)?)),
        None => None,
    };
    signals::end_well()?;
    let (mut left, mut failure) = (count.unwrap_or(u64::MAX), None);
    client.lines("/trace", &query, |line| {
        let Some(data) = line.strip_prefix("data: ") else { return true };
        let Ok(entry) = serde_json::from_str::<Value>(data) else { return true };
        let kind = text(&entry, "kind");
        if kind == "ready" {
            match out {
                None => eprintln!("tracing; Ctrl-C ends it"),
                Some(path) => eprintln!("tracing to {}; Ctrl-C ends it", path.display()),
            }
            if !json {
                return true;
            }
        }
        let shown = if json { data.to_owned() } else { shown(&entry) };
        match &mut file {
            None => println!("{shown}"),
            Some((path, file)) => {
                if let Err(error) = writeln!(file, "{shown}") {
                    failure = Some(not_written(path, &error));
                    return false;
                }
            }
        }
        left -= u64::from(!matches!(&*kind, "ready" | "missed"));
        left > 0 && kind != "ended"
    })?;
    failure.map_or(Ok(exit::OK), Err)
}

fn create(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path);
    opened.map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let sentence = format!("{} cannot be written: {error}", path.display());
    Failure::new(exit::INVALID_CONFIG, sentence)
}

/// `12:00:01.123456Z  in     PUBLISH  client=a user=b  a/b  qos=1 id=7 5 bytes  "hello"`.
fn shown(entry: &Value) -> String {
    let time_us = entry["time_us"].as_u64().unwrap_or_default();
    let (time, us) = (time_of_day(time_us / 1_000_000), time_us % 1_000_000);
    let is_packet = entry["packet"].is_string();
    let packet = if is_packet { text(entry, "packet") } else { String::new() };
    let fields = [("client_id", "client"), ("user", "user"), ("address", "address")];
    let given = fields.into_iter().filter(|(key, _)| !entry[key].is_null());
    let mut parts: Vec<String> = vec![
        given
            .map(|(key, name)| format!("{name}={}", text(entry, key)))
            .collect::<Vec<_>>()
            .join(" "),
    ];
    parts.extend(entry["topic"].as_str().map(str::to_owned));
    parts.push(text(entry, "text"));
    if let Some(payload) = entry["payload"].as_str() {
        let dots = if entry["payload_cut"] == true { "..." } else { "" };
        parts.push(format!("\"{payload}{dots}\""));
    }
    parts.retain(|part| !part.is_empty());
    let kind = text(entry, "kind");
    let line = format!("{time}.{us:06}Z  {kind:<5}  {packet:<11}  {}", parts.join("  "));
    printable(line.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let entry = json!({
            "kind": "in", "time_us": 86_400_000_000_u64 + 3_661_000_007_u64, "client_id": "a",
            "address": "127.0.0.1:5", "packet": "PUBLISH", "topic": "t\n", "text": "qos=0 9 bytes",
            "payload": "hello", "payload_cut": true,
        });
        let line = "01:01:01.000007Z  in     PUBLISH      client=a address=127.0.0.1:5  t?  \
                    qos=0 9 bytes  \"hello...\"";
        assert_eq!(shown(&entry), line);
        let decision = json!({"kind": "route", "client_id": "a", "text": "to no receiver"});
        assert_eq!(
            shown(&decision),
            "00:00:00.000000Z  route               client=a  to no receiver"
        );
    }
}
