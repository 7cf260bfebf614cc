//! A look into an uploaded data file: lines, columns, the first few of them, and what is wrong.
//!
//! The first lines go back to the browser that has just sent them, and nowhere else. Cells of
//! columns that by their names hold secrets are not shown even there.

use std::time::{Duration, Instant};

use csv::{ByteRecord, ReaderBuilder};
use serde::Serialize;

/// Lines that are shown.
const SHOWN_LINES: usize = 5;
/// Of each of them, cells.
const SHOWN_CELLS: usize = 12;
/// Of a cell, characters.
const SHOWN_CHARS: usize = 60;
/// Names of columns.
const COLUMNS_MAX: usize = 100;
/// Problems that are named.
const PROBLEMS_MAX: usize = 5;
/// How long a file is read; then the rest is not counted.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines between two looks at the clock.
const LINES_PER_LOOK: u64 = 1024;
/// What may stand between two cells, the usual one first.
const DELIMITERS: &[u8] = b",;\t|";
/// In place of a secret.
const HIDDEN: &str = "•••";
/// Parts of the names of columns that hold secrets.
const SECRETS: [&str; 5] = ["pass", "pwd", "secret", "token", "key"];

/// What a data file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TableLook {
    /// Lines with cells, a line of names included.
    pub(crate) lines: u64,
    /// Cells of the first line: the names of the columns, if it has them.
    pub(crate) columns: Vec<String>,
    /// The character between two cells.
    pub(crate) delimiter: String,
    /// The first lines.
    pub(crate) first: Vec<Vec<String>>,
    /// Whether all of the file was read.
    pub(crate) is_whole: bool,
}

/// Looks at the file `name`; what is wrong names file and line.
pub(crate) fn look(name: &str, bytes: &[u8]) -> (TableLook, Vec<String>) {
    look_until(name, bytes, Instant::now() + PATIENCE)
}

fn look_until(name: &str, bytes: &[u8], end: Instant) -> (TableLook, Vec<String>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let delimiter = delimiter(bytes);
    let mut table =
        TableLook { delimiter: char::from(delimiter).to_string(), ..TableLook::default() };
    let mut problems = Problems { name, found: Vec::new(), more: 0 };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(bytes);
    let mut record = ByteRecord::new();
    let mut cells = None;
    let mut hidden = Vec::new();
    loop {
        if table.lines % LINES_PER_LOOK == LINES_PER_LOOK - 1 && Instant::now() > end {
            return (table, problems.told());
        }
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => {
                problems.add(0, &format!("is not CSV: {error}"));
                break;
            }
        }
        let line = record.position().map_or(table.lines + 1, |position| line_of(bytes, position));
        if table.lines == 0 {
            table.columns = record.iter().take(COLUMNS_MAX).map(shown).collect();
            hidden = table.columns.iter().map(|name| is_secret(name)).collect();
        }
        let expected = *cells.get_or_insert(record.len());
        if record.len() != expected {
            let have = match record.len() {
                1 => "1 cell".to_owned(),
                several => format!("{several} cells"),
            };
            problems.add(line, &format!("{have}, the first line has {expected}"));
        } else if record.iter().any(|cell| std::str::from_utf8(cell).is_err()) {
            problems.add(line, "is not text in UTF-8");
        }
        if table.first.len() < SHOWN_LINES {
            let is_names = table.lines == 0;
            table.first.push(shown_line(&record, if is_names { &[] } else { &hidden }));
        }
        table.lines += 1;
    }
    if table.lines == 0 {
        problems.add(0, "has no lines");
    }
    table.is_whole = true;
    (table, problems.told())
}

/// The line of a record: its position is that behind the one before, where empty lines may follow.
fn line_of(bytes: &[u8], position: &csv::Position) -> u64 {
    let from = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = bytes.get(from..).unwrap_or_default();
    let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + empty.filter(|byte| **byte == b'\n').count() as u64
}

/// What is wrong, in sentences.
struct Problems<'n> {
    name: &'n str,
    found: Vec<String>,
    more: u64,
}

impl Problems<'_> {
    /// Something about a line, from 1, or about the file.
    fn add(&mut self, line: u64, what: &str) {
        if self.found.len() >= PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        self.found.push(match line {
            0 => format!("{} {what}", self.name),
            line => format!("{}:{line}: {what}", self.name),
        });
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.found.push(format!("{}: {} more such lines", self.name, self.more));
        }
        self.found
    }
}

/// The character that the first line has most of.
fn delimiter(bytes: &[u8]) -> u8 {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: u8| line.iter().filter(|byte| **byte == delimiter).count();
    let most = DELIMITERS.iter().rev().max_by_key(|delimiter| count(**delimiter));
    most.copied().unwrap_or(b',')
}

fn shown_line(record: &ByteRecord, hidden: &[bool]) -> Vec<String> {
    let cell = |(at, cell): (usize, &[u8])| match hidden.get(at) {
        Some(true) if !cell.is_empty() => HIDDEN.to_owned(),
        _ => shown(cell),
    };
    record.iter().enumerate().take(SHOWN_CELLS).map(cell).collect()
}

fn shown(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    let text = text.trim();
    let short: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() { format!("{short}…") } else { short }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_looked_at_without_its_secrets() {
        let text = "client_id;user;password\nm1;u1;s3cret\nm2;u2;\n";
        let (table, problems) = look("users.csv", text.as_bytes());
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((table.lines, table.delimiter.as_str(), table.is_whole), (3, ";", true));
        assert_eq!(table.columns, ["client_id", "user", "password"]);
        assert_eq!(table.first[1], ["m1", "u1", HIDDEN]);
        assert_eq!(table.first[2], ["m2", "u2", ""]);
    }

    #[test]
    fn problems_name_file_and_line() {
        let (table, problems) = look("users.csv", b"a,b\n1,2\n\n3\n4,\xff\n");
        assert_eq!(table.lines, 4);
        assert_eq!(
            problems,
            ["users.csv:4: 1 cell, the first line has 2", "users.csv:5: is not text in UTF-8"]
        );
        assert_eq!(look("empty.csv", b"").1, ["empty.csv has no lines"]);
        let uneven = format!("a,b\n{}", "1\n".repeat(20));
        let problems = look("x.csv", uneven.as_bytes()).1;
        assert_eq!(problems.len(), PROBLEMS_MAX + 1);
        assert_eq!(problems[PROBLEMS_MAX], "x.csv: 15 more such lines");
    }

    #[test]
    fn what_is_shown_is_bounded_whatever_a_file_holds() {
        let wide = format!("{}\n", "x".repeat(10_000) + &",y".repeat(5_000));
        let text = wide.repeat(50);
        let (table, _) = look("wide.csv", text.as_bytes());
        assert_eq!(
            (table.lines, table.columns.len(), table.first.len()),
            (50, COLUMNS_MAX, SHOWN_LINES)
        );
        let cells = table.first.iter().flatten();
        assert!(cells.clone().all(|cell| cell.chars().count() <= SHOWN_CHARS + 1));
        assert_eq!(cells.count(), SHOWN_LINES * SHOWN_CELLS);
        let long = "1\n".repeat(10_000);
        let (table, _) = look_until("long.csv", long.as_bytes(), Instant::now());
        assert!(!table.is_whole && table.lines < 10_000, "{}", table.lines);
        // Quotes that never end are one cell.
        assert_eq!(look("quote.csv", b"\"a,b\nc\n").0.lines, 1);
    }

    #[test]
    fn the_delimiter_is_the_one_that_the_first_line_has_most_of() {
        for (line, expected) in
            [("a", b','), ("a,b;c,d", b','), ("a\tb", b'\t'), ("a|b|c;d", b'|'), ("", b',')]
        {
            assert_eq!(delimiter(line.as_bytes()), expected, "{line}");
        }
    }
}
