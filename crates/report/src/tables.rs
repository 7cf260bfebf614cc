//! The figures of a step in groups, with units: shared by the page and the terminal.

use super::lang::Lang;
use tacho_record::{LatencyStats, Step};
use tacho_scenario::format::{self, percent, rate, thousands};

/// A group of figures under a heading.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Row>,
}

/// A figure with its name.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: String,
    /// Something is wrong with it.
    pub(super) failed: bool,
}

fn row(name: impl Into<String>, value: String) -> Row {
    Row { name: name.into(), value, failed: false }
}

fn counted(name: &str, value: u64, failed: bool) -> Row {
    Row { name: name.to_owned(), value: thousands(value), failed }
}

/// Heads of the latency table's columns.
pub(super) const fn latency_heads(lang: Lang) -> [&'static str; 8] {
    [lang.mean(), "p50", "p90", "p95", "p99", "p99.9", "p99.99", lang.max()]
}

/// The latencies of a step: name and one cell per head; `None` for too few samples.
pub(super) fn latencies(lang: Lang, step: &Step) -> Vec<(&'static str, [Option<String>; 8])> {
    let cells = |stats: &LatencyStats| {
        let whole = |value: Option<u64>| value.map(|us| format::latency(us as f64));
        [
            stats.mean.map(format::latency),
            whole(stats.p50),
            whole(stats.p90),
            whole(stats.p95),
            whole(stats.p99),
            whole(stats.p999),
            whole(stats.p9999),
            whole(stats.max),
        ]
    };
    let mut rows = vec![
        (lang.end_to_end(), cells(&step.latency_us)),
        (lang.service(), cells(&step.service_us)),
    ];
    if step.has_only_logins() {
        rows.clear();
    }
    rows.extend(step.login_latency().map(|login| (lang.login(), cells(login))));
    rows.push((lang.send_delay(), cells(&step.send_delay_us)));
    if step.ack_us.count > 0 {
        rows.push((lang.acknowledgement(), cells(&step.ack_us)));
    }
    rows
}

/// The first lost messages: publisher, receiver, sequence numbers, and the number of further runs.
pub(super) fn lost(lang: Lang, step: &Step, shown: usize) -> (Vec<(String, String)>, u64) {
    let lines = step.lost_ranges.iter().take(shown).map(|range| {
        let (first, last) = (range.first_seq, range.first_seq + range.span.saturating_sub(1));
        let which = match range.count {
            0 | 1 => first.to_string(),
            count if count < range.span => lang.lost_among(count, first, last),
            _ => lang.range(first, last),
        };
        (lang.sent_from_to(&range.publisher, &range.receiver), which)
    });
    let more = step.lost_ranges.len().saturating_sub(shown) as u64 + step.lost_ranges_cut;
    (lines.collect(), more)
}

/// All other figures of a step.
pub(super) fn tables(lang: Lang, step: &Step) -> Vec<Table> {
    let own = [broker(lang, step), generator(lang, step)];
    match step.has_only_logins() {
        true => own.into(),
        false => [rates(lang, step), deliveries(lang, step)].into_iter().chain(own).collect(),
    }
}

fn rates(lang: Lang, step: &Step) -> Table {
    let per_second = |value| lang.msg_per_s(rate(value));
    let short = step.achieved_percent() < tacho_record::SUSTAINED_PERCENT;
    Table {
        title: lang.rates(),
        rows: vec![
            row(lang.offered_in(), per_second(step.offered_in_per_s)),
            row(lang.offered_out(), per_second(step.offered_out_per_s)),
            row(lang.attempted_in(), per_second(step.attempted_in_per_s)),
            Row { failed: short, ..row(lang.achieved_in(), per_second(step.achieved_in_per_s)) },
            row(lang.achieved_out(), per_second(step.achieved_out_per_s)),
            row(lang.tps_row(), per_second(step.tps)),
            row(lang.window_row(), lang.seconds(format!("{:.1}", step.window_s))),
        ],
    }
}

fn deliveries(lang: Lang, step: &Step) -> Table {
    let broken = step.violations;
    let mut rows = vec![
        counted(lang.sent(), step.sent, false),
        counted(lang.deliveries_expected(), step.expected, false),
        counted(lang.received(), step.received, false),
        counted(lang.deliveries_lost(), step.lost, broken.lost > 0),
        counted(lang.acknowledged_but_lost(), step.acknowledged_lost, step.acknowledged_lost > 0),
        counted(lang.duplicates(), step.duplicates, broken.duplicates > 0),
        counted(lang.out_of_order(), step.out_of_order, broken.out_of_order > 0),
    ];
    if step.acknowledged_lost > 0 {
        // The other rows are about the measured window alone.
        rows.insert(5, row(lang.warm_up_included(), lang.yes().to_owned()));
    }
    for (name, value) in [
        (lang.lost_at_the_end_or_still_on_their_way(), step.undelivered),
        (lang.acknowledged_still_to_come(), step.acknowledged_pending),
        (lang.sessions_lost_by_the_broker(), step.sessions_lost),
        (lang.unexpected(), step.unexpected),
        (lang.corrupted(), step.corrupted),
        (lang.refused_by_the_broker(), step.refused),
        (lang.never_sent(), step.dropped),
    ] {
        if value > 0 {
            rows.push(counted(name, value, true));
        }
    }
    Table { title: lang.deliveries(), rows }
}

fn broker(lang: Lang, step: &Step) -> Table {
    let unknown = || lang.not_observed().to_owned();
    let per_message =
        step.broker_cpu_us_per_message.map_or_else(unknown, |us| format!("{us:.2} µs"));
    let others = lang.percent_or(step.others_on_broker_cores_percent);
    let others = match &step.others_on_broker_cores_by {
        Some(program) => format!("{others} ({program})"),
        None => others,
    };
    Table {
        title: lang.broker_table(),
        rows: vec![
            row(lang.cpu_of_cores(), lang.percent_or(step.broker_cpu_percent)),
            row(lang.cpu_per_message_in_out(), per_message),
            row(lang.its_cores_busy(), lang.percent_or(step.broker_cores_busy_percent)),
            row(lang.cores_not_idle(), lang.percent_or(step.broker_cores_not_idle_percent)),
            row(lang.cores_interrupts(), lang.percent_or(step.broker_cores_softirq_percent)),
            row(lang.others_on_broker_cores(), others),
            row(lang.memory_rss(), step.broker_rss_bytes.map_or_else(unknown, format::bytes)),
            row(lang.threads(), step.broker_threads.map_or_else(unknown, thousands)),
            row(lang.host_cpu_1_idle(), lang.percent_or(step.host_cpu_percent)),
            row(lang.host_cpu_busy(), lang.percent_or(step.host_busy_percent)),
            row(lang.host_memory(), lang.percent_or(step.host_memory_percent)),
        ],
    }
}

fn generator(lang: Lang, step: &Step) -> Table {
    let bound = step.gates.iter().any(|gate| !gate.passed);
    let mut rows = vec![
        row(lang.cpu_of_cores(), percent(step.generator_cpu_percent)),
        row(lang.busiest_thread(), percent(step.generator_thread_busy_max_percent)),
        row(lang.send_delay_p99(), lang.latency_or(step.send_delay_us.p99.map(|us| us as f64))),
        row(lang.sent_late(), thousands(step.overrun)),
        Row {
            failed: bound,
            ..row(
                lang.was_the_bottleneck(),
                if bound { lang.yes_invalid_run() } else { lang.no() }.to_owned(),
            )
        },
    ];
    if let Some(steal) = step.host_steal_percent {
        rows.insert(2, row(lang.stolen_by_the_hypervisor(), percent(steal)));
    }
    if let Some(others) = step.other_cpu_percent {
        rows.insert(2, row(lang.other_programs_cpu(), percent(others)));
    }
    if step.generator_spin_percent > 0.0 {
        rows.insert(2, row(lang.spinning_is_no_work(), percent(step.generator_spin_percent)));
    }
    Table { title: lang.generator(), rows }
}
