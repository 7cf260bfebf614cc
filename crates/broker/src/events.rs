//! Events of clients and bridges, for watchers: bounded, and never waited for.
//!
//! Without watchers an event costs the look at a counter. A watcher that cannot follow misses the
//! oldest events and learns how many.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use tokio::sync::broadcast;

/// Events that a watcher may be behind.
const BEHIND_MAX: usize = 1_024;
/// Of names that clients choose.
const NAME_CHARS_MAX: usize = 256;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// A client is connected.
    Connected,
    /// Its connection has ended.
    Disconnected,
    /// Its connection has ended, since another one took its session.
    TakenOver,
    /// A CONNECT was refused.
    Refused,
    /// A login was refused, or an authentication has failed.
    LoginRefused,
    /// Messages for a client were dropped.
    Dropped,
    /// A shard sheds more load than before, or less.
    Overload,
    /// A connection of a bridge is up.
    BridgeUp,
    /// A connection of a bridge is down.
    BridgeDown,
    /// Something needs to be looked at.
    AlarmRaised,
    /// That is well again.
    AlarmEnded,
    /// A drain begins, goes on or ends.
    Drain,
}

impl EventKind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Connected,
        Self::Disconnected,
        Self::TakenOver,
        Self::Refused,
        Self::LoginRefused,
        Self::Dropped,
        Self::Overload,
        Self::BridgeUp,
        Self::BridgeDown,
        Self::AlarmRaised,
        Self::AlarmEnded,
        Self::Drain,
    ];

    /// The name, as in answers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::TakenOver => "taken_over",
            Self::Refused => "refused",
            Self::LoginRefused => "login_refused",
            Self::Dropped => "dropped",
            Self::Overload => "overload",
            Self::BridgeUp => "bridge_up",
            Self::BridgeDown => "bridge_down",
            Self::AlarmRaised => "alarm_raised",
            Self::AlarmEnded => "alarm_ended",
            Self::Drain => "drain",
        }
    }
}

/// One event; what it does not concern is absent.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Event {
    pub(crate) event: EventKind,
    /// Milliseconds since 1970.
    pub(crate) time_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bridge: Option<String>,
    /// What an alarm is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alarm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
}

impl Event {
    pub(crate) const fn new(event: EventKind, time_ms: i64) -> Self {
        Self {
            event,
            time_ms,
            client_id: None,
            user: None,
            address: None,
            bridge: None,
            alarm: None,
            reason: None,
            count: None,
        }
    }
}

/// A name that a client chose, cut.
pub(crate) fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}...", &name[..end]),
    }
}

/// Takes events from all shards to all watchers.
pub(crate) struct Events {
    sender: broadcast::Sender<Arc<Event>>,
    /// As many as the sender has, to be read without its lock.
    watchers: AtomicUsize,
}

/// One watcher; it counts until it is dropped.
pub(crate) struct Watch {
    events: Arc<Events>,
    pub(crate) receiver: broadcast::Receiver<Arc<Event>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BEHIND_MAX), watchers: AtomicUsize::new(0) }
    }
}

impl Events {
    /// Whether there is a watcher: else there is no need to make events.
    #[inline]
    pub(crate) fn are_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Hands over an event. Without watchers it is dropped.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.sender.send(Arc::new(event));
    }

    /// All events from now on.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        Watch { events: Arc::clone(self), receiver: self.sender.subscribe() }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.events.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_reach_watchers_and_one_that_is_behind_learns_how_many_it_has_missed() {
        let events = Arc::new(Events::default());
        assert!(!events.are_watched());
        let mut watch = events.watch();
        assert!(events.are_watched());
        for at in 0..BEHIND_MAX as i64 + 5 {
            events.tell(Event::new(EventKind::Connected, at));
        }
        let missed = watch.receiver.try_recv();
        assert!(matches!(missed, Err(broadcast::error::TryRecvError::Lagged(5))), "{missed:?}");
        assert_eq!(watch.receiver.try_recv().expect("is there").time_ms, 5);
        drop(watch);
        assert!(!events.are_watched());
    }

    #[test]
    fn every_kind_is_listed_by_its_name() {
        for kind in EventKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.name());
        }
        assert_eq!(cut(&"\u{fc}".repeat(300)), format!("{}...", "\u{fc}".repeat(256)));
    }
}
