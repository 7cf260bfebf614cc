//! CSV: the rows of points that have one, with the columns of `timeseries.csv` first.

use super::{Encode, OutputBody};
use crate::point::{OutputItem, OutputPoint, PointTag};

/// Columns behind those of the row.
const OWN: [&str; 5] = ["end_ms", "run", "scenario", "step", "measured"];

/// Encodes rows.
#[derive(Debug, Default)]
pub(super) struct CsvTable {
    text: String,
    rows: u64,
    has_head: bool,
}

impl Encode for CsvTable {
    fn take(&mut self, item: &OutputItem) {
        let OutputItem::Point(point) = item else { return };
        let Some(row) = &point.row else { return };
        if !std::mem::replace(&mut self.has_head, true) {
            let head = row.columns.iter().chain(&OWN);
            self.line(head.map(|name| (*name).to_owned()));
        }
        self.line(row.cells.iter().cloned().chain(own(point)));
        self.rows += 1;
    }

    fn pending(&self) -> u64 {
        self.rows
    }

    fn body(&mut self) -> Option<OutputBody> {
        let (text, records) = (std::mem::take(&mut self.text), std::mem::take(&mut self.rows));
        (records > 0).then(|| OutputBody { bytes: text.into_bytes(), records })
    }
}

impl CsvTable {
    fn line(&mut self, cells: impl Iterator<Item = String>) {
        let cells: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
        self.text.push_str(&cells.join(","));
        self.text.push('\n');
    }
}

fn own(point: &OutputPoint) -> [String; OWN.len()] {
    let tag = |tag| point.tags.get(tag).unwrap_or_default().to_owned();
    [
        point.window.end_ms.to_string(),
        tag(PointTag::Run),
        tag(PointTag::Scenario),
        tag(PointTag::Step),
        point.window.measured_name().unwrap_or_default().to_owned(),
    ]
}

/// As RFC 4180 has it.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{PointSeries, PointTags, PointWindow, TableRow};

    #[test]
    fn rows_have_one_head_and_say_which_run_they_are_of() {
        let point = |run: &str, cell: &str| {
            OutputItem::Point(Box::new(OutputPoint {
                series: PointSeries::Load,
                tags: PointTags::default().with(PointTag::Run, run),
                window: PointWindow { end_ms: 7, measured: Some(false), ..PointWindow::default() },
                figures: Vec::new(),
                latencies: Vec::new(),
                statistics: Vec::new(),
                row: Some(TableRow {
                    columns: &["start_s", "phase"],
                    cells: vec!["1.000".to_owned(), cell.to_owned()],
                }),
            }))
        };
        let mut table = CsvTable::default();
        table.take(&point("a, \"b\"", "measure"));
        let first = table.body().expect("a row");
        table.take(&point("c", "drain"));
        table.take(&OutputItem::End);
        let second = table.body().expect("a row");
        assert_eq!((first.records, second.records), (1, 1));
        let bytes = [first.bytes, second.bytes].concat();
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let head: Vec<String> =
            reader.headers().expect("a head").iter().map(str::to_owned).collect();
        assert_eq!(head.join(" "), "start_s phase end_ms run scenario step measured");
        let rows: Vec<Vec<String>> = reader
            .records()
            .map(|row| row.expect("a row").iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(rows[0], ["1.000", "measure", "7", "a, \"b\"", "", "", "false"]);
        assert_eq!(rows[1], ["1.000", "drain", "7", "c", "", "", "false"]);
        assert!(table.body().is_none());
    }
}
