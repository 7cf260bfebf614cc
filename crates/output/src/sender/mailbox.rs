//! Between a run and the thread of a target: a bounded queue, orders, and what is told back.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::OutputAccount;
use crate::point::OutputItem;

/// Bytes of items that wait for the thread; it takes them at once unless it waits for a service.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Items that were sent together.
pub(crate) type Items = Arc<[OutputItem]>;

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Take these.
    Take(Items),
    /// Send everything before that time, and report.
    Settle { until: Instant },
    /// The time to wake up has come.
    Nothing,
    /// End.
    Quit,
}

#[derive(Debug, Default)]
struct MailState {
    queue: VecDeque<(Items, usize)>,
    queue_bytes: usize,
    /// Items that did not fit into the queue.
    overflow: u64,
    settle_until: Option<Instant>,
    account: Option<OutputAccount>,
    /// The first error, until it is told.
    trouble: Option<String>,
    /// Was an error told already?
    is_told: bool,
    /// Why the run is to end.
    failure: Option<String>,
    quits: bool,
    /// Has the thread ended?
    is_over: bool,
}

/// Both sides' view of a target. The lock is held for moments only.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<MailState>,
    /// For the thread: there is something to do.
    news: Condvar,
    /// For the run: the thread has settled or ended.
    done: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailState> {
        // Every change is whole by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends items. Those that do not fit are counted.
    pub(super) fn post(&self, items: &Items, cost: usize) {
        let mut state = self.lock();
        if state.queue_bytes + cost > QUEUE_BYTES_MAX || state.is_over {
            state.overflow += items.len() as u64;
            return;
        }
        state.queue_bytes += cost;
        state.queue.push_back((Arc::clone(items), cost));
        self.news.notify_one();
    }

    /// Asks the thread to send everything before `until`, and to report.
    pub(super) fn ask_to_settle(&self, until: Instant) {
        let mut state = self.lock();
        state.account = None;
        state.settle_until = Some(until);
        self.news.notify_one();
    }

    /// Waits for the report that was asked for, at most until `patience`. `None` where there is
    /// none then.
    pub(super) fn await_settled(&self, patience: Instant) -> Option<OutputAccount> {
        let mut state = self.lock();
        while state.account.is_none() && !state.is_over {
            let left = patience.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let overflow = std::mem::take(&mut state.overflow);
        let account = state.account.take();
        account.map(|account| OutputAccount { unsent: account.unsent + overflow, ..account })
    }

    /// The first error since the start, once.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.lock().trouble.take()
    }

    /// Why the run is to end.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// Asks the thread to end.
    pub(super) fn quit(&self) {
        self.lock().quits = true;
        self.news.notify_one();
    }

    /// For the thread: the next order, or [`Order::Nothing`] at that time.
    pub(super) fn next(&self, wake_at: Instant) -> Order {
        let mut state = self.lock();
        loop {
            if let Some((items, cost)) = state.queue.pop_front() {
                state.queue_bytes -= cost;
                return Order::Take(items);
            }
            if let Some(until) = state.settle_until.take() {
                return Order::Settle { until };
            }
            if state.quits {
                return Order::Quit;
            }
            let left = wake_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Order::Nothing;
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// For the thread: it has sent what it could.
    pub(super) fn settled(&self, account: OutputAccount) {
        self.lock().account = Some(account);
        self.done.notify_all();
    }

    /// For the thread: an error occurred.
    pub(super) fn trouble(&self, why: &str) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_told, true) {
            state.trouble = Some(why.to_owned());
        }
    }

    /// For the thread: the run is to end.
    pub(super) fn failed(&self, why: &str) {
        self.lock().failure.get_or_insert_with(|| why.to_owned());
    }

    /// For the thread: it is over.
    pub(super) fn over(&self) {
        self.lock().is_over = true;
        self.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_never_waited_for() {
        let mailbox = Mailbox::default();
        let items: Items = vec![OutputItem::End, OutputItem::End].into();
        mailbox.post(&items, QUEUE_BYTES_MAX);
        mailbox.post(&items, 1);
        let soon = Instant::now();
        assert!(matches!(mailbox.next(soon), Order::Take(taken) if taken.len() == 2));
        assert!(matches!(mailbox.next(soon), Order::Nothing));
        mailbox.post(&items, QUEUE_BYTES_MAX);
        assert!(matches!(mailbox.next(soon), Order::Take(_)), "there is room again");
        mailbox.over();
        mailbox.post(&items, 1);
        assert!(matches!(mailbox.next(soon), Order::Nothing), "there is no thread any more");
        assert_eq!(mailbox.lock().overflow, 4);
        mailbox.ask_to_settle(soon);
        assert!(mailbox.await_settled(soon).is_none(), "a thread that is over cannot report");
    }

    #[test]
    fn an_error_is_told_once() {
        let mailbox = Mailbox::default();
        mailbox.trouble("first");
        mailbox.trouble("second");
        assert_eq!(mailbox.take_trouble().as_deref(), Some("first"));
        mailbox.trouble("third");
        assert_eq!((mailbox.take_trouble(), mailbox.failure()), (None, None));
    }
}
