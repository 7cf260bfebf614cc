//! The places of a server: what each connection waits for, and which gives way.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use tokio::sync::Notify;

use crate::limits::{Counters, Limits};

/// All places of a server.
#[derive(Debug)]
pub(crate) struct Places {
    limits: Limits,
    counters: Arc<Counters>,
    table: Mutex<Table>,
    /// A connection left, or one may give way now.
    changed: Notify,
}

/// One connection's place; its connection gives it back with [`Place::leave`].
#[derive(Clone, Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
    peer: Peer,
}

/// The address that a request came from: an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// What a connection that cannot go on has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Wait, until then at most.
    Until(Option<Instant>),
    /// End: another connection needs the place.
    GiveWay,
}

/// The connections in order of their acceptance.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    /// Its acceptance, or the end of its last answer. Bytes of a request do not count: a peer that
    /// sends one now and then is as idle as one that sends none.
    idle_since: Instant,
    /// The first byte of the request that is being received.
    asked_at: Option<Instant>,
    /// Bytes that came since the last complete head of a request.
    request_bytes: usize,
    /// A request's head is complete, its answer is not.
    answering: bool,
    /// It has had an answer.
    answered: bool,
    /// Since when its peer has not read.
    blocked_since: Option<Instant>,
    gives_way: bool,
    waker: Option<Waker>,
}

impl Places {
    pub(crate) fn new(limits: Limits, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { limits, counters, table: Mutex::default(), changed: Notify::new() })
    }

    /// How long connections may take to end once the server ends.
    pub(crate) fn farewell(&self) -> std::time::Duration {
        self.limits.farewell
    }

    /// A place for a connection from `peer`; waits while all others are being answered.
    pub(crate) async fn enter(self: &Arc<Self>, peer: IpAddr) -> Place {
        loop {
            if let Some(id) = self.try_enter(peer, Instant::now()) {
                return Place { places: Arc::clone(self), id, peer: Peer(peer) };
            }
            self.changed.notified().await;
        }
    }

    /// Takes a place. Where there is none, asks a connection to give way.
    fn try_enter(&self, peer: IpAddr, now: Instant) -> Option<u64> {
        let mut table = self.lock();
        if table.connections.len() < self.limits.places_max {
            return Some(table.add(peer, now));
        }
        let leaving = table.connections.values().any(|connection| connection.gives_way);
        if !leaving && let Some(chosen) = table.longest_waiting() {
            chosen.gives_way = true;
            self.counters.count_gave_way();
            if let Some(waker) = chosen.waker.take() {
                waker.wake();
            }
        }
        None
    }

    /// Changes a connection, if it is still there; `true` wakes who waits for a place.
    fn change(&self, id: u64, change: impl FnOnce(&mut Connection) -> bool) {
        if self.lock().connections.get_mut(&id).is_some_and(change) {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Bytes came; `false` when the request is too long.
    pub(crate) fn received(&self, bytes: usize, now: Instant) -> bool {
        let max = self.places.limits.request_bytes_max;
        let mut fits = true;
        self.places.change(self.id, |connection| {
            connection.asked_at.get_or_insert(now);
            connection.request_bytes += bytes;
            fits = connection.request_bytes <= max;
            false
        });
        fits
    }

    /// The head of a request is complete.
    pub(crate) fn begin_answer(&self) {
        self.places.change(self.id, |connection| {
            connection.answering = true;
            connection.asked_at = None;
            connection.request_bytes = 0;
            false
        });
    }

    /// The answer is complete: sent, or in the hands of the connection.
    pub(crate) fn end_answer(&self, now: Instant) {
        self.places.change(self.id, |connection| {
            connection.answering = false;
            connection.answered = true;
            connection.idle_since = now;
            true
        });
    }

    /// The peer read, or does not.
    pub(crate) fn wrote(&self, blocked: bool, now: Instant) {
        self.places.change(self.id, |connection| {
            let newly = blocked && connection.blocked_since.is_none();
            if newly {
                connection.blocked_since = Some(now);
            } else if !blocked {
                connection.blocked_since = None;
            }
            newly
        });
    }

    /// What a connection does that can neither read nor write.
    pub(crate) fn wait(&self, waker: &Waker) -> Wait {
        let limits = &self.places.limits;
        let mut wait = Wait::GiveWay;
        self.places.change(self.id, |connection| {
            if !connection.gives_way {
                connection.waker = Some(waker.clone());
                wait = Wait::Until(connection.deadline(limits));
            }
            false
        });
        wait
    }

    /// Has it been asked to give way?
    pub(crate) fn gives_way(&self) -> bool {
        self.places.lock().connections.get(&self.id).is_none_or(|connection| connection.gives_way)
    }

    pub(crate) fn timed_out(&self) {
        self.places.counters.count_timed_out();
    }

    /// The connection has ended.
    pub(crate) fn leave(&self) {
        self.places.lock().connections.remove(&self.id);
        self.places.changed.notify_one();
    }
}

impl Table {
    fn add(&mut self, peer: IpAddr, now: Instant) -> u64 {
        let id = self.next;
        self.next += 1;
        let connection = Connection {
            peer,
            idle_since: now,
            asked_at: None,
            request_bytes: 0,
            answering: false,
            answered: false,
            blocked_since: None,
            gives_way: false,
            waker: None,
        };
        self.connections.insert(id, connection);
        id
    }

    /// The connection that has waited longest, among those of the address with most that wait.
    fn longest_waiting(&mut self) -> Option<&mut Connection> {
        let mut waiting = HashMap::<IpAddr, usize>::new();
        for connection in self.connections.values().filter(|one| one.waits_since().is_some()) {
            *waiting.entry(connection.peer).or_default() += 1;
        }
        let candidates = self.connections.values_mut();
        let keyed = candidates.filter_map(|one| {
            let since = one.waits_since()?;
            let of_peer = waiting.get(&one.peer).copied().unwrap_or_default();
            Some(((std::cmp::Reverse(of_peer), since), one))
        });
        keyed.min_by_key(|(key, _)| *key).map(|(_, one)| one)
    }
}

impl Connection {
    /// Since when it has waited for its peer, if it does.
    fn waits_since(&self) -> Option<Instant> {
        match self.blocked_since {
            Some(since) => Some(since),
            None => (!self.answering).then_some(self.idle_since),
        }
    }

    fn deadline(&self, limits: &Limits) -> Option<Instant> {
        if let Some(since) = self.blocked_since {
            return Some(since + limits.unread_time);
        }
        match self.asked_at {
            _ if self.answering => None,
            Some(at) => Some(at + limits.request_time),
            None if self.answered => Some(self.idle_since + limits.idle_time),
            None => Some(self.idle_since + limits.request_time),
        }
    }
}

#[cfg(test)]
mod tests;
