//! On which cores the threads of a run are, as the system sees them.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tacho_testkit::wait_until;

/// Cores and priority (nice) of the threads of a process, by their names.
fn threads(process: u32) -> BTreeMap<String, (String, i32)> {
    let mut threads = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let file = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (status, stat) = (file("status"), file("stat"));
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        // Fields after the name, which may have blanks; nice is the 19th of all.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let nice = fields.split(' ').nth(16).and_then(|nice| nice.parse().ok());
        if let Some((cores, nice)) = cores.zip(nice) {
            threads.insert(file("comm").trim().to_owned(), (cores.trim().to_owned(), nice));
        }
    }
    threads
}

struct Run(Child);

impl Drop for Run {
    /// Ends it as Ctrl-C does, so that it takes the broker that it started with it.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}

/// A thread that reads /proc on the core of a generator that spins makes it wait each time.
#[test]
fn threads_that_collect_samples_keep_off_the_core_of_a_spinning_generator() {
    let cores = tacho_net::usable_cpus();
    let [broker, generator] = [cores[0], cores[cores.len() - 1]].map(|core| core.to_string());
    if broker == generator {
        eprintln!("skipped: one core cannot be divided");
        return;
    }
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--quiet", "--timing", "spin", "--threads", "1", "--dir"]);
    command.arg(&directory).args(["--broker-cores", &broker, "--generator-cores", &generator]);
    for variable in ["publishers=4", "subscribers=4", "target_throughput=40", "duration=10m"] {
        command.args(["--var", variable]);
    }
    let run = Run(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("starts"));

    let process = run.0.id();
    wait_until("the run collects samples", || {
        threads(process).get("run").is_some_and(|(_, nice)| *nice == 19)
    });
    let threads = threads(process);
    // The main thread has the priority that the run was started with.
    let (_, nice) = threads["tacho"];
    for name in ["load-0", "load-rtt"] {
        assert_eq!(threads.get(name), Some(&(generator.clone(), nice)), "{name} of {threads:?}");
    }
    for name in ["run", "monitor-local", "load-control"] {
        let (cores, _) = &threads[name];
        let on = |core: &str| cores.split([',', '-']).any(|part| part == core);
        assert!(!on(&generator), "{name} of {threads:?}");
    }
}
