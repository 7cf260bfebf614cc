//! The body of the report of a single run.

use std::fmt::Write as _;

use super::ReportData;
use super::charts;
use super::course;
use super::grid::{Cell, Grid};
use super::hosts;
use super::html::{escape, files, pairs, remarks, tiles};
use super::page::Page;
use super::services;
use super::steps_table;
use super::tables::{LATENCY_HEADS, latencies, lost, tables};
use crate::format::{self, latency_or, percent, percent_or, rate, thousands};
use crate::record::{LatencyStats, RunRecord, Series, Step};

/// Runs of lost messages that are shown.
const LOST_SHOWN: usize = 50;

/// Everything below the head; what belongs above the contents goes to `head`.
pub(super) fn body(page: &mut Page, head: &mut String, data: &ReportData<'_>) {
    let record = data.record;
    if let Some(step) = record.steps.last() {
        tiles(head, &key_figures(record, step));
    }
    remarks(head, record);
    if !data.rows.is_empty() {
        page.section("time", "Rates and latency over time");
        page.charts(charts::overview(data.rows));
        page.charts(charts::four_graphs(data.rows));
    }
    if !record.phases.is_empty() {
        page.section("phases", "Phases");
        course::tables(&mut page.out, record);
    }
    percentile_curves(page, data);
    if !data.rows.is_empty() {
        page.section("requests", "Response times, throughput and failures");
        page.charts(services::charts(data.rows));
        page.section("resources", "Broker, network and generator");
        let mut resources = vec![charts::cpu(data.rows)];
        resources.extend(charts::memory(data.rows));
        resources.extend(charts::round_trips(data.rows));
        resources.extend(charts::generator(data.rows));
        resources.retain(|chart| !chart.is_empty());
        page.charts(resources);
    }
    for (index, panels) in hosts::panels(data.hosts, data.rows).into_iter().enumerate() {
        page.section(&format!("host-{}", index + 1), &panels.title);
        page.charts(panels.charts);
    }
    for (index, step) in record.steps.iter().enumerate() {
        match record.steps.len() {
            1 => page.section("figures", "Figures of the measured window"),
            _ => page.section(
                &format!("figures-{}", index + 1),
                &format!("Figures of window {}", index + 1),
            ),
        }
        figures(&mut page.out, step);
    }
    conditions(page, record);
    surroundings(page, data);
}

fn key_figures(record: &RunRecord, step: &Step) -> Vec<(String, String)> {
    let us = |value: Option<u64>| latency_or(value.map(|value| value as f64));
    let mut tiles = vec![
        (rate(step.tps), "messages per second, in + out"),
        (step.latency_us.mean.map_or_else(|| us(None), format::latency), "mean latency"),
        (us(step.latency_us.p99), "99th percentile of latency"),
        (thousands(step.lost), "messages lost"),
    ];
    if step.acknowledged_lost > 0 || course::is_eventful(record) {
        tiles.push((thousands(step.acknowledged_lost), "acknowledged, but lost"));
    }
    match (step.cpu_percent, step.whose_cpu.as_deref()) {
        (Some(cpu), Some("host")) => tiles.push((percent(cpu), "CPU of the broker's host")),
        (Some(cpu), Some("broker cores")) => {
            tiles.push((percent(cpu), "CPU of the broker's cores"))
        }
        _ => tiles.push((percent_or(step.broker_cpu_percent), "broker CPU, one core = 100 %")),
    }
    let rss = step.broker_rss_bytes.map_or_else(|| "not observed".to_owned(), format::bytes);
    tiles.push((rss, "memory of the broker (RSS)"));
    if record.steps.len() > 1 {
        tiles.push((record.steps.len().to_string(), "measured windows; figures of the last"));
    }
    tiles.into_iter().map(|(value, name)| (value, name.to_owned())).collect()
}

fn percentile_curves(page: &mut Page, data: &ReportData<'_>) {
    if data.curves.is_empty() {
        return;
    }
    page.section("percentiles", "Latency by percentile");
    let title = |index: usize| match data.curves.len() {
        1 => "Latency by percentile".to_owned(),
        _ => format!("Latency by percentile, window {}", index + 1),
    };
    let curves = data.curves.iter().enumerate();
    let drawn = curves.map(|(index, curves)| charts::percentiles(&title(index), curves));
    page.charts(drawn.collect());
}

fn figures(out: &mut String, step: &Step) {
    let mut heads = vec!["latency"];
    heads.extend(LATENCY_HEADS);
    let mut grid = Grid::new(&heads);
    let mut too_few = false;
    for (name, cells) in latencies(step) {
        too_few |= cells.iter().any(Option::is_none);
        let cells = cells.into_iter().map(Cell::or_dash);
        grid.row(false, std::iter::once(Cell::text(name.to_owned())).chain(cells).collect());
    }
    grid.render(out);
    if too_few {
        out.push_str("<p class=\"chart-note\">–: too few samples for this percentile.</p>\n");
    }
    out.push_str("<div class=\"columns\">\n");
    for table in tables(step) {
        let _ = write!(out, "<section><h3>{}</h3><table><tbody>", escape(table.title));
        for row in table.rows {
            let class = if row.failed { " class=\"failed\"" } else { "" };
            let _ = write!(
                out,
                "<tr><th>{}</th><td{class}>{}</td></tr>",
                escape(&row.name),
                escape(&row.value)
            );
        }
        out.push_str("</tbody></table></section>\n");
    }
    out.push_str("</div>\n");
    brokers(out, step);
    shared(out, step);
    health(out, step);
    let series = Series::default();
    let published = steps_table::bifromq(&[(&series, step)]);
    out.push_str("<h3>In the columns of published tables</h3>\n");
    published.render(out);
    losses(out, step);
}

fn brokers(out: &mut String, step: &Step) {
    if step.targets.is_empty() {
        return;
    }
    out.push_str("<h3>Brokers</h3>\n");
    let mut grid =
        Grid::new(&["broker", "in/s", "out/s", "TPS in + out", "CPU", "whose", "RSS", "host CPU"]);
    for target in &step.targets {
        grid.row(
            false,
            vec![
                Cell::text(target.name.clone()),
                Cell::text(rate(target.achieved_in_per_s)),
                Cell::text(rate(target.achieved_out_per_s)),
                Cell::text(rate(target.tps)),
                Cell::or_dash(target.cpu_percent.map(percent)),
                Cell::or_dash(target.whose_cpu.clone()),
                Cell::or_dash(target.broker_rss_bytes.map(format::bytes)),
                Cell::or_dash(target.host_cpu_percent.map(percent)),
            ],
        );
    }
    grid.render(out);
}

fn shared(out: &mut String, step: &Step) {
    if step.shared.is_empty() {
        return;
    }
    out.push_str("<h3>Shared subscriptions</h3>\n");
    let mut grid = Grid::new(&["filter", "members", "received", "least", "most", "Gini"]);
    for group in &step.shared {
        grid.row(
            false,
            vec![
                Cell::text(group.filter.clone()),
                Cell::text(thousands(group.members)),
                Cell::text(thousands(group.received)),
                Cell::text(thousands(group.received_min)),
                Cell::text(thousands(group.received_max)),
                Cell::text(format!("{:.3}", group.gini)),
            ],
        );
    }
    grid.render(out);
}

fn health(out: &mut String, step: &Step) {
    if step.gates.is_empty() {
        return;
    }
    out.push_str("<h3>Health of the generator</h3>\n");
    let mut grid = Grid::new(&["check", "figure", "must stay below", ""]);
    for gate in &step.gates {
        let shown = |value: f64| match gate.unit.as_str() {
            "percent" => percent(value),
            "microseconds" => format::latency(value),
            unit => format!("{value:.2} {unit}"),
        };
        let held = if gate.passed { "holds" } else { "does not hold" };
        grid.row(
            false,
            vec![
                Cell::text(gate.name.clone()),
                Cell::text(shown(gate.value)),
                Cell::text(shown(gate.limit)),
                Cell::text(held.to_owned()).failed(!gate.passed),
            ],
        );
    }
    grid.render(out);
}

fn losses(out: &mut String, step: &Step) {
    let (mut lines, more) = lost(step, LOST_SHOWN);
    if more > 0 {
        lines.push(("and".to_owned(), format!("{more} more, see summary.json")));
    }
    if !lines.is_empty() {
        pairs(out, "Lost messages by sequence number", &lines);
    }
    if step.declared_lost.count > 0 {
        let by = step.declared_lost.by.iter();
        let mut lines = vec![("in all".to_owned(), thousands(step.declared_lost.count))];
        lines.extend(by.map(|(reason, count)| (reason.clone(), thousands(*count))));
        pairs(out, "Losses that the scenario declares", &lines);
    }
}

/// Thresholds and failures of clients.
pub(super) fn conditions(page: &mut Page, record: &RunRecord) {
    if !record.thresholds.is_empty() {
        page.section("thresholds", "Thresholds");
        let mut grid = Grid::new(&["condition", "figure", ""]);
        for result in &record.thresholds {
            let held = if result.passed { "holds" } else { "does not hold" };
            grid.row(
                false,
                vec![
                    Cell::text(result.condition.clone()),
                    Cell::text(result.shown()),
                    Cell::text(held.to_owned()).failed(!result.passed),
                ],
            );
        }
        grid.render(&mut page.out);
    }
    if !record.first_failures.is_empty() {
        page.section("failures", "First failures of clients");
        page.out.push_str("<ol class=\"failures\">");
        for sentence in &record.first_failures {
            let _ = write!(page.out, "<li>{}</li>", escape(sentence));
        }
        page.out.push_str("</ol>\n");
    }
}

/// How to do it again, where it was done, and what else there is.
pub(super) fn surroundings(page: &mut Page, data: &ReportData<'_>) {
    let record = data.record;
    page.section("reproduce", "How to reproduce");
    let command = &data.environment.command_line;
    if !command.is_empty() {
        page.note("The command, with passwords and tokens left out:");
        let line = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let _ = writeln!(page.out, "<pre>{}</pre>", escape(&line));
    }
    if record.kind == crate::record::RunKind::Run {
        page.note(
            "The same load from the files beside this page, whatever scenarios have become since:",
        );
        page.out.push_str("<pre>tacho run scenario.toml</pre>\n");
    }
    page.out.push_str("<div class=\"columns\">");
    let mut run: Vec<(String, String)> =
        record.vars.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    run.push(("seed".to_owned(), record.seed.to_string()));
    for target in &record.targets {
        let name = if target.name.is_empty() { "broker" } else { target.name.as_str() };
        run.push((name.to_owned(), target.broker.clone()));
        if target.durability.is_some() {
            run.push((format!("sessions of {name}"), course::keeping(target)));
        }
    }
    if let Some(command) = &record.target.command {
        run.push(("broker command".to_owned(), command.clone()));
    }
    let p50 = |stats: &LatencyStats| latency_or(stats.p50.map(|us| us as f64));
    if record.connect_us.count > 0 {
        run.push(("median time to CONNACK".to_owned(), p50(&record.connect_us)));
        if record.handshake_us.count > 0 {
            let handshake = p50(&record.handshake_us);
            run.push(("median time of TLS and WebSocket handshakes".to_owned(), handshake));
        }
        run.push(("median time to SUBACK".to_owned(), p50(&record.suback_us)));
    }
    if record.clients > 0 {
        let (connected, all) = (thousands(record.clients_connected), thousands(record.clients));
        run.push(("clients connected".to_owned(), format!("{connected} of {all}")));
        run.push(("failures of clients".to_owned(), thousands(record.client_failures)));
    }
    pairs(&mut page.out, "Scenario", &run);
    let monitors: Vec<_> = record
        .monitors
        .iter()
        .map(|monitor| {
            let of = monitor.target.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
            let clock = monitor.clock_error_us_max.map_or_else(
                || "clock error unknown".to_owned(),
                |us| format!("clock error at most {}", format::latency(us)),
            );
            let trouble = match monitor.errors + monitor.dropped {
                0 => String::new(),
                _ => format!(
                    "; {} errors, {} rows dropped{}",
                    monitor.errors,
                    monitor.dropped,
                    monitor.last_error.as_ref().map_or_else(String::new, |e| format!("; {e}"))
                ),
            };
            (
                format!("{}{of}", monitor.source),
                format!("{} rows; {clock}{trouble}", thousands(monitor.rows)),
            )
        })
        .collect();
    if !monitors.is_empty() {
        pairs(&mut page.out, "Watched hosts", &monitors);
    }
    page.out.push_str("</div>\n");
    page.section("environment", "Environment");
    page.out.push_str("<div class=\"columns\">");
    let entries = data.environment.entries();
    // Kernel settings follow the machine.
    let machine = entries.iter().position(|(name, _)| name.contains('.')).unwrap_or(entries.len());
    pairs(&mut page.out, "Machine", &entries[..machine]);
    if machine < entries.len() {
        pairs(&mut page.out, "Kernel settings", &entries[machine..]);
    }
    page.out.push_str("</div>\n");
    files(page);
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("--var"), "--var");
        assert_eq!(quoted("mosquitto -p {port}"), "'mosquitto -p {port}'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
