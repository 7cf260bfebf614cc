//! The parts of a step: its brokers and its shared subscriptions; and those of a second.

use tacho_load::{Counters, GroupTotals, IntervalSnapshot, SharedTotals, TargetTotals, Totals};

use super::facts::RunFacts;
use super::numbers::round;
use tacho_record::{
    BrokerSpent, LatencyStats, PartBy, PartRow, SharedFairness, StepGroup, StepTarget,
};

/// The part of each broker, when there are several. `acknowledged` says what the broker took: what
/// it acknowledged, or what was written.
pub(super) fn step_targets(totals: &Totals, acknowledged: bool) -> Vec<StepTarget> {
    let rate = |count: u64| round(count as f64 * 1e9 / totals.len_ns.max(1) as f64, 2);
    let part = |target: &TargetTotals| {
        let counters = &target.counters;
        let achieved_in = if acknowledged { counters.acked } else { counters.sent };
        StepTarget {
            name: target.name.clone(),
            achieved_in_per_s: rate(achieved_in),
            achieved_out_per_s: rate(counters.received),
            tps: rate(achieved_in + counters.received),
            ..StepTarget::default()
        }
    };
    match &totals.targets[..] {
        [] | [_] => Vec::new(),
        several => several.iter().map(part).collect(),
    }
}

/// The part of each group, when there are several.
pub(super) fn step_groups(totals: &Totals, facts: &RunFacts) -> Vec<StepGroup> {
    let part = |group: &GroupTotals| {
        let delivery = &group.delivery;
        StepGroup {
            name: group.name.clone(),
            clients: group.clients,
            offered: group.counters.offered,
            sent: delivery.sent,
            expected: delivery.expected,
            received: delivery.received,
            lost: delivery.lost.saturating_sub(delivery.declared_lost),
            declared_lost: delivery.declared_lost,
            concerned: facts.actions.concern(&group.name),
            latency_us: LatencyStats::of(&group.e2e),
        }
    };
    match &totals.groups[..] {
        [] | [_] => Vec::new(),
        several => several.iter().map(part).collect(),
    }
}

/// How evenly shared subscriptions were served.
pub(super) fn fairness(shared: &SharedTotals) -> SharedFairness {
    let (received_min, received_max) = shared.min_max();
    SharedFairness {
        filter: format!("$share/{}/{}", shared.name, shared.filter),
        members: shared.members.len() as u64,
        received: shared.members.iter().map(|(_, count)| count).sum(),
        received_min,
        received_max,
        gini: round(shared.gini(), 4),
    }
}

/// The parts of an interval: groups called `groups`, and brokers, where there are several.
pub(super) fn of_interval(interval: &IntervalSnapshot, groups: &[String]) -> Vec<PartRow> {
    let rate = |count: u64| round(count as f64 * 1e9 / interval.len_ns.max(1) as f64, 2);
    let part = |by, name: &str, connected, counters: &Counters| PartRow {
        by,
        name: name.to_owned(),
        connected,
        sent_per_s: rate(counters.sent),
        received_per_s: rate(counters.received),
        rtt_p50_us: None,
        spent: BrokerSpent::default(),
    };
    let mut parts = Vec::new();
    if groups.len() > 1 {
        let named = groups.iter().zip(&interval.groups);
        parts.extend(
            named.map(|(name, group)| part(PartBy::Group, name, group.connected, &group.counters)),
        );
    }
    if let [_, _, ..] = &interval.targets[..] {
        parts.extend(interval.targets.iter().map(|target| {
            let rtt = &target.rtt;
            let rtt_p50_us = (!rtt.is_empty()).then(|| rtt.value_at_quantile(0.5));
            let counters = &target.counters;
            let part = part(PartBy::Broker, &target.name, target.connected, counters);
            PartRow { rtt_p50_us, ..part }
        }));
    }
    parts
}
