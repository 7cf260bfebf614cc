//! State that most sessions never have.

/// A value that takes a pointer's place until it is needed first. An idle session costs little.
#[derive(Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

impl<T> OnDemand<T> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Drops the value and returns its memory.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Takes the value out and returns its memory.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.take().map(|value| *value)
    }
}

impl<T: Default> OnDemand<T> {
    /// The value, which is needed now.
    #[inline]
    pub(crate) fn get_or_default(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}
