//! Limits on what the clients of a listener publish.

use tacho_access::PublishExcess;

/// How much each client may publish per second. Absent: any amount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishLimits {
    /// Messages per second.
    pub messages_per_s_max: Option<u32>,
    /// Messages at once; as many as per second unless it is set.
    pub messages_burst: Option<u32>,
    /// Bytes of PUBLISH packets per second.
    pub bytes_per_s_max: Option<u32>,
    /// Bytes at once; as many as per second unless it is set.
    pub bytes_burst: Option<u32>,
    /// What becomes of a client that publishes more.
    pub excess: PublishExcess,
}

impl PublishLimits {
    fn keys(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("publish_messages_per_s_max", self.messages_per_s_max),
            ("publish_messages_burst", self.messages_burst),
            ("publish_bytes_per_s_max", self.bytes_per_s_max),
            ("publish_bytes_burst", self.bytes_burst),
        ]
    }

    /// The limits, if they can be used; `excess` is as configured.
    pub(super) fn checked(self, excess: Option<PublishExcess>) -> Result<Self, String> {
        if let Some((key, _)) = self.keys().iter().find(|(_, value)| *value == Some(0)) {
            return Err(format!("`{key}` must be at least 1: omit it for no limit"));
        }
        for (rate, burst) in [(0, 1), (2, 3)] {
            let (keys, of) = (self.keys(), |at: usize| self.keys()[at].1);
            if of(burst).is_some() && of(rate).is_none() {
                return Err(format!("`{}` needs `{}`", keys[burst].0, keys[rate].0));
            }
        }
        if excess.is_some() && !self.is_any() {
            return Err("`publish_excess` needs `publish_messages_per_s_max` or \
                        `publish_bytes_per_s_max`"
                .to_owned());
        }
        Ok(Self { excess: excess.unwrap_or_default(), ..self })
    }

    /// Whether any is set.
    pub(super) const fn is_any(&self) -> bool {
        self.messages_per_s_max.is_some() || self.bytes_per_s_max.is_some()
    }

    /// The keys, as in the configuration file.
    pub(super) fn describe(&self) -> String {
        if !self.is_any() {
            return String::new();
        }
        let set = self.keys().into_iter().filter_map(|(key, value)| Some((key, value?)));
        let numbers: String = set.map(|(key, value)| format!("{key} = {value}\n")).collect();
        format!("{numbers}publish_excess = \"{}\"\n", self.excess.name())
    }
}
