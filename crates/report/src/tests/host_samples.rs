//! The seconds of a watched host.

use tacho_monitor::{
    CpuPercent, DiskRates, FileSystemBytes, HostRow, InterfaceRates, MemoryBytes, Pressure,
    ProcessRow, TcpRates,
};
use tacho_record::ResourceRow;

use super::samples::Noise;

/// A busy host whose network retransmits once.
pub(super) fn host(
    name: &str,
    target: Option<&str>,
    count: u64,
    noise: &mut Noise,
) -> Vec<ResourceRow> {
    (0..count)
        .map(|second| {
            let (user, system, softirq) =
                (22.0 + noise.next() * 6.0, 14.0 + noise.next() * 3.0, 6.0 + noise.next() * 2.0);
            let cpu = CpuPercent {
                user,
                system,
                softirq,
                irq: 0.4,
                nice: 0.2,
                iowait: 0.3 + noise.next() * 0.5,
                steal: noise.next(),
                idle: 100.0 - user - system - softirq - 2.4,
            };
            let memory = MemoryBytes {
                total: 8 << 30,
                used: 700 << 20,
                buffered: 64 << 20,
                cached: (2 << 30) + second * (1 << 20),
                free: 5 << 30,
                slab_reclaimable: Some(120 << 20),
                slab_unreclaimable: Some(40 << 20),
                available: Some(7 << 30),
            };
            let interface = InterfaceRates {
                name: "eth0".to_owned(),
                rx_bytes_per_s: 1.7e6 + noise.next() * 1e5,
                tx_bytes_per_s: 1.6e6 + noise.next() * 1e5,
                ..InterfaceRates::default()
            };
            let at_s = second as f64 + 0.9;
            let row = HostRow {
                at_ns: 0,
                length_ns: 1_000_000_000,
                host: name.to_owned(),
                source: "local".to_owned(),
                target: target.map(str::to_owned),
                cpu: Some(cpu),
                load: Some([1.2 + noise.next(), 0.9, 0.5]),
                memory: Some(memory),
                interfaces: vec![interface],
                disks: vec![DiskRates {
                    name: "nvme0n1".to_owned(),
                    written_bytes_per_s: 4e6 + noise.next() * 1e5,
                    writes_per_s: 900.0,
                    busy_percent: Some(31.0),
                    write_wait_us: Some(240.0),
                    ..DiskRates::default()
                }],
                file_systems: vec![FileSystemBytes {
                    mount_point: "/var/lib".to_owned(),
                    total: 100 << 30,
                    used: 20 << 30,
                    available: 75 << 30,
                }],
                tcp: TcpRates {
                    retransmits_per_s: Some(if second == 12 { 3.0 } else { 0.0 }),
                    ..TcpRates::default()
                },
                pressure: Some(Pressure { cpu_some: Some(3.0), ..Pressure::default() }),
                processes: vec![ProcessRow::default()],
                ..HostRow::default()
            };
            ResourceRow { at_s, host: row }
        })
        .collect()
}
