//! Entries of traces: packets both ways, and decisions.

use std::net::SocketAddr;
use std::sync::Arc;

use tacho_access::looks_like_token;
use tacho_codec::{Ack, AckKind, ConnAck, Connect, Packet, Publish, ReasonCode};
use tacho_net::ConnId;
use tacho_session::DropReason;

use super::Opening;
use crate::config::TokenPlace;
use crate::ending::Ending;
use crate::keys::SessionSlot;
use crate::message::Message;
use crate::shard::admission::HoldReason;
use crate::shard::connections::Connection;
use crate::shard::routing::{Destinations, LeavesBy};
use crate::shard::{Net, Shard};
use crate::subscription::{Scope, Target};
use crate::trace::{
    NAME_CHARS_MAX, PayloadShape, TraceBits, TraceEntry, TraceKind, TraceText, escaped,
};

/// The client that an entry is about.
#[derive(Clone, Copy)]
struct About<'a> {
    client_id: Option<&'a str>,
    user: Option<&'a str>,
    address: Option<SocketAddr>,
}

/// Makes what an entry says, in the form of one trace.
type EntryText<'a> = &'a dyn Fn(&PayloadShape) -> TraceText;

/// Packets.
impl Shard {
    /// A PUBLISH from a client.
    #[inline]
    pub(in crate::shard) fn trace_publish_in(
        &self,
        net: &Net,
        slot: SessionSlot,
        topic: &str,
        publish: &Publish<'_>,
    ) {
        if self.traces.are_on() {
            self.note_publish_in(net, slot, topic, publish);
        }
    }

    #[cold]
    fn note_publish_in(&self, net: &Net, slot: SessionSlot, topic: &str, publish: &Publish<'_>) {
        self.count_publish(slot, publish.payload.len());
        let bits = self.traces_of(net, slot);
        if bits != 0 {
            let bits = bits & self.traces.set.of_topic(topic);
            self.note_publish(net, slot, (TraceKind::In, bits), topic, publish);
        }
    }

    /// A PUBLISH to a client.
    #[inline]
    pub(in crate::shard) fn trace_publish_out(
        &self,
        net: &Net,
        slot: SessionSlot,
        topic: &Arc<str>,
        publish: &Publish<'_>,
    ) {
        if self.traces.are_on() {
            self.note_publish_out(net, slot, topic, publish);
        }
    }

    #[cold]
    fn note_publish_out(
        &self,
        net: &Net,
        slot: SessionSlot,
        topic: &Arc<str>,
        publish: &Publish<'_>,
    ) {
        if !self.traces.topics.is_empty() {
            let (_, filters) = self.traces.of_topic(topic);
            self.traces.topics.count_out(filters, publish.payload.len());
        }
        let bits = self.traces_of_message(net, slot, topic);
        if bits != 0 {
            self.note_publish(net, slot, (TraceKind::Out, bits), topic, publish);
        }
    }

    #[cold]
    fn note_publish(
        &self,
        net: &Net,
        slot: SessionSlot,
        (kind, bits): (TraceKind, TraceBits),
        topic: &str,
        publish: &Publish<'_>,
    ) {
        let words = |shape: &PayloadShape| TraceText::of_publish(publish, topic, shape);
        self.note_of(net, slot, (kind, bits), &words);
    }

    /// An acknowledgement of a PUBLISH.
    #[inline]
    pub(in crate::shard) fn trace_ack(
        &self,
        net: &Net,
        slot: SessionSlot,
        direction: TraceKind,
        (kind, ack): (AckKind, &Ack<'_>),
    ) {
        if self.traces.are_on() {
            self.note_ack(net, slot, direction, (kind, ack));
        }
    }

    #[cold]
    fn note_ack(
        &self,
        net: &Net,
        slot: SessionSlot,
        direction: TraceKind,
        (kind, ack): (AckKind, &Ack<'_>),
    ) {
        let bits = self.traces_of(net, slot) & self.traces.set.without_topic();
        if bits != 0 {
            self.note_of(net, slot, (direction, bits), &|_| TraceText::of_ack(kind, ack));
        }
    }

    /// Another packet from or to a client.
    #[inline]
    pub(in crate::shard) fn trace_packet(
        &self,
        net: &Net,
        slot: SessionSlot,
        direction: TraceKind,
        packet: &Packet<'_>,
    ) {
        if self.traces.are_on() {
            let bits = self.traces_of(net, slot) & self.traces.set.without_topic();
            if bits != 0 {
                let words = |shape: &PayloadShape| TraceText::of_packet(packet, shape);
                self.note_of(net, slot, (direction, bits), &words);
            }
        }
    }
}

/// Clients that connect.
impl Shard {
    /// The CONNECT of a client, as far as it says itself. The same one may come here again.
    #[inline]
    pub(in crate::shard) fn trace_connect(&self, net: &Net, conn: ConnId, connect: &Connect<'_>) {
        if self.traces.are_on() {
            self.note_connect(net, conn, connect);
        }
    }

    #[cold]
    fn note_connect(&self, net: &Net, conn: ConnId, connect: &Connect<'_>) {
        if self.traces.of_opening(conn, |_| ()).is_some() {
            return;
        }
        let (set, user) = (&self.traces.set, self.shown_username(connect));
        let address = net.peer_addr(conn);
        let names = (connect.client_id, user);
        let bits = set.bits(|filter| filter.follows(names, || address.map(|a| a.ip())));
        let bits = bits & set.without_topic();
        if bits == 0 {
            return;
        }
        let opening = Opening {
            conn,
            version: set.version,
            bits,
            client_id: connect.client_id.into(),
            user: user.map(Into::into),
        };
        self.traces.openings.borrow_mut().insert(conn.index() as u32, opening);
        let about = About { client_id: Some(connect.client_id), user, address };
        let words = |shape: &PayloadShape| TraceText::of_connect(connect, user, shape);
        self.note(net, (TraceKind::In, bits), about, &words);
    }

    /// A client is connected to its session: its CONNECT, unless that was told before, and CONNACK.
    #[inline]
    pub(in crate::shard) fn trace_opened(
        &self,
        net: &Net,
        conn: ConnId,
        slot: SessionSlot,
        packets: (&Connect<'_>, &ConnAck<'_>),
    ) {
        if self.traces.are_on() {
            self.note_opened(net, conn, slot, packets);
        }
    }

    #[cold]
    fn note_opened(
        &self,
        net: &Net,
        conn: ConnId,
        slot: SessionSlot,
        (connect, connack): (&Connect<'_>, &ConnAck<'_>),
    ) {
        let told = self.traces.of_opening(conn, |opening| opening.bits).unwrap_or(0);
        self.traces.connection_gone(conn);
        let bits = self.traces_of(net, slot) & self.traces.set.without_topic();
        let user = self.shown_username(connect);
        let words = |shape: &PayloadShape| TraceText::of_connect(connect, user, shape);
        self.note_of(net, slot, (TraceKind::In, bits & !told), &words);
        let accepted = |_: &PayloadShape| {
            TraceText::of_words(match self.sessions[slot].access.user_name() {
                None => "accepted without a user".to_owned(),
                Some(user) => format!("accepted as the user {}", escaped(user, NAME_CHARS_MAX)),
            })
        };
        self.note_of(net, slot, (TraceKind::Auth, bits), &accepted);
        let connack = Packet::ConnAck(connack.clone());
        let words = |shape: &PayloadShape| TraceText::of_packet(&connack, shape);
        self.note_of(net, slot, (TraceKind::Out, bits), &words);
    }

    /// A client that is not connected is refused, and why.
    pub(in crate::shard) fn trace_refusal(&self, net: &Net, conn: ConnId, why: &str) {
        if self.traces.are_on() {
            let words = |_: &PayloadShape| TraceText::of_words(format!("refused: {why}"));
            self.note_of_conn(net, conn, TraceKind::Auth, &words);
        }
    }

    /// The CONNACK that refuses a client.
    pub(in crate::shard) fn trace_refused(&self, net: &Net, conn: ConnId, reason: ReasonCode) {
        if self.traces.are_on() {
            let packet = Packet::ConnAck(ConnAck::refusal(reason));
            let words = |shape: &PayloadShape| TraceText::of_packet(&packet, shape);
            self.note_of_conn(net, conn, TraceKind::Out, &words);
        }
    }

    /// An AUTH from or to a client, connected or not.
    pub(in crate::shard) fn trace_auth(
        &self,
        net: &Net,
        conn: ConnId,
        direction: TraceKind,
        packet: &Packet<'_>,
    ) {
        if self.traces.are_on() {
            let words = |shape: &PayloadShape| TraceText::of_packet(packet, shape);
            self.note_of_conn(net, conn, direction, &words);
        }
    }

    /// The user name of a CONNECT, unless it is a token.
    fn shown_username<'a>(&self, connect: &Connect<'a>) -> Option<&'a str> {
        let name = connect.username?;
        let jwt = self.shared.access.settings.jwt.as_ref();
        let may_be_token = jwt.is_some_and(|jwt| jwt.from == TokenPlace::Username);
        (!may_be_token || !looks_like_token(name)).then_some(name)
    }
}

/// Decisions.
impl Shard {
    /// Whether an operator follows the client of a session.
    #[inline]
    pub(in crate::shard) fn is_traced(&self, net: &Net, slot: SessionSlot) -> bool {
        self.traces.are_on() && self.traces_of(net, slot) != 0
    }

    /// Where a client's message goes.
    #[inline]
    pub(in crate::shard) fn trace_route(
        &self,
        net: &Net,
        slot: SessionSlot,
        topic: &Arc<str>,
        to: &Destinations,
    ) {
        if self.traces.are_on() {
            self.note_route(net, slot, topic, to);
        }
    }

    #[cold]
    fn note_route(&self, net: &Net, slot: SessionSlot, topic: &Arc<str>, to: &Destinations) {
        let bits = self.traces_of_message(net, slot, topic);
        if bits != 0 {
            let words = |_: &PayloadShape| TraceText::about(topic, self.destinations_shown(to));
            self.note_of(net, slot, (TraceKind::Route, bits), &words);
        }
    }

    fn destinations_shown(&self, to: &Destinations) -> String {
        let mut parts = Vec::new();
        let is_link = |target: &&Target| matches!(target.scope, Scope::Bridge);
        match to.local.len() - to.local.iter().filter(is_link).count() {
            0 => {}
            1 => parts.push(format!("1 session of shard {}", self.id)),
            count => parts.push(format!("{count} sessions of shard {}", self.id)),
        }
        let remote: Vec<String> = to.remote.iter().map(|shard| shard.to_string()).collect();
        if !remote.is_empty() {
            parts.push(format!("sessions of shards {}", remote.join(", ")));
        }
        match to.groups.as_ref().map_or(0, |groups| groups.len()) {
            0 => {}
            1 => parts.push("a shared group".to_owned()),
            count => parts.push(format!("{count} shared groups")),
        }
        match to.bridges {
            LeavesBy::None => {}
            LeavesBy::One(_) => parts.push("a bridge".to_owned()),
            LeavesBy::Several => parts.push("bridges".to_owned()),
        }
        match parts.is_empty() {
            true => "to no receiver: no subscription matches".to_owned(),
            false => format!("to {}", parts.join(", ")),
        }
    }

    /// Something about a message of this topic is decided for a session.
    #[cold]
    pub(in crate::shard) fn trace_message(
        &self,
        net: &Net,
        slot: SessionSlot,
        (kind, topic): (TraceKind, &Arc<str>),
        text: &str,
    ) {
        if self.traces.are_on() {
            let bits = self.traces_of_message(net, slot, topic);
            let words = |_: &PayloadShape| TraceText::about(topic, text.to_owned());
            self.note_of(net, slot, (kind, bits), &words);
        }
    }

    /// A message is not sent to the client that it was for.
    #[cold]
    pub(in crate::shard) fn trace_unsent(
        &self,
        net: &Net,
        slot: SessionSlot,
        message: &Message,
        why: &str,
    ) {
        let topic = &message.header().topic;
        self.trace_message(net, slot, (TraceKind::Drop, topic), &format!("dropped: {why}"));
    }

    /// The message that a session was offered waits in its queue.
    #[inline]
    pub(in crate::shard) fn trace_queued(&self, net: &Net, slot: SessionSlot) {
        if self.traces.are_on() {
            self.note_offer(net, slot, TraceKind::Queue, || self.queue_shown(slot));
        }
    }

    fn queue_shown(&self, slot: SessionSlot) -> String {
        let session = &self.sessions[slot];
        let machine = &session.machine;
        let (queue, inflight) = (machine.queue_len(), machine.inflight_len());
        let away = if session.connection().is_none() { "; the client is away" } else { "" };
        let window = machine.window();
        format!("waits: {queue} in the queue, {inflight} of {window} in flight{away}")
    }

    /// The message that a session was offered is dropped.
    pub(in crate::shard) fn trace_dropped(&self, net: &Net, slot: SessionSlot, why: DropReason) {
        let why = match why {
            DropReason::Offline => "QoS 0, and the client is away",
            DropReason::QueueFull => "the queue of the session is full",
            DropReason::QueueBytesFull => "the queue of the session is full in bytes",
            DropReason::NoCredit => "QoS 0, and the client does not read what waits for it",
            DropReason::Expired => "the message has expired",
            DropReason::PacketTooLarge => "the message is larger than the client accepts",
            DropReason::Denied => "the access rules do not allow it any more",
        };
        self.trace_shed(net, slot, why);
    }

    /// The same for another reason.
    pub(in crate::shard) fn trace_shed(&self, net: &Net, slot: SessionSlot, why: &str) {
        if self.traces.are_on() {
            self.note_offer(net, slot, TraceKind::Drop, || format!("dropped: {why}"));
        }
    }

    #[cold]
    fn note_offer(
        &self,
        net: &Net,
        slot: SessionSlot,
        kind: TraceKind,
        text: impl FnOnce() -> String,
    ) {
        let topic = self.traces.offered.borrow_mut().take();
        if let Some(topic) = topic {
            if kind == TraceKind::Drop {
                let (_, filters) = self.traces.of_topic(&topic);
                self.traces.topics.count_dropped(filters);
            }
            self.trace_message(net, slot, (kind, &topic), &text());
        }
    }

    /// The client of a session may or may not do something.
    #[cold]
    pub(in crate::shard) fn trace_denied(
        &self,
        net: &Net,
        slot: SessionSlot,
        (action, topic): (&str, &str),
        why: &str,
    ) {
        if !self.traces.are_on() {
            return;
        }
        let set = &self.traces.set;
        let of_topic = if topic.is_empty() { set.without_topic() } else { set.of_topic(topic) };
        let bits = self.traces_of(net, slot) & of_topic;
        let words = |_: &PayloadShape| {
            let text = format!("may not {action}: {why}");
            match topic.is_empty() {
                true => TraceText::of_words(text),
                false => TraceText::about(topic, text),
            }
        };
        self.note_of(net, slot, (TraceKind::Auth, bits), &words);
    }

    /// The client of a connection is not read for a while.
    #[cold]
    pub(in crate::shard) fn trace_held(&self, net: &Net, conn: ConnId, why: HoldReason) {
        if self.traces.are_on() {
            let why = match why {
                HoldReason::Backlog => "receivers or other shards are behind",
                HoldReason::Budget => "there is no room for its message, or the journal takes none",
                HoldReason::Overload => "the broker sheds load",
                HoldReason::Rate => "it publishes more than it may",
            };
            let words =
                |_: &PayloadShape| TraceText::of_words(format!("not read for a while: {why}"));
            self.note_of_conn(net, conn, TraceKind::Hold, &words);
        }
    }

    /// The connection of a session's client ends.
    pub(in crate::shard) fn trace_ended(&self, net: &Net, slot: SessionSlot, ending: &Ending) {
        if self.traces.are_on() {
            let bits = self.traces_of(net, slot) & self.traces.set.without_topic();
            let words = |_: &PayloadShape| {
                TraceText::of_words(escaped(&ending.to_string(), NAME_CHARS_MAX))
            };
            self.note_of(net, slot, (TraceKind::End, bits), &words);
        }
    }
}

/// What they have in common.
impl Shard {
    /// About a connection, whether its client is connected or not.
    #[cold]
    fn note_of_conn(&self, net: &Net, conn: ConnId, kind: TraceKind, words: EntryText<'_>) {
        if let Connection::Active { session, .. } = self.connections.get(conn) {
            let bits = self.traces_of(net, session) & self.traces.set.without_topic();
            return self.note_of(net, session, (kind, bits), words);
        }
        self.traces.of_opening(conn, |opening| {
            let about = About {
                client_id: Some(&opening.client_id),
                user: opening.user.as_deref(),
                address: net.peer_addr(conn),
            };
            self.note(net, (kind, opening.bits), about, words);
        });
    }

    /// About the client of a session.
    #[cold]
    fn note_of(
        &self,
        net: &Net,
        slot: SessionSlot,
        to: (TraceKind, TraceBits),
        words: EntryText<'_>,
    ) {
        if to.1 == 0 {
            return;
        }
        let session = &self.sessions[slot];
        let about = About {
            client_id: Some(&session.key().client_id),
            user: session.access.user_name(),
            address: session.connection().and_then(|conn| net.peer_addr(conn)),
        };
        self.note(net, to, about, words);
    }

    fn note(
        &self,
        net: &Net,
        (kind, bits): (TraceKind, TraceBits),
        about: About<'_>,
        words: EntryText<'_>,
    ) {
        let time_us = self.shared.access.unix_offset.unix_us(net.now_ns());
        for trace in self.traces.set.iter(bits) {
            let name = |name: &str| escaped(name, NAME_CHARS_MAX);
            trace.tell(TraceEntry {
                kind,
                time_us,
                client_id: about.client_id.map(name),
                user: about.user.map(name),
                address: about.address,
                text: words(trace.shape()),
                missed: 0,
            });
        }
    }
}
