//! What a campaign is about.

use tacho_scenario::Scenario;
use tacho_scenario::suite::Suite;

/// A scenario or a suite, by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// The same in Chinese; empty where there is none.
    pub description_zh: &'a str,
}

impl<'a> Subject<'a> {
    /// A scenario.
    pub fn scenario(scenario: &'a Scenario) -> Self {
        let Scenario { name, description, description_zh, .. } = scenario;
        Self { name, description, description_zh }
    }

    /// A suite.
    pub const fn suite(suite: &Suite) -> Self {
        let Suite { name, description, description_zh, .. } = *suite;
        Self { name, description, description_zh }
    }
}
