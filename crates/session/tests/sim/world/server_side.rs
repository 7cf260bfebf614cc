//! The server's actions in a run, with routing and journal.

use tacho_codec::{AckKind, Direction, PacketId, QoS, ReasonCode, Version};
use tacho_session::{AliasOut, BatchSeq, Delivery, Inbound, Offer, Transmit, server};

use super::{Waiting, World, topic_number};
use crate::journal::{Kept, Kind};
use crate::ledger::{Msg, TOPICS};
use crate::wire::{self, Event};

impl World {
    pub(super) fn server_offer(&mut self) {
        let Some(mut delivery) = self.next_offer() else { return };
        // Some messages are not loaded.
        delivery.message.loaded = self.rng.percent(90);
        let (Kept { msg, .. }, qos) = (delivery.message, delivery.qos);
        let expires = delivery.expires_at_ns != u64::MAX;
        let offer = self.server.offer(self.now_ns, delivery, &mut self.journal);
        let dropped = matches!(offer, Offer::Dropped(_));
        self.down.promised(msg, qos, dropped || expires || is_too_large(msg));
        if let Offer::SendNow(transmit) = offer {
            self.server_write(transmit);
        }
        self.server_poll();
    }

    fn next_offer(&mut self) -> Option<Delivery<Kept>> {
        if let Some(again) = self.again.pop_front() {
            return Some(again);
        }
        if self.down_next >= self.setup.messages {
            return None;
        }
        let (qos, topic) = (self.draw_qos(), self.draw_topic());
        let msg = Msg { id: self.down_next, topic };
        self.down_next += 1;
        let message = Kept { msg, loaded: true };
        let mut delivery = Delivery { size_bytes: 100, ..Delivery::new(qos, message) };
        if self.rng.percent(10) {
            delivery.expires_at_ns = self.now_ns + self.rng.below(200_000_000);
        }
        Some(delivery)
    }

    pub(super) fn set_congested(&mut self, congested: bool) {
        self.congested = congested;
        self.server.set_congested(congested);
        if self.rng.percent(50) {
            self.server_poll();
        }
    }

    pub(super) fn server_poll(&mut self) {
        if self.congested {
            return;
        }
        loop {
            let committed = self.journal.committed;
            let transmit = self.server.poll_transmit(self.now_ns, committed, &mut self.journal);
            let Some(transmit) = transmit else { break };
            self.server_write(transmit);
        }
        assert!(!self.server.has_output(self.journal.committed), "poll_transmit left something");
    }

    pub(super) fn server_write(&mut self, transmit: Transmit<Kept>) {
        assert!(self.server_online, "output without a connection");
        let version = self.setup.version;
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                let Kept { msg, loaded } = delivery.message;
                assert!(loaded, "{msg:?} is not loaded");
                self.server_sends.publish(msg, packet_id, dup);
                if let Some(packet_id) = packet_id.filter(|_| delivery.qos == QoS::ExactlyOnce) {
                    self.journal.require(Kind::Sent, packet_id);
                }
                if is_too_large(msg) {
                    packet_id.into_iter().for_each(|id| self.server_sends.abandoned(id));
                    return self.server.abandon(packet_id, &mut self.journal);
                }
                let alias = self.plan_alias(TOPICS[msg.topic]);
                assert!(alias == AliasOut::None || version == Version::V5);
                wire::publish(version, msg, delivery.qos, packet_id, dup, alias)
            }
            Transmit::Ack { kind, packet_id, reason } => {
                self.server_acks.ack(kind, packet_id);
                self.check_promise(kind, packet_id, reason);
                wire::ack(version, kind, packet_id, reason)
            }
            Transmit::PubRel { packet_id, reason } => {
                self.server_sends.pubrel(packet_id, reason);
                self.journal.require_if_any(Kind::Released, packet_id);
                wire::ack(version, AckKind::PubRel, packet_id, reason)
            }
        };
        self.down_write(&bytes);
    }

    /// Some planned definitions are not made, as if there was no room for them.
    fn plan_alias(&mut self, topic: &str) -> AliasOut {
        let plan = self.server.plan_alias(topic);
        if let AliasOut::Define(alias) = plan {
            if self.rng.below(4) == 0 {
                return AliasOut::None;
            }
            self.server.define_alias(alias, &topic.into());
        }
        plan
    }

    pub(super) fn down_write(&mut self, bytes: &[u8]) {
        if self.server_on_link && !self.link.broken {
            self.link.down.write(bytes);
        }
    }

    /// Checks that the promise of an acknowledgement is committed.
    pub(super) fn check_promise(&self, kind: AckKind, packet_id: PacketId, reason: ReasonCode) {
        match kind {
            AckKind::PubComp => self.journal.require_if_any(Kind::InboundReleased, packet_id),
            _ if reason.is_error() => {}
            _ => {
                self.journal.require_routed(self.inbound_ids[&packet_id]);
                if kind == AckKind::PubRec {
                    self.journal.require(Kind::InboundReceived, packet_id);
                }
            }
        }
    }

    pub(super) fn lose_server(&mut self) {
        if self.server_online {
            let effects = self.server.disconnect(self.now_ns, server::End::Lost);
            assert!(!effects.session_ended && effects.error.is_none());
            self.server_online = false;
            self.congested = false;
            self.while_offline();
        }
    }

    /// The owner's work on the queue of an absent client.
    fn while_offline(&mut self) {
        if self.rng.percent(30) {
            let shared = |kept: &Kept| kept.msg.id % 5 == 3;
            for delivery in self.server.take_queued(shared, &mut self.journal) {
                self.down.given_away(delivery.message.msg);
            }
        }
        if self.rng.percent(30) {
            let from = self.rng.below(4) as usize;
            self.server.unload(from, |_, kept| kept.loaded = false);
        }
        if self.rng.percent(10) {
            self.give_up_one();
        }
    }

    /// The newest unloaded message in the queue cannot be loaded.
    fn give_up_one(&mut self) {
        let last = self.server.unloaded().last().map(|(seq, kept)| (seq, kept.message.msg));
        if let Some((seq, msg)) = last.filter(|(seq, _)| self.journal.state().is_queued(*seq)) {
            assert!(self.server.discard(seq, &mut self.journal));
            self.down.given_away(msg);
        }
    }

    /// Loads some of the unloaded messages, oldest first.
    pub(super) fn load_some(&mut self) {
        let expected: Vec<_> = self.server.unloaded().map(|(seq, _)| seq).take(3).collect();
        let mut loaded = Vec::new();
        self.server.load(3, |seq, kept| {
            kept.loaded = true;
            loaded.push(seq);
        });
        assert_eq!(loaded, expected);
        self.server_poll();
    }

    pub(super) fn up_deliver(&mut self) {
        self.link.up.deliver(&mut self.rng);
        let (version, direction) = (self.setup.version, Direction::ToServer);
        while let Some((event, len)) = wire::decode(self.link.up.arrived(), version, direction) {
            self.link.up.consume(len);
            self.server.handle_activity(self.now_ns);
            self.server_handle(event);
        }
        if self.server_online {
            self.server_poll();
        }
    }

    pub(super) fn server_handle(&mut self, event: Event) {
        match event {
            Event::Connect { clean_start, receive_maximum, alias_max, keep_alive_s } => {
                self.server_connect(clean_start, receive_maximum, alias_max, keep_alive_s);
            }
            Event::Publish { id, qos, packet_id, topic, alias } => {
                let known = self.server.resolve_alias(&topic, alias).expect("aliases are legal");
                let msg = Msg { id, topic: topic_number(known.as_deref().unwrap_or(&topic)) };
                self.server_acks.received(qos, packet_id);
                self.inbound_ids.extend(packet_id.map(|packet_id| (packet_id, id)));
                let inbound = self.server.handle_publish(qos, packet_id);
                if inbound.expect("the client keeps our receive maximum") == Inbound::New {
                    self.route(msg, qos, packet_id);
                }
                if !self.setup.accept_late {
                    self.accept_some();
                }
            }
            Event::Ack { kind: AckKind::PubRel, packet_id, .. } => {
                self.server_acks.received_pubrel(packet_id);
                self.server.handle_pubrel(packet_id, &mut self.journal).expect("PUBREL");
            }
            Event::Ack { kind, packet_id, reason } => {
                self.server_sends.ack(kind, packet_id, reason);
                let journal = &mut self.journal;
                match kind {
                    AckKind::PubAck => self.server.handle_puback(packet_id, reason, journal),
                    AckKind::PubRec => self.server.handle_pubrec(packet_id, reason, journal),
                    _ => self.server.handle_pubcomp(packet_id, reason, journal),
                }
                .expect("the client answers what was sent");
            }
            Event::PingReq => {
                let ping = wire::ping(self.setup.version, Direction::ToClient);
                self.down_write(&ping);
            }
            other => panic!("a client never sends {other:?}"),
        }
    }

    pub(super) fn server_connect(
        &mut self,
        clean_start: bool,
        receive_maximum: u16,
        alias_max: u16,
        keep_alive_s: u16,
    ) {
        if self.server_online {
            let end = server::End::TakenOver { clean_start };
            let effects = self.server.disconnect(self.now_ns, end);
            assert_eq!(effects.session_ended, clean_start);
        }
        self.accept_all();
        if clean_start {
            self.up.excuse_all();
            self.down.excuse_all();
        }
        let existed = self.server.exists();
        assert!(clean_start || existed == self.journal.state().exists());
        if !existed || clean_start {
            self.journal.forget();
        }
        let params = server::ConnectParams {
            version: self.setup.version,
            clean_start,
            receive_maximum,
            topic_alias_maximum_in: self.setup.server_alias_max,
            topic_alias_maximum_out: alias_max,
            keep_alive_s,
            session_expiry_s: u32::MAX,
            will: None,
        };
        let connected = self.server.connect(self.now_ns, params);
        assert_eq!(connected.session_present, existed && !clean_start);
        self.server_online = true;
        self.server_on_link = true;
        self.congested = false;
        self.server_sends.connect(receive_maximum, connected.session_present);
        self.server_acks.connect();
        let receive_maximum = self.rng.between(1, self.setup.limits.receive_maximum.into());
        let connack = wire::connack(
            self.setup.version,
            connected.session_present,
            receive_maximum as u16,
            self.setup.server_alias_max,
        );
        self.down_write(&connack);
    }

    pub(super) fn accept_all(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.accept(waiting);
        }
    }

    /// Accepts the oldest waiting message, sometimes another one.
    pub(super) fn accept_some(&mut self) {
        let index = if self.rng.percent(80) { 0 } else { self.rng.below(4) as usize };
        if let Some(waiting) = self.waiting.remove(index) {
            self.accept(waiting);
        }
        if self.server_online {
            self.server_poll();
        }
    }

    pub(super) fn route(&mut self, msg: Msg, qos: QoS, packet_id: Option<PacketId>) {
        let mut batch = BatchSeq::DONE;
        self.journal.join();
        if !self.is_refused(msg) {
            self.up.delivered(msg, qos);
            batch = self.journal.route(msg, qos);
            // Only the record of the identifier may be stored.
            if qos == QoS::ExactlyOnce && self.rng.percent(20) {
                batch = BatchSeq::DONE;
            }
        }
        let waiting = Waiting { msg, qos, packet_id, batch };
        if self.setup.accept_late || self.rng.percent(30) {
            if let Some(packet_id) = packet_id.filter(|_| !self.is_refused(msg)) {
                self.server.record_publish(packet_id, &mut self.journal);
            }
            self.waiting.push_back(waiting);
        } else {
            self.accept(waiting);
        }
        self.journal.part();
    }

    pub(super) fn accept(&mut self, Waiting { msg, qos, packet_id, batch }: Waiting) {
        let reason =
            if self.is_refused(msg) { ReasonCode::QUOTA_EXCEEDED } else { ReasonCode::SUCCESS };
        self.server.accept_publish(qos, packet_id, reason, batch, &mut self.journal);
    }
}

/// Some messages are larger than the client's Maximum Packet Size.
const fn is_too_large(msg: Msg) -> bool {
    msg.id % 23 == 11
}
