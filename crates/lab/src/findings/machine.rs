//! The machines that broker and generator run on.

use super::{Evidence, Found};
use crate::verdict::{OTHERS_PERCENT, STEAL_PERCENT};
use tacho_record::{Observation, Severity, WhoseCpu};

/// Points by which the broker's cores may be busier than the broker itself.
const FOREIGN_PERCENT: f64 = 25.0;
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

/// The broker's cores are much busier than the broker: the CPU figure is not its own.
pub(super) fn foreign_load_on_broker_cores(evidence: &Evidence<'_>) -> Found {
    let step = evidence.step;
    if step.whose_cpu.as_deref() != Some(WhoseCpu::BrokerCores.name()) {
        return None;
    }
    let own = step.broker_cpu_percent? / step.broker_cores_used.filter(|cores| *cores > 0)? as f64;
    let busy = step.cpu_percent?;
    if busy - own < FOREIGN_PERCENT {
        return None;
    }
    let observation = Observation::ForeignLoad { busy_percent: busy, broker_percent: own };
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
