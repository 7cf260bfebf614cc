//! The body of the report of a ladder, a capacity search or a suite.

use std::fmt::Write as _;

use super::charts::{curve, quantile_chart};
use super::data::ReportData;
use super::elements::{escape, remarks, tiles};
use super::grid::{Cell, Grid};
use super::ladder::{self, is_invalid, short_rate};
use super::lang::Lang;
use super::page::Page;
use super::row_graphs::row_graphs;
use super::single::conditions;
use super::steps_table::{self, misprints, report_of, verdict_words};
use super::surroundings::surroundings;
use super::{capacity, repeats, words};
use tacho_record::{Position, RunKind, RunRecord, Series, Step};
use tacho_scenario::format::{latency, percent, rate};
use tacho_scenario::published;

/// Percentile curves in one chart: as many as there are colours.
const CURVES_MAX: usize = 8;

/// Everything below the head; what belongs above the contents goes to `head`.
pub(super) fn body(page: &mut Page, head: &mut String, data: &ReportData<'_>) {
    let (record, lang) = (data.record, page.lang);
    tiles(head, &key_figures(lang, record));
    remarks(lang, head, record);
    if let Some(found) = &record.capacity {
        page.section("capacity", lang.capacity());
        let ending = lang.ending(found);
        if !ending.is_empty() {
            page.note(&ending);
        }
        page.charts(vec![capacity::chart(lang, found)]);
        capacity::table(lang, record, found).render(&mut page.out);
    }
    repeats(page, record);
    recommendations(page, record);
    figures(page, record);
    step_tables(page, record);
    percentiles(page, data);
    row_graphs(page, data);
    left_out(page, record);
    conditions(page, record);
    surroundings(page, data);
}

fn key_figures(lang: Lang, record: &RunRecord) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    if let Some(found) = &record.capacity {
        let shown = |value: Option<f64>| {
            value.map_or_else(
                || lang.none().to_owned(),
                |value| super::axis::Unit::Number.show(value),
            )
        };
        let what = lang.variable(&found.variable);
        tiles.push((shown(found.highest_pass), lang.highest_passed(what)));
        tiles.push((shown(found.lowest_fail), lang.lowest_that_failed().to_owned()));
        if let Some(tps) = found.tps {
            tiles.push((rate(tps), lang.messages_per_second_in_out().to_owned()));
        }
    }
    for one in &record.recommendations {
        let series = record.series.iter().find(|series| series.name == one.series);
        let label = series.map_or(one.series.as_str(), |series| series.label.as_str());
        let value = match (one.position, one.tps, one.low) {
            (Position::Within, Some(tps), _) => short_rate(tps),
            (Position::AboveLadder, _, Some(low)) => format!("> {}", short_rate(low)),
            _ => continue,
        };
        tiles.push((value, lang.tps_at(&one.objective, label)));
    }
    let valid = record.steps.iter().filter(|step| !is_invalid(step) && record.capacity.is_none());
    if let Some(best) = valid.max_by(|a, b| a.tps.total_cmp(&b.tps)) {
        tiles.push((short_rate(best.tps), lang.highest_tps_of_a_valid_step().to_owned()));
        if let Some(p99) = best.latency_us.p99 {
            tiles.push((latency(p99 as f64), lang.p99_there().to_owned()));
        }
    }
    tiles.push((record.steps.len().to_string(), lang.steps_measured().to_owned()));
    if !record.skipped.is_empty() {
        tiles.push((record.skipped.len().to_string(), lang.points_skipped().to_owned()));
    }
    tiles
}

/// Median and range of each figure over repeats.
fn repeats(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    let rows = repeats::rows(lang, record);
    if rows.is_empty() {
        return;
    }
    page.section("repeats", lang.over_the_runs());
    let mut grid = Grid::new(&repeats::heads(lang));
    for cells in rows {
        grid.row(false, cells.into_iter().map(Cell::text).collect());
    }
    grid.render(&mut page.out);
}

fn recommendations(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    if record.recommendations.is_empty() {
        return;
    }
    page.section("recommended", lang.recommended_workload());
    let mut grid = Grid::new(&[
        lang.series(),
        lang.objective(),
        lang.whose_cpu(),
        lang.tps_in_out(),
        lang.interval_95(),
        lang.nearest_step(),
        "",
    ]);
    for one in &record.recommendations {
        let series = record.series.iter().find(|series| series.name == one.series);
        let label = series.map_or_else(|| one.series.clone(), |series| series.label.clone());
        let nearest = one.nearest_step.and_then(|index| record.steps.get(index));
        let interval = one.low.zip(one.high).filter(|_| one.position == Position::Within);
        let near = |step: &Step| {
            step.cpu_percent.map_or_else(
                || format!("{} TPS", rate(step.tps)),
                |cpu| lang.near(rate(step.tps), percent(cpu)),
            )
        };
        grid.row(
            false,
            vec![
                Cell::text(label),
                Cell::text(one.objective.clone()),
                Cell::text(lang.whose(&one.whose_cpu)),
                Cell::or_dash(one.tps.filter(|_| one.position == Position::Within).map(rate)),
                Cell::or_dash(interval.map(|(low, high)| lang.range(rate(low), rate(high)))),
                Cell::or_dash(nearest.map(near)),
                Cell::prose(match one.position {
                    Position::Within => String::new(),
                    _ => words::recommendation(lang, one),
                }),
            ],
        );
    }
    grid.render(&mut page.out);
    let mut methods: Vec<String> =
        record.recommendations.iter().map(|one| lang.found_by(one)).collect();
    methods.sort_unstable();
    methods.dedup();
    for method in methods.into_iter().filter(|method| !method.is_empty()) {
        page.note(&method);
    }
}

fn figures(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    for (index, figure) in ladder::figures(lang, record).into_iter().enumerate() {
        page.section(&format!("figure-{}", index + 1), &figure.title);
        page.out.push_str("<div class=\"charts\">\n");
        for chart in figure.charts {
            page.chart(chart, &figure.published);
        }
        page.out.push_str("</div>\n");
    }
}

/// Series with a variable as the guide lists them, single points as the BifroMQ report does.
fn step_tables(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    if record.capacity.is_some() {
        return;
    }
    let (stepped, rows): (Vec<&Series>, Vec<&Series>) =
        record.series.iter().partition(|series| series.variable.is_some());
    let guide = steps_table::guide(lang, record, &stepped);
    if !guide.is_empty() {
        page.section("steps", lang.steps());
        guide.render(&mut page.out);
        if guide.has_published() {
            page.note(&lang.published(&published::GUIDE));
        }
    }
    let rows = rows.into_iter().flat_map(|series| {
        series.steps.iter().filter_map(move |index| Some((series, record.steps.get(*index)?)))
    });
    let bifromq = steps_table::bifromq(lang, &rows.collect::<Vec<_>>());
    if !bifromq.is_empty() {
        page.section("rows", lang.scenarios());
        bifromq.render(&mut page.out);
        if bifromq.has_published() {
            page.note(&lang.published(&published::BIFROMQ));
            page.note(lang.scaled_rows());
        }
        let names = record.series.iter().map(|series| series.scenario.as_str());
        misprints(lang, names).iter().for_each(|note| page.note(note));
    }
    if !guide.is_empty() {
        let all = record.series.iter().filter(|series| series.variable.is_some());
        let steps = all.flat_map(|series| {
            series.steps.iter().filter_map(move |index| Some((series, record.steps.get(*index)?)))
        });
        let grid = steps_table::bifromq(lang, &steps.collect::<Vec<_>>());
        let summary = lang.the_same_steps_with_connections_and_rates_apart();
        let _ = writeln!(page.out, "<details><summary>{summary}</summary>");
        grid.render(&mut page.out);
        page.out.push_str("</details>\n");
    }
}

/// End-to-end curves of the steps of each series that has few enough.
fn percentiles(page: &mut Page, data: &ReportData<'_>) {
    let (record, lang) = (data.record, page.lang);
    let mut charts = Vec::new();
    for series in &record.series {
        let lines: Vec<_> = series
            .steps
            .iter()
            .filter_map(|index| Some((record.steps.get(*index)?, data.curves.get(*index)?)))
            .filter(|(step, curves)| !is_invalid(step) && !curves.latency.is_empty())
            .enumerate()
            .map(|(place, (step, curves))| curve(&step.label, place + 1, &curves.latency))
            .collect();
        if (2..=CURVES_MAX).contains(&lines.len()) {
            charts.push(quantile_chart(lang, &lang.series_heading(series), lines));
        }
    }
    if !charts.is_empty() {
        page.section("percentiles", lang.end_to_end_latency_by_percentile());
        page.charts(charts);
    }
}

/// Excluded figures and skipped runs.
fn left_out(page: &mut Page, record: &RunRecord) {
    let lang = page.lang;
    let invalid: Vec<&Step> = record.steps.iter().filter(|step| is_invalid(step)).collect();
    if !invalid.is_empty() {
        page.section("invalid", lang.steps_that_do_not_count());
        page.note(lang.hollow_and_hatched());
        page.out.push_str("<ul>");
        for step in invalid {
            let gates = step.gates.iter().filter(|gate| !gate.passed);
            let gates: Vec<_> = gates.map(|gate| lang.check_named(&gate.name)).collect();
            let why = match gates.is_empty() {
                true => verdict_words(lang, step.verdict).to_owned(),
                false => format!("{}: {}", verdict_words(lang, step.verdict), gates.join(", ")),
            };
            let name = match (step.series.as_str(), step.label.as_str()) {
                ("", label) => label.to_owned(),
                // The row of a suite, and the trial of a search, say it all.
                (series, label) if label.starts_with(series) => label.to_owned(),
                (_, label) if record.kind == RunKind::Capacity => label.to_owned(),
                (series, label) => format!("{series}, {label}"),
            };
            let (name, link) = (escape(&name), report_of(step));
            let name = match link.is_empty() {
                true => name,
                false => format!("<a href=\"{}\">{name}</a>", escape(&link)),
            };
            let _ = write!(page.out, "<li>{name}: {}</li>", escape(&why));
        }
        page.out.push_str("</ul>\n");
    }
    if !record.skipped.is_empty() {
        page.section("skipped", lang.skipped());
        let mut grid = Grid::new(&[lang.series(), lang.point(), lang.why()]);
        for point in &record.skipped {
            grid.row(
                false,
                vec![
                    Cell::text(point.series.clone()),
                    Cell::text(point.label.clone()),
                    Cell::prose(lang.skip_reason(&point.reason, point.obstacle.as_ref())),
                ],
            );
        }
        grid.render(&mut page.out);
    }
}
