//! `report.html` of a comparison: all sides in one table and in the same charts.

use std::fmt::Write as _;

use super::axis::{Scale as AxisScale, Unit};
use super::chart::{Axis, Chart, Line, Marker, Style, from_zero};
use super::charts::{curve, quantile_chart};
use super::comparison_text::{change_shown, ends_shown, floor_shown, interval_ends, median_shown};
use super::document::{document, files};
use super::elements::{banner, escape, given, tiles};
use super::grid::{Cell, Grid};
use super::intervals::{Span, drawn};
use super::lang::Lang;
use super::page::Page;
use super::steps_table::verdict_words;
use super::surroundings::quoted;
use tacho_record::{
    Change, Comparison, ComparisonSide, Difference, FigureRow, FigureUnit, Judgement, Point,
    Repeat, SideCurve, Spread,
};
use tacho_scenario::format::capitalised;

/// Figures that stand on top, and that are drawn repeat by repeat.
const KEY_FIGURES: [&str; 4] = ["tps", "e2e_p99", "broker_cpu_per_message", "broker_rss"];

/// The whole page.
pub fn comparison_html(comparison: &Comparison, curves: &[SideCurve], lang: Lang) -> String {
    let mut head = String::new();
    header(lang, &mut head, comparison);
    let mut page = Page::new(lang);
    differences(&mut page, comparison);
    percentiles(&mut page, comparison, curves);
    over_steps(&mut page, comparison);
    over_repeats(&mut page, comparison);
    surroundings(&mut page, comparison);
    repeats(&mut page, comparison);
    method(&mut page, comparison);
    let title = format!("{} – {}", comparison.name, lang.judgement(comparison.verdict));
    document(&title, &head, page, &comparison.tool_version)
}

fn header(lang: Lang, out: &mut String, comparison: &Comparison) {
    let mut facts = vec![comparison.name.clone(), comparison.started_at.clone()];
    if comparison.elapsed_s > 0.0 {
        facts.push(lang.duration(comparison.elapsed_s));
    }
    let description = lang.description(&comparison.description, &comparison.description_zh);
    banner(out, lang.comparison(), (&comparison.scenario, description), &facts);
    given(lang, out, &comparison.given);
    let class = match comparison.verdict {
        Judgement::Better | Judgement::NoChange => "class=\"verdict ok\"",
        Judgement::Worse | Judgement::Mixed => "class=\"verdict\"",
        Judgement::Unclear => {
            "class=\"verdict\" style=\"background:var(--warn-bg);border-color:var(--warn)\""
        }
    };
    let colour = match comparison.verdict {
        Judgement::Unclear => " style=\"color:var(--warn)\"",
        _ => "",
    };
    let sentence = lang.compared(comparison);
    let _ = write!(
        out,
        "<section {class}><b{colour}>{}</b><p>{}</p><ul>",
        capitalised(lang.judgement(comparison.verdict)),
        escape(&sentence)
    );
    let mut sides = Vec::new();
    for side in &comparison.sides {
        let before = side.before.as_ref();
        let before = before.map_or_else(String::new, |command| lang.after_command(command));
        sides.push((side.name.as_str(), format!("{}{before}", lang.side_of(side))));
    }
    if !comparison.aa_repeats.is_empty() {
        sides.push(("A/A", lang.the_first_side_once_more().to_owned()));
    }
    for (index, (name, label)) in sides.iter().enumerate() {
        let _ = write!(
            out,
            "<li class=\"c{}\"><b style=\"color:var(--line);font-size:inherit\">{}</b> {}</li>",
            index % 8 + 1,
            escape(name),
            escape(label)
        );
    }
    for result in &comparison.conditions {
        let sentence = lang.condition_was(result);
        let _ = write!(out, "<li>{}</li>", escape(&sentence));
    }
    out.push_str("</ul></section>\n");
    if let ([point], [_, _]) = (&comparison.points[..], &comparison.sides[..]) {
        let key = |name: &&str| point.figures.iter().find(|row| row.name == *name);
        let tile = |row: &FigureRow| {
            let change = row.changes.first()?;
            let (figure, verdict) = (lang.figure_of(row), lang.judgement(change.verdict));
            let words = format!("{figure}{}{verdict}", lang.colon());
            Some((change_shown(row, change), words))
        };
        let shown: Vec<_> = KEY_FIGURES.iter().filter_map(key).filter_map(tile).collect();
        if !shown.is_empty() {
            tiles(out, &shown);
        }
    }
    for note in lang.notes(&comparison.notes, &comparison.remarks) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&note));
    }
}

fn differences(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    page.section("differences", lang.differences());
    page.note(lang.about_differences());
    for point in &comparison.points {
        if !point.label.is_empty() {
            let words = capitalised(lang.judgement(point.verdict));
            let colon = lang.colon();
            let _ = writeln!(page.out, "<h3>{}{colon}{words}</h3>", escape(&point.label));
        }
        table(lang, &mut page.out, comparison, point);
    }
}

fn table(lang: Lang, out: &mut String, comparison: &Comparison, point: &Point) {
    let span = Span::of(&point.figures);
    let with_aa = point.figures.iter().any(|row| row.aa.is_some());
    let names = comparison.sides.iter().map(|side| side.name.as_str());
    let heads = std::iter::once(lang.figure()).chain(names).chain(with_aa.then_some("A/A"));
    out.push_str("<div class=\"scroll\"><table class=\"grid\"><thead><tr>");
    for head in heads.chain([lang.change()]) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    let _ = write!(
        out,
        "<th scope=\"col\" style=\"text-align:center\">{}</th><th scope=\"col\"></th>\
         <th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>",
        span.head(),
        lang.interval_95(),
        lang.noise_floor()
    );
    for row in &point.figures {
        for (index, change) in row.changes.iter().enumerate() {
            let label = if index == 0 { lang.figure_of(row) } else { String::new() };
            let _ = write!(out, "<tr><th>{}</th>", escape(&label));
            for spread in row.spreads(with_aa) {
                let (median, range) = match index {
                    0 => spread_cell(lang, row, spread),
                    _ => (String::new(), String::new()),
                };
                let _ = write!(
                    out,
                    "<td>{}<br><small style=\"color:var(--ink-3)\">{}</small></td>",
                    escape(&median),
                    escape(&range)
                );
            }
            change_cells(lang, out, (row, change), span);
        }
    }
    out.push_str("</tbody></table></div>\n");
}

/// The median, and the least and the greatest value.
fn spread_cell(lang: Lang, row: &FigureRow, spread: Option<&Spread>) -> (String, String) {
    let range = spread.and_then(|spread| ends_shown(row, spread));
    let range = range.map_or_else(String::new, |(min, max)| lang.range(min, max));
    (median_shown(row, spread), range)
}

fn change_cells(lang: Lang, out: &mut String, (row, change): (&FigureRow, &Change), span: Span) {
    let colour = match change.verdict {
        Judgement::Better => "color:var(--good);font-weight:600",
        Judgement::Worse => "color:var(--bad);font-weight:600",
        _ => "color:var(--ink-2)",
    };
    let words = lang.judgement(change.verdict);
    let verdict = match row.changes.len() {
        1 => words.to_owned(),
        _ => format!("{}{}{words}", change.side, lang.colon()),
    };
    let interval = interval_ends(row, change)
        .map_or_else(|| "–".to_owned(), |(low, high)| lang.range(low, high));
    let (shown, floor) = (change_shown(row, change), floor_shown(row, change));
    let figure = lang.figure_of(row);
    let sentence = lang.change_was((&figure, &shown, change.verdict), &interval, &floor);
    let _ = write!(
        out,
        "<td>{}</td><td style=\"text-align:center\">{}</td>\
         <td style=\"{colour}\" title=\"{}\">{}</td><td>{}</td><td>{}</td></tr>",
        escape(&shown),
        drawn(row, change, span, &sentence),
        escape(&lang.reason_of(change)),
        escape(&verdict),
        escape(&interval),
        escape(&floor)
    );
}

fn percentiles(page: &mut Page, comparison: &Comparison, curves: &[SideCurve]) {
    let lang = page.lang;
    let mut lines = Vec::new();
    for (index, side) in curves.iter().enumerate() {
        let repeats = comparison.sides.get(index).map_or(0, |side| side.repeats.len());
        let name = match repeats {
            1 => side.name.clone(),
            _ => lang.all_messages_of(&side.name),
        };
        lines.push(curve(&name, index + 1, &side.pooled));
        if !side.slowest.is_empty() {
            let name = lang.slowest_repeat_of(&side.name);
            lines.push(curve(&name, index + 1, &side.slowest).style(Style::Dashed));
        }
    }
    if lines.iter().all(Line::is_empty) {
        return;
    }
    page.section("percentiles", lang.latency_by_percentile());
    let chart = quantile_chart(lang, lang.end_to_end_latency_by_percentile(), lines);
    page.charts(vec![Chart { wide: true, ..chart }]);
}

/// The axis quantity of a figure.
const fn axis_unit(unit: FigureUnit) -> Unit {
    match unit {
        FigureUnit::MessagesPerS | FigureUnit::PerSecond => Unit::Rate,
        FigureUnit::Microseconds | FigureUnit::CpuMicroseconds => Unit::Latency,
        FigureUnit::Percent => Unit::Percent,
        FigureUnit::Bytes => Unit::Bytes,
        FigureUnit::Count => Unit::Number,
    }
}

/// With ladders: medians of each step.
fn over_steps(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    let points: Vec<(f64, &Point)> =
        comparison.points.iter().filter_map(|point| Some((point.x?, point))).collect();
    // Several series have the same places on the axis.
    if points.len() < 2 || !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return;
    }
    let chart = |name: &&'static str| {
        let all = points.iter().flat_map(|(_, point)| &point.figures);
        let figure = all.into_iter().find(|row| row.name == *name)?;
        let line = |(index, side): (usize, &ComparisonSide)| {
            let value = |(x, point): &(f64, &Point)| {
                let row = point.figures.iter().find(|row| row.name == figure.name);
                (*x, row.and_then(|row| row.sides.get(index)?.median))
            };
            let points = points.iter().map(value).collect();
            Line { marker: Marker::Dot, ..Line::plain(&side.name, index + 1, points) }
        };
        let lines: Vec<Line> = comparison.sides.iter().enumerate().map(line).collect();
        let unit = axis_unit(figure.unit);
        let from = points.first().map_or(0.0, |(x, _)| *x);
        let to = points.last().map_or(1.0, |(x, _)| *x);
        let scale = AxisScale::exactly(from, to, Unit::Number);
        let x = Axis { title: lang.step_axis().to_owned(), scale, unit: Unit::Number };
        let label = lang.figure_of(figure);
        let y = from_zero(&label, unit, &lines);
        Some(Chart::new(&capitalised(&label), x, y, lines))
    };
    let charts: Vec<Chart> =
        KEY_FIGURES.iter().filter_map(chart).filter(|chart| !chart.is_empty()).collect();
    if !charts.is_empty() {
        page.section("steps", lang.medians_over_the_steps());
        page.charts(charts);
    }
}

/// The repeats one by one: a trend is none of the brokers'.
fn over_repeats(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    let [point] = &comparison.points[..] else { return };
    let chart = |name: &&'static str| {
        let row = point.figures.iter().find(|row| row.name == *name)?;
        let names = comparison.sides.iter().map(|side| side.name.as_str());
        let mut shown: Vec<(&str, &Spread)> = names.zip(&row.sides).collect();
        shown.extend(row.aa.as_ref().map(|aa| ("A/A", &aa.spread)));
        let longest = shown.iter().map(|(_, spread)| spread.values.len()).max().unwrap_or(0);
        if longest < 2 {
            return None;
        }
        let lines: Vec<Line> = shown
            .iter()
            .enumerate()
            .map(|(index, (name, spread))| {
                let values = spread.values.iter().enumerate();
                let points = values.map(|(repeat, value)| ((repeat + 1) as f64, Some(*value)));
                let line = Line::plain(name, index + 1, points.collect());
                Line { marker: Marker::Dot, ..line }
            })
            .collect();
        let unit = axis_unit(row.unit);
        let scale = AxisScale::exactly(1.0, longest as f64, Unit::Number);
        let x = Axis { title: lang.repeats_that_count().to_owned(), scale, unit: Unit::Number };
        let label = lang.figure_of(row);
        let y = from_zero(&label, unit, &lines);
        Some(Chart::new(&capitalised(&label), x, y, lines))
    };
    let charts: Vec<Chart> = KEY_FIGURES.iter().filter_map(chart).collect();
    if !charts.is_empty() {
        page.section("course", lang.repeat_by_repeat());
        page.charts(charts);
    }
}

fn surroundings(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    let table = |page: &mut Page, differences: &[Difference]| {
        let mut heads = vec![""];
        heads.extend(comparison.sides.iter().map(|side| side.name.as_str()));
        let mut grid = Grid::new(&heads);
        for difference in differences {
            let values = lang.difference_values(difference).into_iter().map(Cell::prose);
            let name = Cell::text(lang.difference_name(difference));
            grid.row(false, std::iter::once(name).chain(values).collect());
        }
        grid.render(&mut page.out);
    };
    page.section("environment", lang.differs_in_the_environment());
    match comparison.environment.is_empty() {
        true => page.note(lang.environments_are_the_same()),
        false => table(page, &comparison.environment),
    }
    if !comparison.scenario_differences.is_empty() {
        page.section("scenarios", lang.differs_in_the_scenario());
        table(page, &comparison.scenario_differences);
    }
}

fn repeats(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    page.section("repeats", lang.repeats_section());
    let with_command = comparison.sides.iter().any(|side| side.before.is_some());
    let mut heads =
        vec![lang.side(), lang.repeat_column(), lang.started(), lang.verdict(), lang.why()];
    if with_command {
        heads.push(lang.command_before());
    }
    let mut grid = Grid::new(&heads);
    let of_sides = comparison.sides.iter().map(|side| (side.name.as_str(), &side.repeats));
    let groups = of_sides.chain([(lang.once_more(), &comparison.aa_repeats)]);
    let mut all: Vec<(&str, usize, &Repeat)> = groups
        .flat_map(|(name, repeats)| {
            repeats.iter().enumerate().map(move |(index, repeat)| (name, index, repeat))
        })
        .collect();
    if comparison.interleaved {
        all.sort_by(|left, right| left.2.started_at.cmp(&right.2.started_at));
    }
    for (side, index, repeat) in all {
        let inside = !repeat.directory.starts_with('/') && comparison.interleaved;
        let mut number = (index + 1).to_string();
        if repeat.made_up {
            number.push_str(lang.in_place_of_another());
        }
        let link = match inside {
            true => Cell::link(&number, &format!("{}/report.html", repeat.directory)),
            false => Cell::text(format!("{number} ({})", repeat.directory)),
        };
        let reasons = lang.reasons(&repeat.reasons, &repeat.causes);
        let mut cells = vec![
            Cell::text(side.to_owned()),
            link,
            Cell::text(repeat.started_at.clone()),
            Cell::text(verdict_words(lang, repeat.verdict).to_owned()),
            Cell::prose(reasons.join(lang.between_reasons())),
        ];
        if with_command {
            let ran = repeat.before.as_ref().map(|before| {
                let about = (before.command.as_str(), before.exit_code, before.seconds);
                lang.command_ran(about, before.output.trim())
            });
            cells.push(Cell::prose(ran.unwrap_or_default()));
        }
        grid.row(!repeat.counts, cells);
    }
    grid.render(&mut page.out);
    let all = comparison.sides.iter().flat_map(|side| &side.repeats);
    if all.chain(&comparison.aa_repeats).any(|repeat| !repeat.counts) {
        page.note(lang.hatched_repeats());
    }
}

fn method(page: &mut Page, comparison: &Comparison) {
    let lang = page.lang;
    page.section("method", lang.how_differences_are_told());
    page.note(&lang.method(comparison));
    page.section("reproduce", lang.how_to_reproduce());
    page.note(lang.the_command_with_passwords_and_tokens_left_out());
    let line: Vec<String> = comparison.command_line.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(page.out, "<pre>{}</pre>", escape(&line.join(" ")));
    files(page);
}
