//! Lateness: how long after its intended time a message was written.
//!
//! This is the one place where a late send is judged. Latency counts from the intended time, so a
//! late send never hides a slow broker (coordinated omission); whether the *generator* was late is
//! a question of its own, which three figures answer, all of them from here: the `send_delay`
//! histogram, the counter `overrun`, and the send time in every payload header, from which the
//! receiver computes the service time. The verdict on a whole run is derived from these figures by
//! the crates above.

/// How long after its intended time a message was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lateness {
    ns: u64,
}

impl Lateness {
    /// The lateness of a message due at `intended_ns` and written at `sent_ns`.
    #[inline]
    pub(crate) const fn of_send(intended_ns: u64, sent_ns: u64) -> Self {
        Self { ns: sent_ns.saturating_sub(intended_ns) }
    }

    #[inline]
    pub(crate) const fn as_ns(self) -> u64 {
        self.ns
    }

    /// As payload headers carry it: whole microseconds, at most `u32::MAX` (71 minutes).
    #[inline]
    pub(crate) fn as_header_us(self) -> u32 {
        u32::try_from(self.ns / 1_000).unwrap_or(u32::MAX)
    }

    /// Whether the message counts as an overrun, given [`Plan::overrun_after_ns`].
    ///
    /// [`Plan::overrun_after_ns`]: crate::Plan::overrun_after_ns
    #[inline]
    pub(crate) const fn is_overrun(self, overrun_after_ns: u64) -> bool {
        self.ns > overrun_after_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_is_late_beyond_the_threshold_and_never_early() {
        let late = Lateness::of_send(1_000_000, 2_000_001);
        assert_eq!((late.as_ns(), late.as_header_us()), (1_000_001, 1_000));
        assert!(late.is_overrun(1_000_000) && !late.is_overrun(1_000_001));
        assert_eq!(Lateness::of_send(5, 4).as_ns(), 0);
        assert_eq!(Lateness::of_send(0, u64::MAX).as_header_us(), u32::MAX);
    }
}
