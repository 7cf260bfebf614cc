//! What clients send.

use tacho_codec::{AckKind, PacketId, QoS, ReasonCode, RetainHandling};
use tacho_session::Transmit;
use tacho_session::client::{Publish, TimeoutEvent};

use super::World;
use crate::client::{Request, Stage, is_stuck};
use crate::ledger::{Ending, Message, NEVER};
use crate::setup::{FILTERS, PLAIN, QOS, RETAINED, SHARED, Wish, wish};
use crate::wire::{self, Outgoing};

impl World {
    pub(super) fn publish(&mut self, client: usize) {
        let topics: &[usize] = match self.rng.below(10) {
            0..5 => &PLAIN,
            5..8 => &RETAINED,
            _ => &SHARED,
        };
        let topic = topics[self.rng.below(topics.len() as u64) as usize];
        let retain = RETAINED.contains(&topic) && self.rng.percent(80);
        let qos = QOS[self.rng.below(3) as usize];
        let len = match () {
            () if retain && self.rng.percent(20) => 0,
            () if self.rng.below(100) < self.setup.large_percent => 5_000,
            () => 4 + self.rng.below(30) as usize,
        };
        let expires = self.clients[client].version().is_v5()
            && self.rng.below(100) < self.setup.expiry_percent;
        let expiry_s = expires.then(|| self.rng.between(1, 5) as u32);
        self.publish_message(client, topic, qos, retain, len, expiry_s);
    }

    /// Publishes a retained message while another client subscribes: they race.
    pub(super) fn retain_and_subscribe(&mut self, client: usize) {
        let topic = RETAINED[self.rng.below(2) as usize];
        let qos = QOS[self.rng.between(1, 2) as usize];
        let other = self.rng.below(self.setup.natures.len() as u64) as usize;
        let filter = [6, 7, 8, 9][self.rng.below(4) as usize];
        if self.rng.percent(50) {
            self.publish_message(client, topic, qos, true, 20, None);
            self.subscribe(other, &[filter]);
        } else {
            self.subscribe(other, &[filter]);
            self.publish_message(client, topic, qos, true, 20, None);
        }
    }

    pub(super) fn publish_message(
        &mut self,
        client: usize,
        topic: usize,
        qos: QoS,
        retain: bool,
        len: usize,
        expiry_s: Option<u32>,
    ) -> bool {
        if !self.clients[client].is_online() {
            return false;
        }
        let id = self.ledger.next_id();
        let now_ns = self.cluster.now_ns();
        let known = &mut self.clients[client];
        let transmit = match known.machine.publish(now_ns, qos, id) {
            Publish::Blocked(_) => return false,
            Publish::Queued => None,
            Publish::Send(transmit) => Some(transmit),
        };
        self.ledger.published(Message {
            publisher: client,
            epoch: known.epoch,
            topic,
            qos,
            retain,
            len,
            expiry_s,
            is_will: false,
            first_sent: NEVER,
            done: NEVER,
            refused: false,
            sends: 0,
            refusals_before: 0,
            comes_late: false,
        });
        if let Some(transmit) = transmit {
            self.transmit(client, transmit);
        }
        true
    }

    /// Writes whatever the client's machine wants to say.
    pub(super) fn poll(&mut self, client: usize) {
        if !self.clients[client].is_online() {
            return;
        }
        let now_ns = self.cluster.now_ns();
        while let Some(transmit) = self.clients[client].machine.poll_transmit(now_ns) {
            self.transmit(client, transmit);
        }
    }

    fn transmit(&mut self, client: usize, transmit: Transmit<u32>) {
        let version = self.clients[client].version();
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                let id = delivery.message;
                let message = self.ledger.messages[id as usize].clone();
                let topic = crate::setup::TOPICS[message.topic];
                let alias = self.clients[client].machine.assign_alias(topic);
                let Message { topic, qos, retain, expiry_s, len, .. } = message;
                let outgoing = Outgoing { topic, qos, retain, expiry_s, alias };
                let payload = if len == 0 { Vec::new() } else { wire::payload(id, len) };
                let refusals = self.counted("refused_publishes_total")
                    + self.counted("journal_refused_publishes_total");
                self.ledger.sent(id, refusals);
                if let (QoS::ExactlyOnce, Some(packet_id)) = (qos, packet_id) {
                    self.clients[client].unreceived.insert(packet_id, id);
                }
                self.say(client, &format!("publishes {id} {outgoing:?} {packet_id:?} dup {dup}"));
                wire::publish(version, outgoing, packet_id, dup, &payload)
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

    pub(super) fn subscribe_somehow(&mut self, client: usize) {
        let count = self.rng.between(1, 3);
        let filters: Vec<usize> =
            (0..count).map(|_| self.rng.below(FILTERS.len() as u64) as usize).collect();
        self.subscribe(client, &filters);
    }

    /// Subscribes to those of the filters that may stand in one packet.
    pub(super) fn subscribe(&mut self, client: usize, filters: &[usize]) {
        if !self.clients[client].is_online() {
            return;
        }
        for &filter in filters {
            if !self.clients[client].calm && self.rng.below(100) < self.setup.change_percent {
                let v5 = self.clients[client].version().is_v5();
                self.clients[client].nature.wishes[filter] = wish(&mut self.rng, filter, v5);
            }
        }
        let wishes = self.clients[client].nature.wishes.clone();
        let version = self.clients[client].version();
        let mut wanted: Vec<(usize, Wish, RetainHandling)> = Vec::new();
        for &filter in filters {
            let known = wanted.iter().any(|(f, ..)| *f == filter);
            let same_id = wanted.first().is_none_or(|(_, w, _)| w.id == wishes[filter].id);
            if !known && same_id {
                wanted.push((filter, wishes[filter], self.draw_handling(client)));
            }
        }
        let Some(packet_id) = self.reserve_id(client) else { return };
        let epoch = self.clients[client].epoch;
        let subscribing = wanted.iter().map(|&(filter, wish, handling)| {
            let replay = (handling != RetainHandling::Never, handling == RetainHandling::Always);
            self.ledger.subscribing((client, epoch), filter, wish, replay)
        });
        let request = Request::Subscribe(subscribing.collect());
        let known = &mut self.clients[client];
        known.requests.insert(packet_id, request);
        known.subscribed.extend(wanted.iter().map(|(filter, ..)| *filter));
        known.write(&wire::subscribe(version, packet_id, &wanted));
        self.say(client, &format!("subscribes {wanted:?}"));
    }

    fn draw_handling(&mut self, client: usize) -> RetainHandling {
        let known = &self.clients[client];
        let always = known.calm || !known.version().is_v5();
        match self.rng.below(4) {
            _ if always => RetainHandling::Always,
            0 => RetainHandling::IfNew,
            1 => RetainHandling::Never,
            _ => RetainHandling::Always,
        }
    }

    fn reserve_id(&mut self, client: usize) -> Option<PacketId> {
        let known = &mut self.clients[client];
        (known.requests.len() < 10).then(|| known.machine.reserve_id()).flatten()
    }

    pub(super) fn unsubscribe_somehow(&mut self, client: usize) {
        let known = &self.clients[client];
        if !known.is_online() || known.subscribed.is_empty() {
            return;
        }
        let mut filters: Vec<usize> = known.subscribed.iter().copied().collect();
        filters.sort_unstable();
        let filter = filters[self.rng.below(filters.len() as u64) as usize];
        let Some(packet_id) = self.reserve_id(client) else { return };
        let epoch = self.clients[client].epoch;
        let spans = self.ledger.unsubscribing(client, epoch, filter);
        let known = &mut self.clients[client];
        known.subscribed.remove(&filter);
        known.requests.insert(packet_id, Request::Unsubscribe(spans));
        known.write(&wire::unsubscribe(known.nature.version, packet_id, filter));
        self.say(client, &format!("unsubscribes {}", FILTERS[filter]));
    }

    /// Clients with a keep-alive ping when it is time.
    pub(super) fn keep_alive(&mut self) {
        let now_ns = self.cluster.now_ns();
        for client in 0..self.clients.len() {
            if !self.clients[client].is_online() {
                continue;
            }
            match self.clients[client].machine.handle_timeout(now_ns) {
                Some(TimeoutEvent::SendPingReq) => {
                    let version = self.clients[client].version();
                    let ping = wire::encode(&tacho_codec::Packet::PingReq, version);
                    self.clients[client].write(&ping);
                }
                Some(TimeoutEvent::PingTimeout) => self.cut(client),
                None => {}
            }
        }
    }

    /// Clients that the broker has ended for what it could not do, 3.x without a word.
    pub(super) fn ended_silently(&self) -> u64 {
        self.counted("ended_publishers_total")
            + self.counted("journal_unconfirmed_unsubscribes_total")
    }

    /// The broker has closed a client's connection.
    pub(super) fn closed_by_broker(&mut self, client: usize) {
        let Some(link) = self.clients[client].link.take() else { return };
        let since_ns = link.since_ns(self.clients[client].nature.keep_alive_s);
        let unheard = self.ended_silently() > link.ended_before;
        let stuck = self.cluster.journal().is_some_and(is_stuck);
        let ending = match link.stage {
            // If the broker dies, it may come back as if it had been accepted.
            Stage::Connecting if link.refused && !link.was_stuck => Ending::Refused,
            Stage::Connecting => Ending::Unaccepted,
            Stage::Leaving if unheard => Ending::MaybePolite,
            // Without a word it may have been the keep-alive.
            Stage::Leaving
                if !link.dismissed
                    && !link.peer.was_reset()
                    && self.clients[client].nature.keep_alive_s == 0 =>
            {
                Ending::Polite { stuck }
            }
            Stage::Leaving => Ending::MaybePolite,
            Stage::Online => {
                let session_ends = link.opening.ephemeral;
                Ending::Lost { since_ns, session_ends }
            }
        };
        self.say(client, &format!("was closed in stage {:?}", link.stage));
        self.ended(client, link.stage, link.opening, ending, since_ns);
        link.peer.finish();
        let abandoned = &mut self.clients[client].abandoned;
        abandoned.iter().for_each(tacho_net::sim::Peer::reset);
        abandoned.push(link.peer);
    }

    /// What an acknowledgement of the broker means.
    pub(super) fn acknowledged(
        &mut self,
        client: usize,
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
    ) {
        if let Some(id) = self.clients[client].acknowledged(kind, packet_id, reason) {
            self.ledger.acknowledged(id, reason.is_error());
        }
    }
}
