use proptest::prelude::*;

use super::text::{Sample, samples};
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A shortened response of node_exporter 1.8 after `seconds` of uptime.
fn node_exporter(seconds: f64) -> String {
    format!(
        "# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.\n\
         # TYPE node_cpu_seconds_total counter\n\
         node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {idle}\n\
         node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {user}\n\
         node_cpu_seconds_total{{cpu=\"1\",mode=\"idle\"}} {seconds}\n\
         node_cpu_seconds_total{{cpu=\"1\",mode=\"softirq\"}} 3\n\
         node_cpu_guest_seconds_total{{cpu=\"0\",mode=\"user\"}} 99\n\
         node_load1 0.5\nnode_load5 0.25\nnode_load15 0.125\n\
         node_memory_MemTotal_bytes 1.0e+06\nnode_memory_MemFree_bytes 300000\n\
         node_memory_MemAvailable_bytes 400000\nnode_memory_Buffers_bytes 0\n\
         node_memory_Cached_bytes 100000\nnode_memory_SReclaimable_bytes 50000\n\
         node_memory_SUnreclaim_bytes 50000\n\
         node_network_receive_bytes_total{{device=\"eth0\"}} {bytes}\n\
         node_network_transmit_bytes_total{{device=\"eth0\"}} 7\n\
         node_network_receive_packets_total{{device=\"eth0\"}} 100\n\
         node_network_receive_drop_total{{device=\"eth0\"}} {seconds}\n\
         node_network_receive_bytes_total{{device=\"unused0\"}} 0\n\
         node_netstat_Tcp_RetransSegs {retransmits}\nnode_netstat_Tcp_CurrEstab 12\n\
         node_netstat_TcpExt_ListenOverflows 0\nnode_netstat_TcpExt_ListenDrops 0\n\
         node_filefd_allocated 1000\nnode_filefd_maximum 9.223372036854776e+18\n\
         node_pressure_cpu_waiting_seconds_total {waiting}\n\
         node_disk_reads_completed_total{{device=\"sda\"}} 10\n\
         node_disk_writes_completed_total{{device=\"sda\"}} {seconds}\n\
         node_disk_read_bytes_total{{device=\"sda\"}} 4096\n\
         node_disk_written_bytes_total{{device=\"sda\"}} {bytes}\n\
         node_disk_write_time_seconds_total{{device=\"sda\"}} {waiting}\n\
         node_disk_io_time_seconds_total{{device=\"sda\"}} {waiting}\n\
         node_disk_writes_completed_total{{device=\"sda1\"}} {seconds}\n\
         node_filesystem_size_bytes{{device=\"/dev/sda1\",fstype=\"ext4\",mountpoint=\"/\"}} 1000\n\
         node_filesystem_free_bytes{{device=\"/dev/sda1\",fstype=\"ext4\",mountpoint=\"/\"}} 300\n\
         node_filesystem_avail_bytes{{device=\"/dev/sda1\",fstype=\"ext4\",mountpoint=\"/\"}} 250\n\
         node_filesystem_size_bytes{{device=\"/dev/sda1\",fstype=\"ext4\",mountpoint=\"/b\"}} 1000\n\
         node_filesystem_size_bytes{{device=\"tmpfs\",fstype=\"tmpfs\",mountpoint=\"/run\"}} 9\n\
         node_context_switches_total {switches}\n\
         node_uname_info{{domainname=\"(none)\",machine=\"x86_64\",nodename=\"broker-1\"}} 1\n\
         process_cpu_seconds_total 5\nodd line\n",
        idle = seconds * 0.25,
        user = seconds * 0.75,
        bytes = seconds * 1000.0,
        retransmits = seconds * 2.0,
        waiting = seconds * 0.1,
        switches = seconds * 50.0,
    )
}

#[test]
fn node_exporter_becomes_a_row() {
    let mut endpoint = Endpoint::new("fallback".to_owned());
    assert_eq!(endpoint.parse(&node_exporter(100.0), SECOND_NS), Ok(None));
    let row = endpoint.parse(&node_exporter(104.0), 5 * SECOND_NS).expect("a host").expect("a row");
    assert_eq!(
        (row.host.as_str(), row.at_ns, row.length_ns),
        ("broker-1", 5 * SECOND_NS, 4 * SECOND_NS)
    );
    let cpu = row.cpu.expect("cpu");
    assert!((cpu.user - 37.5).abs() < 1e-6 && (cpu.idle - 62.5).abs() < 1e-6, "{cpu:?}");
    assert_eq!(row.cores.len(), 2);
    assert!((row.cores[0].cpu.user - 75.0).abs() < 1e-6);
    assert_eq!(row.load, Some([0.5, 0.25, 0.125]));
    let memory = row.memory.expect("memory");
    assert_eq!((memory.total, memory.used), (1_000_000, 500_000));
    assert!((memory.percent() - 60.0).abs() < 1e-9);
    assert_eq!(row.interfaces.len(), 1);
    assert_eq!(row.interfaces[0].rx_bytes_per_s, 1000.0);
    assert_eq!(row.interfaces[0].rx_drops_per_s, Some(1.0));
    assert_eq!(row.interfaces[0].tx_drops_per_s, None);
    assert_eq!(row.tcp.retransmits_per_s, Some(2.0));
    assert_eq!(row.tcp.established, Some(12));
    assert_eq!(row.descriptors, Some(1000));
    let pressure = row.pressure.expect("pressure");
    assert!((pressure.cpu_some.expect("cpu") - 10.0).abs() < 0.01);
    assert_eq!(pressure.io_some, None);
    assert_eq!(row.context_switches_per_s, Some(50.0));
    assert_eq!(row.disks.len(), 1, "{:?}", row.disks);
    let sda = &row.disks[0];
    assert_eq!((sda.name.as_str(), sda.writes_per_s, sda.read_wait_us), ("sda", 1.0, None));
    assert_eq!((sda.written_bytes_per_s, sda.read_bytes_per_s), (1000.0, 0.0));
    assert_eq!((sda.write_wait_us, sda.busy_percent), (Some(100_000.0), Some(10.0)));
    assert_eq!(row.file_systems.len(), 1, "{:?}", row.file_systems);
    let root = &row.file_systems[0];
    assert_eq!((root.mount_point.as_str(), root.total), ("/", 1000));
    assert_eq!((root.used, root.available), (700, 250));
    assert!(row.processes.is_empty(), "the process is the exporter");
}

#[test]
fn a_brokers_own_endpoint_is_a_process() {
    let text = |cpu: f64| {
        format!(
            "process_cpu_seconds_total {cpu}\nprocess_resident_memory_bytes 1e6\n\
             process_open_fds 30\nmqtt_messages_total 7\n"
        )
    };
    let mut endpoint = Endpoint::new("broker:9000".to_owned());
    endpoint.parse(&text(1.0), 0).expect("begins");
    let row = endpoint.parse(&text(2.5), SECOND_NS).expect("a process").expect("a row");
    let process = &row.processes[0];
    assert_eq!((row.cpu, row.memory), (None, None));
    assert_eq!(process.cpu_percent, Some(150.0));
    assert_eq!((process.rss_bytes, process.descriptors), (Some(1_000_000), Some(30)));
    assert_eq!(process.name, "broker:9000");
}

#[test]
fn a_response_without_known_metrics_is_an_error() {
    let mut endpoint = Endpoint::new(String::new());
    let error = endpoint.parse("<html>404</html>", 0).expect_err("no metrics");
    assert!(error.contains("node_exporter"), "{error}");
}

#[test]
fn lines_are_parsed() {
    let parsed: Vec<Sample> =
        samples("a 1\nb{} +Inf 1395066363000\nc{x=\"a\\\"b\\n\\\\}\", y=\"ü\",} NaN\n").collect();
    assert_eq!(parsed.len(), 3);
    assert_eq!((parsed[0].name.as_str(), parsed[0].value), ("a", 1.0));
    assert_eq!(parsed[1].value, f64::INFINITY);
    assert_eq!(parsed[2].label("x"), Some("a\"b\n\\}"));
    assert_eq!(parsed[2].label("y"), Some("ü"));
    for line in ["a", "a{", "a{x=1} 1", "a{x=\"1} 1", "a{x=\"1\"} b", "{} 1 2", "a{x\u{e9}\\"] {
        assert!(samples(line).all(|sample| sample.name.is_empty()), "{line}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[a-z_]{0,3}(node_cpu_seconds_total)?[{}\\\\\",= \n0-9é.e+-]{0,60}") {
        let mut endpoint = Endpoint::new(String::new());
        let _ = endpoint.parse(&text, 0);
        let _ = endpoint.parse(&node_exporter(f64::MAX), 1);
        let _ = endpoint.parse(&node_exporter(-1.0), 0);
    }
}
