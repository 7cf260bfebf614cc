//! What came of a run's timed actions, as records.

use std::time::Duration;

use tacho_load::{ActionTotals, Histogram};

use super::commands::CommandDone;
use super::numbers::round;
use tacho_record::{
    ActionEffect, ActionKind, ActionRecord, CutShort, LatencyStats, PhaseKind, Restart,
};
use tacho_scenario::Scenario;

/// The actions of a run as planned.
#[derive(Clone, Debug, Default)]
pub struct PlannedActions(Vec<Planned>);

#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) after: Duration,
    pub(super) effect: ActionEffect,
    /// The broker that is killed.
    pub(super) target: String,
    pub(super) record: ActionRecord,
}

impl Planned {
    /// Is it about clients, so that it is the load's?
    pub(super) const fn is_of_load(&self) -> bool {
        !self.record.group.is_empty()
    }
}

impl PlannedActions {
    /// A kill may come so much before its time by the clock of the load.
    pub(super) const EARLY_NS: u64 = 100_000_000;

    /// Those of a scenario.
    pub(super) fn from_scenario(scenario: &Scenario) -> Self {
        let planned = |scheduled: tacho_scenario::Scheduled<'_>| {
            let action = scheduled.action;
            let effect = ActionEffect::of_action(action);
            let group = action.group_and_share().map_or("", |(group, _)| group).to_owned();
            let (length_s, target) = match &effect {
                ActionEffect::StopReading { length_s, .. } => (Some(*length_s), None),
                ActionEffect::KillBroker { target } => (None, target.clone()),
                _ => (None, None),
            };
            let record = ActionRecord {
                kind: ActionKind::from(&effect),
                effect: Some(effect.clone()),
                group,
                length_s,
                ..ActionRecord::default()
            };
            let target = target.unwrap_or_default();
            Planned { after: scheduled.after, effect, target, record }
        };
        Self(scenario.schedule().into_iter().map(planned).collect())
    }

    /// Is anything planned?
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in order of time.
    pub(super) fn planned(&self) -> &[Planned] {
        &self.0
    }

    /// How many are planned.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Does anything happen to clients of this group?
    pub(super) fn concern(&self, group: &str) -> bool {
        self.0.iter().any(|planned| !group.is_empty() && planned.record.group == group)
    }

    /// What the action with this number in the load's plan does.
    pub(super) fn effect(&self, of_load: usize) -> Option<&ActionEffect> {
        let mut about = self.0.iter().filter(|planned| planned.is_of_load());
        about.nth(of_load).map(|planned| &planned.effect)
    }

    /// What came of them in a window that began at `start_s`; `totals` are those of the load's
    /// actions.
    pub(super) fn records(
        &self,
        start_s: f64,
        totals: &[ActionTotals],
        (commands, started_ns): (&[CommandDone], u64),
        restarts: &[Restart],
    ) -> Vec<ActionRecord> {
        let mut totals = totals.iter();
        // Each is what came of one kill at most.
        let mut restarts: Vec<&Restart> = restarts.iter().collect();
        let mut records = Vec::with_capacity(self.0.len());
        for (number, planned) in self.0.iter().enumerate() {
            let mut record = planned.record.clone();
            record.phase = PhaseKind::Measure.into();
            record.at_s = round(start_s + planned.after.as_secs_f64(), 3);
            match record.kind {
                ActionKind::Kill => {
                    let due_s = record.at_s - Self::EARLY_NS as f64 / 1e9;
                    let is_it = |restart: &&Restart| {
                        restart.target == planned.target && restart.at_s >= due_s
                    };
                    let Some(found) = restarts.iter().position(is_it) else { continue };
                    let restart = restarts.remove(found);
                    record.at_s = restart.at_s;
                    record.phase.clone_from(&restart.phase);
                    record.length_s = Some(round(restart.serving_ms / 1e3, 3));
                }
                ActionKind::Run => {
                    let Some(done) = commands.iter().find(|done| done.scheduled == number) else {
                        record.cut_short = Some(CutShort::StillRunning);
                        records.push(record);
                        continue;
                    };
                    let at_s = done.at_ns.saturating_sub(started_ns) as f64 / 1e9;
                    record.at_s = round(at_s, 3);
                    record.length_s = Some(round(done.took_ns as f64 / 1e9, 3));
                    record.exit_code = done.exit_code;
                    record.output.clone_from(&done.output);
                    record.cut_short.clone_from(&done.cut_short);
                }
                ActionKind::Disconnect
                | ActionKind::Pause
                | ActionKind::Takeover
                | ActionKind::Subscribe
                | ActionKind::Other(_) => {
                    let Some(totals) = totals.next() else { continue };
                    take(&mut record, totals);
                }
            }
            records.push(record);
        }
        records
    }
}

fn take(record: &mut ActionRecord, totals: &ActionTotals) {
    record.clients = totals.clients;
    // A pause leaves connections alone.
    record.connected = totals.connected.len();
    record.connected_us = LatencyStats::of(&totals.connected);
    record.connected_99_ms = share_ms(&totals.connected, totals.clients, 0.99);
    record.connected_all_ms = share_ms(&totals.connected, totals.clients, 1.0);
    record.ready = totals.ready.len();
    record.ready_99_ms = share_ms(&totals.ready, totals.clients, 0.99);
    record.retried = totals.retried;
    record.refused = totals.refused;
    record.given_up = totals.given_up;
    record.told = totals.taken_over;
    record.displaced = totals.displaced.len();
    record.displaced_us = LatencyStats::of(&totals.displaced);
    record.wills_expected = totals.wills_expected;
    record.wills = totals.wills.len();
    record.wills_us = LatencyStats::of(&totals.wills);
    record.retained_expected = totals.retained_expected;
    record.retained = totals.retained;
    record.complete = totals.complete.len();
    record.complete_us = LatencyStats::of(&totals.complete);
}

/// The time in milliseconds after which `share` of `all` clients are in the histogram, if so many
/// ever were.
fn share_ms(histogram: &Histogram, all: u64, share: f64) -> Option<f64> {
    let wanted = (all as f64 * share).ceil() as u64;
    let there = histogram.len();
    if all == 0 || there < wanted {
        return None;
    }
    let us = histogram.value_at_quantile(wanted as f64 / there as f64);
    Some(round(us as f64 / 1e3, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_scenario::{Limits, SourceText};

    #[test]
    fn a_kill_is_that_of_its_broker() {
        let text = "name = 'x'\n[targets.a]\n[targets.b]\n\
            [groups.a]\ntarget = 'a'\nclients = 1\n[groups.b]\ntarget = 'b'\nclients = 1\n\
            [[actions]]\nat = '2s'\nkill = { target = 'b' }\n\
            [[actions]]\nat = '4s'\nevery = '2s'\ntimes = 2\nkill = { target = 'a' }\n";
        let source = SourceText::new("x", text);
        let scenario = Scenario::parse(&source, &[], Limits::NONE).expect("parses");
        let restart = |target: &str, at_s, serving_ms| Restart {
            target: target.to_owned(),
            at_s,
            serving_ms,
            ..Restart::default()
        };
        // As they are told: broker by broker. The run's own kills count for no action.
        let restarts = [
            restart("a", 11.0, 1.0),
            restart("a", 14.0, 2.0),
            restart("a", 16.1, 3.0),
            restart("b", 12.0, 4.0),
        ];
        let actions = PlannedActions::from_scenario(&scenario);
        let records = actions.records(10.0, &[], (&[], 0), &restarts);
        let found: Vec<_> = records
            .iter()
            .map(|record| (record.at_s, record.length_s, record.effect.clone()))
            .collect();
        let kill = |name: &str| Some(ActionEffect::KillBroker { target: Some(name.to_owned()) });
        let expected = [
            (12.0, Some(0.004), kill("b")),
            (14.0, Some(0.002), kill("a")),
            (16.1, Some(0.003), kill("a")),
        ];
        assert_eq!(found, expected);
        // One that did not come back has none.
        assert_eq!(actions.records(10.0, &[], (&[], 0), &restarts[..3]).len(), 2);
    }

    #[test]
    fn those_who_never_came_back_count() {
        let mut histogram = Histogram::new(3).expect("three digits");
        for ms in 1..=99_u64 {
            histogram.record(ms * 1000).expect("grows");
        }
        let near = |ms: Option<f64>, wanted: f64| {
            assert!(ms.is_some_and(|ms| (ms - wanted).abs() < wanted / 500.0), "{ms:?} {wanted}");
        };
        near(share_ms(&histogram, 99, 1.0), 99.0);
        near(share_ms(&histogram, 100, 0.99), 99.0);
        near(share_ms(&histogram, 100, 0.5), 50.0);
        assert_eq!(share_ms(&histogram, 100, 1.0), None);
        assert_eq!(share_ms(&histogram, 101, 0.99), None);
        assert_eq!(share_ms(&histogram, 0, 0.99), None);
    }
}
