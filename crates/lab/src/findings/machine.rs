//! The machines that broker and generator run on.

use super::{Evidence, Found};
use crate::verdict::{OTHERS_ON_BROKER_CORES_PERCENT, OTHERS_PERCENT, STEAL_PERCENT};
use tacho_record::{Observation, Severity};

/// Gini coefficient from which on a shared subscription is not fair.
const UNFAIR_GINI: f64 = 0.2;
/// Messages per member that are needed to judge fairness.
const MESSAGES_PER_MEMBER: u64 = 50;

/// A hypervisor gave the machine's time to others.
pub(super) fn steal(evidence: &Evidence<'_>) -> Found {
    let step = evidence.step;
    let hosts = step.hosts.iter().filter_map(|host| host.get("cpu_steal_percent"));
    let steal = hosts.map(|used| used.mean).chain(step.host_steal_percent).reduce(f64::max)?;
    if steal < STEAL_PERCENT {
        return None;
    }
    let observation = Observation::Steal { percent: steal };
    Some(("steal", Severity::Warning, observation))
}

/// Programs that have nothing to do with the run.
pub(super) fn other_programs(evidence: &Evidence<'_>) -> Found {
    let others = evidence.step.other_cpu_percent.filter(|others| *others >= OTHERS_PERCENT)?;
    let observation = Observation::OtherPrograms { percent: others };
    Some(("other_programs", Severity::Warning, observation))
}

/// Other programs ran on the broker's cores.
pub(super) fn others_on_broker_cores(evidence: &Evidence<'_>) -> Found {
    let step = evidence.step;
    let percent = step
        .others_on_broker_cores_percent
        .filter(|percent| *percent >= OTHERS_ON_BROKER_CORES_PERCENT)?;
    let program = step.others_on_broker_cores_by.clone().unwrap_or_default();
    let observation = Observation::OthersOnBrokerCores { percent, program };
    Some(("broker_cores_shared", Severity::Warning, observation))
}

/// A shared subscription whose members were served very differently.
pub(super) fn unfair_groups(evidence: &Evidence<'_>) -> Found {
    let groups = &evidence.step.shared;
    let unfair = groups.iter().filter(|group| {
        group.gini >= UNFAIR_GINI && group.received >= group.members * MESSAGES_PER_MEMBER
    });
    let worst = unfair.clone().max_by(|left, right| left.gini.total_cmp(&right.gini))?;
    let observation = Observation::UnfairGroups {
        unfair: unfair.count() as u64,
        groups: groups.len() as u64,
        filter: worst.filter.clone(),
        received_min: worst.received_min,
        received_max: worst.received_max,
        gini: worst.gini,
    };
    Some(("unfair_group", Severity::Warning, observation))
}
