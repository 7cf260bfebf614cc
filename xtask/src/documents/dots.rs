//! Rows of a table as dots on logarithmic axes: one line per row, one dot per broker.

use std::fmt::Write as _;

use super::picture::{self, Entry, WIDTH};
use tacho_report::axis::{self, Scale, Unit};
use tacho_report::escape;

const ROW: f64 = 18.0;
const HEAD: f64 = 26.0;
const AXIS: f64 = 40.0;
const LABELS: f64 = 262.0;
const GAP: f64 = 36.0;

/// How a dot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DotKind {
    /// A figure that counts.
    Dot,
    /// One that does not.
    Hollow,
    /// What was not carried.
    Cross,
    /// Another party's.
    Published,
}

/// One figure.
#[derive(Clone, Debug)]
pub(super) struct Dot {
    pub(super) kind: DotKind,
    /// Number of its colour.
    pub(super) colour: usize,
    pub(super) name: String,
    pub(super) value: f64,
}

/// A line of the picture.
#[derive(Clone, Debug, Default)]
pub(super) struct DotRow {
    pub(super) label: String,
    /// A line that names those below it.
    pub(super) is_head: bool,
    /// The dots of each panel.
    pub(super) panels: [Vec<Dot>; 2],
}

/// What a panel shows.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) unit: Unit,
    /// Values are multiplied by this before they are drawn, so that logarithms begin at 1.
    pub(super) factor: f64,
}

/// Draws the rows.
pub(super) fn picture(
    title: &str,
    legend: &[Entry],
    panels: &[Panel; 2],
    rows: &[DotRow],
) -> String {
    let top = picture::legend_height(legend) + 20.0;
    let heights: f64 = rows.iter().map(|row| if row.is_head { HEAD } else { ROW }).sum();
    let height = top + heights + AXIS;
    let (mut out, _) = picture::open(title, legend, height);
    let width = (WIDTH - LABELS - 2.0 * GAP) / 2.0;
    let lefts = [LABELS, LABELS + width + GAP];
    let scales: Vec<Scale> =
        panels.iter().enumerate().map(|(index, panel)| scale(rows, index, panel.factor)).collect();
    for ((panel, scale), left) in panels.iter().zip(&scales).zip(lefts) {
        frame(&mut out, panel, scale, left, width, (top, top + heights));
    }
    let mut y = top;
    for row in rows {
        let tall = if row.is_head { HEAD } else { ROW };
        let (class, text_y) = if row.is_head { ("name", y + 18.0) } else { ("row", y + 13.0) };
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"20\" y=\"{text_y:.1}\">{}</text>",
            escape(&row.label)
        );
        for (index, dots) in row.panels.iter().enumerate() {
            let place = |value: f64| {
                lefts[index] + scales[index].position(value * panels[index].factor) * width
            };
            dots_of(&mut out, dots, y + ROW / 2.0, place);
        }
        y += tall;
    }
    out.push_str("</svg>\n");
    out
}

fn scale(rows: &[DotRow], panel: usize, factor: f64) -> Scale {
    let values = || rows.iter().flat_map(|row| &row.panels[panel]).map(|dot| dot.value * factor);
    Scale::log(values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
}

fn frame(
    out: &mut String,
    panel: &Panel,
    scale: &Scale,
    left: f64,
    width: f64,
    (top, bottom): (f64, f64),
) {
    let _ = writeln!(
        out,
        "<text class=\"name\" x=\"{left}\" y=\"{:.1}\">{}</text>",
        top - 6.0,
        escape(&panel.title)
    );
    let mut free_from = f64::NEG_INFINITY;
    for (value, _) in scale.ticks(panel.unit) {
        let x = left + scale.position(value) * width;
        let shown = value / panel.factor;
        let label = axis::label(shown, shown, panel.unit);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
        );
        let half = label.chars().count() as f64 * 3.4;
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 6.0;
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 16.0,
            escape(&label)
        );
    }
}

fn dots_of(out: &mut String, dots: &[Dot], y: f64, place: impl Fn(f64) -> f64) {
    let xs: Vec<f64> = dots.iter().map(|dot| place(dot.value)).collect();
    let (first, last) =
        xs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    if first < last {
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{first:.1}\" x2=\"{last:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
    }
    for (dot, x) in dots.iter().zip(xs) {
        let (class, shape) = match dot.kind {
            DotKind::Published => {
                ("hollow reference".to_owned(), format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0))
            }
            DotKind::Cross => (
                format!("cross c{}", dot.colour),
                format!("M{:.1} {:.1}l7 7m0 -7l-7 7", x - 3.5, y - 3.5),
            ),
            kind => (
                format!("{} c{}", if kind == DotKind::Dot { "dot" } else { "hollow" }, dot.colour),
                format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
            ),
        };
        let _ = writeln!(
            out,
            "<path class=\"{class}\" d=\"{shape}\"><title>{}</title></path>",
            escape(&dot.name)
        );
    }
}
