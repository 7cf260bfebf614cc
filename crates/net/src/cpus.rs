//! The CPUs that a thread may use, and binding it to some of them.

use std::io;

/// The CPUs that the calling thread may use, in ascending order; empty where the system has no
/// such call.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn usable_cpus() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// The CPUs that the calling thread may use, in ascending order; empty where the system has no
/// such call.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn usable_cpus() -> Vec<usize> {
    Vec::new()
}

/// Binds the calling thread, and the threads and processes it starts from now on, to `cpus`. Does
/// nothing where the system has no such call.
///
/// # Errors
/// There is no such CPU, or the system does not allow it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn bind_to_cpus(cpus: &[usize]) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            let what = format!("there is no CPU {cpu}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Binds the calling thread, and the threads and processes it starts from now on, to `cpus`. Does
/// nothing where the system has no such call.
///
/// # Errors
/// There is no such CPU, or the system does not allow it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn bind_to_cpus(_cpus: &[usize]) -> io::Result<()> {
    Ok(())
}

/// Gives the calling thread, and the threads and processes it starts from now on, the lowest
/// priority until they end. Does nothing where the system has priorities of whole processes alone,
/// or does not allow it.
pub fn lower_priority() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // On Linux, 0 is the calling thread (setpriority(2), "C library/kernel differences").
    let _ = rustix::process::setpriority_process(None, 19);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_that_cpu_alone() {
        let all = usable_cpus();
        let last = *all.last().unwrap();
        let seen = std::thread::spawn(move || bind_to_cpus(&[last]).map(|()| usable_cpus()));
        assert_eq!(seen.join().unwrap().unwrap(), [last]);
        assert_eq!(usable_cpus(), all, "other threads are not affected");
    }

    #[test]
    fn a_thread_lowers_its_own_priority_alone() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let lowered = std::thread::spawn(move || {
            lower_priority();
            priority()
        });
        assert_eq!(lowered.join().unwrap(), 19);
        assert_eq!(priority(), before);
    }
}
