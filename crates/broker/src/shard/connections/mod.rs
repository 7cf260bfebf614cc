//! Connections: accepted, framed and read, told why they end; CONNECT up to the session.

mod accept;
mod again;
mod answers;
mod authenticate;
mod backend_login;
mod certificate;
mod connack;
mod delayed_answers;
mod first_packet;
mod flapping;
mod goodbye;
mod input;
mod log;
mod login;
mod login_end;
mod methods;
mod open;
mod publish_rate;
mod read_ahead;
mod refused_logins;

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::{ReasonCode, Version};
use tacho_net::{ConnId, TimerId};

use crate::access::UserPlace;
use crate::authentication::ExchangeRef;
use crate::gate::ConnectionPermits;
use crate::keys::{LinkIndex, SessionSlot};
use crate::permits::{Permit, Quota};
use crate::stats::ShardStats;
use authenticate::Exchange;

pub(crate) use authenticate::Authenticators;
use connack::agree;
pub(super) use connack::packet_size_max;
pub(super) use goodbye::Farewell;
pub(super) use input::PUBLISH;
use login::HeldLogin;
use login_end::LoginEnd;
pub(super) use read_ahead::is_read_ahead;

/// What a connection is to its shard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Connection {
    /// No such connection.
    Vacant,
    /// Accepted; its CONNECT has not come yet.
    Opening { id: ConnId, timer: TimerId, listener: u16 },
    /// Its CONNECT names an authentication method, which has not accepted it yet.
    Authenticating { id: ConnId, timer: TimerId, listener: u16 },
    /// Its login is being verified; it is not read meanwhile.
    LoggingIn { id: ConnId, timer: TimerId, listener: u16 },
    /// Its login has failed, and the answer waits; it is not read meanwhile.
    Refusing { id: ConnId, timer: TimerId, version: Version, reason: ReasonCode },
    /// Its session is being written to the journal; CONNACK waits for that.
    Committing { timer: TimerId, session: SessionSlot },
    /// Its session is connected.
    Active { id: ConnId, session: SessionSlot, version: Version },
    /// Opened by this broker, to the other broker of a bridge.
    Bridge { id: ConnId, link: LinkIndex },
    /// Refused or ended by this broker; what was written is still sent.
    Closing,
}

impl Connection {
    /// Whether its client is not connected yet.
    const fn is_handshake(self) -> bool {
        matches!(
            self,
            Self::Opening { .. }
                | Self::Authenticating { .. }
                | Self::LoggingIn { .. }
                | Self::Refusing { .. }
        )
    }

    /// Whether the answer to its failed login waits.
    const fn is_refusing(self) -> bool {
        matches!(self, Self::Refusing { .. })
    }

    /// Whether its client is connected or will be as soon as its session is committed.
    const fn has_client(self) -> bool {
        matches!(self, Self::Committing { .. } | Self::Active { .. })
    }

    /// Whether it has a client, or one that wants to connect.
    pub(super) const fn is_client(self) -> bool {
        self.is_handshake() || self.has_client()
    }

    /// Fires when its client has run out of time to connect, or gets the answer that waits.
    pub(super) const fn timer(self) -> Option<TimerId> {
        match self {
            Self::Opening { timer, .. }
            | Self::Authenticating { timer, .. }
            | Self::LoggingIn { timer, .. }
            | Self::Refusing { timer, .. }
            | Self::Committing { timer, .. } => Some(timer),
            _ => None,
        }
    }

    /// Which listener accepted it, while that matters.
    pub(super) const fn listener(self) -> Option<u16> {
        match self {
            Self::Opening { listener, .. }
            | Self::Authenticating { listener, .. }
            | Self::LoggingIn { listener, .. } => Some(listener),
            _ => None,
        }
    }
}

/// Owns the state of the connections of this shard, the permits they hold, and the authentication
/// exchanges with their clients.
pub(super) struct Connections {
    /// By [`ConnId::index`].
    places: Vec<ConnectionPlace>,
    /// Connections whose client was not connected yet, the oldest first.
    openings: VecDeque<ConnId>,
    /// Of connections whose CONNECT named an authentication method, by [`ConnId::index`].
    exchanges: HashMap<u32, Box<Exchange>, RandomState>,
    /// Of connections whose login is being verified, by [`ConnId::index`].
    logins: HashMap<u32, Box<HeldLogin>, RandomState>,
    next_exchange: u64,
    handshakes: Arc<Quota>,
    stats: Arc<ShardStats>,
}

/// A connection and what it holds of the broker's limits.
struct ConnectionPlace {
    state: Connection,
    /// Which listener accepted it.
    listener: u16,
    /// When its client was connected.
    since_ns: u64,
    /// When the login of its client ends.
    login_end: Option<LoginEnd>,
    permits: Option<ConnectionPermits>,
    handshake: Option<Permit>,
    client: Option<ClientPlace>,
}

/// What the client of a connection holds.
struct ClientPlace {
    _permit: Permit,
    _of_user: Option<UserPlace>,
}

impl ConnectionPlace {
    const VACANT: Self = Self {
        state: Connection::Vacant,
        listener: 0,
        since_ns: 0,
        login_end: None,
        permits: None,
        handshake: None,
        client: None,
    };
}

impl Connections {
    pub(super) fn new(handshakes: Arc<Quota>, stats: Arc<ShardStats>) -> Self {
        Self {
            places: Vec::new(),
            openings: VecDeque::new(),
            exchanges: HashMap::default(),
            logins: HashMap::default(),
            next_exchange: 0,
            handshakes,
            stats,
        }
    }

    /// The state of a connection.
    #[inline]
    pub(super) fn get(&self, conn: ConnId) -> Connection {
        self.at(conn.index())
    }

    /// The same by its index, for events that have no more.
    #[inline]
    pub(super) fn at(&self, index: usize) -> Connection {
        self.places.get(index).map_or(Connection::Vacant, |place| place.state)
    }

    /// All indexes are below this.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A socket belongs to this shard from now on.
    pub(super) fn came(&mut self, conn: ConnId, permits: ConnectionPermits) {
        self.stats.connections.add(1);
        self.place(conn).permits = Some(permits);
    }

    /// What a connection holds of limits.
    fn permits(&mut self, conn: ConnId) -> Option<&mut ConnectionPermits> {
        self.places.get_mut(conn.index())?.permits.as_mut()
    }

    /// A connection left this shard, closed or moved: what it holds of limits comes back.
    pub(super) fn went(&mut self, conn: ConnId) -> Option<ConnectionPermits> {
        self.stats.connections.decrement();
        if !self.exchanges.is_empty() {
            self.exchanges.remove(&(conn.index() as u32));
        }
        if !self.logins.is_empty() {
            self.logins.remove(&(conn.index() as u32));
        }
        self.set(conn, Connection::Vacant);
        self.place(conn).permits.take()
    }

    /// Its client may connect: the permit is given back when it is not connected any more.
    pub(super) fn admit(&mut self, conn: ConnId, permit: Permit, of_user: Option<UserPlace>) {
        self.place(conn).client = Some(ClientPlace { _permit: permit, _of_user: of_user });
    }

    /// Its client is connected.
    pub(super) fn begin(&mut self, conn: ConnId, now_ns: u64) {
        self.place(conn).since_ns = now_ns;
    }

    /// The login of its client ends then.
    fn limit_login(&mut self, conn: ConnId, end: LoginEnd) {
        self.place(conn).login_end = Some(end);
    }

    /// Its login has no end any more.
    fn take_login_end(&mut self, conn: ConnId) -> Option<LoginEnd> {
        self.places.get_mut(conn.index())?.login_end.take()
    }

    /// Which listener accepted it, and since when its client has been connected.
    fn origin(&self, conn: ConnId) -> (u16, u64) {
        self.places.get(conn.index()).map_or((0, 0), |place| (place.listener, place.since_ns))
    }

    /// Since when its client has been connected.
    pub(super) fn connected_ns(&self, conn: ConnId) -> u64 {
        self.origin(conn).1
    }

    /// Which listener accepted it.
    pub(super) fn listener_of(&self, conn: ConnId) -> u16 {
        self.origin(conn).0
    }

    /// A number for an exchange with a client or with the threads that verify passwords.
    fn next_exchange(&mut self) -> u64 {
        self.next_exchange += 1;
        self.next_exchange
    }

    /// The connection waits until its password is verified.
    fn hold_login(&mut self, conn: ConnId, held: HeldLogin) {
        if let Connection::Opening { id, timer, listener } = self.get(conn) {
            self.set(conn, Connection::LoggingIn { id, timer, listener });
            self.logins.insert(conn.index() as u32, Box::new(held));
        }
    }

    /// The CONNECT that waits at a connection waits no longer.
    fn drop_login(&mut self, conn: ConnId) -> Option<HeldLogin> {
        self.logins.remove(&(conn.index() as u32)).map(|held| *held)
    }

    /// A password is verified: its connection waits no longer, if it is still there.
    fn take_login(&mut self, of: ExchangeRef) -> Option<(ConnId, HeldLogin)> {
        let Connection::LoggingIn { id, timer, listener } = self.at(of.connection as usize) else {
            return None;
        };
        if self.logins.get(&of.connection)?.number != of.number {
            return None;
        }
        let held = self.logins.remove(&of.connection)?;
        self.set(id, Connection::Opening { id, timer, listener });
        Some((id, *held))
    }

    /// The session of a connection whose client is connected.
    pub(super) fn session_of(&self, conn: ConnId) -> Option<SessionSlot> {
        match self.get(conn) {
            Connection::Active { id, session, .. } => (id == conn).then_some(session),
            _ => None,
        }
    }

    /// The connection waits until its session is committed.
    pub(super) fn await_commit(&mut self, conn: ConnId, session: SessionSlot) {
        if let Some(timer) = self.get(conn).timer() {
            self.set(conn, Connection::Committing { timer, session });
        }
    }

    /// The connection ends: what was written is still sent.
    pub(super) fn close(&mut self, conn: ConnId) {
        self.set(conn, Connection::Closing);
    }

    /// Changes the state of a connection, and gives back what it holds no longer.
    pub(super) fn set(&mut self, conn: ConnId, state: Connection) {
        let is_new = state.is_handshake() && !self.get(conn).is_handshake();
        let handshake = is_new.then(|| self.handshakes.take());
        match (self.get(conn).is_refusing(), state.is_refusing()) {
            (false, true) => self.stats.login_answers_waiting.increment(),
            (true, false) => self.stats.login_answers_waiting.decrement(),
            _ => {}
        }
        let place = self.place(conn);
        let was_handshake = place.state.is_handshake();
        place.listener = state.listener().unwrap_or(place.listener);
        place.state = state;
        if let Some(handshake) = handshake {
            place.handshake = Some(handshake);
            self.stats.handshakes.add(1);
        } else if was_handshake && !state.is_handshake() {
            place.handshake = None;
            self.stats.handshakes.decrement();
        }
        if !state.is_handshake() && !self.logins.is_empty() {
            self.logins.remove(&(conn.index() as u32));
        }
        let place = self.place(conn);
        if !state.is_handshake() && !state.has_client() {
            place.client = None;
        }
    }

    fn place(&mut self, conn: ConnId) -> &mut ConnectionPlace {
        let index = conn.index();
        if index >= self.places.len() {
            self.places.resize_with(index + 1, || ConnectionPlace::VACANT);
        }
        &mut self.places[index]
    }

    /// Takes the oldest connection whose client is not connected yet out of the list of them.
    fn pop_oldest_handshake(&mut self) -> Option<ConnId> {
        while let Some(conn) = self.openings.pop_front() {
            if self.is_opening(conn) {
                return Some(conn);
            }
        }
        None
    }

    /// Notes a connection that waits for its CONNECT.
    fn opened(&mut self, conn: ConnId) {
        self.openings.push_back(conn);
        if self.openings.len() > 2 * self.handshakes_len() + 1024 {
            let mut openings = std::mem::take(&mut self.openings);
            openings.retain(|&conn| self.is_opening(conn));
            self.openings = openings;
        }
    }

    /// Connections here whose client is not connected yet.
    fn handshakes_len(&self) -> usize {
        self.stats.handshakes.value() as usize
    }

    /// Whether there are too many handshakes in the broker, and more here than this shard's part.
    fn has_too_many_handshakes(&self, shards: usize) -> bool {
        // Where they are few, the others' are the old ones.
        let max = self.handshakes.max();
        self.handshakes.used() > max && self.handshakes_len() > max / shards
    }

    /// Whether this connection exists and its client is not connected yet.
    fn is_opening(&self, conn: ConnId) -> bool {
        match self.get(conn) {
            Connection::Opening { id, .. }
            | Connection::Authenticating { id, .. }
            | Connection::LoggingIn { id, .. }
            | Connection::Refusing { id, .. } => id == conn,
            _ => false,
        }
    }

    #[cfg(feature = "sim")]
    pub(super) fn open_len(&self) -> usize {
        let is_open = |place: &&ConnectionPlace| !matches!(place.state, Connection::Vacant);
        self.places.iter().filter(is_open).count()
    }
}
