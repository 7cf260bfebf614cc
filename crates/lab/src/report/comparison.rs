//! `report.html` of a comparison: all sides in one table and in the same charts.

use std::fmt::Write as _;

use super::Lang;
use super::axis::{Scale as AxisScale, Unit};
use super::chart::{Axis, Chart, Line, Marker, Style, from_zero};
use super::charts::{curve, quantile_chart};
use super::grid::{Cell, Grid};
use super::html::{banner, document, escape, files, tiles};
use super::intervals::{Span, drawn};
use super::page::Page;
use super::single::quoted;
use super::steps_table::verdict_words;
use crate::compare::{
    Comparison, Difference, FIGURES, FigureRow, FigureUnit, Judgement, Point, SideCurve,
    change_shown, floor_shown, interval_shown, spread_shown, verdict_sentence,
};
use crate::format::capitalised;

/// Figures that stand on top, and that are drawn repeat by repeat.
const KEY_FIGURES: [&str; 4] = ["tps", "e2e_p99", "broker_cpu_per_message", "broker_rss"];

/// The page speaks English only.
const LANG: Lang = Lang::En;

/// The whole page.
pub fn comparison_html(comparison: &Comparison, curves: &[SideCurve]) -> String {
    let mut head = String::new();
    header(&mut head, comparison);
    let mut page = Page::new(LANG);
    differences(&mut page, comparison);
    percentiles(&mut page, comparison, curves);
    over_steps(&mut page, comparison);
    over_repeats(&mut page, comparison);
    surroundings(&mut page, comparison);
    repeats(&mut page, comparison);
    method(&mut page, comparison);
    let words = comparison.verdict.words();
    let title = format!("{} – {words}", comparison.name);
    document(&title, &head, page, &comparison.tool_version)
}

fn header(out: &mut String, comparison: &Comparison) {
    let mut facts = vec![comparison.name.clone(), comparison.started_at.clone()];
    if comparison.elapsed_s > 0.0 {
        facts.push(LANG.duration(comparison.elapsed_s));
    }
    banner(out, "Comparison", (&comparison.scenario, &comparison.description), &facts);
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
    let _ = write!(
        out,
        "<section {class}><b{colour}>{}</b><p>{}</p><ul>",
        capitalised(comparison.verdict.words()),
        escape(&capitalised(&verdict_sentence(comparison)))
    );
    for (index, side) in comparison.sides.iter().enumerate() {
        let before = side.before.as_ref().map_or_else(String::new, |c| format!(", after '{c}'"));
        let _ = write!(
            out,
            "<li class=\"c{}\"><b style=\"color:var(--line);font-size:inherit\">{}</b> {}{}</li>",
            index % 8 + 1,
            escape(&side.name),
            escape(&side.label),
            escape(&before)
        );
    }
    for result in &comparison.conditions {
        let why = result.reasons.join("; ");
        let sentence = match why.is_empty() {
            true => format!("{}: {}", result.condition, result.outcome.words()),
            false => format!("{}: {}: {why}", result.condition, result.outcome.words()),
        };
        let _ = write!(out, "<li>{}</li>", escape(&sentence));
    }
    out.push_str("</ul></section>\n");
    if let ([point], [_, _]) = (&comparison.points[..], &comparison.sides[..]) {
        let key = |name: &&str| point.figures.iter().find(|row| row.name == *name);
        let tile = |row: &FigureRow| {
            let change = row.changes.first()?;
            let words = format!("{}: {}", row.label, change.verdict.words());
            Some((change_shown(row, change), words))
        };
        let shown: Vec<_> = KEY_FIGURES.iter().filter_map(key).filter_map(tile).collect();
        if !shown.is_empty() {
            tiles(out, &shown);
        }
    }
    for note in &comparison.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
}

fn differences(page: &mut Page, comparison: &Comparison) {
    page.section("differences", "Differences");
    page.note(
        "Medians of the repeats, with the least and the greatest below. The dot is the change, \
         the line its 95 % confidence interval, the grey band what comparisons of the first side \
         with itself come to. Better or worse is said only when the line leaves zero out and the \
         dot the band.",
    );
    for point in &comparison.points {
        if !point.label.is_empty() {
            let words = capitalised(point.verdict.words());
            let _ = writeln!(page.out, "<h3>{}: {words}</h3>", escape(&point.label));
        }
        table(&mut page.out, comparison, point);
    }
}

fn table(out: &mut String, comparison: &Comparison, point: &Point) {
    let span = Span::of(&point.figures);
    out.push_str(
        "<div class=\"scroll\"><table class=\"grid\"><thead><tr><th scope=\"col\">figure</th>",
    );
    for side in &comparison.sides {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&side.name));
    }
    let _ = write!(
        out,
        "<th scope=\"col\">change</th><th scope=\"col\" style=\"text-align:center\">{}</th>\
         <th scope=\"col\">95 % interval</th><th scope=\"col\">floor</th>\
         <th scope=\"col\"></th></tr></thead><tbody>",
        span.head()
    );
    for row in &point.figures {
        for (index, change) in row.changes.iter().enumerate() {
            let label = match index {
                0 => row.label.as_str(),
                _ => "",
            };
            let _ = write!(out, "<tr><th>{}</th>", escape(label));
            for spread in &row.sides {
                let (median, range) = match index {
                    0 => spread_shown(row, spread),
                    _ => (String::new(), String::new()),
                };
                let _ = write!(
                    out,
                    "<td>{}<br><small style=\"color:var(--ink-3)\">{}</small></td>",
                    escape(&median),
                    escape(&range)
                );
            }
            let colour = match change.verdict {
                Judgement::Better => "color:var(--good);font-weight:600",
                Judgement::Worse => "color:var(--bad);font-weight:600",
                _ => "color:var(--ink-2)",
            };
            let verdict = match row.changes.len() {
                1 => change.verdict.words().to_owned(),
                _ => format!("{}: {}", change.side, change.verdict.words()),
            };
            let _ = write!(
                out,
                "<td>{}</td><td style=\"text-align:center\">{}</td><td>{}</td><td>{}</td>\
                 <td style=\"{colour}\" title=\"{}\">{}</td></tr>",
                escape(&change_shown(row, change)),
                drawn(row, change, span),
                escape(&interval_shown(row, change)),
                escape(&floor_shown(row, change)),
                escape(&change.reason),
                escape(&verdict)
            );
        }
    }
    out.push_str("</tbody></table></div>\n");
}

fn percentiles(page: &mut Page, comparison: &Comparison, curves: &[SideCurve]) {
    let mut lines = Vec::new();
    for (index, side) in curves.iter().enumerate() {
        let repeats = comparison.sides.get(index).map_or(0, |side| side.repeats.len());
        let name = match repeats {
            1 => side.name.clone(),
            _ => format!("{}: all messages of its repeats", side.name),
        };
        lines.push(curve(&name, index + 1, &side.pooled));
        if !side.slowest.is_empty() {
            let name = format!("{}: slowest repeat", side.name);
            lines.push(curve(&name, index + 1, &side.slowest).style(Style::Dashed));
        }
    }
    if lines.iter().all(Line::is_empty) {
        return;
    }
    page.section("percentiles", "Latency by percentile");
    let chart = quantile_chart(LANG, "End-to-end latency by percentile", lines);
    page.charts(vec![Chart { wide: true, ..chart }]);
}

/// What a figure is on an axis.
const fn axis_unit(unit: FigureUnit) -> Unit {
    match unit {
        FigureUnit::MessagesPerS => Unit::Rate,
        FigureUnit::Microseconds | FigureUnit::CpuMicroseconds => Unit::Latency,
        FigureUnit::Percent => Unit::Percent,
        FigureUnit::Bytes => Unit::Bytes,
        FigureUnit::Count => Unit::Number,
    }
}

/// With ladders: medians of each step.
fn over_steps(page: &mut Page, comparison: &Comparison) {
    let points: Vec<(f64, &Point)> =
        comparison.points.iter().filter_map(|point| Some((point.x?, point))).collect();
    // Several series have the same places on the axis.
    if points.len() < 2 || !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return;
    }
    let chart = |name: &&'static str| {
        let figure = FIGURES.iter().find(|figure| figure.name == *name)?;
        let line = |(index, side): (usize, &crate::compare::ComparisonSide)| {
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
        let x = Axis { title: "step".to_owned(), scale, unit: Unit::Number };
        let y = from_zero(figure.label, unit, &lines);
        Some(Chart::new(&capitalised(figure.label), x, y, lines))
    };
    let charts: Vec<Chart> =
        KEY_FIGURES.iter().filter_map(chart).filter(|chart| !chart.is_empty()).collect();
    if !charts.is_empty() {
        page.section("steps", "Medians over the steps");
        page.charts(charts);
    }
}

/// The repeats one by one: a trend is none of the brokers'.
fn over_repeats(page: &mut Page, comparison: &Comparison) {
    let [point] = &comparison.points[..] else { return };
    let chart = |name: &&'static str| {
        let row = point.figures.iter().find(|row| row.name == *name)?;
        let longest = row.sides.iter().map(|side| side.values.len()).max().unwrap_or(0);
        if longest < 2 {
            return None;
        }
        let sides = comparison.sides.iter().zip(&row.sides).enumerate();
        let lines: Vec<Line> = sides
            .map(|(index, (side, spread))| {
                let values = spread.values.iter().enumerate();
                let points = values.map(|(repeat, value)| ((repeat + 1) as f64, Some(*value)));
                let line = Line::plain(&side.name, index + 1, points.collect());
                Line { marker: Marker::Dot, ..line }
            })
            .collect();
        let unit = axis_unit(row.unit);
        let scale = AxisScale::exactly(1.0, longest as f64, Unit::Number);
        let x = Axis { title: "repeats that count".to_owned(), scale, unit: Unit::Number };
        let y = from_zero(&row.label, unit, &lines);
        Some(Chart::new(&capitalised(&row.label), x, y, lines))
    };
    let charts: Vec<Chart> = KEY_FIGURES.iter().filter_map(chart).collect();
    if !charts.is_empty() {
        page.section("course", "Repeat by repeat");
        page.charts(charts);
    }
}

fn surroundings(page: &mut Page, comparison: &Comparison) {
    let table = |page: &mut Page, differences: &[Difference]| {
        let mut heads = vec![""];
        heads.extend(comparison.sides.iter().map(|side| side.name.as_str()));
        let mut grid = Grid::new(&heads);
        for difference in differences {
            let values = difference.values.iter().map(|value| Cell::prose(value.clone()));
            let name = Cell::text(difference.name.clone());
            grid.row(false, std::iter::once(name).chain(values).collect());
        }
        grid.render(&mut page.out);
    };
    page.section("environment", "What differs in the environment");
    match comparison.environment.is_empty() {
        true => page.note("Nothing that is recorded: machine, kernel settings, versions, pinning."),
        false => table(page, &comparison.environment),
    }
    if !comparison.scenario_differences.is_empty() {
        page.section("scenarios", "What differs in the scenario");
        table(page, &comparison.scenario_differences);
    }
}

fn repeats(page: &mut Page, comparison: &Comparison) {
    page.section("repeats", "Repeats");
    let with_command = comparison.sides.iter().any(|side| side.before.is_some());
    let mut heads = vec!["side", "repeat", "started", "verdict", "why"];
    if with_command {
        heads.push("command before");
    }
    let mut grid = Grid::new(&heads);
    let mut all: Vec<_> = comparison
        .sides
        .iter()
        .flat_map(|side| side.repeats.iter().enumerate().map(move |repeat| (side, repeat)))
        .collect();
    if comparison.interleaved {
        all.sort_by(|left, right| left.1.1.started_at.cmp(&right.1.1.started_at));
    }
    for (side, (index, repeat)) in all {
        let inside = !repeat.directory.starts_with('/') && comparison.interleaved;
        let number = (index + 1).to_string();
        let link = match inside {
            true => Cell::link(&number, &format!("{}/report.html", repeat.directory)),
            false => Cell::text(format!("{number} ({})", repeat.directory)),
        };
        let mut cells = vec![
            Cell::text(side.name.clone()),
            link,
            Cell::text(repeat.started_at.clone()),
            Cell::text(verdict_words(LANG, repeat.verdict).to_owned()),
            Cell::prose(repeat.reasons.join("; ")),
        ];
        if with_command {
            let ran = repeat.before.as_ref().map(|before| {
                let output = before.output.trim();
                let said = if output.is_empty() { String::new() } else { format!(": {output}") };
                let code = before.exit_code.map_or_else(|| "?".to_owned(), |code| code.to_string());
                format!("{} (exit code {code}, {:.1} s){said}", before.command, before.seconds)
            });
            cells.push(Cell::prose(ran.unwrap_or_default()));
        }
        grid.row(!repeat.counts, cells);
    }
    grid.render(&mut page.out);
    if comparison.sides.iter().flat_map(|side| &side.repeats).any(|repeat| !repeat.counts) {
        page.note("Hatched repeats do not count: they say nothing about the broker.");
    }
}

fn method(page: &mut Page, comparison: &Comparison) {
    let method = &comparison.method;
    page.section("method", "How differences are told from noise");
    let turns = match comparison.interleaved {
        true => {
            "Repeats were made in turns (first, second, second, first, and so on), so that what \
             drifts meets all sides. "
        }
        false => "",
    };
    page.note(&format!(
        "{turns}A side is the median of its repeats; percentiles of repeats are never averaged. \
         The interval comes from {} draws of the repeats of both sides anew (percentile \
         bootstrap, seed {}). The floor is what {:.0} % of such differences stay below when both \
         sides are drawn from the first one, at least {:.0} % and the resolution of the figure. \
         With {} figures one may differ by chance: a change that matters shows again when the \
         comparison is repeated.",
        method.draws,
        method.seed,
        method.confidence * 100.0,
        method.floor_percent_min,
        comparison.points.first().map_or(0, |point| point.figures.len()),
    ));
    page.section("reproduce", "How to reproduce");
    page.note("The command, with passwords and tokens left out:");
    let line: Vec<String> = comparison.command_line.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(page.out, "<pre>{}</pre>", escape(&line.join(" ")));
    files(page);
}
