//! How asking the backend of logins goes, for metrics and the log.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::HttpBackends;
use crate::stats::Histogram;

/// Between two lines that say that the backend fails: it may do so for some clients only.
const BETWEEN_LINES_NS: u64 = 10_000_000_000;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendResult {
    Allow,
    Deny,
    Ignore,
    /// There was an answer, which could not be used.
    Unusable,
    NoAnswer,
}

impl BackendResult {
    /// With the labels of metrics.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Allow, "allow"),
        (Self::Deny, "deny"),
        (Self::Ignore, "ignore"),
        (Self::Unusable, "unusable"),
        (Self::NoAnswer, "no_answer"),
    ];

    const fn is_failure(self) -> bool {
        matches!(self, Self::Unusable | Self::NoAnswer)
    }
}

/// Requests to the backend of logins: from 131 us to 34 s.
type RequestTimes = Histogram<17>;

/// How asking the backend goes.
#[derive(Debug, Default)]
pub(crate) struct BackendHealth {
    results: [AtomicU64; BackendResult::ALL.len()],
    retries: AtomicU64,
    skipped: AtomicU64,
    waiting: AtomicU64,
    /// 0 fine, 1 the last request failed, 2 none is made for a while.
    condition: AtomicU8,
    /// Its counters take one writer at a time.
    times: Mutex<RequestTimes>,
    told: Mutex<ToldFailure>,
}

/// How asking one of the backends goes, with its name if it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedHealth {
    pub(crate) name: Option<Box<str>>,
    pub(crate) health: Arc<BackendHealth>,
}

impl NamedHealth {
    /// Of all backends, in their order. Without any there is one that says so.
    pub(crate) fn all(backends: &HttpBackends) -> Vec<Self> {
        if backends.is_empty() {
            return vec![Self::default()];
        }
        let names = backends.all().iter().map(|backend| backend.name.as_deref());
        names.map(|name| Self { name: name.map(Into::into), health: Arc::default() }).collect()
    }
}

/// What the log says last.
#[derive(Debug, Default)]
struct ToldFailure {
    is_failing: bool,
    /// No earlier line says that it fails again.
    next_ns: u64,
}

/// What the log has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Fails,
    AnswersAgain,
}

impl BackendHealth {
    /// A login waits for a thread.
    pub(super) fn came(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// A login waits no longer.
    pub(super) fn went(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A login was not asked about, since the circuit is open.
    pub(super) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has taken so long, with its repetitions.
    pub(super) fn observe(&self, ns: u64) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).observe(ns);
    }

    /// A request has ended; what the log has to say of that.
    pub(super) fn ended(
        &self,
        result: BackendResult,
        is_paused: bool,
        now_ns: u64,
    ) -> Option<Change> {
        self.results[result as usize].fetch_add(1, Ordering::Relaxed);
        let condition = if is_paused { 2 } else { u8::from(result.is_failure()) };
        self.condition.store(condition, Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !result.is_failure() {
            return std::mem::take(&mut told.is_failing).then_some(Change::AnswersAgain);
        }
        if told.is_failing || now_ns < told.next_ns {
            return None;
        }
        *told = ToldFailure { is_failing: true, next_ns: now_ns + BETWEEN_LINES_NS };
        Some(Change::Fails)
    }

    /// Requests with this result so far.
    pub(crate) fn count(&self, result: BackendResult) -> u64 {
        self.results[result as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Logins that were not asked about.
    pub(crate) fn skips(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Logins that wait for a thread.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// 0 fine, 1 the last request failed, 2 none is made for a while.
    pub(crate) fn condition(&self) -> u8 {
        self.condition.load(Ordering::Relaxed)
    }

    /// What requests have taken, in nanoseconds: bounds of buckets, counts, and the sum.
    pub(crate) fn times(&self) -> (Vec<u64>, Vec<u64>, u64) {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        (RequestTimes::bounds().to_vec(), times.buckets().to_vec(), times.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_changes_and_not_more_often_than_it_should() {
        let health = BackendHealth::default();
        let ended = |result, now_s: u64| health.ended(result, false, now_s * 1_000_000_000);
        assert_eq!(ended(BackendResult::Allow, 1), None);
        assert_eq!(ended(BackendResult::NoAnswer, 2), Some(Change::Fails));
        assert_eq!(health.condition(), 1);
        assert_eq!(ended(BackendResult::Unusable, 3), None);
        assert_eq!(ended(BackendResult::Deny, 4), Some(Change::AnswersAgain));
        assert_eq!(health.condition(), 0);
        // Soon again: the line waits, and there is nothing to take back.
        assert_eq!(ended(BackendResult::NoAnswer, 5), None);
        assert_eq!(ended(BackendResult::Ignore, 6), None);
        assert_eq!(ended(BackendResult::NoAnswer, 7), None);
        assert_eq!(ended(BackendResult::NoAnswer, 12), Some(Change::Fails));
        assert_eq!(health.ended(BackendResult::NoAnswer, true, 13_000_000_000), None);
        assert_eq!(health.condition(), 2);
        assert_eq!(ended(BackendResult::Allow, 14), Some(Change::AnswersAgain));
        let counts = BackendResult::ALL.map(|(result, _)| health.count(result));
        assert_eq!(counts, [2, 1, 1, 1, 5]);
    }
}
