//! Timed actions: a table for pages and terminals, and marks in charts over time.

use super::chart::Band;
use super::grid::{Cell, Grid};
use super::lang::Lang;
use tacho_record::{ActionRecord, RunRecord};
use tacho_scenario::format::{self, thousands};

/// Share of the time axis that the mark of a moment takes: enough to be seen.
const MARK_SHARE: f64 = 0.003;

/// One action in cells.
pub(super) fn cells(lang: Lang, action: &ActionRecord) -> [String; 4] {
    let clients = match action.kind.as_str() {
        "kill" | "run" => String::new(),
        _ => thousands(action.clients),
    };
    [format!("{:.1} s", action.at_s), lang.told(&action.what), clients, followed(lang, action)]
}

/// What followed, in words.
fn followed(lang: Lang, action: &ActionRecord) -> String {
    let ms = |ms: f64| format::latency(ms * 1e3);
    let of = |part: u64, all: u64| format!("{} of {}", thousands(part), thousands(all));
    let max = |us: Option<u64>| us.map(|us| format::latency(us as f64));
    let mut words = Vec::new();
    let mut say = |sentence: String| words.push(lang.told(&sentence));
    match action.kind.as_str() {
        "disconnect" | "takeover" => {
            say(format!("{} back", of(action.connected, action.clients)));
            match action.connected_99_ms {
                Some(after) => say(format!("99 % connected after {}", ms(after))),
                None if action.clients > 0 => say("99 % were never connected".to_owned()),
                None => {}
            }
            if let Some(after) = action.ready_99_ms {
                say(format!("99 % served after {}", ms(after)));
            }
        }
        "pause" => {
            let length = action.length_s.unwrap_or_default();
            say(format!("until {:.1} s", action.at_s + length));
        }
        "subscribe" => {
            if let Some(after) = action.ready_99_ms {
                say(format!("99 % had their SUBACK after {}", ms(after)));
            }
            if action.retained_expected > 0 {
                let retained = of(action.retained, action.retained_expected);
                say(format!("{retained} retained messages came"));
                let last = max(action.complete_us.max).unwrap_or_else(|| "never".to_owned());
                say(format!("the last of a client after {last} at most"));
            }
        }
        "kill" => {
            say(format!("serving again after {:.0} ms", 1e3 * action.length_s.unwrap_or(0.0)))
        }
        _ => {
            match action.exit_code {
                _ if !action.error.is_empty() => say(action.error.clone()),
                Some(code) => say(format!("exit code {code}")),
                None => say("ended by a signal".to_owned()),
            }
            say(format!("after {:.2} s", action.length_s.unwrap_or_default()));
            if !action.output.is_empty() {
                say(format!("output in {}", action.output));
            }
        }
    }
    if action.kind == "takeover" {
        say(format!("{} first connections ended", of(action.displaced, action.clients)));
        say(format!("{} were told that their session is taken over", thousands(action.told)));
    }
    if action.wills_expected > 0 {
        let last = max(action.wills_us.max).unwrap_or_else(|| "never".to_owned());
        say(format!("{} wills came", of(action.wills, action.wills_expected)));
        say(format!("the last after {last}"));
    }
    if action.retried > 0 {
        let refused = match action.refused {
            0 => String::new(),
            refused => format!(" ({} refused)", thousands(refused)),
        };
        say(format!("{} failed attempts{refused}", thousands(action.retried)));
    }
    if action.given_up > 0 {
        say(format!("{} given up", thousands(action.given_up)));
    }
    words.join("; ")
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
        Band { name: lang.told(&action.kind), from: action.at_s, to }
    };
    actions.iter().map(mark).collect()
}
