use proptest::prelude::*;

use super::packet::DataValue;
use super::*;
use crate::HostRow;

const SECOND_NS: u64 = 1_000_000_000;

/// Builds packets as collectd's network plugin does.
#[derive(Default)]
struct Packet(Vec<u8>);

impl Packet {
    fn part(mut self, kind: u16, body: &[u8]) -> Self {
        self.0.extend(kind.to_be_bytes());
        self.0.extend((body.len() as u16 + 4).to_be_bytes());
        self.0.extend(body);
        self
    }

    fn text(self, kind: u16, text: &str) -> Self {
        self.part(kind, &[text.as_bytes(), &[0]].concat())
    }

    fn number(self, kind: u16, number: u64) -> Self {
        self.part(kind, &number.to_be_bytes())
    }

    fn begin(host: &str, second: u64) -> Self {
        // A time of high resolution, and one second between readings.
        Self::default().text(0, host).number(8, second << 30).number(9, 1 << 30)
    }

    fn id(self, plugin: &str, instance: &str, kind: &str, type_instance: &str) -> Self {
        self.text(2, plugin).text(3, instance).text(4, kind).text(5, type_instance)
    }

    fn gauges(self, values: &[f64]) -> Self {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        body.extend(values.iter().map(|_| 1));
        body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.part(6, &body)
    }

    fn derives(self, values: &[i64]) -> Self {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        body.extend(values.iter().map(|_| 2));
        body.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        self.part(6, &body)
    }
}

fn feed(hosts: &mut Hosts, packet: &Packet, now_ns: u64) -> Vec<HostRow> {
    let mut rows = Vec::new();
    parse(&packet.0, |reading| rows.extend(hosts.add(reading, now_ns))).expect("parses");
    rows
}

#[test]
fn every_part_of_the_protocol_is_read() {
    let mut body = 4_u16.to_be_bytes().to_vec();
    body.extend([0, 1, 2, 3]);
    body.extend(7_u64.to_be_bytes());
    body.extend(1.5_f64.to_le_bytes());
    body.extend((-3_i64).to_be_bytes());
    body.extend(9_u64.to_be_bytes());
    let packet = Packet::default()
        .text(0, "h")
        .number(1, 5)
        .number(7, 10)
        .id("p", "pi", "t", "ti")
        .text(0x0100, "a notification")
        .part(6, &body);
    let mut readings = Vec::new();
    parse(&packet.0, |reading| readings.push(reading.clone())).expect("parses");
    assert_eq!(readings.len(), 1);
    let reading = &readings[0];
    assert_eq!((reading.host.as_str(), reading.plugin.as_str()), ("h", "p"));
    assert_eq!((reading.plugin_instance.as_str(), reading.kind.as_str()), ("pi", "t"));
    assert_eq!(reading.type_instance, "ti");
    assert_eq!((reading.time_ns, reading.interval_ns), (5 * SECOND_NS, 10 * SECOND_NS));
    let values = [
        DataValue::Counter(7),
        DataValue::Gauge(1.5),
        DataValue::Derive(-3),
        DataValue::Absolute(9),
    ];
    assert_eq!(reading.values, values);
}

#[test]
fn rounds_become_rows() {
    let mut hosts = Hosts::default();
    let round = |second: u64| {
        Packet::begin("b1", second)
            .id("cpu", "0", "percent", "user")
            .gauges(&[30.0])
            .text(5, "idle")
            .gauges(&[50.0])
            .text(5, "wait")
            .gauges(&[20.0])
            .text(3, "1")
            .text(5, "idle")
            .gauges(&[100.0])
            .id("memory", "", "memory", "used")
            .gauges(&[600.0])
            .text(5, "free")
            .gauges(&[300.0])
            .text(5, "slab_recl")
            .gauges(&[100.0])
            .id("load", "", "load", "")
            .gauges(&[1.0, 2.0, 3.0])
            .id("interface", "eth0", "if_octets", "")
            .derives(&[second as i64 * 1000, second as i64 * 500])
            .text(4, "if_dropped")
            .derives(&[second as i64, 0])
            .id("disk", "sda", "disk_octets", "")
            .derives(&[second as i64 * 10, second as i64 * 4096])
            .text(4, "disk_ops")
            .derives(&[0, second as i64 * 20])
            .text(4, "disk_time")
            .derives(&[0, second as i64 * 3])
            .text(4, "disk_io_time")
            .derives(&[second as i64 * 250, second as i64 * 900])
            .text(3, "sda1")
            .text(4, "disk_octets")
            .derives(&[second as i64 * 10, second as i64 * 4096])
            .id("df", "root", "df_complex", "used")
            .gauges(&[30.0])
            .text(5, "free")
            .gauges(&[60.0])
            .text(5, "reserved")
            .gauges(&[10.0])
            .id("processes", "mosquitto", "ps_cputime", "")
            .derives(&[second as i64 * 200_000, second as i64 * 50_000])
            .text(4, "ps_rss")
            .gauges(&[4096.0])
            .text(4, "ps_count")
            .gauges(&[1.0, 3.0])
            .id("protocols", "Tcp", "protocol_counter", "RetransSegs")
            .derives(&[second as i64 * 3])
    };
    // Packets arrive at least 5 ms after their time; the second one is late.
    assert!(feed(&mut hosts, &round(100), 900 * SECOND_NS + 5_000_000).is_empty());
    let rows = feed(&mut hosts, &round(101), 901 * SECOND_NS + 400_000_000);
    assert_eq!(rows.len(), 1, "the first round ends with the second");
    assert!(rows[0].interfaces.is_empty(), "no rate yet");
    let rows = feed(&mut hosts, &round(102), 902 * SECOND_NS + 6_000_000);
    let row = &rows[0];
    assert_eq!((row.host.as_str(), row.length_ns), ("b1", SECOND_NS));
    assert_eq!(row.at_ns, 901 * SECOND_NS + 5_000_000);
    assert_eq!(row.clock_error_ns, None);
    let cpu = row.cpu.expect("cpu");
    assert_eq!((cpu.user, cpu.iowait, cpu.idle), (15.0, 10.0, 75.0));
    assert_eq!(row.cores[0].cpu.iowait, 20.0);
    let memory = row.memory.expect("memory");
    assert_eq!((memory.total, memory.used), (1000, 600));
    assert_eq!(memory.slab_reclaimable, Some(100));
    assert_eq!(row.load, Some([1.0, 2.0, 3.0]));
    let eth0 = &row.interfaces[0];
    assert_eq!((eth0.rx_bytes_per_s, eth0.tx_bytes_per_s), (1000.0, 500.0));
    assert_eq!((eth0.rx_drops_per_s, eth0.rx_packets_per_s), (Some(1.0), None));
    assert_eq!(row.disks.len(), 1, "without its partition: {:?}", row.disks);
    let sda = &row.disks[0];
    assert_eq!((sda.read_bytes_per_s, sda.written_bytes_per_s), (10.0, 4096.0));
    assert_eq!((sda.reads_per_s, sda.writes_per_s), (0.0, 20.0));
    assert_eq!((sda.read_wait_us, sda.write_wait_us), (None, Some(3000.0)));
    assert_eq!(sda.busy_percent, Some(25.0));
    let root = &row.file_systems[0];
    assert_eq!((root.mount_point.as_str(), root.total), ("/", 100));
    assert_eq!((root.used, root.available), (30, 60));
    let process = &row.processes[0];
    assert_eq!((process.name.as_str(), process.cpu_percent), ("mosquitto", Some(25.0)));
    assert_eq!((process.rss_bytes, process.threads), (Some(4096), Some(3)));
    assert_eq!(row.tcp.retransmits_per_s, Some(3.0));
    // The last round ends when the host has been silent.
    assert!(hosts.overdue(902 * SECOND_NS + 7_000_000).is_empty());
    assert_eq!(hosts.overdue(906 * SECOND_NS).len(), 1);
    assert!(hosts.flush().is_empty());
}

#[test]
fn cpu_in_jiffies_becomes_percent() {
    let mut hosts = Hosts::default();
    let round = |second: u64| {
        Packet::begin("b1", second)
            .id("cpu", "0", "cpu", "user")
            .derives(&[second as i64 * 25])
            .text(5, "interrupt")
            .derives(&[second as i64 * 25])
            .text(5, "idle")
            .derives(&[second as i64 * 50])
    };
    for second in 1..=2 {
        feed(&mut hosts, &round(second), second * SECOND_NS);
    }
    let rows = feed(&mut hosts, &round(3), 3 * SECOND_NS);
    let cpu = rows[0].cpu.expect("cpu");
    assert_eq!((cpu.user, cpu.irq, cpu.idle), (25.0, 25.0, 50.0));
}

#[test]
fn hosts_are_separate_and_bounded() {
    let mut hosts = Hosts::default();
    for number in 0..40 {
        let name = format!("h{number}");
        let packet = Packet::begin(&name, 1).id("load", "", "load", "").gauges(&[1.0, 1.0, 1.0]);
        feed(&mut hosts, &packet, SECOND_NS);
    }
    assert_eq!(hosts.refused(), 24);
    let rows = hosts.flush();
    assert_eq!(rows.len(), 16);
}

#[test]
fn a_clock_set_back_is_followed() {
    let mut hosts = Hosts::default();
    let packet =
        |second| Packet::begin("h", second).id("load", "", "load", "").gauges(&[1.0, 1.0, 1.0]);
    feed(&mut hosts, &packet(1_000_000), 10 * SECOND_NS);
    hosts.flush();
    feed(&mut hosts, &packet(500), 11 * SECOND_NS);
    assert_eq!(hosts.flush()[0].at_ns, 11 * SECOND_NS);
}

#[test]
fn signed_and_encrypted_packets_are_named() {
    let signed = Packet::default().part(0x0200, &[0; 36]).text(0, "h");
    assert_eq!(parse(&signed.0, |_| ()), Err(PacketError::Signed));
    let encrypted = Packet::default().part(0x0210, &[0; 40]);
    assert_eq!(parse(&encrypted.0, |_| ()), Err(PacketError::Encrypted));
    assert!(PacketError::Signed.to_string().contains("SecurityLevel"));
}

#[test]
fn malformed_packets_are_named() {
    let packets = [
        vec![0],
        vec![0, 0, 0, 3],
        vec![0, 0, 0, 200, 65],
        Packet::default().part(0, b"no zero at the end").0,
        Packet::default().part(0, &[b'x'; 200]).0,
        Packet::default().part(0, &[0xff, 0]).0,
        Packet::default().part(8, &[1, 2, 3]).0,
        Packet::default().part(6, &[0]).0,
        Packet::default().part(6, &[0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0]).0,
        Packet::default().part(6, &[0xff, 0xff, 1]).0,
    ];
    for packet in packets {
        assert_eq!(parse(&packet, |_| ()), Err(PacketError::Malformed), "{packet:?}");
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(packets in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..200), 1..10)) {
        let mut hosts = Hosts::default();
        for packet in packets {
            let _ = parse(&packet, |reading| { hosts.add(reading, 1); });
        }
        hosts.overdue(u64::MAX);
        hosts.flush();
    }

    #[test]
    fn damaged_packets_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        second in any::<u64>(),
    ) {
        let mut packet = Packet::begin("h", 1)
            .number(8, second)
            .id("cpu", "0", "cpu", "user")
            .derives(&[i64::MIN])
            .number(8, second.wrapping_add(1 << 30))
            .derives(&[i64::MAX])
            .id("memory", "", "memory", "used")
            .gauges(&[f64::INFINITY])
            .id("interface", "eth0", "if_octets", "")
            .gauges(&[f64::MAX, f64::MAX])
            .0;
        for (index, byte) in changes {
            let at = index.index(packet.len());
            packet[at] = byte;
        }
        packet.truncate(cut.index(packet.len() + 1));
        let mut hosts = Hosts::default();
        let _ = parse(&packet, |reading| { hosts.add(reading, u64::MAX); });
        for row in hosts.flush() {
            row.metrics();
        }
    }
}
