//! Counts and histograms since the start of their series, as Prometheus and cumulative OTLP have
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::exponential::Exponential;
use crate::point::{FigureKind, OutputPoint, PointFigure, PointSeries, PointTags};

/// Series at a time; figures of others are left out and counted.
const SERIES_MAX: usize = 20_000;

/// What tells a series from others: a name without a unit's or a kind's ending, what its numbers
/// are, and labels in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    pub(super) name: String,
    pub(super) kind: SeriesKind,
    pub(super) labels: Vec<(&'static str, String)>,
}

/// What the numbers of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SeriesKind {
    /// A sum that grows.
    Counter { is_whole: bool, of_histogram: bool },
    /// States and rates.
    Gauge,
    /// A percentile of durations, in seconds.
    Percentile,
    /// Durations, in seconds.
    Latency,
}

impl SeriesKind {
    fn of(figure: &PointFigure) -> Self {
        let of_histogram = figure.of_histogram;
        match figure.kind {
            FigureKind::Count => Self::Counter { is_whole: true, of_histogram },
            FigureKind::Amount => Self::Counter { is_whole: false, of_histogram },
            FigureKind::Gauge => Self::Gauge,
        }
    }
}

/// A value that grows from the start of its series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total<T> {
    pub(super) start_ms: u64,
    pub(super) value: T,
    /// Did the last point begin the series?
    pub(super) is_new: bool,
}

/// Everything about one subject.
#[derive(Debug, Default)]
pub(super) struct SubjectTotals {
    pub(super) counters: BTreeMap<SeriesKey, Total<f64>>,
    pub(super) histograms: BTreeMap<SeriesKey, Total<Exponential>>,
    /// Gauges of the last point.
    pub(super) gauges: BTreeMap<SeriesKey, f64>,
    /// Gauges of the point before that the last one does not have.
    pub(super) gone: BTreeSet<SeriesKey>,
    /// End of the last point.
    pub(super) end_ms: u64,
}

/// All subjects.
#[derive(Debug, Default)]
pub(super) struct SeriesTotals {
    subjects: BTreeMap<(PointSeries, PointTags), SubjectTotals>,
    /// Number of counters and histograms.
    series: usize,
    left_out: u64,
}

impl SeriesTotals {
    /// Adds a point; what its subject has then. `None` for a point that is not later than the last
    /// one: services refuse the past.
    pub(super) fn take(&mut self, point: &OutputPoint) -> Option<&SubjectTotals> {
        let key = (point.series, point.tags.clone());
        if self.subjects.len() >= SERIES_MAX && !self.subjects.contains_key(&key) {
            self.left_out += 1;
            return None;
        }
        let subject = self.subjects.entry(key).or_default();
        if point.window.end_ms <= subject.end_ms {
            self.left_out += 1;
            return None;
        }
        let start_ms = point.window.start_ms.max(subject.end_ms);
        subject.end_ms = point.window.end_ms;
        subject.counters.values_mut().for_each(|total| total.is_new = false);
        subject.histograms.values_mut().for_each(|total| total.is_new = false);
        let before = std::mem::take(&mut subject.gauges);
        for figure in &point.figures {
            let key = key_of_figure(point, figure);
            if figure.kind == FigureKind::Gauge {
                subject.gauges.insert(key, figure.value);
                continue;
            }
            if let Some(total) = total(&mut subject.counters, key, start_ms, &mut self.series) {
                total.value += figure.value;
            } else {
                self.left_out += 1;
            }
        }
        subject.gauges.extend(percentiles(point));
        for (name, buckets) in point.latencies.iter().filter(|(_, buckets)| !buckets.is_empty()) {
            let key = key_of(point, name, SeriesKind::Latency, None);
            if let Some(total) = total(&mut subject.histograms, key, start_ms, &mut self.series) {
                total.value.add(buckets);
            } else {
                self.left_out += 1;
            }
        }
        let gauges = &subject.gauges;
        subject.gone = before.into_keys().filter(|key| !gauges.contains_key(key)).collect();
        Some(subject)
    }

    /// Forgets all subjects, and returns them.
    pub(super) fn end(&mut self) -> impl Iterator<Item = (PointSeries, SubjectTotals)> + use<> {
        self.series = 0;
        let subjects = std::mem::take(&mut self.subjects).into_iter();
        subjects.map(|((series, _), subject)| (series, subject))
    }

    /// Figures that were left out since the last call.
    pub(super) fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

/// The total of a series, which begins at `start_ms` if it is new; `None` beyond [`SERIES_MAX`].
fn total<'t, T: Default>(
    totals: &'t mut BTreeMap<SeriesKey, Total<T>>,
    key: SeriesKey,
    start_ms: u64,
    series: &mut usize,
) -> Option<&'t mut Total<T>> {
    if !totals.contains_key(&key) {
        if *series >= SERIES_MAX {
            return None;
        }
        *series += 1;
    }
    Some(totals.entry(key).or_insert_with(|| Total { start_ms, value: T::default(), is_new: true }))
}

/// The percentiles of a point in seconds; the label `window` says which window they are of.
pub(super) fn percentiles(point: &OutputPoint) -> Vec<(SeriesKey, f64)> {
    let all = point.all_statistics().into_iter().flat_map(|(latency, statistics)| {
        statistics.percentiles.into_iter().map(move |(one, value_us)| {
            let name = format!("{latency}_{}", one.name);
            (key_of(point, &name, SeriesKind::Percentile, None), value_us as f64 / 1e6)
        })
    });
    all.collect()
}

/// The key of what a point has under a name.
pub(super) fn key_of(
    point: &OutputPoint,
    name: &str,
    kind: SeriesKind,
    part: Option<&str>,
) -> SeriesKey {
    let window = (kind == SeriesKind::Percentile).then(|| point.series.window_name());
    let mut labels: Vec<(&'static str, String)> =
        point.tags.iter().map(|(name, value)| (name, value.to_owned())).collect();
    let own = [("measured", point.window.measured_name()), ("part", part), ("window", window)];
    labels.extend(
        own.into_iter().filter_map(|(name, value)| value.map(|value| (name, value.to_owned()))),
    );
    labels.sort_unstable_by_key(|(name, _)| *name);
    SeriesKey { name: format!("{}_{name}", point.series.name()), kind, labels }
}

/// The key of a figure of a point.
pub(super) fn key_of_figure(point: &OutputPoint, figure: &PointFigure) -> SeriesKey {
    key_of(point, &figure.name, SeriesKind::of(figure), figure.part.as_deref())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::buckets::Buckets;
    use crate::point::{PointTag, PointWindow};

    fn point(number: u64, measured: bool, values: &[u64]) -> OutputPoint {
        let mut histogram = Histogram::new(3).expect("three digits");
        values.iter().for_each(|value| histogram.record(*value).expect("grows"));
        OutputPoint {
            series: PointSeries::Load,
            tags: PointTags::default().with(PointTag::Run, "r"),
            window: PointWindow {
                start_ms: number * 1_000,
                end_ms: (number + 1) * 1_000,
                phase: String::new(),
                measured: Some(measured),
            },
            figures: vec![PointFigure::count("published", 5), PointFigure::gauge("connected", 2.0)],
            latencies: vec![("e2e_latency", Buckets::of(&histogram))],
            statistics: Vec::new(),
            row: None,
        }
    }

    #[test]
    fn counts_add_up_by_whether_they_were_measured() {
        let mut totals = SeriesTotals::default();
        let first = totals.take(&point(0, false, &[100; 20])).expect("a subject");
        assert!(first.counters.values().all(|total| total.is_new && total.start_ms == 0));
        totals.take(&point(1, true, &[100; 5])).expect("a subject");
        let third = totals.take(&point(2, true, &[])).expect("a subject");
        let shown: Vec<_> = third
            .counters
            .iter()
            .map(|(key, total)| (key.labels[0].1.as_str(), total.start_ms, total.value))
            .collect();
        assert_eq!(shown, [("false", 0, 5.0), ("true", 1_000, 10.0)]);
        assert!(third.counters.values().all(|total| !total.is_new));
        let counts: Vec<u64> = third.histograms.values().map(|total| total.value.count).collect();
        assert_eq!(counts, [20, 5]);
    }

    #[test]
    fn a_gauge_that_a_point_does_not_have_is_gone() {
        let mut totals = SeriesTotals::default();
        let names = |keys: &BTreeSet<SeriesKey>| -> Vec<String> {
            keys.iter().map(|key| key.name.clone()).collect()
        };
        let first = totals.take(&point(0, true, &[100; 20])).expect("a subject");
        assert_eq!((first.gauges.len(), first.gone.len()), (2, 0));
        let second = totals.take(&point(1, true, &[100; 19])).expect("a subject");
        assert_eq!(names(&second.gone), ["mqtt_load_e2e_latency_p50"]);
        let third = totals.take(&point(2, false, &[])).expect("a subject");
        assert_eq!(names(&third.gone), ["mqtt_load_connected"], "it has another label");
        assert_eq!(third.gauges.len(), 1);
    }

    #[test]
    fn the_past_is_left_out() {
        let mut totals = SeriesTotals::default();
        assert!(totals.take(&point(1, true, &[])).is_some());
        assert!(totals.take(&point(1, true, &[])).is_none());
        assert!(totals.take(&point(0, true, &[])).is_none());
        assert_eq!((totals.left_out(), totals.left_out()), (2, 0));
        assert_eq!(totals.end().count(), 1);
        assert!(totals.take(&point(0, true, &[])).is_some(), "nothing is known any more");
    }
}
