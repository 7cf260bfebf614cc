//! The promised and the delivered messages of one direction.

use std::collections::{HashMap, HashSet, VecDeque};

use tacho_codec::{AckKind, PacketId, QoS, ReasonCode};
use tacho_session::Payload;

pub(crate) const TOPICS: [&str; 3] = ["a", "sensors/one", "sensors/two"];

/// A message: a number that grows with every message of its direction, and its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Msg {
    pub(crate) id: u32,
    pub(crate) topic: usize,
}

impl Payload for Msg {}

struct Fate {
    qos: QoS,
    /// The promise is void: expired, refused, too large, session dropped.
    excused: bool,
    /// Given to another session; after a crash it may be back, but not in its old place.
    given_away: bool,
    deliveries: u32,
}

/// The end-to-end contract of one direction.
#[derive(Default)]
pub(crate) struct Ledger {
    fates: HashMap<u32, Fate>,
    newest: HashMap<(usize, QoS), u32>,
}

impl Ledger {
    /// A message that is promised again was lost before it was acknowledged.
    pub(crate) fn promised(&mut self, msg: Msg, qos: QoS, excused: bool) {
        let fate = self.fates.entry(msg.id).or_insert(Fate {
            qos,
            excused,
            given_away: false,
            deliveries: 0,
        });
        fate.excused |= excused;
    }

    pub(crate) fn given_away(&mut self, msg: Msg) {
        let fate = self.fates.get_mut(&msg.id).expect("a known message");
        (fate.excused, fate.given_away) = (true, true);
    }

    /// The receiver has crashed and knows only these.
    pub(crate) fn remember(&mut self, delivered: impl Iterator<Item = (Msg, QoS)>) {
        self.fates.values_mut().for_each(|fate| fate.deliveries = 0);
        self.newest.clear();
        delivered.for_each(|(msg, qos)| self.delivered(msg, qos));
    }

    /// The session was dropped: undelivered messages need not arrive.
    pub(crate) fn excuse_all(&mut self) {
        self.fates.values_mut().for_each(|fate| fate.excused = true);
    }

    pub(crate) fn delivered(&mut self, msg: Msg, qos: QoS) {
        let fate = self.fates.get_mut(&msg.id).unwrap_or_else(|| panic!("{msg:?} is unexpected"));
        assert_eq!(fate.qos, qos, "{msg:?} changed its QoS");
        fate.deliveries += 1;
        assert!(qos == QoS::AtLeastOnce || fate.deliveries == 1, "{msg:?} {qos:?} came twice");
        if fate.deliveries == 1 && !fate.given_away {
            let newest = self.newest.entry((msg.topic, qos)).or_insert(0);
            assert!(msg.id >= *newest, "{msg:?} {qos:?} came after {newest}");
            *newest = msg.id;
        }
    }

    pub(crate) fn check_complete(&self) {
        for (id, fate) in &self.fates {
            let owed = fate.qos != QoS::AtMostOnce && !fate.excused;
            assert!(!owed || fate.deliveries > 0, "message {id} {:?} was lost", fate.qos);
        }
    }

    pub(crate) fn delivered_len(&self) -> usize {
        self.fates.values().filter(|fate| fate.deliveries > 0).count()
    }
}

/// The rules for PUBLISH and PUBREL that one side sends.
#[derive(Default)]
pub(crate) struct SenderRules {
    receive_maximum: usize,
    /// The message of each identifier, and whether PUBREC arrived. Survives connections.
    in_flight: HashMap<PacketId, (u32, bool)>,
    /// Identifiers that use credit on this connection.
    outstanding: HashSet<PacketId>,
    sent_last: Option<u32>,
    pubrecs: VecDeque<PacketId>,
}

impl SenderRules {
    pub(crate) fn connect(&mut self, receive_maximum: u16, session_present: bool) {
        self.receive_maximum = usize::from(receive_maximum);
        self.outstanding.clear();
        self.sent_last = None;
        self.pubrecs.clear();
        if !session_present {
            self.in_flight.clear();
        }
    }

    /// The sender has crashed and knows only these: identifier, message, whether released.
    pub(crate) fn remember(&mut self, in_flight: impl Iterator<Item = (PacketId, u32, bool)>) {
        self.in_flight =
            in_flight.map(|(id, message, released)| (id, (message, released))).collect();
    }

    pub(crate) fn publish(&mut self, msg: Msg, packet_id: Option<PacketId>, dup: bool) {
        let Some(packet_id) = packet_id else {
            assert!(!dup, "{msg:?} of QoS 0 has DUP");
            return;
        };
        match self.in_flight.insert(packet_id, (msg.id, false)) {
            Some((id, released)) => {
                assert_eq!(id, msg.id, "{packet_id} is used again while in flight");
                assert!(!released, "{msg:?} is sent again after PUBREC");
                assert!(dup, "{msg:?} is repeated without DUP");
            }
            None => assert!(!dup, "{msg:?} has DUP the first time"),
        }
        let in_order = self.sent_last.is_none_or(|last| last < msg.id);
        assert!(in_order, "{msg:?} is sent after {:?}", self.sent_last);
        self.sent_last = Some(msg.id);
        self.outstanding.insert(packet_id);
        assert!(self.outstanding.len() <= self.receive_maximum, "receive maximum exceeded");
    }

    pub(crate) fn abandoned(&mut self, packet_id: PacketId) {
        self.in_flight.remove(&packet_id);
        self.outstanding.remove(&packet_id);
    }

    pub(crate) fn pubrel(&mut self, packet_id: PacketId, reason: ReasonCode) {
        if reason.is_error() {
            return;
        }
        let known = self.in_flight.get(&packet_id);
        assert!(known.is_some_and(|(_, released)| *released), "PUBREL {packet_id} before PUBREC");
        if self.pubrecs.contains(&packet_id) {
            assert_eq!(self.pubrecs.pop_front(), Some(packet_id), "PUBREL out of order");
        }
    }

    pub(crate) fn ack(&mut self, kind: AckKind, packet_id: PacketId, reason: ReasonCode) {
        if kind == AckKind::PubRec && !reason.is_error() {
            self.pubrecs.push_back(packet_id);
            if let Some((_, released)) = self.in_flight.get_mut(&packet_id) {
                *released = true;
            }
            return;
        }
        self.in_flight.remove(&packet_id);
        self.outstanding.remove(&packet_id);
    }
}

/// The rules for the acknowledgements that one side sends.
#[derive(Default)]
pub(crate) struct ReceiverRules {
    expected: VecDeque<(AckKind, PacketId)>,
}

impl ReceiverRules {
    pub(crate) fn connect(&mut self) {
        self.expected.clear();
    }

    pub(crate) fn received(&mut self, qos: QoS, packet_id: Option<PacketId>) {
        let kind = if qos == QoS::AtLeastOnce { AckKind::PubAck } else { AckKind::PubRec };
        self.expected.extend(packet_id.map(|packet_id| (kind, packet_id)));
    }

    pub(crate) fn received_pubrel(&mut self, packet_id: PacketId) {
        self.expected.push_back((AckKind::PubComp, packet_id));
    }

    pub(crate) fn ack(&mut self, kind: AckKind, packet_id: PacketId) {
        assert_eq!(self.expected.pop_front(), Some((kind, packet_id)), "acknowledgement order");
    }

    pub(crate) fn owed_len(&self) -> usize {
        self.expected.len()
    }
}
