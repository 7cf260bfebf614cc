//! Line charts as plain SVG, coloured by the page's style sheet.

use std::fmt::Write as _;

use super::axis::{Scale, Unit};
use super::html::escape;

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
/// Beyond this many points per line there is no pointer text: the page would grow too large.
const POINTED_MAX: usize = 600;

/// One axis.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) scale: Scale,
    pub(super) unit: Unit,
}

/// One line; `None` interrupts it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Classes of the style sheet: `c1` to `c4`, with `under` a broad one below others, or
    /// `reference` for a dashed grey.
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A stretch of the x axis that is shaded and named.
#[derive(Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// A chart.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    /// How a value reads beside the pointer.
    pub(super) value: fn(f64) -> String,
    /// How a position on the x axis reads beside the pointer.
    pub(super) place: fn(f64) -> String,
}

impl Chart {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.scale.position(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.scale.position(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// The chart with its title and legend as a `<figure>`.
    pub(super) fn render(&self) -> String {
        let mut out = String::new();
        let title = escape(&self.title);
        let _ = write!(out, "<figure><figcaption>{title}</figcaption>");
        if self.lines.iter().all(|line| line.points.iter().all(|(_, value)| value.is_none())) {
            out.push_str("<p class=\"empty\">Nothing was recorded.</p></figure>\n");
            return out;
        }
        out.push_str("<ul class=\"legend\">");
        for line in &self.lines {
            let nothing = line.points.iter().all(|(_, value)| value.is_none());
            let note = if nothing { " (too few samples)" } else { "" };
            let _ = write!(out, "<li class=\"{}\">{}{note}</li>", line.class, escape(line.name));
        }
        let _ = write!(
            out,
            "</ul><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"
        );
        self.bands(&mut out);
        self.grid(&mut out);
        for line in &self.lines {
            self.line(&mut out, line);
        }
        for line in self.lines.iter().filter(|line| line.class != "reference") {
            self.pointers(&mut out, line);
        }
        out.push_str("</svg></figure>\n");
        out
    }

    fn bands(&self, out: &mut String) {
        for band in &self.bands {
            let (from, to) = (self.x(band.from), self.x(band.to));
            let (width, height) = ((to - from).max(0.0), HEIGHT - TOP - BOTTOM);
            let _ = write!(
                out,
                "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"/>"
            );
            // A name needs about seven units per letter.
            if width > band.name.len() as f64 * 7.0 {
                let (x, y) = ((from + to) / 2.0, TOP - 8.0);
                let name = escape(&band.name);
                let _ =
                    write!(out, "<text class=\"band-name\" x=\"{x:.1}\" y=\"{y}\">{name}</text>");
            }
        }
    }

    fn grid(&self, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in self.y.scale.ticks(self.y.unit) {
            let (y, label) = (self.y(value), escape(&label));
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick y\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                LEFT - 8.0,
                y + 4.0,
            );
        }
        for (value, label) in self.x.scale.ticks(self.x.unit) {
            let (x, label) = (self.x(value), escape(&label));
            let _ = write!(
                out,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text class=\"tick x\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
                bottom + 5.0,
                bottom + 18.0,
            );
        }
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"title\" transform=\"translate(14 {:.1}) rotate(-90)\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            escape(self.x.title),
            (TOP + bottom) / 2.0,
            escape(self.y.title)
        );
    }

    fn line(&self, out: &mut String, line: &Line) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, value) in &line.points {
            let Some(value) = value else {
                pen_down = false;
                continue;
            };
            let command = if pen_down { 'L' } else { 'M' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.x(*x), self.y(*value));
            pen_down = true;
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"line {}\" d=\"{path}\"/>", line.class);
        }
    }

    /// Invisible circles with a text that browsers show under the pointer.
    fn pointers(&self, out: &mut String, line: &Line) {
        if line.points.len() > POINTED_MAX {
            return;
        }
        for (x, value) in &line.points {
            let Some(value) = value else { continue };
            let _ = write!(
                out,
                "<circle class=\"point {}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\">\
                 <title>{}: {} {}</title></circle>",
                line.class,
                self.x(*x),
                self.y(*value),
                escape(&(self.place)(*x)),
                escape(line.name),
                escape(&(self.value)(*value))
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format;

    fn chart(points: Vec<(f64, Option<f64>)>) -> String {
        Chart {
            title: "A < B".to_owned(),
            x: Axis { title: "time (s)", scale: Scale::exactly(0.0, 3.0), unit: Unit::Number },
            y: Axis { title: "rate", scale: Scale::from_zero(10.0), unit: Unit::Number },
            lines: vec![Line { name: "in", class: "c1", points }],
            bands: vec![Band { name: "measure".to_owned(), from: 1.0, to: 3.0 }],
            value: format::rate,
            place: |seconds| format!("{seconds:.0} s"),
        }
        .render()
    }

    #[test]
    fn a_gap_interrupts_the_line() {
        let svg = chart(vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(2.0)), (3.0, Some(3.0))]);
        let path = svg.split("d=\"").nth(1).and_then(|rest| rest.split('"').next());
        let path = path.expect("has a path");
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
        assert!(svg.contains("A &lt; B") && svg.contains("measure"));
        assert!(svg.contains("2 s: in 2.0"));
    }

    #[test]
    fn nothing_recorded_is_said() {
        assert!(chart(vec![(0.0, None)]).contains("Nothing was recorded"));
        assert!(chart(vec![]).contains("Nothing was recorded"));
    }
}
