//! Text payloads: fixed, with fields, from a file, or from the rows of a table.
//!
//! Their header is [printable](super::printable). It replaces the field `{{header}}`; without that
//! field it is appended.

use serde::{Deserialize, Serialize};

use super::Header;
use super::printable::PRINTABLE_BYTES;

/// The text of a stream's messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ReceivedTemplate")]
pub struct Template {
    parts: Vec<Part>,
    rows: Vec<Vec<String>>,
}

/// A template as another process sent it, which is checked before it is used.
#[derive(Deserialize)]
struct ReceivedTemplate {
    parts: Vec<Part>,
    rows: Vec<Vec<String>>,
}

impl TryFrom<ReceivedTemplate> for Template {
    type Error = &'static str;

    fn try_from(ReceivedTemplate { parts, rows }: ReceivedTemplate) -> Result<Self, Self::Error> {
        let is_sound = |part: &Part| match part {
            Part::Time { unit_ns } => *unit_ns > 0,
            Part::Random { from, to } => from <= to,
            Part::Column(column) => !rows.is_empty() && rows.iter().all(|row| *column < row.len()),
            _ => true,
        };
        let headers = parts.iter().filter(|part| **part == Part::Header).count();
        match headers == 1 && parts.iter().all(is_sound) {
            true => Ok(Self { parts, rows }),
            false => Err("a template that no text gives"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Literal(Vec<u8>),
    Header,
    Seq,
    Stream,
    Client,
    Topic,
    /// Unix time at which the message was written, in units of `unit_ns`.
    Time {
        unit_ns: u64,
    },
    Random {
        from: i64,
        to: i64,
    },
    /// A column of the message's row.
    Column(usize),
}

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A field without its end.
    #[error("'{{{{' without '}}}}' after it: {rest:?}")]
    Unclosed {
        /// The text from that field on.
        rest: String,
    },
    /// An unknown field.
    #[error(
        "unknown field {{{{{name}}}}}; use header, seq, stream, client, topic, time_s, time_ms, time_us, time_ns, random FROM TO{columns}"
    )]
    Unknown {
        /// As written.
        name: String,
        /// The columns of the table, each with a comma before it.
        columns: String,
    },
    /// Bad bounds of a random number.
    #[error("{{{{{field}}}}}: write {{{{random FROM TO}}}} with two whole numbers, FROM <= TO")]
    Random {
        /// As written.
        field: String,
    },
    /// A table without rows.
    #[error("the table has no rows")]
    NoRows,
    /// A row with too few or too many columns.
    #[error("row {row} has {found} columns, not {expected}")]
    Columns {
        /// Number of the row, from 1.
        row: usize,
        /// Its columns.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// More than one place for the header.
    #[error("{{{{header}}}} occurs {count} times; use it once at most")]
    Headers {
        /// Number of occurrences.
        count: usize,
    },
}

/// The values of the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) header: &'a Header,
    pub(crate) client: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) seed: u64,
    /// Unix time minus CLOCK_MONOTONIC.
    pub(crate) unix_offset_ns: u64,
}

impl Template {
    /// The same bytes in every message: a text or the content of a file.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        Self::from_parts(vec![Part::Literal(bytes.into())], Vec::new())
    }

    /// A text with fields in double braces.
    ///
    /// # Errors
    /// A field is unclosed or unknown.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_parts(text, &[], Vec::new())
    }

    /// A text with fields, including the columns of a table by name. Message `n` of stream `k` uses
    /// row `k + n`, modulo the number of rows.
    ///
    /// # Errors
    /// A field is unclosed or unknown, or a row does not have one cell per column.
    pub fn with_rows(
        text: &str,
        columns: &[String],
        rows: Vec<Vec<String>>,
    ) -> Result<Self, TemplateError> {
        if rows.is_empty() {
            return Err(TemplateError::NoRows);
        }
        let expected = columns.len();
        let bad = rows.iter().position(|row| row.len() != expected);
        if let Some(row) = bad {
            return Err(TemplateError::Columns { row: row + 1, found: rows[row].len(), expected });
        }
        Self::parse_parts(text, columns, rows)
    }

    /// One row per message, unchanged.
    ///
    /// # Errors
    /// There are no rows.
    pub fn from_rows(rows: Vec<String>) -> Result<Self, TemplateError> {
        if rows.is_empty() {
            return Err(TemplateError::NoRows);
        }
        let rows = rows.into_iter().map(|row| vec![row]).collect();
        Ok(Self::from_parts(vec![Part::Column(0)], rows))
    }

    fn parse_parts(
        text: &str,
        columns: &[String],
        rows: Vec<Vec<String>>,
    ) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, field)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Literal(before.into()));
            }
            let Some((field, behind)) = field.split_once("}}") else {
                return Err(TemplateError::Unclosed { rest: format!("{{{{{field}") });
            };
            parts.push(Part::parse(field.trim(), columns)?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        match parts.iter().filter(|part| **part == Part::Header).count() {
            0 | 1 => Ok(Self::from_parts(parts, rows)),
            count => Err(TemplateError::Headers { count }),
        }
    }

    fn from_parts(mut parts: Vec<Part>, rows: Vec<Vec<String>>) -> Self {
        if !parts.contains(&Part::Header) {
            parts.push(Part::Header);
        }
        Self { parts, rows }
    }

    /// Bytes of the largest message, header included.
    pub fn bytes_max(&self, client: &str, topic: &str) -> usize {
        let widest = |column: &usize| {
            let cells = self.rows.iter().map(|row| row[*column].len());
            cells.max().unwrap_or(0)
        };
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(bytes) => bytes.len(),
                Part::Header => PRINTABLE_BYTES,
                Part::Seq | Part::Stream => 10,
                Part::Client => client.len(),
                Part::Topic => topic.len(),
                Part::Time { .. } | Part::Random { .. } => 20,
                Part::Column(column) => widest(column),
            })
            .sum()
    }

    /// Appends the payload of a message.
    pub(crate) fn write(&self, facts: &Facts<'_>, out: &mut Vec<u8>) {
        let Facts { header, client, topic, .. } = facts;
        for (at, part) in (0u64..).zip(&self.parts) {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Header => header.write_printable(out),
                Part::Seq => put(out, header.seq),
                Part::Stream => put(out, header.stream.number()),
                Part::Client => out.extend_from_slice(client.as_bytes()),
                Part::Topic => out.extend_from_slice(topic.as_bytes()),
                Part::Time { unit_ns } => {
                    put(out, header.sent_ns().wrapping_add(facts.unix_offset_ns) / unit_ns);
                }
                Part::Random { from, to } => put(out, random(facts, at, *from, *to)),
                Part::Column(column) => {
                    let row = (u64::from(header.stream.number()) + u64::from(header.seq))
                        % self.rows.len() as u64;
                    out.extend_from_slice(self.rows[row as usize][*column].as_bytes());
                }
            }
        }
    }
}

impl Part {
    fn parse(field: &str, columns: &[String]) -> Result<Self, TemplateError> {
        if let Some(column) = columns.iter().position(|column| column == field) {
            return Ok(Self::Column(column));
        }
        Ok(match field {
            "header" => Self::Header,
            "seq" => Self::Seq,
            "stream" => Self::Stream,
            "client" => Self::Client,
            "topic" => Self::Topic,
            "time_s" => Self::Time { unit_ns: 1_000_000_000 },
            "time_ms" => Self::Time { unit_ns: 1_000_000 },
            "time_us" => Self::Time { unit_ns: 1_000 },
            "time_ns" => Self::Time { unit_ns: 1 },
            _ => match field.strip_prefix("random") {
                Some(bounds) if bounds.is_empty() || bounds.starts_with(' ') => {
                    let bad = || TemplateError::Random { field: field.to_owned() };
                    let numbers: Vec<i64> = bounds
                        .split_whitespace()
                        .map(|number| number.parse().map_err(|_| bad()))
                        .collect::<Result<_, _>>()?;
                    match numbers[..] {
                        [from, to] if from <= to => Self::Random { from, to },
                        _ => return Err(bad()),
                    }
                }
                _ => {
                    let columns = columns.iter().map(|column| format!(", {column}")).collect();
                    return Err(TemplateError::Unknown { name: field.to_owned(), columns });
                }
            },
        })
    }
}

/// A number determined by stream and sequence number, so that a receiver can check it.
fn random(facts: &Facts<'_>, part: u64, from: i64, to: i64) -> i64 {
    let Header { stream, seq, .. } = facts.header;
    let message = u64::from(stream.number()) << 32 | u64::from(*seq);
    let mixed = message.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ part << 56;
    fastrand::Rng::with_seed(facts.seed ^ mixed).i64(from..=to)
}

fn put(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    use std::io::Write as _;
    // Invariant: writing to memory does not fail.
    write!(out, "{number}").expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::StreamIndex;

    fn written(template: &Template, seq: u32) -> String {
        let header = Header {
            run: 9,
            stream: StreamIndex::new(1),
            seq,
            probe: false,
            intended_ns: 5_000_000_000,
            late_us: 2,
        };
        let facts = Facts {
            header: &header,
            client: "pub-1",
            topic: "t/1",
            seed: 42,
            unix_offset_ns: 1_000_000_000,
        };
        let mut out = Vec::new();
        template.write(&facts, &mut out);
        assert!(out.len() <= template.bytes_max("pub-1", "t/1"));
        assert_eq!(Header::find_printable(&out, &mut 0), Some(header));
        String::from_utf8(out).expect("is text")
    }

    #[test]
    fn fields_are_substituted() {
        let text =
            r#"{"id":"{{header}}","n":{{seq}},"who":"{{client}} {{topic}}","at":{{time_us}}}"#;
        let template = Template::parse(text).expect("parses");
        let message = written(&template, 7);
        assert!(message.starts_with(r#"{"id":"tacho"#), "{message}");
        assert!(message.ends_with(r#"","n":7,"who":"pub-1 t/1","at":6000002}"#), "{message}");
    }

    #[test]
    fn the_header_is_appended_without_its_field() {
        let message = written(&Template::literal("21.5 C "), 0);
        assert!(message.starts_with("21.5 C tacho"), "{message}");
        assert_eq!(message.len(), 7 + PRINTABLE_BYTES);
    }

    #[test]
    fn random_numbers_are_bounded_and_reproducible() {
        let template = Template::parse("{{random -3 3}} ").expect("parses");
        let number = |seq| -> i64 {
            let message = written(&template, seq);
            message.split(' ').next().expect("a word").parse().expect("a number")
        };
        let numbers: std::collections::BTreeSet<i64> = (0..200).map(number).collect();
        assert_eq!(numbers, (-3..=3).collect());
        assert_eq!(number(5), number(5));
    }

    #[test]
    fn rows_take_turns() {
        let columns = ["name".to_owned(), "value".to_owned()];
        let rows = vec![vec!["a".into(), "1".into()], vec!["b".into(), "2".into()]];
        let template = Template::with_rows("{{name}}={{value}};", &columns, rows).expect("parses");
        assert!(written(&template, 0).starts_with("b=2;"));
        assert!(written(&template, 1).starts_with("a=1;"));
        let lines = Template::from_rows(vec!["x,y".into(), "z".into()]).expect("rows");
        assert!(written(&lines, 3).starts_with("x,ytacho"));
    }

    #[test]
    fn errors_are_named() {
        let complaint = |text: &str| Template::parse(text).expect_err("is wrong").to_string();
        assert!(complaint("a {{seq").contains("'{{' without '}}' after it: \"{{seq\""));
        assert!(complaint("{{sequence}}").starts_with("unknown field {{sequence}}; use"));
        assert!(complaint("{{random 5 1}}").contains("FROM <= TO"));
        assert!(complaint("{{random}}").contains("FROM <= TO"));
        assert!(complaint("{{header}}{{header}}").contains("2 times"));
        assert_eq!(Template::from_rows(Vec::new()), Err(TemplateError::NoRows));
        let rows = vec![vec!["1".into()], vec![]];
        let error = Template::with_rows("", &["a".into()], rows).expect_err("is wrong");
        assert_eq!(error.to_string(), "row 2 has 0 columns, not 1");
    }
}
