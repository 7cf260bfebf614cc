//! When the timed actions of a scenario happen.

use std::time::Duration;

use crate::action::{Action, ActionKind};
use crate::types::Scenario;

/// One occurrence of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled<'a> {
    /// From the start of the measured phase.
    pub after: Duration,
    /// How often it has happened before.
    pub turn: u32,
    /// What happens.
    pub action: &'a Action,
}

impl Scenario {
    /// Everything that happens in the measured phase, in order of time.
    pub fn schedule(&self) -> Vec<Scheduled<'_>> {
        let each = self.actions.iter().flat_map(|action| {
            (0..action.times).map(move |turn| {
                let every = action.every.unwrap_or_default().0;
                Scheduled { after: action.at.0 + every * turn, turn, action }
            })
        });
        let mut schedule: Vec<Scheduled<'_>> = each.collect();
        schedule.sort_by_key(|scheduled| scheduled.after);
        schedule
    }

    /// When actions kill a broker, from the start of the measured phase.
    pub fn kill_actions(&self, target: &str) -> Vec<Duration> {
        let kills_target = |action: &Action| match &action.kind {
            ActionKind::Kill { target: named } => named.as_deref().unwrap_or("") == target,
            _ => false,
        };
        let schedule = self.schedule().into_iter();
        schedule.filter(|at| kills_target(at.action)).map(|at| at.after).collect()
    }
}
