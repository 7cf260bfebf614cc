//! How the broker has been in the last hour or day.

use serde_json::{Value, json};

use super::Said;
use super::arguments::HistoryArguments;
use super::client::CtlClient;
use super::shown::{Column, ago, list, number, rows_shown, text};
use crate::exit::Failure;
use crate::table::bytes;

/// Of a point.
const POINTS: [Column; 10] = [
    ("ago", |row| ago(number(row, "time_ms"))),
    ("clients", |row| text(row, "clients_connected")),
    ("sessions", |row| text(row, "sessions")),
    ("in/s", |row| rate(row, "messages_in")),
    ("out/s", |row| rate(row, "messages_out")),
    ("dropped/s", |row| rate(row, "dropped")),
    ("waiting", |row| text(row, "waiting")),
    ("memory", |row| bytes(number(row, "memory_bytes"))),
    ("journal", |row| bytes(number(row, "journal_bytes"))),
    ("loop lag", |row| format!("{} us", number(row, "loop_lag_us"))),
];
/// What stands at a time.
const STANDING: [&str; 7] = [
    "time_ms",
    "clients_connected",
    "sessions",
    "waiting",
    "memory_bytes",
    "journal_bytes",
    "loop_lag_us",
];
/// What is counted since the start of the broker.
const COUNTED: [&str; 3] = ["messages_in", "messages_out", "dropped"];

/// A second's part of what was added since the point before; `-` for the first point.
fn rate(row: &Value, key: &str) -> String {
    row[key].as_f64().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"))
}

/// The last points of an answer, each an object; counts as rates.
fn points(answer: &Value, limit: usize) -> Vec<Value> {
    let times = list(answer, "time_ms");
    let number = |key: &str, at: usize| list(answer, key).get(at).and_then(Value::as_u64);
    let point = |at: usize| {
        let mut row = json!({});
        for key in STANDING {
            row[key] = json!(number(key, at));
        }
        for key in COUNTED {
            row[key] = json!(at.checked_sub(1).and_then(|before| {
                let milliseconds =
                    number("time_ms", at)?.checked_sub(number("time_ms", before)?)?;
                let added = number(key, at)?.checked_sub(number(key, before)?)?;
                (milliseconds > 0).then(|| added as f64 * 1_000.0 / milliseconds as f64)
            }));
        }
        row
    };
    (times.len().saturating_sub(limit)..times.len()).map(point).collect()
}

pub(super) fn history(client: &CtlClient, arguments: &HistoryArguments) -> Result<Said, Failure> {
    let span = if arguments.day { "day" } else { "hour" };
    let answer = client.get("/history", &[("span", Some(span))])?;
    let rows = points(&answer, arguments.limit as usize);
    let none = "There is no point yet: the first comes within half a minute of the start.";
    let shown = rows_shown(&rows, &POINTS, 1, none);
    Ok(Said::new(answer, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates_and_only_the_last_points_are_shown() {
        let answer = json!({
            "time_ms": [1_000, 11_000, 21_000], "messages_in": [5, 105, 105],
            "messages_out": [0, 0, 50], "dropped": [0, 0, 0], "sessions": [1, 2, 3],
        });
        let rows = points(&answer, 2);
        let ins: Vec<_> = rows.iter().map(|row| rate(row, "messages_in")).collect();
        assert_eq!(ins, ["10.0", "0.0"]);
        assert_eq!(rate(&rows[1], "messages_out"), "5.0");
        assert_eq!(text(&rows[0], "sessions"), "2");
        assert_eq!(rate(&points(&answer, 9)[0], "messages_in"), "-");
    }
}
