//! The machines that broker and generator run on.

use super::{Evidence, Found};
use crate::verdict::{OTHERS_PERCENT, STEAL_PERCENT};
use tacho_record::{Severity, WhoseCpu};

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
    let sentence = format!(
        "The hypervisor took {steal:.1} % of the time away: the machine was noisy; repeat the run, \
         several times (--repeat), or on a machine of its own."
    );
    Some(("steal", Severity::Warning, sentence))
}

/// Programs that have nothing to do with the run.
pub(super) fn other_programs(evidence: &Evidence<'_>) -> Found {
    let others = evidence.step.other_cpu_percent.filter(|others| *others >= OTHERS_PERCENT)?;
    let sentence = format!(
        "Other programs used {others:.0} % of a core during the measured window: repeat the run on \
         an idle machine."
    );
    Some(("other_programs", Severity::Warning, sentence))
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
    let sentence = format!(
        "The broker's cores were {busy:.0} % busy, of which the broker itself took {own:.0} %: the \
         rest is the kernel's or other programs'; a recommended workload from it is too low."
    );
    Some(("broker_cores_shared", Severity::Warning, sentence))
}

/// A shared subscription whose members were served very differently.
pub(super) fn unfair_groups(evidence: &Evidence<'_>) -> Found {
    let groups = &evidence.step.shared;
    let unfair = groups.iter().filter(|group| {
        group.gini >= UNFAIR_GINI && group.received >= group.members * MESSAGES_PER_MEMBER
    });
    let worst = unfair.clone().max_by(|left, right| left.gini.total_cmp(&right.gini))?;
    let sentence = format!(
        "{} of {} shared subscriptions are served unevenly: in {} the members got {} to {} \
         messages (Gini {:.2}); look at the broker's strategy for shared subscriptions.",
        unfair.count(),
        groups.len(),
        worst.filter,
        worst.received_min,
        worst.received_max,
        worst.gini
    );
    Some(("unfair_group", Severity::Warning, sentence))
}
