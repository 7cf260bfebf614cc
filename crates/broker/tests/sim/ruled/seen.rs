//! What clients see, and whether a policy of that moment allows it.

use tacho_codec::{AckKind, PacketId, ReasonCode};

use super::World;
use super::client::Span;
use super::policy::{FILTERS, Policy, Right, TOPICS, WILL, pattern};
use crate::wire::{self, Event, Received};

impl World {
    pub(super) fn event(&mut self, client: usize, event: Event) {
        match event {
            Event::ConnAck { session_present, reason, .. } => {
                self.connected(client, session_present, reason);
            }
            Event::Publish(received) => self.received(client, &received),
            Event::Ack { kind: AckKind::PubAck, packet_id, reason } => {
                self.acknowledged(client, packet_id, reason);
            }
            Event::SubAck { packet_id, reasons } => self.answered(client, packet_id, reasons[0]),
            Event::UnsubAck { packet_id, .. } => {
                let request = self.clients[client].requests.remove(&packet_id.get());
                assert!(request.is_some_and(|request| !request.subscribes));
            }
            Event::Disconnect(reason) => self.dismissed(client, Some(reason)),
            other => panic!("client {client} sees {other:?}"),
        }
    }

    fn connected(&mut self, client: usize, session_present: bool, reason: ReasonCode) {
        let who = self.who(client);
        let known = &mut self.clients[client];
        let Some(link) = &mut known.link else { return };
        let (since, password, will) = (link.since, link.password, link.will);
        let policies = || self.judge.policies(who.shard, since, self.now);
        let lets_in =
            |policy: &Policy| password.is_some() && policy.password_of(who.user) == password;
        let takes_will = |policy: &Policy| policy.allows(who.user, Right::Publish, TOPICS[WILL]);
        match reason {
            ReasonCode::SUCCESS => {
                assert!(policies().any(lets_in), "{} is let in", known.name);
                assert!(will.is_none() || policies().any(takes_will), "the will of {}", known.name);
                assert!(session_present || !known.has_session, "{} has no session", known.name);
                link.is_online = true;
                known.has_session = true;
                for (packet_id, number) in known.unacked.clone() {
                    let content = self.messages[number].content(number);
                    known.send_publish(content, PacketId::new(packet_id), true);
                }
                self.arrive(client);
            }
            ReasonCode::BAD_USER_NAME_OR_PASSWORD => {
                assert!(!policies().all(lets_in), "{} is refused", known.name);
                link.was_dismissed = true;
            }
            ReasonCode::NOT_AUTHORIZED => {
                let is_gone = |policy: &Policy| policy.password_of(who.user).is_none();
                let has_reason = will.is_some() && !policies().all(takes_will);
                assert!(has_reason || policies().any(is_gone), "{} is refused", known.name);
                link.was_dismissed = true;
            }
            // No answer for too long.
            ReasonCode::SERVER_BUSY => link.was_dismissed = true,
            other => panic!("{} is refused: {other:?}", known.name),
        }
    }

    fn received(&mut self, client: usize, received: &Received) {
        let number = wire::number(&received.payload).expect("a number") as usize;
        let (who, now) = (self.who(client), self.now);
        let message = &self.messages[number];
        let said = || format!("{} gets {number} {message:?}", self.clients[client].name);
        assert_eq!(received.topic, TOPICS[message.topic], "{}", said());
        assert!(self.judge.may_receive(who, message.topic, message.sent, now), "{}", said());
        let publisher = self.who(message.publisher);
        let (from, to) = match message.will {
            None => (message.sent, message.done.map_or(now, |(done, _)| done)),
            // An end that its client has not seen yet is no older than its shard's output.
            Some(ended) => (ended.unwrap_or(self.judge.shards[publisher.shard].drained), now),
        };
        let may = self.judge.may_publish(publisher, message.topic, from, to);
        assert!(may, "its publisher may not: {}", said());
        let shared_id = FILTERS.len() as u32;
        if received.subscription_ids.contains(&shared_id) {
            self.shared_got.insert(number);
        }
        self.clients[client].got.insert(number);
        if let Some(packet_id) = received.packet_id {
            self.clients[client].acknowledge(packet_id);
            self.arrive(client);
        }
    }

    fn acknowledged(&mut self, client: usize, packet_id: PacketId, reason: ReasonCode) {
        let (who, now) = (self.who(client), self.now);
        let number = self.clients[client].unacked.remove(&packet_id.get()).expect("was sent");
        let message = &mut self.messages[number];
        message.done = Some((now, reason));
        let (topic, sent) = (TOPICS[message.topic], message.sent);
        let mut policies = self.judge.policies(who.shard, sent, now);
        let allows = |policy: &Policy| policy.allows(who.user, Right::Publish, topic);
        let is_true = match reason {
            ReasonCode::SUCCESS | ReasonCode::NO_MATCHING_SUBSCRIBERS => policies.any(allows),
            ReasonCode::NOT_AUTHORIZED => policies.any(|policy| !allows(policy)),
            _ => false,
        };
        assert!(is_true, "{reason:?} for {number} {message:?}");
    }

    fn answered(&mut self, client: usize, packet_id: PacketId, reason: ReasonCode) {
        let (who, now) = (self.who(client), self.now);
        let request = self.clients[client].requests.remove(&packet_id.get()).expect("was sent");
        let (filter, asked) = (request.filter, request.sent);
        let [may_grant, may_refuse] = self.judge.grants(who, filter, asked, now);
        let is_filtered = self.is_filtered && !pattern(filter).1;
        let said = || format!("{reason:?} for {} of {who:?}", FILTERS[filter]);
        if reason.is_error() {
            assert!(
                reason == ReasonCode::NOT_AUTHORIZED && may_refuse && !is_filtered,
                "{}",
                said()
            );
            self.clients[client].spans.remove(&filter);
        } else {
            assert!(may_grant || is_filtered, "{}", said());
            if !self.clients[client].gives_up(filter) {
                self.clients[client].spans.insert(filter, Span { asked, granted: now });
            }
        }
    }

    /// Only clients that have lost something are told so; `None`: it was not told why.
    pub(super) fn dismissed(&mut self, client: usize, reason: Option<ReasonCode>) {
        let (who, name) = (self.who(client), &self.clients[client].name);
        let Some(link) = &self.clients[client].link else { return };
        let (since, has_rivals) = (link.since, link.has_rivals);
        let loses = |policy: &Policy| {
            let mut ever = self.clients[client].ever.iter();
            policy.password_of(who.user).is_none()
                || ever.any(|&filter| {
                    (!self.is_filtered || pattern(filter).1) && !policy.covers(who.user, filter)
                })
        };
        let mut policies = self.judge.policies(who.shard, since, self.now);
        let has_reason = match reason {
            Some(ReasonCode::NOT_AUTHORIZED) => policies.any(loses),
            Some(ReasonCode::SESSION_TAKEN_OVER) => has_rivals,
            None => has_rivals || policies.any(loses),
            Some(_) => false,
        };
        assert!(has_reason, "{name} is disconnected and has lost nothing: {reason:?}");
        if let Some(link) = &mut self.clients[client].link {
            link.was_dismissed = true;
        }
    }
}
