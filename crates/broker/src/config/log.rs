//! `[log]`: how much is logged, in which form, and where to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Applies::{self, Live, Restart};
use super::{ConfigError, check_range};

/// `[log]`. The program that runs the broker does it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// The least important lines that are logged.
    pub level: LogLevel,
    /// Text, or a line of JSON each.
    pub format: LogFormat,
    /// Where to; absent: standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Size at which the file is renamed to the same name with `.1`, and a new one begun.
    pub file_bytes_max: u64,
    /// Files that are kept, with the one that is written.
    pub files_max: u32,
    /// By area, other levels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<LogArea, LogLevel>,
}

/// When a change of each takes effect.
pub(super) const KEYS: [(&str, Applies); 6] = [
    ("level", Live),
    ("format", Restart),
    ("file", Restart),
    ("file_bytes_max", Restart),
    ("files_max", Restart),
    ("levels", Live),
];

/// How important a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What needs an operator.
    Error,
    /// What may need one.
    Warn,
    /// What happens seldom.
    #[default]
    Info,
    /// Every connection.
    Debug,
    /// More.
    Trace,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON.
    Json,
}

/// A part of the broker that has a level of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogArea {
    /// Logins, rules, bans, backends.
    Access,
    /// Begin and end of connections.
    Connections,
    /// Bridges to other brokers.
    Bridges,
    /// The write-ahead log, and what is restored from it.
    Journal,
    /// Overload, full queues, slow clients.
    Overload,
    /// HTTP endpoints and outputs.
    Control,
}

impl LogArea {
    /// The modules whose lines are of this area.
    #[must_use]
    pub const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Access => &[
                "tacho_broker::access",
                "tacho_broker::policy",
                "tacho_broker::shard::access",
                "tacho_broker::shard::connections::refused_logins",
                "tacho_broker::shard::connections::flapping",
            ],
            Self::Connections => &["tacho_broker::shard::connections"],
            Self::Bridges => &["tacho_broker::bridge", "tacho_broker::shard::bridge"],
            Self::Journal => {
                &["tacho_journal", "tacho_broker::durable", "tacho_broker::shard::durability"]
            }
            Self::Overload => &["tacho_broker::shard::admission", "tacho_broker::shard::groups"],
            Self::Control => &["tacho_broker::control", "tacho_http", "tacho_output"],
        }
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            level: LogLevel::default(),
            format: LogFormat::default(),
            file: None,
            file_bytes_max: 100 * 1024 * 1024,
            files_max: 5,
            levels: BTreeMap::new(),
        }
    }
}

impl LogSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (min, expected) = (64 * 1024, "at least 65536");
        check_range("log.file_bytes_max", self.file_bytes_max, min, i64::MAX as u64, expected)?;
        check_range("log.files_max", self.files_max.into(), 1, 1_000, "from 1 to 1000")
    }
}
