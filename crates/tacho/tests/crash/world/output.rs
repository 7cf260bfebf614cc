//! Packets that clients send.

use tacho_codec::{AckKind, QoS};
use tacho_session::Transmit;
use tacho_session::client::Publish;

use super::{UNSETTLED_MAX, WARDEN, World};
use crate::cast::{WILL, draw_topic};
use crate::client::Request;
use crate::ledger::Message;
use crate::wire::{self, Opening, WillWish};

/// SUBSCRIBEs and UNSUBSCRIBEs of one client in flight.
const REQUESTS_MAX: usize = 4;

impl World {
    /// Connects if it is time.
    pub(super) fn come(&mut self, client: usize) {
        let now_ms = self.ledger.now_ms;
        let known = &mut self.clients[client];
        if known.away_until_ms == u64::MAX && !self.ledger.wills.is_expected(client) {
            known.away_until_ms = now_ms;
        }
        // A client that waits for its will keeps waiting during an audit.
        let is_time =
            known.away_until_ms <= now_ms || self.is_calm && known.away_until_ms != u64::MAX;
        let awaits_will = self.is_calm && self.ledger.wills.is_expected(client);
        if is_time && !awaits_will && (self.is_ready || client == WARDEN) {
            self.dial(client);
        }
    }

    fn dial(&mut self, client: usize) {
        let known = &self.clients[client];
        let anew = known.role.fickle && known.has_session && !self.is_calm;
        if anew && self.rng.percent(30) {
            let viewer = self.clients[client].viewer();
            self.clients[client].wants_clean = true;
            self.clients[client].has_session = false;
            self.ledger.session_may_end(viewer);
        }
        let now_ms = self.now_ms();
        self.ledger.wills.connecting(client, now_ms);
        let will = self.clients[client].role.mortal.then(|| self.make_will(client));
        let clean_start = self.clients[client].wants_clean;
        let opening = Opening { clean_start, will };
        if !self.clients[client].dial(self.place.port, opening)
            && let Some(will) = will
        {
            self.ledger.wills.never_sent(will.id);
        }
    }

    fn make_will(&mut self, client: usize) -> WillWish {
        let qos = if self.rng.percent(70) { QoS::ExactlyOnce } else { QoS::AtLeastOnce };
        let delay_s = self.rng.below(3) as u32;
        let mut message = Message::new(client, WILL, qos);
        message.is_will = true;
        let id = self.ledger.published(message);
        self.ledger.sent(id);
        self.ledger.wills.armed(id, client, delay_s, qos == QoS::ExactlyOnce);
        WillWish { id, topic: WILL, qos, delay_s }
    }

    pub(super) fn publish(&mut self, client: usize) {
        if self.ledger.unsettled() > UNSETTLED_MAX || !self.clients[client].machine.can_publish() {
            return;
        }
        let (topic, retain) = draw_topic(&mut self.rng);
        let qos = match self.rng.below(20) {
            0 => QoS::AtMostOnce,
            1..9 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        };
        let len = match self.rng.below(100) {
            0..15 if retain => 0,
            0..96 => self.rng.between(wire::PAYLOAD_LEN_MIN as u64, 200),
            96..99 => self.rng.between(1_000, 5_000),
            _ => self.rng.between(5_000, 40_000),
        };
        let mut message = Message::new(client, topic, qos);
        (message.retain, message.len) = (retain, len as usize);
        let id = self.ledger.published(message);
        let now_ns = self.now_ns();
        if let Publish::Send(transmit) = self.clients[client].machine.publish(now_ns, qos, id) {
            self.transmit(client, transmit);
        }
    }

    /// Writes the packets that the client's state machine has ready.
    pub(super) fn answer(&mut self, client: usize) {
        if !self.clients[client].is_online() {
            return;
        }
        let now_ns = self.now_ns();
        while let Some(transmit) = self.clients[client].machine.poll_transmit(now_ns) {
            self.transmit(client, transmit);
        }
    }

    fn transmit(&mut self, client: usize, transmit: Transmit<u64>) {
        let version = self.clients[client].role.version;
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                let id = delivery.message;
                // Only without acknowledgements do messages get this old.
                let Some(message) = self.ledger.message(id).copied() else { return };
                self.ledger.sent(id);
                if let (QoS::ExactlyOnce, Some(packet_id)) = (delivery.qos, packet_id) {
                    self.clients[client].unreceived.insert(packet_id, id);
                }
                let flags = (message.qos, message.retain, dup);
                let payload = wire::payload(id, message.len);
                wire::publish(version, message.topic, flags, packet_id, &payload)
            }
            Transmit::Ack { kind, packet_id, reason } => {
                wire::ack(version, kind, packet_id, reason)
            }
            Transmit::PubRel { packet_id, reason } => {
                wire::ack(version, AckKind::PubRel, packet_id, reason)
            }
        };
        self.clients[client].write(&bytes);
    }

    /// Subscribes to the permanent filters that are not granted yet.
    pub(super) fn subscribe_wishes(&mut self, client: usize) {
        let known = &self.clients[client];
        let wishes = known.role.wishes.iter().copied();
        let open: Vec<_> =
            wishes.filter(|(filter, _)| !known.subscribed.contains(filter)).collect();
        self.subscribe(client, &open);
    }

    fn subscribe(&mut self, client: usize, wanted: &[(usize, QoS)]) {
        let known = &mut self.clients[client];
        if wanted.is_empty() || known.requests.len() >= REQUESTS_MAX {
            return;
        }
        let Some(packet_id) = known.machine.reserve_id() else { return };
        let viewer = known.viewer();
        let spans = wanted.iter().map(|&(filter, _)| {
            let is_audit = self.audit.client == Some(client);
            (filter, if is_audit { 0 } else { self.ledger.subscribing(viewer, filter) })
        });
        let request = Request::Subscribe(spans.collect());
        known.requests.insert(packet_id, request);
        let bytes = wire::subscribe(known.role.version, packet_id, wanted);
        known.write(&bytes);
    }

    /// Adds or removes a subscription.
    pub(super) fn change(&mut self, client: usize) {
        let known = &self.clients[client];
        let changes = &known.role.changes;
        let (filter, qos) = changes[self.rng.below(changes.len() as u64) as usize];
        // One request at a time per filter: the result of two open ones is not defined.
        let is_open = known.requests.values().any(|request| match request {
            Request::Subscribe(spans) => spans.iter().any(|(open, _)| *open == filter),
            Request::Unsubscribe(open, _) => *open == filter,
        });
        if is_open {
            return;
        }
        if !known.subscribed.contains(&filter) {
            return self.subscribe(client, &[(filter, qos)]);
        }
        let known = &mut self.clients[client];
        let Some(packet_id) = known.machine.reserve_id() else { return };
        known.subscribed.remove(&filter);
        let spans = self.ledger.unsubscribing(known.viewer(), filter);
        known.requests.insert(packet_id, Request::Unsubscribe(filter, spans));
        let bytes = wire::unsubscribe(known.role.version, packet_id, filter);
        known.write(&bytes);
    }
}
