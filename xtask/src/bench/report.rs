//! The record under `bench/runs`: tables, and the same as data.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::Options;
use super::case::Case;
use super::case_set::CaseSet;
use super::figures::{FURTHER, Figures, METRICS, number};
use super::machine::Machine;
use super::ratio;
use super::target::Verdict;
use crate::kept_record;

/// What a record says beside its figures.
pub(super) struct About<'a> {
    pub(super) options: &'a Options,
    pub(super) started: &'a str,
    /// Tables that only its set of cases has.
    pub(super) tables: String,
}

/// Writes README.md, results.json and results.csv; returns their folder.
pub(super) fn write(
    about: &About<'_>,
    cases: &[Case],
    figures: &Figures,
    verdicts: &[Verdict],
) -> Result<PathBuf> {
    let (options, started) = (about.options, about.started);
    let machine = Machine::look();
    let record = json!({
        "schema_version": 1,
        "started_at": started,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "broker_core": options.broker_cpu,
        "generator_core": options.generator_cpu,
        "machine": machine,
        "targets": verdicts,
        "samples": figures.samples(),
    });
    let readme = readme(about, &machine, cases, figures, verdicts);
    let more = vec![("results.csv", csv(figures))];
    kept_record::keep((options.name(), started), readme, &record, more)
}

/// The targets as a table.
pub(super) fn targets(verdicts: &[Verdict]) -> String {
    let mut text = "| target | bound | measured | met |\n|---|---|---|---|\n".to_owned();
    for verdict in verdicts {
        let bound =
            verdict.bound.map_or_else(|| "reported".to_owned(), |bound| bound.text(verdict.unit));
        let value = verdict.value.map_or_else(
            || "not measured".to_owned(),
            |value| format!("{} {}", number(value), verdict.unit),
        );
        let met = match verdict.passed {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let _ = writeln!(text, "| {} | {bound} | {value} | {met} |", verdict.target);
    }
    text
}

fn readme(
    about: &About<'_>,
    machine: &Machine,
    cases: &[Case],
    figures: &Figures,
    verdicts: &[Verdict],
) -> String {
    let (options, started) = (about.options, about.started);
    let set = options.set();
    let mut text = format!("# {}, {}\n\n", set.title(), kept_record::date(started));
    let _ = writeln!(
        text,
        "`cargo xtask bench{} --rounds {} --seconds {}`, started {started}, revision {}.\n",
        set.arguments(),
        options.rounds,
        options.seconds,
        machine.revision
    );
    let _ = writeln!(
        text,
        "One machine: {}, {} cores{}, {:.0} GiB, {}, {}.{}",
        machine.cpu,
        machine.cores,
        if machine.virtualised { " (virtual)" } else { "" },
        machine.memory_gib,
        machine.kernel,
        machine.rustc,
        peers(set, machine),
    );
    if machine.group_nice != 0 {
        let _ = writeln!(text, "All programs ran at autogroup nice {}.", machine.group_nice);
    }
    let _ = writeln!(
        text,
        "{}, MQTT 5.0, medians of {} interleaved rounds of {} s. On loopback the sender's core \
         runs the receiver's TCP: figures compare brokers on this machine, they do not predict \
         another one.\n",
        cores(options),
        options.rounds,
        options.seconds
    );
    if !verdicts.is_empty() {
        let _ = writeln!(text, "## Targets\n\n{}", targets(verdicts));
    }
    if options.against.is_some() {
        let _ = writeln!(text, "## Against the other program\n\n{}", ratio::table(cases, figures));
    }
    text.push_str(&about.tables);
    if machine.cores < 4 {
        text.push_str(
            "Two shards against one on cores of their own need a machine with four cores: not \
             measured here.\n\n",
        );
    }
    cases_table(&mut text, cases, figures);
    further_figures(&mut text, cases, figures);
    text.push_str("\nWhat the cases are:\n\n");
    for case in cases {
        let _ = writeln!(text, "- `{}`: {}", case.name, case.what);
    }
    text
}

/// What stands beside Tacho: a sentence after others.
fn peers(set: CaseSet, machine: &Machine) -> String {
    match set {
        CaseSet::Peers => {
            " Peers: with limits lifted so that none loses a message to a default, as \
            `cargo xtask results` has them."
                .to_owned()
        }
        CaseSet::Scaling | CaseSet::Growth => String::new(),
        CaseSet::Speed | CaseSet::Logins | CaseSet::Durability => format!(
            " Peer: {} with `set_tcp_nodelay true`, `persistence false`, everything else at its \
             default.",
            machine.mosquitto
        ),
    }
}

fn cores(options: &Options) -> String {
    match options.set() {
        CaseSet::Scaling => "Shards on the first cores, the generator on all others".to_owned(),
        _ => format!(
            "Broker on core {}, generator on core {}",
            options.broker_cpu, options.generator_cpu
        ),
    }
}

/// The table of cases, one row each.
fn cases_table(text: &mut String, cases: &[Case], figures: &Figures) {
    text.push_str("## Cases\n\n");
    text.push_str(
        "CPU is the broker's, per message in or out; \"bottleneck\" names the program that used its core up.\n\n",
    );
    text.push_str(
        "| case | us/message | TPS | broker CPU % | generator CPU % | p50 us | p99 us \
         | lost | bottleneck | verdicts |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let shown = [
        "cpu_us_per_message",
        "tps",
        "broker_cpu_percent",
        "generator_cpu_percent",
        "latency_us_p50",
        "latency_us_p99",
        "lost",
    ];
    for case in cases {
        let _ = write!(text, "| {} |", case.name);
        for metric in shown {
            let value = figures.median(&case.name, metric).map(number).unwrap_or_default();
            let _ = write!(text, " {value} |");
        }
        let bottleneck = figures.bottleneck(&case.name);
        let verdicts = figures.verdicts(&case.name).join(", ");
        let _ = writeln!(text, " {bottleneck} | {verdicts} |");
    }
}

/// Table of the metrics that few cases have.
fn further_figures(text: &mut String, cases: &[Case], figures: &Figures) {
    let mut lines = Vec::new();
    for case in cases {
        for metric in FURTHER {
            if let Some(value) = figures.median(&case.name, metric) {
                lines.push(format!("| {} | {metric} | {} |", case.name, number(value)));
            }
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\n| case | figure | median |\n|---|---|---|\n{}", lines.join("\n"));
    }
}

fn csv(figures: &Figures) -> String {
    let mut text = format!("case,round,verdict,{}\n", METRICS.join(","));
    for sample in figures.samples() {
        let _ = write!(text, "{},{},{}", sample.case, sample.round, sample.verdict);
        for metric in METRICS {
            match sample.metrics.get(metric) {
                Some(value) => drop(write!(text, ",{value}")),
                None => text.push(','),
            }
        }
        text.push('\n');
    }
    text
}
