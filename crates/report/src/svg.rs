//! Charts as plain SVG, coloured by the page's style sheet: for paper, and without scripts.

use std::fmt::Write as _;

use super::axis::Scale;
use super::chart::{Chart, Line, Marker, Style, greatest, least};
use super::elements::escape;

const LEFT: f64 = 70.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 44.0;
/// Markers of longer lines have no text of their own: the page would grow too large.
const TITLED_MAX: usize = 100;
/// Width of a letter of a tick, roughly.
const LETTER: f64 = 6.6;
/// Width and height of a chart as broad as the page.
const WIDE: (f64, f64) = (1040.0, 300.0);
/// The same of one of two side by side.
pub const HALF: (f64, f64) = (540.0, 260.0);

/// Width and height of a chart.
pub const fn size(chart: &Chart) -> (f64, f64) {
    if chart.wide { WIDE } else { HALF }
}

/// Draws a chart; `published` with the figures of others.
pub fn svg(chart: &Chart, published: bool) -> String {
    let (width, height) = size(chart);
    if published {
        let chart = &with_room(chart);
        return Drawing { chart, width, height, out: String::new(), published }.draw();
    }
    Drawing { chart, width, height, out: String::new(), published }.draw()
}

/// The chart with scales that reach as far as the figures of others do.
fn with_room(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    let places = chart.lines.iter().flat_map(|line| line.points.iter().map(|(at, _)| *at));
    let (x_end, y_end) = (places.fold(0.0, f64::max), greatest(&chart.lines));
    if x_end > chart.x.scale.ends().1 {
        chart.x.scale = Scale::exactly(0.0, x_end * 1.05, chart.x.unit);
    }
    match chart.y.scale {
        Scale::Log { .. } => chart.y.scale = Scale::log(least(&chart.lines), y_end),
        Scale::Linear { to, .. } if y_end > to => {
            chart.y.scale = Scale::from_zero(y_end * 1.02, chart.y.unit);
        }
        _ => {}
    }
    chart
}

struct Drawing<'a> {
    chart: &'a Chart,
    width: f64,
    height: f64,
    out: String,
    published: bool,
}

impl Drawing<'_> {
    fn draw(mut self) -> String {
        let (width, height) = (self.width, self.height);
        let _ = write!(
            self.out,
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.chart.title)
        );
        self.bands();
        self.grid();
        let lines = self.chart.stacked_lines();
        let shown = || lines.iter().filter(|line| self.published || !line.published);
        let mut drawn = String::new();
        if self.chart.stacked {
            // The topmost area first: each lower one covers its part of it.
            for line in shown().rev() {
                self.area(&mut drawn, line);
            }
        } else {
            for line in shown() {
                self.line(&mut drawn, line);
            }
            for line in shown() {
                self.markers(&mut drawn, line);
            }
        }
        self.out.push_str(&drawn);
        self.marks();
        self.out.push_str("</svg>");
        self.out
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.chart.x.scale.position(value) * (self.width - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.chart.y.scale.position(value) * (self.height - TOP - BOTTOM)
    }

    fn bands(&mut self) {
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for band in &self.chart.bands {
            let (from, to) = (self.x(band.from), self.x(band.to));
            let (width, height) = ((to - from).max(0.0), self.height - TOP - BOTTOM);
            let _ = write!(
                self.out,
                "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"/>"
            );
            let half = width_of(&band.name) / 2.0;
            let (x, y, name) = ((from + to) / 2.0, TOP - 7.0, escape(&band.name));
            // A name that would touch that of another band is left out.
            let is_free = taken.iter().all(|(left, right)| x + half < *left || x - half > *right);
            if width > 2.0 * half && is_free {
                taken.push((x - half, x + half));
                let _ = write!(
                    self.out,
                    "<text class=\"band-name\" x=\"{x:.1}\" y=\"{y}\">{name}</text>"
                );
            }
        }
    }

    fn grid(&mut self) {
        let chart = self.chart;
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        let mut free_below = f64::INFINITY;
        for (value, label) in chart.y.scale.ticks(chart.y.unit) {
            let (y, label) = (self.y(value), escape(&label));
            // Logarithmic ticks come in bunches.
            if y > free_below {
                continue;
            }
            free_below = y - 13.0;
            let _ = write!(
                self.out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick y\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                LEFT - 7.0,
                y + 4.0,
            );
        }
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in chart.x.scale.ticks(chart.x.unit) {
            let x = self.x(value);
            let _ = write!(
                self.out,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>",
                bottom + 5.0,
            );
            let half = width_of(&label) / 2.0;
            // A label that would touch its neighbour, or leave the picture, is left out.
            if x - half < free_from || x + half > self.width {
                continue;
            }
            free_from = x + half + 4.0;
            let _ = write!(
                self.out,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 18.0,
                escape(&label)
            );
        }
        let _ = write!(
            self.out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"title\" transform=\"translate(12 {:.1}) rotate(-90)\">{}</text>",
            (LEFT + right) / 2.0,
            self.height - 7.0,
            escape(&chart.x.title),
            (TOP + bottom) / 2.0,
            escape(&chart.y.title)
        );
    }

    fn path(&self, line: &Line) -> String {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, value) in &line.points {
            let Some(value) = value else {
                pen_down = false;
                continue;
            };
            let (x, y) = (self.x(*x), self.y(*value));
            // A line without length has round ends: a dot where there is a gap on either side.
            let _ = match pen_down {
                true => write!(path, "L{x:.1} {y:.1}"),
                false => write!(path, "M{x:.1} {y:.1}h0"),
            };
            pen_down = true;
        }
        path
    }

    fn line(&self, out: &mut String, line: &Line) {
        let path = if line.style == Style::None { String::new() } else { self.path(line) };
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"line {}\" d=\"{path}\"/>", classes(line));
        }
    }

    fn area(&self, out: &mut String, line: &Line) {
        let base = self.height - BOTTOM;
        for piece in line.points.split(|(_, value)| value.is_none()) {
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
            let mut path = format!("M{:.1} {base}", self.x(first.0));
            for (x, value) in piece {
                let _ = write!(path, "L{:.1} {:.1}", self.x(*x), self.y(value.unwrap_or(0.0)));
            }
            let _ = write!(path, "L{:.1} {base}Z", self.x(last.0));
            let _ = write!(out, "<path class=\"area {}\" d=\"{path}\"/>", classes(line));
        }
    }

    fn markers(&self, out: &mut String, line: &Line) {
        if line.marker == Marker::None {
            return;
        }
        let titled = line.points.len() <= TITLED_MAX;
        for (at, value) in &line.points {
            let Some(value) = value else { continue };
            let (x, y) = (self.x(*at), self.y(*value));
            let title = match titled {
                true => format!(
                    "<title>{}: {}, {}</title>",
                    escape(&line.name),
                    escape(&self.chart.x.unit.show(*at)),
                    escape(&self.chart.y.unit.show(*value))
                ),
                false => String::new(),
            };
            let colour = classes(line);
            let shape = match line.marker {
                Marker::Triangle => format!("M{x:.1} {:.1}l4.6 8h-9.2z", y - 5.0),
                Marker::Cross => {
                    format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0)
                }
                _ => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
            };
            let kind = match line.marker {
                Marker::Hollow => "hollow",
                Marker::Cross => "cross",
                _ => "dot",
            };
            let _ = write!(out, "<path class=\"{kind} {colour}\" d=\"{shape}\">{title}</path>");
        }
    }

    fn marks(&mut self) {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        let levels = self.chart.marks.iter().filter(|mark| mark.x.is_none());
        let highest = levels.map(|mark| mark.y).fold(f64::NEG_INFINITY, f64::max);
        for mark in &self.chart.marks {
            let (y, name, colour) = (self.y(mark.y), escape(&mark.name), mark.colour);
            let _ = match mark.x {
                None => write!(
                    self.out,
                    "<line class=\"level\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" \
                     y2=\"{y:.1}\"/><text class=\"level-name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                    LEFT + 4.0,
                    // The highest has its name above it, others below.
                    if mark.y >= highest { y - 4.0 } else { y + 13.0 }
                ),
                Some(at) => {
                    let x = self.x(at);
                    // Beside the line, on the side that has room.
                    let (shift, anchor) = match x + 60.0 > right {
                        true => (-4.0, "end"),
                        false => (4.0, "start"),
                    };
                    write!(
                        self.out,
                        "<line class=\"drop c{colour}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y:.1}\" \
                         y2=\"{bottom}\"/><text class=\"drop-name c{colour}\" x=\"{:.1}\" \
                         y=\"{:.1}\" style=\"text-anchor:{anchor}\">{name}</text>",
                        x + shift,
                        bottom - 5.0 - 13.0 * colour.saturating_sub(1) as f64
                    )
                }
            };
        }
    }
}

/// Width of a label, roughly: Chinese characters are square.
fn width_of(label: &str) -> f64 {
    label.chars().map(|c| if c < '\u{2e80}' { LETTER } else { 12.0 }).sum()
}

/// Classes of the style sheet that draw a line.
pub fn classes(line: &Line) -> String {
    let style = match line.style {
        Style::Plain => "",
        Style::Under => " under",
        Style::Dashed => " dashed",
        Style::Reference => " reference",
        Style::None => " points",
    };
    let published = if line.published { " published" } else { "" };
    let colour = (line.colour.max(1) - 1) % 8 + 1;
    format!("c{colour}{style}{published}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Unit;
    use crate::chart::{Axis, Band, from_zero};

    fn chart(points: Vec<(f64, Option<f64>)>) -> Chart {
        let x = Axis {
            title: "time (s)".to_owned(),
            scale: Scale::exactly(0.0, 3.0, Unit::Seconds),
            unit: Unit::Seconds,
        };
        let lines = vec![Line { marker: Marker::Dot, ..Line::plain("in", 1, points) }];
        let y = from_zero("rate", Unit::Rate, &lines);
        let mut chart = Chart::new("A < B", x, y, lines);
        chart.bands.push(Band { name: "measured".to_owned(), from: 1.0, to: 3.0 });
        chart
    }

    #[test]
    fn a_gap_interrupts_the_line() {
        let points = vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(2.0)), (3.0, Some(3.0))];
        let svg = svg(&chart(points), false);
        let path = svg.split("d=\"").nth(1).and_then(|rest| rest.split('"').next());
        let path = path.expect("has a path");
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
        assert!(svg.contains("A &lt; B") && svg.contains("measured"));
        assert!(svg.contains("in: 2.0 s, 2.0/s"));
    }

    #[test]
    fn names_of_bands_do_not_touch() {
        let mut chart = chart(vec![(0.0, Some(1.0)), (3.0, Some(2.0))]);
        chart.bands.push(Band { name: "kill".to_owned(), from: 1.2, to: 2.8 });
        let svg = svg(&chart, false);
        assert!(svg.contains(">measured</text>") && !svg.contains(">kill</text>"), "{svg}");
        assert_eq!(svg.matches("class=\"band\"").count(), 2);
    }

    #[test]
    fn figures_of_others_only_on_request() {
        let mut chart = chart(vec![(0.0, Some(1.0)), (1.0, Some(2.0))]);
        chart.lines[0].published = true;
        assert!(!svg(&chart, false).contains("published"));
        assert!(svg(&chart, true).contains("c1 published"));
        // Its values lie far above ours: the scale grows with them.
        chart.lines[0].points[1].1 = Some(900.0);
        assert!(svg(&chart, true).contains(">1,000<"));
        assert!(!svg(&chart, false).contains(">1,000<"));
    }
}
