//! Points: what was seen of a subject in a window.

use std::borrow::Cow;

use crate::buckets::{Buckets, LatencyStatistics};

/// One subject in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPoint {
    /// The kind of subject.
    pub series: PointSeries,
    /// Which subject it is.
    pub tags: PointTags,
    /// When.
    pub window: PointWindow,
    /// Counts and gauges.
    pub figures: Vec<PointFigure>,
    /// Durations, by name.
    pub latencies: Vec<(&'static str, Buckets)>,
    /// Statistics of other durations, of which there are no buckets.
    pub statistics: Vec<(&'static str, LatencyStatistics)>,
    /// The same as a row of a table, for outputs that are one.
    pub row: Option<TableRow>,
}

impl OutputPoint {
    /// The statistics of all durations that have samples, by name.
    pub fn all_statistics(&self) -> Vec<(&'static str, LatencyStatistics)> {
        let of_buckets = self.latencies.iter().map(|(name, all)| (*name, all.statistics()));
        let all = of_buckets.chain(self.statistics.iter().cloned());
        all.filter(|(_, statistics)| statistics.count > 0).collect()
    }
}

/// The kinds of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointSeries {
    /// All clients of a run, in an interval of about a second.
    Load,
    /// A group of clients.
    Group,
    /// One of several brokers.
    Broker,
    /// A measured window as a whole, with its verdict on deliveries.
    Step,
    /// A host.
    Host,
    /// A broker that tells about itself, under the names of its metrics page.
    Server,
}

impl PointSeries {
    /// Its name: the measurement in InfluxDB, the beginning of names elsewhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "mqtt_load",
            Self::Group => "mqtt_load_group",
            Self::Broker => "mqtt_load_broker",
            Self::Step => "mqtt_load_step",
            Self::Host => "tacho_host",
            Self::Server => "tacho",
        }
    }

    /// The window that its percentiles are named after.
    pub const fn window_name(self) -> &'static str {
        match self {
            Self::Step => "measured",
            _ => "1s",
        }
    }
}

/// What tells subjects apart. There is none for a client: each value of a tag is a series of its
/// own in the services, and thousands of them make a service slow or refuse points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointTag {
    /// Name of the broker.
    Broker,
    /// Name of the group of clients.
    Group,
    /// Name of the host.
    Host,
    /// What the user calls the run, such as the version of the broker; of measured windows.
    Name,
    /// Name of the run.
    Run,
    /// Name of the scenario.
    Scenario,
    /// Number of an event loop.
    Shard,
    /// Which run of a ladder, a search, a suite or a comparison.
    Step,
}

impl PointTag {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Group => "group",
            Self::Host => "host",
            Self::Name => "name",
            Self::Run => "run",
            Self::Scenario => "scenario",
            Self::Shard => "shard",
            Self::Step => "step",
        }
    }
}

/// The tags of a point, ordered by name, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointTags(Vec<(PointTag, String)>);

impl PointTags {
    /// These tags and one more. An empty value is no tag; a tag that is there gets the new value.
    #[must_use]
    pub fn with(mut self, tag: PointTag, value: &str) -> Self {
        self.0.retain(|(known, _)| *known != tag);
        if !value.is_empty() {
            let at = self.0.partition_point(|(known, _)| *known < tag);
            self.0.insert(at, (tag, value.to_owned()));
        }
        self
    }

    /// The value of a tag.
    pub fn get(&self, tag: PointTag) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == tag).map(|(_, value)| value.as_str())
    }

    /// All of them, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(tag, value)| (tag.name(), value.as_str()))
    }
}

/// The time that a point is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointWindow {
    /// Its start, Unix time in milliseconds.
    pub start_ms: u64,
    /// Its end, which is the time stamp of the point.
    pub end_ms: u64,
    /// The phase of the run; empty where there is none.
    pub phase: String,
    /// Does it belong to the measured window? Unknown where no run is measured.
    pub measured: Option<bool>,
}

impl PointWindow {
    /// Its length in seconds.
    pub fn length_s(&self) -> f64 {
        self.end_ms.saturating_sub(self.start_ms) as f64 / 1e3
    }

    /// `measured` as the value of a tag.
    pub fn measured_name(&self) -> Option<&'static str> {
        self.measured.map(|measured| if measured { "true" } else { "false" })
    }
}

/// A number of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointFigure {
    /// Its name, lower case with `_`; a unit comes last.
    pub name: Cow<'static, str>,
    /// The part of the subject that it is about: a core, an interface, a process.
    pub part: Option<String>,
    /// How windows add up.
    pub kind: FigureKind,
    /// Is it the sum or the count of a histogram, as the end of its name, `_sum` or `_count`, says?
    pub of_histogram: bool,
    /// Its value, finite.
    pub value: f64,
}

/// How the figures of windows add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Occurrences in the window, a whole number: those of several windows add up.
    Count,
    /// A quantity spent in the window that need not be whole, such as time: those of several
    /// windows add up.
    Amount,
    /// A state or a rate, which has no sum.
    Gauge,
}

impl PointFigure {
    /// Occurrences in the window.
    pub fn count(name: &'static str, count: u64) -> Self {
        let (kind, value) = (FigureKind::Count, count as f64);
        Self { name: name.into(), part: None, kind, of_histogram: false, value }
    }

    /// A state or a rate.
    pub fn gauge(name: &'static str, value: f64) -> Self {
        let kind = FigureKind::Gauge;
        Self { name: name.into(), part: None, kind, of_histogram: false, value }
    }
}

/// A row of a table, for readers that know the table by the names of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// Names of the columns.
    pub columns: &'static [&'static str],
    /// Its cells, as many as there are columns.
    pub cells: Vec<String>,
}

/// A mark on the time axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputNote {
    /// When, Unix time in milliseconds.
    pub at_ms: u64,
    /// The run that it is about.
    pub tags: PointTags,
    /// What kind of event it is, such as `started`.
    pub kind: &'static str,
    /// For people.
    pub text: String,
}

/// One thing to send.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputItem {
    /// A point.
    Point(Box<OutputPoint>),
    /// A mark.
    Note(OutputNote),
    /// The series of all points so far end here.
    End,
}

impl OutputItem {
    /// A rough measure of the memory that it takes, in bytes.
    pub(crate) fn cost(&self) -> usize {
        const FIGURE_BYTES: usize = 64;
        match self {
            Self::Point(point) => {
                let values = point.latencies.iter().map(|(_, buckets)| buckets.values().len());
                let cells = point.row.as_ref().map_or(0, |row| row.cells.len());
                FIGURE_BYTES * (4 + point.figures.len() + cells) + 16 * values.sum::<usize>()
            }
            Self::Note(note) => 4 * FIGURE_BYTES + note.text.len(),
            Self::End => FIGURE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_ordered_by_name_and_never_empty() {
        let tags = PointTags::default()
            .with(PointTag::Scenario, "symmetric")
            .with(PointTag::Host, "")
            .with(PointTag::Run, "old")
            .with(PointTag::Broker, "b")
            .with(PointTag::Run, "new");
        let all: Vec<_> = tags.iter().collect();
        assert_eq!(all, [("broker", "b"), ("run", "new"), ("scenario", "symmetric")]);
        assert_eq!((tags.get(PointTag::Run), tags.get(PointTag::Host)), (Some("new"), None));
    }
}
