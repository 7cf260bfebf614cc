//! CONNECT at the shard that owns the session: resumed, taken over or made, and connected.

use std::sync::Arc;

use tacho_codec::{Connect, Packet, QoS, ReasonCode, Will, has_bridge_bit, without_bridge_bit};
use tacho_net::ConnId;
use tacho_session::server::{ConnectParams, End, SessionLimits};
use tacho_session::{BatchSeq, Overflow, WillState};

use super::refused_logins::LoginRefusal;
use super::{Connection, agree, packet_size_max};
use crate::access::UserPlace;
use crate::config::{Level, QueuePolicy};
use crate::delivery::{Body, Copy, NO_GROUP};
use crate::hops;
use crate::keys::{ClientKey, ConnectingClient, SessionSlot, User};
use crate::message::{Message, Source};
use crate::publish_limit::PublishLimit;
use crate::shard::durability::Machine;
use crate::shard::durability::{ConnectAnswer, ConnectRequest};
use crate::shard::durability::{JournaledSession, OpenedSession, PendingConnect, SessionJournal};
use crate::shard::output::{Flow, encode};
use crate::shard::routing::SubscribedFilters;
use crate::shard::sessions::{Explanations, Peer, PeerTerms, Session};
use crate::shard::{Net, Shard};

/// A user has as many connections as its roles allow.
struct UserIsFull;

impl Shard {
    /// Opens the session and sends CONNACK, once [MQTT-3.1.4-5], [MQTT-3.2.0-2]: at once, or when
    /// the session is committed. With an authentication method, `connect` has the data that goes
    /// out; `packet` is what it was decoded from.
    pub(in crate::shard) fn connect(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
    ) -> Flow {
        if let Err(why) = self.may_open(net, conn, connect, &client) {
            return self.refuse_login(net, conn, connect, &client, why);
        }
        let ConnectingClient { key, is_assigned, user, .. } = client;
        let name = user.as_ref().map(|user| &*user.name);
        let agreed = agree(connect, self.limits(), self.access.limits_of(name));
        if !self.takes_connack(connect, &agreed, is_assigned.then_some(&*key.client_id)) {
            self.refuse(net, conn, connect.version, ReasonCode::PACKET_TOO_LARGE);
            return Flow::Stop;
        }
        let level = self.level_of(conn, agreed.session_expiry_s);
        if let Some(slot) = self.sessions.find(&key) {
            self.cancel_pending_connect(net, slot);
        }
        if let Some(slot) = self.sessions.find(&key) {
            // What is due for the session is done before anything is recorded that ignores it.
            self.session_timeout(net, slot);
        }
        let (clean_start, expiry_s) = (connect.clean_start, agreed.session_expiry_s);
        let admission =
            self.answer_to_connect(&key, ConnectRequest { clean_start, level, expiry_s });
        if admission == ConnectAnswer::Refused {
            self.stats.journal_refused_connects_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return Flow::Stop;
        }
        let Some((slot, ended)) = self.session_for(net, conn, connect, (key, user), level) else {
            return Flow::Stop;
        };
        self.end_forbidden_subscriptions(net, slot);
        let session = &self.sessions[slot];
        let maker = (session.source(), session.access.user().map(|user| &user.name));
        let will = connect.will.as_ref().map(|will| will_state(will, maker));
        let is_bridge =
            has_bridge_bit(packet) || hops::is_bridge(connect.properties.user_properties);
        let peer = if is_bridge { Peer::Bridge } else { Peer::Client };
        let policy = self.queue_policy_of(conn, slot, expiry_s);
        self.sessions[slot].requested_by(peer);
        self.sessions[slot].set_queue_policy(policy);
        let waits = admission == ConnectAnswer::Committed;
        let opened =
            OpenedSession { version: connect.version, expiry_s, will: will.as_ref(), waits };
        let batch = self.record_opened(slot, &opened).max(ended);
        if batch <= self.durability.committed() || !waits {
            self.open_session(net, conn, slot, connect, will, is_assigned);
            return Flow::Continue;
        }
        let packet = without_bridge_bit(packet).unwrap_or_else(|| packet.to_vec());
        let authentication_data = connect.properties.authentication_data.map(Into::into);
        let pending =
            PendingConnect { conn, batch, packet, authentication_data, is_assigned, will };
        self.await_session_commit(net, slot, pending);
        Flow::Continue
    }

    /// Finds or makes the session of a client, which takes it over; also the batch that ends an
    /// earlier session of the client. `None` if the client is refused.
    fn session_for(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        (key, user): (ClientKey, Option<User>),
        level: Level,
    ) -> Option<(SessionSlot, BatchSeq)> {
        let replaces = self.sessions.find(&key);
        let replaces = replaces.filter(|&s| self.sessions[s].connection().is_some());
        let Ok(of_user) = self.place_of(user.as_ref(), replaces) else {
            let name = user.as_ref().map(|user| &*user.name);
            let why = LoginRefusal::UserConnections;
            self.refuse_login_of(net, conn, connect, (&key.client_id, name), why);
            return None;
        };
        // A client that is connected already takes its own place.
        let permit = if replaces.is_none() { self.shared.connections.try_take() } else { None };
        if replaces.is_none() && permit.is_none() {
            self.stats.refused_connections_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return None;
        }
        if let Some(slot) = self.sessions.find(&key) {
            self.take_over(net, slot, connect.clean_start);
        }
        let permit = permit.unwrap_or_else(|| self.shared.connections.take());
        // Taking over may have ended the session.
        let existing = self.sessions.find(&key);
        let sessions_max = self.limits().sessions_max.div_ceil(self.shared.shards);
        if existing.is_none() && self.sessions.len() >= sessions_max {
            self.stats.refused_sessions_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return None;
        }
        self.connections.admit(conn, permit, of_user);
        let origin = self.origin_of(net, conn);
        let (slot, ended) = match existing {
            Some(slot) => {
                self.give_to(slot, user, origin);
                (slot, BatchSeq::DONE)
            }
            None => {
                let ended = self.forget_ended_session(&key);
                let journaled = self.place_in_journal(level);
                let slot = self.new_session(key, journaled);
                self.sessions[slot].access = self.access.of_new_session(user, origin);
                (slot, ended)
            }
        };
        self.apply_limits(slot);
        Some((slot, ended))
    }

    /// The place of a connection among those of its user, where roles may limit them. A client that
    /// is connected already takes its own.
    fn place_of(
        &self,
        user: Option<&User>,
        replaces: Option<SessionSlot>,
    ) -> Result<Option<UserPlace>, UserIsFull> {
        let Some(user) = user.filter(|_| self.access.has_roles()) else { return Ok(None) };
        let owner = replaces.and_then(|slot| self.sessions[slot].access.user_name());
        let own = u32::from(owner == Some(&user.name));
        let max = self.access.limits_of(Some(&user.name)).connections_max;
        let max = max.map(|max| max.saturating_add(own));
        let place = self.shared.access.user_places.try_take(&user.name, max);
        place.map(Some).ok_or(UserIsFull)
    }

    /// The client is connected to its session, and told so.
    pub(in crate::shard) fn open_session(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        connect: &Connect<'_>,
        will: Option<WillState<Copy>>,
        is_assigned: bool,
    ) {
        self.cancel_connect_timer(net, conn);
        let agreed = agree(connect, self.limits(), self.limits_in(slot));
        let client_id = Arc::clone(&self.sessions[slot].key().client_id);
        let response_information = self.response_information(connect, &client_id);
        let assigned_client_id = is_assigned.then_some(&*client_id);
        let mut connack =
            self.connack(connect, &agreed, assigned_client_id, response_information.as_deref());
        let aliases_max = connect.properties.topic_alias_maximum.unwrap_or(0);
        // Not above what the client takes [MQTT-3.1.2-26].
        let aliases_max = aliases_max.min(self.limits().outgoing_topic_aliases_max);
        let params = ConnectParams {
            version: connect.version,
            clean_start: connect.clean_start,
            receive_maximum: connect.properties.receive_maximum.unwrap_or(u16::MAX),
            topic_alias_maximum_in: self.limits().topic_alias_maximum,
            topic_alias_maximum_out: aliases_max,
            keep_alive_s: agreed.keep_alive_s,
            session_expiry_s: agreed.session_expiry_s,
            will,
        };
        let now_ns = net.now_ns();
        let part = self.shared.listeners.get(usize::from(self.connections.listener_of(conn)));
        let of_listener = part.as_ref().and_then(|part| part.gate.publish.as_ref());
        let publish = PublishLimit::of_client(of_listener, &self.limits_in(slot));
        let session = &mut self.sessions[slot];
        session.meter.client_connected(publish);
        let connected = session.client_connected(now_ns, params, terms_of(connect, aliases_max));
        self.sessions.connect(slot, conn);
        self.stats.packets_in_total.increment();
        self.stats.connects_total.increment();
        let active = Connection::Active { id: conn, session: slot, version: connect.version };
        self.connections.set(conn, active);
        self.connections.begin(conn, now_ns);
        self.log_begin(net, conn, slot, connect);
        net.established(conn);
        // CONNACK before whatever the steps below may send to this session [MQTT-3.2.0-1].
        connack.session_present = connected.session_present;
        self.trace_opened(net, conn, slot, (connect, &connack));
        encode(&Packet::ConnAck(connack), connect.version, net, conn);
        self.members_connected(net, slot, true);
        if let Some(Body::Here(will)) = connected.publish_will.map(|will| will.message) {
            self.publish_will(net, slot, &will);
        }
        self.sessions.arm_timer(net, slot);
        self.pump(net, slot);
    }

    /// How safe a session is to be that a client of this connection asks for.
    fn level_of(&self, conn: ConnId, session_expiry_s: u32) -> Level {
        if self.shared.durable.is_none() {
            return Level::Memory;
        }
        let part = self.shared.listeners.get(usize::from(self.connections.listener_of(conn)));
        part.map_or(Level::Memory, |part| part.levels.for_expiry(session_expiry_s))
    }

    /// What becomes of messages when the queue of a session that a client of this connection asks
    /// for is full: its roles say so, or else the listener. It follows the client, which may come
    /// to another one.
    fn queue_policy_of(
        &self,
        conn: ConnId,
        slot: SessionSlot,
        session_expiry_s: u32,
    ) -> QueuePolicy {
        let listener = usize::from(self.connections.listener_of(conn));
        let of_roles = self.limits_in(slot).queue_full(session_expiry_s);
        let part = self.shared.listeners.get(listener);
        let of_listener = part.map(|part| part.queue_policies.for_expiry(session_expiry_s));
        of_roles.or(of_listener).unwrap_or(QueuePolicy::Refuse)
    }

    /// The same client id again: the old connection ends before the new one's CONNACK
    /// [MQTT-3.1.4-3]; clean start ends the session too.
    fn take_over(&mut self, net: &mut Net, slot: SessionSlot, clean_start: bool) {
        if let Some(old) = self.sessions[slot].connection() {
            self.stats.takeovers_total.increment();
            self.count_flap(net, old, Some(slot));
            self.say_goodbye(net, old, ReasonCode::SESSION_TAKEN_OVER);
            self.session_disconnected(net, slot, End::TakenOver { clean_start });
        }
        if !clean_start || !self.sessions.contains(slot) {
            return;
        }
        // A session of its own for the client, in the journal too: what is still on its way to the
        // one before (fan-outs, replays, acknowledgements) has to miss it.
        let will = self.sessions[slot].machine.will().map(|(will, _)| will.clone());
        if let Some(Body::Here(will)) = will.map(|will| will.message.message) {
            self.publish_will(net, slot, &will);
        }
        self.discard_session(net, slot);
    }

    fn new_session(&mut self, key: ClientKey, journaled: Option<JournaledSession>) -> SessionSlot {
        let machine = Machine::new(self.session_limits(journaled.is_some()));
        self.add_session(key, machine, journaled)
    }

    /// What a session may hold.
    pub(in crate::shard) fn session_limits(&self, is_journaled: bool) -> SessionLimits {
        let limits = self.limits();
        let durable = self.shared.durable.as_ref().filter(|_| is_journaled);
        let queue = durable.map_or_else(|| limits.session_queue(), |durable| durable.session_queue);
        SessionLimits {
            queue_len_max: queue.len_max,
            queue_bytes_max: queue.bytes_max,
            // Until its policy is known.
            overflow: Overflow::DropNewest,
            receive_maximum: limits.receive_maximum,
            inflight_max: limits.inflight_max,
            queue_qos0_offline: limits.queue_qos0_offline
                || durable.is_some_and(|durable| durable.settings.offline_qos0),
            alias_bytes_max: limits.topic_alias_bytes_max,
        }
    }

    /// Puts a session among the shard's.
    pub(in crate::shard) fn add_session(
        &mut self,
        key: ClientKey,
        machine: Machine,
        journaled: Option<JournaledSession>,
    ) -> SessionSlot {
        let source = self.bridges.known().source_of(&key);
        let subscriptions = SubscribedFilters::new(Arc::clone(&self.subscriptions));
        let journal = SessionJournal::new(journaled);
        let session = Session::new(key, machine, source, subscriptions, journal);
        let slot = self.sessions.insert(session);
        self.session_added(slot);
        self.count_sessions();
        slot
    }

    /// Those of bridges' members are no clients'.
    pub(in crate::shard) fn count_sessions(&self) {
        let own = self.sessions.len().saturating_sub(self.bridges.len());
        self.stats.sessions.set(own as u64);
    }
}

fn terms_of(connect: &Connect<'_>, aliases_max: u16) -> PeerTerms {
    let explanations = match connect.properties.request_problem_information {
        Some(false) => Explanations::Unwanted,
        _ => Explanations::Wanted,
    };
    PeerTerms::of_client(connect.version, packet_size_max(connect), aliases_max > 0, explanations)
}

fn will_state(will: &Will<'_>, (source, user): (Source, Option<&Arc<str>>)) -> WillState<Copy> {
    debug_assert!(will.qos <= QoS::ExactlyOnce);
    let message = Message::from_will(will, source, user);
    WillState {
        message: Copy { message: Body::Here(message), group: NO_GROUP },
        delay_s: will.properties.delay_s.unwrap_or(0),
    }
}
