//! The machine that is measured, and the programs on it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::shell;

/// More than it takes until a broker gives free memory back to the system.
pub(super) const MEMORY_BACK: Duration = Duration::from_secs(5);

/// Share of busy cores above which the machine is not idle.
const IDLE_SHARE_MAX: f64 = 0.1;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    pub(crate) virtualised: bool,
    /// The nice value of this session's programs as a group, against all others (sched(7),
    /// autogroup); 0 unless it was set.
    pub(crate) group_nice: i32,
    pub(crate) rustc: String,
    pub(crate) mosquitto: String,
    pub(crate) revision: String,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = field(&cpuinfo, "model name").unwrap_or("unknown");
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib: f64 = field(&memory, "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or(0.0);
        let version = |program: &str, argument: &str| {
            let output = shell::command(program).arg(argument).output();
            let text = output.map(|output| output.stdout).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines().next().unwrap_or("absent").trim().to_owned()
        };
        let mosquitto = shell::find("mosquitto")
            .map_or_else(|| "absent".to_owned(), |path| version(&path.to_string_lossy(), "-h"));
        let mut describe = shell::command("git");
        describe.args(["describe", "--always", "--dirty", "--abbrev=10"]);
        Self {
            cpu: model.to_owned(),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory_gib: kib / 1024.0 / 1024.0,
            kernel: version("uname", "-srm"),
            virtualised: cpuinfo.contains(" hypervisor"),
            group_nice: fs::read_to_string("/proc/self/autogroup")
                .ok()
                .and_then(|text| group_nice(&text))
                .unwrap_or(0),
            rustc: version("rustc", "--version"),
            mosquitto,
            revision: shell::output(&mut describe).unwrap_or_default().trim().to_owned(),
        }
    }
}

/// Of `/autogroup-63 nice -19`.
fn group_nice(text: &str) -> Option<i32> {
    text.trim().rsplit_once(" nice ")?.1.parse().ok()
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// Busy share of all cores over half a second, 0 to 1.
fn busy_share() -> Option<f64> {
    let look = || -> Option<(u64, u64)> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().next()?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal
        let idle = fields.get(3)? + fields.get(4)?;
        Some((idle, fields.iter().sum()))
    };
    let (idle_before, total_before) = look()?;
    thread::sleep(Duration::from_millis(500));
    let (idle, total) = look()?;
    let passed = total.checked_sub(total_before).filter(|passed| *passed > 0)?;
    Some(1.0 - (idle - idle_before) as f64 / passed as f64)
}

/// Waits at most this many seconds until the machine is idle; returns whether it is.
pub(crate) fn wait_until_idle(seconds_max: u64) -> bool {
    let deadline = Instant::now() + Duration::from_secs(seconds_max);
    loop {
        match busy_share() {
            Some(share) if share > IDLE_SHARE_MAX && Instant::now() < deadline => {}
            Some(share) => return share <= IDLE_SHARE_MAX,
            None => return true,
        }
    }
}

/// A loopback port on which no process listens.
pub(crate) fn free_port() -> Result<u16> {
    let address =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    Ok(address.context("no free port")?.port())
}

/// Date and time in UTC, as `2026-01-31T23:59:59Z`.
pub(crate) fn utc_now() -> Result<String> {
    let text = shell::output(shell::command("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(text.trim().to_owned())
}

/// Time of all cores, in ticks.
pub(crate) struct Steal {
    steal: u64,
    total: u64,
}

impl Steal {
    pub(crate) fn look() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        Self::parse(&text).context("/proc/stat has no line of all cores")
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; the rest is part of these.
        let fields: Vec<u64> =
            line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        Some(Self { steal: *fields.get(7)?, total: fields.iter().sum() })
    }

    /// Share of the time since then that the hypervisor took.
    pub(crate) fn percent_since(&self) -> Result<f64> {
        Ok(self.percent_until(&Self::look()?))
    }

    fn percent_until(&self, later: &Self) -> f64 {
        let total = later.total.saturating_sub(self.total).max(1);
        later.steal.saturating_sub(self.steal) as f64 * 100.0 / total as f64
    }
}

/// Resident memory of a process. Read here and not by `tacho-monitor`: the chores are built without
/// the crates of the product.
pub(crate) fn rss_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no VmRSS: the process has ended")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_that_of_the_group() {
        assert_eq!(group_nice("/autogroup-63 nice -19\n"), Some(-19));
        assert_eq!(group_nice("/autogroup-63 nice 0\n"), Some(0));
        assert_eq!(group_nice(""), None);
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Steal::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2\n").expect("parses");
        let after = Steal::parse("cpu  20 0 20 150 0 0 0 14 9 0\n").expect("parses");
        let percent = before.percent_until(&after);
        assert!((percent - 4.0 * 100.0 / 104.0).abs() < 1e-9, "{percent}");
        assert_eq!(before.percent_until(&before), 0.0);
        assert!(Steal::parse("intr 1 2 3").is_none());
    }
}
