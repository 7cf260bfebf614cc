//! What clients get.

use tacho_codec::{QoS, ReasonCode, Version};
use tacho_session::Inbound;
use tacho_session::client::ConnAckParams;

use super::World;
use crate::client::{Request, Stage};
use crate::ledger::Accepted;
use crate::wire::{self, Event, Received};

/// Reasons for which the broker may close a connection of a client that does nothing wrong.
const DISMISSALS: [ReasonCode; 4] = [
    ReasonCode::KEEP_ALIVE_TIMEOUT,
    ReasonCode::QUOTA_EXCEEDED,
    ReasonCode::SERVER_SHUTTING_DOWN,
    ReasonCode::SESSION_TAKEN_OVER,
];

impl World {
    /// Some bytes arrive at the broker, some at the client.
    pub(super) fn exchange(&mut self, client: usize) {
        let now_ns = self.cluster.now_ns();
        let deaf = self.clients[client].deaf;
        if let Some(link) = &mut self.clients[client].link {
            link.was_deaf |= deaf;
            if !link.peer.is_closing() && link.stage != Stage::Leaving {
                link.alive_ns = now_ns;
            }
        }
        let known = &self.clients[client];
        let Some(link) = &known.link else { return };
        let (calm, waiting) = (known.calm, link.peer.in_transit() as u64);
        let len = match calm || self.rng.percent(60) {
            true => waiting,
            false => self.rng.below(waiting + 1),
        };
        link.peer.arrive(len as usize);
        if known.deaf && !calm {
            return;
        }
        let waiting = link.peer.waiting() as u64;
        let len = match calm || self.rng.percent(60) {
            true => waiting,
            false => self.rng.below(waiting + 1),
        };
        let bytes = link.peer.receive(len as usize);
        self.take_in(client, &bytes);
        let known = &self.clients[client];
        if known.link.as_ref().is_some_and(|link| link.peer.is_over()) {
            self.closed_by_broker(client);
            return;
        }
        let diligence = if known.calm { 100 } else { known.nature.diligence };
        if self.rng.below(100) < diligence {
            self.poll(client);
        }
    }

    pub(super) fn take_in(&mut self, client: usize, bytes: &[u8]) {
        let version = self.clients[client].version();
        let Some(link) = &mut self.clients[client].link else { return };
        link.buffer.extend_from_slice(bytes);
        let mut buffer = std::mem::take(&mut link.buffer);
        let mut used = 0;
        while let Some((event, len)) = wire::decode(&buffer[used..], version) {
            self.note(client, &buffer[used..used + len]);
            let size_max = self.clients[client].nature.packet_size_max;
            assert!(
                size_max.is_none_or(|max| len <= max as usize),
                "larger than it takes: {event:?}"
            );
            used += len;
            self.handle(client, event);
        }
        buffer.drain(..used);
        if let Some(link) = &mut self.clients[client].link {
            link.buffer = buffer;
        }
    }

    /// The trace of the run: every delivery, in order (FNV-1a).
    fn note(&mut self, client: usize, packet: &[u8]) {
        self.seen += 1;
        for &byte in [client as u8].iter().chain(packet) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn handle(&mut self, client: usize, event: Event) {
        self.say(client, &format!("gets {event:?}"));
        let stage = self.clients[client].link.as_ref().map(|link| link.stage);
        if let Event::ConnAck { .. } = event {
            assert_eq!(stage, Some(Stage::Connecting), "a second CONNACK");
        } else {
            assert_ne!(stage, Some(Stage::Connecting), "{event:?} before CONNACK");
        }
        match event {
            Event::ConnAck {
                session_present,
                reason,
                receive_maximum,
                alias_max,
                keep_alive_s,
            } => {
                if reason.is_error() {
                    return self.refused(client, reason);
                }
                self.connected(client, session_present, receive_maximum, alias_max, keep_alive_s);
            }
            Event::Publish(received) => self.received(client, &received),
            Event::Ack { kind, packet_id, reason } => {
                self.acknowledged(client, kind, packet_id, reason);
            }
            Event::SubAck { packet_id, reasons } => {
                let known = &mut self.clients[client];
                assert!(known.machine.release_id(packet_id), "SUBACK answers nothing");
                let Some(Request::Subscribe(subscribings)) = known.requests.remove(&packet_id)
                else {
                    panic!("SUBACK answers no SUBSCRIBE");
                };
                assert_eq!(subscribings.len(), reasons.len(), "one code per filter");
                for (subscribing, reason) in subscribings.into_iter().zip(reasons) {
                    match reason.is_error() {
                        true => self.ledger.not_subscribed(subscribing),
                        false => self.ledger.subscribed(subscribing),
                    }
                }
            }
            Event::UnsubAck { packet_id, unconfirmed } => {
                let known = &mut self.clients[client];
                assert!(known.machine.release_id(packet_id), "UNSUBACK answers nothing");
                let Some(Request::Unsubscribe(spans)) = known.requests.remove(&packet_id) else {
                    panic!("UNSUBACK answers no UNSUBSCRIBE");
                };
                if !unconfirmed {
                    self.ledger.unsubscribed(&spans);
                }
            }
            Event::PingResp => self.clients[client].machine.handle_pingresp(),
            Event::Disconnect(reason) => {
                assert_eq!(self.clients[client].version(), Version::V5, "3.x has no such packet");
                assert!(DISMISSALS.contains(&reason), "client {client} is dismissed: {reason:?}");
                if let Some(link) = &mut self.clients[client].link {
                    link.dismissed = true;
                }
            }
        }
    }

    /// CONNACK says that there is no room.
    fn refused(&mut self, client: usize, reason: ReasonCode) {
        let limits = &self.setup.config.limits;
        let known = &mut self.clients[client];
        let Some(link) = &mut known.link else { return };
        // Or the disk takes nothing at present.
        let may = self.setup.durable.is_some()
            || limits.connections_max > 0
            || limits.queues_bytes_max > 0 && link.opening.will.is_some();
        assert!(may, "client {client} is refused: {reason:?}");
        let expected = match known.nature.version {
            Version::V5 => ReasonCode::QUOTA_EXCEEDED,
            _ => ReasonCode::SERVER_UNAVAILABLE,
        };
        assert_eq!(reason, expected, "client {client} is refused");
        link.refused = true;
    }

    fn connected(
        &mut self,
        client: usize,
        session_present: bool,
        receive_maximum: u16,
        alias_max: u16,
        keep_alive_s: Option<u16>,
    ) {
        let now_ns = self.cluster.now_ns();
        let known = &mut self.clients[client];
        let version = known.version();
        let Some(link) = &mut known.link else { return };
        link.stage = Stage::Online;
        let clean_start = link.opening.clean_start;
        let is_passing = link.opening.ephemeral;
        let (stuck, will) = (link.was_stuck, link.opening.will.map(|will| will.id));
        assert!(!(clean_start && session_present), "clean start found a session");
        let must = known.safe_until_ns > now_ns && !clean_start;
        // MQTT 3.1 does not say it.
        let session_present = if version == Version::V31 { must } else { session_present };
        assert!(!must || session_present, "client {client}: its session is lost");
        let epoch = known.epoch;
        if !session_present {
            known.epoch += 1;
            known.seen.clear();
            known.unreceived.clear();
            known.subscribed.clear();
        }
        (known.wants_clean, known.unanswered) = (false, false);
        known.abandoned.clear();
        let params = ConnAckParams {
            session_present,
            receive_maximum,
            topic_alias_maximum_in: known.nature.alias_max,
            topic_alias_maximum_out: alias_max,
            keep_alive_s: keep_alive_s.unwrap_or(known.nature.keep_alive_s),
            ping_timeout_s: 0,
            ..ConnAckParams::new(version)
        };
        known.machine.connack(now_ns, params);
        if params.keep_alive_s > 0 {
            // The broker counts from a CONNECT that may be long ago.
            known.write(&wire::encode(&tacho_codec::Packet::PingReq, version));
        }
        if !session_present {
            self.ledger.session_ended(client, epoch);
            if is_passing {
                self.ledger.passes(client, epoch + 1);
            }
        }
        // A new session is not accepted before it is kept. MQTT 3.1 does not say which it is.
        let unkept = stuck && (session_present || version == Version::V31);
        let accepted = Accepted { session_present, lasted: must, unkept };
        self.ledger.wills.connected(client, will, accepted, now_ns);
        self.poll(client);
    }

    fn received(&mut self, client: usize, received: &Received) {
        let known = &mut self.clients[client];
        let Received { topic, alias, qos, dup, packet_id, payload, .. } = received;
        let resolved = known.machine.resolve_alias(topic, *alias).expect("aliases are legal");
        let topic = resolved.as_deref().unwrap_or(topic);
        let inbound = known.machine.handle_publish(*qos, *packet_id);
        let inbound = inbound.expect("the broker keeps our receive maximum");
        let Some(id) = wire::number(payload) else {
            // A deletion carries no number; that it comes at all is checked by its QoS.
            assert!(payload.is_empty(), "a payload without a publisher");
            return;
        };
        let link = known.link.as_ref().map_or(0, |link| link.number);
        if *qos == QoS::AtLeastOnce
            && let Some(packet_id) = packet_id
        {
            let before = known.seen.insert((*packet_id, id), link);
            if *dup && let Some(before) = before {
                assert_ne!(before, link, "message {id} is repeated on a live connection");
                return;
            }
        }
        if inbound == Inbound::Duplicate {
            assert!(*dup, "message {id} is repeated without DUP");
            return;
        }
        let expected = wire::payload(id, payload.len());
        assert_eq!(*payload, expected, "the payload of message {id} was damaged");
        self.ledger.delivered(self.clients[client].viewer(), id, topic, received);
        if self.auditor == Some(client) && received.retain {
            let message = &self.ledger.messages[id as usize];
            assert!(self.retained.insert(message.topic, id).is_none(), "{id} is retained twice");
        }
    }
}
