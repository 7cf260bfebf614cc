//! Charts as data for the script that makes them interactive.

use serde::Serialize;
use serde_json::Value;

use super::axis::{Scale, Unit};
use super::chart::{Axis, Chart, Line, Marker};
use super::svg::classes;

/// The data for the script: charts in the order of their figures, with shared positions.
#[derive(Debug, Default, Serialize)]
pub(super) struct Data {
    /// Positions on x axes; lines name them by number, since most lines of a run share theirs.
    places: Vec<Vec<f64>>,
    charts: Vec<ChartData>,
}

#[derive(Debug, Serialize)]
struct ChartData {
    title: String,
    wide: bool,
    stacked: bool,
    x: AxisData,
    y: AxisData,
    lines: Vec<LineData>,
    bands: Vec<(f64, f64, String)>,
    marks: Vec<MarkData>,
}

#[derive(Debug, Serialize)]
struct AxisData {
    title: String,
    unit: Unit,
    log: bool,
    from: f64,
    to: f64,
}

#[derive(Debug, Serialize)]
struct LineData {
    name: String,
    /// Classes of the style sheet, the colour's first.
    class: String,
    marker: &'static str,
    published: bool,
    places: usize,
    values: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct MarkData {
    x: Option<f64>,
    y: f64,
    name: String,
    colour: usize,
}

impl Data {
    /// Adds a chart and returns its number.
    pub(super) fn add(&mut self, chart: &Chart) -> usize {
        let lines = chart.lines.iter().map(|line| self.line(line)).collect();
        let marks = chart.marks.iter().map(|mark| MarkData {
            x: mark.x.map(short),
            y: mark.y,
            name: mark.name.clone(),
            colour: mark.colour,
        });
        self.charts.push(ChartData {
            title: chart.title.clone(),
            wide: chart.wide,
            stacked: chart.stacked,
            x: axis(&chart.x),
            y: axis(&chart.y),
            lines,
            bands: chart
                .bands
                .iter()
                .map(|band| (short(band.from), short(band.to), band.name.clone()))
                .collect(),
            marks: marks.collect(),
        });
        self.charts.len() - 1
    }

    fn line(&mut self, line: &Line) -> LineData {
        let places: Vec<f64> = line.points.iter().map(|(at, _)| short(*at)).collect();
        let known = self.places.iter().rposition(|known| *known == places);
        let number = known.unwrap_or_else(|| {
            self.places.push(places);
            self.places.len() - 1
        });
        LineData {
            name: line.name.clone(),
            class: classes(line),
            marker: match line.marker {
                Marker::None => "",
                Marker::Dot => "dot",
                Marker::Triangle => "triangle",
                Marker::Hollow => "hollow",
                Marker::Cross => "cross",
            },
            published: line.published,
            places: number,
            values: line.points.iter().map(|(_, value)| number_or_null(*value)).collect(),
        }
    }

    /// As JSON that is safe inside a script element: no `<` stands in it.
    pub(super) fn json(&self) -> String {
        // Invariant: string keys only, and numbers are finite or null.
        let json = serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned());
        json.replace('<', "\\u003c")
    }
}

fn axis(axis: &Axis) -> AxisData {
    let (from, to) = axis.scale.ends();
    AxisData {
        title: axis.title.clone(),
        unit: axis.unit,
        log: matches!(axis.scale, Scale::Log { .. }),
        from: short(from),
        to: short(to),
    }
}

/// Six digits are more than any screen shows.
fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 5 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits);
    let rounded = (value * factor).round() / factor;
    if rounded.is_finite() { rounded } else { value }
}

fn number_or_null(value: Option<f64>) -> Value {
    let Some(value) = value.filter(|value| value.is_finite()) else { return Value::Null };
    let value = short(value);
    // `5` instead of `5.0`: half of a page are such numbers.
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::from_zero;

    #[test]
    fn positions_are_shared_and_text_cannot_end_the_script() {
        let points = vec![(0.5, Some(1.0)), (1.5, None), (2.5, Some(1.0 / 3.0))];
        let lines =
            vec![Line::plain("</script><b>", 1, points.clone()), Line::plain("other", 2, points)];
        let x = from_zero("x", Unit::Seconds, &lines);
        let y = from_zero("y", Unit::Rate, &lines);
        let mut data = Data::default();
        assert_eq!(data.add(&Chart::new("t", x, y, lines)), 0);
        let json = data.json();
        assert!(!json.contains('<'), "{json}");
        let value: Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(value["places"].as_array().map(Vec::len), Some(1));
        assert_eq!(value["charts"][0]["lines"][0]["name"], "</script><b>");
        assert_eq!(value["charts"][0]["lines"][0]["values"].to_string(), "[1,null,0.333333]");
    }
}
