//! Charts over the time of a run: their lines, axes and measured windows.

use super::axis::{Scale, Unit};
use super::chart::{Axis, Band, Chart, Line, from_zero, logarithmic};
use super::lang::Lang;
use tacho_record::{PhaseKind, SeriesRow};

/// Latency statistics of intervals shorter than this, in seconds, are left out: the last rest of a
/// phase has too few messages to compare with whole seconds.
const INTERVAL_SHOWN_S: f64 = 0.5;

/// A figure of a second.
pub(super) type Pick = fn(&SeriesRow) -> Option<f64>;

/// A line over the time of the run.
pub(super) fn line(rows: &[SeriesRow], name: &str, colour: usize, pick: Pick) -> Line {
    let values = rows.iter().map(|row| (row.start_s, row.length_s, pick(row)));
    line_of(name, colour, values)
}

/// A line over the time of the run, of starts and lengths of intervals with their values.
pub(super) fn line_of(
    name: &str,
    colour: usize,
    values: impl Iterator<Item = (f64, f64, Option<f64>)>,
) -> Line {
    let points = values
        .filter(|(_, length_s, _)| *length_s >= INTERVAL_SHOWN_S)
        // A value stands in the middle of the interval that it describes.
        .map(|(start_s, length_s, value)| (start_s + length_s / 2.0, value));
    Line::plain(name, colour, points.collect())
}

/// A line over the time of the run that has short intervals too: what happens while clients
/// connect and subscribe may take less than one.
pub(super) fn every_interval(rows: &[SeriesRow], name: &str, colour: usize, pick: Pick) -> Line {
    let points = rows.iter().map(|row| (row.start_s + row.length_s / 2.0, pick(row)));
    Line::plain(name, colour, points.collect())
}

/// The time of the run.
pub(super) fn time_axis(lang: Lang, rows: &[SeriesRow]) -> Axis {
    let end = rows.last().map_or(1.0, |row| row.start_s + row.length_s);
    Axis {
        title: lang.time_since_the_start_of_the_run_s().to_owned(),
        scale: Scale::exactly(0.0, end, Unit::Seconds),
        unit: Unit::Seconds,
    }
}

/// The measured windows, and the disturbed seconds in them.
pub(super) fn bands(lang: Lang, rows: &[SeriesRow]) -> Vec<Band> {
    let mut bands = stretches(rows, lang.measured_band(), |row| row.phase == PhaseKind::Measure);
    bands.extend(stretches(rows, lang.disturbed(), |row| {
        row.disturbed && row.phase == PhaseKind::Measure
    }));
    bands
}

/// The stretches of neighbouring rows that are meant.
fn stretches(rows: &[SeriesRow], name: &str, is_meant: impl Fn(&SeriesRow) -> bool) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut was_meant = false;
    for row in rows {
        let end = row.start_s + row.length_s;
        let meant = is_meant(row);
        if meant {
            match bands.last_mut().filter(|_| was_meant) {
                Some(band) => band.to = end,
                None => bands.push(Band { name: name.to_owned(), from: row.start_s, to: end }),
            }
        }
        was_meant = meant;
    }
    bands
}

/// A chart over time whose axis starts at zero.
pub(super) fn over_time(
    lang: Lang,
    rows: &[SeriesRow],
    title: &str,
    y: &str,
    unit: Unit,
    lines: Vec<Line>,
) -> Chart {
    let y = from_zero(y, unit, &lines);
    Chart { bands: bands(lang, rows), ..Chart::new(title, time_axis(lang, rows), y, lines) }
}

/// A chart of latencies over time, logarithmic.
pub(super) fn log_over_time(
    lang: Lang,
    rows: &[SeriesRow],
    title: &str,
    lines: Vec<Line>,
) -> Chart {
    let y = logarithmic(lang, lang.latency(), Unit::Latency, &lines);
    Chart { bands: bands(lang, rows), ..Chart::new(title, time_axis(lang, rows), y, lines) }
}

pub(super) fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_windows_and_their_disturbed_seconds_are_shaded() {
        let row = |start_s: f64, phase: PhaseKind, disturbed| SeriesRow {
            start_s,
            length_s: 1.0,
            phase: phase.into(),
            disturbed,
            ..SeriesRow::default()
        };
        let rows = [
            row(0.0, PhaseKind::WarmUp, true),
            row(1.0, PhaseKind::Measure, false),
            row(2.0, PhaseKind::Measure, true),
            row(3.0, PhaseKind::Measure, true),
            row(4.0, PhaseKind::Measure, false),
        ];
        let bands: Vec<(String, f64, f64)> = bands(Lang::En, &rows)
            .into_iter()
            .map(|band| (band.name, band.from, band.to))
            .collect();
        let expected = [("measured".to_owned(), 1.0, 5.0), ("disturbed".to_owned(), 2.0, 4.0)];
        assert_eq!(bands, expected);
    }
}
