//! Rows for people.

use tacho_monitor::HostRow;
use tacho_scenario::format::bytes;

/// Rows between two heads.
const ROWS_PER_HEAD: u32 = 20;

/// Formats rows under a head that is repeated now and then.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: u32,
    began_ns: Option<u64>,
}

impl Table {
    /// The lines for one row.
    pub(super) fn lines(&mut self, row: &HostRow) -> Vec<String> {
        let began_ns =
            *self.began_ns.get_or_insert_with(|| row.at_ns.saturating_sub(row.length_ns));
        let mut lines = Vec::new();
        if self.rows.is_multiple_of(ROWS_PER_HEAD) {
            lines.push(format!(
                "{:>7}  {:<12} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}  {:>6}  {:>9} {:>5}  {:>11} \
                 {:>11}  {:>6} {:>6}  {:>5}",
                "seconds",
                "host",
                "busy%",
                "user",
                "sys",
                "sirq",
                "wait",
                "steal",
                "load",
                "memory",
                "%",
                "received/s",
                "sent/s",
                "retr/s",
                "ovfl/s",
                "disk%"
            ));
        }
        self.rows += 1;
        let seconds = row.at_ns.saturating_sub(began_ns) as f64 / 1e9;
        lines.push(line(row, seconds));
        lines.extend(row.processes.iter().map(|process| {
            let cpu = one(process.cpu_percent);
            let of = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
            let pid = process.pid.map_or(String::new(), |pid| format!(" {pid}"));
            format!(
                "{:>7}  {}{pid}: CPU {cpu} % of a core, {} resident, {} threads, {} descriptors",
                "",
                printable(&process.name),
                process.rss_bytes.map_or_else(|| "-".to_owned(), bytes),
                of(process.threads),
                of(process.descriptors),
            )
        }));
        lines
    }
}

/// Names come from other machines, and processes name themselves: nothing may steer the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn one(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

fn line(row: &HostRow, seconds: f64) -> String {
    let cpu = |state: fn(&tacho_monitor::CpuPercent) -> f64| one(row.cpu.as_ref().map(state));
    // Loopback is no traffic with others, unless there is nothing else.
    let others = |name: &str| name != "lo" || row.interfaces.len() == 1;
    let traffic = |way: fn(&tacho_monitor::InterfaceRates) -> f64| match row.interfaces.is_empty() {
        true => "-".to_owned(),
        false => {
            let sum: f64 = row.interfaces.iter().filter(|i| others(&i.name)).map(way).sum();
            bytes(sum as u64)
        }
    };
    let host: String = printable(&row.host).chars().take(12).collect();
    format!(
        "{seconds:>7.1}  {host:<12} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5}  {:>6}  {:>9} {:>5}  \
         {:>11} {:>11}  {:>6} {:>6}  {:>5}",
        cpu(|cpu| cpu.not_idle()),
        cpu(|cpu| cpu.user + cpu.nice),
        cpu(|cpu| cpu.system),
        cpu(|cpu| cpu.irq + cpu.softirq),
        cpu(|cpu| cpu.iowait),
        cpu(|cpu| cpu.steal),
        row.load.map_or_else(|| "-".to_owned(), |load| format!("{:.2}", load[0])),
        row.memory.map_or_else(|| "-".to_owned(), |memory| bytes(memory.used)),
        one(row.memory.map(|memory| memory.percent())),
        traffic(|interface| interface.rx_bytes_per_s),
        traffic(|interface| interface.tx_bytes_per_s),
        one(row.tcp.retransmits_per_s),
        one(row.tcp.listen_overflows_per_s),
        one(row.disks.iter().filter_map(|disk| disk.busy_percent).reduce(f64::max)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_monitor::{CpuPercent, DiskRates, InterfaceRates, ProcessRow};

    #[test]
    fn the_head_is_repeated_and_unknown_values_are_dashes() {
        let interface = |name: &str, rx_bytes_per_s| InterfaceRates {
            name: name.to_owned(),
            rx_bytes_per_s,
            ..InterfaceRates::default()
        };
        let row = HostRow {
            at_ns: 11_000_000_000,
            length_ns: 1_000_000_000,
            host: "broker-1".to_owned(),
            cpu: Some(CpuPercent { user: 25.0, idle: 75.0, ..CpuPercent::default() }),
            interfaces: vec![interface("lo", 1e9), interface("eth0", 2048.0)],
            disks: [12.0, 55.0]
                .map(|busy| DiskRates { busy_percent: Some(busy), ..DiskRates::default() })
                .to_vec(),
            processes: vec![ProcessRow {
                name: "mosquitto\x1b[2J".to_owned(),
                pid: Some(7),
                cpu_percent: Some(12.34),
                ..ProcessRow::default()
            }],
            ..HostRow::default()
        };
        let mut table = Table::default();
        let lines = table.lines(&row);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("busy%") && lines[1].contains("25.0"), "{lines:#?}");
        assert!(lines[1].contains("    1.0  broker-1"), "{lines:#?}");
        assert!(lines[1].contains("2.0 KiB"), "loopback does not count: {lines:#?}");
        assert!(lines[1].ends_with(" 55.0"), "the busiest disk: {lines:#?}");
        assert!(lines[2].contains("mosquitto?[2J 7: CPU 12.3 %"), "{lines:#?}");
        assert!(lines[2].contains("- threads"), "{lines:#?}");
        assert_eq!(table.lines(&row).len(), 2);
        for _ in 0..18 {
            table.lines(&row);
        }
        assert_eq!(table.lines(&row).len(), 3, "the head comes again");
    }
}
