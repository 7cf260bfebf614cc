//! The measured window, a span of intended times.

/// The measured window, by intended time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

impl Window {
    /// A window that contains no message.
    pub(crate) const NONE: Self = Self { start_ns: u64::MAX, end_ns: u64::MAX };

    #[inline]
    pub(crate) const fn contains(&self, intended_ns: u64) -> bool {
        self.start_ns <= intended_ns && intended_ns < self.end_ns
    }
}
