//! Subscriptions: bounded queues that count what they lose.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BusError, Subject};

/// Limit on the messages that may wait in one subscription.
pub const SUBSCRIPTION_MESSAGES_MAX: usize = 16_384;

/// A message as received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Where it was sent to.
    pub subject: Subject,
    /// Where an answer goes, if it is a request.
    pub reply: Option<Subject>,
    /// Its content.
    pub payload: Bytes,
}

/// Messages of one subscription; dropping it unsubscribes.
pub struct Subscription {
    messages: mpsc::Receiver<Message>,
    dropped: Arc<AtomicU64>,
    /// What the engine's client has dropped before it reached the queue, for all subscriptions,
    /// and the count when this one began.
    engine: Option<(Arc<AtomicU64>, u64)>,
    end: Option<Box<dyn FnOnce() + Send>>,
}

impl Subscription {
    /// The next message; `None` if there is none within `wait`.
    ///
    /// # Errors
    /// The connection has ended: no message will follow.
    pub fn next(&self, wait: Duration) -> Result<Option<Message>, BusError> {
        match self.messages.recv_timeout(wait) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(BusError::Closed { why: "the engine ended the subscription".to_owned() })
            }
        }
    }

    /// How many messages were dropped because they were not taken in time. An engine whose client
    /// drops messages itself does not say of which subscription: then they count for each.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let own = self.dropped.load(Ordering::Relaxed);
        let engine = self.engine.as_ref();
        own + engine.map_or(0, |(count, before)| count.load(Ordering::Relaxed) - before)
    }

    /// Counts what the engine's client drops, too.
    pub(crate) fn with_engine_drops(mut self, count: &Arc<AtomicU64>) -> Self {
        self.engine = Some((Arc::clone(count), count.load(Ordering::Relaxed)));
        self
    }

    /// Calls `end` when the subscription is dropped.
    pub(crate) fn on_end(mut self, end: impl FnOnce() + Send + 'static) -> Self {
        self.end = Some(Box::new(end));
        self
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// The engine's end of a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    messages: mpsc::SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It waits in the queue, or was dropped and counted.
    Yes,
    /// The subscription has ended.
    Ended,
}

impl Feed {
    /// Offers a message; drops and counts it when the queue is full.
    pub(crate) fn offer(&self, message: Message) -> Offered {
        match self.messages.try_send(message) {
            Ok(()) => Offered::Yes,
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                Offered::Yes
            }
            Err(TrySendError::Disconnected(_)) => Offered::Ended,
        }
    }
}

/// A queue for at most `capacity` messages, between 1 and [`SUBSCRIPTION_MESSAGES_MAX`].
pub(crate) fn queue(capacity: usize) -> (Feed, Subscription) {
    let (sender, messages) = mpsc::sync_channel(capacity.clamp(1, SUBSCRIPTION_MESSAGES_MAX));
    let dropped = Arc::new(AtomicU64::new(0));
    let feed = Feed { messages: sender, dropped: Arc::clone(&dropped) };
    (feed, Subscription { messages, dropped, engine: None, end: None })
}
