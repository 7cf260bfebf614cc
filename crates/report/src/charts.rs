//! The charts of a single run over its time, and by percentile.

use super::axis::{Scale, Unit, nines};
use super::brokers;
use super::chart::{Axis, Chart, Line, Style, greatest, least};
use super::lang::Lang;
use super::over_time::{Pick, float, line, log_over_time, over_time};
use tacho_record::StepCurves;
use tacho_record::{BrokerRow, CurvePoint, PartRow, SeriesRow};

/// Whether there was anything to deliver.
pub(super) fn has_messages(rows: &[SeriesRow]) -> bool {
    let is_busy = |row: &SeriesRow| {
        row.offered_in_per_s > 0.0 || row.sent_per_s > 0.0 || row.received_per_s > 0.0
    };
    rows.iter().any(is_busy)
}

/// Rates and latencies over time: the first two charts that a reader sees.
pub(super) fn overview(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    let rate = over_time(
        lang,
        rows,
        lang.messages_per_second_title(),
        lang.messages_per_second(),
        Unit::Rate,
        vec![
            line(rows, lang.received(), 3, |row| Some(row.received_per_s)).style(Style::Under),
            line(rows, lang.sent(), 1, |row| Some(row.sent_per_s)),
            line(rows, lang.offered(), 1, |row| Some(row.offered_in_per_s)).style(Style::Reference),
        ],
    );
    let mut latency = log_over_time(
        lang,
        rows,
        lang.end_to_end_latency(),
        vec![
            line(rows, lang.max(), 4, |row| float(row.e2e_max_us)),
            line(rows, "p99", 2, |row| float(row.e2e_p99_us)),
            line(rows, "p95", 6, |row| float(row.e2e_p95_us)),
            line(rows, "p50", 1, |row| float(row.e2e_p50_us)),
        ],
    );
    lang.latency_is_since_due().clone_into(&mut latency.note);
    vec![Chart { wide: true, ..rate }, Chart { wide: true, ..latency }]
}

/// Rate, mean, 99th percentile and maximum over time, one chart each, linear.
pub(super) fn four_graphs(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    let single = |title: &str, colour, pick: Pick| {
        let lines = vec![line(rows, lang.end_to_end(), colour, pick)];
        over_time(lang, rows, title, lang.latency(), Unit::Latency, lines)
    };
    let mut charts = vec![
        over_time(
            lang,
            rows,
            lang.rate_messages_received(),
            lang.messages_per_second(),
            Unit::Rate,
            vec![line(rows, lang.received(), 3, |row| Some(row.received_per_s))],
        ),
        single(lang.mean_latency_title(), 1, |row| row.e2e_mean_us),
        single(lang.p99_of_latency(), 2, |row| float(row.e2e_p99_us)),
        single(lang.greatest_latency(), 4, |row| float(row.e2e_max_us)),
    ];
    // A run without deliveries has no latencies.
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// Latency by quantile.
pub(super) fn percentiles(lang: Lang, title: &str, curves: &StepCurves) -> Chart {
    let lines = vec![
        curve(lang.end_to_end(), 1, &curves.latency),
        curve(lang.service_from_written(), 2, &curves.service),
        curve(lang.send_delay_line(), 3, &curves.send_delay),
    ];
    Chart { wide: true, ..quantile_chart(lang, title, lines) }
}

/// A percentile curve as a line over nines.
pub(super) fn curve(name: &str, colour: usize, points: &[CurvePoint]) -> Line {
    let points = points.iter().map(|point| (nines(point.quantile), Some(point.value_us as f64)));
    Line::plain(name, colour, points.collect())
}

/// A chart of percentile curves.
pub(super) fn quantile_chart(lang: Lang, title: &str, lines: Vec<Line>) -> Chart {
    let last = lines.iter().filter_map(|line| line.points.last()).map(|(nines, _)| *nines);
    let x = Axis {
        title: lang.share_of_messages_that_were_at_least_as_fast().to_owned(),
        scale: Scale::Nines { nines: last.fold(1.0, f64::max) },
        unit: Unit::Nines,
    };
    let y = Axis {
        title: lang.logarithmic(lang.latency()),
        scale: Scale::log(least(&lines), greatest(&lines)),
        unit: Unit::Latency,
    };
    Chart::new(title, x, y, lines)
}

/// Latency beside the network's round trip.
pub(super) fn round_trips(lang: Lang, rows: &[SeriesRow]) -> Option<Chart> {
    rows.iter().any(|row| row.rtt_p50_us.is_some()).then(|| {
        let mut chart = log_over_time(
            lang,
            rows,
            lang.round_trip_to_the_broker_beside_latency(),
            vec![
                line(rows, lang.latency_p99(), 2, |row| float(row.e2e_p99_us)),
                line(rows, lang.latency_p50(), 1, |row| float(row.e2e_p50_us)),
                line(rows, lang.round_trip_max(), 7, |row| float(row.rtt_max_us))
                    .style(Style::Dashed),
                line(rows, lang.round_trip_p50(), 3, |row| float(row.rtt_p50_us))
                    .style(Style::Dashed),
            ],
        );
        if !has_messages(rows) {
            chart.lines.retain(|line| !line.is_empty());
        }
        lang.what_round_trips_are().clone_into(&mut chart.note);
        chart
    })
}

/// Resource use of generator and of each broker.
pub(super) fn cpu(lang: Lang, rows: &[SeriesRow], several: &[BrokerRow]) -> Chart {
    let mut lines = match several {
        [] => vec![
            line(rows, lang.broker_process(), 1, |row| row.broker_cpu_percent),
            line(rows, lang.brokers_cores_busy(), 2, |row| row.broker_cores_busy_percent),
        ],
        several => brokers::side_by_side(lang, several, |part| part.spent.cpu_percent),
    };
    let generator = |row: &SeriesRow| Some(row.generator_cpu_percent);
    lines.push(line(rows, lang.generator_threads(), 3, generator));
    lines.retain(|line| !line.is_empty());
    let title = match several {
        [] => lang.cpu_of_broker_and_generator(),
        _ => lang.cpu_of_brokers_and_generator(),
    };
    over_time(lang, rows, title, lang.percent_one_core_100(), Unit::Percent, lines)
}

/// Resident memory of the broker; of several each.
pub(super) fn memory(lang: Lang, rows: &[SeriesRow], several: &[BrokerRow]) -> Chart {
    let (title, lines) = match several {
        [] => {
            let line = line(rows, lang.broker_rss(), 1, |row| float(row.broker_rss_bytes));
            (lang.memory_of_the_broker(), vec![line])
        }
        several => {
            let rss = |part: &PartRow| float(part.spent.rss_bytes);
            (lang.memory_of_the_brokers(), brokers::side_by_side(lang, several, rss))
        }
    };
    over_time(lang, rows, title, lang.bytes(), Unit::Bytes, lines)
}

/// Was the generator in time?
pub(super) fn generator(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    let delay = log_over_time(
        lang,
        rows,
        lang.send_delay_of_the_generator(),
        vec![line(rows, "p99", 3, |row| float(row.send_delay_p99_us))],
    );
    let late = over_time(
        lang,
        rows,
        lang.messages_sent_late_or_never(),
        lang.messages_in_a_second(),
        Unit::Number,
        vec![
            line(rows, lang.more_than_1_ms_late(), 6, |row| Some(row.overrun as f64)),
            line(rows, lang.never_sent(), 2, |row| Some(row.dropped as f64)),
        ],
    );
    let charts = [Some(delay), has_messages(rows).then_some(late)];
    charts.into_iter().flatten().filter(|chart| !chart.is_empty()).collect()
}
