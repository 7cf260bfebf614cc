//! The state of the bridges between the brokers of a run, reported by the program that polls them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::numbers::round;
use tacho_monitor::now_ns;
use tacho_record::BrokerSpent;

/// Answers that are kept: five hours and a half at five a second. The oldest are forgotten.
const SAMPLES_MAX: usize = 100_000;
/// Before a kill so many seconds say how much waits at any time.
const BEFORE_NS: u64 = 3_000_000_000;
/// What is left of a backlog when it counts as delivered, where more than this waited before: one
/// part in so many.
const REST: u64 = 100;

/// What one broker of a run says about its bridges.
#[derive(Debug, Default)]
pub struct BridgeLog(Mutex<VecDeque<BridgeSample>>);

/// One answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BridgeSample {
    /// When, by [`BridgeLog::now_ns`].
    pub at_ns: u64,
    /// Its bridges.
    pub bridges: Vec<BridgeFigures>,
}

/// How one bridge stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BridgeFigures {
    /// The broker that it leads to, as the scenario calls it.
    pub to: String,
    /// Connections that there are to be.
    pub connections: u64,
    /// Connections that are up.
    pub connected: u64,
    /// Messages sent since the broker's process began.
    pub sent: u64,
    /// Messages that wait, those in flight included.
    pub waiting: u64,
    /// Bytes of those that were not sent.
    pub waiting_bytes: u64,
}

/// What became of bridges when a broker was killed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recovery {
    /// Messages that waited at the worst, over all bridges.
    pub(super) waiting_max: u64,
    /// From the kill until no more waited than before; absent when that was not seen.
    pub(super) drained_ns: Option<u64>,
}

impl BridgeLog {
    /// The run's clock.
    pub fn now_ns() -> u64 {
        now_ns()
    }

    /// The broker answered.
    pub fn told(&self, sample: BridgeSample) {
        let mut samples = self.samples();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The last answer until `at_ns`.
    fn last(&self, at_ns: u64) -> Option<BridgeSample> {
        let samples = self.samples();
        let until = samples.partition_point(|sample| sample.at_ns <= at_ns);
        until.checked_sub(1).and_then(|last| samples.get(last).cloned())
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<BridgeSample>> {
        // Every change is whole by itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BridgeSample {
    fn waiting(&self) -> u64 {
        self.bridges.iter().map(|bridge| bridge.waiting).sum()
    }

    fn is_up(&self) -> bool {
        self.bridges.iter().all(|bridge| bridge.connected == bridge.connections)
    }

    /// Messages per second that went to `to`, or to any broker, since `before`.
    fn rate_since(&self, before: &Self, to: Option<&str>) -> Option<f64> {
        let sent = |sample: &Self| {
            let chosen = sample.bridges.iter().filter(|bridge| to.is_none_or(|to| bridge.to == to));
            chosen.map(|bridge| bridge.sent).sum::<u64>()
        };
        let seconds = self.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)? as f64 / 1e9;
        // A process that began anew counts from zero.
        Some(sent(self).checked_sub(sent(before))? as f64 / seconds)
    }
}

/// How long an answer stands for what is.
const FRESH_NS: u64 = 2_000_000_000;

/// Adds what is known of bridges in an interval: `logs` are those of all brokers, with their
/// names; `parts` are what is told of each, in the same order.
pub(super) fn complete(
    logs: &[(&str, &BridgeLog)],
    parts: &mut [BrokerSpent],
    (start_ns, end_ns): (u64, u64),
) {
    let seen = logs.iter().map(|(_, log)| {
        let end = log.last(end_ns).filter(|end| end.at_ns + FRESH_NS > end_ns)?;
        Some((log.last(start_ns), end))
    });
    let seen: Vec<Option<(Option<BridgeSample>, BridgeSample)>> = seen.collect();
    let rate = |(start, end): &(Option<BridgeSample>, BridgeSample), to: Option<&str>| {
        end.rate_since(start.as_ref()?, to)
    };
    for (index, ((name, _), spent)) in logs.iter().zip(parts).enumerate() {
        let others = seen.iter().enumerate().filter(|(other, _)| *other != index);
        let rates = others.filter_map(|(_, seen)| rate(seen.as_ref()?, Some(*name)));
        let others = rates.reduce(|one, other| one + other);
        spent.bridged_in_per_s = others.map(|rate| round(rate, 2));
        let Some(seen) = &seen[index] else { continue };
        let end = &seen.1;
        spent.bridged_out_per_s = rate(seen, None).map(|rate| round(rate, 2));
        spent.bridge_waiting = Some(end.waiting());
        spent.bridge_waiting_bytes = Some(end.bridges.iter().map(|b| b.waiting_bytes).sum());
        spent.bridge_connections_up = Some(end.bridges.iter().map(|b| b.connected).sum());
    }
}

/// What became of the bridges of all brokers, `logs`, after a kill at `killed_ns`. The broker
/// served again at `serving_ns`; nothing after `until_ns` counts, which is when the next is killed.
pub(super) fn recovery(
    logs: &[&BridgeLog],
    killed_ns: u64,
    serving_ns: u64,
    until_ns: u64,
) -> Option<Recovery> {
    let mut all: Vec<(usize, BridgeSample)> = Vec::new();
    for (index, log) in logs.iter().enumerate() {
        let samples = log.samples();
        let from = killed_ns.saturating_sub(BEFORE_NS);
        let wanted = samples.iter().filter(|s| (from..until_ns).contains(&s.at_ns));
        all.extend(wanted.map(|sample| (index, sample.clone())));
    }
    all.sort_by_key(|(_, sample)| sample.at_ns);
    let mut last: Vec<Option<&BridgeSample>> = vec![None; logs.len()];
    let (mut before, mut most, mut after) = (0, 0, 0);
    for (index, sample) in &all {
        last[*index] = Some(sample);
        let waiting: u64 = last.iter().flatten().map(|sample| sample.waiting()).sum();
        if sample.at_ns < killed_ns {
            before = before.max(waiting);
            continue;
        }
        after += 1;
        most = most.max(waiting);
        let is_back = last
            .iter()
            .all(|last| last.is_some_and(|last| last.at_ns >= serving_ns && last.is_up()));
        if is_back && waiting <= before.max(most / REST) {
            let drained_ns = Some(sample.at_ns - killed_ns);
            return Some(Recovery { waiting_max: most, drained_ns });
        }
    }
    (after > 0).then_some(Recovery { waiting_max: most, drained_ns: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn sample(at_ns: u64, to: &str, connected: u64, sent: u64, waiting: u64) -> BridgeSample {
        let (to, waiting_bytes) = (to.to_owned(), 10 * waiting);
        let figures = BridgeFigures { to, connections: 4, connected, sent, waiting, waiting_bytes };
        BridgeSample { at_ns, bridges: vec![figures] }
    }

    #[test]
    fn a_backlog_is_delivered_when_all_bridges_are_up_and_hold_what_they_held_before() {
        let (one, two) = (BridgeLog::default(), BridgeLog::default());
        for (at, connected, waiting) in
            [(9, 4, 30), (10, 4, 20), (11, 0, 500), (12, 0, 900), (13, 4, 800), (14, 4, 31)]
        {
            one.told(sample(at * S, "two", connected, 0, waiting));
        }
        // It is killed at 10.5 s and serves at 12.5 s.
        for (at, connected, waiting) in [(9, 4, 2), (10, 4, 3), (13, 0, 0), (14, 4, 0)] {
            two.told(sample(at * S + 1, "one", connected, 0, waiting));
        }
        let logs = [&one, &two];
        let found = |until| recovery(&logs, 21 * S / 2, 25 * S / 2, until);
        let drained_ns = Some(14 * S + 1 - 21 * S / 2);
        assert_eq!(found(u64::MAX), Some(Recovery { waiting_max: 903, drained_ns }));
        // Killed again before that.
        let unseen = Recovery { waiting_max: 903, drained_ns: None };
        assert_eq!(found(14 * S), Some(unseen));
        assert_eq!(recovery(&[&BridgeLog::default()], 0, 1, u64::MAX), None);
    }

    #[test]
    fn a_second_has_the_rates_of_both_ways_and_what_waits_at_its_end() {
        let (one, two) = (BridgeLog::default(), BridgeLog::default());
        one.told(sample(S, "two", 4, 100, 7));
        one.told(sample(3 * S, "two", 4, 300, 5));
        two.told(sample(S, "one", 4, 1000, 0));
        two.told(sample(3 * S, "one", 3, 20, 1));
        let logs = [("one", &one), ("two", &two)];
        let mut parts = [BrokerSpent::default(); 2];
        complete(&logs, &mut parts, (S, 3 * S));
        let [first, second] = &parts;
        assert_eq!((first.bridged_out_per_s, second.bridged_in_per_s), (Some(100.0), Some(100.0)));
        // Its process is another one than before.
        assert_eq!((second.bridged_out_per_s, first.bridged_in_per_s), (None, None));
        assert_eq!((first.bridge_waiting, second.bridge_waiting), (Some(5), Some(1)));
        assert_eq!((first.bridge_waiting_bytes, second.bridge_connections_up), (Some(50), Some(3)));
        // No broker answers any more.
        let mut parts = [BrokerSpent::default(); 2];
        complete(&logs, &mut parts, (5 * S, 6 * S));
        assert_eq!(parts, [BrokerSpent::default(); 2]);
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let log = BridgeLog::default();
        for at_ns in 0..=SAMPLES_MAX as u64 {
            log.told(BridgeSample { at_ns, bridges: Vec::new() });
        }
        assert_eq!((log.last(0), log.samples().len()), (None, SAMPLES_MAX));
    }
}
