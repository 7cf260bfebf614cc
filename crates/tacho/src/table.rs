//! Tables for people.

/// Columns of equal width under the heads in the first row: the first `left` of them (and one
/// without a head) to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>], left: usize) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let count = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            let is_prose = rows[0][at].is_empty();
            if at < left || is_prose {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let line: Vec<String> = cells.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Clients choose their names: nothing may steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// `3 d 4 h`, `5 min`, `20 s`.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// `9 B`, `20 KiB`, `31 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..10_240 => format!("{count} B"),
        10_240..10_485_760 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_names_steer_no_terminal() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "count", ""]), row(["a\x1b[2J", "7", "why"])];
        assert_eq!(table(&rows, 1), "name   count\na?[2J      7  why\n");
        assert_eq!([span(5), span(300), span(7_500)], ["5 s", "5 min", "2 h 5 min"]);
        assert_eq!([bytes(9), bytes(20_480)], ["9 B", "20 KiB"]);
    }
}
