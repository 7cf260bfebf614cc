//! Each of several brokers, second by second: what its clients sent and got, what its process
//! spent, how its bridges stand.

use std::sync::Arc;

use tacho_load::IntervalSnapshot;

use super::bridge_log::{self, BridgeLog};
use super::course::Course;
use super::hosts::Hosts;
use super::numbers::round;
use super::target::RunTarget;
use crate::probe::{Probe, Samples};
use tacho_record::{BrokerRow, BrokerSpent, PartBy, PartRow};

/// The brokers of a run; without several there are none here.
#[derive(Debug)]
pub(super) struct Brokers {
    all: Vec<Watched>,
    started_ns: u64,
}

/// One of them.
#[derive(Debug)]
struct Watched {
    name: String,
    course: Arc<Course>,
    bridges: Arc<BridgeLog>,
    probe: Probe,
    last: Samples,
}

impl Brokers {
    /// Begins at `started_ns`.
    pub(super) fn new(targets: &[RunTarget], started_ns: u64) -> Self {
        let watched = |target: &RunTarget| {
            let (pid, cores) = (target.record.pid, target.cores.clone());
            let mut probe = Probe::new(pid, cores, target.is_local);
            Watched {
                name: target.record.name.clone(),
                course: Arc::clone(&target.course),
                bridges: Arc::clone(&target.bridges),
                last: probe.sample(),
                probe,
            }
        };
        let all = match targets {
            [] | [_] => Vec::new(),
            several => several.iter().map(watched).collect(),
        };
        Self { all, started_ns }
    }

    /// Adds to the parts of an interval what the brokers spent, and returns their rows.
    pub(super) fn complete(
        &mut self,
        interval: &IntervalSnapshot,
        parts: &mut [PartRow],
        hosts: &Hosts,
    ) -> Vec<BrokerRow> {
        let start_s = interval.start_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        let length_s = interval.len_ns as f64 / 1e9;
        let mut spent: Vec<BrokerSpent> =
            self.all.iter_mut().map(|broker| broker.spent(hosts, start_s + length_s)).collect();
        let logs: Vec<_> = self.all.iter().map(|b| (b.name.as_str(), &*b.bridges)).collect();
        let end_ns = interval.start_ns + interval.len_ns;
        bridge_log::complete(&logs, &mut spent, (interval.start_ns, end_ns));
        let mut rows = Vec::with_capacity(self.all.len());
        for part in parts.iter_mut().filter(|part| part.by == PartBy::Broker) {
            let found = self.all.iter().position(|broker| broker.name == part.name);
            let Some(found) = found else { continue };
            part.spent = spent[found];
            let phase = interval.phase.into();
            rows.push(BrokerRow { start_s, length_s, phase, part: part.clone() });
        }
        rows
    }
}

impl Watched {
    /// What it spent since the last time; `end_s` is now.
    fn spent(&mut self, hosts: &Hosts, end_s: f64) -> BrokerSpent {
        if self.course.is_killed() {
            self.probe.follow(self.course.pid());
        }
        let now = self.probe.sample();
        let usage = now.since(&self.last);
        let before = self.last.broker.take();
        self.last = now;
        self.last.broker = self.last.broker.take().or(before);
        let mut spent = BrokerSpent {
            cpu_percent: usage.broker_cpu_percent,
            cores_busy_percent: usage.broker_cores_busy_percent,
            rss_bytes: usage.broker_rss_bytes,
            ..BrokerSpent::default()
        };
        if spent.cpu_percent.is_none() && !self.course.is_killed() {
            // Another source may see it.
            let told = hosts.process_of(&self.name, end_s);
            spent.cpu_percent = told.map(|(cpu, _)| cpu);
            spent.rss_bytes = spent.rss_bytes.or_else(|| told.and_then(|(_, rss)| rss));
        }
        spent.cpu_percent = spent.cpu_percent.map(|percent| round(percent, 2));
        spent.cores_busy_percent = spent.cores_busy_percent.map(|percent| round(percent, 2));
        spent
    }
}
