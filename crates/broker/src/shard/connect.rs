//! CONNECT: who it is, which shard owns the session, what both sides agree on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tacho_codec::{
    ConnAck, Connect, Frame, Packet, QoS, ReasonCode, Version, Will, has_bridge_bit, split_frame,
    without_bridge_bit,
};
use tacho_net::ConnId;
use tacho_session::server::{self, ConnectParams, End, SessionLimits};
use tacho_session::{BatchSeq, WillState};

use super::budget::Held;
use super::committing::Promised;
use super::connection::{Connection, Flow, encode};
use super::keeping::{Kept, Opened};
use super::publish::may_publish;
use super::session::{Body, Copy, NO_GROUP, Session};
use super::stuck::{Admission, Asked};
use super::{Net, Shard};
use crate::config::{Level, Limits};
use crate::keys::{ClientKey, LINK_PREFIX, TenantId};
use crate::mail::Mail;
use crate::message::{Message, Source};

/// Bytes of the smallest CONNACK of 5.0. Who takes no more cannot even be refused.
const REFUSAL_LEN: u32 = 5;

/// What the broker grants; CONNACK says what differs from what the client asked for.
struct Agreed {
    keep_alive_s: u16,
    session_expiry_s: u32,
}

impl Shard {
    /// Handles the first packet of a connection. `unread` starts with it.
    pub(super) fn first_packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        frame: &Frame<'_>,
        unread: &[u8],
    ) -> Flow {
        let plain = without_bridge_bit(&unread[..frame.total_len]);
        let plain = plain.as_ref().and_then(|plain| split_frame(plain, u32::MAX).ok().flatten());
        let frame = plain.as_ref().unwrap_or(frame);
        let connect = match Connect::decode(frame) {
            Ok(connect) => connect,
            Err(error) => {
                self.stats.protocol_errors_total.increment();
                // [MQTT-3.1.4-1]. A CONNACK where the bytes tell which version's; else the close.
                match Connect::reply_version(frame) {
                    Some(version) if version == Version::V5 || has_v3_code(error.reason) => {
                        self.refuse(net, conn, version, error.reason);
                    }
                    _ => self.drop_connection(net, conn),
                }
                return Flow::Stop;
            }
        };
        if packet_size_max(&connect) < REFUSAL_LEN {
            self.drop_connection(net, conn); // [MQTT-3.1.2-24]
            return Flow::Stop;
        }
        if let Some(reason) = self.reason_to_refuse(&connect) {
            self.refuse(net, conn, connect.version, reason);
            return Flow::Stop;
        }
        let (key, assigned) = self.client_key(&connect, net.shards());
        let owner = key.owner(net.shards());
        if owner == self.id {
            let packet = &unread[..frame.total_len];
            if connect.properties.authentication_method.is_some() {
                return self.authenticate(net, conn, &connect, packet, (key, assigned));
            }
            return self.connect(net, conn, &connect, packet, key, assigned);
        }
        self.move_connection(net, conn, owner, unread);
        Flow::Stop
    }

    fn move_connection(&mut self, net: &mut Net, conn: ConnId, owner: usize, unread: &[u8]) {
        self.cancel_connect_timer(net, conn);
        let listener = self.connections[conn.index()].listener().unwrap_or(0);
        self.connection_gone(conn);
        if let Some(detached) = net.detach(conn, unread) {
            net.post(owner, Mail::Adopt(Box::new(detached), listener));
        }
    }

    fn reason_to_refuse(&self, connect: &Connect<'_>) -> Option<ReasonCode> {
        if self.stopping {
            return Some(ReasonCode::SERVER_UNAVAILABLE);
        }
        if let Some(reason) = self.overloaded() {
            return Some(reason);
        }
        if connect.client_id.len() > self.limits().client_id_bytes_max {
            // [MQTT-3.1.3-8], [MQTT-3.1.1: 3.1.3-9]
            return Some(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
        }
        if connect.client_id.starts_with(LINK_PREFIX) {
            return Some(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID); // They are the broker's own.
        }
        if connect.will.is_some() && self.queues_full && self.is_far_over_budget() {
            return Some(ReasonCode::QUOTA_EXCEEDED);
        }
        let method = connect.properties.authentication_method;
        if method.is_some_and(|name| self.auth_method(name).is_none()) {
            return Some(ReasonCode::BAD_AUTHENTICATION_METHOD); // [MQTT-4.12.0-1]
        }
        // [MQTT-3.1.4-2]
        if connect.will.as_ref().is_some_and(|will| !may_publish(will.topic)) {
            return Some(ReasonCode::NOT_AUTHORIZED);
        }
        let v5 = connect.version == Version::V5;
        if !v5 && connect.client_id.is_empty() && !connect.clean_start {
            return Some(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID); // [MQTT-3.1.1: 3.1.3-8]
        }
        None
    }

    /// Clients without an identifier get one of their own [MQTT-3.1.3-6], [MQTT-3.2.2-16].
    fn client_key(&self, connect: &Connect<'_>, shards: usize) -> (ClientKey, bool) {
        let tenant = TenantId::DEFAULT;
        if !connect.client_id.is_empty() {
            return (ClientKey { tenant, client_id: connect.client_id.into() }, false);
        }
        // An identifier that this shard owns saves moving the connection.
        loop {
            let client_id = format!("auto-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
            let key = ClientKey { tenant, client_id: client_id.into() };
            if key.owner(shards) == self.id && !self.by_client.contains_key(&key) {
                return (key, true);
            }
        }
    }

    /// A CONNACK that refuses, then the close [MQTT-3.2.2-7]. What follows the CONNECT is not
    /// processed [MQTT-3.1.4-6].
    pub(super) fn refuse(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        version: Version,
        reason: ReasonCode,
    ) {
        self.stats.packets_in_total.increment();
        self.stats.refused_connects_total.increment(reason);
        let connack = Packet::ConnAck(ConnAck::refusal(reason));
        encode(&connack, version, net, conn);
        self.drop_connection(net, conn);
    }

    /// Opens the session and says so, once [MQTT-3.1.4-5], [MQTT-3.2.0-2]: at once, or when it is
    /// written down. With an authentication method, `connect` has the data that goes out; `packet`
    /// is what it was decoded from.
    pub(super) fn connect(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        key: ClientKey,
        assigned: bool,
    ) -> Flow {
        let agreed = agree(connect, self.limits());
        if !self.takes_connack(connect, &agreed, assigned.then_some(&*key.client_id)) {
            self.refuse(net, conn, connect.version, ReasonCode::PACKET_TOO_LARGE);
            return Flow::Stop;
        }
        let level = self.level_of(conn, agreed.session_expiry_s);
        if let Some(&slot) = self.by_client.get(&key) {
            self.end_promised_connection(net, slot);
        }
        if let Some(&slot) = self.by_client.get(&key) {
            // What is due is done before anything is written down that knows nothing of it.
            self.session_timeout(net, slot);
        }
        let (clean_start, expiry_s) = (connect.clean_start, agreed.session_expiry_s);
        let admission = self.admission(&key, Asked { clean_start, level, expiry_s });
        if admission == Admission::Refused {
            self.stats.journal_refused_connects_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return Flow::Stop;
        }
        let replaces = self.by_client.get(&key).copied();
        let replaces = replaces.filter(|&s| self.sessions[s as usize].connection.is_some());
        if replaces.is_none() && !self.reserve_connection() {
            self.stats.refused_connections_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return Flow::Stop;
        }
        if let Some(&slot) = self.by_client.get(&key) {
            self.take_over(net, slot, connect.clean_start);
        }
        if replaces.is_some() {
            // In the place of the old one.
            self.shared.connections.fetch_add(1, Ordering::Relaxed);
        }
        // Taking over may have ended the session.
        let existing = self.by_client.get(&key).copied();
        if existing.is_none() && self.sessions.len() >= self.shared.sessions_per_shard_max {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.stats.refused_sessions_total.increment();
            self.refuse(net, conn, connect.version, ReasonCode::QUOTA_EXCEEDED);
            return Flow::Stop;
        }
        let (slot, ended) = match existing {
            Some(slot) => (slot, BatchSeq::DONE),
            None => {
                let ended = self.end_of_former(&key);
                let kept = self.place_in_journal(level);
                (self.new_session(key, kept), ended)
            }
        };
        let source = self.sessions[slot as usize].source;
        let will = connect.will.as_ref().map(|will| will_state(will, source));
        self.sessions[slot as usize].is_kin = has_bridge_bit(packet);
        let waits = admission == Admission::Committed;
        let opened = Opened { version: connect.version, expiry_s, will: will.as_ref(), waits };
        let batch = self.keep_opened(slot, &opened).max(ended);
        if batch <= self.committed() || !waits {
            self.open_session(net, conn, slot, connect, will, assigned);
            return Flow::Continue;
        }
        let packet = without_bridge_bit(packet).unwrap_or_else(|| packet.to_vec());
        let authentication_data = connect.properties.authentication_data.map(Into::into);
        let promised = Promised { conn, batch, packet, authentication_data, assigned, will };
        self.promise_connection(net, slot, promised);
        Flow::Continue
    }

    /// The client is connected to its session, and told so.
    pub(super) fn open_session(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: u32,
        connect: &Connect<'_>,
        will: Option<WillState<Copy>>,
        assigned: bool,
    ) {
        self.cancel_connect_timer(net, conn);
        let agreed = agree(connect, self.limits());
        let client_id = Arc::clone(&self.sessions[slot as usize].key.client_id);
        let response_information = self.response_information(connect, &client_id);
        let assigned_client_id = assigned.then_some(&*client_id);
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
        let session = &mut self.sessions[slot as usize];
        let connected = session.machine.connect(now_ns, params);
        session.connection = Some(conn);
        self.stats.packets_in_total.increment();
        self.stats.connects_total.increment();
        self.stats.sessions_connected.add(1);
        session.version = connect.version;
        session.owes_pingresp = false;
        if let Some(pressure) = &mut session.pressure {
            // With the patience that everybody gets, and nothing looked at.
            pressure.held = Held::default();
        }
        session.packet_size_max = packet_size_max(connect);
        session.is_particular = session.packet_size_max != u32::MAX || aliases_max > 0;
        session.no_problem_information =
            connect.properties.request_problem_information == Some(false);
        self.set_connection(
            conn,
            Connection::Active { id: conn, session: slot, version: connect.version },
        );
        net.established(conn);
        // CONNACK before whatever the steps below may send to this session [MQTT-3.2.0-1].
        connack.session_present = connected.session_present;
        encode(&Packet::ConnAck(connack), connect.version, net, conn);
        self.members_connected(net, slot, true);
        if let Some(Body::Here(will)) = connected.publish_will.map(|will| will.message) {
            self.publish_will(net, &will);
        }
        self.arm_timer(net, slot);
        self.pump(net, slot);
    }

    /// Whether the client takes the CONNACK: nothing in it may be left out, so who cannot take it
    /// cannot connect [MQTT-3.1.2-24].
    fn takes_connack(
        &self,
        connect: &Connect<'_>,
        agreed: &Agreed,
        assigned_client_id: Option<&str>,
    ) -> bool {
        let len_max = packet_size_max(connect);
        if len_max == u32::MAX {
            return true;
        }
        let client_id = assigned_client_id.unwrap_or(connect.client_id);
        let response_information = self.response_information(connect, client_id);
        let response_information = response_information.as_deref();
        let connack = self.connack(connect, agreed, assigned_client_id, response_information);
        let len = connack.encoded_len(connect.version);
        !len.is_ok_and(|len| len > len_max as usize)
    }

    /// How safe a session is to be that a client of this connection asks for.
    fn level_of(&self, conn: ConnId, session_expiry_s: u32) -> Level {
        let Some(durable) = &self.shared.durable else { return Level::Memory };
        let listener = self.connections[conn.index()].listener().unwrap_or(0);
        durable.levels[usize::from(listener)].of(session_expiry_s)
    }

    /// The same client id again: the old connection ends before the new one's CONNACK
    /// [MQTT-3.1.4-3]; clean start ends the session too.
    fn take_over(&mut self, net: &mut Net, slot: u32, clean_start: bool) {
        if let Some(old) = self.sessions[slot as usize].connection {
            self.stats.takeovers_total.increment();
            self.say_goodbye(net, old, ReasonCode::SESSION_TAKEN_OVER);
            self.session_disconnected(net, slot, End::TakenOver { clean_start });
        }
        if !clean_start || !self.sessions.contains(slot as usize) {
            return;
        }
        if self.shared.durable.is_some() {
            // A session of its own for the client, in the journal too.
            let will = self.sessions[slot as usize].machine.will().map(|(will, _)| will.clone());
            if let Some(Body::Here(will)) = will.map(|will| will.message.message) {
                self.publish_will(net, &will);
            }
            self.discard_session(net, slot);
        } else {
            let undelivered = self.take_undelivered_of_groups(slot);
            self.remove_all_subscriptions(net, slot);
            self.renew(net, slot);
            self.redistribute(net, undelivered);
        }
    }

    /// A clean start of a session that has no connection: what is still on its way to it (fan-outs,
    /// replays, acknowledgements) was meant for its predecessor and has to miss it.
    fn renew(&mut self, net: &mut Net, slot: u32) {
        self.next_generation = self.next_generation.wrapping_add(1);
        let session = &mut self.sessions[slot as usize];
        session.generation = self.next_generation;
        session.replays = None;
        // It carries the old generation.
        if let Some((timer, _)) = session.timer.take() {
            net.cancel_timer(timer);
        }
    }

    fn new_session(&mut self, key: ClientKey, kept: Option<Kept>) -> u32 {
        let machine = server::Session::<Copy>::new(self.session_limits(kept.is_some()));
        self.add_session(key, machine, kept)
    }

    /// What a session may hold.
    pub(super) fn session_limits(&self, is_kept: bool) -> SessionLimits {
        let limits = self.limits();
        let durable = self.shared.durable.as_ref().filter(|_| is_kept);
        SessionLimits {
            queue_len_max: limits.session_queue_len_max,
            queue_bytes_max: limits.session_queue_bytes_max,
            receive_maximum: limits.receive_maximum,
            inflight_max: limits.inflight_max,
            queue_qos0_offline: limits.queue_qos0_offline
                || durable.is_some_and(|durable| durable.settings.offline_qos0),
            alias_bytes_max: limits.topic_alias_bytes_max,
        }
    }

    /// Puts a session among the shard's.
    pub(super) fn add_session(
        &mut self,
        key: ClientKey,
        machine: server::Session<Copy>,
        kept: Option<Kept>,
    ) -> u32 {
        self.next_generation = self.next_generation.wrapping_add(1);
        let session = Session {
            generation: self.next_generation,
            key: key.clone(),
            machine,
            connection: None,
            version: Version::V5,
            source: self.shared.bridges.source_of(&key),
            packet_size_max: u32::MAX,
            is_particular: false,
            no_problem_information: false,
            expired_counted: 0,
            partial_len: 0,
            subscriptions: hashbrown::HashSet::default(),
            memberships: Vec::new(),
            left_groups: None,
            timer: None,
            owes_pingresp: false,
            replays: None,
            places_counted: 0,
            pressure: None,
            is_kin: false,
            member: None,
            kept,
            lent: None,
            promises: None,
            stored: 0,
            is_loading: false,
        };
        let slot = self.sessions.insert(Box::new(session)) as u32;
        self.by_client.insert(key, slot);
        self.count_sessions();
        slot
    }

    /// Those of bridges' members are no clients'.
    pub(super) fn count_sessions(&self) {
        let own = self.sessions.len().saturating_sub(self.bridges.len());
        self.stats.sessions.set(own as u64);
    }

    /// CONNACK, but for what only the session knows.
    fn connack<'a>(
        &self,
        connect: &Connect<'a>,
        agreed: &Agreed,
        assigned_client_id: Option<&'a str>,
        response_information: Option<&'a str>,
    ) -> ConnAck<'a> {
        let mut connack = ConnAck { reason: ReasonCode::SUCCESS, ..ConnAck::default() };
        if connect.version == Version::V5 {
            // [MQTT-3.1.3-7]: the assigned identifier; [MQTT-3.2.2-22]: no keep alive but the
            // client's, unless it is said.
            let limits = self.limits();
            let p = &mut connack.properties;
            // Said only where they differ from what the client asked for or from the default.
            p.assigned_client_id = assigned_client_id;
            let asked_expiry_s = connect.properties.session_expiry_s.unwrap_or(0);
            p.session_expiry_s =
                (agreed.session_expiry_s != asked_expiry_s).then_some(agreed.session_expiry_s);
            p.server_keep_alive_s =
                (agreed.keep_alive_s != connect.keep_alive_s).then_some(agreed.keep_alive_s);
            p.receive_maximum =
                (limits.receive_maximum != u16::MAX).then_some(limits.receive_maximum);
            p.packet_size_max = Some(limits.packet_size_max);
            p.topic_alias_maximum =
                (limits.topic_alias_maximum > 0).then_some(limits.topic_alias_maximum);
            p.response_information = response_information;
            // [MQTT-4.12.0-5], [MQTT-4.12.0-6]
            p.authentication_method = connect.properties.authentication_method;
            p.authentication_data = connect.properties.authentication_data;
        }
        connack
    }

    /// Where the client shall let answers go to, if it asks [MQTT-3.1.2-28] and we are told.
    fn response_information(&self, connect: &Connect<'_>, client_id: &str) -> Option<String> {
        if connect.properties.request_response_information != Some(true) {
            return None;
        }
        let text = self.shared.response_information.as_deref()?;
        let text = text.replace("{client_id}", client_id);
        // Nobody can publish where an identifier with wildcards has gone in.
        tacho_codec::is_valid_topic_name(&text).then_some(text)
    }
}

/// The client's Maximum Packet Size.
fn packet_size_max(connect: &Connect<'_>) -> u32 {
    connect.properties.packet_size_max.unwrap_or(u32::MAX)
}

/// Whether a CONNECT that cannot be decoded gets a CONNACK before 5.0: only where one of the codes
/// says why [MQTT-3.1.1: 3.2.2-6], and never where the packet is malformed [MQTT-3.1.1: 3.1.4-1].
fn has_v3_code(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::UNSUPPORTED_PROTOCOL_VERSION | ReasonCode::CLIENT_IDENTIFIER_NOT_VALID
    )
}

fn agree(connect: &Connect<'_>, limits: &Limits) -> Agreed {
    let v5 = connect.version == Version::V5;
    let asked_s = if v5 {
        connect.properties.session_expiry_s.unwrap_or(0)
    } else if connect.clean_start {
        0
    } else {
        u32::MAX
    };
    // Only a 5.0 client can be told of another keep-alive.
    let max_s = limits.keep_alive_max_s;
    let lower = v5 && max_s > 0 && (connect.keep_alive_s == 0 || connect.keep_alive_s > max_s);
    Agreed {
        keep_alive_s: if lower { max_s } else { connect.keep_alive_s },
        session_expiry_s: asked_s.min(limits.session_expiry_max_s),
    }
}

fn will_state(will: &Will<'_>, source: Source) -> WillState<Copy> {
    debug_assert!(will.qos <= QoS::ExactlyOnce);
    WillState {
        message: Copy { message: Body::Here(Message::from_will(will, source)), group: NO_GROUP },
        delay_s: will.properties.delay_s.unwrap_or(0),
    }
}
