//! The course of a run in tables: its phases, and brokers that were killed.

use super::grid::{Cell, Grid};
use crate::format::{rate, thousands};
use crate::record::{PhaseRecord, Restart, RunRecord, TargetRecord};

/// Heads of the table of phases.
pub(super) const PHASE_HEADS: [&str; 7] =
    ["phase", "from", "length", "sent", "acknowledged", "received", "received per second"];

/// Heads of the table of kills.
pub(super) const RESTART_HEADS: [&str; 4] = ["phase", "killed at", "serving again after", "broker"];

/// One phase in cells.
pub(super) fn phase_cells(phase: &PhaseRecord) -> [String; 7] {
    [
        phase.name.clone(),
        format!("{:.1} s", phase.start_s),
        format!("{:.2} s", phase.length_s),
        thousands(phase.sent),
        thousands(phase.acknowledged),
        thousands(phase.received),
        rate(phase.received_per_s()),
    ]
}

/// One kill in cells.
pub(super) fn restart_cells(restart: &Restart) -> [String; 4] {
    [
        restart.phase.clone(),
        format!("{:.1} s", restart.at_s),
        format!("{:.0} ms", restart.serving_ms),
        restart.target.clone(),
    ]
}

/// How Tacho's own broker keeps sessions.
pub(super) fn keeping(target: &TargetRecord) -> String {
    let level = target.durability.as_deref().unwrap_or("unknown");
    match target.offline_qos0 {
        Some(true) => format!("{level}; QoS 0 is kept for those who are away"),
        _ => format!("{level}; QoS 0 is not kept for those who are away"),
    }
}

/// Did clients leave their sessions and come back, or was a broker killed?
pub(super) fn is_eventful(record: &RunRecord) -> bool {
    !record.restarts.is_empty() || record.phases.iter().any(|phase| phase.name == "resume")
}

/// The tables of a page.
pub(super) fn tables(out: &mut String, record: &RunRecord) {
    let mut phases = Grid::new(&PHASE_HEADS);
    for phase in &record.phases {
        phases.row(false, phase_cells(phase).map(Cell::text).to_vec());
    }
    phases.render(out);
    if record.restarts.is_empty() {
        return;
    }
    out.push_str("<h3>Brokers killed and started again</h3>\n");
    let mut restarts = Grid::new(&RESTART_HEADS);
    for restart in &record.restarts {
        restarts.row(false, restart_cells(restart).map(Cell::text).to_vec());
    }
    restarts.render(out);
}
