//! What is known about a run before it starts.

use std::collections::BTreeMap;

use super::names::Names;
use super::planned_actions::PlannedActions;
use tacho_record::{Placement, TargetRecord};
use tacho_scenario::threshold::Thresholds;
use tacho_scenario::{HeadlineKind, Scenario, VarValue};

/// What is known about a run before it starts.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Scenario name.
    pub scenario: String,
    /// Run name.
    pub name: String,
    /// Description of the scenario.
    pub description: String,
    /// The same in Chinese; empty where there is none.
    pub description_zh: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// What is loaded, at least one broker.
    pub targets: Vec<TargetRecord>,
    /// Where things run.
    pub placement: Placement,
    /// Variables.
    pub vars: BTreeMap<String, VarValue>,
    /// Seed.
    pub seed: u64,
    /// What the scenario says about where it came from.
    pub notes: Vec<String>,
    /// Thresholds.
    pub thresholds: Thresholds,
    /// Clients of the plan.
    pub clients: u64,
    /// Delivery rate that the plan implies at its publish rate.
    pub offered_out_per_s: f64,
    /// Messages that are due to be published per second.
    pub offered_in_per_s: f64,
    /// Names of clients and topics.
    pub names: Names,
    /// Timed actions in the measured phase.
    pub actions: PlannedActions,
    /// For each group of the plan, whether anything happens to it.
    pub concerned: Vec<bool>,
    /// Groups that ask and get answers.
    pub asking: Vec<String>,
    /// The figures that the scenario is for.
    pub headlines: Vec<HeadlineKind>,
    /// At least one publisher is closed: there is no rate to reach.
    pub closed: bool,
    /// Every publisher uses QoS 1 or 2: acknowledgements tell what the broker took.
    pub acknowledged: bool,
}

impl RunFacts {
    /// Takes over what the scenario says.
    pub fn of(
        scenario: &Scenario,
        plan: &tacho_load::Plan,
        name: String,
        started_at: String,
        targets: Vec<TargetRecord>,
        placement: Placement,
    ) -> Self {
        let paces = || plan.groups.iter().flat_map(|group| &group.publish);
        let actions = PlannedActions::from_scenario(scenario);
        Self {
            scenario: scenario.name.clone(),
            name,
            description: scenario.description.clone(),
            description_zh: scenario.description_zh.clone(),
            started_at,
            targets,
            placement,
            vars: scenario.vars.clone(),
            seed: scenario.seed,
            notes: scenario.notes.clone(),
            thresholds: scenario.thresholds.clone(),
            clients: plan.client_count() as u64,
            offered_out_per_s: plan.offered_out_per_s(),
            offered_in_per_s: plan.offered_in_per_s(),
            names: Names::of(scenario, plan),
            concerned: plan.groups.iter().map(|group| actions.concern(&group.name)).collect(),
            actions,
            asking: plan
                .groups
                .iter()
                .filter(|group| {
                    let mut streams = group.clients.iter().flat_map(|client| &client.streams);
                    streams.any(|stream| stream.response_topic.is_some())
                })
                .map(|group| group.name.clone())
                .collect(),
            headlines: scenario.headlines.clone(),
            closed: paces().any(|block| block.pace.per_second().is_none()),
            acknowledged: paces().all(|block| u8::from(block.qos) > 0),
        }
    }
}
