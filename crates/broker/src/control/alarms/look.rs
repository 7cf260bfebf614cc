//! What looks at the broker for alarms read: counters, `/proc`, the data directory's file system.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use tacho_access::certificate_end_s;
use tacho_journal::{Condition, Journal};
use tacho_net::{clock, memory_bytes};

use super::book::{AlarmKind, AlarmStanding, Finding};
use crate::bridge::{Bridge, BridgeMode, State, Status};
use crate::certificates::Certificates;
use crate::config::AlarmSettings;
use crate::control::View;
use crate::control::process::{ProcessMemory, open_descriptors};
use crate::shard::Shared;
use crate::stats::overload_effect;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
/// How long damage of the journal is an alarm.
const DAMAGE_NS: u64 = 3_600 * SECOND_NS;

/// Looks at a broker.
pub(super) struct Looker {
    settings: AlarmSettings,
    certificates: Certificates,
    data_dir: Option<PathBuf>,
    shared: Arc<Shared>,
    /// Bytes that the process may use, if that is known.
    memory_bytes: Option<u64>,
    damage: Damage,
}

/// What the disk has damaged.
#[derive(Debug, Default)]
struct Damage {
    count: u64,
    /// When it was last more than before.
    seen_ns: Option<u64>,
}

impl Looker {
    pub(super) fn new(
        settings: AlarmSettings,
        certificates: Certificates,
        data_dir: Option<PathBuf>,
        shared: Arc<Shared>,
    ) -> Self {
        let (memory_bytes, damage) = (memory_bytes(), Damage::default());
        Self { settings, certificates, data_dir, shared, memory_bytes, damage }
    }

    /// How everything stands.
    pub(super) fn look(&mut self, view: &View) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(self.disk());
        findings.extend(self.memory());
        findings.extend(self.overload(view));
        findings.extend(self.certificates(view, clock::unix_ns() / SECOND_NS));
        let bridges = view.bridges.status();
        findings.extend(bridges.iter().filter_map(|one| self.bridge(view, one)));
        findings.extend(view.journal.as_ref().map(|journal| self.journal(journal)));
        findings.extend(self.descriptors());
        findings
    }

    fn disk(&self) -> Option<Finding> {
        let min = self.settings.disk_free_percent;
        if min == 0 {
            return None;
        }
        // A directory that cannot be asked is told by the journal.
        let space = statvfs(self.data_dir.as_deref()?).ok()?;
        let free = percent(space.f_bavail, space.f_blocks.max(1));
        let standing = falling(free, (min, self.settings.margin_percent));
        let bytes = space.f_bavail.saturating_mul(space.f_frsize);
        let text = format!(
            "{free} % of the data directory's file system are free ({} MiB), less than {min} %",
            bytes >> 20
        );
        Some(finding(AlarmKind::Disk, standing, text))
    }

    fn memory(&self) -> Option<Finding> {
        let max = self.settings.memory_percent;
        if max == 0 {
            return None;
        }
        let memory = &self.shared.memory;
        let resident = ProcessMemory::read().map(|memory| memory.resident_bytes);
        let process = resident.zip(self.memory_bytes).map(|(used, max)| ("the process", used, max));
        let used = process.into_iter().chain([
            ("queued messages", memory.queues(), memory.queues_max),
            ("buffers of connections", memory.buffers(), memory.buffers_max),
        ]);
        let shares = used.map(|(what, used, max)| (percent(used, max.max(1)), what, used, max));
        let (share, what, used, may) = shares.max_by_key(|(share, ..)| *share)?;
        let text = format!(
            "{what}: {share} % of the memory that may be used ({} of {} MiB), at least {max} %",
            used >> 20,
            may >> 20
        );
        let standing = rising(share, (max, self.settings.margin_percent));
        Some(finding(AlarmKind::Memory, standing, text))
    }

    fn overload(&self, view: &View) -> Option<Finding> {
        let min = u64::from(self.settings.overload_level);
        if min == 0 {
            return None;
        }
        let levels = view.stats.iter().map(|stats| stats.overload_level.value()).enumerate();
        let (shard, level) = levels.max_by_key(|(_, level)| *level)?;
        let what = overload_effect(level.max(1));
        let standing = if level >= min { AlarmStanding::Wrong } else { AlarmStanding::Well };
        let text = format!("shard {shard} sheds load, level {level}: {what}");
        Some(finding(AlarmKind::Overload, standing, text))
    }

    fn certificates(&self, view: &View, now_s: u64) -> Vec<Finding> {
        let days_min = i64::from(self.settings.certificate_days);
        if days_min == 0 {
            return Vec::new();
        }
        let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
        let ends = self.certificates.ends().into_iter();
        let own = ends.map(|(path, end_s)| (path, end_s, "clients refuse it"));
        let of_bridges = bridge_certificates(view).into_iter();
        let of_bridges =
            of_bridges.map(|(place, end_s)| (place, end_s, "remote brokers refuse it"));
        own.chain(of_bridges)
            .map(|(subject, end_s, effect)| {
                let left_s = end_s - now_s;
                let standing = match left_s {
                    _ if left_s < days_min * DAY_S => AlarmStanding::Wrong,
                    // It has been renewed.
                    _ if left_s >= (days_min + 1) * DAY_S => AlarmStanding::Well,
                    _ => AlarmStanding::Between,
                };
                let text = match left_s.div_euclid(DAY_S) {
                    ..0 => format!("the certificate has expired: {effect}"),
                    0 => "the certificate expires within a day".to_owned(),
                    days => format!("the certificate expires in {days} days"),
                };
                Finding { subject, ..finding(AlarmKind::Certificate, standing, text) }
            })
            .collect()
    }

    fn bridge(&self, view: &View, status: &Status) -> Option<Finding> {
        let patience_ns = u64::from(self.settings.bridge_down_s) * SECOND_NS;
        if patience_ns == 0 || status.mode != BridgeMode::Running {
            return None;
        }
        let now_ns = clock::now_ns();
        let down = status.links.iter().filter(|link| link.state != State::Up);
        let longest = down.min_by_key(|link| link.since_ns.max(view.started_ns));
        let (standing, text) = match longest {
            None => (AlarmStanding::Well, String::new()),
            Some(link) => {
                let since_ns = link.since_ns.max(view.started_ns);
                let is_long = now_ns.saturating_sub(since_ns) >= patience_ns;
                let standing = if is_long { AlarmStanding::Wrong } else { AlarmStanding::Between };
                let why = link.problem.as_deref().unwrap_or("no answer yet");
                let (up, all) = (status.connected, status.links.len());
                (standing, format!("{up} of {all} connections are up: {why}"))
            }
        };
        Some(Finding { subject: status.name.clone(), ..finding(AlarmKind::Bridge, standing, text) })
    }

    fn journal(&mut self, journal: &Journal) -> Finding {
        let stats = journal.stats();
        let damaged = stats.quarantined.get() + stats.lost_records.get() + stats.unreadable.get();
        let is_damaged = self.damage.is_recent(damaged, clock::now_ns());
        let condition = match journal.condition() {
            Condition::Fine => None,
            Condition::Limited => Some("it is at its size limit"),
            Condition::Full => Some("the disk is full"),
            Condition::Failing => Some("the disk is failing"),
            Condition::Displaced => Some("the data directory was moved, removed or replaced"),
        };
        let (standing, text) = match condition {
            Some(why) => (AlarmStanding::Wrong, format!("the journal takes nothing new: {why}")),
            None if is_damaged => {
                let text = "the disk has damaged it within the last hour: `tacho journal check` \
                            names files and bytes";
                (AlarmStanding::Wrong, text.to_owned())
            }
            None => (AlarmStanding::Well, String::new()),
        };
        finding(AlarmKind::Journal, standing, text)
    }

    fn descriptors(&self) -> Option<Finding> {
        let max = self.settings.descriptors_percent;
        if max == 0 {
            return None;
        }
        let (open, limit) = (open_descriptors()?, getrlimit(Resource::Nofile).current?);
        let share = percent(open, limit.max(1));
        let text = format!("{open} of {limit} file descriptors are open, at least {max} %");
        let standing = rising(share, (max, self.settings.margin_percent));
        Some(finding(AlarmKind::Descriptors, standing, text))
    }
}

/// The certificates that bridges have for their remote brokers, and when each ends.
fn bridge_certificates(view: &View) -> Vec<(String, i64)> {
    let bridges = view.bridges.now();
    let of = |bridge: &Arc<Bridge>| {
        let end_s = certificate_end_s(bridge.tls.as_ref()?.certificate()?)?;
        let path = bridge.config().remote.tls.as_ref()?.cert.as_ref()?;
        Some((format!("bridge {}: {}", bridge.config().name, path.display()), end_s))
    };
    bridges.present().filter_map(of).collect()
}

/// Of a value that must not be as much as this.
fn rising(value: u64, (max, margin): (u32, u32)) -> AlarmStanding {
    match u64::from(max) {
        max if value >= max => AlarmStanding::Wrong,
        max if value < max.saturating_sub(margin.into()).max(1) => AlarmStanding::Well,
        _ => AlarmStanding::Between,
    }
}

/// Of a value that must be at least this.
fn falling(value: u64, (min, margin): (u32, u32)) -> AlarmStanding {
    match u64::from(min) {
        min if value < min => AlarmStanding::Wrong,
        min if value >= (min + u64::from(margin)).min(100) => AlarmStanding::Well,
        _ => AlarmStanding::Between,
    }
}

impl Damage {
    fn is_recent(&mut self, count: u64, now_ns: u64) -> bool {
        if count > self.count {
            (self.count, self.seen_ns) = (count, Some(now_ns));
        }
        self.seen_ns.is_some_and(|seen_ns| now_ns.saturating_sub(seen_ns) < DAMAGE_NS)
    }
}

fn finding(alarm: AlarmKind, standing: AlarmStanding, text: String) -> Finding {
    Finding { alarm, subject: String::new(), standing, text }
}

fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_well_only_by_the_margin() {
        let of = |value| rising(value, (90, 5));
        assert_eq!(
            [of(90), of(85), of(84)],
            [AlarmStanding::Wrong, AlarmStanding::Between, AlarmStanding::Well]
        );
        let of = |value| falling(value, (10, 5));
        assert_eq!(
            [of(9), of(14), of(15)],
            [AlarmStanding::Wrong, AlarmStanding::Between, AlarmStanding::Well]
        );
        // Where the margin goes beyond what there is.
        assert_eq!(
            (rising(0, (3, 5)), falling(100, (99, 5))),
            (AlarmStanding::Well, AlarmStanding::Well)
        );
    }

    #[test]
    fn damage_is_an_alarm_for_an_hour() {
        let mut damage = Damage::default();
        assert!(!damage.is_recent(0, 5));
        assert!(damage.is_recent(2, 10));
        assert!(damage.is_recent(2, 9 + DAMAGE_NS) && !damage.is_recent(2, 10 + DAMAGE_NS));
        assert!(damage.is_recent(3, 11 + DAMAGE_NS));
        assert_eq!((percent(1, 3), percent(u64::MAX, u64::MAX)), (33, 100));
    }
}
