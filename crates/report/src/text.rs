//! The table at the end of a run, for terminals and logs.

use std::fmt::Write as _;

use super::elements::given_lines;
use super::lang::Lang;
use super::tables::{latencies, latency_heads, lost, tables};
use super::{actions, agents, course, grouped, logins, words};
use tacho_record::{RunRecord, Severity, Step, Verdict};

/// Terminals are told in English: their columns are counted in letters of one width.
const LANG: Lang = Lang::En;

/// Runs of lost messages that are shown.
const LOST_SHOWN: usize = 5;
/// Actions that are shown.
const ACTIONS_SHOWN: usize = 12;

/// The summary of a run as plain text, every figure with its unit.
pub fn summary_text(record: &RunRecord) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", record.scenario, record.description);
    given_lines(LANG, &mut out, &record.given);
    let _ = writeln!(
        out,
        "target {}, MQTT {}, {} of {} clients connected",
        record.target.broker, record.target.version, record.clients_connected, record.clients
    );
    for target in record.targets.iter().filter(|target| target.durability.is_some()) {
        let name = if target.name.is_empty() { "" } else { " of " };
        let _ = writeln!(out, "sessions{name}{}: {}", target.name, course::keeping(LANG, target));
    }
    if !record.headlines.is_empty() {
        let _ = writeln!(out);
    }
    for headline in &record.headlines {
        let (label, value) = (LANG.headline(headline), LANG.headline_value(headline));
        let _ = writeln!(out, "  {label:<48}{value:>18}");
    }
    for (index, step) in record.steps.iter().enumerate() {
        if record.steps.len() > 1 {
            let _ = writeln!(out, "\nstep {}", index + 1);
        }
        step_text(&mut out, step);
    }
    if !record.actions.is_empty() {
        actions_text(&mut out, record);
    }
    if course::is_eventful(record) {
        course_text(&mut out, record);
    }
    let _ = writeln!(out);
    closing_text(&mut out, record, Severity::Info);
    out
}

/// Events and their consequences.
fn actions_text(out: &mut String, record: &RunRecord) {
    let _ = writeln!(out, "\nACTIONS");
    for action in record.actions.iter().take(ACTIONS_SHOWN) {
        let [at, what, clients, followed] = actions::cells(LANG, action);
        let clients = if clients.is_empty() { clients } else { format!(" ({clients} clients)") };
        let _ = writeln!(out, "  {at:>8}  {what}{clients}: {followed}");
    }
    if record.actions.len() > ACTIONS_SHOWN {
        let more = record.actions.len() - ACTIONS_SHOWN;
        let _ = writeln!(out, "  and {more} more, see the report");
    }
}

/// The phases, and the kills among them.
fn course_text(out: &mut String, record: &RunRecord) {
    let _ = writeln!(
        out,
        "\n{:<14}{:>10}{:>11}{:>11}{:>14}{:>11}{:>14}",
        "PHASE", "from", "length", "sent", "acknowledged", "received", "received/s"
    );
    for phase in &record.phases {
        let [name, from, length, sent, acknowledged, received, rate] =
            course::phase_cells(LANG, phase);
        let _ = writeln!(
            out,
            "  {name:<12}{from:>10}{length:>11}{sent:>11}{acknowledged:>14}{received:>11}{rate:>14}"
        );
    }
    for restart in &record.restarts {
        let [phase, at, after, target] = course::restart_cells(LANG, restart);
        let target = if target.is_empty() { target } else { format!(" {target}") };
        let backlog =
            course::backlog_cells(LANG, restart).map_or_else(String::new, |[most, after]| {
                format!(
                    "; {most} waited in bridges at the worst, no more than before after {after}"
                )
            });
        let _ = writeln!(
            out,
            "  broker{target} killed at {at} ({phase}), serving again after {after}{backlog}"
        );
    }
}

/// How every text ends: thresholds, findings from a severity on, notes, verdict.
pub(crate) fn closing_text(out: &mut String, record: &RunRecord, from: Severity) {
    for result in &record.thresholds {
        let mark = if result.passed { "holds" } else { "does not hold" };
        let _ = writeln!(out, "threshold {}: {mark}: {}", result.condition, result.shown());
    }
    for finding in grouped::findings(LANG, record, from) {
        let _ = writeln!(out, "finding: {}", finding.line);
    }
    agents::clocks_text(LANG, out, record);
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out, "verdict: {}", record.verdict.name());
    if record.verdict != Verdict::Ok {
        for reason in grouped::reasons(LANG, record) {
            let _ = writeln!(out, "  {}", reason.line);
        }
    }
}

fn step_text(out: &mut String, step: &Step) {
    let tables = tables(LANG, step);
    // Two tables side by side fit into 100 columns.
    for pair in tables.chunks(2) {
        let _ = writeln!(out);
        let titles: Vec<String> =
            pair.iter().map(|table| format!("{:<48}", table.title.to_uppercase())).collect();
        let _ = writeln!(out, "{}", titles.join("  ").trim_end());
        let lines = pair.iter().map(|table| table.rows.len()).max().unwrap_or(0);
        for line in 0..lines {
            let cells: Vec<String> = pair
                .iter()
                .map(|table| match table.rows.get(line) {
                    Some(row) => {
                        let mark = if row.failed { "!" } else { " " };
                        let width = 43_usize.saturating_sub(row.name.chars().count());
                        format!("  {} {:>width$}{mark} ", row.name, row.value)
                    }
                    None => " ".repeat(48),
                })
                .collect();
            let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        }
    }
    let _ = write!(out, "\n{:<18}", "LATENCY");
    for head in latency_heads(LANG) {
        let _ = write!(out, "{head:>10}");
    }
    let _ = writeln!(out);
    let mut too_few = false;
    for (name, cells) in latencies(LANG, step) {
        let _ = write!(out, "  {name:<16}");
        for cell in cells {
            too_few |= cell.is_none();
            let _ = write!(out, "{:>10}", cell.unwrap_or_else(|| "-".to_owned()));
        }
        let _ = writeln!(out);
    }
    if let Some(share) = words::arrived_much_less(step) {
        let _ = writeln!(out, "  of the {share} of deliveries due that arrived");
    }
    if too_few {
        let _ = writeln!(out, "  - : too few samples for this percentile");
    }
    logins::text(LANG, out, step);
    agents::text(LANG, out, step);
    let (lines, more) = lost(LANG, step, LOST_SHOWN);
    if !lines.is_empty() {
        let _ = writeln!(out, "\nLOST (sequence numbers)");
        for (between, which) in lines {
            let _ = writeln!(out, "  {between}: {which}");
        }
        if more > 0 {
            let _ = writeln!(out, "  and {more} more, see summary.json");
        }
    }
}
