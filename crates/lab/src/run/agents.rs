//! The agents of a run: their part of a window, and those that were lost.

use tacho_load::{IntervalSnapshot, LostPart, ShareTotals};
use tacho_record::{AgentLoss, AgentRecord, Cause, LatencyStats, StepAgent};

use super::numbers::{busy_percent, round};
use crate::probe::Usage;

/// The part of each agent in a window or an interval of `len_ns`; their names are known to
/// [`Agents`].
pub(super) fn agent_parts(len_ns: u64, shares: &[ShareTotals], usage: &Usage) -> Vec<StepAgent> {
    let window_s = len_ns as f64 / 1e9;
    let per_s = |count: u64| match window_s > 0.0 {
        true => round(count as f64 / window_s, 2),
        false => 0.0,
    };
    let mut used = usage.agents.iter().copied();
    let shares = shares.iter().map(|share| {
        let used = used.next().unwrap_or_default();
        let rounded = |value: Option<f64>| value.map(|value| round(value, 2));
        let (threads_cpu_percent, thread_busy_max_percent) = busy_percent(&share.threads);
        StepAgent {
            name: String::new(),
            clients: share.clients,
            sent_per_s: per_s(share.counters.sent),
            received_per_s: per_s(share.counters.received),
            bytes_out_per_s: per_s(share.bytes_out),
            bytes_in_per_s: per_s(share.bytes_in),
            send_delay_us: LatencyStats::of(&share.send_delay),
            threads_cpu_percent,
            thread_busy_max_percent,
            cpu_percent: rounded(used.cpu_percent),
            retransmits_per_s: rounded(used.retransmits_per_s),
            bus_up_bytes_per_s: rounded(used.bus_up_bytes_per_s),
            bus_down_bytes_per_s: rounded(used.bus_down_bytes_per_s),
        }
    });
    shares.collect()
}

/// The agents of a run in the order of their shares; none where the controller makes the load.
#[derive(Debug, Default)]
pub(super) struct Agents {
    names: Vec<String>,
    losses: Vec<(usize, AgentLoss)>,
    /// Their parts of the last second.
    latest: Vec<StepAgent>,
}

impl Agents {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }

    /// Writes their names into the parts of a step.
    pub(super) fn name(&self, parts: &mut [StepAgent]) {
        for (part, name) in parts.iter_mut().zip(&self.names) {
            part.name.clone_from(name);
        }
    }

    /// A second has passed.
    pub(super) fn second(&mut self, interval: &IntervalSnapshot, usage: &Usage) {
        let mut parts = agent_parts(interval.len_ns, &interval.shares, usage);
        self.name(&mut parts);
        self.latest = parts;
    }

    /// Their parts of the last second.
    pub(super) fn latest(&self) -> &[StepAgent] {
        &self.latest
    }

    /// An agent was lost, and the run goes on.
    pub(super) fn lose(&mut self, part: &LostPart, started_ns: u64) {
        let at_s = part.at_ns.saturating_sub(started_ns) as f64 / 1e9;
        let percent = part.clients as f64 * 100.0 / part.of.max(1) as f64;
        let loss =
            AgentLoss { at_s: round(at_s, 3), percent: round(percent, 2), why: part.why.clone() };
        self.losses.push((part.share, loss));
    }

    /// What was missing before `until_s`.
    pub(super) fn missing(&self, until_s: f64) -> Vec<Cause> {
        let before = self.losses.iter().filter(|(_, loss)| loss.at_s < until_s);
        let cause = |(share, loss): &(usize, AgentLoss)| Cause::LoadMissing {
            agent: self.names.get(*share).cloned().unwrap_or_default(),
            at_s: loss.at_s,
            percent: loss.percent,
            why: loss.why.clone(),
        };
        before.map(cause).collect()
    }

    /// Adds the losses to the agents' records, which have the order of their shares.
    pub(super) fn enter_losses(&self, records: &mut [AgentRecord]) {
        for (share, loss) in &self.losses {
            if let Some(record) = records.get_mut(*share) {
                record.lost = Some(loss.clone());
            }
        }
    }
}
