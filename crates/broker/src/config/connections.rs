//! Limits on the connections of a listener.

use super::{ConfigError, check_range};

/// How many connections a listener has, and how many new ones per second. Absent: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// At once.
    pub max: Option<u32>,
    /// New ones per second.
    pub per_s_max: Option<u32>,
    /// At once of one address (IPv6: /64).
    pub per_address_max: Option<u32>,
    /// New ones per second of one address.
    pub per_address_per_s_max: Option<u32>,
}

impl ConnectionLimits {
    fn keys(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("connections_max", self.max),
            ("connections_per_s_max", self.per_s_max),
            ("connections_per_address_max", self.per_address_max),
            ("connections_per_address_per_s_max", self.per_address_per_s_max),
        ]
    }

    /// The limits, if they can be used.
    pub(super) fn checked(self) -> Result<Self, ConfigError> {
        for (key, value) in self.keys() {
            let value = value.unwrap_or(1).into();
            check_range(key, value, 1, 10_000_000, "from 1 to 10000000, or absent")?;
        }
        Ok(self)
    }

    /// Whether any is set.
    pub(super) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// The keys, as in the configuration file.
    pub(super) fn describe(&self) -> String {
        let set = self.keys().into_iter().filter_map(|(key, value)| Some((key, value?)));
        set.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }
}
