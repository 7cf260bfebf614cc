//! The client's actions in a run.

use tacho_codec::{AckKind, Direction, Version};
use tacho_session::{Inbound, Transmit, client};

use super::{ClientState, World, topic_number};
use crate::ledger::{Msg, TOPICS};
use crate::network::Link;
use crate::wire::{self, Event};

impl World {
    pub(super) fn client_publish(&mut self) {
        if self.up_next >= self.setup.messages {
            return;
        }
        let (qos, topic) = (self.draw_qos(), self.draw_topic());
        let msg = Msg { id: self.up_next, topic };
        let transmit = match self.client.publish(self.now_ns, qos, msg) {
            client::Publish::Blocked(back) => {
                assert_eq!(back, msg);
                return;
            }
            client::Publish::Queued => None,
            client::Publish::Send(transmit) => Some(transmit),
        };
        self.up_next += 1;
        self.up.promised(msg, qos, self.is_refused(msg));
        if let Some(transmit) = transmit {
            self.client_write(transmit);
        }
        self.client_poll();
    }

    /// The server refuses some messages, always the same ones.
    pub(super) fn is_refused(&self, msg: Msg) -> bool {
        self.setup.version == Version::V5 && msg.id % 17 == 7
    }

    pub(super) fn client_poll(&mut self) {
        while let Some(transmit) = self.client.poll_transmit(self.now_ns) {
            self.client_write(transmit);
        }
    }

    pub(super) fn client_write(&mut self, transmit: Transmit<Msg>) {
        assert!(self.client_state == ClientState::Online, "output without a connection");
        let version = self.setup.version;
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                self.client_sends.publish(delivery.message, packet_id, dup);
                let alias = self.client.assign_alias(TOPICS[delivery.message.topic]);
                wire::publish(version, delivery.message, delivery.qos, packet_id, dup, alias)
            }
            Transmit::Ack { kind, packet_id, reason } => {
                self.client_acks.ack(kind, packet_id);
                wire::ack(version, kind, packet_id, reason)
            }
            Transmit::PubRel { packet_id, reason } => {
                self.client_sends.pubrel(packet_id, reason);
                wire::ack(version, AckKind::PubRel, packet_id, reason)
            }
        };
        self.up_write(&bytes);
    }

    pub(super) fn up_write(&mut self, bytes: &[u8]) {
        if !self.link.broken {
            self.link.up.write(bytes);
        }
    }

    pub(super) fn client_connect(&mut self, clean_start: bool) {
        self.client_wants_clean |= clean_start;
        self.client_state = ClientState::Connecting;
        self.link = Link::default();
        self.server_on_link = false;
        // Each connection may grant less than the previous one.
        let receive_maximum = self.rng.between(1, self.setup.client_receive_maximum.into());
        let bytes = wire::connect(
            self.setup.version,
            self.client_wants_clean,
            receive_maximum as u16,
            self.setup.client_alias_max,
            self.setup.keep_alive_s,
        );
        self.up_write(&bytes);
    }

    pub(super) fn lose_client(&mut self) {
        self.client.disconnected();
        self.client_state = ClientState::Offline;
    }

    pub(super) fn down_deliver(&mut self) {
        self.link.down.deliver(&mut self.rng);
        let (version, direction) = (self.setup.version, Direction::ToClient);
        while let Some((event, len)) = wire::decode(self.link.down.arrived(), version, direction) {
            self.link.down.consume(len);
            self.client_handle(event);
        }
        if self.client_state == ClientState::Online {
            self.client_poll();
        }
    }

    pub(super) fn client_handle(&mut self, event: Event) {
        match event {
            Event::ConnAck { session_present, receive_maximum, alias_max } => {
                self.client_wants_clean = false;
                self.client_state = ClientState::Online;
                self.client_sends.connect(receive_maximum, session_present);
                self.client_acks.connect();
                let params = client::ConnAckParams {
                    session_present,
                    receive_maximum,
                    topic_alias_maximum_in: self.setup.client_alias_max,
                    topic_alias_maximum_out: alias_max,
                    keep_alive_s: self.setup.keep_alive_s,
                    ping_timeout_s: 5,
                    ..client::ConnAckParams::new(self.setup.version)
                };
                self.client.connack(self.now_ns, params);
            }
            Event::Publish { id, qos, packet_id, topic, alias } => {
                let known = self.client.resolve_alias(&topic, alias).expect("aliases are legal");
                let msg = Msg { id, topic: topic_number(known.as_deref().unwrap_or(&topic)) };
                self.client_acks.received(qos, packet_id);
                let inbound = self.client.handle_publish(qos, packet_id);
                if inbound.expect("the server keeps our receive maximum") == Inbound::New {
                    self.down.delivered(msg, qos);
                }
            }
            Event::Ack { kind: AckKind::PubRel, packet_id, .. } => {
                self.client_acks.received_pubrel(packet_id);
                self.client.handle_pubrel(packet_id).expect("PUBREL");
            }
            Event::Ack { kind, packet_id, reason } => {
                self.client_sends.ack(kind, packet_id, reason);
                match kind {
                    AckKind::PubAck => self.client.handle_puback(packet_id, reason),
                    AckKind::PubRec => self.client.handle_pubrec(packet_id, reason),
                    _ => self.client.handle_pubcomp(packet_id, reason),
                }
                .expect("the server answers what was sent");
            }
            Event::PingResp => self.client.handle_pingresp(),
            other => panic!("a server never sends {other:?}"),
        }
    }
}
