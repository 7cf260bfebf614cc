//! `summary.md`: the record as Markdown, for CI's summary pages.

use std::fmt::Write as _;

use crate::campaign::{capacity_text, recommendation_text};
use crate::elements::{escape, given_texts};
use crate::grouped::{self, Group};
use crate::lang::Lang;
use crate::repeats;
use tacho_record::{Capacity, RunKind, RunRecord, Severity, Step, TrialOutcome, Verdict};
use tacho_scenario::format;
use tacho_scenario::steps::shown;

/// Reasons and findings that are shown; the report has all.
const LINES_MAX: usize = 20;

/// The record as Markdown, one heading and short tables.
pub fn markdown(record: &RunRecord) -> String {
    let mut out = String::new();
    let mark = if record.verdict == Verdict::Ok { "ok" } else { record.verdict.name() };
    let _ = writeln!(out, "## tacho {}: {mark}\n", text(&record.scenario));
    let _ = writeln!(out, "{}\n", text(&record.description));
    for (label, given) in given_texts(Lang::En, &record.given) {
        let _ = writeln!(out, "{label}: {}\n", text(given));
    }
    let brokers: Vec<String> =
        record.targets.iter().map(|target| format!("`{}`", target.broker)).collect();
    let brokers = brokers.join(", ");
    let _ = writeln!(
        out,
        "Run `{}`, {} clients, broker {brokers}, started {}, {:.0} s.\n",
        record.name,
        format::thousands(record.clients),
        record.started_at,
        record.elapsed_s
    );
    let shown = |headline| {
        format!("{}: {}", Lang::En.headline(headline), Lang::En.headline_value(headline))
    };
    list(&mut out, record.headlines.iter().map(shown));
    groups(&mut out, &grouped::reasons(Lang::En, record));
    let results = record
        .recommendations
        .iter()
        .map(|recommendation| recommendation_text(recommendation, &record.steps))
        .chain(record.capacity.iter().map(capacity_text));
    list(&mut out, results);
    match (record.kind, &record.capacity) {
        (RunKind::Capacity, Some(capacity)) => trials(&mut out, record, capacity),
        _ => steps(&mut out, record),
    }
    let _ = writeln!(out);
    repeated(&mut out, record);
    thresholds(&mut out, record);
    list(
        &mut out,
        record.skipped.iter().map(|skipped| {
            format!("skipped {}, {}: {}", skipped.series, skipped.label, skipped.reason)
        }),
    );
    groups(&mut out, &grouped::findings(Lang::En, record, Severity::Warning));
    list(&mut out, record.notes.iter().cloned());
    out
}

fn trials(out: &mut String, record: &RunRecord, capacity: &Capacity) {
    let _ = writeln!(out, "| trial | {HEADS} | outcome |");
    let _ = writeln!(out, "|---|{RULE}---|");
    for trial in &capacity.trials {
        let step = trial.step.and_then(|index| record.steps.get(index));
        let outcome = match trial.outcome {
            TrialOutcome::Pass => "pass",
            TrialOutcome::Fail => "fail",
            TrialOutcome::GeneratorBound => "generator bound",
            TrialOutcome::Disturbed => "disturbed",
        };
        let label =
            format!("{} {}, {} s", trial.purpose.name(), shown(trial.value), shown(trial.hold_s));
        let _ = writeln!(out, "| {label} | {} | {outcome} |", cells(step));
    }
}

fn steps(out: &mut String, record: &RunRecord) {
    let _ = writeln!(out, "| step | {HEADS} | verdict |");
    let _ = writeln!(out, "|---|{RULE}---|");
    for (index, step) in record.steps.iter().enumerate() {
        let label = match (step.series.as_str(), step.label.as_str()) {
            (_, "") => (index + 1).to_string(),
            (series, label) if record.kind == RunKind::Suite && series != label => {
                format!("{series}, {label}")
            }
            (_, label) => label.to_owned(),
        };
        let verdict = step.verdict.name();
        let _ = writeln!(out, "| {} | {} | {verdict} |", text(&label), cells(Some(step)));
    }
}

/// Median and range of each figure over repeats.
fn repeated(out: &mut String, record: &RunRecord) {
    let rows = repeats::rows(Lang::En, record);
    if rows.is_empty() {
        return;
    }
    let _ =
        writeln!(out, "| {} |\n|---|---:|---:|---:|---:|", repeats::heads(Lang::En).join(" | "));
    for cells in rows {
        let _ = writeln!(out, "| {} |", cells.map(|cell| text(&cell)).join(" | "));
    }
    let _ = writeln!(out);
}

fn thresholds(out: &mut String, record: &RunRecord) {
    if record.thresholds.is_empty() {
        return;
    }
    let _ = writeln!(out, "| threshold | figure | holds |\n|---|---|---|");
    for result in &record.thresholds {
        let holds = if result.passed { "yes" } else { "**no**" };
        let condition = text(&result.condition);
        let _ = writeln!(out, "| {condition} | {} | {holds} |", text(&result.shown()));
    }
    let _ = writeln!(out);
}

const HEADS: &str = "held | in/s | out/s | TPS | CPU | mean | p99 | loss";
const RULE: &str = "---:|---:|---:|---:|---:|---:|---:|---:|";

fn cells(step: Option<&Step>) -> String {
    let Some(step) = step else { return "| | | | | | |".to_owned() };
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), format::latency);
    [
        format::span(step.window_s),
        format::rate(step.achieved_in_per_s),
        format::rate(step.achieved_out_per_s),
        format::rate(step.tps),
        step.cpu_percent.map_or_else(|| "-".to_owned(), format::percent),
        latency(step.latency_us.mean),
        latency(step.latency_us.p99.map(|p99| p99 as f64)),
        format!("{} %", shown((step.loss_percent() * 1e4).round() / 1e4)),
    ]
    .join(" | ")
}

/// A line per group; the sentences behind it are folded.
fn groups(out: &mut String, groups: &[Group]) {
    list(out, groups.iter().map(|group| group.line.clone()));
    for group in groups.iter().filter(|group| !group.details.is_empty()) {
        let _ = writeln!(out, "<details><summary>{}</summary>\n", escape(&group.line));
        list(out, group.details.iter().cloned());
        let _ = writeln!(out, "</details>\n");
    }
}

fn list(out: &mut String, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    for line in lines.iter().take(LINES_MAX) {
        let _ = writeln!(out, "- {}", text(line));
    }
    if lines.len() > LINES_MAX {
        let _ = writeln!(out, "- and {} more, see the report", lines.len() - LINES_MAX);
    }
    if !lines.is_empty() {
        let _ = writeln!(out);
    }
}

/// Text that Markdown takes as it is.
pub(crate) fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '#' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::{LatencyStats, Purpose, Trial};

    #[test]
    fn a_run_in_markdown() {
        let record = RunRecord {
            scenario: "my_test".to_owned(),
            name: "20261121".to_owned(),
            verdict: Verdict::NotSustained,
            reasons: vec!["a | b <c>".to_owned()],
            steps: vec![Step {
                verdict: Verdict::NotSustained,
                window_s: 15.0,
                tps: 20_000.0,
                cpu_percent: Some(75.0),
                latency_us: LatencyStats { p99: Some(2500), ..LatencyStats::default() },
                expected: 1000,
                lost: 1,
                ..Step::default()
            }],
            ..RunRecord::default()
        };
        let page = markdown(&record);
        assert!(page.starts_with("## tacho my\\_test: not_sustained\n"), "{page}");
        assert!(page.contains("- a \\| b &lt;c>\n"), "{page}");
        let row =
            "| 1 | 15 s | 0.0 | 0.0 | 20,000 | 75.0 % | - | 2.50 ms | 0.1 % | not_sustained |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn a_search_in_markdown() {
        let trial = Trial {
            value: 100.0,
            hold_s: 5.0,
            purpose: Purpose::Bracket,
            outcome: TrialOutcome::Fail,
            reasons: vec![],
            causes: vec![],
            step: None,
        };
        let capacity = Capacity { trials: vec![trial], ..Capacity::default() };
        let (kind, capacity) = (RunKind::Capacity, Some(capacity));
        let page = markdown(&RunRecord { kind, capacity, ..RunRecord::default() });
        let columns = |line: &str| line.matches('|').count();
        let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table[2].starts_with("| bracket 100, 5 s |"), "{page}");
        assert!(table.iter().all(|line| columns(line) == columns(table[0])), "{page}");
    }
}
