//! Parts of both documents: the method, the brokers, every run, and the omissions.

use std::fmt::Write as _;

use super::record::{Results, Row, Worth};
use tacho_record::Verdict;
use tacho_report::Lang;
use tacho_scenario::format::{self, thousands};
use tacho_scenario::published::Source;

/// When, where and how.
pub(super) fn conditions(results: &Results, source: &Source, bottleneck: &str) -> String {
    let machine = &results.machine;
    let files = results
        .descriptors_max
        .map_or_else(String::new, |files| format!(", at most {} open files", thousands(files)));
    let mut out = format!(
        "## How it was measured\n\n\
         `{}`, {} to {} (UTC), revision {}. Each run: a fresh broker, clients connect, a probe on \
         every path, {} s of load that do not count, {} s that do. A row is run with every broker \
         in turn before the next one. In the end rows that the machine disturbed are run again, at \
         most {} times in all; one that was disturbed each time stays as it was.\n\n",
        results.command,
        results.started_at,
        results.ended_at,
        machine.revision,
        results.warmup_s,
        results.hold_s,
        results.attempts,
    );
    let _ = writeln!(
        out,
        "- **Ours**: {}, {} cores{}, {:.0} GiB, {}{files}. The broker has core {}, the generator \
         core {}, one thread (`--timing {}`); they talk over loopback.\n\
         - **Published** ({}): {}. Load: {}.\n\
         - **CPU**: of the broker's process, all its threads, user and kernel; 100 % is the one \
         core that it may use. Published CPU is of the whole host: 100 % is all its {} cores.\n\
         - **Latency**: from when a message was *due* to its receipt. On loopback there is no \
         network, and the sender's core runs the receiver's TCP: figures compare brokers on this \
         machine, they do not predict another one.\n\
         - **Does not count**: rows where the generator's core was 80 % busy, messages left it \
         late (p99 of 1 ms), the hypervisor took 1 % of the time, or figures still moved. They are \
         hollow in graphs and in (brackets) in tables. What a broker did not carry (less than 99 % \
         of the rate, or a broken QoS) is a cross, and ~~struck through~~.\n\
         - {bottleneck}",
        machine.cpu,
        machine.cores,
        if machine.virtualised { " (virtual)" } else { "" },
        machine.memory_gib,
        machine.kernel,
        results.broker_core,
        results.generator_core,
        results.timing,
        source.name,
        source.hardware,
        source.load,
        source.cores,
    );
    out
}

/// How long our rows and the published ones were held.
pub(super) fn held(results: &Results, source: &Source) -> String {
    let (ours, theirs) = (format::span(results.hold_s as f64), Lang::En.held_by(source));
    format!("held {ours}, published: {theirs}")
}

/// The measured brokers and their configuration.
pub(super) fn brokers(results: &Results, with_persistence: bool) -> String {
    let mut out = "## Brokers\n\nEach with its defaults, except as stated here.\n\n".to_owned();
    if with_persistence {
        out.push_str(
            "| broker | version | sessions that outlive their connection |\n|---|---|---|\n",
        );
    } else {
        out.push_str("| broker | version |\n|---|---|\n");
    }
    for broker in &results.brokers {
        let _ = match with_persistence {
            true => {
                writeln!(out, "| {} | {} | {} |", broker.name, broker.version, broker.persistence)
            }
            false => writeln!(out, "| {} | {} |", broker.name, broker.version),
        };
    }
    for broker in &results.brokers {
        let _ = write!(out, "\n{}:\n\n```sh\n{}\n", broker.name, broker.command);
        if with_persistence && !broker.persistent_command.is_empty() {
            let _ = writeln!(out, "# with persistent sessions\n{}", broker.persistent_command);
        }
        out.push_str("```\n");
        if !broker.configuration.is_empty() {
            let _ = write!(out, "\n`CONF`:\n\n```text\n{}```\n", broker.configuration);
        }
        if !with_persistence && !broker.bridge.is_empty() {
            let _ = write!(
                out,
                "\nFor the bridge, with a window of 1,000, since 0 cannot be told to another \
                 broker:\n\n```text\n{}```\n",
                broker.bridge
            );
        }
    }
    out
}

/// Every run with all its figures.
pub(super) fn all_rows(results: &Results, order: &[(String, String)]) -> String {
    let mut out = "## All runs\n\n\
        | row | broker | offered in + out /s | TPS | CPU % | us/message | mean | p50 | p99 | max \
        | lost | twice | memory | generator % | steal % | bottleneck | verdict |\n\
        |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (series, label) in order {
        for broker in &results.brokers {
            if let Some(row) = results.row(&broker.key, series, label) {
                out.push_str(&run(results, row, &broker.name));
            }
        }
    }
    out
}

fn run(results: &Results, row: &Row, broker: &str) -> String {
    let name = linked(results, row, &row_name(&row.series, &row.label));
    // A verdict of `ok` needs no reason.
    let why = match row.verdict {
        Verdict::Ok => String::new(),
        _ => row.reasons.first().map(|why| format!(": {why}")).unwrap_or_default(),
    };
    let verdict = format!("{}{}", row.verdict.name(), why.replace('|', "\\|"));
    let Some(step) = &row.step else {
        return format!("| {name} | {broker} |{} {verdict} |\n", " |".repeat(14));
    };
    let latency = |us: Option<f64>| us.map(format::latency).unwrap_or_default();
    let whole = |us: Option<u64>| latency(us.map(|us| us as f64));
    let one = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
    let delay = &step.latency_us;
    format!(
        "| {name} | {broker} | {} + {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} \
         | {} | {} | {verdict} |\n",
        format::rate(step.offered_in_per_s),
        format::rate(step.offered_out_per_s),
        format::rate(step.tps),
        one(row.cpu_percent()),
        one(step.broker_cpu_us_per_message),
        latency(delay.mean),
        whole(delay.p50),
        whole(delay.p99),
        whole(delay.max),
        thousands(step.lost),
        thousands(step.duplicates),
        step.broker_rss_bytes.map(format::bytes).unwrap_or_default(),
        step.generator_thread_busy_max_percent,
        one(step.host_steal_percent),
        row.bottleneck(),
    )
}

/// What was not run, and why.
pub(super) fn left_out(results: &Results) -> String {
    if results.left_out.is_empty() {
        return String::new();
    }
    let mut out =
        "\n## Rows that are not there\n\n| row | broker | why |\n|---|---|---|\n".to_owned();
    let name = |key: &str| {
        let broker = results.brokers.iter().find(|broker| broker.key == key);
        broker.map_or_else(|| "all".to_owned(), |broker| broker.name.clone())
    };
    // Neighbours of one broker with one reason share a line.
    let mut rest = results.left_out.clone();
    rest.sort_by(|a, b| (&a.broker, &a.reason).cmp(&(&b.broker, &b.reason)));
    for same in rest.chunk_by(|a, b| a.broker == b.broker && a.reason == b.reason) {
        let Some(first) = same.first() else { continue };
        let rows: Vec<String> =
            same.iter().map(|left| row_name(&left.series, &left.label)).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            rows.join(", "),
            name(&first.broker),
            first.reason.replace('|', "\\|")
        );
    }
    out
}

fn row_name(series: &str, label: &str) -> String {
    match series == label {
        true => label.to_owned(),
        false => format!("{series} {label}"),
    }
}

/// Where the record is.
pub(super) fn record(results: &Results) -> String {
    format!(
        "\nThe record of every run is in \
         [bench/runs/{folder}](../../../bench/runs/{folder}/README.md), and figures lead to the \
         line of their run there; `cargo xtask results {suite} --render` writes this document and its graphs from it.\n",
        folder = results.folder,
        suite = results.suite
    )
}

/// A cell that says what a row is worth: plain, (does not count) or ~~not carried~~.
pub(super) fn worth(row: &Row, text: &str) -> String {
    match row.worth() {
        Worth::Counts => text.to_owned(),
        Worth::Invalid => format!("({text})"),
        Worth::NotCarried => format!("~~{text}~~"),
    }
}

/// Text that leads to the record of a run.
pub(super) fn linked(results: &Results, row: &Row, text: &str) -> String {
    let (folder, line) = (&results.folder, row.line);
    format!("[{text}](../../../bench/runs/{folder}/rows.jsonl#L{line})")
}

/// Milliseconds with three digits.
pub(super) fn ms(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), |us| format::three_digits(us / 1e3))
}
