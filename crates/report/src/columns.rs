//! Tables for terminals: columns as wide as their cells, in lines of 100 letters.

use std::fmt::Write as _;

/// No line of a table is longer, as far as its figures allow.
pub(super) const LINE_WIDTH: usize = 100;
/// The first column, which has names, is never narrower.
const NAMES_WIDTH_MIN: usize = 16;
/// Between columns.
const GAP: usize = 2;
/// Before each name of a row.
const INDENT: &str = "  ";

/// What the columns after the names contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    /// Their right edges are in line.
    Figures,
    /// Their left edges are.
    Words,
}

/// A table whose first column has names: one that does not fit continues below.
pub(super) struct TextTable {
    heads: Vec<String>,
    cells: Vec<Cells>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// `heads` are those of the names and of all `cells`.
    pub(super) fn new(heads: Vec<String>, cells: Vec<Cells>) -> Self {
        Self { heads, cells, rows: Vec::new() }
    }

    /// A name and its cells.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Appends the table, a line per row and more for long names.
    pub(super) fn write(&self, out: &mut String) {
        let widths: Vec<usize> = (1..=self.cells.len()).map(|column| self.width(column)).collect();
        let taken: usize = widths.iter().map(|width| width + GAP).sum();
        let names = self.width(0) + INDENT.len();
        let names = names.min(LINE_WIDTH.saturating_sub(taken)).max(NAMES_WIDTH_MIN);
        self.line(out, "", &self.heads, (names, &widths));
        for row in &self.rows {
            self.line(out, INDENT, row, (names, &widths));
        }
    }

    /// Of the longest cell.
    fn width(&self, column: usize) -> usize {
        let all = [&self.heads].into_iter().chain(&self.rows);
        let letters = |row: &Vec<String>| row.get(column).map_or(0, |cell| cell.chars().count());
        all.map(letters).max().unwrap_or(0)
    }

    fn line(
        &self,
        out: &mut String,
        indent: &str,
        row: &[String],
        (names, widths): (usize, &[usize]),
    ) {
        let Some((name, cells)) = row.split_first() else { return };
        let mut parts = wrapped(name, indent, names).into_iter();
        let mut line = format!("{:<names$}", parts.next().unwrap_or_default());
        for ((cell, kind), width) in cells.iter().zip(&self.cells).zip(widths) {
            let _ = match kind {
                Cells::Figures => write!(line, "{:GAP$}{cell:>width$}", ""),
                Cells::Words => write!(line, "{:GAP$}{cell:<width$}", ""),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
        for part in parts {
            let _ = writeln!(out, "{part}");
        }
    }
}

/// A name in lines of at most `width` letters, broken between words where that is possible; from
/// the second line on it is indented by as much again.
fn wrapped(name: &str, indent: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    // A name's own indentation is kept: it marks a part of the row above.
    let own = name.len() - name.trim_start().len();
    let mut line = format!("{indent}{}", " ".repeat(own));
    let mut is_empty = true;
    for word in name.split_whitespace() {
        let mut letters: Vec<char> = word.chars().collect();
        loop {
            let gap = usize::from(!is_empty);
            let room = width.saturating_sub(line.chars().count() + gap);
            if letters.len() <= room || (is_empty && room == 0) {
                line.extend((!is_empty).then_some(' '));
                line.extend(letters);
                is_empty = false;
                break;
            }
            if is_empty {
                line.extend(letters.drain(..room));
            }
            lines.push(std::mem::replace(&mut line, format!("{indent}{INDENT}")));
            is_empty = true;
        }
    }
    lines.push(line);
    lines
}

/// A text of at most so many letters; where it was cut is a `~`. A short remark in brackets at its
/// end, such as `(repeat 2)`, is kept: it tells rows apart.
pub(super) fn cut(text: &str, letters_max: usize) -> String {
    if text.chars().count() <= letters_max {
        return text.to_owned();
    }
    let remark = text.rfind(" (").and_then(|at| text.get(at + 1..)).unwrap_or_default();
    let is_kept = remark.ends_with(')') && remark.chars().count() * 2 <= letters_max;
    let remark = if is_kept { remark } else { "" };
    let head = letters_max.saturating_sub(1 + remark.chars().count());
    text.chars().take(head).chain(['~']).chain(remark.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> String {
        let heads = ["FIGURE", "median", "verdict"].map(str::to_owned).into();
        let mut table = TextTable::new(heads, vec![Cells::Figures, Cells::Words]);
        for name in names {
            table.push([name, "1.23 ms", "no change"].map(str::to_owned).into());
        }
        let mut out = String::new();
        table.write(&mut out);
        out
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        assert_eq!(
            table(&["latency"]),
            "FIGURE             median  verdict\n  latency         1.23 ms  no change\n"
        );
    }

    #[test]
    fn long_names_continue_below_and_no_line_is_too_long() {
        let sentence = "a figure with a name of many words ".repeat(5);
        let word = "x".repeat(300);
        let text = table(&[&sentence, &word, "short"]);
        assert!(text.lines().all(|line| line.chars().count() <= LINE_WIDTH), "{text}");
        assert!(text.lines().any(|line| line.chars().count() == LINE_WIDTH), "{text}");
        // Nothing is lost, and no word but one that fits on no line is broken.
        let told: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(told.iter().filter(|told| **told == "figure").count(), 5, "{text}");
        assert_eq!(text.matches('x').count(), 300, "{text}");
        assert_eq!(text.matches("1.23 ms").count(), 3, "{text}");
    }

    #[test]
    fn what_was_cut_says_so() {
        assert_eq!(cut("Übergang", 8), "Übergang");
        assert_eq!(cut("Übergänge", 8), "Übergän~");
        let repeat = "false_5k_5k_qos0_p32_1mps (repeat 2)";
        assert_eq!(cut(repeat, 28), "false_5k_5k_qos0_~(repeat 2)");
        assert_eq!(cut("a (very long remark)", 12), "a (very lon~");
    }
}
