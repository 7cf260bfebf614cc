//! Processes by number and time of start: a number says nothing once another process has got it.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// How long a process may take until it handles the signal that asks it to end.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks of the kernel since the machine started; absent where the system
    /// does not tell.
    #[serde(default)]
    pub started_ticks: Option<u64>,
}

/// The part of `/proc/PID/stat` that is of use.
struct Stat {
    parent: u32,
    started_ticks: u64,
    is_zombie: bool,
}

impl ProcessId {
    /// This process.
    pub fn own() -> Self {
        Self::of(std::process::id())
    }

    /// The process that has the number `pid` now.
    pub fn of(pid: u32) -> Self {
        Self { pid, started_ticks: stat(pid).map(|stat| stat.started_ticks) }
    }

    /// Whether it goes on: its number is in use, by a process that began when it did.
    pub fn is_alive(self) -> bool {
        match (self.started_ticks, stat(self.pid)) {
            (Some(ticks), Some(stat)) => stat.started_ticks == ticks && !stat.is_zombie,
            (Some(_), None) => false,
            // A system that does not tell times of start.
            (None, _) => {
                raw(self.pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
            }
        }
    }

    /// Whether this process was started by it, directly or through others.
    pub fn is_ancestor(self) -> bool {
        let mut pid = std::process::id();
        // A chain of parents has an end; the bound is against a system that says otherwise.
        for _ in 0..1000 {
            let Some(stat) = stat(pid) else { return false };
            pid = stat.parent;
            if pid == self.pid {
                return self.is_alive();
            }
        }
        false
    }

    /// Asks it to end as Ctrl-C does. One that has just begun and would die of it, without a
    /// record, gets a moment to be ready for it, as far as the system tells.
    ///
    /// # Errors
    /// When it has ended, or may not be signalled.
    pub fn interrupt(self) -> io::Result<()> {
        let until = Instant::now() + READY_WITHIN;
        while catches(self.pid, Signal::INT) == Some(false) && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        self.signal(Signal::INT)
    }

    #[cfg(target_os = "linux")]
    fn signal(self, signal: Signal) -> io::Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let pid = raw(self.pid).ok_or(io::ErrorKind::NotFound)?;
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        // The handle stays with the process that had the number when it was opened.
        if !self.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(pidfd_send_signal(handle, signal)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(self, signal: Signal) -> io::Result<()> {
        if !self.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let pid = raw(self.pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }
}

fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Whether a process handles a signal; `None` where the system does not tell.
fn catches(pid: u32, signal: Signal) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
    Some(caught >> (signal.as_raw() - 1) & 1 == 1)
}

/// The name of the program, in parentheses, may contain anything, parentheses too.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started_ticks: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn names_of_programs_do_not_move_fields() {
        let text = "42 (a) b) S 7 1 1 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 12345 100";
        let stat = parse(text).expect("is one");
        assert_eq!((stat.parent, stat.started_ticks, stat.is_zombie), (7, 12345, false));
        assert!(parse("42 (x) S 1").is_none() && parse("").is_none());
    }

    #[test]
    fn only_the_process_that_is_meant_is_signalled() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("starts");
        let process = ProcessId::of(child.id());
        assert!(process.is_alive() && !process.is_ancestor());
        assert!(ProcessId::own().is_alive());
        if let Some(ticks) = process.started_ticks {
            // As a process that has got the number of one that ended.
            let earlier = ProcessId { started_ticks: Some(ticks + 1), ..process };
            assert!(!earlier.is_alive());
            assert!(earlier.interrupt().is_err());
            assert!(child.try_wait().expect("is ours").is_none(), "another process was signalled");
        }
        process.interrupt().expect("is ours");
        child.wait().expect("ends");
        assert!(!process.is_alive() && process.interrupt().is_err());
    }

    #[test]
    fn handled_signals_are_told_from_others() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("starts");
        if fs::exists("/proc/self/status").expect("looks") {
            assert_eq!(catches(child.id(), Signal::INT), Some(false));
            // The runtime handles it, to tell a stack overflow.
            assert_eq!(catches(std::process::id(), Signal::SEGV), Some(true));
        }
        child.kill().expect("is ours");
        child.wait().expect("ends");
        assert_eq!(catches(0, Signal::INT), None);
    }

    #[test]
    fn parents_are_ancestors() {
        let parent = stat(std::process::id()).map(|stat| ProcessId::of(stat.parent));
        assert!(parent.is_none_or(ProcessId::is_ancestor));
        assert!(!ProcessId::own().is_ancestor());
    }
}
