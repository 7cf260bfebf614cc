//! Events, as they come.

use serde_json::Value;

use super::arguments::EventsArguments;
use super::client::CtlClient;
use super::shown::{text, time_of_day};
use crate::exit::{self, Failure};
use crate::signals;
use crate::table::printable;

/// Prints events until there have been enough; Ctrl-C ends it as well.
pub(super) fn events(
    client: &CtlClient,
    arguments: &EventsArguments,
    json: bool,
) -> Result<u8, Failure> {
    let EventsArguments { only, client_id, prefix, user, count } = arguments;
    signals::end_well()?;
    let query = [
        ("events", only.as_deref()),
        ("client_id", client_id.as_deref()),
        ("prefix", prefix.as_deref()),
        ("user", user.as_deref()),
    ];
    let mut left = count.unwrap_or(u64::MAX);
    client.lines("/events", &query, |line| {
        let Some(data) = line.strip_prefix("data: ") else { return true };
        let Ok(event) = serde_json::from_str::<Value>(data) else { return true };
        let is_ready = event["event"] == "ready";
        match (json, is_ready) {
            (true, _) => println!("{data}"),
            (false, true) => eprintln!("watching; Ctrl-C ends it"),
            (false, false) => println!("{}", shown(&event)),
        }
        left -= u64::from(!is_ready);
        left > 0
    })?;
    Ok(exit::OK)
}

/// `12:00:01.123  disconnected  client=a user=b address=...  why`.
fn shown(event: &Value) -> String {
    let time_ms = event["time_ms"].as_u64().unwrap_or_default();
    let (time, ms) = (time_of_day(time_ms / 1_000), time_ms % 1_000);
    let fields = [
        ("client_id", "client"),
        ("user", "user"),
        ("address", "address"),
        ("bridge", "bridge"),
        ("alarm", "alarm"),
        ("count", "count"),
    ];
    let given = fields.into_iter().filter(|(key, _)| !event[key].is_null());
    let fields: Vec<String> =
        given.map(|(key, name)| format!("{name}={}", text(event, key))).collect();
    let reason = event["reason"].as_str().unwrap_or_default();
    let line = format!(
        "{time}.{ms:03}Z  {:<13}  {}  {reason}",
        text(event, "event").replace('_', " "),
        fields.join(" ")
    );
    printable(line.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let event = json!({
            "event": "taken_over", "time_ms": 86_400_000 + 3_661_007_u64, "client_id": "a\n",
            "reason": "by the broker",
        });
        assert_eq!(shown(&event), "01:01:01.007Z  taken over     client=a?  by the broker");
        let missed = json!({"event": "missed", "count": 7});
        assert_eq!(shown(&missed), "00:00:00.000Z  missed         count=7");
    }
}
