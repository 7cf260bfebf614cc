//! One second of the engine as a row of the time series.

use tacho_load::{Histogram, IntervalSnapshot, LoginCounts, LoginKind};

use super::numbers::busy_percent;
use crate::probe::Usage;
use tacho_record::{SeriesRow, percentile};

/// The row of an interval of a run that started at `started_ns`.
pub(super) fn series_row(interval: &IntervalSnapshot, started_ns: u64, usage: &Usage) -> SeriesRow {
    let length_s = length_s(interval.len_ns);
    let rate = |count: u64| if length_s > 0.0 { count as f64 / length_s } else { 0.0 };
    let counters = &interval.counters;
    let logins = interval.logins.as_deref();
    let ended = |of: fn(&LoginCounts) -> u64| logins.map(|logins| rate(of(&logins.ended)));
    let login_us = logins.map(|logins| &logins.of(LoginKind::Right).accepted_us);
    SeriesRow {
        start_s: interval.start_ns.saturating_sub(started_ns) as f64 / 1e9,
        length_s,
        phase: interval.phase.into(),
        connected: interval.connected,
        offered_in_per_s: rate(counters.offered),
        sent_per_s: rate(counters.sent),
        acked_per_s: rate(counters.acked),
        received_per_s: rate(counters.received),
        overrun: counters.overrun,
        dropped: counters.dropped,
        e2e_p50_us: percentile(&interval.e2e, 0.5),
        e2e_p95_us: percentile(&interval.e2e, 0.95),
        e2e_p99_us: percentile(&interval.e2e, 0.99),
        e2e_max_us: max(&interval.e2e),
        service_p99_us: percentile(&interval.service, 0.99),
        send_delay_p99_us: percentile(&interval.send_delay, 0.99),
        ack_p99_us: percentile(&interval.ack, 0.99),
        broker_cpu_percent: usage.broker_cpu_percent,
        broker_rss_bytes: usage.broker_rss_bytes,
        broker_cores_busy_percent: usage.broker_cores_busy_percent,
        generator_cpu_percent: busy_percent(&interval.threads).0,
        host_cpu_percent: usage.host_cpu_percent,
        host_busy_percent: usage.host_busy_percent,
        host_steal_percent: usage.host_steal_percent,
        others_on_broker_cores_percent: usage.others_on_broker_cores_percent,
        disturbed: false,
        host_memory_percent: usage.host_memory_percent,
        connect_ok_per_s: rate(interval.connect.ok),
        connect_failed_per_s: rate(interval.connect.failed),
        connect_mean_us: mean(&interval.connect.ok_us),
        connect_p99_us: percentile(&interval.connect.ok_us, 0.99),
        connect_failed_mean_us: mean(&interval.connect.failed_us),
        subscribe_ok_per_s: rate(interval.subscribe.ok),
        subscribe_failed_per_s: rate(interval.subscribe.failed),
        subscribe_mean_us: mean(&interval.subscribe.ok_us),
        subscribe_p99_us: percentile(&interval.subscribe.ok_us, 0.99),
        subscribe_failed_mean_us: mean(&interval.subscribe.failed_us),
        publish_failed_per_s: rate(counters.refused + counters.unanswered),
        ack_mean_us: mean(&interval.ack),
        publish_failed_mean_us: mean(&interval.ack_failed),
        e2e_mean_us: mean(&interval.e2e),
        bytes_in_per_s: rate(interval.bytes_in),
        bytes_out_per_s: rate(interval.bytes_out),
        rtt_p50_us: (!interval.rtt.is_empty()).then(|| interval.rtt.value_at_quantile(0.5)),
        rtt_p99_us: percentile(&interval.rtt, 0.99),
        rtt_max_us: max(&interval.rtt),
        disconnects: counters.disconnects,
        reconnects: counters.reconnects,
        login_accepted_per_s: ended(|ended| ended.accepted),
        login_refused_per_s: ended(|ended| ended.refused),
        login_undecided_per_s: ended(|ended| ended.undecided),
        login_p50_us: login_us.and_then(|us| percentile(us, 0.5)),
        login_p99_us: login_us.and_then(|us| percentile(us, 0.99)),
        login_max_us: login_us.and_then(max),
    }
}

fn max(histogram: &Histogram) -> Option<u64> {
    (!histogram.is_empty()).then(|| histogram.max())
}

fn mean(histogram: &Histogram) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.mean())
}

/// The length of a row as its table has it, in milliseconds: a rate times it gives the count back,
/// also where a row is only some milliseconds long.
fn length_s(len_ns: u64) -> f64 {
    let length_ms = (len_ns as f64 / 1e6).round();
    if len_ns > 0 { length_ms.max(1.0) / 1e3 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_rows_of_any_length_are_read_back() {
        for len_ns in [90_000, 400_000, 11_600_000, 15_400_000, 480_300_000, 1_000_300_000] {
            let length_s = length_s(len_ns);
            for count in [0_u64, 1, 3, 4, 17, 999, 70_000] {
                let rate = format!("{:.1}", count as f64 / length_s);
                let (rate, length): (f64, f64) =
                    (rate.parse().unwrap(), format!("{length_s:.3}").parse().unwrap());
                assert_eq!((rate * length).round() as u64, count, "{len_ns} ns");
            }
        }
        assert!(length_s(0) == 0.0);
    }
}
