//! The course of a run in tables: its phases, and brokers that were killed.

use std::fmt::Write as _;

use super::grid::{Cell, Grid};
use super::lang::Lang;
use tacho_record::{PhaseKind, PhaseRecord, Restart, RunRecord, TargetRecord};
use tacho_scenario::format::{self, rate, thousands};

/// One phase in cells.
pub(super) fn phase_cells(lang: Lang, phase: &PhaseRecord) -> [String; 7] {
    [
        lang.phase(&phase.name),
        format!("{:.1} s", phase.start_s),
        format!("{:.2} s", phase.length_s),
        thousands(phase.sent),
        thousands(phase.acknowledged),
        thousands(phase.received),
        rate(phase.received_per_s()),
    ]
}

/// One kill in cells.
pub(super) fn restart_cells(lang: Lang, restart: &Restart) -> [String; 4] {
    [
        lang.phase(&restart.phase),
        format!("{:.1} s", restart.at_s),
        format!("{:.0} ms", restart.serving_ms),
        restart.target.clone(),
    ]
}

/// The recovery of bridges after a kill, in cells; `None` without bridges.
pub(super) fn backlog_cells(lang: Lang, restart: &Restart) -> Option<[String; 2]> {
    let drained = restart.drained_ms.map(|ms| format::latency(ms * 1e3));
    let drained = drained.unwrap_or_else(|| lang.never_or_too_few().to_owned());
    Some([thousands(restart.waiting_max?), drained])
}

/// How Tacho's own broker keeps sessions.
pub(super) fn keeping(lang: Lang, target: &TargetRecord) -> String {
    let level = target.durability.as_deref().unwrap_or_else(|| lang.unknown());
    let qos0 = match target.offline_qos0 {
        Some(true) => lang.qos0_is_kept(),
        _ => lang.qos0_is_not_kept(),
    };
    lang.sessions_are_kept(level, qos0)
}

/// Did clients leave their sessions and come back, or was a broker killed?
pub(super) fn is_eventful(record: &RunRecord) -> bool {
    !record.restarts.is_empty() || record.phases.iter().any(|phase| phase.name == PhaseKind::Resume)
}

/// The tables of a page.
pub(super) fn tables(lang: Lang, out: &mut String, record: &RunRecord) {
    let mut phases = Grid::new(&[
        lang.phase_column(),
        lang.begins(),
        lang.length(),
        lang.sent(),
        lang.acknowledged(),
        lang.received(),
        lang.received_per_second(),
    ]);
    for phase in &record.phases {
        phases.row(false, phase_cells(lang, phase).map(Cell::text).to_vec());
    }
    phases.render(out);
    if record.restarts.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.brokers_killed_and_started_again());
    let mut heads =
        vec![lang.phase_column(), lang.killed_at(), lang.serving_again_after(), lang.broker()];
    let is_bridged = record.restarts.iter().any(|restart| restart.waiting_max.is_some());
    if is_bridged {
        heads.extend([lang.waited_at_the_worst(), lang.no_more_waited_after()]);
    }
    let mut restarts = Grid::new(&heads);
    for restart in &record.restarts {
        let mut cells = restart_cells(lang, restart).map(Cell::text).to_vec();
        if is_bridged {
            let backlog = backlog_cells(lang, restart).unwrap_or_default();
            cells.extend(backlog.map(Cell::text));
        }
        restarts.row(false, cells);
    }
    restarts.render(out);
}
