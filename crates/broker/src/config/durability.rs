//! Durability levels of sessions and messages.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tacho_codec::QoS;

use super::{ConfigError, QueueLimits, check_range};

/// How safe data is when the broker acknowledges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// In memory: lost when the process ends.
    Memory,
    /// Written to the file of the journal: survives the end of the process, but not of the system.
    Written,
    /// Synced to the disk: survives a power cut if the disk keeps its promises.
    Fsynced,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Written, Self::Fsynced];

    /// Name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Written => "written",
            Self::Fsynced => "fsynced",
        }
    }

    /// The level of the journal; `None` for memory.
    pub(crate) const fn journal_level(self) -> Option<tacho_journal::Level> {
        match self {
            Self::Memory => None,
            Self::Written => Some(tacho_journal::Level::Written),
            Self::Fsynced => Some(tacho_journal::Level::Fsynced),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not one of {names}")
        })
    }
}

/// Durability levels with a data directory; without one all data is in memory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Durability {
    /// Level of sessions that outlive their connection: session expiry above 0, or 3.x without
    /// clean session.
    pub persistent_level: Level,
    /// Level of sessions that end with their connection.
    pub clean_level: Level,
    /// Level of retained messages.
    pub retained_level: Level,
    /// Whether QoS 0 messages are journaled for durable sessions without a connection.
    pub offline_qos0: bool,
    /// Limit on the bytes of live data in the journal. Beyond it, messages that have to be stored
    /// are refused (5.0: 0x97) or their publishers held back (3.x). 0: as much as the disk takes.
    pub journal_bytes_max: u64,
    /// Microseconds that a commit waits for further records while there is little load.
    pub linger_us: u32,
    /// Messages queued for one durable session; 0: no limit but that of their bytes.
    pub session_queue_len_max: u32,
    /// Bytes of messages queued for one durable session.
    pub session_queue_bytes_max: u64,
    /// The same as a percentage of `journal_bytes_max` and of the file system of the data
    /// directory: the lowest of the three limits applies.
    pub session_queue_disk_percent: u32,
}

impl Default for Durability {
    fn default() -> Self {
        Self {
            persistent_level: Level::Fsynced,
            clean_level: Level::Memory,
            retained_level: Level::Fsynced,
            offline_qos0: false,
            journal_bytes_max: 64 << 30,
            linger_us: 200,
            session_queue_len_max: 0,
            session_queue_bytes_max: 256 << 20,
            session_queue_disk_percent: 10,
        }
    }
}

/// A smaller log has no room for two segments and the records moved between them.
const JOURNAL_BYTES_MIN: u64 = 256 << 20;

impl Durability {
    /// Whether the journal keeps a delivery of this QoS to a durable session.
    pub(crate) fn keeps(&self, qos: QoS) -> bool {
        qos != QoS::AtMostOnce || self.offline_qos0
    }

    /// The limits of the queue of a durable session on a file system of this size, if it is known.
    pub(crate) fn session_queue(&self, disk_bytes: Option<u64>) -> QueueLimits {
        let journal = Some(self.journal_bytes_max).filter(|max| *max > 0);
        let space = journal.into_iter().chain(disk_bytes).min().unwrap_or(u64::MAX);
        let share = space / 100 * u64::from(self.session_queue_disk_percent);
        QueueLimits {
            len_max: if self.session_queue_len_max == 0 {
                u32::MAX
            } else {
                self.session_queue_len_max
            },
            bytes_max: self.session_queue_bytes_max.min(share).max(1),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.journal_bytes_max != 0 {
            let (key, value) = ("durability.journal_bytes_max", self.journal_bytes_max);
            let expected = "0 or at least 268435456 (256 MiB)";
            check_range(key, value, JOURNAL_BYTES_MIN, u64::MAX, expected)?;
        }
        let (key, value) = ("durability.session_queue_bytes_max", self.session_queue_bytes_max);
        check_range(key, value, 1, u64::MAX, "at least 1")?;
        let (key, value) =
            ("durability.session_queue_disk_percent", self.session_queue_disk_percent);
        check_range(key, value.into(), 1, 100, "from 1 to 100")?;
        let linger = u64::from(self.linger_us);
        check_range("durability.linger_us", linger, 0, 1_000, "at most 1000")
    }
}

/// Durability levels of the sessions of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionLevels {
    pub(crate) persistent: Level,
    pub(crate) clean: Level,
}

impl SessionLevels {
    /// The level of a session with this expiry interval.
    pub(crate) const fn for_expiry(self, session_expiry_s: u32) -> Level {
        if session_expiry_s > 0 { self.persistent } else { self.clean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            let value = toml::Value::try_from(level).unwrap();
            assert_eq!(value.as_str(), Some(level.name()));
        }
        let error = "disk".parse::<Level>().unwrap_err();
        assert!(error.contains("disk") && error.contains("fsynced"), "{error}");
        assert!(Level::Memory < Level::Written && Level::Written < Level::Fsynced);
    }

    #[test]
    fn a_durable_session_may_queue_a_share_of_the_disk() {
        let settings = Durability::default();
        let bytes_max = |disk_bytes| settings.session_queue(disk_bytes).bytes_max;
        assert_eq!((bytes_max(None), bytes_max(Some(1 << 40))), (256 << 20, 256 << 20));
        assert_eq!(bytes_max(Some(1_000_000_000)), 100_000_000);
        let settings = Durability {
            journal_bytes_max: 500_000_000,
            session_queue_disk_percent: 3,
            session_queue_len_max: 7,
            ..Durability::default()
        };
        for disk_bytes in [None, Some(1 << 40)] {
            let limits = QueueLimits { len_max: 7, bytes_max: 15_000_000 };
            assert_eq!(settings.session_queue(disk_bytes), limits);
        }
        for (percent, is_valid) in [(0, false), (1, true), (100, true), (101, false)] {
            let settings = Durability { session_queue_disk_percent: percent, ..settings.clone() };
            assert_eq!(settings.check().is_ok(), is_valid, "{percent}");
        }
    }

    #[test]
    fn a_journal_too_small_to_work_is_refused() {
        let tiny = Durability { journal_bytes_max: 1, ..Durability::default() };
        assert!(tiny.check().unwrap_err().to_string().contains("journal_bytes_max"));
        assert!(Durability { journal_bytes_max: 0, ..Durability::default() }.check().is_ok());
        assert!(Durability { linger_us: 1_001, ..Durability::default() }.check().is_err());
        assert!(Durability::default().check().is_ok());
    }
}
