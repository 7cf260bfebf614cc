//! A client of 5.0 with a user: it reads and answers whatever comes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tacho_codec::{
    AckKind, Connect, ConnectProperties, Packet, PacketId, Publish, QoS, ReasonCode,
    RetainHandling, Subscribe, SubscribeFilter, SubscribeOptions, Unsubscribe, UserProperties,
    Version, Will, WillProperties,
};
use tacho_net::sim::Peer;

use super::judge::Moment;
use super::policy::{FILTERS, TOPICS, USERS, word};
use crate::wire::{self, Event, encode};

/// A connection.
pub(super) struct Link {
    pub(super) peer: Peer,
    /// CONNECT was sent then.
    pub(super) since: Moment,
    pub(super) is_online: bool,
    /// The number of the password in CONNECT; none of those that there are.
    pub(super) password: Option<u8>,
    /// The message that is the will.
    pub(super) will: Option<usize>,
    /// Connections before it were not over for the broker, and may take the session from it.
    pub(super) has_rivals: bool,
    /// The broker has said why it closes.
    pub(super) was_dismissed: bool,
    buffer: Vec<u8>,
}

/// A SUBSCRIBE or UNSUBSCRIBE without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) filter: usize,
    pub(super) sent: Moment,
    pub(super) subscribes: bool,
}

/// A subscription that was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) asked: Moment,
    pub(super) granted: Moment,
}

pub(super) struct Client {
    pub(super) name: String,
    pub(super) user: usize,
    /// That has its session.
    pub(super) shard: usize,
    pub(super) link: Option<Link>,
    /// Connections that were left.
    pub(super) abandoned: Vec<Peer>,
    /// It has had a CONNACK, and so a session for ever.
    pub(super) has_session: bool,
    /// PUBLISH without PUBACK, by packet identifier.
    pub(super) unacked: BTreeMap<u16, usize>,
    pub(super) requests: BTreeMap<u16, Request>,
    /// Granted, and not given up since.
    pub(super) spans: BTreeMap<usize, Span>,
    /// Asked for at some time.
    pub(super) ever: BTreeSet<usize>,
    /// Messages that came.
    pub(super) got: HashSet<usize>,
    next_id: u16,
}

/// A message as its packet has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) number: usize,
    pub(super) topic: usize,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

impl Client {
    pub(super) fn new(number: usize, user: usize, shards: usize) -> Self {
        let name = format!("{}-{number}", USERS[user]);
        Self {
            shard: tacho_topic::owner_shard(0, name.as_bytes(), shards),
            name,
            user,
            link: None,
            abandoned: Vec::new(),
            has_session: false,
            unacked: BTreeMap::new(),
            requests: BTreeMap::new(),
            spans: BTreeMap::new(),
            ever: BTreeSet::new(),
            got: HashSet::new(),
            next_id: 0,
        }
    }

    pub(super) fn is_online(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_online)
    }

    pub(super) fn connect(
        &mut self,
        peer: Peer,
        since: Moment,
        password: Option<u8>,
        will: Option<(Content, u32)>,
    ) {
        let secret = password.map_or_else(|| "wrong".to_owned(), |number| word(self.user, number));
        let payload = will.map(|(content, _)| wire::payload(content.number as u32, 4));
        let connect = Connect {
            version: Version::V5,
            clean_start: false,
            keep_alive_s: 0,
            client_id: &self.name,
            username: Some(USERS[self.user]),
            password: Some(secret.as_bytes()),
            will: will.map(|(content, delay_s)| Will {
                topic: TOPICS[content.topic],
                payload: payload.as_deref().unwrap_or_default(),
                qos: content.qos,
                retain: content.retain,
                properties: WillProperties { delay_s: Some(delay_s), ..Default::default() },
            }),
            properties: ConnectProperties {
                session_expiry_s: Some(u32::MAX),
                ..ConnectProperties::default()
            },
        };
        peer.set_window(1 << 20);
        peer.send(&encode(&Packet::Connect(connect), Version::V5));
        self.requests.clear();
        self.abandoned.retain(|peer| !peer.is_forgotten());
        self.link = Some(Link {
            peer,
            since,
            is_online: false,
            password,
            will: will.map(|(content, _)| content.number),
            has_rivals: !self.abandoned.is_empty(),
            was_dismissed: false,
            buffer: Vec::new(),
        });
    }

    pub(super) fn send(&self, packet: &Packet<'_>) {
        if let Some(link) = &self.link {
            link.peer.send(&encode(packet, Version::V5));
        }
    }

    /// Sends a message, which takes an identifier if it is to be acknowledged.
    pub(super) fn publish(&mut self, content: Content) {
        let packet_id = (content.qos != QoS::AtMostOnce).then(|| self.next_id());
        if let Some(packet_id) = packet_id {
            self.unacked.insert(packet_id.get(), content.number);
        }
        self.send_publish(content, packet_id, false);
    }

    pub(super) fn send_publish(&self, content: Content, packet_id: Option<PacketId>, dup: bool) {
        let payload = wire::payload(content.number as u32, 8);
        let (topic, qos, retain) = (TOPICS[content.topic], content.qos, content.retain);
        let payload = payload.as_slice();
        self.send(&Packet::Publish(Publish {
            topic,
            qos,
            retain,
            packet_id,
            dup,
            payload,
            ..Publish::default()
        }));
    }

    pub(super) fn subscribe(&mut self, filter: usize, sent: Moment) {
        let packet_id = self.next_id();
        self.requests.insert(packet_id.get(), Request { filter, sent, subscribes: true });
        self.ever.insert(filter);
        let options = SubscribeOptions {
            retain_handling: RetainHandling::Always,
            ..SubscribeOptions::new(QoS::AtLeastOnce)
        };
        self.send(&Packet::Subscribe(Subscribe {
            packet_id,
            subscription_id: Some(filter as u32 + 1),
            user_properties: UserProperties::EMPTY,
            filters: vec![SubscribeFilter { filter: FILTERS[filter], options }],
        }));
    }

    pub(super) fn unsubscribe(&mut self, filter: usize) {
        let packet_id = self.next_id();
        self.spans.remove(&filter);
        self.requests.insert(packet_id.get(), Request { filter, sent: 0, subscribes: false });
        self.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user_properties: UserProperties::EMPTY,
            filters: vec![FILTERS[filter]],
        }));
    }

    /// Whether an UNSUBSCRIBE has no answer yet. It was sent after every SUBSCRIBE that is answered
    /// before it (seeds 1381 and 1572).
    pub(super) fn gives_up(&self, filter: usize) -> bool {
        self.requests.values().any(|request| !request.subscribes && request.filter == filter)
    }

    pub(super) fn acknowledge(&self, packet_id: PacketId) {
        if let Some(link) = &self.link {
            link.peer.send(&wire::ack(
                Version::V5,
                AckKind::PubAck,
                packet_id,
                ReasonCode::SUCCESS,
            ));
        }
    }

    /// What has come, in order.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        let Some(link) = &mut self.link else { return Vec::new() };
        link.buffer.extend(link.peer.receive(usize::MAX));
        let mut events = Vec::new();
        while let Some((event, len)) = wire::decode(&link.buffer, Version::V5) {
            link.buffer.drain(..len);
            events.push(event);
        }
        events
    }

    fn next_id(&mut self) -> PacketId {
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            let id = PacketId::new(self.next_id);
            let is_used = |id: &PacketId| {
                self.unacked.contains_key(&id.get()) || self.requests.contains_key(&id.get())
            };
            if let Some(id) = id.filter(|id| !is_used(id)) {
                return id;
            }
        }
    }
}
