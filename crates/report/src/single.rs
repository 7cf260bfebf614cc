//! The body of the report of a single run.

use std::fmt::Write as _;

use super::actions;
use super::agents;
use super::brokers;
use super::charts;
use super::course;
use super::data::ReportData;
use super::elements::{escape, pairs, remarks, tiles};
use super::grid::{Cell, Grid};
use super::hosts;
use super::lang::{Lang, of_check};
use super::logins;
use super::page::Page;
use super::services;
use super::steps_table;
use super::surroundings::surroundings;
use super::tables::{latencies, latency_heads, lost, tables};
use super::words;
use tacho_record::{Headline, RunRecord, Series, Step, StepCurves, WhoseCpu};
use tacho_scenario::format::{self, percent, rate, thousands};

/// Runs of lost messages that are shown.
const LOST_SHOWN: usize = 50;

/// Everything below the head; what belongs above the contents goes to `head`.
pub(super) fn body(page: &mut Page, head: &mut String, data: &ReportData<'_>) {
    let (record, lang) = (data.record, page.lang);
    let end_s = data.rows.last().map_or(0.0, |row| row.start_s + row.length_s);
    page.marks = actions::marks(lang, &record.actions, end_s);
    if let Some(step) = record.steps.last() {
        tiles(head, &key_figures(lang, record, step));
    }
    remarks(lang, head, record);
    if !data.rows.is_empty() {
        page.section("time", lang.rates_and_latency_over_time());
        let logins = logins::charts(lang, data.rows);
        let shows_messages = logins.is_empty() || charts::has_messages(data.rows);
        page.charts(logins);
        if shows_messages {
            page.charts(charts::overview(lang, data.rows));
            page.charts(charts::four_graphs(lang, data.rows));
        }
    }
    if !record.actions.is_empty() {
        page.section("actions", lang.actions());
        actions::table(lang, &mut page.out, record);
    }
    if !record.phases.is_empty() {
        page.section("phases", lang.phases());
        course::tables(lang, &mut page.out, record);
    }
    percentile_curves(page, data);
    if !data.rows.is_empty() {
        page.section("requests", lang.response_times_throughput_and_failures());
        page.charts(services::charts(lang, data.rows));
        page.section("resources", lang.broker_network_and_generator());
        let mut resources = vec![
            charts::cpu(lang, data.rows, data.brokers),
            charts::memory(lang, data.rows, data.brokers),
        ];
        resources.extend(charts::round_trips(lang, data.rows));
        resources.extend(charts::generator(lang, data.rows));
        resources.retain(|chart| !chart.is_empty());
        page.charts(resources);
    }
    let brokers = brokers::panels(lang, data.brokers, data.rows);
    for (index, panels) in brokers.into_iter().enumerate() {
        page.section(&format!("broker-{}", index + 1), &lang.broker_called(&panels.name));
        page.charts(panels.charts);
    }
    for (index, panels) in hosts::panels(lang, data.hosts, data.rows).into_iter().enumerate() {
        page.section(&format!("host-{}", index + 1), &panels.title);
        page.charts(panels.charts);
    }
    for (index, step) in record.steps.iter().enumerate() {
        match record.steps.len() {
            1 => page.section("figures", lang.figures_of_the_measured_window()),
            _ => {
                page.section(&format!("figures-{}", index + 1), &lang.figures_of_window(index + 1))
            }
        }
        figures(lang, &mut page.out, step);
    }
    agents::section(page, record);
    conditions(page, record);
    surroundings(page, data);
}

fn key_figures(lang: Lang, record: &RunRecord, step: &Step) -> Vec<(String, String)> {
    let us = |value: Option<u64>| lang.latency_or(value.map(|value| value as f64));
    let on_top = |headline: &Headline| (lang.headline_value(headline), lang.headline(headline));
    let on_top: Vec<(String, String)> = record.headlines.iter().map(on_top).collect();
    let mean = step.latency_us.mean.map_or_else(|| us(None), format::latency);
    let mut tiles = vec![
        (rate(step.tps), lang.messages_per_second_in_out()),
        (mean, lang.mean_latency()),
        (us(step.latency_us.p99), lang.p99_of_latency()),
        (thousands(step.lost), lang.deliveries_lost()),
    ];
    if step.has_only_logins() {
        tiles.clear();
    }
    if step.acknowledged_lost > 0 || course::is_eventful(record) {
        tiles.push((thousands(step.acknowledged_lost), lang.deliveries_acknowledged_but_lost()));
    }
    match (step.cpu_percent, step.whose_cpu.as_deref().and_then(WhoseCpu::parse)) {
        (Some(cpu), Some(WhoseCpu::Host)) => {
            tiles.push((percent(cpu), lang.cpu_of_the_brokers_host()))
        }
        (Some(cpu), Some(WhoseCpu::BrokerCores)) => {
            tiles.push((percent(cpu), lang.cpu_of_the_brokers_cores()))
        }
        _ => tiles.push((
            lang.percent_or(step.broker_cpu_percent),
            lang.broker_cpu_one_core_100_percent(),
        )),
    }
    let rss = step.broker_rss_bytes.map_or_else(|| lang.not_observed().to_owned(), format::bytes);
    tiles.push((rss, lang.memory_of_the_broker_rss()));
    if record.steps.len() > 1 {
        tiles.push((record.steps.len().to_string(), lang.measured_windows_figures_of_the_last()));
    }
    let latencies = [lang.mean_latency(), lang.p99_of_latency()];
    let share = words::arrived_much_less(step);
    let label = |name: &str| match &share {
        Some(share) if latencies.contains(&name) => lang.of_those_that_arrived(name, share),
        _ => name.to_owned(),
    };
    let others = tiles.into_iter().map(|(value, name)| (value, label(name)));
    on_top.into_iter().chain(others).collect()
}

fn percentile_curves(page: &mut Page, data: &ReportData<'_>) {
    let has_latencies = |curves: &StepCurves| !curves.latency.is_empty();
    let only_logins = data.record.steps.iter().all(Step::has_only_logins);
    if data.curves.is_empty() || only_logins && !data.curves.iter().any(has_latencies) {
        return;
    }
    let lang = page.lang;
    page.section("percentiles", lang.latency_by_percentile());
    let title = |index: usize| match data.curves.len() {
        1 => lang.latency_by_percentile().to_owned(),
        _ => lang.percentiles_of_window(index + 1),
    };
    let curves = data.curves.iter().enumerate();
    let drawn = curves.map(|(index, curves)| charts::percentiles(lang, &title(index), curves));
    page.charts(drawn.collect());
}

fn figures(lang: Lang, out: &mut String, step: &Step) {
    let mut heads = vec![lang.latency()];
    heads.extend(latency_heads(lang));
    let mut grid = Grid::new(&heads);
    let mut too_few = false;
    for (name, cells) in latencies(lang, step) {
        too_few |= cells.iter().any(Option::is_none);
        let cells = cells.into_iter().map(Cell::or_dash);
        grid.row(false, std::iter::once(Cell::text(name.to_owned())).chain(cells).collect());
    }
    grid.render(out);
    if too_few {
        let note = lang.too_few_for_this_percentile();
        let _ = writeln!(out, "<p class=\"chart-note\">{note}</p>");
    }
    out.push_str("<div class=\"columns\">\n");
    for table in tables(lang, step) {
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
    logins::table(lang, out, step);
    groups(lang, out, step);
    broker_table(lang, out, step);
    shared(lang, out, step);
    agents::table(lang, out, step);
    health(lang, out, step);
    if !step.has_only_logins() {
        published_columns(lang, out, step);
    }
    losses(lang, out, step);
}

fn published_columns(lang: Lang, out: &mut String, step: &Step) {
    let series = Series::default();
    let published = steps_table::bifromq(lang, &[(&series, step)]);
    let _ = writeln!(out, "<h3>{}</h3>", lang.in_the_columns_of_published_tables());
    published.render(out);
    for note in steps_table::misprints(lang, std::iter::once(step.scenario.as_str())) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&note));
    }
}

fn groups(lang: Lang, out: &mut String, step: &Step) {
    if step.groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.groups_of_clients());
    let mut grid = Grid::new(&[
        lang.group(),
        lang.clients(),
        lang.sent(),
        lang.deliveries_expected(),
        lang.received(),
        lang.lost(),
        lang.declared_lost(),
        lang.mean(),
        "p50",
        "p99",
        lang.max(),
    ]);
    for group in &step.groups {
        let us = |us: Option<u64>| Cell::or_dash(us.map(|us| format::latency(us as f64)));
        grid.row(
            false,
            vec![
                Cell::text(group.name.clone()),
                Cell::text(thousands(group.clients)),
                Cell::text(thousands(group.sent)),
                Cell::text(thousands(group.expected)),
                Cell::text(thousands(group.received)),
                Cell::text(thousands(group.lost)),
                Cell::text(thousands(group.declared_lost)),
                Cell::or_dash(group.latency_us.mean.map(format::latency)),
                us(group.latency_us.p50),
                us(group.latency_us.p99),
                us(group.latency_us.max),
            ],
        );
    }
    grid.render(out);
}

fn broker_table(lang: Lang, out: &mut String, step: &Step) {
    if step.targets.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.brokers());
    let mut grid = Grid::new(&[
        lang.broker(),
        lang.in_s(),
        lang.out_s(),
        lang.tps_in_out(),
        "CPU",
        lang.whose_column(),
        "RSS",
        lang.host_cpu(),
    ]);
    for target in &step.targets {
        grid.row(
            false,
            vec![
                Cell::text(target.name.clone()),
                Cell::text(rate(target.achieved_in_per_s)),
                Cell::text(rate(target.achieved_out_per_s)),
                Cell::text(rate(target.tps)),
                Cell::or_dash(target.cpu_percent.map(percent)),
                Cell::or_dash(target.whose_cpu.as_deref().map(|name| lang.whose(name))),
                Cell::or_dash(target.broker_rss_bytes.map(format::bytes)),
                Cell::or_dash(target.host_cpu_percent.map(percent)),
            ],
        );
    }
    grid.render(out);
}

fn shared(lang: Lang, out: &mut String, step: &Step) {
    if step.shared.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.shared_subscriptions());
    let mut grid = Grid::new(&[
        lang.filter(),
        lang.members(),
        lang.received(),
        lang.least(),
        lang.most(),
        lang.gini(),
    ]);
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

fn health(lang: Lang, out: &mut String, step: &Step) {
    if step.gates.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.health_of_the_generator());
    let mut grid = Grid::new(&[lang.check(), lang.figure(), lang.must_stay_below(), ""]);
    for gate in &step.gates {
        let shown = |value: f64| match gate.name.known() {
            Some(check) => of_check(check, value),
            None => format!("{value:.2} {}", gate.unit),
        };
        let held = if gate.passed { lang.holds() } else { lang.does_not_hold() };
        grid.row(
            false,
            vec![
                Cell::text(match &gate.agent {
                    None => lang.check_named(&gate.name).to_owned(),
                    Some(agent) => lang.check_of_agent(lang.check_named(&gate.name), agent),
                }),
                Cell::text(shown(gate.value)),
                Cell::text(shown(gate.limit)),
                Cell::text(held.to_owned()).failed(!gate.passed),
            ],
        );
    }
    grid.render(out);
}

fn losses(lang: Lang, out: &mut String, step: &Step) {
    let (mut lines, more) = lost(lang, step, LOST_SHOWN);
    if more > 0 {
        lines.push((lang.and_others().to_owned(), lang.more_in_summary(more)));
    }
    if !lines.is_empty() {
        pairs(out, lang.lost_messages_by_sequence_number(), &lines);
    }
    if step.declared_lost.count > 0 {
        let by = step.declared_lost.by.iter();
        let mut lines = vec![(lang.in_all().to_owned(), thousands(step.declared_lost.count))];
        lines.extend(by.map(|(reason, count)| (reason.clone(), thousands(*count))));
        pairs(out, lang.losses_that_the_scenario_declares(), &lines);
    }
}

/// Thresholds and failures of clients.
pub(super) fn conditions(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    if !record.thresholds.is_empty() {
        page.section("thresholds", lang.thresholds());
        let mut grid = Grid::new(&[lang.condition(), lang.figure(), ""]);
        for result in &record.thresholds {
            let held = if result.passed { lang.holds() } else { lang.does_not_hold() };
            grid.row(
                false,
                vec![
                    Cell::text(result.condition.clone()),
                    Cell::text(lang.measured(&result.condition, result.value)),
                    Cell::text(held.to_owned()).failed(!result.passed),
                ],
            );
        }
        grid.render(&mut page.out);
    }
    if !record.first_failures.is_empty() {
        page.section("failures", lang.first_failures_of_clients());
        page.out.push_str("<ol class=\"failures\">");
        for sentence in &record.first_failures {
            let _ = write!(page.out, "<li>{}</li>", escape(sentence));
        }
        page.out.push_str("</ol>\n");
    }
}
