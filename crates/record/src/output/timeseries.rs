//! `timeseries.csv`: a row per second.

use std::io::{self, Write};

use crate::series::SeriesRow;

/// Writes [`SeriesRow`]s as CSV: a head line, a dot as decimal point, nothing between the commas
/// for an absent figure.
#[derive(Debug)]
pub struct SeriesWriter<W> {
    out: W,
}

/// The columns of `timeseries.csv`.
pub const SERIES_COLUMNS: [&str; 54] = [
    "start_s",
    "length_s",
    "phase",
    "connected",
    "offered_in_per_s",
    "sent_per_s",
    "acked_per_s",
    "received_per_s",
    "overrun",
    "dropped",
    "e2e_p50_us",
    "e2e_p95_us",
    "e2e_p99_us",
    "e2e_max_us",
    "service_p99_us",
    "send_delay_p99_us",
    "ack_p99_us",
    "broker_cpu_percent",
    "broker_rss_bytes",
    "broker_cores_busy_percent",
    "generator_cpu_percent",
    "host_cpu_percent",
    "host_steal_percent",
    "host_memory_percent",
    "connect_ok_per_s",
    "connect_failed_per_s",
    "connect_mean_us",
    "connect_p99_us",
    "connect_failed_mean_us",
    "subscribe_ok_per_s",
    "subscribe_failed_per_s",
    "subscribe_mean_us",
    "subscribe_p99_us",
    "subscribe_failed_mean_us",
    "publish_failed_per_s",
    "ack_mean_us",
    "publish_failed_mean_us",
    "e2e_mean_us",
    "bytes_in_per_s",
    "bytes_out_per_s",
    "rtt_p50_us",
    "rtt_p99_us",
    "rtt_max_us",
    "disconnects",
    "reconnects",
    "host_busy_percent",
    "others_on_broker_cores_percent",
    "disturbed",
    "login_accepted_per_s",
    "login_refused_per_s",
    "login_undecided_per_s",
    "login_p50_us",
    "login_p99_us",
    "login_max_us",
];

impl<W: Write> SeriesWriter<W> {
    /// Begins with the head line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{}", SERIES_COLUMNS.join(","))?;
        Ok(Self { out })
    }

    /// Appends one row.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, row: &SeriesRow) -> io::Result<()> {
        writeln!(self.out, "{}", series_cells(row).join(","))
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The cells of a row, one per column; none of them needs quotes.
pub fn series_cells(row: &SeriesRow) -> [String; SERIES_COLUMNS.len()] {
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let tenth = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.1}"));
    let percent = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.2}"));
    [
        format!("{:.3}", row.start_s),
        format!("{:.3}", row.length_s),
        row.phase.to_string(),
        row.connected.to_string(),
        format!("{:.1}", row.offered_in_per_s),
        format!("{:.1}", row.sent_per_s),
        format!("{:.1}", row.acked_per_s),
        format!("{:.1}", row.received_per_s),
        row.overrun.to_string(),
        row.dropped.to_string(),
        whole(row.e2e_p50_us),
        whole(row.e2e_p95_us),
        whole(row.e2e_p99_us),
        whole(row.e2e_max_us),
        whole(row.service_p99_us),
        whole(row.send_delay_p99_us),
        whole(row.ack_p99_us),
        percent(row.broker_cpu_percent),
        whole(row.broker_rss_bytes),
        percent(row.broker_cores_busy_percent),
        format!("{:.2}", row.generator_cpu_percent),
        percent(row.host_cpu_percent),
        percent(row.host_steal_percent),
        percent(row.host_memory_percent),
        format!("{:.1}", row.connect_ok_per_s),
        format!("{:.1}", row.connect_failed_per_s),
        tenth(row.connect_mean_us),
        whole(row.connect_p99_us),
        tenth(row.connect_failed_mean_us),
        format!("{:.1}", row.subscribe_ok_per_s),
        format!("{:.1}", row.subscribe_failed_per_s),
        tenth(row.subscribe_mean_us),
        whole(row.subscribe_p99_us),
        tenth(row.subscribe_failed_mean_us),
        format!("{:.1}", row.publish_failed_per_s),
        tenth(row.ack_mean_us),
        tenth(row.publish_failed_mean_us),
        tenth(row.e2e_mean_us),
        format!("{:.1}", row.bytes_in_per_s),
        format!("{:.1}", row.bytes_out_per_s),
        whole(row.rtt_p50_us),
        whole(row.rtt_p99_us),
        whole(row.rtt_max_us),
        row.disconnects.to_string(),
        row.reconnects.to_string(),
        percent(row.host_busy_percent),
        percent(row.others_on_broker_cores_percent),
        row.disturbed.to_string(),
        tenth(row.login_accepted_per_s),
        tenth(row.login_refused_per_s),
        tenth(row.login_undecided_per_s),
        whole(row.login_p50_us),
        whole(row.login_p99_us),
        whole(row.login_max_us),
    ]
}
