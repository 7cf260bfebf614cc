//! Timed actions while the run goes on: which have begun, and what has come of each so far.

use std::sync::Arc;

use serde::Serialize;
use tacho_load::{ActionCounts, Event, PhaseKind};

use super::commands::Commands;
use super::course::Course;
use super::numbers::round;
use super::planned_actions::{Planned, PlannedActions};
use tacho_scenario::format::{latency, thousands};

/// What is known of a timed action that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ActionNews {
    /// Its position in the scenario's [schedule](tacho_scenario::Scenario::schedule).
    pub number: usize,
    /// `disconnect`, `pause`, `takeover`, `subscribe`, `kill` or `run`.
    pub kind: String,
    /// What happens, in words.
    pub what: String,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it lasts, where that is known.
    pub length_s: Option<f64>,
    /// To how many clients.
    pub clients: u64,
    /// What has followed so far, in words.
    pub followed: String,
}

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
    told: Option<ActionNews>,
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
    pub(super) fn news(&mut self) -> Vec<ActionNews> {
        let Some(measured_ns) = self.measured_ns else { return Vec::new() };
        let mut kills: Vec<_> = self
            .courses
            .iter()
            .map(|(name, course)| (name.as_str(), course.kills().into_iter()))
            .collect();
        let mut news = Vec::new();
        for (number, action) in self.actions.iter_mut().enumerate() {
            let record = &action.planned.record;
            let (at_ns, length_s, followed) = match record.kind.as_str() {
                "kill" => {
                    let due_ns = (measured_ns + action.planned.after.as_nanos() as u64)
                        .saturating_sub(PlannedActions::EARLY_NS);
                    let of = kills.iter_mut().find(|(name, _)| *name == action.planned.target);
                    let kill = of.and_then(|(_, all)| all.find(|(at_ns, _)| *at_ns >= due_ns));
                    let Some((at_ns, serving_ns)) = kill else { continue };
                    let length_s = serving_ns.map(|ns| ns as f64 / 1e9);
                    let followed = match length_s {
                        Some(length_s) => format!("serving again after {:.0} ms", 1e3 * length_s),
                        None => "away".to_owned(),
                    };
                    (at_ns, length_s, followed)
                }
                "run" => match self.commands.so_far(number) {
                    Some((at_ns, Some(done))) => {
                        let length_s = done.took_ns as f64 / 1e9;
                        let end = match done.exit_code {
                            _ if !done.error.is_empty() => done.error.clone(),
                            Some(code) => format!("exit code {code}"),
                            None => "ended by a signal".to_owned(),
                        };
                        (at_ns, Some(length_s), format!("{end}; after {length_s:.2} s"))
                    }
                    Some((at_ns, None)) => (at_ns, None, "it runs".to_owned()),
                    None => continue,
                },
                _ => {
                    let Some(at_ns) = action.at_ns else { continue };
                    let followed = of_clients(&record.kind, &action.counts);
                    (at_ns, record.length_s, followed)
                }
            };
            let now = ActionNews {
                number,
                kind: record.kind.clone(),
                what: record.what.clone(),
                at_s: round(at_ns.saturating_sub(self.started_ns) as f64 / 1e9, 3),
                length_s: length_s.map(|length_s| round(length_s, 3)),
                clients: action.clients.max(action.counts.clients),
                followed,
            };
            if action.told.as_ref() != Some(&now) {
                action.told = Some(now.clone());
                news.push(now);
            }
        }
        news
    }
}

/// What followed for clients, in words.
fn of_clients(kind: &str, counts: &ActionCounts) -> String {
    let of = |part: u64, all: u64| format!("{} of {}", thousands(part), thousands(all));
    let last = |us: u64| format!(", the last after {}", latency(us as f64));
    let mut words = Vec::new();
    match kind {
        "disconnect" | "takeover" => {
            let back = of(counts.connected, counts.clients);
            let late =
                if counts.connected > 0 { last(counts.connected_max_us) } else { String::new() };
            words.push(format!("{back} back{late}"));
        }
        "subscribe" => {
            let ready = of(counts.ready, counts.clients);
            let late = if counts.ready > 0 { last(counts.ready_max_us) } else { String::new() };
            words.push(format!("{ready} have their SUBACK{late}"));
        }
        _ => words.push(format!("{} of them so far", thousands(counts.clients))),
    }
    if kind == "takeover" {
        words.push(format!("{} first connections ended", thousands(counts.displaced)));
        words.push(format!("{} were told", thousands(counts.taken_over)));
    }
    if counts.wills_expected > 0 {
        let late = if counts.wills > 0 { last(counts.wills_max_us) } else { String::new() };
        words.push(format!("{} wills came{late}", of(counts.wills, counts.wills_expected)));
    }
    if counts.retained > 0 {
        words.push(format!("{} retained messages came", thousands(counts.retained)));
    }
    if counts.retried > 0 {
        let refused = match counts.refused {
            0 => String::new(),
            refused => format!(" ({} refused)", thousands(refused)),
        };
        words.push(format!("{} failed attempts{refused}", thousands(counts.retried)));
    }
    if counts.given_up > 0 {
        words.push(format!("{} given up", thousands(counts.given_up)));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::commands::CommandDone;
    use super::*;
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

    fn told(so_far: &mut ActionProgress) -> Vec<(usize, String)> {
        so_far.news().into_iter().map(|news| (news.number, news.followed)).collect()
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
        assert_eq!(told(&mut so_far), [(0, "it runs".to_owned())]);
        assert_eq!(told(&mut so_far), []);
        let done = CommandDone { scheduled: 0, exit_code: Some(3), ..CommandDone::default() };
        commands.done(CommandDone { took_ns: SECOND_NS / 2, ..done });
        assert_eq!(told(&mut so_far), [(0, "exit code 3; after 0.50 s".to_owned())]);

        course.killed();
        assert_eq!(told(&mut so_far), [(1, "away".to_owned())]);
        course.started(2);
        course.serves();
        let news = so_far.news();
        assert!(news[0].followed.starts_with("serving again after"), "{news:?}");
        assert_eq!((news.len(), news[0].number), (1, 1));

        let at_ns = measured_ns + 3 * SECOND_NS;
        so_far.take(&Event::ActionStarted { action: 0, at_ns, clients: 4 });
        let news = so_far.news();
        assert_eq!((news.len(), news[0].number, news[0].clients), (1, 2, 4));
        assert_eq!(news[0].what, "all of a break off");
        let counts = ActionCounts {
            clients: 4,
            connected: 3,
            connected_max_us: 120_000,
            retried: 2,
            refused: 1,
            ..ActionCounts::default()
        };
        let said = of_clients("disconnect", &counts);
        assert_eq!(said, "3 of 4 back, the last after 120 ms; 2 failed attempts (1 refused)");
    }
}
