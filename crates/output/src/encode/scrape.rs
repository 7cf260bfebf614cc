//! Prometheus' text format, for figures that are scraped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::totals::{SeriesKey, key_of_figure};
use crate::point::{FigureKind, OutputItem};

/// The gauges of points as a scrape gets them, families in the order of their names. A point stands
/// for its subject: of two with the same series the later one is shown.
pub fn exposition(items: &[OutputItem]) -> String {
    let mut series: BTreeMap<SeriesKey, f64> = BTreeMap::new();
    for item in items {
        let OutputItem::Point(point) = item else { continue };
        for figure in point.figures.iter().filter(|figure| figure.kind == FigureKind::Gauge) {
            series.insert(key_of_figure(point, figure), figure.value);
        }
    }
    let (mut text, mut family) = (String::new(), None);
    // A key begins with its name: the series of a family follow each other.
    for (SeriesKey { name, labels, .. }, value) in &series {
        if family != Some(name) {
            family = Some(name);
            let _ = writeln!(text, "# TYPE {name} gauge");
        }
        let shown: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let _ = match shown.is_empty() {
            true => writeln!(text, "{name} {value}"),
            false => writeln!(text, "{name}{{{}}} {value}", shown.join(",")),
        };
    }
    text
}

/// A label's value in quotation marks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{OutputPoint, PointFigure, PointSeries, PointTag, PointTags, PointWindow};

    fn item(host: &str, figures: Vec<PointFigure>) -> OutputItem {
        OutputItem::Point(Box::new(OutputPoint {
            series: PointSeries::Host,
            tags: PointTags::default().with(PointTag::Host, host),
            window: PointWindow {
                start_ms: 0,
                end_ms: 1_000,
                phase: String::new(),
                measured: None,
            },
            figures,
            latencies: Vec::new(),
            statistics: Vec::new(),
            row: None,
        }))
    }

    #[test]
    fn gauges_are_grouped_by_family() {
        let cpu = |value| PointFigure::gauge("cpu_busy_percent", value);
        let of_core = PointFigure { part: Some("cpu0".to_owned()), ..cpu(7.5) };
        let text = exposition(&[
            item("b", vec![cpu(12.5), PointFigure::count("ignored", 3)]),
            item("a\"\\\n", vec![cpu(1.0), of_core]),
        ]);
        assert_eq!(
            text,
            "# TYPE tacho_host_cpu_busy_percent gauge\n\
             tacho_host_cpu_busy_percent{host=\"a\\\"\\\\\\n\"} 1\n\
             tacho_host_cpu_busy_percent{host=\"a\\\"\\\\\\n\",part=\"cpu0\"} 7.5\n\
             tacho_host_cpu_busy_percent{host=\"b\"} 12.5\n"
        );
    }
}
