//! The broker's keep-alive: one and a half times the interval without inbound packets.

/// A deadline that inbound packets postpone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAlive {
    /// 1.5 times the keep-alive; 0 is off.
    grace_ns: u64,
    heard_ns: u64,
}

impl KeepAlive {
    pub(crate) const OFF: Self = Self { grace_ns: 0, heard_ns: 0 };

    /// `keep_alive_s` 0 turns the check off (MQTT 5.0, 3.1.2.10).
    pub(crate) const fn new(now_ns: u64, keep_alive_s: u16) -> Self {
        Self { grace_ns: keep_alive_s as u64 * 1_500_000_000, heard_ns: now_ns }
    }

    #[inline]
    pub(crate) const fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    pub(crate) const fn deadline_ns(&self) -> Option<u64> {
        if self.grace_ns == 0 { None } else { Some(self.heard_ns.saturating_add(self.grace_ns)) }
    }
}
