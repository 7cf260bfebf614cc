//! The steps of one broker in one series, and the load at which its CPU reaches 75 %.

use super::record::{Results, Row, Worth};
use tacho_lab::campaign::{LoadPoint, interpolate};
use tacho_record::Position;
use tacho_report::chart::{Line, Marker, Style};
use tacho_scenario::format;

/// CPU at which workloads are recommended.
pub(super) const RECOMMENDED_AT: f64 = 75.0;

/// The steps of a broker, by their load.
pub(super) struct Curve<'a> {
    pub(super) rows: Vec<&'a Row>,
}

/// Where CPU reaches 75 %, as far as that was seen.
#[derive(Clone, Debug, PartialEq)]
enum Recommended {
    /// Between two steps.
    At(f64),
    /// It was never reached: the most that was measured, with its CPU.
    MoreThan(f64, f64),
    /// It was never reached, and the broker did not carry the step after this one.
    Ended(f64, f64),
    /// The first step was above it already.
    LessThan(f64, f64),
    /// Nothing that counts was measured.
    Unknown,
}

impl<'a> Curve<'a> {
    /// The rows of `broker` in `series`.
    pub(super) fn of(results: &'a Results, broker: &str, series: &str) -> Self {
        let own = |row: &&Row| row.broker == broker && row.series == series;
        let mut rows: Vec<&Row> = results.rows.iter().filter(own).collect();
        rows.sort_by_key(|row| nominal(&row.label));
        Self { rows }
    }

    /// Lines of a chart: what counts, joined; what does not, hollow; what failed, crossed.
    pub(super) fn lines(
        &self,
        name: &str,
        colour: usize,
        style: Style,
        marker: Marker,
        at: fn(&Row) -> Option<f64>,
        pick: fn(&Row) -> Option<f64>,
    ) -> Vec<Line> {
        let mut lines = vec![
            Line { style, marker, ..Line::plain(name, colour, Vec::new()) },
            Line {
                style: Style::None,
                marker: Marker::Hollow,
                ..Line::plain(&format!("{name}, does not count"), colour, Vec::new())
            },
            Line {
                style: Style::None,
                marker: Marker::Cross,
                ..Line::plain(&format!("{name}, not carried"), colour, Vec::new())
            },
        ];
        for row in &self.rows {
            let (Some(x), Some(value)) = (at(row), pick(row)) else { continue };
            let place = match row.worth() {
                Worth::Counts => 0,
                Worth::Invalid => 1,
                Worth::NotCarried => 2,
            };
            lines[place].points.push((x, Some(value)));
        }
        lines.retain(|line| !line.points.is_empty());
        lines
    }

    /// The load at which CPU reaches 75 %, and where steps that count do not tell it, what is
    /// probable with those that the broker carried although the generator was late.
    pub(super) fn recommended(&self) -> String {
        let sure = self.reached(|row| !row.is_invalid());
        sure.cell_with(&self.reached(|row| !row.is_invalid() || row.is_carried_late()))
    }

    /// The highest step that counts, and a higher one that was carried although it came late.
    pub(super) fn most_carried(&self) -> String {
        let sure = self.highest(|row| row.worth() == Worth::Counts);
        let probable = |row: &Row| row.worth() == Worth::Counts || row.is_carried_late();
        sure.cell_with(&self.highest(probable))
    }

    fn highest(&self, counts: fn(&Row) -> bool) -> Recommended {
        let row = self.rows.iter().rev().find(|row| counts(row));
        let figures = row.and_then(|row| Some((tps(row)?, cpu(row)?)));
        figures.map_or(Recommended::Unknown, |(tps, cpu)| Recommended::MoreThan(tps, cpu))
    }

    /// By a straight line between the neighbouring steps.
    fn reached(&self, counts: fn(&Row) -> bool) -> Recommended {
        let points: Vec<LoadPoint> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| counts(row))
            .filter_map(|(rung, row)| {
                let (step, cpu_percent) = (row.step.as_ref()?, row.cpu_percent()?);
                let sustained = !row.is_failed();
                Some(LoadPoint { rung, tps: step.tps, cpu_percent, sustained, seconds: Vec::new() })
            })
            .collect();
        let found = interpolate(&points, RECOMMENDED_AT, 1);
        let cpu_at = |tps: f64| {
            let point = points.iter().find(|point| (point.tps - tps).abs() < 1e-6);
            point.map_or(0.0, |point| point.cpu_percent)
        };
        let failed = points.iter().position(|point| !point.sustained);
        match (found.position, found.tps, found.low, found.high) {
            (Position::AboveLadder, ..) if failed.is_some() => {
                let before = failed.and_then(|at| points.get(at.checked_sub(1)?));
                before.map_or(Recommended::Unknown, |point| {
                    Recommended::Ended(point.tps, point.cpu_percent)
                })
            }
            (Position::Within, Some(tps), ..) => Recommended::At(tps),
            (Position::AboveLadder, _, Some(low), _) => Recommended::MoreThan(low, cpu_at(low)),
            (Position::BelowLadder, _, _, Some(high)) => Recommended::LessThan(high, cpu_at(high)),
            _ => Recommended::Unknown,
        }
    }
}

impl Recommended {
    /// As a cell of a table, with what is probable where this is a bound only.
    fn cell_with(&self, probable: &Self) -> String {
        match (self, probable) {
            (Self::At(_) | Self::Ended(..), _) | (_, Self::Unknown) => self.cell(),
            _ if self == probable => self.cell(),
            (_, Self::At(tps)) => format!("{}, probably {}", self.cell(), round(*tps)),
            _ => format!("{}, probably {}", self.cell(), probable.cell()),
        }
    }

    fn cell(&self) -> String {
        match self {
            Self::At(tps) => format!("**{}**", round(*tps)),
            Self::MoreThan(tps, cpu) => format!("more than {} (at {cpu:.0} %)", round(*tps)),
            Self::Ended(tps, cpu) => {
                format!("{} (at {cpu:.0} %); the next step was not carried", round(*tps))
            }
            Self::LessThan(tps, cpu) => format!("less than {} (at {cpu:.0} %)", round(*tps)),
            Self::Unknown => "nothing that counts".to_owned(),
        }
    }
}

/// To hundreds: more was not measured.
fn round(tps: f64) -> String {
    format::thousands(((tps / 100.0).round() * 100.0) as u64)
}

/// Messages in and out per second of a row.
pub(super) fn tps(row: &Row) -> Option<f64> {
    row.step.as_ref().map(|step| step.tps)
}

/// Its mean latency in microseconds.
pub(super) fn mean(row: &Row) -> Option<f64> {
    row.step.as_ref()?.latency_us.mean
}

/// Its 99th percentile in microseconds.
pub(super) fn p99(row: &Row) -> Option<f64> {
    row.step.as_ref()?.latency_us.p99.map(|us| us as f64)
}

/// Its CPU.
pub(super) fn cpu(row: &Row) -> Option<f64> {
    row.cpu_percent()
}

/// The number in a label such as `30K` or `4096B`.
pub(super) fn nominal(label: &str) -> u64 {
    let digits: String = label.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}
