//! Permits: broker-wide limited resources, counted by their holders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of things that all shards share. Aligned to cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Quota {
    used: AtomicUsize,
    max: AtomicUsize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Quota>);

impl Quota {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), max: AtomicUsize::new(max) })
    }

    /// Takes one, if there are fewer than the maximum.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Permit> {
        let permit = self.take_before();
        (permit.1 < self.max()).then_some(permit.0)
    }

    /// Takes one in any case.
    pub(crate) fn take(self: &Arc<Self>) -> Permit {
        self.take_before().0
    }

    /// A permit, and how many there were before it.
    fn take_before(self: &Arc<Self>) -> (Permit, usize) {
        let before = self.used.fetch_add(1, Ordering::Relaxed);
        (Permit(Arc::clone(self)), before)
    }

    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// What was taken stays taken.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Quota;

    #[test]
    fn a_permit_is_given_back_when_it_is_dropped() {
        let quota = Quota::new(2);
        let first = quota.try_take();
        let second = quota.take();
        assert_eq!((first.is_some(), quota.used()), (true, 2));
        assert!(quota.try_take().is_none());
        assert_eq!(quota.used(), 2);
        drop(second);
        assert!(quota.try_take().is_some());
        drop(first);
        assert_eq!(quota.used(), 0);
    }
}
