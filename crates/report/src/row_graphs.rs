//! The graphs of single rows over their measured windows: those that the BifroMQ report has for
//! each of its rows.

use std::fmt::Write as _;

use super::axis::{Scale, Unit};
use super::chart::{Axis, Chart, from_zero};
use super::data::ReportData;
use super::elements::escape;
use super::lang::Lang;
use super::over_time::{float, line_of};
use super::page::Page;
use tacho_record::{Step, StepSecond};

/// Rate, mean, 99th percentile and maximum of every row, folded under its name.
pub(super) fn row_graphs(page: &mut Page, data: &ReportData<'_>) {
    let (record, lang) = (data.record, page.lang);
    let rows = record.series.iter().filter(|series| series.variable.is_none());
    let positions = rows.flat_map(|series| series.steps.iter().copied());
    let drawn: Vec<(&Step, &[StepSecond])> = positions
        .filter_map(|at| Some((record.steps.get(at)?, data.curves.get(at)?.seconds.as_slice())))
        .filter(|(_, seconds)| seconds.len() > 1)
        .collect();
    if drawn.is_empty() {
        return;
    }
    page.section("graphs", lang.graphs_of_the_rows());
    page.note(lang.graphs_as_published());
    for (step, seconds) in drawn {
        let name = if step.label.is_empty() { &step.scenario } else { &step.label };
        let _ = writeln!(
            page.out,
            "<details class=\"row-graphs\"><summary>{}</summary>",
            escape(name).replace('_', "_<wbr>")
        );
        page.charts(graphs(lang, seconds));
        page.out.push_str("</details>\n");
    }
}

/// The four graphs of a row.
fn graphs(lang: Lang, seconds: &[StepSecond]) -> Vec<Chart> {
    let chart =
        |title: &str, y: &str, unit, (name, colour), pick: fn(&StepSecond) -> Option<f64>| {
            let values = seconds.iter().map(|one| (one.start_s, one.length_s, pick(one)));
            let lines = vec![line_of(name, colour, values)];
            let y = from_zero(y, unit, &lines);
            Chart::new(title, window_axis(lang, seconds), y, lines)
        };
    let latency = |title: &str, colour, pick| {
        chart(title, lang.latency(), Unit::Latency, (lang.end_to_end(), colour), pick)
    };
    let mut charts = vec![
        chart(
            lang.rate_messages_received(),
            lang.messages_per_second(),
            Unit::Rate,
            (lang.received(), 3),
            |one| Some(one.received_per_s),
        ),
        latency(lang.mean_latency_title(), 1, |one| one.mean_us),
        latency(lang.p99_of_latency(), 2, |one| float(one.p99_us)),
        latency(lang.greatest_latency(), 4, |one| float(one.max_us)),
    ];
    charts.retain(|chart| !chart.is_empty());
    charts
}

fn window_axis(lang: Lang, seconds: &[StepSecond]) -> Axis {
    let end = seconds.last().map_or(1.0, |last| last.start_s + last.length_s);
    Axis {
        title: lang.time_in_the_window_s().to_owned(),
        scale: Scale::exactly(0.0, end, Unit::Seconds),
        unit: Unit::Seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_rate_mean_p99_and_maximum_over_its_window() {
        let second = |start_s| StepSecond {
            start_s,
            length_s: 1.0,
            received_per_s: 1000.0 + start_s,
            mean_us: Some(100.0),
            p99_us: Some(900),
            max_us: None,
        };
        let charts = graphs(Lang::En, &[second(0.0), second(1.0)]);
        // Nothing is drawn of what was not observed.
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        let (rate, mean) = (Lang::En.rate_messages_received(), Lang::En.mean_latency_title());
        assert_eq!(titles, [rate, mean, Lang::En.p99_of_latency()]);
        assert_eq!(charts[0].lines[0].points, [(0.5, Some(1000.0)), (1.5, Some(1001.0))]);
        assert_eq!(charts[0].x.scale.ends(), (0.0, 2.0));
    }
}
