//! The charts of a report.

use super::ReportData;
use super::axis::{Scale, Unit};
use super::chart::{Axis, Band, Chart, Line};
use crate::format;
use crate::record::{CurvePoint, SeriesRow};
use crate::run::StepCurves;

/// Latency statistics of intervals shorter than this, in seconds, are left out: the last rest of a
/// phase has too few messages to compare with whole seconds.
const INTERVAL_SHOWN_S: f64 = 0.5;

/// All charts of the run, in reading order.
pub(super) fn charts(data: &ReportData<'_>) -> Vec<Chart> {
    let mut charts = vec![rates(data.rows), latency(data.rows)];
    for (index, curves) in data.curves.iter().enumerate() {
        let title = match data.curves.len() {
            1 => "Latency by percentile".to_owned(),
            _ => format!("Latency by percentile, step {}", index + 1),
        };
        charts.push(percentiles(title, curves));
    }
    charts.push(cpu(data.rows));
    charts
}

type Pick = fn(&SeriesRow) -> Option<f64>;

fn line(rows: &[SeriesRow], name: &'static str, class: &'static str, pick: Pick) -> Line {
    let points = rows
        .iter()
        .filter(|row| row.length_s >= INTERVAL_SHOWN_S)
        // A value stands in the middle of the interval that it describes.
        .map(|row| (row.start_s + row.length_s / 2.0, pick(row)));
    Line { name, class, points: points.collect() }
}

fn time_axis(rows: &[SeriesRow]) -> Axis {
    let end = rows.last().map_or(1.0, |row| row.start_s + row.length_s);
    Axis {
        title: "time since the start of the run (s)",
        scale: Scale::exactly(0.0, end),
        unit: Unit::Number,
    }
}

/// The phases that matter to a reader: warm-up and measured window.
fn bands(rows: &[SeriesRow]) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut previous = "";
    for row in rows {
        let end = row.start_s + row.length_s;
        if row.phase == "measure" {
            match bands.last_mut().filter(|_| previous == row.phase) {
                Some(band) => band.to = end,
                None => {
                    bands.push(Band { name: "measured".to_owned(), from: row.start_s, to: end })
                }
            }
        }
        previous = &row.phase;
    }
    bands
}

fn max(lines: &[Line]) -> f64 {
    lines
        .iter()
        .flat_map(|line| line.points.iter().filter_map(|(_, value)| *value))
        .fold(0.0, f64::max)
}

fn min(lines: &[Line]) -> f64 {
    lines
        .iter()
        .flat_map(|line| line.points.iter().filter_map(|(_, value)| *value))
        .fold(f64::INFINITY, f64::min)
}

fn seconds(at: f64) -> String {
    format!("{at:.1} s")
}

fn rates(rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, "received", "c3 under", |row| Some(row.received_per_s)),
        line(rows, "sent", "c1", |row| Some(row.sent_per_s)),
        line(rows, "offered", "reference", |row| Some(row.offered_in_per_s)),
    ];
    Chart {
        title: "Rate".to_owned(),
        x: time_axis(rows),
        y: Axis {
            title: "messages per second",
            scale: Scale::from_zero(max(&lines) * 1.02),
            unit: Unit::Number,
        },
        lines,
        bands: bands(rows),
        value: |rate| format!("{} per second", format::rate(rate)),
        place: seconds,
    }
}

fn latency(rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, "max", "c4", |row| row.e2e_max_us.map(|us| us as f64)),
        line(rows, "p99", "c2", |row| row.e2e_p99_us.map(|us| us as f64)),
        line(rows, "p50", "c1", |row| row.e2e_p50_us.map(|us| us as f64)),
    ];
    Chart {
        title: "End-to-end latency, from the time a message was due".to_owned(),
        x: time_axis(rows),
        y: Axis {
            title: "latency (logarithmic)",
            scale: Scale::log(min(&lines), max(&lines)),
            unit: Unit::Latency,
        },
        lines,
        bands: bands(rows),
        value: format::latency,
        place: seconds,
    }
}

fn percentiles(title: String, curves: &StepCurves) -> Chart {
    let line = |name, class, points: &[CurvePoint]| Line {
        name,
        class,
        points: points.iter().map(|p| (p.quantile, Some(p.value_us as f64))).collect(),
    };
    let lines = vec![
        line("end to end", "c1", &curves.latency),
        line("service (from the time it was written)", "c2", &curves.service),
        line("send delay (of the generator)", "c3", &curves.send_delay),
    ];
    let last = lines.iter().filter_map(|line| line.points.last()).map(|(quantile, _)| *quantile);
    let nines = -(1.0 - last.fold(0.9, f64::max)).log10();
    Chart {
        title,
        x: Axis {
            title: "share of messages that were at least as fast",
            scale: Scale::Nines { nines: nines.max(1.0) },
            unit: Unit::Number,
        },
        y: Axis {
            title: "latency (logarithmic)",
            scale: Scale::log(min(&lines), max(&lines)),
            unit: Unit::Latency,
        },
        lines,
        bands: Vec::new(),
        value: format::latency,
        place: |quantile| format!("{:.4} %", quantile * 100.0),
    }
}

fn cpu(rows: &[SeriesRow]) -> Chart {
    let mut lines = Vec::new();
    if rows.iter().any(|row| row.broker_cpu_percent.is_some()) {
        lines.push(line(rows, "broker process", "c1", |row| row.broker_cpu_percent));
    }
    if rows.iter().any(|row| row.broker_cores_busy_percent.is_some()) {
        lines.push(line(rows, "broker's cores, busy", "c2", |row| row.broker_cores_busy_percent));
    }
    lines.push(line(rows, "generator threads", "c3", |row| Some(row.generator_cpu_percent)));
    Chart {
        title: "CPU".to_owned(),
        x: time_axis(rows),
        y: Axis {
            title: "percent (one core = 100)",
            scale: Scale::from_zero(max(&lines)),
            unit: Unit::Number,
        },
        lines,
        bands: bands(rows),
        value: format::percent,
        place: seconds,
    }
}
