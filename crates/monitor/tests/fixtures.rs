//! The samplers against a synthetic `/proc`, and against the real one where it exists.

use std::fs;
use std::path::Path;

use tacho_monitor::{
    CpuSource, HostSampler, MonitorError, ProcRoot, ProcessSampler, ProcessTreeSampler,
    resident_bytes,
};

const SECOND_NS: u64 = 1_000_000_000;

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("has a parent")).expect("directory");
    fs::write(path, text).expect("file");
}

fn stat(state: char, utime: u64, stime: u64) -> String {
    format!(
        "42 (bro) ker) {state} 1 42 42 0 -1 4194560 100 0 0 0 {utime} {stime} 0 0 20 0 2 0 100 \
         1000000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

const STATUS: &str = "Name:\tbroker\nState:\tS (sleeping)\nTgid:\t42\nPid:\t42\nPPid:\t1\n\
    TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\n\
    VmHWM:\t    9000 kB\nVmRSS:\t    8000 kB\nThreads:\t2\nSigQ:\t0/100\n\
    SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n\
    SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\nCapInh:\t0000000000000000\n\
    CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-1,3\n";

fn thread(root: &Path, tid: u32, cpu_ns: u64) {
    write(root, &format!("42/task/{tid}/comm"), "shard-0\n");
    write(root, &format!("42/task/{tid}/schedstat"), &format!("{cpu_ns} 5 6\n"));
}

fn process() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    let root = directory.path();
    write(root, "stat", "cpu  0 0 0 0\n");
    write(root, "42/stat", &stat('S', 0, 0));
    write(root, "42/status", STATUS);
    write(root, "42/fd/0", "");
    write(root, "42/fd/1", "");
    thread(root, 42, 100_000_000);
    thread(root, 43, 50_000_000);
    directory
}

#[test]
fn sums_the_threads_of_a_process() {
    let directory = process();
    let mut sampler = ProcessSampler::with_root(ProcRoot::new(directory.path()), 42);
    let first = sampler.sample(SECOND_NS).expect("sample");
    assert_eq!(first.cpu_ns, 150_000_000);
    assert_eq!(first.cpu_source, CpuSource::Schedstat);
    assert_eq!(first.rss_bytes, 8000 * 1024);
    assert_eq!(first.rss_max_bytes, 9000 * 1024);
    assert_eq!(sampler.resident_bytes().expect("status"), first.rss_bytes);
    assert_eq!(first.open_fds, Some(2));
    assert_eq!(first.cores_allowed, [0, 1, 3]);
    assert_eq!(first.threads[0].name, "shard-0");

    thread(directory.path(), 43, 550_000_000);
    let second = sampler.sample(2 * SECOND_NS).expect("sample");
    assert!((second.cpu_percent_since(&first) - 50.0).abs() < 1e-9);
    assert_eq!(second.threads_percent_since(&first), [(42, 0.0), (43, 50.0)]);
}

#[test]
fn an_exited_thread_keeps_its_time() {
    let directory = process();
    let mut sampler = ProcessSampler::with_root(ProcRoot::new(directory.path()), 42);
    let first = sampler.sample(0).expect("sample");
    fs::remove_dir_all(directory.path().join("42/task/43")).expect("thread ends");
    let second = sampler.sample(SECOND_NS).expect("sample");
    assert_eq!(second.cpu_ns, first.cpu_ns);
    // Another thread reuses the id.
    thread(directory.path(), 43, 10_000_000);
    let third = sampler.sample(2 * SECOND_NS).expect("sample");
    assert_eq!(third.cpu_ns, first.cpu_ns + 10_000_000);
}

#[test]
fn a_thread_between_two_samples_is_part_of_the_process_total() {
    let directory = process();
    let mut sampler = ProcessSampler::with_root(ProcRoot::new(directory.path()), 42);
    sampler.sample(0).expect("sample");
    // 0.8 s in total, of which the live threads account for 0.15 s.
    write(directory.path(), "42/stat", &stat('R', 60, 20));
    let sample = sampler.sample(SECOND_NS).expect("sample");
    assert_eq!((sample.cpu_ns, sample.cpu_source), (800_000_000, CpuSource::Stat));
}

#[test]
fn without_schedstat_the_ticks_are_used() {
    let directory = process();
    for tid in [42, 43] {
        fs::remove_file(directory.path().join(format!("42/task/{tid}/schedstat"))).expect("gone");
    }
    write(directory.path(), "42/stat", &stat('R', 1, 1));
    let mut sampler = ProcessSampler::with_root(ProcRoot::new(directory.path()), 42);
    let sample = sampler.sample(0).expect("sample");
    assert_eq!((sample.cpu_ns, sample.cpu_source), (20_000_000, CpuSource::Stat));
}

#[test]
fn an_exited_process_is_reported() {
    let directory = process();
    let root = ProcRoot::new(directory.path());
    let error = ProcessSampler::with_root(root.clone(), 77).sample(0).expect_err("no such process");
    assert_eq!(error.to_string(), "process 77 is not running");
    write(directory.path(), "42/stat", &stat('Z', 0, 0));
    let error = ProcessSampler::with_root(root, 42).sample(0).expect_err("a zombie");
    assert!(matches!(error, MonitorError::ProcessGone { pid: 42 }), "{error}");
}

fn host(stat: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    write(directory.path(), "stat", stat);
    write(directory.path(), "loadavg", "0.50 0.25 0.10 2/100 4242\n");
    let mut memory = String::from("MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n");
    for name in ["Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree"] {
        memory.push_str(&format!("{name}: 10 kB\n"));
    }
    for name in ["Dirty", "Writeback", "Mapped", "Slab", "Committed_AS"] {
        memory.push_str(&format!("{name}: 10 kB\n"));
    }
    for name in ["VmallocTotal", "VmallocUsed", "VmallocChunk"] {
        memory.push_str(&format!("{name}: 10 kB\n"));
    }
    write(directory.path(), "meminfo", &memory);
    directory
}

#[test]
fn the_host_by_state_and_core() {
    // Core 1 is offline: cores keep their own numbers.
    let directory = host("cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0\n");
    let sampler = HostSampler::with_root(ProcRoot::new(directory.path()));
    let first = sampler.sample(0).expect("sample");
    write(
        directory.path(),
        "stat",
        "cpu  60 0 0 100 0 0 0 40\ncpu0 10 0 0 90 0 0 0 0 0 0\ncpu2 50 0 0 10 0 0 0 40\nintr 1\n",
    );
    let second = sampler.sample(SECOND_NS).expect("sample");
    assert!((second.not_idle_percent_since(&first) - 50.0).abs() < 1e-9);
    assert!((second.busy_percent_since(&first, &[0]) - 10.0).abs() < 1e-9);
    assert!((second.busy_percent_since(&first, &[2]) - 50.0).abs() < 1e-9);
    assert!((second.busy_percent_since(&first, &[0, 2]) - 30.0).abs() < 1e-9);
    assert!((second.cpu_since(&first).steal_percent() - 20.0).abs() < 1e-9);
    assert!((second.memory_percent() - 60.0).abs() < 1e-9);
    assert!((second.load.one - 0.5).abs() < 1e-6);
}

#[test]
fn a_malformed_host_file_is_reported() {
    let directory = host("cpu  1 2\n");
    let sampler = HostSampler::with_root(ProcRoot::new(directory.path()));
    let error = sampler.sample(0).expect_err("too few numbers").to_string();
    assert!(error.contains("stat") && error.contains("four numbers"), "{error}");
    fs::remove_file(directory.path().join("stat")).expect("gone");
    let error = sampler.sample(0).expect_err("no file").to_string();
    assert!(error.starts_with("cannot read"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_real_proc() {
    let mut sampler = ProcessSampler::new(std::process::id());
    let first = sampler.sample(0).expect("sample");
    let mut sum = 0_u64;
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let second = loop {
        for _ in 0..1_000_000 {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        assert_ne!(sum, 1);
        let second = sampler.sample(60_000_000).expect("sample");
        if second.cpu_ns > first.cpu_ns {
            break second;
        }
        assert!(std::time::Instant::now() < give_up, "CPU time does not increase: {second:?}");
    };
    assert!(resident_bytes(std::process::id()).expect("status") > 0);
    assert!(second.rss_bytes > 0 && !second.threads.is_empty() && !second.cores_allowed.is_empty());
    let host = HostSampler::default().sample(0).expect("sample");
    assert!(host.memory_total_bytes > 0 && !host.cores.is_empty());
}

#[test]
fn a_broker_of_several_processes_is_sampled_as_one() {
    let directory = process();
    let (root, proc) = (directory.path(), ProcRoot::new(directory.path()));
    write(root, "42/task/42/children", "50 \n");
    for pid in [50, 51] {
        write(root, &format!("{pid}/stat"), &stat('S', 0, 0));
        write(root, &format!("{pid}/status"), STATUS);
        write(root, &format!("{pid}/task/{pid}/comm"), "worker\n");
        write(root, &format!("{pid}/task/{pid}/schedstat"), "20000000 0 0\n");
    }
    write(root, "50/task/50/children", "51 ");
    let mut sampler = ProcessTreeSampler::with_root(proc, 42);
    let first = sampler.sample(0).expect("sample");
    assert_eq!((first.cpu_ns, first.threads.len()), (190_000_000, 4));
    assert_eq!(first.rss_bytes, 3 * 8000 * 1024);
    assert_eq!(sampler.pids().into_iter().collect::<Vec<_>>(), [42, 50, 51]);

    // One ends: its time stays.
    write(root, "51/task/51/schedstat", "30000000 0 0\n");
    sampler.sample(SECOND_NS).expect("sample");
    write(root, "50/task/50/children", "");
    fs::remove_dir_all(root.join("51")).expect("it ends");
    let last = sampler.sample(2 * SECOND_NS).expect("sample");
    assert_eq!((last.cpu_ns, last.threads.len()), (200_000_000, 3));
}

#[test]
fn a_control_group_of_the_broker_alone_counts_its_cpu() {
    let directory = process();
    let root = directory.path();
    let group = "sys/fs/cgroup/system.slice/broker.service";
    write(root, "42/cgroup", "0::/system.slice/broker.service\n");
    write(root, &format!("{group}/cgroup.procs"), "42\n");
    write(root, &format!("{group}/cpu.stat"), "usage_usec 7000\nuser_usec 5000\n");
    let proc = || ProcRoot::new(root).with_sys(root.join("sys"));
    let sample = ProcessTreeSampler::with_root(proc(), 42).sample(0).expect("sample");
    assert_eq!((sample.cpu_ns, sample.cpu_source), (7_000_000, CpuSource::ControlGroup));

    // A group that others share says nothing about the broker.
    write(root, &format!("{group}/cgroup.procs"), "42\n4711\n");
    let sample = ProcessTreeSampler::with_root(proc(), 42).sample(0).expect("sample");
    assert_eq!((sample.cpu_ns, sample.cpu_source), (150_000_000, CpuSource::Schedstat));

    // Version 1.
    write(root, "42/cgroup", "4:cpu,cpuacct:/broker\n1:name=systemd:/x\n");
    write(root, "sys/fs/cgroup/cpuacct/broker/cgroup.procs", "42\n");
    write(root, "sys/fs/cgroup/cpuacct/broker/cpuacct.usage", "123456\n");
    let sample = ProcessTreeSampler::with_root(proc(), 42).sample(0).expect("sample");
    assert_eq!((sample.cpu_ns, sample.cpu_source), (123_456, CpuSource::ControlGroup));
}
