//! When a broker is killed: drawn from the scenario's seed.

use std::time::Duration;

use tacho_scenario::{Group, Scenario};

/// Where in the measured phase a kill may fall, as a share of its length: a broker that has not
/// begun, or has no time left, shows nothing.
const MEASURED: (f64, f64) = (0.05, 0.95);
/// Of the kills that are drawn, so many of ten fall into the measured phase where there is a
/// choice.
const MEASURED_OF_TEN: u32 = 7;

/// The kills of one broker in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kills {
    /// Shares of the measured phase.
    measured: Vec<f64>,
    /// Times since the measured phase began, as actions name them.
    planned: Vec<Duration>,
    /// Times since clients began to come back.
    draining: Vec<Duration>,
}

impl Kills {
    /// What the scenario wants of its broker `target`.
    ///
    /// Where clients are absent and come back, one kill falls on the moment at which they begin
    /// to: everything is published then and nothing delivered.
    pub fn of(scenario: &Scenario, target: &str) -> Self {
        let targets = scenario.targets_in_use();
        let found = targets.iter().position(|(name, _)| *name == target);
        let Some((at, count)) = found.map(|at| (at, targets[at].1.kills)) else {
            return Self::default();
        };
        let mut random = fastrand::Rng::with_seed(scenario.seed ^ ((at as u64) << 32));
        let returning = return_of(scenario);
        let mut kills = Self::default();
        for number in 0..count {
            let share = random.f64();
            let measured = random.u32(0..10) < MEASURED_OF_TEN;
            match returning {
                Some(_) if number == 0 => kills.draining.push(Duration::ZERO),
                Some(returning) if !measured => kills.draining.push(returning.mul_f64(share)),
                _ => kills.measured.push(MEASURED.0 + share * (MEASURED.1 - MEASURED.0)),
            }
        }
        kills.planned = scenario.kill_actions(target);
        kills.measured.sort_unstable_by(f64::total_cmp);
        kills.draining.sort_unstable();
        kills
    }

    /// How many there are to be.
    pub fn count(&self) -> usize {
        self.measured.len() + self.planned.len() + self.draining.len()
    }

    /// When to kill, from the beginning of a measured phase of this length.
    pub fn while_measuring(&self, length: Duration) -> Vec<Duration> {
        let drawn = self.measured.iter().map(|share| length.mul_f64(*share));
        let mut all: Vec<Duration> = drawn.chain(self.planned.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// When to kill, from the moment at which clients begin to come back.
    pub fn while_draining(&self) -> &[Duration] {
        &self.draining
    }
}

/// How long absent clients take to come back; `None` when there are none.
fn return_of(scenario: &Scenario) -> Option<Duration> {
    let takes = |group: &Group| match (group.connect.rate, group.connect.ramp) {
        (Some(rate), _) => Duration::from_secs_f64(f64::from(group.clients) / rate.0),
        (None, ramp) => ramp.unwrap_or_default().0,
    };
    let absent = scenario.groups.values().filter(|group| group.clients > 0 && group.absent);
    absent.map(takes).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_scenario::{Builtin, Limits, SourceText};

    fn persistent(kills: u32, seed: u64) -> Scenario {
        let source = Builtin::find("persistent").expect("is built in").source();
        let vars = [("kills".to_owned(), kills.to_string())];
        let mut scenario = Scenario::parse(&source, &vars, Limits::NONE).expect("parses");
        scenario.seed = seed;
        scenario
    }

    #[test]
    fn one_kill_falls_between_publishing_and_draining_and_others_anywhere() {
        let length = Duration::from_secs(10);
        let one = Kills::of(&persistent(1, 7), "");
        assert_eq!((one.count(), one.while_draining()), (1, &[Duration::ZERO][..]));
        assert!(one.while_measuring(length).is_empty());
        let many = Kills::of(&persistent(200, 7), "");
        assert_eq!(many.count(), 200);
        let measured = many.while_measuring(length);
        assert!(measured.len() > 100 && many.while_draining().len() > 30);
        assert!(measured.is_sorted() && many.while_draining().is_sorted());
        assert!(measured.iter().all(|at| *at > Duration::from_millis(499) && *at < length));
        // All are back within a second.
        assert!(many.while_draining().iter().all(|at| *at <= Duration::from_secs(1)));
        assert_eq!(many, Kills::of(&persistent(200, 7), ""));
        assert_ne!(many, Kills::of(&persistent(200, 8), ""));
        assert_eq!(Kills::of(&persistent(0, 7), "").count(), 0);
        assert_eq!(Kills::of(&persistent(5, 7), "other").count(), 0);
    }

    #[test]
    fn without_absences_all_kills_fall_into_the_measured_phase() {
        let text = "name = 'x'\n[target]\nkills = 9\n[groups.a]\nclients = 1\n\
            [[groups.a.publish]]\ntopic = 't'\nrate = { total = 1 }\n";
        let source = SourceText::new("x", text);
        let scenario = Scenario::parse(&source, &[], Limits::NONE).expect("parses");
        let kills = Kills::of(&scenario, "");
        assert_eq!(kills.while_measuring(Duration::from_secs(1)).len(), 9);
        assert!(kills.while_draining().is_empty());
    }
}
