//! The body of the report of a ladder, a capacity search or a suite.

use std::fmt::Write as _;

use super::ReportData;
use super::charts::{curve, quantile_chart};
use super::grid::{Cell, Grid};
use super::html::{escape, remarks, tiles};
use super::ladder::{self, is_invalid, short_rate};
use super::page::Page;
use super::single::{conditions, surroundings};
use super::steps_table::{self, report_of, verdict_words};
use super::{capacity, words};
use crate::format::{latency, percent, rate};
use crate::published;
use crate::record::{Position, RunRecord, Series, Step};

/// Percentile curves in one chart: as many as there are colours.
const CURVES_MAX: usize = 8;

/// Everything below the head; what belongs above the contents goes to `head`.
pub(super) fn body(page: &mut Page, head: &mut String, data: &ReportData<'_>) {
    let record = data.record;
    tiles(head, &key_figures(record));
    remarks(head, record);
    if let Some(found) = &record.capacity {
        page.section("capacity", "Capacity");
        if !found.ending.is_empty() {
            page.note(&found.ending);
        }
        page.charts(vec![capacity::chart(found)]);
        capacity::table(record, found).render(&mut page.out);
    }
    recommendations(page, record);
    figures(page, record);
    step_tables(page, record);
    percentiles(page, data);
    left_out(page, record);
    conditions(page, record);
    surroundings(page, data);
}

fn key_figures(record: &RunRecord) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    if let Some(found) = &record.capacity {
        let shown = |value: Option<f64>| {
            value.map_or_else(|| "none".to_owned(), |value| super::axis::Unit::Number.show(value))
        };
        let what = found.variable.replace('_', " ");
        tiles.push((shown(found.highest_pass), format!("highest {what} that passed")));
        tiles.push((shown(found.lowest_fail), "lowest that failed".to_owned()));
        if let Some(tps) = found.tps {
            tiles.push((rate(tps), "messages per second, in + out".to_owned()));
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
        tiles.push((value, format!("TPS at {}: {label}", one.objective)));
    }
    let valid = record.steps.iter().filter(|step| !is_invalid(step) && record.capacity.is_none());
    if let Some(best) = valid.max_by(|a, b| a.tps.total_cmp(&b.tps)) {
        tiles.push((short_rate(best.tps), "highest TPS of a valid step".to_owned()));
        if let Some(p99) = best.latency_us.p99 {
            tiles.push((latency(p99 as f64), "99th percentile there".to_owned()));
        }
    }
    tiles.push((record.steps.len().to_string(), "steps measured".to_owned()));
    if !record.skipped.is_empty() {
        tiles.push((record.skipped.len().to_string(), "points skipped".to_owned()));
    }
    tiles
}

fn recommendations(page: &mut Page, record: &RunRecord) {
    if record.recommendations.is_empty() {
        return;
    }
    page.section("recommended", "Recommended workload");
    let mut grid = Grid::new(&[
        "series",
        "objective",
        "whose CPU",
        "TPS in + out",
        "95 % interval",
        "nearest step",
        "",
    ]);
    for one in &record.recommendations {
        let series = record.series.iter().find(|series| series.name == one.series);
        let label = series.map_or_else(|| one.series.clone(), |series| series.label.clone());
        let nearest = one.nearest_step.and_then(|index| record.steps.get(index));
        let interval = one.low.zip(one.high).filter(|_| one.position == Position::Within);
        let near = |step: &Step| {
            let cpu =
                step.cpu_percent.map_or_else(String::new, |cpu| format!(" at {}", percent(cpu)));
            format!("{} TPS{cpu}", rate(step.tps))
        };
        grid.row(
            false,
            vec![
                Cell::text(label),
                Cell::text(one.objective.clone()),
                Cell::text(one.whose_cpu.clone()),
                Cell::or_dash(one.tps.filter(|_| one.position == Position::Within).map(rate)),
                Cell::or_dash(
                    interval.map(|(low, high)| format!("{} to {}", rate(low), rate(high))),
                ),
                Cell::or_dash(nearest.map(near)),
                Cell::prose(match one.position {
                    Position::Within => String::new(),
                    _ => words::recommendation(one),
                }),
            ],
        );
    }
    grid.render(&mut page.out);
    let mut methods: Vec<&str> =
        record.recommendations.iter().map(|one| one.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    for method in methods.into_iter().filter(|method| !method.is_empty()) {
        page.note(method);
    }
}

fn figures(page: &mut Page, record: &RunRecord) {
    for (index, figure) in ladder::figures(record).into_iter().enumerate() {
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
    if record.capacity.is_some() {
        return;
    }
    let (stepped, rows): (Vec<&Series>, Vec<&Series>) =
        record.series.iter().partition(|series| series.variable.is_some());
    let guide = steps_table::guide(record, &stepped);
    if !guide.is_empty() {
        page.section("steps", "Steps");
        guide.render(&mut page.out);
        if guide.has_published() {
            let source = published::GUIDE;
            page.note(&format!("{}: {}. Load: {}.", source.name, source.hardware, source.load));
        }
    }
    let rows = rows.into_iter().flat_map(|series| {
        series.steps.iter().filter_map(move |index| Some((series, record.steps.get(*index)?)))
    });
    let bifromq = steps_table::bifromq(&rows.collect::<Vec<_>>());
    if !bifromq.is_empty() {
        page.section("rows", "Scenarios");
        bifromq.render(&mut page.out);
        if bifromq.has_published() {
            let source = published::BIFROMQ;
            page.note(&format!("{}: {}. Load: {}.", source.name, source.hardware, source.load));
        }
    }
    if !guide.is_empty() {
        let all = record.series.iter().filter(|series| series.variable.is_some());
        let steps = all.flat_map(|series| {
            series.steps.iter().filter_map(move |index| Some((series, record.steps.get(*index)?)))
        });
        let grid = steps_table::bifromq(&steps.collect::<Vec<_>>());
        page.out.push_str(
            "<details><summary>The same steps with connections and rates apart</summary>\n",
        );
        grid.render(&mut page.out);
        page.out.push_str("</details>\n");
    }
}

/// End-to-end curves of the steps of each series that has few enough.
fn percentiles(page: &mut Page, data: &ReportData<'_>) {
    let record = data.record;
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
            charts.push(quantile_chart(&series.label, lines));
        }
    }
    if !charts.is_empty() {
        page.section("percentiles", "End-to-end latency by percentile");
        page.charts(charts);
    }
}

/// What does not count, and what was not run.
fn left_out(page: &mut Page, record: &RunRecord) {
    let invalid: Vec<&Step> = record.steps.iter().filter(|step| is_invalid(step)).collect();
    if !invalid.is_empty() {
        page.section("invalid", "Steps that do not count");
        page.note("Hollow in the charts and hatched in the tables; no result is drawn from them.");
        page.out.push_str("<ul>");
        for step in invalid {
            let gates = step.gates.iter().filter(|gate| !gate.passed);
            let gates: Vec<_> = gates.map(|gate| gate.name.clone()).collect();
            let why = match gates.is_empty() {
                true => verdict_words(step.verdict).to_owned(),
                false => format!("{}: {}", verdict_words(step.verdict), gates.join(", ")),
            };
            let name = match (step.series.as_str(), step.label.as_str()) {
                ("", label) => label.to_owned(),
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
        page.section("skipped", "Skipped");
        let mut grid = Grid::new(&["series", "point", "why"]);
        for point in &record.skipped {
            grid.row(
                false,
                vec![
                    Cell::text(point.series.clone()),
                    Cell::text(point.label.clone()),
                    Cell::prose(point.reason.clone()),
                ],
            );
        }
        grid.render(&mut page.out);
    }
}
