//! The machine sampler against a synthetic `/proc` that changes between samples, and the real one.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use tacho_monitor::{
    HostRow, MachineSampler, ProcRoot, ProcessSelector, WatchedProcess, find_processes,
};

const SECOND_NS: u64 = 1_000_000_000;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().expect("temporary directory"));
        machine.write("proc/stat", "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\nctxt 1000\n");
        machine.write("proc/loadavg", "1.50 0.75 0.25 2/100 4242\n");
        machine.write("proc/sys/kernel/hostname", "broker-7\n");
        let mut memory = String::from("MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 400 kB\n");
        memory.push_str("Buffers: 50 kB\nCached: 100 kB\nSlab: 30 kB\nSReclaimable: 20 kB\n");
        memory.push_str("SUnreclaim: 10 kB\n");
        for name in ["SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Dirty"] {
            memory.push_str(&format!("{name}: 10 kB\n"));
        }
        for name in ["Writeback", "Mapped", "Committed_AS"] {
            memory.push_str(&format!("{name}: 10 kB\n"));
        }
        for name in ["VmallocTotal", "VmallocUsed", "VmallocChunk"] {
            memory.push_str(&format!("{name}: 10 kB\n"));
        }
        machine.write("proc/meminfo", &memory);
        machine
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("directory");
        fs::write(path, text).expect("file");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn root(&self) -> ProcRoot {
        ProcRoot::new(self.path("proc")).with_sys(self.path("sys"))
    }

    fn sampler(&self, selectors: &[ProcessSelector]) -> MachineSampler {
        let watched = selectors.iter().map(|selector| WatchedProcess {
            selector: selector.clone(),
            target: Some("node1".to_owned()),
            optional: false,
        });
        MachineSampler::new(self.root(), watched.collect())
    }

    fn network(&self, rx: u64, packets: u64, drops: u64, retransmits: u64, overflows: u64) {
        self.write(
            "proc/net/dev",
            &format!(
                "Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame \
                 compressed multicast|bytes packets errs drop fifo colls carrier compressed\n  \
                 ifb0:       0       0    0    0    0     0          0         0        0       0 \
                 0    0    0     0       0          0\n  eth0:{rx} {packets} 0 {drops} 0 0 0 0 \
                 {rx} {packets} 0 {drops} 0 0 0 0\n"
            ),
        );
        self.write(
            "proc/net/snmp",
            &format!(
                "Ip: Forwarding DefaultTTL\nIp: 2 64\n\
                 Tcp: RtoAlgorithm MaxConn ActiveOpens CurrEstab RetransSegs\n\
                 Tcp: 1 -1 10 42 {retransmits}\n"
            ),
        );
        self.write(
            "proc/net/netstat",
            &format!(
                "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 {overflows} \
                 {overflows}\nIpExt: InNoRoutes\nIpExt: 0\n"
            ),
        );
    }

    /// A disk with one partition: reads and their sectors; writes, sectors and milliseconds.
    fn disk(&self, reads: (u64, u64), writes: (u64, u64, u64), busy_ms: u64) {
        let ((reads, read), (writes, written, write_ms)) = (reads, writes);
        let counters = format!("{reads} 0 {read} 9 {writes} 0 {written} {write_ms} 0 {busy_ms} 5");
        self.write(
            "proc/diskstats",
            &format!(
                "   7  0 loop0 5 0 5 5 0 0 0 0 0 5 5\n 254  0 vda {counters}\n 254  1 vda1 \
                 {counters}\n"
            ),
        );
    }

    fn process(&self, pid: u32, comm: &str, cpu_ms: u64) {
        let ticks = cpu_ms / 10;
        self.write(
            &format!("proc/{pid}/stat"),
            &format!(
                "{pid} ({comm}) S 1 42 42 0 -1 4194560 100 0 0 0 {ticks} 0 0 0 20 0 2 0 100 1000000 \
                 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            ),
        );
        self.write(
            &format!("proc/{pid}/status"),
            &format!(
                "Name:\t{comm}\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\n\
                 TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\n\
                 VmHWM:\t 9000 kB\nVmRSS:\t 8000 kB\nThreads:\t1\nSigQ:\t0/100\n\
                 SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n\
                 SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n\
                 SigCgt:\t0000000000000000\nCapInh:\t0000000000000000\n\
                 CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0\n"
            ),
        );
        self.write(&format!("proc/{pid}/comm"), &format!("{comm}\n"));
        self.write(&format!("proc/{pid}/task/{pid}/comm"), &format!("{comm}\n"));
        let cpu_ns = cpu_ms * 1_000_000;
        self.write(&format!("proc/{pid}/task/{pid}/schedstat"), &format!("{cpu_ns} 0 0\n"));
    }
}

fn two_samples(sampler: &mut MachineSampler, change: impl FnOnce()) -> HostRow {
    assert_eq!(sampler.sample(5 * SECOND_NS).expect("sample"), None);
    change();
    sampler.sample(7 * SECOND_NS).expect("sample").expect("a row")
}

#[test]
fn a_row_is_the_change_between_two_samples() {
    let machine = Machine::new();
    machine.network(1000, 10, 1, 5, 0);
    machine.disk((100, 800), (50, 2000, 500), 1000);
    machine.write("proc/self/mountinfo", "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
    machine.write("proc/sys/fs/file-nr", "752\t2\t9000\n");
    machine.write("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000\n");
    let stall = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 total=0\n";
    machine.write("proc/pressure/io", stall);
    let mut sampler = machine.sampler(&[]);
    let row = two_samples(&mut sampler, || {
        machine.network(5000, 30, 5, 9, 6);
        machine.disk((100, 800), (250, 6000, 700), 1500);
        machine.write(
            "proc/stat",
            "cpu  20 4 30 100 10 2 24 10\ncpu0 0 0 0 50 0 0 50 0\ncpu1 1 1 1 1\nctxt 1500\n",
        );
        machine.write("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 total=501000\n");
    });
    assert_eq!(
        (row.at_ns, row.length_ns, row.clock_error_ns),
        (7 * SECOND_NS, 2 * SECOND_NS, Some(0))
    );
    assert_eq!(row.host, "broker-7");
    let states = row.cpu.expect("cpu").states().map(|(name, value)| (name, value.round()));
    assert_eq!(
        states,
        [
            ("user", 10.0),
            ("nice", 2.0),
            ("system", 15.0),
            ("irq", 1.0),
            ("softirq", 12.0),
            ("iowait", 5.0),
            ("steal", 5.0),
            ("idle", 50.0)
        ]
    );
    // The second core was not there before.
    assert_eq!(row.cores.len(), 1);
    assert_eq!((row.cores[0].core, row.cores[0].cpu.softirq), (0, 50.0));
    assert_eq!(row.load, Some([1.5, 0.75, 0.25]));
    let memory = row.memory.expect("memory");
    assert_eq!((memory.total, memory.free), (1000 * 1024, 300 * 1024));
    assert_eq!((memory.buffered, memory.cached), (50 * 1024, 100 * 1024));
    assert_eq!(memory.used, (1000 - 300 - 50 - 100 - 30) * 1024);
    assert_eq!(memory.slab_reclaimable, Some(20 * 1024));
    assert!((memory.percent() - 60.0).abs() < 1e-9);
    // Unused interfaces are left out.
    assert_eq!(row.interfaces.len(), 1);
    let eth0 = &row.interfaces[0];
    assert_eq!((eth0.name.as_str(), eth0.rx_bytes_per_s), ("eth0", 2000.0));
    assert_eq!((eth0.tx_packets_per_s, eth0.rx_drops_per_s), (Some(10.0), Some(2.0)));
    // Neither the partition nor the loop device.
    assert_eq!(row.disks.len(), 1, "{:?}", row.disks);
    let vda = &row.disks[0];
    assert_eq!((vda.name.as_str(), vda.reads_per_s, vda.writes_per_s), ("vda", 0.0, 100.0));
    assert_eq!((vda.read_bytes_per_s, vda.written_bytes_per_s), (0.0, 2000.0 * 512.0));
    assert_eq!((vda.busy_percent, vda.read_wait_us), (Some(25.0), None));
    assert_eq!(vda.write_wait_us, Some(1000.0));
    assert_eq!(row.file_systems.len(), 1);
    let root = &row.file_systems[0];
    assert_eq!(root.mount_point, "/");
    assert!(root.total >= root.used + root.available && root.used > 0, "{root:?}");
    assert_eq!(row.tcp.retransmits_per_s, Some(2.0));
    assert_eq!(
        (row.tcp.listen_overflows_per_s, row.tcp.listen_drops_per_s),
        (Some(3.0), Some(3.0))
    );
    assert_eq!(row.tcp.established, Some(42));
    assert_eq!((row.descriptors, row.descriptors_max), (Some(750), Some(9000)));
    let pressure = row.pressure.expect("pressure");
    assert_eq!((pressure.cpu_some, pressure.io_full), (Some(25.0), Some(0.0)));
    assert_eq!(pressure.memory_some, None);
    assert_eq!(row.context_switches_per_s, Some(250.0));
}

#[test]
fn missing_kernel_files_are_absent_metrics() {
    let machine = Machine::new();
    let row = two_samples(&mut machine.sampler(&[]), || ());
    assert_eq!((row.pressure, row.descriptors, row.interfaces.len()), (None, None, 0));
    assert_eq!((row.disks.len(), row.file_systems.len()), (0, 0));
    assert_eq!(row.tcp, tacho_monitor::TcpRates::default());
    assert!((row.cpu.expect("cpu").idle - 100.0).abs() < 1e-9);
}

#[test]
fn a_process_is_found_by_name_followed_and_found_again() {
    let machine = Machine::new();
    machine.process(42, "mosquitto", 100);
    machine.write("proc/42/fd/0", "");
    machine.write("proc/42/cgroup", "1:cpu:/\n0::/brokers/one\n");
    machine.write("sys/fs/cgroup/brokers/one/memory.max", "max\n");
    machine.write("sys/fs/cgroup/brokers/memory.max", "1048576\n");
    machine.write("sys/fs/cgroup/brokers/one/cpu.max", "150000 100000\n");
    machine.write("sys/fs/cgroup/brokers/one/cpu.stat", "usage_usec 5\nthrottled_usec 1000\n");
    let mut sampler = machine.sampler(&[ProcessSelector::Name("mosquitto".to_owned())]);
    let row = two_samples(&mut sampler, || {
        machine.process(42, "mosquitto", 1100);
        machine
            .write("sys/fs/cgroup/brokers/one/cpu.stat", "usage_usec 5\nthrottled_usec 201000\n");
    });
    let process = &row.processes[0];
    assert_eq!((process.name.as_str(), process.pid), ("mosquitto", Some(42)));
    assert_eq!(process.target.as_deref(), Some("node1"));
    assert!((process.cpu_percent.expect("cpu") - 50.0).abs() < 1e-9);
    assert_eq!((process.rss_bytes, process.threads), (Some(8000 * 1024), Some(1)));
    assert_eq!(process.descriptors, Some(1));
    assert_eq!(process.cpu_limit_cores, Some(1.5));
    assert_eq!(process.memory_limit_bytes, Some(1 << 20));
    assert!((process.throttled_percent.expect("throttled") - 10.0).abs() < 1e-9);
    assert!(sampler.missing().is_empty());

    // It exits, and another process with that name starts.
    fs::remove_dir_all(machine.path("proc/42")).expect("gone");
    let row = sampler.sample(8 * SECOND_NS).expect("sample").expect("row");
    assert!(row.processes.is_empty());
    assert_eq!(sampler.missing(), ["a process named mosquitto"]);
    machine.process(43, "mosquitto", 0);
    sampler.sample(9 * SECOND_NS).expect("sample");
    let row = sampler.sample(10 * SECOND_NS).expect("sample").expect("row");
    assert_eq!(row.processes[0].pid, Some(43));
}

#[test]
fn programs_with_long_names_are_found_by_file_name() {
    let machine = Machine::new();
    machine.process(7, "erl_child_setup", 0);
    machine.process(8, "worker", 0);
    machine.write("proc/8/cmdline", "/opt/bin/very-long-broker-name\0--port\0x\0");
    let find =
        |name: &str| find_processes(&machine.root(), &ProcessSelector::Name(name.to_owned()));
    assert_eq!(find("very-long-broker-name"), [8]);
    assert_eq!(find("erl_child_setup_of_emqx"), [7], "the kernel truncates names to 15 bytes");
    assert!(find("work").is_empty());
    assert!(find_processes(&machine.root(), &ProcessSelector::Pid(9)).is_empty());
}

#[test]
#[cfg(unix)]
fn a_process_is_found_by_the_port_that_it_listens_on() {
    let machine = Machine::new();
    let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                timeout inode\n";
    let line = |port: u16, state: &str, inode: u32| {
        format!(
            "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 \
             00000000     0        0 {inode} 1 00000000b602a9c4 100 0 0 10 0\n"
        )
    };
    let v4 = format!("{head}{}{}", line(1883, "01", 11), line(9999, "0A", 12));
    machine.write("proc/net/tcp", &v4);
    let v6 = line(1883, "0A", 13).replace("0100007F", &"0".repeat(32));
    machine.write("proc/net/tcp6", &format!("{head}{v6}"));
    for (pid, inode) in [(21, 11), (22, 13), (23, 12)] {
        machine.process(pid, "broker", 0);
        fs::create_dir_all(machine.path(&format!("proc/{pid}/fd"))).expect("directory");
        let link = machine.path(&format!("proc/{pid}/fd/5"));
        std::os::unix::fs::symlink(format!("socket:[{inode}]"), link).expect("link");
    }
    // 21 has a connection on that port, 23 listens on another.
    assert_eq!(find_processes(&machine.root(), &ProcessSelector::Port(1883)), [22]);
    assert!(find_processes(&machine.root(), &ProcessSelector::Port(1884)).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn the_real_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let found = find_processes(&ProcRoot::default(), &ProcessSelector::Port(port));
    assert_eq!(found, [std::process::id()]);
    let watched = vec![WatchedProcess {
        selector: ProcessSelector::Port(port),
        target: None,
        optional: false,
    }];
    let mut sampler = MachineSampler::new(ProcRoot::default(), watched);
    assert_eq!(sampler.sample(0).expect("sample"), None);
    let row = sampler.sample(SECOND_NS).expect("sample").expect("row");
    let states: f64 = row.cpu.expect("cpu").states().iter().map(|(_, share)| share).sum();
    assert!((states - 100.0).abs() < 1e-6, "{row:?}");
    assert!(!row.cores.is_empty() && row.memory.is_some_and(|memory| memory.total > 0));
    assert_eq!(row.processes.len(), 1);
    assert!(row.processes[0].rss_bytes > Some(0));
    assert!(Path::new("/proc").exists());
}
