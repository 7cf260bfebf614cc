//! What an agent uses, as it tells its controller while a run goes on.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tacho_bus::Link;
use tacho_monitor::{ProcRoot, now_ns, retransmitted_segments};

/// How often an agent tells.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Counters of an agent's process and machine at a moment of its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AgentCounters {
    at_ns: u64,
    /// CPU time of the process.
    cpu_ns: u64,
    /// TCP segments that the machine has sent again.
    retransmits: Option<u64>,
}

impl AgentCounters {
    fn read() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            at_ns: now_ns(),
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            retransmits: retransmitted_segments(&ProcRoot::default()),
        }
    }
}

/// Reads the counters when they are due.
#[derive(Debug, Default)]
pub(super) struct Telling {
    last: Option<Instant>,
}

impl Telling {
    pub(super) fn due(&mut self) -> Option<AgentCounters> {
        if self.last.is_some_and(|last| last.elapsed() < TELL_EVERY) {
            return None;
        }
        self.last = Some(Instant::now());
        Some(AgentCounters::read())
    }
}

/// The controller's side: what an agent told last, and its link.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) counters: Arc<Mutex<Option<AgentCounters>>>,
    pub(super) link: Weak<Link>,
}

impl Told {
    pub(super) fn sample(&self) -> AgentSample {
        let counters = *self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let bus = self.link.upgrade().map(|link| link.bytes());
        AgentSample { at_ns: now_ns(), counters, bus }
    }
}

/// An agent's counters, and those of its link, at one moment of the controller's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentSample {
    at_ns: u64,
    counters: Option<AgentCounters>,
    /// Bytes to the agent and from it.
    bus: Option<(u64, u64)>,
}

/// What an agent used between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AgentUsage {
    /// CPU of the process, one core = 100.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) retransmits_per_s: Option<f64>,
    /// Bytes per second on the bus, to the agent and from it.
    pub(crate) bus_down_bytes_per_s: Option<f64>,
    pub(crate) bus_up_bytes_per_s: Option<f64>,
}

impl AgentSample {
    /// What was used between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> AgentUsage {
        let mut usage = AgentUsage::default();
        if let (Some(now), Some(before)) = (self.counters, earlier.counters) {
            let per_ns = per(now.at_ns, before.at_ns);
            usage.cpu_percent = per_ns(now.cpu_ns, before.cpu_ns).map(|share| share * 100.0);
            let retransmits = now.retransmits.zip(before.retransmits);
            usage.retransmits_per_s = retransmits
                .and_then(|(now, before)| per_ns(now, before))
                .map(|per_ns| per_ns * 1e9);
        }
        if let (Some(now), Some(before)) = (self.bus, earlier.bus) {
            let per_ns = per(self.at_ns, earlier.at_ns);
            let per_s = |now: u64, before: u64| per_ns(now, before).map(|per_ns| per_ns * 1e9);
            usage.bus_down_bytes_per_s = per_s(now.0, before.0);
            usage.bus_up_bytes_per_s = per_s(now.1, before.1);
        }
        usage
    }
}

/// The rise of a counter per nanosecond; `None` without time between.
fn per(now_ns: u64, before_ns: u64) -> impl Fn(u64, u64) -> Option<f64> {
    let passed_ns = now_ns.saturating_sub(before_ns);
    move |now, before| (passed_ns > 0).then(|| now.saturating_sub(before) as f64 / passed_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_between_two_readings_of_the_agents_clock() {
        let sample = |at_s: u64, told_s: u64, cpu_ms: u64, bus: u64| AgentSample {
            at_ns: at_s * 1_000_000_000,
            counters: Some(AgentCounters {
                at_ns: told_s * 1_000_000_000,
                cpu_ns: cpu_ms * 1_000_000,
                retransmits: Some(cpu_ms),
            }),
            bus: Some((bus, 3 * bus)),
        };
        let (before, now) = (sample(10, 1_000, 500, 100), sample(14, 1_002, 1_500, 500));
        let usage = now.since(&before);
        assert_eq!((usage.cpu_percent, usage.retransmits_per_s), (Some(50.0), Some(500.0)));
        assert_eq!(usage.bus_down_bytes_per_s, Some(100.0));
        assert_eq!(usage.bus_up_bytes_per_s, Some(300.0));
        // Nothing was heard in between, or ever.
        assert_eq!(before.since(&before), AgentUsage::default());
        let silent = AgentSample { counters: None, bus: None, ..now };
        assert_eq!(silent.since(&before), AgentUsage::default());
    }

    #[test]
    fn counters_are_read_when_they_are_due() {
        let mut telling = Telling::default();
        let first = telling.due().expect("the first is due");
        assert!(first.cpu_ns > 0 && first.at_ns > 0);
        assert_eq!(telling.due(), None);
    }
}
