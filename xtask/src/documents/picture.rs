//! Charts as pictures of their own: with a title, a legend and their colours inside, so that they
//! can stand in a Markdown document.

use std::fmt::Write as _;

use super::record::Broker;
use tacho_report::chart::Chart;
use tacho_report::escape;
use tacho_report::svg::{HALF, size, svg};

/// Width of all pictures.
pub(super) const WIDTH: f64 = 1080.0;
/// Below each row of charts.
const GAP: f64 = 20.0;

/// Colours of the reports on white, and what else their style sheet says about charts.
pub(super) const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#52514e;\
text-anchor:middle}\
.head{font-size:16px;font-weight:600;fill:#0b0b0b;text-anchor:start}\
.name{font-weight:600;text-anchor:start}\
.legend,.row{text-anchor:start}\
.note{text-anchor:start;fill:#6f6e6a;font-size:11px}\
.tick{fill:#6f6e6a}.tick.y{text-anchor:end}\
.grid{stroke:#e4e3dc}.axis,.mark{stroke:#c3c2b7}\
.line{fill:none;stroke:var(--line);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.line.dashed{stroke-dasharray:7 5}.line.reference{stroke-width:2;stroke-dasharray:5 4}\
.dot{fill:var(--line);stroke:#fff;stroke-width:.5}\
.hollow{fill:#fff;stroke:var(--line);stroke-width:1.75}\
.cross{fill:none;stroke:var(--line);stroke-width:2}\
.level{stroke:#a51f1f;stroke-dasharray:6 4}\
.level-name{fill:#a51f1f;text-anchor:start;font-size:11px}\
.c1{--line:#2a78d6}.c2{--line:#d4551f}.c3{--line:#128a60}.c4{--line:#5a48c4}.c5{--line:#b8327f}\
.c6{--line:#97760a}.c7{--line:#0e7c8b}.c8{--line:#7a6656}.reference{--line:#6f6e6a}";

/// An entry of the legend: classes of its line, and its text.
pub(super) struct Entry {
    pub(super) classes: String,
    pub(super) text: String,
}

impl Entry {
    /// Of the broker at a place in the list of all.
    pub(super) fn of(index: usize, broker: &Broker) -> Self {
        Self { classes: format!("c{}", index + 1), text: broker.name.clone() }
    }
}

/// Opens a picture: background, title and legend. Returns it and where the rest may begin.
pub(super) fn open(title: &str, legend: &[Entry], height: f64) -> (String, f64) {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text class=\"head\" x=\"20\" y=\"26\">{title}</text>\n",
        title = escape(title)
    );
    let (mut x, mut y) = (20.0, 48.0);
    for entry in legend {
        let width = 46.0 + entry.text.chars().count() as f64 * 6.6;
        if x + width > WIDTH - 10.0 && x > 20.0 {
            (x, y) = (20.0, y + 18.0);
        }
        let middle = y - 4.0;
        let _ = writeln!(
            out,
            "<path class=\"line {}\" d=\"M{x} {middle}h24\"/>\
             <text class=\"legend\" x=\"{}\" y=\"{y}\">{}</text>",
            entry.classes,
            x + 30.0,
            escape(&entry.text)
        );
        x += width;
    }
    (out, y + 14.0)
}

/// How many lines the legend takes, for the height of a picture.
pub(super) fn legend_height(legend: &[Entry]) -> f64 {
    let (_, end) = open("", legend, 0.0);
    end
}

/// A picture with charts below each other, half-width ones side by side.
pub(super) fn charts(title: &str, legend: &[Entry], charts: &[Chart], notes: &[&str]) -> String {
    let half_row = HALF.1 + GAP;
    let mut places = Vec::new();
    let mut y = legend_height(legend);
    let mut left = true;
    for chart in charts {
        if chart.wide && !left {
            y += half_row;
            left = true;
        }
        places.push((if left { 0.0 } else { HALF.0 }, y));
        let ends_row = chart.wide || !left;
        if ends_row {
            y += size(chart).1 + GAP;
        }
        left = ends_row;
    }
    if !left {
        y += half_row;
    }
    let height = y + 16.0 * notes.len() as f64 + 8.0;
    let (mut out, _) = open(title, legend, height);
    for (chart, (x, y)) in charts.iter().zip(places) {
        let (width, height) = size(chart);
        let inner = svg(chart, true);
        let placed =
            format!("<svg x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" ", y + 14.0);
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>\n{}",
            x + 20.0,
            y + 16.0,
            escape(&chart.title),
            inner.replacen("<svg ", &placed, 1).replace("><", ">\n<")
        );
    }
    for (index, note) in notes.iter().enumerate() {
        let at = y + 10.0 + 16.0 * index as f64;
        let _ = writeln!(out, "<text class=\"note\" x=\"20\" y=\"{at}\">{}</text>", escape(note));
    }
    out.push_str("</svg>\n");
    out
}
