//! Logins: charts, and a table for pages and terminals.

use std::fmt::Write as _;

use super::axis::Unit;
use super::chart::Chart;
use super::elements::escape;
use super::grid::{Cell, Grid};
use super::lang::Lang;
use super::over_time::{float, line, log_over_time, over_time};
use tacho_record::{LatencyStats, LoginKind, LoginsOfKind, SeriesRow, Step, StepLogins};
use tacho_scenario::format::{self, thousands};

/// Rates and latency over time; none of a run without logins by a schedule.
pub(super) fn charts(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    if rows.iter().all(|row| row.login_accepted_per_s.is_none()) {
        return Vec::new();
    }
    let rate = over_time(
        lang,
        rows,
        lang.logins_per_second_title(),
        lang.logins_per_second(),
        Unit::Rate,
        vec![
            line(rows, lang.logins_accepted(), 3, |row| row.login_accepted_per_s),
            line(rows, lang.logins_refused(), 2, |row| row.login_refused_per_s),
            line(rows, lang.logins_undecided(), 4, |row| row.login_undecided_per_s),
        ],
    );
    let mut latency = log_over_time(
        lang,
        rows,
        lang.login_latency(),
        vec![
            line(rows, lang.max(), 4, |row| float(row.login_max_us)),
            line(rows, "p99", 2, |row| float(row.login_p99_us)),
            line(rows, "p50", 1, |row| float(row.login_p50_us)),
        ],
    );
    lang.login_latency_is_since_due().clone_into(&mut latency.note);
    vec![Chart { wide: true, ..rate }, Chart { wide: true, ..latency }]
}

/// Cells of a kind of logins.
const CELLS: usize = 9;

const fn heads(lang: Lang) -> [&'static str; CELLS] {
    [
        lang.login_presents(),
        lang.logins_due(),
        lang.logins_accepted(),
        lang.logins_refused(),
        lang.logins_undecided(),
        lang.accepted_p50(),
        lang.accepted_p99(),
        lang.refused_p50(),
        lang.refused_p99(),
    ]
}

const fn presented(lang: Lang, kind: LoginKind) -> &'static str {
    match kind {
        LoginKind::Right => lang.right_credentials(),
        LoginKind::WrongPassword => lang.wrong_password(),
        LoginKind::UnknownUser => lang.unknown_user(),
    }
}

/// The cells of a kind, and which of them are wrong.
fn cells(lang: Lang, of: &LoginsOfKind) -> [(String, bool); CELLS] {
    let undecided = of.turned_away + of.failed + of.unfinished;
    let must_be_accepted = of.kind.must_be_accepted();
    let latency = |stats: &LatencyStats, of: fn(&LatencyStats) -> Option<u64>| {
        let shown = of(stats).map(|us| format::latency(us as f64));
        (shown.unwrap_or_else(|| "-".to_owned()), false)
    };
    [
        (presented(lang, of.kind).to_owned(), false),
        (thousands(of.due), false),
        (thousands(of.accepted), !must_be_accepted && of.accepted > 0),
        (thousands(of.refused), must_be_accepted && of.refused > 0),
        (thousands(undecided), undecided > 0),
        latency(&of.accepted_us, |stats| stats.p50),
        latency(&of.accepted_us, |stats| stats.p99),
        latency(&of.refused_us, |stats| stats.p50),
        latency(&of.refused_us, |stats| stats.p99),
    ]
}

/// Refusals by reason: what was presented, reason, how many.
fn reasons(lang: Lang, logins: &StepLogins) -> Vec<String> {
    let kinds = logins.kinds.iter();
    kinds
        .flat_map(|of| {
            of.reasons.iter().map(move |(reason, count)| {
                let presented = presented(lang, of.kind);
                format!("{presented}{}{reason} {}", lang.colon(), thousands(*count))
            })
        })
        .collect()
}

/// The table of a page.
pub(super) fn table(lang: Lang, out: &mut String, step: &Step) {
    let Some(logins) = step.logins.as_deref() else { return };
    let _ = writeln!(out, "<h3>{}</h3>", lang.logins());
    let mut grid = Grid::new(&heads(lang));
    for of in &logins.kinds {
        let row = cells(lang, of).map(|(text, is_wrong)| Cell::text(text).failed(is_wrong));
        grid.row(false, row.to_vec());
    }
    grid.render(out);
    let _ = writeln!(out, "<p class=\"chart-note\">{}</p>", lang.login_latency_note());
    let reasons = reasons(lang, logins);
    if !reasons.is_empty() {
        let all = escape(&reasons.join(", "));
        let _ = writeln!(
            out,
            "<p class=\"note\">{}{}{all}</p>",
            lang.refusals_by_reason(),
            lang.colon()
        );
    }
}

/// The table of a terminal.
pub(super) fn text(lang: Lang, out: &mut String, step: &Step) {
    let Some(logins) = step.logins.as_deref() else { return };
    let _ = writeln!(out);
    let line = |out: &mut String, cells: [String; CELLS]| {
        for (index, cell) in cells.into_iter().enumerate() {
            let _ = match index {
                0 => write!(out, "  {cell:<18}"),
                1..=4 => write!(out, "{cell:>11}"),
                _ => write!(out, "{cell:>14}"),
            };
        }
        out.push('\n');
    };
    let mut named = heads(lang).map(str::to_owned);
    named[0] = lang.logins().to_uppercase();
    line(out, named);
    for of in &logins.kinds {
        let marked = |(text, is_wrong): (String, bool)| {
            if is_wrong { format!("{text}!") } else { text }
        };
        line(out, cells(lang, of).map(marked));
    }
    let reasons = reasons(lang, logins);
    if !reasons.is_empty() {
        let _ =
            writeln!(out, "  {}{}{}", lang.refusals_by_reason(), lang.colon(), reasons.join(", "));
    }
}
