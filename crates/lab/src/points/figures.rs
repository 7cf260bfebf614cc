//! Rows as figures.

use tacho_output::PointFigure;
use tacho_record::{PartRow, SeriesRow};

/// The figures of all clients in an interval.
pub(super) fn of_load(row: &SeriesRow) -> Vec<PointFigure> {
    let count = |name, per_s: f64| PointFigure::count(name, whole(per_s, row.length_s));
    let mut figures = vec![
        PointFigure::gauge("connected", row.connected as f64),
        count("offered", row.offered_in_per_s),
        count("published", row.sent_per_s),
        count("publish_acked", row.acked_per_s),
        count("publish_failures", row.publish_failed_per_s),
        PointFigure::count("publish_overrun", row.overrun),
        PointFigure::count("publish_dropped", row.dropped),
        count("received", row.received_per_s),
        count("connects", row.connect_ok_per_s),
        count("connect_failures", row.connect_failed_per_s),
        count("subscribes", row.subscribe_ok_per_s),
        count("subscribe_failures", row.subscribe_failed_per_s),
        PointFigure::count("disconnects", row.disconnects),
        PointFigure::count("reconnects", row.reconnects),
        count("sent_bytes", row.bytes_out_per_s),
        count("received_bytes", row.bytes_in_per_s),
        PointFigure::gauge("generator_cpu_percent", row.generator_cpu_percent),
        PointFigure::gauge("disturbed", f64::from(u8::from(row.disturbed))),
    ];
    let logins = [
        ("logins_accepted", row.login_accepted_per_s),
        ("logins_refused", row.login_refused_per_s),
        ("logins_undecided", row.login_undecided_per_s),
    ];
    figures.extend(logins.into_iter().filter_map(|(name, per_s)| Some(count(name, per_s?))));
    add_known(
        &mut figures,
        &[
            ("broker_cpu_percent", row.broker_cpu_percent),
            ("broker_rss_bytes", row.broker_rss_bytes.map(|bytes| bytes as f64)),
            ("broker_cores_busy_percent", row.broker_cores_busy_percent),
            ("others_on_broker_cores_percent", row.others_on_broker_cores_percent),
            ("host_cpu_percent", row.host_cpu_percent),
            ("host_busy_percent", row.host_busy_percent),
            ("host_steal_percent", row.host_steal_percent),
            ("host_memory_percent", row.host_memory_percent),
        ],
    );
    figures
}

/// The figures of a group or a broker in an interval of that length.
pub(super) fn of_part(part: &PartRow, length_s: f64) -> Vec<PointFigure> {
    let mut figures = vec![
        PointFigure::gauge("connected", part.connected as f64),
        PointFigure::count("published", whole(part.sent_per_s, length_s)),
        PointFigure::count("received", whole(part.received_per_s, length_s)),
    ];
    let spent = &part.spent;
    let number = |value: Option<u64>| value.map(|value| value as f64);
    add_known(
        &mut figures,
        &[
            ("round_trip_p50_us", number(part.rtt_p50_us)),
            ("cpu_percent", spent.cpu_percent),
            ("cores_busy_percent", spent.cores_busy_percent),
            ("rss_bytes", number(spent.rss_bytes)),
            ("bridged_in_per_s", spent.bridged_in_per_s),
            ("bridged_out_per_s", spent.bridged_out_per_s),
            ("bridge_waiting", number(spent.bridge_waiting)),
            ("bridge_waiting_bytes", number(spent.bridge_waiting_bytes)),
            ("bridge_connections_up", number(spent.bridge_connections_up)),
        ],
    );
    figures
}

/// Adds gauges that have a value.
pub(super) fn add_known(figures: &mut Vec<PointFigure>, gauges: &[(&'static str, Option<f64>)]) {
    let known = gauges.iter().filter_map(|(name, value)| {
        let value = value.filter(|value| value.is_finite());
        value.map(|value| PointFigure::gauge(name, value))
    });
    figures.extend(known);
}

/// The whole number that a rate was made of.
fn whole(per_s: f64, length_s: f64) -> u64 {
    (per_s * length_s).round().max(0.0) as u64
}
