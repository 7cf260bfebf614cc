//! Cores, descriptors and the CPU time of processes.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Keeps this thread, and those that it starts, on one core.
pub(crate) fn pin_self(cpu: usize) -> Result<()> {
    pin_self_to(&[cpu])
}

/// The same with several cores.
pub(crate) fn pin_self_to(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on cores {cpus:?}"))
}

/// CPU time of all live threads of a process, in nanoseconds.
pub(crate) fn cpu_ns(pid: u32) -> Result<u64> {
    let tasks = format!("/proc/{pid}/task");
    let mut total = 0;
    for entry in fs::read_dir(&tasks).with_context(|| format!("cannot list {tasks}"))? {
        let path = entry.context("cannot list threads")?.path().join("schedstat");
        // A thread may end between the listing and the read.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let first = text.split_whitespace().next().unwrap_or("0");
        total += first.parse::<u64>().with_context(|| format!("odd schedstat: {text:?}"))?;
    }
    Ok(total)
}

/// Raises the soft limit of open files to the hard one.
pub(crate) fn raise_descriptor_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, wanted).context("cannot raise the limit of open files")
}

/// The monotonic clock.
pub(crate) fn now_ns() -> u64 {
    time_ns(ClockId::Monotonic)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    time_ns(ClockId::ThreadCPUTime)
}

fn time_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let rest = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds * 1_000_000_000 + rest
}
