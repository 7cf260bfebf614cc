//! Logins of a window as a part of its step.

use tacho_load::{Failure, JudgedLogin, LoginFigures, LoginTotals};

use super::names::Names;
use super::numbers::round;
use tacho_record::{LatencyStats, LoginKind, LoginsOfKind, StepLogins};

/// The logins of a window of `window_s` seconds; `None` without any.
pub(super) fn step_logins(
    totals: Option<&LoginTotals>,
    window_s: f64,
    names: &Names,
) -> Option<Box<StepLogins>> {
    let totals = totals?;
    let kinds = tacho_load::LoginKind::ALL.map(|kind| of_kind(kind, totals.of(kind)));
    let due: u64 = kinds.iter().map(|of| of.due).sum();
    let per_s = |count: u64| if window_s > 0.0 { count as f64 / window_s } else { 0.0 };
    let told = |login: &Option<JudgedLogin>| {
        login.as_ref().map(|login| sentence(login, names)).unwrap_or_default()
    };
    Some(Box::new(StepLogins {
        offered_per_s: round(per_s(due), 2),
        decided_per_s: round(per_s(totals.ended.decided()), 2),
        kinds: kinds.into_iter().filter(|of| of.due > 0).collect(),
        misjudged: totals.misjudged(),
        first_misjudged: told(&totals.first_misjudged),
        first_undecided: told(&totals.first_undecided),
    }))
}

fn of_kind(kind: tacho_load::LoginKind, figures: &LoginFigures) -> LoginsOfKind {
    LoginsOfKind {
        kind: named(kind),
        due: figures.due(),
        accepted: figures.accepted,
        refused: figures.refused,
        turned_away: figures.turned_away,
        failed: figures.failed,
        unfinished: figures.unfinished,
        accepted_us: LatencyStats::of(&figures.accepted_us),
        refused_us: LatencyStats::of(&figures.refused_us),
        reasons: figures
            .reasons
            .iter()
            .map(|(reason, count)| (reason.to_string(), *count))
            .collect(),
    }
}

const fn named(kind: tacho_load::LoginKind) -> LoginKind {
    match kind {
        tacho_load::LoginKind::Right => LoginKind::Right,
        tacho_load::LoginKind::WrongPassword => LoginKind::WrongPassword,
        tacho_load::LoginKind::UnknownUser => LoginKind::UnknownUser,
    }
}

/// Names the client, what it presented, and what came of it.
fn sentence(login: &JudgedLogin, names: &Names) -> String {
    let client = names.client(login.client);
    let presented = match login.kind {
        tacho_load::LoginKind::Right => "right credentials",
        tacho_load::LoginKind::WrongPassword => "a wrong password",
        tacho_load::LoginKind::UnknownUser => "the name of no user",
    };
    match &login.why {
        None => format!("{client}, with {presented}: accepted"),
        Some(Failure::Refused(reason)) => {
            format!("{client}, with {presented}: refused, {reason}")
        }
        Some(why) => format!("{client}, with {presented}: {why}"),
    }
}
