//! Status of bridges: state and counters of each link, written by the shard that owns it and read
//! by any thread.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::BridgeMode;
use crate::stats::Counter;

/// The state of a link, or of a whole bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The first attempt to connect has not ended yet.
    Connecting,
    /// The remote broker has accepted the connection; for a bridge: all of its links.
    Up,
    /// Some links are up; for bridges only.
    Partly,
    /// Not connected; the connection is retried.
    Down,
}

impl State {
    /// Name in metrics, topics and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Up => "up",
            Self::Partly => "partly",
            Self::Down => "down",
        }
    }
}

/// Counters of a link since the start of the broker, and its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections made after one was lost.
    pub reconnects: u64,
    /// Connections given up because a message was not acknowledged in time.
    pub ack_timeouts: u64,
    /// PUBLISH packets sent, retransmissions included.
    pub sent: u64,
    /// PUBLISH packets received, retransmissions included.
    pub received: u64,
    /// QoS 1 and 2 messages that the remote broker has acknowledged.
    pub acknowledged: u64,
    /// Messages dropped: their time to live in the buffer was over.
    pub dropped_expired: u64,
    /// Messages dropped: the buffer was full, or QoS 0 could not be written to the socket.
    pub dropped_full: u64,
    /// Messages dropped: refused by the remote broker.
    pub dropped_refused: u64,
    /// Messages dropped: larger than the remote broker accepts.
    pub dropped_too_large: u64,
    /// Messages dropped in either direction: they had passed as many bridges as they may.
    pub dropped_looped: u64,
    /// Messages dropped in either direction: no configured rule applies, or the rendered topic is
    /// invalid.
    pub dropped_unmapped: u64,
    /// Queued messages, without those in flight.
    pub buffered_messages: u64,
    /// Bytes of queued messages.
    pub buffered_bytes: u64,
    /// Messages in flight.
    pub inflight: u64,
}

impl Figures {
    /// All messages dropped.
    pub const fn dropped(&self) -> u64 {
        self.dropped_expired
            + self.dropped_full
            + self.dropped_looped
            + self.dropped_refused
            + self.dropped_too_large
            + self.dropped_unmapped
    }

    fn add(&mut self, other: &Self) {
        self.reconnects += other.reconnects;
        self.ack_timeouts += other.ack_timeouts;
        self.sent += other.sent;
        self.received += other.received;
        self.acknowledged += other.acknowledged;
        self.dropped_expired += other.dropped_expired;
        self.dropped_full += other.dropped_full;
        self.dropped_looped += other.dropped_looped;
        self.dropped_refused += other.dropped_refused;
        self.dropped_too_large += other.dropped_too_large;
        self.dropped_unmapped += other.dropped_unmapped;
        self.buffered_messages += other.buffered_messages;
        self.buffered_bytes += other.buffered_bytes;
        self.inflight += other.inflight;
    }
}

/// The status of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Configured name.
    pub name: String,
    /// Configured address of the remote broker.
    pub remote: String,
    /// What an operator wants of it.
    pub mode: BridgeMode,
    /// It is in the store of the management API, not in the configuration.
    pub is_stored: bool,
    /// State of all links together.
    pub state: State,
    /// Number of links that are up.
    pub connected: usize,
    /// Sums over the links.
    pub figures: Figures,
    /// The links.
    pub links: Vec<LinkStatus>,
}

/// The status of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// State.
    pub state: State,
    /// When it entered the state, on the clock of the event loops; 0 before the first attempt.
    pub since_ns: u64,
    /// Why the last attempt or connection ended, or what the remote broker does not grant; `None`
    /// without a problem.
    pub problem: Option<String>,
    /// Counters and queue.
    pub figures: Figures,
}

impl Status {
    pub(super) fn sum(name: &str, remote: &str, links: &[LinkStats]) -> Self {
        let links: Vec<LinkStatus> = links.iter().map(LinkStats::status).collect();
        let mut figures = Figures::default();
        links.iter().for_each(|link| figures.add(&link.figures));
        let count = |state| links.iter().filter(|link| link.state == state).count();
        let connected = count(State::Up);
        let state = if connected == links.len() {
            State::Up
        } else if connected > 0 {
            State::Partly
        } else if count(State::Down) > 0 {
            State::Down
        } else {
            State::Connecting
        };
        let (name, remote) = (name.to_owned(), remote.to_owned());
        let (mode, is_stored) = (BridgeMode::Running, false);
        Self { name, remote, mode, is_stored, state, connected, figures, links }
    }
}

/// State and counters of one link. Only its shard writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LinkStats {
    state: AtomicU8,
    since_ns: AtomicU64,
    /// Written when a connection ends, read for the status.
    problem: Mutex<Option<String>>,
    subscribing: AtomicU8,
    pub(crate) reconnects: Counter,
    pub(crate) ack_timeouts: Counter,
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
    pub(crate) acknowledged: Counter,
    pub(crate) dropped_expired: Counter,
    pub(crate) dropped_full: Counter,
    pub(crate) dropped_looped: Counter,
    pub(crate) dropped_refused: Counter,
    pub(crate) dropped_too_large: Counter,
    pub(crate) dropped_unmapped: Counter,
    pub(crate) buffered_messages: Counter,
    pub(crate) buffered_bytes: Counter,
    pub(crate) inflight: Counter,
}

impl LinkStats {
    /// The status of the link.
    pub fn status(&self) -> LinkStatus {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = match self.state.load(Ordering::Relaxed) {
            UP => State::Up,
            DOWN => State::Down,
            _ => State::Connecting,
        };
        let figures = Figures {
            reconnects: self.reconnects.value(),
            ack_timeouts: self.ack_timeouts.value(),
            sent: self.sent.value(),
            received: self.received.value(),
            acknowledged: self.acknowledged.value(),
            dropped_expired: self.dropped_expired.value(),
            dropped_full: self.dropped_full.value(),
            dropped_looped: self.dropped_looped.value(),
            dropped_refused: self.dropped_refused.value(),
            dropped_too_large: self.dropped_too_large.value(),
            dropped_unmapped: self.dropped_unmapped.value(),
            buffered_messages: self.buffered_messages.value(),
            buffered_bytes: self.buffered_bytes.value(),
            inflight: self.inflight.value(),
        };
        LinkStatus { state, since_ns: self.since_ns.load(Ordering::Relaxed), problem, figures }
    }

    /// Sets the state to up.
    pub fn set_up(&self, now_ns: u64, problem: Option<String>) {
        self.set(UP, now_ns, problem);
    }

    /// Notes the remote broker's answer to the subscriptions.
    pub(crate) fn set_subscribed(&self, is_granted: bool) {
        let answer = if is_granted { GRANTED } else { REFUSED };
        self.subscribing.store(answer, Ordering::Relaxed);
    }

    /// The remote broker's last answer to the subscriptions since the start.
    pub(crate) fn subscribing(&self) -> Subscribing {
        match self.subscribing.load(Ordering::Relaxed) {
            GRANTED => Subscribing::Granted,
            REFUSED => Subscribing::Refused,
            _ => Subscribing::Unanswered,
        }
    }

    /// Sets the state to down, with the reason.
    pub fn set_down(&self, now_ns: u64, problem: String) {
        self.set(DOWN, now_ns, Some(problem));
    }

    fn set(&self, state: u8, now_ns: u64, problem: Option<String>) {
        if self.state.swap(state, Ordering::Relaxed) != state {
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// A remote broker's answer to the subscriptions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subscribing {
    /// There is none yet.
    Unanswered,
    Granted,
    /// At least one of them is refused.
    Refused,
}

/// The answers that [`LinkStats`] stores; 0 is none.
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;
/// The states that [`LinkStats`] stores.
const UP: u8 = State::Up as u8;
const DOWN: u8 = State::Down as u8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridge_is_up_when_all_links_are() {
        let links: Vec<LinkStats> = (0..2).map(|_| LinkStats::default()).collect();
        let status = || Status::sum("a", "mqtt://b:1883", &links);
        assert_eq!((status().state, status().connected), (State::Connecting, 0));
        links[0].set_down(5, "refused".to_owned());
        assert_eq!(status().state, State::Down);
        assert_eq!(status().links[0].problem.as_deref(), Some("refused"));
        links[0].set_down(7, "refused again".to_owned());
        assert_eq!(status().links[0].since_ns, 5);
        links[1].set_up(9, None);
        assert_eq!((status().state, status().connected), (State::Partly, 1));
        links[0].set_up(11, None);
        assert_eq!((status().state, status().links[0].problem.clone()), (State::Up, None));
    }

    #[test]
    fn counters_are_summed_over_links() {
        let links: Vec<LinkStats> = (0..2).map(|_| LinkStats::default()).collect();
        for link in &links {
            link.sent.add(3);
            link.buffered_bytes.set(10);
            link.dropped_full.increment();
            link.dropped_expired.increment();
        }
        let status = Status::sum("a", "mqtt://b:1883", &links);
        assert_eq!((status.figures.sent, status.figures.buffered_bytes), (6, 20));
        assert_eq!(status.figures.dropped(), 4);
    }
}
