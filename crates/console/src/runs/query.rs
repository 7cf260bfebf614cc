//! Which rows of a list are wanted, in which order, page by page.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tacho_record::Verdict;

use super::row::RunRow;
use crate::run_state::RunState;

/// Rows of a page, unless the query says.
const LIMIT: usize = 50;
/// Rows of a page at most.
const LIMIT_MAX: usize = 500;

/// A query as it stands in an address; an empty value counts as absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunQuery {
    q: String,
    state: String,
    verdict: String,
    scenario: String,
    tag: String,
    starred: String,
    baseline: String,
    sort: String,
    limit: String,
    cursor: String,
}

/// The rows of a page.
#[derive(Debug, Serialize)]
pub(crate) struct RunPage {
    rows: Vec<RunRow>,
    /// Leads to the next page; absent on the last one.
    next: Option<String>,
    /// Rows of all pages.
    total: usize,
    /// What can be chosen from.
    facets: Facets,
}

/// What rows of the folder have, whatever the query.
#[derive(Debug, Default, Serialize)]
struct Facets {
    scenarios: BTreeSet<String>,
    tags: BTreeSet<String>,
}

/// A figure or word of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey(Column);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Started,
    Name,
    Kind,
    State,
    Verdict,
    Scenario,
    Target,
    Version,
    Duration,
    Attempted,
    Achieved,
    Loss,
    P99,
    Cpu,
    Cpu75,
}

/// The names of columns, also those of a row's fields.
const COLUMNS: [(&str, Column); 18] = [
    ("started", Column::Started),
    ("name", Column::Name),
    ("kind", Column::Kind),
    ("state", Column::State),
    ("verdict", Column::Verdict),
    ("scenario", Column::Scenario),
    ("target", Column::Target),
    ("version", Column::Version),
    ("duration_s", Column::Duration),
    ("attempted_tps", Column::Attempted),
    ("achieved_tps", Column::Achieved),
    ("loss_percent", Column::Loss),
    ("p99", Column::P99),
    ("e2e_latency_us_p99", Column::P99),
    ("cpu_percent", Column::Cpu),
    ("cpu_75_tps", Column::Cpu75),
    ("cpu", Column::Cpu),
    ("cpu_75", Column::Cpu75),
];

/// A value to sort by.
#[derive(Debug, PartialEq)]
enum Cell {
    Text(String),
    Number(f64),
}

impl RunPage {
    /// The same page with each row changed.
    ///
    /// # Errors
    /// The first error of a change.
    pub(crate) fn mapped<E>(self, change: impl Fn(RunRow) -> Result<RunRow, E>) -> Result<Self, E> {
        let rows = self.rows.into_iter().map(change).collect::<Result<_, E>>()?;
        Ok(Self { rows, ..self })
    }
}

impl Facets {
    fn add(&mut self, row: &RunRow) {
        if !row.scenario.is_empty() && !self.scenarios.contains(&row.scenario) {
            self.scenarios.insert(row.scenario.clone());
        }
        for tag in row.tags.iter().filter(|tag| !tag.is_empty()) {
            if !self.tags.contains(tag) {
                self.tags.insert(tag.clone());
            }
        }
    }
}

impl SortKey {
    /// The column of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| Self(*column))
    }

    /// The figure of a row, where the column has figures.
    pub(crate) fn figure(self, row: &RunRow) -> Option<f64> {
        match self.cell(row) {
            Some(Cell::Number(number)) => Some(number),
            _ => None,
        }
    }

    fn cell(self, row: &RunRow) -> Option<Cell> {
        let text = |text: &str| (!text.is_empty()).then(|| Cell::Text(text.to_lowercase()));
        match self.0 {
            Column::Started => row.started.as_deref().and_then(text),
            Column::Name => text(&row.name),
            Column::Kind => text(&row.kind),
            Column::State => Some(Cell::Number(f64::from(row.state as u8))),
            Column::Verdict => row.verdict.and_then(|verdict| text(verdict.name())),
            Column::Scenario => text(&row.scenario),
            Column::Target => text(&row.target),
            Column::Version => text(&row.version),
            Column::Duration => row.duration_s.map(Cell::Number),
            Column::Attempted => row.attempted_tps.map(Cell::Number),
            Column::Achieved => row.achieved_tps.map(Cell::Number),
            Column::Loss => row.loss_percent.map(Cell::Number),
            Column::P99 => row.e2e_latency_us_p99.map(|us| Cell::Number(us as f64)),
            Column::Cpu => row.cpu_percent.map(Cell::Number),
            Column::Cpu75 => row.cpu_75_tps.map(Cell::Number),
        }
    }
}

impl RunQuery {
    /// The page of `rows` that is asked for.
    ///
    /// # Errors
    /// The parameter that makes no sense, and why.
    pub(crate) fn page<'r>(
        &self,
        rows: impl Iterator<Item = &'r RunRow>,
    ) -> Result<RunPage, (&'static str, String)> {
        let state = one_of::<RunState>("state", &self.state)?;
        let verdict = one_of::<Verdict>("verdict", &self.verdict)?;
        let (key, descending) = self.order()?;
        let limit = self.limit()?;
        let is_starred = flag("starred", &self.starred)?;
        let is_baseline = flag("baseline", &self.baseline)?;
        let words = self.q.to_lowercase();
        let is_wanted = |row: &&RunRow| {
            state.is_none_or(|state| row.state == state)
                && verdict.is_none_or(|verdict| row.verdict == Some(verdict))
                && (self.scenario.is_empty() || row.scenario == self.scenario)
                && (self.tag.is_empty() || row.tags.contains(&self.tag))
                && is_starred.is_none_or(|starred| row.starred == starred)
                && is_baseline.is_none_or(|baseline| row.baseline == baseline)
                && words.split_whitespace().all(|word| contains(row, word))
        };
        let mut facets = Facets::default();
        let rows = rows.inspect(|row| facets.add(row));
        let wanted = rows.filter(is_wanted).map(|row| (key.cell(row), row));
        let mut wanted: Vec<(Option<Cell>, &RunRow)> = wanted.collect();
        // Rows without the figure come last in both directions; equal ones by name, newest first.
        wanted.sort_by(|(one, left), (other, right)| {
            compare(one, other, descending).then_with(|| right.id.cmp(&left.id))
        });
        let start = self.start(&wanted)?;
        let page = wanted.get(start..).unwrap_or_default();
        let rows: Vec<RunRow> = page.iter().take(limit).map(|(_, row)| (*row).clone()).collect();
        let end = start + rows.len();
        let next =
            rows.last().filter(|_| end < wanted.len()).map(|last| format!("{end}.{}", last.id));
        Ok(RunPage { rows, next, total: wanted.len(), facets })
    }

    fn order(&self) -> Result<(SortKey, bool), (&'static str, String)> {
        let text = if self.sort.is_empty() { "-started" } else { &self.sort };
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let names = || COLUMNS.map(|(name, _)| name).join(", ");
        let key = SortKey::named(name)
            .ok_or_else(|| ("sort", format!("there is no column '{name}', only {}", names())))?;
        Ok((key, descending))
    }

    fn limit(&self) -> Result<usize, (&'static str, String)> {
        if self.limit.is_empty() {
            return Ok(LIMIT);
        }
        let limit = self.limit.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
        limit.ok_or_else(|| ("limit", format!("write a number from 1 to {LIMIT_MAX}")))
    }

    /// Where the page begins: behind the last row of the page before, wherever that stands now,
    /// or where it stood when it is gone.
    fn start(&self, rows: &[(Option<Cell>, &RunRow)]) -> Result<usize, (&'static str, String)> {
        if self.cursor.is_empty() {
            return Ok(0);
        }
        let cursor = self.cursor.split_once('.');
        let cursor = cursor.and_then(|(place, id)| Some((place.parse::<usize>().ok()?, id)));
        let (place, id) = cursor.ok_or_else(|| {
            ("cursor", "it is not one that a list has given as 'next'".to_owned())
        })?;
        Ok(rows
            .iter()
            .position(|(_, row)| row.id == id)
            .map_or_else(|| place.saturating_sub(1), |at| at + 1))
    }
}

fn compare(one: &Option<Cell>, other: &Option<Cell>, descending: bool) -> Ordering {
    let order = match (one, other) {
        (Some(Cell::Number(one)), Some(Cell::Number(other))) => one.total_cmp(other),
        (Some(Cell::Text(one)), Some(Cell::Text(other))) => one.cmp(other),
        // A column has values of one kind.
        (Some(_), Some(_)) => Ordering::Equal,
        (Some(_), None) => return Ordering::Less,
        (None, Some(_)) => return Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    if descending { order.reverse() } else { order }
}

fn contains(row: &RunRow, word: &str) -> bool {
    let texts = [&row.id, &row.name, &row.scenario, &row.target, &row.note, &row.version];
    texts.into_iter().chain(&row.tags).any(|text| text.to_lowercase().contains(word))
}

/// `1` or `0`.
fn flag(field: &'static str, word: &str) -> Result<Option<bool>, (&'static str, String)> {
    match word {
        "" => Ok(None),
        "1" | "true" => Ok(Some(true)),
        "0" | "false" => Ok(Some(false)),
        _ => Err((field, "write 1 or 0".to_owned())),
    }
}

/// The value that a word of an address names.
fn one_of<T: serde::de::DeserializeOwned>(
    field: &'static str,
    word: &str,
) -> Result<Option<T>, (&'static str, String)> {
    if word.is_empty() {
        return Ok(None);
    }
    serde_json::from_value(serde_json::Value::from(word))
        .map(Some)
        .map_err(|_| (field, format!("there is no {field} '{word}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<RunRow> {
        let row = |id: &str, tps: Option<f64>, tag: &str| RunRow {
            id: id.to_owned(),
            name: format!("Run {id}"),
            started: Some(format!("2026-01-0{}", id.len())),
            achieved_tps: tps,
            verdict: tps.map(|_| Verdict::Ok),
            state: if tps.is_some() { RunState::Finished } else { RunState::Broken },
            tags: vec![tag.to_owned()],
            ..RunRow::default()
        };
        vec![row("a", Some(3.0), "x"), row("bb", None, "x"), row("ccc", Some(9.0), "y")]
    }

    fn ids(query: &RunQuery) -> Vec<String> {
        let rows = rows();
        let page = query.page(rows.iter()).expect("makes sense");
        page.rows.into_iter().map(|row| row.id).collect()
    }

    fn query(sort: &str, q: &str) -> RunQuery {
        RunQuery { sort: sort.to_owned(), q: q.to_owned(), ..RunQuery::default() }
    }

    #[test]
    fn rows_are_filtered_and_sorted_with_missing_figures_last() {
        assert_eq!(ids(&RunQuery::default()), ["ccc", "bb", "a"], "newest first");
        assert_eq!(ids(&query("achieved_tps", "")), ["a", "ccc", "bb"]);
        assert_eq!(ids(&query("-achieved_tps", "")), ["ccc", "a", "bb"]);
        assert_eq!(ids(&query("name", "RUN c")), ["ccc"]);
        assert_eq!(ids(&query("name", "run nothing")), [""; 0]);
        let broken = RunQuery { state: "broken".to_owned(), ..RunQuery::default() };
        assert_eq!(ids(&broken), ["bb"]);
        let tagged =
            RunQuery { tag: "x".to_owned(), verdict: "ok".to_owned(), ..RunQuery::default() };
        assert_eq!(ids(&tagged), ["a"]);
    }

    #[test]
    fn a_cursor_goes_on_behind_its_row_even_when_that_is_gone() {
        let mut rows = rows();
        let mut query = RunQuery { limit: "1".to_owned(), ..RunQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = query.page(rows.iter()).expect("makes sense");
            seen.extend(page.rows.iter().map(|row| row.id.clone()));
            let Some(next) = page.next else { break };
            query.cursor = next;
        }
        assert_eq!(seen, ["ccc", "bb", "a"]);
        query.cursor = "1.ccc".to_owned();
        rows.push(RunRow {
            id: "dddd".to_owned(),
            started: Some("2026-01-09".to_owned()),
            ..RunRow::default()
        });
        let page = query.page(rows.iter()).expect("makes sense");
        assert_eq!(page.rows[0].id, "bb", "a new row moves nothing onto the next page twice");
        rows.retain(|row| row.id != "ccc" && row.id != "dddd");
        query.cursor = "1.ccc".to_owned();
        assert_eq!(query.page(rows.iter()).expect("makes sense").rows[0].id, "bb");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let rows = rows();
        let refused = |query: RunQuery| query.page(rows.iter()).expect_err("is refused").0;
        assert_eq!(refused(query("weight", "")), "sort");
        let limit = |limit: &str| RunQuery { limit: limit.to_owned(), ..RunQuery::default() };
        assert_eq!([refused(limit("0")), refused(limit("501"))], ["limit"; 2]);
        assert_eq!(refused(RunQuery { state: "odd".to_owned(), ..RunQuery::default() }), "state");
        assert_eq!(refused(RunQuery { cursor: "x".to_owned(), ..RunQuery::default() }), "cursor");
    }
}
