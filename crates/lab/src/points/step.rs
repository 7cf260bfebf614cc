//! A measured window as a point.

use tacho_output::{
    LatencyStatistics, NamedPercentile, OutputPoint, PointFigure, PointSeries, PointTags,
    PointWindow,
};
use tacho_record::{LatencyStats, Step, StepLogins, Verdict};

use super::figures::add_known;

/// The point of a step; the figures are those of the record.
pub(super) fn point(step: &Step, tags: PointTags, window: PointWindow) -> OutputPoint {
    let mut figures: Vec<PointFigure> = [
        ("sent", step.sent),
        ("expected", step.expected),
        ("received", step.received),
        ("lost", step.lost),
        ("duplicates", step.duplicates),
        ("out_of_order", step.out_of_order),
        ("unexpected", step.unexpected),
        ("corrupted", step.corrupted),
        ("acknowledged_lost", step.acknowledged_lost),
        ("overrun", step.overrun),
        ("dropped", step.dropped),
        ("refused", step.refused),
        ("ok", u64::from(step.verdict == Verdict::Ok)),
    ]
    .into_iter()
    .map(|(name, number)| PointFigure::gauge(name, number as f64))
    .collect();
    add_known(
        &mut figures,
        &[
            ("window_s", Some(step.window_s)),
            ("offered_in_per_s", Some(step.offered_in_per_s)),
            ("offered_out_per_s", Some(step.offered_out_per_s)),
            ("achieved_in_per_s", Some(step.achieved_in_per_s)),
            ("achieved_out_per_s", Some(step.achieved_out_per_s)),
            ("tps", Some(step.tps)),
            ("cpu_percent", step.cpu_percent),
            ("broker_cpu_percent", step.broker_cpu_percent),
            ("broker_rss_bytes", step.broker_rss_bytes.map(|bytes| bytes as f64)),
            ("host_cpu_percent", step.host_cpu_percent),
            ("generator_cpu_percent", Some(step.generator_cpu_percent)),
        ],
    );
    let logins = step.logins.as_deref();
    let count = |of: fn(&StepLogins) -> u64| logins.map(|logins| of(logins) as f64);
    add_known(
        &mut figures,
        &[
            ("logins_offered_per_s", logins.map(|logins| logins.offered_per_s)),
            ("logins_decided_per_s", logins.map(|logins| logins.decided_per_s)),
            ("logins_accepted", count(StepLogins::accepted)),
            ("logins_refused", count(StepLogins::refused)),
            ("logins_misjudged", count(|logins| logins.misjudged)),
        ],
    );
    let mut statistics = vec![
        ("e2e_latency", &step.latency_us),
        ("service_latency", &step.service_us),
        ("send_delay", &step.send_delay_us),
        ("ack_latency", &step.ack_us),
        ("connect_latency", &step.connect_us),
        ("round_trip", &step.rtt_us),
    ];
    statistics.extend(step.login_latency().map(|stats| ("login_latency", stats)));
    let series = PointSeries::Step;
    let named = statistics.into_iter();
    let statistics = named.map(|(name, stats)| (name, statistics_of(stats))).collect();
    OutputPoint { series, tags, window, figures, latencies: Vec::new(), statistics, row: None }
}

fn statistics_of(stats: &LatencyStats) -> LatencyStatistics {
    let values = [stats.p50, stats.p90, stats.p95, stats.p99, stats.p999, stats.p9999];
    let named = NamedPercentile::ALL.into_iter().zip(values);
    LatencyStatistics {
        count: stats.count,
        mean_us: stats.mean,
        min_us: None,
        max_us: stats.max,
        percentiles: named.filter_map(|(one, value)| Some((one, value?))).collect(),
    }
}
