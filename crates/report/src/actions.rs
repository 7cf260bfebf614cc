//! Timed actions: a table for pages and terminals, and marks in charts over time.

use super::chart::Band;
use super::grid::{Cell, Grid};
use super::lang::Lang;
use tacho_record::{ActionRecord, RunRecord};
use tacho_scenario::format::thousands;

/// Share of the time axis that the mark of a moment takes: enough to be seen.
const MARK_SHARE: f64 = 0.003;

/// One action in cells.
pub(super) fn cells(lang: Lang, action: &ActionRecord) -> [String; 4] {
    let clients = match action.kind.is_about_clients() {
        true => thousands(action.clients),
        false => String::new(),
    };
    let followed = lang.consequences(&action.consequences());
    [format!("{:.1} s", action.at_s), lang.what_happened(action), clients, followed]
}

/// The table of a page.
pub(super) fn table(lang: Lang, out: &mut String, record: &RunRecord) {
    let heads = [lang.action_at(), lang.action_what(), lang.clients(), lang.what_followed()];
    let mut grid = Grid::new(&heads);
    for action in &record.actions {
        grid.row(false, cells(lang, action).map(Cell::text).to_vec());
    }
    grid.render(out);
}

/// Marks in charts over a time axis that ends at `end_s`.
pub(super) fn marks(lang: Lang, actions: &[ActionRecord], end_s: f64) -> Vec<Band> {
    let mark = |action: &ActionRecord| {
        let length_s = action.length_s.unwrap_or(0.0).max(end_s * MARK_SHARE);
        let to = (action.at_s + length_s).min(end_s);
        Band { name: lang.action_kind(&action.kind).to_owned(), from: action.at_s, to }
    };
    actions.iter().map(mark).collect()
}
