//! `brokers.csv`: with several brokers, a row per second and broker.

use std::io::{self, Write};

use crate::series::BrokerRow;

/// Writes [`BrokerRow`]s as CSV: a head line, a dot as decimal point, nothing between the commas
/// for an absent figure.
#[derive(Debug)]
pub struct BrokerWriter<W: Write> {
    out: csv::Writer<W>,
}

const COLUMNS: [&str; 16] = [
    "start_s",
    "length_s",
    "phase",
    "broker",
    "connected",
    "sent_per_s",
    "received_per_s",
    "rtt_p50_us",
    "cpu_percent",
    "cores_busy_percent",
    "rss_bytes",
    "bridged_in_per_s",
    "bridged_out_per_s",
    "bridge_waiting",
    "bridge_waiting_bytes",
    "bridge_connections_up",
];

impl<W: Write> BrokerWriter<W> {
    /// Begins with the head line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(COLUMNS)?;
        Ok(Self { out })
    }

    /// Appends one row.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, row: &BrokerRow) -> io::Result<()> {
        let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let tenth = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.1}"));
        let percent = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.2}"));
        let (part, spent) = (&row.part, &row.part.spent);
        let cells: [String; COLUMNS.len()] = [
            format!("{:.3}", row.start_s),
            format!("{:.3}", row.length_s),
            row.phase.to_string(),
            part.name.clone(),
            part.connected.to_string(),
            format!("{:.1}", part.sent_per_s),
            format!("{:.1}", part.received_per_s),
            whole(part.rtt_p50_us),
            percent(spent.cpu_percent),
            percent(spent.cores_busy_percent),
            whole(spent.rss_bytes),
            tenth(spent.bridged_in_per_s),
            tenth(spent.bridged_out_per_s),
            whole(spent.bridge_waiting),
            whole(spent.bridge_waiting_bytes),
            whole(spent.bridge_connections_up),
        ];
        Ok(self.out.write_record(cells)?)
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BrokerSpent, PartBy, PartRow, PhaseKind};

    #[test]
    fn a_row_per_broker() {
        let spent = BrokerSpent {
            cpu_percent: Some(26.666),
            rss_bytes: Some(1 << 20),
            bridged_in_per_s: Some(2500.04),
            bridge_waiting: Some(0),
            ..BrokerSpent::default()
        };
        let part = PartRow {
            by: PartBy::Broker,
            name: "a,b".to_owned(),
            connected: 4,
            sent_per_s: 10.0,
            received_per_s: 9.5,
            rtt_p50_us: None,
            spent,
        };
        let row =
            BrokerRow { start_s: 1.0, length_s: 1.0004, phase: PhaseKind::Measure.into(), part };
        let mut bytes = Vec::new();
        let mut writer = BrokerWriter::new(&mut bytes).expect("writes");
        writer.write(&row).expect("writes");
        writer.flush().expect("writes");
        drop(writer);
        let text = String::from_utf8(bytes).expect("UTF-8");
        let line = text.lines().nth(1).expect("a row");
        assert_eq!(line, "1.000,1.000,measure,\"a,b\",4,10.0,9.5,,26.67,,1048576,2500.0,,0,,");
        assert_eq!(text.lines().next(), Some(&*COLUMNS.join(",")));
    }
}
