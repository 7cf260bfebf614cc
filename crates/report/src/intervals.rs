//! Changes drawn with their confidence intervals, one small picture per row of a table.

use std::fmt::Write as _;

use super::elements::escape;
use tacho_record::{Change, FigureRow, Judgement, Scale};

const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 24.0;
/// Room at either side for an arrow, where an interval leaves the picture.
const MARGIN: f64 = 8.0;
/// Percent that the scale of percentages spans at least, and at most, to either side.
const SPAN_MIN: f64 = 5.0;
const SPAN_MAX: f64 = 100.0;

/// The scale of the changes in percent of one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(f64);

impl Span {
    /// Wide enough for all rows, up to a limit.
    pub(super) fn of(rows: &[FigureRow]) -> Self {
        let rows = rows.iter().filter(|row| row.scale == Scale::Percent);
        let reach = rows.flat_map(|row| &row.changes).map(part).fold(SPAN_MIN, f64::max);
        Self(reach.min(SPAN_MAX))
    }

    /// Its ends as the head of the column.
    pub(super) fn head(self) -> String {
        format!("-{0:.0} % … 0 … +{0:.0} %", self.0)
    }
}

/// How much of the scale a change takes: noisy figures must not shrink all others to dots, so that
/// their intervals may leave the picture.
fn part(change: &Change) -> f64 {
    let changed = matches!(change.verdict, Judgement::Better | Judgement::Worse);
    match (changed, change.change) {
        (true, _) => reach(change),
        (false, Some(value)) => value.abs() * 1.25,
        (false, None) => 0.0,
    }
}

/// How far from zero a change is drawn.
fn reach(change: &Change) -> f64 {
    let ends = [change.change, change.low, change.high, change.floor];
    ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max)
}

/// The picture of one change; `words` says the same.
pub(super) fn drawn(row: &FigureRow, change: &Change, span: Span, words: &str) -> String {
    let Some(value) = change.change else { return String::new() };
    let span = match row.scale {
        Scale::Percent => span.0,
        // In units of its own: as wide as it needs.
        Scale::Absolute => reach(change).max(f64::MIN_POSITIVE),
    };
    let half = WIDTH / 2.0 - MARGIN;
    let x = |value: f64| WIDTH / 2.0 + (value / span).clamp(-1.0, 1.0) * half;
    let middle = HEIGHT / 2.0;
    let label = escape(words);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{label}\"><title>{label}</title>"
    );
    if let Some(floor) = change.floor {
        let (from, to) = (x(-floor), x(floor));
        let _ = write!(
            out,
            "<rect x=\"{from:.1}\" y=\"1\" width=\"{:.1}\" height=\"{:.1}\" \
             style=\"fill:var(--rule)\"/>",
            (to - from).max(1.0),
            HEIGHT - 2.0
        );
    }
    let _ = write!(
        out,
        "<line x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{HEIGHT}\" style=\"stroke:var(--axis)\"/>",
        WIDTH / 2.0
    );
    let colour = match change.verdict {
        Judgement::Better => "var(--good)",
        Judgement::Worse => "var(--bad)",
        _ => "var(--ink-3)",
    };
    if let (Some(low), Some(high)) = (change.low, change.high) {
        let (from, to) = (x(low), x(high));
        let _ = write!(
            out,
            "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle}\" y2=\"{middle}\" \
             style=\"stroke:{colour};stroke-width:2\"/>"
        );
        for (end, at, outward) in [(low, from, -4.0), (high, to, 4.0)] {
            // A tick where the interval ends, an arrow where the picture does.
            let path = match end.abs() > span {
                false => format!("M{at:.1} {:.1}v8", middle - 4.0),
                true => format!("M{at:.1} {:.1}l{outward} 4l{} 4", middle - 4.0, -outward),
            };
            let _ = write!(
                out,
                "<path d=\"{path}\" style=\"fill:none;stroke:{colour};stroke-width:2\"/>"
            );
        }
    }
    let _ = write!(
        out,
        "<circle cx=\"{:.1}\" cy=\"{middle}\" r=\"4.5\" style=\"fill:{colour}\"/></svg>",
        x(value)
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(low: f64, value: f64, high: f64, verdict: Judgement) -> Change {
        Change {
            change: Some(value),
            low: Some(low),
            high: Some(high),
            floor: Some(2.0),
            verdict,
            ..Change::default()
        }
    }

    #[test]
    fn intervals_beyond_the_axis_end_in_an_arrow() {
        let inside = change(5.0, 10.0, 20.0, Judgement::Worse);
        let row = FigureRow { changes: vec![inside.clone()], ..FigureRow::default() };
        let span = Span::of(std::slice::from_ref(&row));
        assert_eq!(span.head(), "-20 % … 0 … +20 %");
        let picture = drawn(&row, &inside, span, "");
        assert_eq!((picture.matches("v8").count(), picture.matches("l4 4").count()), (2, 0));
        assert!(picture.contains("var(--bad)"), "{picture}");
        // A figure that is only noise has less to say about the scale.
        let noise = change(-60.0, 8.0, 70.0, Judgement::NoChange);
        let row = FigureRow { changes: vec![noise.clone()], ..FigureRow::default() };
        let span = Span::of(std::slice::from_ref(&row));
        assert_eq!(span.head(), "-10 % … 0 … +10 %");
        assert_eq!(drawn(&row, &noise, span, "").matches("v8").count(), 0);
        let far = change(-10.0, 300.0, 900.0, Judgement::NoChange);
        let row = FigureRow { changes: vec![far.clone()], ..FigureRow::default() };
        let span = Span::of(std::slice::from_ref(&row));
        assert_eq!(span.head(), "-100 % … 0 … +100 %");
        let picture = drawn(&row, &far, span, "");
        assert_eq!((picture.matches("v8").count(), picture.matches("l4 4").count()), (1, 1));
        let nothing = Change::default();
        assert_eq!(drawn(&row, &nothing, span, ""), "");
    }
}
