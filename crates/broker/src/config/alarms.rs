//! `[alarms]`: from which values on something is an alarm.

use serde::{Deserialize, Serialize};

use super::{ConfigError, check_range};

/// `[alarms]`. Except for `check_s` and `clear_s`, 0 turns the alarm off.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlarmSettings {
    /// Seconds between two looks; 0: there are no alarms.
    pub check_s: u32,
    /// Seconds that all must be well again before an alarm ends.
    pub clear_s: u32,
    /// By how many percentage points a value must be better than the threshold for that.
    pub margin_percent: u32,
    /// Free space of the data directory's file system below which there is an alarm.
    pub disk_free_percent: u32,
    /// Memory from which on there is an alarm: of the process, of queued messages, or of buffers,
    /// each of what it may be.
    pub memory_percent: u32,
    /// Open file descriptors from which on there is an alarm, of the process's limit.
    pub descriptors_percent: u32,
    /// Step of load shedding from which on there is an alarm.
    pub overload_level: u32,
    /// Days before its end from which on a certificate is an alarm.
    pub certificate_days: u32,
    /// Seconds without a connection from which on a bridge is an alarm.
    pub bridge_down_s: u32,
}

impl Default for AlarmSettings {
    fn default() -> Self {
        Self {
            check_s: 5,
            clear_s: 60,
            margin_percent: 5,
            disk_free_percent: 10,
            memory_percent: 90,
            descriptors_percent: 90,
            overload_level: 1,
            certificate_days: 21,
            bridge_down_s: 30,
        }
    }
}

impl AlarmSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        const DAY_S: u64 = 86_400;
        let percent = "from 0 to 100";
        for (key, value, max, expected) in [
            ("alarms.check_s", self.check_s, 3_600, "from 0 to 3600"),
            ("alarms.margin_percent", self.margin_percent, 50, "from 0 to 50"),
            ("alarms.disk_free_percent", self.disk_free_percent, 99, "from 0 to 99"),
            ("alarms.memory_percent", self.memory_percent, 100, percent),
            ("alarms.descriptors_percent", self.descriptors_percent, 100, percent),
            ("alarms.overload_level", self.overload_level, 4, "from 0 to 4"),
            ("alarms.certificate_days", self.certificate_days, 3_650, "from 0 to 3650"),
        ] {
            check_range(key, value.into(), 0, max, expected)?;
        }
        for (key, value) in
            [("alarms.clear_s", self.clear_s), ("alarms.bridge_down_s", self.bridge_down_s)]
        {
            check_range(key, value.into(), 0, DAY_S, "from 0 to 86400")?;
        }
        Ok(())
    }
}
