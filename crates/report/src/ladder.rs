//! Latency and CPU against the stepped variable: the two graphs of a ladder, one pair per figure.

use std::collections::BTreeMap;

use super::axis::{Scale, Unit};
use super::chart::{Axis, Chart, Line, Mark, Marker, Style, from_zero, greatest, least};
use super::lang::Lang;
use tacho_record::{Position, Recommendation, RunKind, RunRecord, Series, Step, Verdict};
use tacho_scenario::format;
use tacho_scenario::published::{self, GuidePoint};

/// The figures of the record, each with its charts.
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) charts: Vec<Chart>,
    /// Published results for these series, with their hardware; empty without.
    pub(super) published: String,
}

/// One series with the steps that it is drawn from.
struct Drawn<'a> {
    lang: Lang,
    series: &'a Series,
    steps: Vec<&'a Step>,
    colour: usize,
    published: Vec<&'static GuidePoint>,
}

/// The x axis of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Against {
    /// Messages in and out per second.
    Throughput,
    /// The value of the variable.
    Variable,
}

/// All figures: series with the same `figure` are overlaid. A series of a single point is no curve
/// and stands in the table only.
pub(super) fn figures(lang: Lang, record: &RunRecord) -> Vec<Figure> {
    // Repeats of one load are no curve.
    if record.kind == RunKind::Repeats {
        return Vec::new();
    }
    let mut groups: Vec<(&str, Vec<&Series>)> = Vec::new();
    for series in record.series.iter().filter(|series| points(record, series) > 1) {
        let name = if series.figure.is_empty() { &series.name } else { &series.figure };
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(series),
            None => groups.push((name, vec![series])),
        }
    }
    groups.into_iter().map(|(name, members)| figure(lang, record, name, &members)).collect()
}

fn points(record: &RunRecord, series: &Series) -> usize {
    let steps = series.steps.iter().filter_map(|index| record.steps.get(*index));
    let mut labels: Vec<&str> = steps.map(|step| step.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.len()
}

fn figure(lang: Lang, record: &RunRecord, name: &str, members: &[&Series]) -> Figure {
    let drawn: Vec<Drawn<'_>> = members
        .iter()
        .enumerate()
        .map(|(index, series)| Drawn {
            lang,
            series,
            steps: series.steps.iter().filter_map(|step| record.steps.get(*step)).collect(),
            colour: index % 8 + 1,
            published: series
                .published
                .as_deref()
                .map_or_else(Vec::new, |key| published::guide_series(key).collect()),
        })
        .collect();
    let against = against(&drawn);
    let title = match members {
        [single] => lang.series_heading(single),
        _ => format::capitalised(name),
    };
    let published = match drawn.iter().any(|drawn| !drawn.published.is_empty()) {
        true => lang.published(&published::GUIDE),
        false => String::new(),
    };
    let mut charts =
        vec![latency(lang, &title, &drawn, against), cpu(lang, record, &title, &drawn, against)];
    if !published.is_empty() {
        let held = held_beside(lang, &drawn);
        charts
            .iter_mut()
            .for_each(|chart| chart.note = format!("{} {held}", chart.note).trim().to_owned());
    }
    Figure {
        charts: charts.into_iter().filter(|chart| !chart.is_empty()).collect(),
        title,
        published,
    }
}

/// How long the steps were held, ours and the published ones.
fn held_beside(lang: Lang, drawn: &[Drawn<'_>]) -> String {
    let ours = drawn.iter().flat_map(|drawn| &drawn.steps).map(|step| step.window_s);
    let (least, most) = ours
        .fold((f64::INFINITY, 0.0_f64), |(least, most), held| (least.min(held), most.max(held)));
    let (least, most) = (lang.span(least), lang.span(most));
    let ours = if least == most { most } else { lang.shortest_to_longest(least, most) };
    lang.held_beside(&ours, published::GUIDE.name, lang.held_by(&published::GUIDE))
}

/// Rates are drawn against the achieved rate in and out, other variables against their value.
fn against(drawn: &[Drawn<'_>]) -> Against {
    let rate = |series: &Series| {
        series.unit == "msg/s"
            || series.variable.as_deref().is_some_and(|name| name.contains("throughput"))
    };
    let numbers = drawn.iter().flat_map(|drawn| &drawn.steps).all(|step| step.x.is_some());
    match drawn.iter().all(|drawn| rate(drawn.series)) || !numbers {
        true => Against::Throughput,
        false => Against::Variable,
    }
}

/// A figure that does not count: the generator was the bottleneck, or the figures still moved.
pub(super) fn is_invalid(step: &Step) -> bool {
    let void = !step.verdict.counts() || step.verdict == Verdict::NotSteady;
    void || step.gates.iter().any(|gate| !gate.passed)
}

type Figured = fn(&Step) -> Option<f64>;

impl Drawn<'_> {
    fn at(&self, step: &Step, against: Against) -> f64 {
        match against {
            Against::Throughput => step.tps,
            Against::Variable => step.x.unwrap_or(step.tps),
        }
    }

    /// A line through the medians of the repeats of each step, and a hollow mark for each figure
    /// that does not count.
    fn lines(
        &self,
        name: &str,
        against: Against,
        style: Style,
        marker: Marker,
        pick: Figured,
    ) -> Vec<Line> {
        let mut valid: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        let mut hollow = Vec::new();
        for step in &self.steps {
            let Some(value) = pick(step) else { continue };
            let x = self.at(step, against);
            match is_invalid(step) {
                true => hollow.push((x, Some(value))),
                false => valid.entry(&step.label).or_default().push((x, value)),
            }
        }
        let mut points: Vec<(f64, Option<f64>)> = valid
            .into_values()
            .map(|repeats| {
                let middle = |pick: fn(&(f64, f64)) -> f64| median(repeats.iter().map(pick));
                (middle(|point| point.0), Some(middle(|point| point.1)))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        hollow.sort_by(|a, b| a.0.total_cmp(&b.0));
        let line = |name: String, style, marker, points| Line {
            name,
            colour: self.colour,
            style,
            marker,
            published: false,
            points,
        };
        let mut lines = vec![line(name.to_owned(), style, marker, points)];
        if !hollow.is_empty() {
            lines.push(line(self.lang.invalid(name), Style::None, Marker::Hollow, hollow));
        }
        lines.retain(|line| !line.points.is_empty());
        lines
    }

    /// Published results for the series.
    fn published(
        &self,
        name: &str,
        against: Against,
        style: Style,
        marker: Marker,
        pick: fn(&GuidePoint) -> Option<f64>,
    ) -> Line {
        let at = |point: &GuidePoint| match against {
            Against::Throughput => point.tps,
            Against::Variable => f64::from(point.payload_bytes),
        };
        // Of what else than the payload the guide stepped there are no curves.
        let comparable = against == Against::Throughput
            || self.series.variable.as_deref() == Some("payload_size");
        // A sentence is no point of the curve.
        let points = self.published.iter().filter(|point| comparable && !point.from_text());
        Line {
            name: format!("{}: {name}", published::GUIDE.name),
            colour: self.colour,
            style,
            marker,
            published: true,
            points: points.filter_map(|point| Some((at(point), Some(pick(point)?)))).collect(),
        }
    }
}

fn x_axis(lang: Lang, drawn: &[Drawn<'_>], against: Against, lines: &[Line]) -> Axis {
    let greatest_x = lines
        .iter()
        .filter(|line| !line.published)
        .flat_map(|line| line.points.iter().map(|(x, _)| *x))
        .fold(0.0, f64::max);
    let series = drawn.first().map(|drawn| drawn.series);
    let (title, unit) = match (against, series) {
        (Against::Variable, Some(series)) => {
            let name = lang.variable(series.variable.as_deref().unwrap_or("step"));
            (lang.variable_in(&name, &series.unit), Unit::Number)
        }
        _ => (lang.throughput_messages_in_out_per_second().to_owned(), Unit::Rate),
    };
    Axis { title, scale: Scale::exactly(0.0, greatest_x * 1.05, unit), unit }
}

fn latency(lang: Lang, title: &str, drawn: &[Drawn<'_>], against: Against) -> Chart {
    let mut lines = Vec::new();
    for each in drawn {
        let label = label(drawn, each);
        let mean = |step: &Step| step.latency_us.mean;
        let p99 = |step: &Step| step.latency_us.p99.map(|us| us as f64);
        let (avg_name, p99_name) = (format!("{label}{}", lang.avg()), format!("{label}p99"));
        lines.extend(each.lines(&avg_name, against, Style::Dashed, Marker::Triangle, mean));
        lines.extend(each.lines(&p99_name, against, Style::Plain, Marker::Dot, p99));
    }
    for each in drawn {
        let label = label(drawn, each);
        let (avg_name, p99_name) = (format!("{label}{}", lang.avg()), format!("{label}p99"));
        lines.push(each.published(&avg_name, against, Style::None, Marker::Triangle, |point| {
            point.mean_ms.map(|ms| ms * 1000.0)
        }));
        lines.push(each.published(&p99_name, against, Style::None, Marker::Dot, |point| {
            point.p99_ms.map(|ms| ms * 1000.0)
        }));
    }
    lines.retain(|line| !line.points.is_empty());
    let x = x_axis(lang, drawn, against, &lines);
    let own: Vec<Line> = lines.iter().filter(|line| !line.published).cloned().collect();
    // Where one step is far above the others, only a logarithm shows both.
    let spread = greatest(&own) / least(&own).max(1.0);
    let y = match spread > 100.0 {
        true => super::chart::logarithmic(lang, lang.latency(), Unit::Latency, &own),
        false => from_zero(lang.latency(), Unit::Latency, &own),
    };
    Chart { wide: true, ..Chart::new(&lang.latency_of(title), x, y, lines) }
}

fn cpu(
    lang: Lang,
    record: &RunRecord,
    title: &str,
    drawn: &[Drawn<'_>],
    against: Against,
) -> Chart {
    let mut lines = Vec::new();
    let mut marks = Vec::new();
    let mut whose: Vec<&str> = Vec::new();
    for each in drawn {
        let name = if drawn.len() > 1 { each.series.label.clone() } else { "CPU".to_owned() };
        let pick = |step: &Step| step.cpu_percent;
        lines.extend(each.lines(&name, against, Style::Plain, Marker::Dot, pick));
        for name in each.steps.iter().filter_map(|step| step.whose_cpu.as_deref()) {
            if !whose.contains(&name) {
                whose.push(name);
            }
        }
    }
    for each in drawn {
        let name = if drawn.len() > 1 { &each.series.label } else { "CPU" };
        let pick = |point: &GuidePoint| point.cpu_percent;
        lines.push(each.published(name, against, Style::Dashed, Marker::Dot, pick));
    }
    lines.retain(|line| !line.points.is_empty());
    let recommendations: Vec<(&Drawn<'_>, &Recommendation)> = drawn
        .iter()
        .flat_map(|each| {
            let own = record.recommendations.iter().filter(|one| one.series == each.series.name);
            own.map(move |recommendation| (each, recommendation))
        })
        .collect();
    let level = recommendations.iter().find_map(|(_, one)| objective_percent(&one.objective));
    let level = level.unwrap_or(75.0);
    marks.push(Mark { y: level, x: None, name: format!("{level} %"), colour: 0 });
    if against == Against::Throughput {
        for (each, one) in recommendations {
            let Some(tps) = one.tps.filter(|_| one.position == Position::Within) else { continue };
            let y = objective_percent(&one.objective).unwrap_or(level);
            let name = short_rate(tps);
            marks.push(Mark { y, x: Some(tps), name, colour: each.colour });
        }
    }
    let x = x_axis(lang, drawn, against, &lines);
    let y = Axis {
        title: lang.cpu_axis().to_owned(),
        scale: Scale::exactly(0.0, 100.0, Unit::Percent),
        unit: Unit::Percent,
    };
    let mut chart = Chart::new(&lang.cpu_of(title), x, y, lines);
    if !whose.is_empty() {
        let whose: Vec<_> = whose.into_iter().map(|name| lang.whose(name)).collect();
        chart.note = lang.mean_of_steps(whose.join(", "));
    }
    Chart { wide: true, marks, ..chart }
}

/// The prefix of `avg` and `p99` in the legend.
fn label(drawn: &[Drawn<'_>], each: &Drawn<'_>) -> String {
    if drawn.len() > 1 { format!("{} ", each.series.label) } else { String::new() }
}

/// The percentage of an objective such as `cpu<=75%`.
fn objective_percent(objective: &str) -> Option<f64> {
    let (_, number) = objective.rsplit_once(['<', '=', '>'])?;
    number.trim().trim_end_matches('%').trim().parse().ok()
}

/// `57.2K`.
pub(super) fn short_rate(rate: f64) -> String {
    match rate {
        rate if rate >= 10_000.0 => format!("{:.1}K", rate / 1e3),
        rate => format::rate(rate),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_have_a_percentage() {
        assert_eq!(objective_percent("cpu<=75%"), Some(75.0));
        assert_eq!(objective_percent("cpu < 60.5 %"), Some(60.5));
        assert_eq!(objective_percent("p99<10ms"), None);
    }

    #[test]
    fn repeats_become_their_median_and_invalid_steps_hollow_marks() {
        let step = |label: &str, tps, cpu, verdict| Step {
            label: label.to_owned(),
            tps,
            cpu_percent: Some(cpu),
            verdict,
            ..Step::default()
        };
        let steps = vec![
            step("b", 20.0, 40.0, Verdict::Ok),
            step("a", 10.0, 20.0, Verdict::Ok),
            step("a", 10.2, 24.0, Verdict::Ok),
            step("a", 10.1, 90.0, Verdict::Ok),
            step("c", 30.0, 99.0, Verdict::GeneratorBound),
        ];
        let series = Series {
            name: "s".to_owned(),
            variable: Some("target_throughput".to_owned()),
            steps: (0..5).collect(),
            ..Series::default()
        };
        let record = RunRecord { steps, series: vec![series], ..RunRecord::default() };
        let figures = figures(Lang::En, &record);
        let chart = &figures[0].charts[0];
        let points: Vec<_> = chart.lines.iter().map(|line| line.points.clone()).collect();
        assert_eq!(points[0], [(10.1, Some(24.0)), (20.0, Some(40.0))]);
        assert_eq!(points[1], [(30.0, Some(99.0))]);
        assert_eq!(chart.lines[1].marker, Marker::Hollow);
    }
}
