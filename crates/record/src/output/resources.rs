//! `resources.csv`: resource use of the watched hosts, a line per figure.

use std::io::{self, Write};

use crate::hosts::ResourceRow;

/// Writes [`ResourceRow`]s as CSV in long form: hosts differ in cores, interfaces and processes,
/// and no line is longer for it.
#[derive(Debug)]
pub struct ResourceWriter<W: Write> {
    out: csv::Writer<W>,
}

const COLUMNS: [&str; 8] =
    ["at_s", "length_s", "host", "target", "source", "metric", "instance", "value"];

impl<W: Write> ResourceWriter<W> {
    /// Begins with the head line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(COLUMNS)?;
        Ok(Self { out })
    }

    /// Appends the figures of one row.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, row: &ResourceRow) -> io::Result<()> {
        let at_s = format!("{:.3}", row.at_s);
        let length_s = format!("{:.3}", row.host.length_ns as f64 / 1e9);
        let target = row.host.target.as_deref().unwrap_or_default();
        for metric in row.host.metrics() {
            let value = format!("{:.3}", metric.value);
            self.out.write_record([
                &at_s,
                &length_s,
                &row.host.host,
                target,
                &row.host.source,
                metric.name,
                metric.instance.as_deref().unwrap_or_default(),
                value.strip_suffix(".000").unwrap_or(&value),
            ])?;
        }
        Ok(())
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
    use tacho_monitor::{HostRow, InterfaceRates};

    #[test]
    fn a_line_per_figure() {
        let mut bytes = Vec::new();
        let mut writer = ResourceWriter::new(&mut bytes).expect("writes");
        let row = ResourceRow {
            at_s: 1.0004,
            host: HostRow {
                length_ns: 500_000_000,
                host: "a,b".to_owned(),
                source: "local".to_owned(),
                target: Some("node1".to_owned()),
                load: Some([0.5, 1.0, 2.0]),
                interfaces: vec![InterfaceRates {
                    name: "eth0".to_owned(),
                    rx_bytes_per_s: 12.3456,
                    ..InterfaceRates::default()
                }],
                ..HostRow::default()
            },
        };
        writer.write(&row).expect("writes");
        writer.flush().expect("writes");
        drop(writer);
        assert_eq!(
            String::from_utf8(bytes).expect("UTF-8"),
            "at_s,length_s,host,target,source,metric,instance,value\n\
             1.000,0.500,\"a,b\",node1,local,load_1m,,0.500\n\
             1.000,0.500,\"a,b\",node1,local,load_5m,,1\n\
             1.000,0.500,\"a,b\",node1,local,load_15m,,2\n\
             1.000,0.500,\"a,b\",node1,local,net_rx_bytes_per_s,eth0,12.346\n\
             1.000,0.500,\"a,b\",node1,local,net_tx_bytes_per_s,eth0,0\n"
        );
    }
}
