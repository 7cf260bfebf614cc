//! The metrics page.

use std::fmt::Display;

use tacho_codec::ReasonCode;
use tacho_net::clock;

use super::exposition::{Exposition, Kind};
use super::{View, access, bridges, journal, process};
use crate::query::ClientRow;
use crate::stats::{ByQos, ByReason, Histogram, ShardStats};

/// Nanoseconds in seconds.
const NS: f64 = 1e-9;

/// The page in the text format of Prometheus. It reads atomics, and the process from `/proc`.
pub(super) fn write(view: &View, slow: &[ClientRow]) -> String {
    let mut exposition = read(view);
    slow_clients(&mut exposition, slow);
    exposition.text()
}

/// All metrics but those of single clients.
pub(super) fn read(view: &View) -> Exposition {
    let mut exposition = Exposition::default();
    about(&mut exposition, view);
    plain(&mut exposition, view);
    by_qos(&mut exposition, view, "publishes_in", "PUBLISH packets received.", |s| {
        &s.publishes_in_total
    });
    by_qos(&mut exposition, view, "publishes_out", "PUBLISH packets sent.", |s| {
        &s.publishes_out_total
    });
    by_reason(
        &mut exposition,
        view,
        "refused_connects",
        "CONNECT packets refused, by the reason code of the refusal.",
        |s| &s.refused_connects_total,
    );
    by_reason(
        &mut exposition,
        view,
        "disconnects_by_broker",
        "Client connections that the broker ended, by reason code.",
        |s| &s.disconnects_by_broker_total,
    );
    by_reason(
        &mut exposition,
        view,
        "disconnects_by_clients",
        "DISCONNECT packets received from clients, by reason code.",
        |s| &s.disconnects_by_clients_total,
    );
    let name = "tacho_payload_in_bytes";
    let help = "Payload size of received PUBLISH packets.";
    histogram(&mut exposition, view, name, help, None, |s| &s.payload_in_bytes);
    let name = "tacho_turn_seconds";
    let help = "Duration of event loop turns: no other client is served meanwhile.";
    histogram(&mut exposition, view, name, help, Some(NS), |s| &s.turn_ns);
    if let Some(journal) = &view.journal {
        journal::write(&mut exposition, journal);
    }
    bridges::write(&mut exposition, &view.bridges);
    if let Some(access) = &view.access {
        access::write(&mut exposition, access);
        access::write_keys(&mut exposition, access, clock::now_ns());
        access::write_backends(&mut exposition, access.backends());
    }
    access::write_certificates(&mut exposition, view.certificates.as_ref());
    view.alarms.write(&mut exposition);
    drain(&mut exposition, view);
    http(&mut exposition, view);
    process::write(&mut exposition);
    exposition
}

fn about(exposition: &mut Exposition, view: &View) {
    let help = "Always 1; the label is the running version.";
    let version = env!("CARGO_PKG_VERSION");
    exposition.family("tacho_build_info", help, Kind::Gauge).sample(&[("version", &version)], 1);
    for (name, help, value) in [
        ("tacho_uptime_seconds", "Time since the broker started.", view.uptime().as_secs_f64()),
        ("tacho_shards", "Event loops.", view.stats.len() as f64),
        (
            "tacho_connections_max",
            "Limit on concurrent connections.",
            view.connections.max() as f64,
        ),
    ] {
        exposition.family(name, help, Kind::Gauge).sample(&[], value);
    }
    let help = "Messages posted to a shard and not taken yet.";
    let mut mail = exposition.family("tacho_mailbox_len", help, Kind::Gauge);
    for shard in 0..view.stats.len() {
        mail.sample(&[("shard", &shard)], view.remote.mailbox_len(shard));
    }
}

fn drain(exposition: &mut Exposition, view: &View) {
    let help =
        "A drain: 0 none, 1 clients are no longer taken, 2 they are sent away, 3 none are left.";
    let phase = u64::from(view.drain.phase() as u8);
    exposition.family("tacho_drain_phase", help, Kind::Gauge).sample(&[], phase);
}

fn http(exposition: &mut Exposition, view: &View) {
    for (name, help, value) in [
        (
            "tacho_http_gave_way_total",
            "Idle HTTP connections closed to make room for new ones.",
            view.http.gave_way(),
        ),
        (
            "tacho_http_timed_out_total",
            "HTTP connections closed at a deadline.",
            view.http.timed_out(),
        ),
    ] {
        exposition.family(name, help, Kind::Counter).sample(&[], value);
    }
}

fn plain(exposition: &mut Exposition, view: &View) {
    let values: Vec<_> = view.stats.iter().map(|stats| stats.values()).collect();
    for (at, (name, help)) in ShardStats::PLAIN.iter().enumerate() {
        let kind = if name.ends_with("_total") { Kind::Counter } else { Kind::Gauge };
        let Exported { name, unit } = exported(name);
        let mut family = exposition.family(&name, help.trim(), kind);
        for (shard, values) in values.iter().enumerate() {
            let (_, value) = values[at];
            let labels: [(&str, &dyn Display); 1] = [("shard", &shard)];
            match unit {
                None => family.sample(&labels, value),
                Some(unit) => family.sample(&labels, value as f64 * unit),
            }
        }
    }
}

/// The exported name of a counter, and the factor to its exported unit, if they differ.
#[derive(Debug, PartialEq)]
struct Exported {
    name: String,
    unit: Option<f64>,
}

/// Times are exported in seconds.
fn exported(name: &str) -> Exported {
    let mut unit = None;
    let words = name.split('_').map(|word| {
        let factor = match word {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            _ => return word,
        };
        unit = Some(factor);
        "seconds"
    });
    let name = words.fold("tacho".to_owned(), |name, word| name + "_" + word);
    Exported { name, unit }
}

fn by_qos(
    exposition: &mut Exposition,
    view: &View,
    name: &str,
    help: &str,
    counter: impl Fn(&ShardStats) -> &ByQos,
) {
    let mut family = exposition.family(&format!("tacho_{name}_total"), help, Kind::Counter);
    for (shard, stats) in view.stats.iter().enumerate() {
        for (qos, value) in counter(stats).values().into_iter().enumerate() {
            family.sample(&[("shard", &shard), ("qos", &qos)], value);
        }
    }
}

/// Reasons that have not occurred yet have no series.
fn by_reason(
    exposition: &mut Exposition,
    view: &View,
    name: &str,
    help: &str,
    counter: impl Fn(&ShardStats) -> &ByReason,
) {
    let mut family = exposition.family(&format!("tacho_{name}_total"), help, Kind::Counter);
    for reason in (0..=u8::MAX).filter_map(ReasonCode::from_u8) {
        let values: Vec<u64> = view.stats.iter().map(|s| counter(s).value(reason)).collect();
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        let label = label_of(reason);
        for (shard, value) in values.into_iter().enumerate() {
            family.sample(&[("shard", &shard), ("reason", &label)], value);
        }
    }
}

/// `keep_alive_timeout` for 0x8D.
fn label_of(reason: ReasonCode) -> String {
    if reason == ReasonCode::NORMAL_DISCONNECTION {
        return "normal".to_owned();
    }
    reason.name().to_lowercase().replace([' ', '-'], "_")
}

fn histogram<const FIRST: u32>(
    exposition: &mut Exposition,
    view: &View,
    name: &str,
    help: &str,
    unit: Option<f64>,
    histogram: impl Fn(&ShardStats) -> &Histogram<FIRST>,
) {
    let bounds = Histogram::<FIRST>::bounds();
    let mut family = exposition.family(name, help, Kind::Histogram);
    for (shard, stats) in view.stats.iter().enumerate() {
        let histogram = histogram(stats);
        let (buckets, sum) = (histogram.buckets(), histogram.sum());
        family.histogram(&[("shard", &shard)], &bounds, &buckets, sum, unit);
    }
}

fn slow_clients(exposition: &mut Exposition, slow: &[ClientRow]) {
    let help = "Bytes queued for the slowest clients, in their sessions and connections.";
    let mut waiting = exposition.family("tacho_slow_client_bytes", help, Kind::Gauge);
    for row in slow {
        waiting.sample(&labels(row), row.waiting_bytes());
    }
    let help = "Messages to the slowest clients dropped since their sessions began.";
    let mut dropped = exposition.family("tacho_slow_client_dropped", help, Kind::Gauge);
    for row in slow {
        dropped.sample(&labels(row), row.dropped);
    }
    let help = "1 for a client whose session's queue is full, which stops publishers to it.";
    let mut full = exposition.family("tacho_slow_client_queue_full", help, Kind::Gauge);
    for row in slow {
        full.sample(&labels(row), u8::from(row.queue_full));
    }
    let help = "How long the output of the slowest clients has been above its limit.";
    let mut blocked = exposition.family("tacho_slow_client_blocked_seconds", help, Kind::Gauge);
    for row in slow {
        blocked.sample(&labels(row), row.blocked_ms as f64 / 1e3);
    }
}

fn labels(row: &ClientRow) -> [(&'static str, &dyn Display); 2] {
    [("shard", &row.shard), ("client", &row.client_id)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exported_in_seconds() {
        for (name, exported_name, unit) in [
            ("busy_ns_total", "tacho_busy_seconds_total", Some(1e-9)),
            ("loop_lag_us_max", "tacho_loop_lag_seconds_max", Some(1e-6)),
            ("retained_bytes", "tacho_retained_bytes", None),
            ("sessions", "tacho_sessions", None),
        ] {
            let expected = Exported { name: exported_name.to_owned(), unit };
            assert_eq!(exported(name), expected);
        }
    }

    #[test]
    fn reason_labels_are_lower_case() {
        assert_eq!(label_of(ReasonCode::KEEP_ALIVE_TIMEOUT), "keep_alive_timeout");
        assert_eq!(label_of(ReasonCode::QOS_NOT_SUPPORTED), "qos_not_supported");
        assert_eq!(label_of(ReasonCode::NORMAL_DISCONNECTION), "normal");
        for reason in (0..=u8::MAX).filter_map(ReasonCode::from_u8) {
            let label = label_of(reason);
            assert!(label.chars().all(|c| c.is_ascii_lowercase() || "_012".contains(c)), "{label}");
        }
    }
}
