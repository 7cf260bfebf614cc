//! The comparison for terminals and as Markdown.

use std::fmt::Write as _;

use super::columns::{Cells, TextTable, cut};
use super::elements::{given_lines, given_texts};
use super::lang::Lang;
use super::markdown::text as safe;
use tacho_record::{Change, Comparison, FigureRow, Point, Repeat, Scale, Spread};

/// Terminals and Markdown are in English.
const LANG: Lang = Lang::En;
/// Letters of the name of a side in tables.
const SIDE_LETTERS_MAX: usize = 14;

/// A change with sign and unit.
pub(crate) fn change_shown(row: &FigureRow, change: &Change) -> String {
    row.show_change(change)
}

/// Its confidence interval.
pub(crate) fn interval_shown(row: &FigureRow, change: &Change) -> String {
    interval_ends(row, change)
        .map_or_else(|| "–".to_owned(), |(low, high)| format!("{low} to {high}"))
}

/// The ends of its confidence interval.
pub(crate) fn interval_ends(row: &FigureRow, change: &Change) -> Option<(String, String)> {
    let (low, high) = change.low.zip(change.high)?;
    Some((row.signed(low), row.signed(high)))
}

/// The noise floor.
pub(crate) fn floor_shown(row: &FigureRow, change: &Change) -> String {
    let shown = |floor: f64| match row.scale {
        Scale::Percent => format!("{floor:.1} %"),
        Scale::Absolute => row.unit.show(floor),
    };
    change.floor.map_or_else(|| "–".to_owned(), shown)
}

/// The median, where there is one.
pub(crate) fn median_shown(row: &FigureRow, spread: Option<&Spread>) -> String {
    let median = spread.and_then(|spread| spread.median);
    median.map_or_else(|| "–".to_owned(), |value| row.unit.show(value))
}

/// The least and the greatest value of the repeats, where there are several.
pub(crate) fn ends_shown(row: &FigureRow, spread: &Spread) -> Option<(String, String)> {
    let (min, max) = spread.min.zip(spread.max).filter(|_| spread.values.len() > 1)?;
    Some((row.unit.show(min), row.unit.show(max)))
}

/// The noise floor in a sentence.
pub(crate) fn floor_sentence(comparison: &Comparison) -> String {
    let first = comparison.sides.first().map_or("", |side| side.name.as_str());
    let made = match comparison.aa_counting() as u64 >= comparison.method.repeats_min {
        true => "the first side against its A/A repeats",
        false => "every other repeat of the first side against those between",
    };
    format!(
        "floor: what {first} differs by from itself (A/A). 95 % of A/A comparisons drawn from its \
         repeats stay below, and so does one that was made: {made}. It is at least {} % and the \
         figure's resolution.",
        comparison.method.floor_percent_min
    )
}

fn counting(repeats: &[Repeat]) -> usize {
    repeats.iter().filter(|repeat| repeat.counts).count()
}

/// How many of the repeats count.
fn counting_words(repeats: &[Repeat]) -> String {
    match (counting(repeats), repeats.len()) {
        (counting, all) if all == counting => all.to_string(),
        (counting, all) => format!("{counting} of {all}"),
    }
}

/// The comparison as plain text, every figure with its unit.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", comparison.scenario, comparison.description);
    given_lines(LANG, &mut out, &comparison.given);
    for side in &comparison.sides {
        let before = side.before.as_ref().map_or_else(String::new, |c| format!(", after '{c}'"));
        let repeats = counting_words(&side.repeats);
        let _ = writeln!(
            out,
            "{:<10} {}{before}; repeats that count: {repeats}",
            side.name,
            LANG.side_of(side)
        );
    }
    if !comparison.aa_repeats.is_empty() {
        let _ = writeln!(
            out,
            "{:<10} the first side once more; repeats that count: {}",
            "A/A",
            counting_words(&comparison.aa_repeats)
        );
    }
    for point in &comparison.points {
        point_text(&mut out, comparison, point);
    }
    let _ = writeln!(out, "{}", floor_sentence(comparison));
    if !comparison.environment.is_empty() {
        let _ = writeln!(out, "\nENVIRONMENTS DIFFER");
        for difference in &comparison.environment {
            let pairs = comparison.sides.iter().zip(LANG.difference_values(difference));
            let values = pairs.map(|(side, value)| format!("{}: {value}", side.name));
            let values = values.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "  {}: {values}", LANG.difference_name(difference));
        }
    }
    for difference in &comparison.scenario_differences {
        let values = LANG.difference_values(difference).join(" | ");
        let name = LANG.difference_name(difference);
        let _ = writeln!(out, "scenario differs: {name}: {values}");
    }
    let _ = writeln!(out);
    for result in &comparison.conditions {
        let _ = writeln!(out, "{}", LANG.condition_was(result));
    }
    for note in &comparison.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out, "verdict: {}", comparison.verdict.name());
    let _ = writeln!(out, "  {}", LANG.compared(comparison));
    out
}

fn point_text(out: &mut String, comparison: &Comparison, point: &Point) {
    let _ = writeln!(out);
    if !point.label.is_empty() {
        let _ = writeln!(out, "{}", point.label);
    }
    let sides = &comparison.sides;
    let with_aa = !comparison.aa_repeats.is_empty();
    // With more than two sides, each has a line of its own below its figure's.
    let is_each_below = sides.len() > 2;
    let mut medians: Vec<String> = match sides.first() {
        Some(first) if is_each_below => vec![cut(&first.name, SIDE_LETTERS_MAX), "other".into()],
        _ => sides.iter().map(|side| cut(&side.name, SIDE_LETTERS_MAX)).collect(),
    };
    medians.extend(with_aa.then(|| "A/A".to_owned()));
    let mut cells = vec![Cells::Figures; medians.len() + 1];
    cells.extend([Cells::Words, Cells::Figures, Cells::Words]);
    let mut heads = vec!["FIGURE (medians)".to_owned()];
    heads.extend(medians);
    heads.extend(["change", "95 % interval", "floor", "verdict"].map(str::to_owned));
    let mut table = TextTable::new(heads, cells);
    for row in &point.figures {
        let figure = LANG.figure_of(row);
        let all: Vec<String> =
            row.spreads(with_aa).map(|spread| median_shown(row, spread)).collect();
        if !is_each_below {
            for change in &row.changes {
                table.push(table_row(row, change, &figure, all.clone()));
            }
            continue;
        }
        let mut line = vec![figure, all.first().cloned().unwrap_or_default(), String::new()];
        line.extend(with_aa.then(|| all.last().cloned().unwrap_or_default()));
        table.push(line);
        for change in &row.changes {
            let side = sides.iter().position(|side| side.name == change.side);
            let median = side.and_then(|index| all.get(index)).cloned().unwrap_or_default();
            let mut medians = vec![String::new(), median];
            medians.extend(with_aa.then(String::new));
            let name = format!("  {}", cut(&change.side, SIDE_LETTERS_MAX));
            table.push(table_row(row, change, &name, medians));
        }
    }
    table.write(out);
}

/// A name, medians, and how one side differs from the first.
fn table_row(row: &FigureRow, change: &Change, name: &str, medians: Vec<String>) -> Vec<String> {
    let told = [
        change_shown(row, change),
        interval_shown(row, change),
        floor_shown(row, change),
        change.verdict.words().to_owned(),
    ];
    [name.to_owned()].into_iter().chain(medians).chain(told).collect()
}

/// The comparison as Markdown, for a job's page.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## Comparison of {}\n", safe(&comparison.scenario));
    for (label, given) in given_texts(LANG, &comparison.given) {
        let _ = writeln!(out, "{label}: {}\n", safe(given));
    }
    let words = comparison.verdict.words();
    let _ = writeln!(out, "**{words}**: {}\n", safe(&LANG.compared(comparison)));
    for side in &comparison.sides {
        let _ = writeln!(out, "- {}: {}", safe(&side.name), safe(&LANG.side_of(side)));
    }
    for point in &comparison.points {
        if !point.label.is_empty() {
            let _ = write!(out, "\n### {}\n", safe(&point.label));
        }
        let mut names: Vec<String> = comparison.sides.iter().map(|side| safe(&side.name)).collect();
        let with_aa = !comparison.aa_repeats.is_empty();
        names.extend(with_aa.then(|| "A/A".to_owned()));
        let columns = "---:|".repeat(names.len() + 3);
        let _ = writeln!(
            out,
            "\n| figure | {} | change | 95 % interval | floor | verdict |\n|---|{columns}---|",
            names.join(" | ")
        );
        for row in &point.figures {
            for change in &row.changes {
                let label = match row.changes.len() {
                    1 => LANG.figure_of(row),
                    _ => format!("{}: {}", LANG.figure_of(row), change.side),
                };
                let medians = row.spreads(with_aa).map(|spread| median_shown(row, spread));
                let medians: Vec<String> = medians.collect();
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} |",
                    safe(&label),
                    medians.join(" | "),
                    change_shown(row, change),
                    interval_shown(row, change),
                    floor_shown(row, change),
                    change.verdict.words()
                );
            }
        }
    }
    for result in &comparison.conditions {
        let _ = write!(out, "\n- {}", safe(&LANG.condition_was(result)));
    }
    let _ = write!(out, "\n\n{}\n", safe(&floor_sentence(comparison)));
    for note in &comparison.notes {
        let _ = write!(out, "\n> {}\n", safe(note));
    }
    out
}
