//! Alarms.

use serde_json::Value;

use super::Said;
use super::arguments::AlarmsArguments;
use super::client::CtlClient;
use super::shown::{Column, ago, list, number, rows_shown, text};
use crate::exit::Failure;
use crate::table::span;

const ACTIVE: [Column; 4] = [
    ("alarm", |row| text(row, "alarm")),
    ("of", |row| text(row, "subject")),
    ("since", |row| format!("{} ago", ago(number(row, "since_ms")))),
    ("", |row| text(row, "text")),
];

const PAST: [Column; 5] = [
    ("alarm", |row| text(row, "alarm")),
    ("of", |row| text(row, "subject")),
    ("ended", |row| format!("{} ago", ago(number(row, "ended_ms")))),
    ("lasted", lasted),
    ("", |row| text(row, "text")),
];

fn lasted(row: &Value) -> String {
    span(number(row, "ended_ms").saturating_sub(number(row, "since_ms")) / 1_000)
}

pub(super) fn alarms(client: &CtlClient, arguments: &AlarmsArguments) -> Result<Said, Failure> {
    let answer = client.get("/alarms", &[])?;
    let mut shown = rows_shown(list(&answer, "active"), &ACTIVE, 3, "There is no alarm.");
    if arguments.past {
        shown.push('\n');
        shown += &rows_shown(list(&answer, "past"), &PAST, 3, "There was no other alarm.");
    }
    Ok(Said::new(answer, shown))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_past_alarm_tells_how_long_it_lasted() {
        let row = json!({"alarm": "disk", "since_ms": 1_000, "ended_ms": 301_000, "text": "full"});
        let shown = rows_shown(&[row], &PAST, 3, "");
        let line = shown.lines().nth(1).expect("a row");
        assert!(line.starts_with("disk   -") && line.ends_with("5 min  full"), "{line}");
    }
}
