//! The figures of repeats of one scenario: median and range, for pages, terminals and Markdown.

use super::lang::Lang;
use tacho_record::RunRecord;

/// Heads of the table.
pub(super) const fn heads(lang: Lang) -> [&'static str; 5] {
    [lang.figure(), lang.median(), lang.least_value(), lang.max(), lang.runs_that_count()]
}

/// A row per figure that was observed, one cell per head.
pub(super) fn rows(lang: Lang, record: &RunRecord) -> Vec<[String; 5]> {
    let rows = record.repeated.iter().filter_map(|row| {
        let spread = row.sides.first()?;
        let shown = |value: Option<f64>| {
            value.map_or_else(|| lang.not_observed().to_owned(), |value| row.unit.show(value))
        };
        Some([
            lang.figure_of(row),
            shown(spread.median),
            shown(spread.min),
            shown(spread.max),
            spread.values.len().to_string(),
        ])
    });
    rows.collect()
}
