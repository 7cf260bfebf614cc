//! The machines that broker and generator run on.

use super::{Evidence, Found};
use crate::verdict::OTHERS_PERCENT;
use tacho_record::{Handling, Observation, Severity};

/// Gini coefficient from which on a shared subscription is not fair.
const UNFAIR_GINI: f64 = 0.2;
/// Messages per member that are needed to judge fairness.
const MESSAGES_PER_MEMBER: u64 = 50;

/// Whether latencies have causes beside the broker: the hypervisor or other programs disturbed
/// seconds that count.
pub(super) fn is_disturbed(evidence: &Evidence<'_>) -> bool {
    let disturbance = evidence.step.disturbance.as_ref();
    let counts = disturbance.is_some_and(|found| found.handling != Handling::LeftOut);
    counts || other_programs(evidence).is_some()
}

/// The hypervisor or other programs disturbed the window.
pub(super) fn disturbed(evidence: &Evidence<'_>) -> Found {
    let disturbance = evidence.step.disturbance.clone()?;
    let by_others = disturbance.others.seconds > 0;
    let program = evidence.step.others_on_broker_cores_by.clone().filter(|_| by_others);
    Some(("disturbed", Severity::Warning, Observation::Disturbed { disturbance, program }))
}

/// Programs that have nothing to do with the run.
pub(super) fn other_programs(evidence: &Evidence<'_>) -> Found {
    let others = evidence.step.other_cpu_percent.filter(|others| *others >= OTHERS_PERCENT)?;
    let observation = Observation::OtherPrograms { percent: others };
    Some(("other_programs", Severity::Warning, observation))
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
