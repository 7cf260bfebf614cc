//! The metrics, sent to outputs once a second, beside the page.
//!
//! Names are those of the page. A shard's metrics are a subject of their own; other labels are
//! parts. Of histograms the sums and counts are sent; what single clients do is not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use tacho_output::{
    FigureKind, OutputAccount, OutputItem, OutputPoint, Outputs, PointFigure, PointSeries,
    PointTag, PointTags, PointWindow,
};
use tokio::time::MissedTickBehavior;

use super::exposition::{Kind, MetricFamily, MetricSample};
use super::{View, metrics};

/// Time between two points.
const EVERY: Duration = Duration::from_secs(1);
/// How long a broker that stops waits for its outputs.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a counter is called, and of what it is.
type CounterKey = (String, Vec<(String, String)>);

/// Sends the metrics.
#[derive(Debug)]
pub(super) struct Push {
    outputs: Outputs,
    /// Host and broker.
    tags: PointTags,
    /// End of the last points, Unix time in milliseconds.
    until_ms: u64,
    /// Counters at that time.
    counters: BTreeMap<CounterKey, f64>,
}

impl Push {
    /// Sends to `outputs` what the broker that serves `port` does.
    pub(super) fn new(outputs: Outputs, port: u16) -> Self {
        // Systems without `/proc` do not tell.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost");
        let tags = PointTags::default()
            .with(PointTag::Host, host)
            .with(PointTag::Broker, &format!("{host}:{port}"));
        Self { outputs, tags, until_ms: unix_ms(), counters: BTreeMap::new() }
    }

    /// Is there nowhere to send to?
    pub(super) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Sends once a second, forever. First errors of outputs are logged.
    pub(super) async fn go_on(&mut self, view: &View) {
        if self.is_empty() {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.send(view);
            for (output, why) in self.outputs.take_troubles() {
                tracing::warn!("output {output}: {why}; it is tried again");
            }
        }
    }

    /// Sends what is left, and waits a little for the outputs. What did not arrive is logged.
    pub(super) fn end(mut self, view: &View) {
        if self.is_empty() {
            return;
        }
        self.send(view);
        let accounts = self.outputs.end_series(PATIENCE);
        for account in accounts.iter().filter(|account| !account.is_clean()) {
            let (lost, why) = (account.lost(), account.last_error.as_deref().unwrap_or_default());
            let OutputAccount { target, taken, .. } = account;
            tracing::warn!("output {target}: {lost} of {} did not arrive: {why}", taken + lost);
        }
    }

    fn send(&mut self, view: &View) {
        // A clock that is set back must not turn the window around.
        let now_ms = unix_ms().max(self.until_ms + 1);
        let window = PointWindow {
            start_ms: std::mem::replace(&mut self.until_ms, now_ms),
            end_ms: now_ms,
            ..PointWindow::default()
        };
        let mut subjects: BTreeMap<Option<String>, Vec<PointFigure>> = BTreeMap::new();
        for metric in metrics::read(view).metrics() {
            for sample in &metric.samples {
                if let Some((shard, figure)) = self.figure(metric, sample) {
                    subjects.entry(shard).or_default().push(figure);
                }
            }
        }
        let points = subjects.into_iter().map(|(shard, figures)| {
            OutputItem::Point(Box::new(OutputPoint {
                series: PointSeries::Server,
                tags: self.tags.clone().with(PointTag::Shard, &shard.unwrap_or_default()),
                window: window.clone(),
                figures,
                latencies: Vec::new(),
                statistics: Vec::new(),
                row: None,
            }))
        });
        self.outputs.send(points.collect());
    }

    /// A sample as a figure, and the shard that it is of; of counters what the window added.
    fn figure(
        &mut self,
        metric: &MetricFamily,
        sample: &MetricSample,
    ) -> Option<(Option<String>, PointFigure)> {
        if sample.suffix == "_bucket" {
            return None;
        }
        let name = metric.name.strip_prefix("tacho_").unwrap_or(&metric.name);
        let name = name.strip_suffix("_total").unwrap_or(name);
        let name = format!("{name}{}", sample.suffix);
        let (kind, value) = match metric.kind {
            Kind::Gauge => (FigureKind::Gauge, sample.value),
            Kind::Counter | Kind::Histogram => {
                let key = (name.clone(), sample.labels.clone());
                let before = self.counters.insert(key, sample.value).unwrap_or(0.0);
                let kind = if sample.is_whole { FigureKind::Count } else { FigureKind::Amount };
                (kind, (sample.value - before).max(0.0))
            }
        };
        let mut shard = None;
        let mut parts = Vec::new();
        for (label, value) in &sample.labels {
            match label.as_str() {
                "shard" => shard = Some(value.clone()),
                _ => parts.push(format!("{label}={value}")),
            }
        }
        let part = (!parts.is_empty()).then(|| parts.join(","));
        let of_histogram = metric.kind == Kind::Histogram;
        Some((shard, PointFigure { name: Cow::Owned(name), part, kind, of_histogram, value }))
    }
}

fn unix_ms() -> u64 {
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::exposition::Exposition;

    #[test]
    fn what_adds_up_is_told_by_its_type_not_by_its_name() {
        let mut exposition = Exposition::default();
        // Names that say another thing.
        exposition.family("tacho_retries_after_seconds_total", "", Kind::Counter).sample(&[], 3);
        exposition.family("tacho_energy_joules_total", "", Kind::Counter).sample(&[], 0.5);
        exposition.family("tacho_groups_count", "", Kind::Gauge).sample(&[], 2);
        let mut turns = exposition.family("tacho_turn_seconds", "", Kind::Histogram);
        turns.histogram(&[], &[1], &[1, 1], 1_500, Some(1e-3));
        let mut bytes = exposition.family("tacho_payload_bytes", "", Kind::Histogram);
        bytes.histogram(&[], &[64], &[2, 1], 900, None);

        let mut push = Push::new(Outputs::default(), 1883);
        let mut figures = Vec::new();
        for metric in exposition.metrics() {
            figures.extend(metric.samples.iter().filter_map(|one| push.figure(metric, one)));
        }
        let shown: Vec<_> = figures
            .iter()
            .map(|(_, one)| (one.name.as_ref(), one.kind, one.of_histogram, one.value))
            .collect();
        use FigureKind::{Amount, Count, Gauge};
        let expected = [
            ("retries_after_seconds", Count, false, 3.0),
            ("energy_joules", Amount, false, 0.5),
            ("groups_count", Gauge, false, 2.0),
            ("turn_seconds_sum", Amount, true, 1.5),
            ("turn_seconds_count", Count, true, 2.0),
            ("payload_bytes_sum", Count, true, 900.0),
            ("payload_bytes_count", Count, true, 3.0),
        ];
        assert_eq!(shown, expected);
    }
}
