//! The figures of a run as points for outputs, while it goes on or from its directory later.
//!
//! Both ways lead through [`RunPoints`], with the same names, tags and time stamps: a service that
//! got a point live takes the one that is sent again as the same point.

mod figures;
mod host;
mod past;
mod step;

use std::path::Path;

use tacho_load::{Histogram, IntervalSnapshot, LoginKind, PhaseKind};
use tacho_output::{
    Buckets, OutputItem, OutputNote, OutputPoint, PointSeries, PointTag, PointTags, PointWindow,
    TableRow,
};
use tacho_record::output::{SERIES_COLUMNS, series_cells};
use tacho_record::{PartBy, PartRow, PhaseName, ResourceRow, RunRecord, SeriesRow, Timestamp};

pub use host::HostClock;
pub use past::{PastPointsError, send_again};

/// Latencies by name, with the name that `latency.hlog` has for each.
const LATENCIES: [(&str, &str); 8] = [
    ("e2e_latency", "e2e"),
    ("service_latency", "service"),
    ("send_delay", "send_delay"),
    ("ack_latency", "ack"),
    ("connect_latency", "connect"),
    ("subscribe_latency", "subscribe"),
    ("round_trip", "rtt"),
    ("login_latency", "login"),
];

/// Actions of a run that are told.
const ACTIONS_MAX: usize = 1_000;

/// Latencies of one interval, of all clients and of each group.
#[derive(Debug, Default)]
pub(crate) struct IntervalLatencies {
    all: Vec<(&'static str, Buckets)>,
    groups: Vec<Buckets>,
}

impl IntervalLatencies {
    /// Those of an interval of the engine.
    pub(crate) fn of(interval: &IntervalSnapshot) -> Self {
        let logins = interval.logins.as_deref();
        let histograms: [Option<&Histogram>; LATENCIES.len()] = [
            Some(&interval.e2e),
            Some(&interval.service),
            Some(&interval.send_delay),
            Some(&interval.ack),
            Some(&interval.connect.ok_us),
            Some(&interval.subscribe.ok_us),
            Some(&interval.rtt),
            logins.map(|logins| &logins.of(LoginKind::Right).accepted_us),
        ];
        let named = LATENCIES.iter().zip(histograms);
        Self {
            all: named.filter_map(|((name, _), one)| Some((*name, Buckets::of(one?)))).collect(),
            groups: interval.groups.iter().map(|group| Buckets::of(&group.e2e)).collect(),
        }
    }
}

/// Makes points of what happens in one run.
#[derive(Debug)]
pub(crate) struct RunPoints {
    tags: PointTags,
    started_ms: u64,
    /// Phases so far, by their start in seconds since the start of the run.
    phases: Vec<(f64, PhaseName)>,
    /// End of the last second of the load.
    end_ms: u64,
}

impl RunPoints {
    /// Of the run `name`, whose files are in `directory`, of a `scenario`. A run of a campaign has
    /// the campaign's name and is a step of it, called as its directory.
    pub(crate) fn new(name: &str, directory: &Path, scenario: &str, started: Timestamp) -> Self {
        let (run, step) = match name.split_once('/') {
            None => (name, ""),
            Some((run, number)) => {
                let own = directory.file_name().and_then(|name| name.to_str());
                (run, own.unwrap_or(number))
            }
        };
        let tags = PointTags::default()
            .with(PointTag::Run, run)
            .with(PointTag::Scenario, scenario)
            .with(PointTag::Step, step);
        Self { tags, started_ms: started.unix_ms(), phases: Vec::new(), end_ms: 0 }
    }

    /// The run begins.
    pub(crate) fn started(&self) -> OutputItem {
        self.note(self.started_ms, "started", self.tags.get(PointTag::Scenario).unwrap_or_default())
    }

    /// A phase begins.
    pub(crate) fn phase(&mut self, start_s: f64, name: PhaseName) -> OutputItem {
        let note = self.note(self.at_ms(start_s), "phase", name.as_str());
        self.phases.push((start_s, name));
        note
    }

    /// A second of the load: of all clients, and of groups and brokers where there are several.
    pub(crate) fn second(
        &mut self,
        row: &SeriesRow,
        latencies: IntervalLatencies,
        parts: &[PartRow],
    ) -> Vec<OutputItem> {
        let window = self.window(row);
        let point = |series, tags, figures, latencies, row| {
            OutputItem::Point(Box::new(OutputPoint {
                series,
                tags,
                window: window.clone(),
                figures,
                latencies,
                statistics: Vec::new(),
                row,
            }))
        };
        let cells = series_cells(row).to_vec();
        let table = Some(TableRow { columns: &SERIES_COLUMNS, cells });
        let figures = figures::of_load(row);
        let mut items =
            vec![point(PointSeries::Load, self.tags.clone(), figures, latencies.all, table)];
        let mut of_groups = latencies.groups.into_iter();
        for part in parts {
            let figures = figures::of_part(part, row.length_s);
            let (series, tag, name, latency) = match part.by {
                PartBy::Group => {
                    let latency = of_groups.next().map(|buckets| ("e2e_latency", buckets));
                    (PointSeries::Group, PointTag::Group, part.name.as_str(), latency)
                }
                PartBy::Broker => {
                    let name = if part.name.is_empty() { "default" } else { &part.name };
                    (PointSeries::Broker, PointTag::Broker, name, None)
                }
            };
            let tags = self.tags.clone().with(tag, name);
            items.push(point(series, tags, figures, latency.into_iter().collect(), None));
        }
        items
    }

    /// Figures of a watched host.
    pub(crate) fn host(&self, row: &ResourceRow) -> OutputItem {
        let length_s = row.host.length_ns as f64 / 1e9;
        let middle_s = row.at_s - length_s / 2.0;
        let phase = self.phases.iter().rev().find(|(start_s, _)| *start_s <= middle_s);
        let window = PointWindow {
            start_ms: self.at_ms(row.at_s - length_s),
            end_ms: self.at_ms(row.at_s),
            phase: phase.map_or_else(String::new, |(_, name)| name.to_string()),
            measured: Some(phase.is_some_and(|(_, name)| *name == PhaseKind::Measure)),
        };
        OutputItem::Point(Box::new(host::point(&row.host, self.tags.clone(), window)))
    }

    /// The run has ended: its measured windows, what was done in it, and the verdict.
    pub(crate) fn ended(&self, record: &RunRecord) -> Vec<OutputItem> {
        let measured =
            self.phases.iter().filter(|(_, name)| *name == PhaseKind::Measure).zip(&record.steps);
        let mut items: Vec<OutputItem> = measured
            .map(|((start_s, _), step)| {
                let window = PointWindow {
                    start_ms: self.at_ms(*start_s),
                    end_ms: self.at_ms(start_s + step.window_s),
                    phase: PhaseKind::Measure.name().to_owned(),
                    measured: Some(true),
                };
                let tags = self.tags.clone().with(PointTag::Name, &record.given.name);
                OutputItem::Point(Box::new(step::point(step, tags, window)))
            })
            .collect();
        let actions = record.actions.iter().take(ACTIONS_MAX);
        items.extend(actions.map(|one| self.note(self.at_ms(one.at_s), "action", &one.what)));
        let at_ms = self.at_ms(record.elapsed_s);
        items.push(self.note(at_ms, "ended", record.verdict.name()));
        items
    }

    fn note(&self, at_ms: u64, kind: &'static str, text: &str) -> OutputItem {
        OutputItem::Note(OutputNote { at_ms, tags: self.tags.clone(), kind, text: text.to_owned() })
    }

    /// Unix time of a moment of the run.
    fn at_ms(&self, at_s: f64) -> u64 {
        self.started_ms.saturating_add_signed((at_s * 1e3).round() as i64)
    }

    /// The window of a row. Messages that were due in the measured window arrive until the drain
    /// ends: all of that counts as measured, as in the record.
    fn window(&mut self, row: &SeriesRow) -> PointWindow {
        let measured = [PhaseKind::Measure, PhaseKind::Resume, PhaseKind::Drain];
        let start_ms = self.at_ms(row.start_s);
        // The file of the seconds has both to the millisecond. The end of a phase may leave a row
        // of less than that: services refuse a point that is not later than the one before.
        let end_ms = start_ms + (row.length_s * 1e3).round() as u64;
        self.end_ms = end_ms.max(self.end_ms + 1);
        PointWindow {
            start_ms,
            end_ms: self.end_ms,
            phase: row.phase.to_string(),
            measured: Some(measured.iter().any(|kind| row.phase == *kind)),
        }
    }
}

#[cfg(test)]
mod tests;
