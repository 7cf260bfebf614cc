//! The figures of a step in groups, with units: shared by the page and the terminal.

use crate::format::{self, latency_or, percent, percent_or, rate, thousands};
use crate::record::{LatencyStats, Step};

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
pub(super) const LATENCY_HEADS: [&str; 8] =
    ["mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];

/// The latencies of a step: name and one cell per head; `None` for too few samples.
pub(super) fn latencies(step: &Step) -> Vec<(&'static str, [Option<String>; 8])> {
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
        ("end to end", cells(&step.latency_us)),
        ("service", cells(&step.service_us)),
        ("send delay", cells(&step.send_delay_us)),
    ];
    if step.ack_us.count > 0 {
        rows.push(("acknowledgement", cells(&step.ack_us)));
    }
    rows
}

/// The first lost messages: from whom to whom, and which; and how many more runs there are.
pub(super) fn lost(step: &Step, shown: usize) -> (Vec<(String, String)>, u64) {
    let lines = step.lost_ranges.iter().take(shown).map(|range| {
        let (first, last) = (range.first_seq, range.first_seq + range.span.saturating_sub(1));
        let which = match range.count {
            0 | 1 => first.to_string(),
            count if count < range.span => format!("{count} of {first} to {last}"),
            _ => format!("{first} to {last}"),
        };
        (format!("from {} to {}", range.publisher, range.receiver), which)
    });
    let more = step.lost_ranges.len().saturating_sub(shown) as u64 + step.lost_ranges_cut;
    (lines.collect(), more)
}

/// All other figures of a step.
pub(super) fn tables(step: &Step) -> Vec<Table> {
    vec![rates(step), deliveries(step), broker(step), generator(step)]
}

fn rates(step: &Step) -> Table {
    let per_second = |value| format!("{} msg/s", rate(value));
    let short = step.achieved_percent() < crate::verdict::SUSTAINED_PERCENT;
    Table {
        title: "Rates",
        rows: vec![
            row("offered in", per_second(step.offered_in_per_s)),
            row("offered out", per_second(step.offered_out_per_s)),
            row("attempted in", per_second(step.attempted_in_per_s)),
            Row { failed: short, ..row("achieved in", per_second(step.achieved_in_per_s)) },
            row("achieved out", per_second(step.achieved_out_per_s)),
            row("TPS (in + out)", per_second(step.tps)),
            row("window", format!("{:.1} s", step.window_s)),
        ],
    }
}

fn deliveries(step: &Step) -> Table {
    let broken = step.violations;
    let mut rows = vec![
        counted("sent", step.sent, false),
        counted("deliveries expected", step.expected, false),
        counted("received", step.received, false),
        counted("lost", step.lost, broken.lost > 0),
        counted("acknowledged, but lost", step.acknowledged_lost, step.acknowledged_lost > 0),
        counted("duplicates", step.duplicates, broken.duplicates > 0),
        counted("out of order", step.out_of_order, broken.out_of_order > 0),
    ];
    for (name, value) in [
        ("lost at the end, or still on their way", step.undelivered),
        ("acknowledged, still to come", step.acknowledged_pending),
        ("sessions lost by the broker", step.sessions_lost),
        ("unexpected", step.unexpected),
        ("corrupted", step.corrupted),
        ("refused by the broker", step.refused),
        ("never sent", step.dropped),
    ] {
        if value > 0 {
            rows.push(counted(name, value, true));
        }
    }
    Table { title: "Deliveries", rows }
}

fn broker(step: &Step) -> Table {
    let unknown = || "not observed".to_owned();
    let per_message =
        step.broker_cpu_us_per_message.map_or_else(unknown, |us| format!("{us:.2} µs"));
    Table {
        title: "Broker",
        rows: vec![
            row("CPU (one core = 100 %)", percent_or(step.broker_cpu_percent)),
            row("CPU per message (in + out)", per_message),
            row("its cores busy", percent_or(step.broker_cores_busy_percent)),
            row("memory (RSS)", step.broker_rss_bytes.map_or_else(unknown, format::bytes)),
            row("threads", step.broker_threads.map_or_else(unknown, thousands)),
            row("host CPU (1 - idle)", percent_or(step.host_cpu_percent)),
            row("host memory", percent_or(step.host_memory_percent)),
        ],
    }
}

fn generator(step: &Step) -> Table {
    let bound = step.gates.iter().any(|gate| !gate.passed);
    let mut rows = vec![
        row("CPU (one core = 100 %)", percent(step.generator_cpu_percent)),
        row("busiest thread", percent(step.generator_thread_busy_max_percent)),
        row("send delay p99", latency_or(step.send_delay_us.p99.map(|us| us as f64))),
        row("sent more than 1 ms late", thousands(step.overrun)),
        Row {
            failed: bound,
            ..row("was the bottleneck", if bound { "yes: invalid run" } else { "no" }.to_owned())
        },
    ];
    if let Some(steal) = step.host_steal_percent {
        rows.insert(2, row("stolen by the hypervisor", percent(steal)));
    }
    if let Some(others) = step.other_cpu_percent {
        rows.insert(2, row("other programs' CPU", percent(others)));
    }
    Table { title: "Generator", rows }
}
