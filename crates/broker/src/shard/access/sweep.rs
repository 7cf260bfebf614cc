//! A new policy is applied to the sessions that there are: users that are gone and clients
//! that are banned are disconnected,
//! subscriptions that are not allowed any more end. Deliveries ask the new rules from the moment
//! at which they arrive, so nothing slips through meanwhile.

use std::sync::Arc;

use tacho_access::{Coverage, Steps};
use tacho_codec::{QoS, ReasonCode};
use tacho_net::ConnId;
use tacho_session::server::End;
use tacho_topic::Filter;

use crate::access::{AuditEvent, AuditKind, Name};
use crate::keys::SessionSlot;
use crate::policy::Policy;
use crate::shard::{Net, Shard};

/// Why something ends.
const CHANGED: &str = "users or access rules have changed";

impl Shard {
    /// New users or rules are in force.
    pub(in crate::shard) fn policy_changed(&mut self, policy: Arc<Policy>) {
        self.stats.access_reloads_total.increment();
        // Mail of several reloads arrives in order.
        self.access.policy = policy;
        self.access.forget_decisions();
        self.access.sweep = Some(SessionSlot::new(0));
    }

    /// Certificates are judged by other CAs or revocation lists from now on.
    pub(in crate::shard) fn sweep_certificates(&mut self) {
        self.access.sweep = Some(SessionSlot::new(0));
    }

    /// The sessions of an earlier start are there: the rules may be others since.
    pub(in crate::shard) fn sweep_restored(&mut self) {
        if self.access.has_rules() {
            self.access.sweep = Some(SessionSlot::new(0));
        }
    }

    /// Goes on with applying a policy, as long as the turn lasts. True if there is more to do.
    #[inline]
    pub(in crate::shard) fn continue_sweep(&mut self, net: &mut Net) -> bool {
        match self.access.sweep {
            None => false,
            Some(first) => self.sweep_from(net, first),
        }
    }

    #[cold]
    fn sweep_from(&mut self, net: &mut Net, first: SessionSlot) -> bool {
        net.begin_work();
        for index in first.index()..self.sessions.slots_end() {
            let slot = SessionSlot::new(index as u32);
            let Some(session) = self.sessions.get(slot) else { continue };
            let units = 1 + session.subscriptions.len() as u32;
            self.apply_policy(net, slot);
            if !net.charge(units) {
                self.access.sweep = Some(SessionSlot::new(index as u32 + 1));
                return true;
            }
        }
        self.access.sweep = None;
        false
    }

    /// Applies the policy in force to a session, if that has not been done. Its client, if it has
    /// lost something, is disconnected: only that tells it.
    fn apply_policy(&mut self, net: &mut Net, slot: SessionSlot) {
        let has_lost = self.end_forbidden_subscriptions(net, slot);
        let Some(conn) = self.sessions[slot].connection() else { return };
        if self.end_banned(net, slot, conn) || self.end_refused_certificate(net, slot, conn) {
            return;
        }
        if has_lost || self.is_users_end(slot, conn) || self.is_shut_out(slot) {
            self.end_by_rules(net, slot, conn);
        }
    }

    /// Disconnects a client that has lost something by new users or rules.
    pub(in crate::shard) fn end_by_rules(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
    ) {
        self.stats.ended_by_rules_total.increment();
        self.log_denied(net, slot, "stay connected", "", &CHANGED);
        self.audit_ended(net, slot, AuditKind::ClientDisconnected, None, CHANGED);
        self.say_goodbye(net, conn, ReasonCode::NOT_AUTHORIZED);
        self.session_disconnected(net, slot, End::Lost);
    }

    /// Whether the user of a session is no longer in the password file of a connection, which is
    /// the session's or waits for it.
    pub(in crate::shard) fn is_users_end(&self, slot: SessionSlot, conn: ConnId) -> bool {
        let Some(user) = self.sessions[slot].access.user() else { return false };
        let users = self.access.policy.users(self.connections.listener_of(conn));
        user.is_listed && users.is_some_and(|users| users.get(&user.name).is_none())
    }

    /// Whether the rules do not let the client of a session connect any more.
    fn is_shut_out(&self, slot: SessionSlot) -> bool {
        let session = &self.sessions[slot];
        let decision = self.access.connecting(&session.who());
        session.link().is_none() && decision.is_some_and(|decision| !decision.is_allowed)
    }

    /// Ends the subscriptions of a session that the rules in force do not grant; true if there were
    /// any.
    pub(in crate::shard) fn end_forbidden_subscriptions(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
    ) -> bool {
        let version = self.access.policy.version();
        let session = &mut self.sessions[slot];
        if session.access.awaits_client() {
            // Its token, or where it connects from, may allow them: it is asked when it is back.
            let may_have_token = self.access.has_token_rules && session.access.user().is_some();
            if may_have_token || self.access.asks_origins() {
                return false;
            }
        }
        // Bridges have rules of their own.
        if !self.access.has_rules || session.link().is_some() || !session.access.apply(version) {
            return false;
        }
        let session = &self.sessions[slot];
        let is_forbidden = |filter: &&Filter| {
            let qos = self.options_of(slot, filter).map_or(QoS::ExactlyOnce, |options| options.qos);
            self.covers(slot, (*filter, qos), &mut Steps::default()) != Coverage::Whole
        };
        let forbidden: Vec<Filter> =
            session.subscriptions.iter().filter(is_forbidden).cloned().collect();
        for filter in &forbidden {
            self.stats.ended_subscriptions_total.increment();
            let topic_filter = filter.to_string();
            self.log_denied(net, slot, "subscribe", &topic_filter, &CHANGED);
            let ended = Some(&*topic_filter);
            self.audit_ended(net, slot, AuditKind::SubscriptionEnded, ended, CHANGED);
            self.forget_one(net, slot, filter);
        }
        !forbidden.is_empty()
    }

    /// Tells the audit log what the broker has ended, and why.
    pub(in crate::shard) fn audit_ended(
        &self,
        net: &Net,
        slot: SessionSlot,
        event: AuditKind,
        topic_filter: Option<&str>,
        why: &str,
    ) {
        let audit = &self.shared.access.audit;
        if !audit.is_on() {
            return;
        }
        let session = &self.sessions[slot];
        let conn = session.connection();
        audit.note(AuditEvent {
            event,
            address: conn.and_then(|conn| net.peer_addr(conn)),
            listener: conn.and_then(|conn| net.local_addr(conn)),
            client_id: Some(Name::new(&session.key().client_id)),
            user: session.access.user_name().map(Name::new),
            topic_filter: topic_filter.map(Name::new),
            why: Some(why.to_owned()),
            ..AuditEvent::default()
        });
    }
}
