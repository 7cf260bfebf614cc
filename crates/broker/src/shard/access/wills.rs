//! Wills that are due: what the user that made one may publish now.
//!
//! The rules in force decide, for the maker of the will, also where the session is another user's
//! by now. The journal does not have the rules of tokens, only what they say of a will: that counts
//! until a client has the session again.

use tacho_access::{Access, Cause, ClientRules, Origin, PublishKind, Who};

use super::CauseShown;
use super::log::tell_denied;
use crate::access::{AuditEvent, AuditKind, Name};
use crate::keys::SessionSlot;
use crate::message::Message;
use crate::shard::{Net, Shard};

/// Why a will is not published.
struct WillFault<'a> {
    /// Its own topic, or its response topic.
    topic: &'a str,
    why: String,
}

impl Shard {
    /// Whether a will that is due must not be published.
    pub(in crate::shard) fn denies_will(
        &mut self,
        net: &Net,
        slot: SessionSlot,
        will: &Message,
    ) -> bool {
        let Some(WillFault { topic, why }) = self.fault_of_will(slot, will) else { return false };
        self.stats.denied_wills_total.increment();
        let user = will.header().user.as_deref();
        if let Some(untold) = self.access.line(net.now_ns()) {
            let client = (&*self.sessions[slot].key().client_id, user);
            tell_denied(client, "publish a will", topic, &why, untold);
        }
        let audit = &self.shared.access.audit;
        if audit.is_on() {
            audit.note(AuditEvent {
                event: AuditKind::WillRefused,
                client_id: Some(Name::new(&self.sessions[slot].key().client_id)),
                user: user.map(Name::new),
                topic: Some(Name::new(topic)),
                why: Some(why),
                ..AuditEvent::default()
            });
        }
        true
    }

    fn fault_of_will<'a>(&self, slot: SessionSlot, will: &'a Message) -> Option<WillFault<'a>> {
        let (topic, header) = (will.topic(), will.header());
        let limits = self.access.limits_of(header.user.as_deref());
        if let Some(exceeded) = limits.exceeded(topic, header.qos as u8, header.retain) {
            return Some(WillFault { topic, why: exceeded.sentence().to_owned() });
        }
        match self.restored_word(slot, will) {
            Some(true) => return None,
            Some(false) => {
                return Some(WillFault { topic, why: CauseShown(Cause::Token).to_string() });
            }
            None => {}
        }
        let response_topic = response_topic(will).filter(|_| self.access.asks_response_topics());
        let publish = Access::Publish(PublishKind::new(header.qos as u8, header.retain));
        let asked = [(publish, Some(topic)), (Access::Receive, response_topic)];
        let (who, rules) = (self.maker_of(slot, will), self.rules_of_maker(slot, will));
        asked.into_iter().find_map(|(access, topic)| {
            let topic = topic?;
            let decision = rules.decide(&who, access, topic);
            let why = || CauseShown(decision.cause).to_string();
            (!decision.is_allowed).then(|| WillFault { topic, why: why() })
        })
    }

    /// What the rules of its client's token say of a session's will, if they say something, for the
    /// journal.
    pub(in crate::shard) fn word_of_token(
        &self,
        slot: SessionSlot,
        will: &Message,
    ) -> Option<bool> {
        if let Some(restored) = self.restored_word(slot, will) {
            return Some(restored);
        }
        let rules = ClientRules { list: None, ..self.rules_of_maker(slot, will) };
        rules.token?;
        let who = self.maker_of(slot, will);
        let says = |access, topic| {
            let decision = rules.decide(&who, access, topic);
            (decision.cause == Cause::Token).then_some(decision.is_allowed)
        };
        let header = will.header();
        let kind = PublishKind::new(header.qos as u8, header.retain);
        let of_topic = says(Access::Publish(kind), will.topic());
        let response_topic = response_topic(will).filter(|_| self.access.asks_response_topics());
        let of_response = response_topic.map(|topic| says(Access::Receive, topic));
        match (of_topic, of_response) {
            (Some(false), _) | (_, Some(Some(false))) => Some(false),
            (Some(true), None | Some(Some(true))) => Some(true),
            // What the token leaves open is for the other rules, and they decide about both.
            _ => None,
        }
    }

    /// The same as the journal has it, until a client has the session again.
    fn restored_word(&self, slot: SessionSlot, will: &Message) -> Option<bool> {
        let access = &self.sessions[slot].access;
        access.restored_word().filter(|_| self.is_maker(slot, will))
    }

    fn maker_of<'a>(&'a self, slot: SessionSlot, will: &'a Message) -> Who<'a> {
        let session = &self.sessions[slot];
        let is_own = self.is_maker(slot, will);
        let origin = if is_own { session.access.origin() } else { Origin::UNKNOWN };
        let attributes = session.access.attributes().filter(|_| is_own);
        let user = will.header().user.as_deref();
        Who { user, client_id: &session.key().client_id, origin, attributes }
    }

    fn rules_of_maker(&self, slot: SessionSlot, will: &Message) -> ClientRules<'_> {
        let is_own = self.is_maker(slot, will);
        self.access.rules_of(self.sessions[slot].access.rules().filter(|_| is_own))
    }

    /// Whether the session is its user's still.
    fn is_maker(&self, slot: SessionSlot, will: &Message) -> bool {
        self.sessions[slot].access.user_name() == will.header().user.as_deref()
    }
}

fn response_topic(will: &Message) -> Option<&str> {
    // The time has no effect on it.
    will.as_publish(0).properties.response_topic
}
