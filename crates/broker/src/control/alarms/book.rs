//! Which alarms there are, from what looks find. Time is passed in.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// Alarms that have ended and are remembered.
const PAST_MAX: usize = 256;
/// Alarms at once; more of one kind are left out.
const ACTIVE_MAX: usize = 256;

/// What an alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::control) enum AlarmKind {
    /// The data directory's file system is nearly full.
    Disk,
    /// The process, queued messages or buffers take nearly all memory that they may.
    Memory,
    /// A shard sheds load.
    Overload,
    /// A certificate ends soon, or has ended.
    Certificate,
    /// A bridge is down.
    Bridge,
    /// The journal takes nothing, or the disk has damaged it.
    Journal,
    /// File descriptors are nearly used up.
    Descriptors,
}

impl AlarmKind {
    pub(in crate::control) const ALL: [Self; 7] = [
        Self::Disk,
        Self::Memory,
        Self::Overload,
        Self::Certificate,
        Self::Bridge,
        Self::Journal,
        Self::Descriptors,
    ];

    /// The name, as in answers.
    pub(in crate::control) const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Overload => "overload",
            Self::Certificate => "certificate",
            Self::Bridge => "bridge",
            Self::Journal => "journal",
            Self::Descriptors => "descriptors",
        }
    }
}

/// An alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::control) struct AlarmRow {
    pub(in crate::control) alarm: AlarmKind,
    /// Which certificate or bridge; empty where there is only one of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::control) subject: String,
    /// What is wrong, as of the last look.
    pub(in crate::control) text: String,
    /// Milliseconds since 1970.
    pub(in crate::control) since_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::control) ended_ms: Option<u64>,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlarmStanding {
    /// Well, by the margin.
    Well,
    /// Neither: an alarm goes on, and none begins.
    Between,
    /// Past the threshold.
    Wrong,
}

/// What a look has found of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) alarm: AlarmKind,
    pub(super) subject: String,
    pub(super) standing: AlarmStanding,
    pub(super) text: String,
}

/// What a look has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AlarmChange {
    Raised(AlarmRow),
    Ended(AlarmRow),
}

impl AlarmChange {
    pub(super) const fn row(&self) -> &AlarmRow {
        match self {
            Self::Raised(row) | Self::Ended(row) => row,
        }
    }
}

/// A current alarm.
#[derive(Debug)]
struct Active {
    row: AlarmRow,
    /// Since when all has been well.
    well_since_ms: Option<u64>,
}

/// All alarms, current and past.
#[derive(Debug, Default)]
pub(super) struct AlarmBook {
    active: BTreeMap<(AlarmKind, String), Active>,
    /// The oldest first.
    past: VecDeque<AlarmRow>,
    raised: BTreeMap<AlarmKind, u64>,
}

impl AlarmBook {
    /// Takes what a look has found of everything; what it does not mention is not there any more.
    pub(super) fn take(
        &mut self,
        findings: Vec<Finding>,
        now_ms: u64,
        clear_ms: u64,
    ) -> Vec<AlarmChange> {
        let mut changes = Vec::new();
        let mut seen = Vec::with_capacity(findings.len());
        for Finding { alarm, subject, standing, text } in findings {
            let key = (alarm, subject);
            if let Some(active) = self.active.get_mut(&key) {
                active.note(standing, text, now_ms);
            } else if standing == AlarmStanding::Wrong && self.active.len() < ACTIVE_MAX {
                let (alarm, subject) = key.clone();
                let row = AlarmRow { alarm, subject, text, since_ms: now_ms, ended_ms: None };
                changes.push(AlarmChange::Raised(row.clone()));
                *self.raised.entry(alarm).or_default() += 1;
                self.active.insert(key.clone(), Active { row, well_since_ms: None });
            }
            seen.push(key);
        }
        let has_ended = |key: &(AlarmKind, String), active: &Active| {
            let is_clear = |since_ms: u64| now_ms.saturating_sub(since_ms) >= clear_ms;
            active.well_since_ms.is_some_and(is_clear) || !seen.contains(key)
        };
        let ended = self.active.iter().filter(|(key, active)| has_ended(key, active));
        let ended: Vec<_> = ended.map(|(key, _)| key.clone()).collect();
        for Active { mut row, .. } in ended.iter().filter_map(|key| self.active.remove(key)) {
            row.ended_ms = Some(now_ms);
            if self.past.len() == PAST_MAX {
                self.past.pop_front();
            }
            self.past.push_back(row.clone());
            changes.push(AlarmChange::Ended(row));
        }
        changes
    }

    pub(super) fn active(&self) -> Vec<AlarmRow> {
        let mut rows: Vec<AlarmRow> = self.active.values().map(|one| one.row.clone()).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.since_ms));
        rows
    }

    pub(super) fn past(&self) -> Vec<AlarmRow> {
        self.past.iter().rev().cloned().collect()
    }

    pub(super) fn active_of(&self, kind: AlarmKind) -> usize {
        self.active.keys().filter(|(alarm, _)| *alarm == kind).count()
    }

    pub(super) fn raised_of(&self, kind: AlarmKind) -> u64 {
        self.raised.get(&kind).copied().unwrap_or(0)
    }
}

impl Active {
    fn note(&mut self, standing: AlarmStanding, text: String, now_ms: u64) {
        match standing {
            AlarmStanding::Well => {
                self.well_since_ms.get_or_insert(now_ms);
            }
            AlarmStanding::Between => self.well_since_ms = None,
            AlarmStanding::Wrong => {
                self.well_since_ms = None;
                self.row.text = text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR_MS: u64 = 60_000;

    fn found(standing: AlarmStanding, text: &str) -> Vec<Finding> {
        let (alarm, subject) = (AlarmKind::Disk, String::new());
        vec![Finding { alarm, subject, standing, text: text.to_owned() }]
    }

    #[test]
    fn an_alarm_begins_at_once_and_ends_when_all_has_been_well_for_a_while() {
        let mut book = AlarmBook::default();
        let mut take = |standing, now_s: u64| {
            let changes = book.take(found(standing, "full"), now_s * 1_000, CLEAR_MS);
            changes.len()
        };
        assert_eq!(take(AlarmStanding::Between, 0), 0, "none begins in between");
        assert_eq!(take(AlarmStanding::Wrong, 5), 1);
        assert_eq!(take(AlarmStanding::Wrong, 10), 0);
        assert_eq!(take(AlarmStanding::Well, 15), 0);
        assert_eq!(take(AlarmStanding::Well, 74), 0, "not for long enough");
        assert_eq!(take(AlarmStanding::Between, 75), 0, "the time begins anew");
        assert_eq!(take(AlarmStanding::Well, 80), 0);
        assert_eq!(take(AlarmStanding::Wrong, 100), 0, "it is the same alarm");
        assert_eq!(take(AlarmStanding::Well, 110), 0);
        assert_eq!(take(AlarmStanding::Well, 170), 1);
        assert_eq!(take(AlarmStanding::Well, 175), 0);
        assert_eq!((book.active_of(AlarmKind::Disk), book.raised_of(AlarmKind::Disk)), (0, 1));
        let past = book.past();
        assert_eq!((past[0].since_ms, past[0].ended_ms), (5_000, Some(170_000)));
    }

    #[test]
    fn what_is_not_there_any_more_is_no_alarm() {
        let mut book = AlarmBook::default();
        book.take(found(AlarmStanding::Wrong, "full"), 0, CLEAR_MS);
        let changes = book.take(Vec::new(), 1_000, CLEAR_MS);
        assert!(matches!(&changes[..], [AlarmChange::Ended(row)] if row.ended_ms == Some(1_000)));
    }

    #[test]
    fn current_and_past_alarms_are_bounded() {
        let mut book = AlarmBook::default();
        let bridges = |count: usize| -> Vec<Finding> {
            let finding = |at: usize| Finding {
                alarm: AlarmKind::Bridge,
                subject: format!("b{at}"),
                standing: AlarmStanding::Wrong,
                text: String::new(),
            };
            (0..count).map(finding).collect()
        };
        assert_eq!(book.take(bridges(ACTIVE_MAX + 10), 0, CLEAR_MS).len(), ACTIVE_MAX);
        for round in 1..4 {
            book.take(Vec::new(), 2 * round, CLEAR_MS);
            book.take(bridges(100), 2 * round + 1, CLEAR_MS);
        }
        assert_eq!((book.past().len(), book.active().len()), (PAST_MAX, 100));
        assert_eq!(book.past()[0].ended_ms, Some(6), "the newest comes first");
    }

    #[test]
    fn every_kind_is_listed_by_its_name() {
        for kind in AlarmKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.name());
        }
    }
}
