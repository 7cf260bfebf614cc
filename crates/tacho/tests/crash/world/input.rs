//! Packets that clients receive.

use tacho_codec::{AckKind, PacketId, ReasonCode, Version};
use tacho_session::Inbound;
use tacho_session::client::ConnAckParams;

use super::{WARDEN, World};
use crate::broker::Broker;
use crate::client::{Request, Stage};
use crate::ledger::Kind;
use crate::wire::{Event, Received};

impl World {
    /// Reads and handles everything available.
    pub(super) fn hear(&mut self, client: usize) {
        let version = self.clients[client].role.version;
        loop {
            let Some(link) = &mut self.clients[client].link else { return };
            if !link.read() {
                return;
            }
            loop {
                let Some(link) = &mut self.clients[client].link else { return };
                match link.next(version) {
                    Ok(Some(event)) => {
                        self.heard += 1;
                        self.handle(client, event);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.wrong(client, &format!("an illegal packet: {error}"));
                        self.lose_link(client);
                        return;
                    }
                }
            }
        }
    }

    /// Reports an illegal packet of the broker.
    fn wrong(&mut self, client: usize, what: &str) {
        let text = format!("{} received {what}", self.clients[client].role.name);
        self.ledger.findings.add(Kind::Broker, text);
    }

    /// May make this acknowledgement the last one before the kill.
    fn count_ack(&mut self) {
        if let Some(left) = &mut self.acks_left {
            *left -= 1;
            if *left == 0 {
                self.acks_left = None;
                self.is_alive = false;
                self.broker.iter_mut().for_each(Broker::kill);
            }
        }
    }

    fn handle(&mut self, client: usize, event: Event) {
        match event {
            Event::ConnAck { session_present, reason, receive_maximum } => {
                self.count_ack();
                self.connected(client, session_present, reason, receive_maximum);
            }
            Event::Publish(got) => self.received(client, &got),
            Event::Ack { kind, packet_id, reason } => {
                if kind != AckKind::PubRel {
                    self.count_ack();
                }
                self.acknowledged(client, kind, packet_id, reason);
            }
            Event::SubAck { packet_id, reasons } => {
                self.count_ack();
                self.subscribed(client, packet_id, &reasons);
            }
            Event::UnsubAck { packet_id } => {
                self.count_ack();
                self.unsubscribed(client, packet_id);
            }
            Event::Disconnect(reason) => self.wrong(client, &format!("DISCONNECT {reason:?}")),
            Event::Other => {}
        }
    }

    fn connected(&mut self, client: usize, present: bool, reason: ReasonCode, maximum: u16) {
        if reason.is_error() && self.ledger.findings.may_refuse {
            self.lose_link(client);
            return;
        }
        if reason.is_error() {
            return self.wrong(client, &format!("CONNACK {reason:?}"));
        }
        let (now_ns, now_ms) = (self.now_ns(), self.now_ms());
        let known = &mut self.clients[client];
        let viewer = known.viewer();
        let Some(link) = &mut known.link else { return };
        link.stage = Stage::Online;
        let will = link.opening.will;
        if link.opening.clean_start && present {
            self.wrong(client, "an old session despite clean start");
        }
        let known = &mut self.clients[client];
        if !present && known.has_session {
            self.ledger.session_lost(viewer);
        } else if !present {
            self.ledger.session_ended(viewer);
        }
        if present {
            let disk_may_fail = self.disk_may_fail;
            self.ledger.wills.resumed(client, now_ms, disk_may_fail);
            if let Some(will) = will.filter(|_| disk_may_fail) {
                self.ledger.wills.stored_later(will.id);
            }
        } else {
            known.epoch += 1;
            known.subscribed.clear();
            known.unreceived.clear();
        }
        known.has_session = known.role.durable;
        known.wants_clean = !known.role.durable;
        let params = ConnAckParams {
            session_present: present,
            receive_maximum: maximum,
            ..ConnAckParams::new(known.role.version)
        };
        // Abandoned messages may have been accepted or not; the ledger allows both.
        known.machine.connack(now_ns, params);
        known.left_open.clear();
        self.subscribe_wishes(client);
        if client == WARDEN {
            self.is_ready = true;
            self.outcome.restarts_ms.push(self.spawned.elapsed().as_millis() as u64);
        }
    }

    fn received(&mut self, client: usize, got: &Received) {
        let known = &mut self.clients[client];
        match known.machine.handle_publish(got.qos, got.packet_id) {
            Ok(Inbound::New) if self.audit.client == Some(client) => self.audit.received(got),
            Ok(Inbound::New) => self.ledger.delivered(known.viewer(), got),
            Ok(Inbound::Duplicate) => {}
            Err(error) => self.wrong(client, &format!("too many messages: {error}")),
        }
    }

    /// Handles an acknowledgement of the broker.
    fn acknowledged(
        &mut self,
        client: usize,
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
    ) {
        let known = &mut self.clients[client];
        let done = match kind {
            AckKind::PubAck => known.machine.handle_puback(packet_id, reason),
            AckKind::PubRec => {
                let id = known.unreceived.remove(&packet_id);
                known.machine.handle_pubrec(packet_id, reason).map(|_| id)
            }
            AckKind::PubComp => known.machine.handle_pubcomp(packet_id, reason).map(|_| None),
            AckKind::PubRel => known.machine.handle_pubrel(packet_id).map(|()| None),
        };
        match done {
            Ok(Some(id)) => {
                let refused = reason.is_error() && known.role.version == Version::V5;
                self.ledger.acknowledged(id, refused);
            }
            Ok(None) => {}
            Err(error) => self.wrong(client, &format!("{kind:?} {packet_id:?}: {error}")),
        }
    }

    fn subscribed(&mut self, client: usize, packet_id: PacketId, reasons: &[ReasonCode]) {
        let known = &mut self.clients[client];
        known.machine.release_id(packet_id);
        let Some(Request::Subscribe(spans)) = known.requests.remove(&packet_id) else {
            return self.wrong(client, "a SUBACK without a request");
        };
        if spans.len() != reasons.len() {
            return self.wrong(client, &format!("SUBACK {reasons:?} for {spans:?}"));
        }
        for ((filter, span), reason) in spans.into_iter().zip(reasons) {
            if reason.is_error() {
                self.ledger.not_subscribed(span);
            } else {
                self.ledger.subscribed(span);
                known.subscribed.insert(filter);
            }
        }
    }

    fn unsubscribed(&mut self, client: usize, packet_id: PacketId) {
        let known = &mut self.clients[client];
        known.machine.release_id(packet_id);
        match known.requests.remove(&packet_id) {
            Some(Request::Unsubscribe(_, spans)) => self.ledger.unsubscribed(&spans),
            _ => self.wrong(client, "an UNSUBACK without a request"),
        }
    }
}
