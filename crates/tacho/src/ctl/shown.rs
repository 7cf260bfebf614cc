//! Answers as tables.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::table::{printable, span, table};

/// A column: its head, and the cell of a row.
pub(super) type Column = (&'static str, fn(&Value) -> String);

/// A table of rows, the first `left` columns to the left; a sentence where there are none.
pub(super) fn rows_shown(rows: &[Value], columns: &[Column], left: usize, none: &str) -> String {
    if rows.is_empty() {
        return format!("{none}\n");
    }
    let mut cells = vec![columns.iter().map(|(head, _)| (*head).to_owned()).collect()];
    cells.extend(rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect()));
    table(&cells, left)
}

/// What a list says when it is cut.
pub(super) fn more(has_more: bool) -> &'static str {
    if has_more { "... and more: see --limit and --all\n" } else { "" }
}

/// Lines of a name and a value each, without those whose value is absent.
pub(super) fn lines(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let shown = pairs.iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!("{name:<width$}  {}\n", printable(value))).collect()
}

/// A field as text; `-` where it is absent.
pub(super) fn text(row: &Value, key: &str) -> String {
    match &row[key] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

/// A field as a number; 0 where it is absent.
pub(super) fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or(0)
}

/// The rows of a list.
pub(super) fn list<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().map_or(&[], Vec::as_slice)
}

/// How long ago a time is, in milliseconds since 1970, by this machine's clock.
pub(super) fn ago(time_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    span(now.as_secs().saturating_sub(time_ms / 1_000))
}

/// `12:00:01` of seconds since 1970.
pub(super) fn time_of_day(unix_s: u64) -> String {
    let seconds = unix_s % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_become_a_table_and_none_a_sentence() {
        let columns: [Column; 2] = [("name", |row| text(row, "name")), ("n", |row| text(row, "n"))];
        let rows = [json!({"name": "a", "n": 12}), json!({"n": null})];
        assert_eq!(rows_shown(&rows, &columns, 1, "none"), "name   n\na     12\n-      -\n");
        assert_eq!(rows_shown(&[], &columns, 1, "There is none."), "There is none.\n");
        let pairs = [("a", "x\ny".to_owned()), ("long", String::new()), ("b", "z".to_owned())];
        assert_eq!(lines(&pairs), "a     x?y\nb     z\n");
    }
}
