//! The tables at the end of a ladder, a search or a suite, for terminals and logs.

use std::fmt::Write as _;

use super::columns::{Cells, TextTable, cut};
use super::elements::given_lines;
use super::lang::Lang;
use super::repeats;
use super::text::closing_text;
use tacho_record::{
    Capacity, Position, Recommendation, RunKind, RunRecord, Severity, Skipped, Step, StepTarget,
    TrialOutcome,
};
use tacho_scenario::format;
use tacho_scenario::steps::{is_rate, shown};

/// Width of the column of labels: with it, a line of figures has at most 100 letters.
const LABEL_WIDTH: usize = 28;

/// The summary of a campaign as plain text, every figure with its unit.
pub fn campaign_text(record: &RunRecord) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", record.scenario, record.description);
    given_lines(Lang::En, &mut out, &record.given);
    for target in &record.targets {
        let name = match target.name.as_str() {
            "" => String::new(),
            name => format!("{name}: "),
        };
        let _ = writeln!(out, "target {name}{}, MQTT {}", target.broker, target.version);
    }
    if record.kind == RunKind::Capacity {
        if let Some(capacity) = &record.capacity {
            trials(&mut out, capacity, record);
        }
    } else {
        series(&mut out, record);
    }
    repeated(&mut out, record);
    for skipped in &record.skipped {
        let Skipped { series, label, reason, .. } = skipped;
        let _ = writeln!(out, "skipped {series}, {label}: {reason}");
    }
    let _ = writeln!(out);
    for recommendation in &record.recommendations {
        let _ = writeln!(out, "{}", recommendation_text(recommendation, &record.steps));
    }
    if let Some(capacity) = &record.capacity {
        let _ = writeln!(out, "{}", capacity_text(capacity));
    }
    closing_text(&mut out, record, Severity::Warning);
    out
}

fn head(out: &mut String, label: &str) {
    let label = cut(label, LABEL_WIDTH);
    let _ = writeln!(
        out,
        "  {label:<LABEL_WIDTH$} {:>7} {:>7} {:>7} {:>5} {:>7} {:>7} {:>5}  verdict",
        "in/s", "out/s", "TPS", "CPU %", "mean", "p99", "loss%"
    );
}

/// A rate in seven letters.
fn rate(per_s: f64) -> String {
    match per_s {
        per_s if per_s.is_finite() && per_s >= 999_999.5 => {
            format!("{}M", format::three_digits(per_s / 1e6))
        }
        per_s => format::rate(per_s),
    }
}

/// A percentage in five letters, without its sign.
fn percent(value: f64) -> String {
    match value {
        value if value >= 999.95 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

/// Rates and CPU, as all lines begin.
fn rates(label: &str, [incoming, outgoing, tps]: [f64; 3], cpu: Option<f64>) -> String {
    let label = cut(label, LABEL_WIDTH);
    let cpu = cpu.map_or_else(|| "-".to_owned(), percent);
    let [incoming, outgoing, tps] = [incoming, outgoing, tps].map(rate);
    format!("  {label:<LABEL_WIDTH$} {incoming:>7} {outgoing:>7} {tps:>7} {cpu:>5}")
}

/// One step as a line of figures, as the tables have it.
pub fn step_line(label: &str, step: &Step) -> String {
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), format::latency);
    let loss = match step.loss_percent() {
        0.0 => "0".to_owned(),
        loss if loss < 9.995 => format!("{loss:.2}"),
        loss => percent(loss),
    };
    let rates =
        rates(label, [step.achieved_in_per_s, step.achieved_out_per_s, step.tps], step.cpu_percent);
    format!(
        "{rates} {:>7} {:>7} {loss:>5}  {}",
        latency(step.latency_us.mean),
        latency(step.latency_us.p99.map(|p99| p99 as f64)),
        step.verdict.name()
    )
}

/// Median and range of each figure over repeats.
fn repeated(out: &mut String, record: &RunRecord) {
    let rows = repeats::rows(Lang::En, record);
    if rows.is_empty() {
        return;
    }
    let [figure, numbers @ ..] = repeats::heads(Lang::En).map(str::to_owned);
    let heads = [figure.to_uppercase()].into_iter().chain(numbers);
    let mut table = TextTable::new(heads.collect(), vec![Cells::Figures; 4]);
    for row in rows {
        table.push(row.into());
    }
    let _ = writeln!(out);
    table.write(out);
}

/// The part of one of several brokers.
fn target_line(target: &StepTarget) -> String {
    let name = if target.name.is_empty() { "the default broker" } else { &target.name };
    rates(
        &format!("  at {name}"),
        [target.achieved_in_per_s, target.achieved_out_per_s, target.tps],
        target.cpu_percent,
    )
}

/// What the labels of steps are: those of suites are totals, as published.
fn column(kind: RunKind, variable: &str) -> &str {
    match kind {
        RunKind::Suite if is_rate(variable) => "TPS (in + out)",
        _ => variable,
    }
}

fn series(out: &mut String, record: &RunRecord) {
    for series in &record.series {
        if series.steps.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", series.label.to_uppercase());
        let variable = series.variable.as_deref().unwrap_or("");
        head(out, column(record.kind, variable));
        for step in series.steps.iter().filter_map(|index| record.steps.get(*index)) {
            // The head of the column names the variable.
            let value = step.label.strip_prefix(variable).and_then(|rest| rest.strip_prefix('='));
            let _ = writeln!(out, "{}", step_line(value.unwrap_or(&step.label), step));
            for target in &step.targets {
                let _ = writeln!(out, "{}", target_line(target));
            }
        }
    }
}

fn trials(out: &mut String, capacity: &Capacity, record: &RunRecord) {
    let _ = writeln!(out, "\nTRIALS");
    head(out, &capacity.variable);
    for trial in &capacity.trials {
        let label =
            format!("{} {} {} s", trial.purpose.name(), shown(trial.value), shown(trial.hold_s));
        let outcome = match trial.outcome {
            TrialOutcome::Pass => "pass",
            TrialOutcome::Fail => "fail",
            TrialOutcome::GeneratorBound => "generator bound",
            TrialOutcome::Disturbed => "disturbed",
        };
        match trial.step.and_then(|index| record.steps.get(index)) {
            Some(step) => {
                let line = step_line(&label, step);
                // The outcome of the trial, where tables of steps have their verdict.
                let line = line.strip_suffix(step.verdict.name()).unwrap_or(&line);
                let _ = writeln!(out, "{line}{outcome}");
            }
            None => {
                let label = cut(&label, LABEL_WIDTH);
                let _ = writeln!(out, "  {label:<LABEL_WIDTH$} {outcome}, nothing was measured");
            }
        }
        for reason in trial.reasons.iter().take(1) {
            let _ = writeln!(out, "      {reason}");
        }
    }
}

/// The result of a search as a sentence.
pub fn capacity_text(capacity: &Capacity) -> String {
    let unit = match capacity.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let objectives = capacity.objectives.join(", ");
    let show = |value: f64| format!("{}{unit}", format::thousands(value.round().max(0.0) as u64));
    let show =
        |value: f64| if value < 100.0 { format!("{}{unit}", shown(value)) } else { show(value) };
    let upper = match (capacity.lowest_fail, capacity.lowest_generator_bound) {
        (_, Some(bound)) => {
            format!("the generator's own limit at {}: the broker may carry more", show(bound))
        }
        (Some(fail), None) => format!("lowest fail {}", show(fail)),
        (None, None) => "no failure".to_owned(),
    };
    let Some(pass) = capacity.highest_pass else {
        return format!(
            "capacity of {} at {objectives}: nothing passes; {upper}; {}",
            capacity.variable,
            Lang::En.ending(capacity)
        );
    };
    let tps = capacity.tps.map_or_else(String::new, |tps| format!(" ({} TPS)", format::rate(tps)));
    format!(
        "capacity of {} at {objectives}: highest pass {}{tps}, {upper}; {} of {} confirmations \
         at full length; {}",
        capacity.variable,
        show(pass),
        capacity.confirmed,
        capacity.confirm,
        Lang::En.ending(capacity)
    )
}

/// A recommendation as a sentence.
pub fn recommendation_text(recommendation: &Recommendation, steps: &[Step]) -> String {
    let Recommendation { series, objective, whose_cpu, .. } = recommendation;
    let rate = |tps: Option<f64>| tps.map_or_else(|| "?".to_owned(), format::rate);
    let result = match recommendation.position {
        Position::Within => {
            let interval = match (recommendation.low, recommendation.high) {
                (Some(low), Some(high)) => {
                    format!("95 % interval {} to {}", format::rate(low), format::rate(high))
                }
                (Some(low), None) => {
                    format!("95 % interval from {} to beyond the measured steps", format::rate(low))
                }
                (None, Some(high)) => {
                    format!("95 % interval from below the measured steps to {}", format::rate(high))
                }
                (None, None) => "no interval: too few seconds".to_owned(),
            };
            format!("{} TPS ({interval})", rate(recommendation.tps))
        }
        Position::AboveLadder => format!(
            "above the ladder: more than {} TPS, add higher steps to find it",
            rate(recommendation.low)
        ),
        Position::BelowLadder => format!(
            "below the ladder: less than {} TPS, add lower steps to find it",
            rate(recommendation.high)
        ),
        Position::Unknown => "unknown: too few valid steps".to_owned(),
    };
    let nearest = recommendation
        .nearest_step
        .and_then(|index| steps.get(index))
        .map(|step| {
            let cpu = format::percent_or(step.cpu_percent);
            // Published workloads are those at 1 - idle.
            let not_idle = step.not_idle_percent().map(format::percent);
            let not_idle = not_idle.map(|share| format!(" (1 - idle: {share})"));
            let not_idle = not_idle.unwrap_or_default();
            format!("; nearest step: {} TPS at {cpu}{not_idle}", format::rate(step.tps))
        })
        .unwrap_or_default();
    format!("recommended workload of {series}, {objective} ({whose_cpu}): {result}{nearest}")
}

#[cfg(test)]
mod tests {
    use super::super::columns::LINE_WIDTH;
    use super::*;
    use tacho_record::{LatencyStats, Verdict};

    #[test]
    fn every_line_of_figures_fits_whatever_it_says() {
        let name = "an_exceedingly_long_name_of_a_row_1.2k_1.2k_qos2_p32_50mps";
        let mut widest = 0;
        for rate in [0.0, 99.94, 999_999.0, 1_000_000.0, 123_456_789.0] {
            for (us, cpu) in [(0, None), (999_400, Some(99.96)), (999_000_000, Some(12_799.9))] {
                for verdict in [Verdict::Ok, Verdict::GeneratorBound, Verdict::ThresholdFailed] {
                    let latency_us = LatencyStats {
                        mean: Some(us as f64),
                        p99: Some(us),
                        ..LatencyStats::default()
                    };
                    let step = Step {
                        achieved_in_per_s: rate,
                        achieved_out_per_s: rate,
                        tps: rate,
                        cpu_percent: cpu,
                        latency_us,
                        expected: 1_000,
                        lost: 1_000,
                        verdict,
                        ..Step::default()
                    };
                    let line = step_line(name, &step);
                    assert!(line.chars().count() <= LINE_WIDTH, "{line}");
                    assert!(line.starts_with("  an_exceedingly_long_name_of~ "), "{line}");
                    assert!(line.ends_with(verdict.name()), "{line}");
                    // No two figures touch.
                    let figures = rates("x", [rate; 3], cpu);
                    let count = figures.split_whitespace().count();
                    assert_eq!(count, 5, "{figures}");
                    widest = widest.max(line.chars().count());
                }
            }
        }
        assert_eq!(widest, LINE_WIDTH, "the labels have what is left");
        let mut heads = String::new();
        head(&mut heads, name);
        assert!(heads.trim_end().chars().count() <= LINE_WIDTH, "{heads}");
        // A name of the published report fits.
        let line = step_line("1.2k_1.2k_qos2_p32_50mps", &Step::default());
        assert!(line.contains("1.2k_1.2k_qos2_p32_50mps "), "{line}");
    }
}
