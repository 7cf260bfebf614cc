//! A measured window as a step of the record.

use tacho_load::{Counters, Totals};
use tacho_monitor::CpuSource;

use super::agents::agent_parts;
use super::facts::RunFacts;
use super::logins::step_logins;
use super::numbers::{busy_percent, round, spin_percent};
use super::parts;
use crate::probe::Usage;
use tacho_record::{DeclaredLost, LatencyStats, LostRange, Step, Verdict, ViolationCounts};

/// Losses of messages that were published while their receiver was away.
const OFFLINE: &str = "offline";

/// One step out of the engine's totals and what was used meanwhile.
pub(super) fn step(totals: &Totals, usage: &Usage, facts: &RunFacts) -> Step {
    let window_s = totals.len_ns as f64 / 1e9;
    let rate = |count: u64| match window_s > 0.0 {
        true => round(count as f64 / window_s, 2),
        false => 0.0,
    };
    let counters: &Counters = &totals.counters;
    let delivery = &totals.delivery;
    let achieved_in = if facts.acknowledged { counters.acked } else { counters.sent };
    let closed_out = || {
        // Without a schedule the deliveries due are those that the sent messages had to cause.
        rate(delivery.expected)
    };
    Step {
        verdict: Verdict::Ok,
        scenario: facts.scenario.clone(),
        vars: facts.vars.clone(),
        window_s: round(window_s, 3),
        offered_in_per_s: rate(counters.offered),
        offered_out_per_s: match facts.closed {
            true => closed_out(),
            false => round(facts.offered_out_per_s, 2),
        },
        attempted_in_per_s: rate(counters.attempted),
        achieved_in_per_s: rate(achieved_in),
        achieved_out_per_s: rate(counters.received),
        tps: rate(achieved_in + counters.received),
        latency_us: LatencyStats::of(&totals.e2e),
        service_us: LatencyStats::of(&totals.service),
        send_delay_us: LatencyStats::of(&totals.send_delay),
        ack_us: LatencyStats::of(&totals.ack),
        rtt_us: LatencyStats::of(&totals.rtt),
        overrun: counters.overrun,
        dropped: counters.dropped,
        refused: counters.refused,
        actions: facts.actions.len() as u64,
        logins: step_logins(totals.logins.as_deref(), window_s, &facts.names),
        groups: parts::step_groups(totals, facts),
        shared: totals.shared.iter().map(parts::fairness).collect(),
        targets: parts::step_targets(totals, facts.acknowledged),
        drained: totals.drained,
        received_min: totals.received_min_max.map(|(min, _)| min),
        received_max: totals.received_min_max.map(|(_, max)| max),
        ..deliveries(totals, facts, resources(totals, usage))
    }
}

/// `step` with what became of the messages of a window.
fn deliveries(totals: &Totals, facts: &RunFacts, step: Step) -> Step {
    let delivery = &totals.delivery;
    let undeclared = totals.gaps.iter().filter(|gap| !gap.declared).count();
    Step {
        sent: delivery.sent,
        expected: delivery.expected,
        received: delivery.received,
        lost: delivery.lost.saturating_sub(delivery.declared_lost),
        acknowledged_lost: totals.acknowledged_lost,
        acknowledged_pending: totals.acknowledged_pending,
        declared_lost: declared_lost(delivery.declared_lost),
        undelivered: delivery.undelivered,
        lost_ranges: totals
            .gaps
            .iter()
            .filter(|gap| !gap.declared)
            .take(LostRange::MAX)
            .map(|gap| facts.names.lost_range(gap))
            .collect(),
        lost_ranges_cut: totals.gaps_cut + undeclared.saturating_sub(LostRange::MAX) as u64,
        duplicates: delivery.duplicates,
        out_of_order: delivery.out_of_order,
        unexpected: delivery.unexpected,
        corrupted: delivery.corrupted,
        violations: ViolationCounts {
            lost: totals.violations.lost,
            duplicates: totals.violations.duplicates,
            out_of_order: totals.violations.out_of_order,
            corrupted: totals.violations.corrupted,
        },
        ..step
    }
}

/// A step with what the broker, the host and the generator used in a window.
fn resources(totals: &Totals, usage: &Usage) -> Step {
    let messages = totals.counters.sent + totals.counters.received;
    let percent = |value: Option<f64>| value.map(|value| round(value, 2));
    Step {
        broker_cpu_percent: percent(usage.broker_cpu_percent),
        broker_cpu_us_per_message: usage
            .broker_cpu_ns
            .filter(|_| messages > 0)
            .map(|cpu_ns| round(cpu_ns as f64 / 1e3 / messages as f64, 3)),
        broker_cpu_source: usage.broker_cpu_source.map(|source| match source {
            CpuSource::Schedstat => "schedstat".to_owned(),
            CpuSource::Stat => "stat".to_owned(),
            CpuSource::ControlGroup => "control group".to_owned(),
        }),
        broker_cores_busy_percent: percent(usage.broker_cores_busy_percent),
        broker_cores_not_idle_percent: percent(usage.broker_cores_not_idle_percent),
        broker_cores_softirq_percent: percent(usage.broker_cores_softirq_percent),
        others_on_broker_cores_percent: percent(usage.others_on_broker_cores_percent),
        others_on_broker_cores_by: usage.others_on_broker_cores_by.clone(),
        broker_rss_bytes: usage.broker_rss_bytes,
        broker_threads: usage.broker_threads,
        host_cpu_percent: percent(usage.host_cpu_percent),
        host_busy_percent: percent(usage.host_busy_percent),
        host_steal_percent: percent(usage.host_steal_percent),
        other_cpu_percent: others(totals, usage),
        host_memory_percent: percent(usage.host_memory_percent),
        generator_cpu_percent: busy_percent(&totals.threads).0,
        generator_thread_busy_max_percent: busy_percent(&totals.threads).1,
        generator_rests: totals.threads.iter().map(|thread| thread.rests).sum(),
        generator_spin_percent: spin_percent(&totals.threads),
        agents: agent_parts(totals.len_ns, &totals.shares, usage),
        ..Step::default()
    }
}

fn declared_lost(count: u64) -> DeclaredLost {
    let by = (count > 0).then(|| (OFFLINE.to_owned(), count));
    DeclaredLost { count, by: by.into_iter().collect() }
}

/// CPU of programs that are neither the broker nor the generator, one core = 100.
fn others(totals: &Totals, usage: &Usage) -> Option<f64> {
    let generator_ns: u64 = totals.threads.iter().map(|thread| thread.cpu_ns).sum();
    let known_ns = generator_ns + usage.broker_cpu_ns?;
    let others_ns = usage.host_programs_ns?.saturating_sub(known_ns);
    (totals.len_ns > 0).then(|| round(others_ns as f64 * 100.0 / totals.len_ns as f64, 2))
}
