//! Timed actions while the run goes on: which have begun, and what has come of each so far.

use std::sync::Arc;

use tacho_load::{ActionCounts, Event, PhaseKind};
use tacho_record::{ActionKind, ActionState, Consequence};

use super::commands::{CommandDone, Commands};
use super::course::Course;
use super::numbers::round;
use super::planned_actions::{Planned, PlannedActions};

/// All of a run.
#[derive(Debug)]
pub(super) struct ActionProgress {
    started_ns: u64,
    /// When the measured phase began.
    measured_ns: Option<u64>,
    actions: Vec<RunningAction>,
    /// Brokers by name, with what happens to them.
    courses: Vec<(String, Arc<Course>)>,
    commands: Arc<Commands>,
}

#[derive(Debug)]
struct RunningAction {
    planned: Planned,
    at_ns: Option<u64>,
    clients: u64,
    counts: ActionCounts,
    told: Option<ActionState>,
}

impl ActionProgress {
    pub(super) fn new(
        actions: &PlannedActions,
        started_ns: u64,
        courses: Vec<(String, Arc<Course>)>,
        commands: Arc<Commands>,
    ) -> Self {
        let action = |planned: &Planned| RunningAction {
            planned: planned.clone(),
            at_ns: None,
            clients: 0,
            counts: ActionCounts::default(),
            told: None,
        };
        let actions = actions.planned().iter().map(action).collect();
        Self { started_ns, measured_ns: None, actions, courses, commands }
    }

    /// Takes an event of the load.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Phase { kind: PhaseKind::Measure, at_ns, .. } => {
                self.measured_ns = Some(*at_ns);
                for action in &mut self.actions {
                    (action.at_ns, action.clients) = (None, 0);
                    (action.counts, action.told) = (ActionCounts::default(), None);
                }
            }
            Event::ActionStarted { action, at_ns, clients } => {
                if let Some(action) = self.of_load(*action) {
                    (action.at_ns, action.clients) = (Some(*at_ns), *clients);
                }
            }
            Event::Interval(interval) => {
                for (action, counts) in &interval.actions {
                    if let Some(action) = self.of_load(*action) {
                        action.counts.add(counts);
                    }
                }
            }
            _ => {}
        }
    }

    /// The action with this number in the load's plan, which has those about clients only.
    fn of_load(&mut self, action: usize) -> Option<&mut RunningAction> {
        self.actions.iter_mut().filter(|action| action.planned.is_of_load()).nth(action)
    }

    /// Those of which more is known than when this was asked last.
    pub(super) fn news(&mut self) -> Vec<ActionState> {
        let Some(measured_ns) = self.measured_ns else { return Vec::new() };
        let mut kills: Vec<_> = self
            .courses
            .iter()
            .map(|(name, course)| (name.as_str(), course.kills().into_iter()))
            .collect();
        let mut news = Vec::new();
        for (number, action) in self.actions.iter_mut().enumerate() {
            let planned = &action.planned;
            let (at_ns, length_s, consequences) = match planned.record.kind {
                ActionKind::Kill => {
                    let due_ns = (measured_ns + planned.after.as_nanos() as u64)
                        .saturating_sub(PlannedActions::EARLY_NS);
                    let of = kills.iter_mut().find(|(name, _)| *name == planned.target);
                    let kill = of.and_then(|(_, all)| all.find(|(at_ns, _)| *at_ns >= due_ns));
                    let Some((at_ns, serving_ns)) = kill else { continue };
                    let length_s = serving_ns.map(|ns| ns as f64 / 1e9);
                    (at_ns, length_s, vec![of_broker(length_s)])
                }
                ActionKind::Run => match self.commands.so_far(number) {
                    Some((at_ns, Some(done))) => {
                        let length_s = done.took_ns as f64 / 1e9;
                        (at_ns, Some(length_s), of_command(&done))
                    }
                    Some((at_ns, None)) => (at_ns, None, vec![Consequence::CommandRuns]),
                    None => continue,
                },
                ActionKind::Disconnect
                | ActionKind::Pause
                | ActionKind::Takeover
                | ActionKind::Subscribe
                | ActionKind::Other(_) => {
                    let Some(at_ns) = action.at_ns else { continue };
                    let consequences = of_clients(&planned.record.kind, &action.counts);
                    (at_ns, planned.record.length_s, consequences)
                }
            };
            let now = ActionState {
                number,
                kind: planned.record.kind.clone(),
                effect: planned.effect.clone(),
                at_s: round(at_ns.saturating_sub(self.started_ns) as f64 / 1e9, 3),
                length_s: length_s.map(|length_s| round(length_s, 3)),
                clients: action.clients.max(action.counts.clients),
                consequences,
            };
            if action.told.as_ref() != Some(&now) {
                action.told = Some(now.clone());
                news.push(now);
            }
        }
        news
    }
}

/// What followed for a broker that was killed, and serves again after so long.
fn of_broker(length_s: Option<f64>) -> Consequence {
    length_s.map_or(Consequence::BrokerAway, |length_s| Consequence::BrokerServes {
        after_ms: 1e3 * length_s,
    })
}

/// How a command ended.
fn of_command(done: &CommandDone) -> Vec<Consequence> {
    let end = match (&done.cut_short, done.exit_code) {
        (Some(why), _) => Consequence::CommandCutShort { why: why.clone() },
        (None, Some(code)) => Consequence::CommandExited { code },
        (None, None) => Consequence::CommandSignalled,
    };
    vec![end, Consequence::CommandTook { length_s: done.took_ns as f64 / 1e9 }]
}

/// What followed for clients.
fn of_clients(kind: &ActionKind, counts: &ActionCounts) -> Vec<Consequence> {
    let last = |count: u64, us: u64| (count > 0).then_some(us);
    let mut all = Vec::new();
    match kind {
        ActionKind::Disconnect | ActionKind::Takeover => {
            let last_us = last(counts.connected, counts.connected_max_us);
            let (clients, of) = (counts.connected, counts.clients);
            all.push(Consequence::Connected { clients, of, last_us });
        }
        ActionKind::Subscribe => {
            let last_us = last(counts.ready, counts.ready_max_us);
            let (clients, of) = (counts.ready, counts.clients);
            all.push(Consequence::Subscribed { clients, of, last_us });
        }
        ActionKind::Pause | ActionKind::Kill | ActionKind::Run | ActionKind::Other(_) => {
            all.push(Consequence::Reached { clients: counts.clients });
        }
    }
    if *kind == ActionKind::Takeover {
        let connections = counts.displaced;
        all.push(Consequence::FirstConnectionsEnded { connections, of: None });
        all.push(Consequence::ToldOfTakeover { connections: counts.taken_over });
    }
    if counts.wills_expected > 0 {
        let (wills, of) = (counts.wills, counts.wills_expected);
        all.push(Consequence::WillsReceived { wills, of });
        let last_us = last(counts.wills, counts.wills_max_us);
        all.extend(last_us.map(|us| Consequence::LastWill { last_us: Some(us) }));
    }
    if counts.retained > 0 {
        all.push(Consequence::RetainedReceived { messages: counts.retained, of: None });
    }
    if counts.retried > 0 {
        let (attempts, refused) = (counts.retried, counts.refused);
        all.push(Consequence::AttemptsFailed { attempts, refused });
    }
    if counts.given_up > 0 {
        all.push(Consequence::GivenUp { clients: counts.given_up });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_record::ActionEffect;
    use tacho_scenario::{Limits, Scenario, SourceText};

    const SECOND_NS: u64 = 1_000_000_000;

    fn actions() -> PlannedActions {
        let text = "name = 'x'\n[groups.a]\nclients = 4\n\
            [[groups.a.publish]]\ntopic = 't'\nrate = { total = 1 }\n\
            [[actions]]\nat = '1s'\nrun = 'true'\n\
            [[actions]]\nat = '2s'\nkill = {}\n\
            [[actions]]\nat = '3s'\ndisconnect = { group = 'a', cleanly = false }\n\
            [[actions]]\nat = '4s'\nkill = {}\n\
            [phases]\nmeasure = '10s'\n";
        let source = SourceText::new("x", text);
        PlannedActions::from_scenario(&Scenario::parse(&source, &[], Limits::NONE).expect("parses"))
    }

    fn told(so_far: &mut ActionProgress) -> Vec<(usize, Vec<Consequence>)> {
        so_far.news().into_iter().map(|news| (news.number, news.consequences)).collect()
    }

    #[test]
    fn everything_is_told_as_it_happens_and_once() {
        let course = Arc::new(Course::new(Some(1), true));
        let commands = Arc::<Commands>::default();
        let courses = vec![(String::new(), Arc::clone(&course))];
        let mut so_far = ActionProgress::new(&actions(), 0, courses, Arc::clone(&commands));
        // A kill before the measured phase is none of the planned ones.
        course.killed();
        course.serves();
        std::thread::sleep(std::time::Duration::from_nanos(PlannedActions::EARLY_NS));
        // As if the measured phase had begun two seconds ago, so that the kill is due now.
        let measured_ns = Commands::now_ns().saturating_sub(2 * SECOND_NS);
        let measured = Event::Phase { kind: PhaseKind::Measure, index: 4, at_ns: measured_ns };
        assert_eq!(told(&mut so_far), []);
        so_far.take(&measured);
        assert_eq!(told(&mut so_far), []);

        commands.began(0, measured_ns + SECOND_NS);
        assert_eq!(told(&mut so_far), [(0, vec![Consequence::CommandRuns])]);
        assert_eq!(told(&mut so_far), []);
        let done = CommandDone { scheduled: 0, exit_code: Some(3), ..CommandDone::default() };
        commands.done(CommandDone { took_ns: SECOND_NS / 2, ..done });
        let exited = Consequence::CommandExited { code: 3 };
        let took = Consequence::CommandTook { length_s: 0.5 };
        assert_eq!(told(&mut so_far), [(0, vec![exited, took])]);

        course.killed();
        assert_eq!(told(&mut so_far), [(1, vec![Consequence::BrokerAway])]);
        course.started(2);
        course.serves();
        let news = so_far.news();
        assert!(matches!(news[0].consequences[..], [Consequence::BrokerServes { .. }]), "{news:?}");
        assert_eq!((news.len(), news[0].number), (1, 1));

        let at_ns = measured_ns + 3 * SECOND_NS;
        so_far.take(&Event::ActionStarted { action: 0, at_ns, clients: 4 });
        let news = so_far.news();
        assert_eq!((news.len(), news[0].number, news[0].clients), (1, 2, 4));
        let effect = ActionEffect::BreakOff { group: "a".to_owned(), share: 1.0 };
        assert_eq!(news[0].effect, effect);
        let counts = ActionCounts {
            clients: 4,
            connected: 3,
            connected_max_us: 120_000,
            retried: 2,
            refused: 1,
            ..ActionCounts::default()
        };
        let connected = Consequence::Connected { clients: 3, of: 4, last_us: Some(120_000) };
        let failed = Consequence::AttemptsFailed { attempts: 2, refused: 1 };
        assert_eq!(of_clients(&ActionKind::Disconnect, &counts), [connected, failed]);
    }
}
