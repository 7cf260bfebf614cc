//! A chart before it becomes static SVG or data for the script.

use super::axis::{Scale, Unit};
use super::lang::Lang;

/// Points of a line beyond which a chart is thinned: more than a screen has columns.
pub const POINTS_MAX: usize = 1200;

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its quantity, with the unit.
    pub title: String,
    /// How values map to positions.
    pub scale: Scale,
    /// How values are shown.
    pub unit: Unit,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A thin line.
    #[default]
    Plain,
    /// A broad pale one below others.
    Under,
    /// Dashed.
    Dashed,
    /// Dashed and grey: the offered value.
    Reference,
    /// Markers alone.
    None,
}

/// The marker of a line's points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// Nothing.
    #[default]
    None,
    /// A filled circle.
    Dot,
    /// A filled triangle.
    Triangle,
    /// A circle without filling: a figure that does not count.
    Hollow,
    /// A cross: something failed.
    Cross,
}

/// One line; `None` interrupts it.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Number of its colour, from 1.
    pub colour: usize,
    /// How it is drawn.
    pub style: Style,
    /// The marker of its points.
    pub marker: Marker,
    /// Published figures, which are shown on request.
    pub published: bool,
    /// Positions and values.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A stretch of the x axis that is shaded and named.
#[derive(Clone, Debug)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// A line across the chart, or dropped from a point to the x axis.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its height.
    pub y: f64,
    /// Where it drops to the axis; absent for a level across.
    pub x: Option<f64>,
    /// Its name.
    pub name: String,
    /// Number of its colour; 0 is grey.
    pub colour: usize,
}

/// Least, mean and most of a line over the measured time, as listed below a chart.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Name of the line.
    pub name: String,
    /// Least value.
    pub min: f64,
    /// Mean value.
    pub mean: f64,
    /// Greatest value.
    pub max: f64,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// A sentence below the title.
    pub note: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// Its lines, the first one at the bottom.
    pub lines: Vec<Line>,
    /// Shaded stretches.
    pub bands: Vec<Band>,
    /// Levels and positions.
    pub marks: Vec<Mark>,
    /// Lines are parts of a whole, drawn as areas upon each other.
    pub stacked: bool,
    /// As broad as the page; otherwise two stand side by side.
    pub wide: bool,
    /// The lines in figures.
    pub table: Vec<Spread>,
}

impl Line {
    /// A thin line of a colour.
    pub fn plain(name: &str, colour: usize, points: Vec<(f64, Option<f64>)>) -> Self {
        Self { name: name.to_owned(), colour, points, ..Self::default() }
    }

    /// The same in another style.
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.points.iter().all(|(_, value)| value.is_none())
    }

    /// Nothing but zeros.
    pub fn is_zero(&self) -> bool {
        self.points.iter().all(|(_, value)| value.is_none_or(|value| value == 0.0))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().filter_map(|(_, value)| *value)
    }

    fn thinned(&self, keep_extremes: bool) -> Self {
        let size = self.points.len().div_ceil(POINTS_MAX / 2);
        let mut points = Vec::with_capacity(POINTS_MAX);
        for bucket in self.points.chunks(size) {
            let value = |(index, (_, value)): (usize, &(f64, Option<f64>))| {
                value.map(|value| (index, value))
            };
            let values: Vec<(usize, f64)> = bucket.iter().enumerate().filter_map(value).collect();
            let places = [bucket[0].0, bucket[bucket.len() / 2].0];
            let by_value = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
            let pair = match (values.iter().min_by(by_value), values.iter().max_by(by_value)) {
                (Some(_), Some(_)) if !keep_extremes => {
                    let mean = values.iter().map(|(_, v)| v).sum::<f64>() / values.len() as f64;
                    [Some(mean), Some(mean)]
                }
                (Some(min), Some(max)) if min.0 <= max.0 => [Some(min.1), Some(max.1)],
                (Some(min), Some(max)) => [Some(max.1), Some(min.1)],
                _ => [None, None],
            };
            points.extend(places.into_iter().zip(pair));
        }
        Self { points, ..self.clone() }
    }
}

impl Chart {
    /// A chart without lines yet, half as broad as the page.
    pub fn new(title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self {
            title: title.to_owned(),
            note: String::new(),
            x,
            y,
            lines,
            bands: Vec::new(),
            marks: Vec::new(),
            stacked: false,
            wide: false,
            table: Vec::new(),
        }
    }

    /// Nothing to draw at all.
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(Line::is_empty)
    }

    /// True when published figures can be shown with it.
    pub fn has_published(&self) -> bool {
        self.lines.iter().any(|line| line.published && !line.is_empty())
    }

    /// With at most [`POINTS_MAX`] points a line. Of every stretch its least and its greatest value
    /// stay, so that no spike is lost; stacked areas, which must add up, become means.
    pub fn thinned(mut self, lang: Lang) -> Self {
        let longest = self.lines.iter().map(|line| line.points.len()).max().unwrap_or(0);
        if longest <= POINTS_MAX {
            return self;
        }
        let keep_extremes = !self.stacked;
        for line in &mut self.lines {
            *line = line.thinned(keep_extremes);
        }
        let stretch = longest.div_ceil(POINTS_MAX / 2);
        let kept = if keep_extremes { lang.least_and_greatest_value() } else { lang.mean() };
        if !self.note.is_empty() {
            self.note.push(' ');
        }
        self.note.push_str(&lang.thinned(kept, stretch));
        self
    }

    /// The whole of a stacked chart at each point of its longest line, else the lines themselves.
    pub fn stacked_lines(&self) -> Vec<Line> {
        if !self.stacked {
            return self.lines.clone();
        }
        let mut sums: Vec<f64> = Vec::new();
        let mut stacked = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            sums.resize(sums.len().max(line.points.len()), 0.0);
            let mut line = line.clone();
            for (sum, (_, value)) in sums.iter_mut().zip(&mut line.points) {
                if let Some(value) = value {
                    *sum += *value;
                    *value = *sum;
                }
            }
            stacked.push(line);
        }
        stacked
    }
}

/// The greatest value of all lines, 0 without any.
pub fn greatest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(Line::values).fold(0.0, f64::max)
}

/// The least value of all lines, infinite without any.
pub fn least(lines: &[Line]) -> f64 {
    lines.iter().flat_map(Line::values).fold(f64::INFINITY, f64::min)
}

/// An axis from zero to just above the maximum of the lines.
pub fn from_zero(title: &str, unit: Unit, lines: &[Line]) -> Axis {
    let scale = Scale::from_zero(greatest(lines) * 1.02, unit);
    Axis { title: title.to_owned(), scale, unit }
}

/// A logarithmic axis around the range of the lines.
pub fn logarithmic(lang: Lang, title: &str, unit: Unit, lines: &[Line]) -> Axis {
    let scale = Scale::log(least(lines), greatest(lines));
    Axis { title: lang.logarithmic(title), scale, unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(to: f64) -> Axis {
        Axis {
            title: "time".to_owned(),
            scale: Scale::exactly(0.0, to, Unit::Seconds),
            unit: Unit::Seconds,
        }
    }

    #[test]
    fn thinning_keeps_spikes() {
        let mut points: Vec<_> = (0..10_000).map(|s| (f64::from(s), Some(5.0))).collect();
        points[7777].1 = Some(900.0);
        points[3333].1 = Some(1.0);
        points[4444].1 = None;
        let lines = vec![Line::plain("p99", 1, points)];
        let y = from_zero("latency", Unit::Latency, &lines);
        let chart = Chart::new("Latency", time(1e4), y, lines).thinned(Lang::En);
        let points = &chart.lines[0].points;
        assert!(points.len() <= POINTS_MAX, "{}", points.len());
        assert_eq!((least(&chart.lines), greatest(&chart.lines)), (1.0, 900.0));
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert!(chart.note.contains("every 17 points"), "{}", chart.note);
    }

    #[test]
    fn short_charts_stay_as_they_are() {
        let lines = vec![Line::plain("a", 1, vec![(0.0, Some(1.0)), (1.0, None)])];
        let y = from_zero("rate", Unit::Rate, &lines);
        let chart = Chart::new("Rate", time(1.0), y, lines).thinned(Lang::En);
        assert_eq!((chart.lines[0].points.len(), chart.note.as_str()), (2, ""));
    }

    #[test]
    fn stacks_add_up() {
        let points = |value| vec![(0.0, Some(value)), (1.0, Some(value))];
        let lines = vec![Line::plain("user", 1, points(10.0)), Line::plain("sys", 2, points(5.0))];
        let y = from_zero("CPU", Unit::Percent, &lines);
        let mut chart = Chart::new("CPU", time(1.0), y, lines);
        chart.stacked = true;
        assert_eq!(chart.stacked_lines()[1].points, points(15.0));
    }
}
