//! A new policy is applied to the sessions that there are: users that are gone and clients
//! that are banned are disconnected, subscriptions that are not allowed any more end. That takes as
//! many turns as it needs, also for one session. Deliveries ask the new rules from the moment at
//! which they arrive, so nothing slips through meanwhile; and what a client subscribes to and
//! unsubscribes from waits until its session is done.

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_access::{Coverage, Steps};
use tacho_codec::{QoS, ReasonCode};
use tacho_net::ConnId;
use tacho_session::server::End;

use super::units_of;
use crate::access::{AuditEvent, AuditKind, Name};
use crate::config::RevokedQueue;
use crate::delivery::NO_GROUP;
use crate::keys::SessionSlot;
use crate::policy::Policy;
use crate::shard::{Net, Shard};

/// What ending a subscription costs, in the map that shards share too.
const ENDING_UNITS: u32 = 4;
/// Subscriptions that are passed over in a microsecond.
const PASSED_PER_UNIT: usize = 1_000;

/// Messages that are dropped in a microsecond.
const DROPPED_PER_UNIT: usize = 8;

/// Why something ends.
const CHANGED: &str = "users or access rules have changed";

/// The sessions to which the policy in force has yet to be applied.
#[derive(Default)]
pub(super) struct Sweep {
    /// All from this one on.
    next: Option<SessionSlot>,
    /// Those that are begun and not done.
    begun: VecDeque<SweptSession>,
    /// Whether the certificates of clients are judged on the way.
    judges_certificates: bool,
}

/// A session to which a policy is being applied.
struct SweptSession {
    slot: SessionSlot,
    generation: u32,
    /// Subscriptions that were looked at and stay. Nothing else changes them meanwhile.
    kept: usize,
    has_lost: bool,
}

impl Sweep {
    /// A session has lost a subscription: it is looked at anew.
    fn start_anew(&mut self, slot: SessionSlot) {
        self.begun.iter_mut().filter(|session| session.slot == slot).for_each(|s| s.kept = 0);
    }
}

impl Shard {
    /// New users or rules are in force.
    pub(in crate::shard) fn policy_changed(&mut self, policy: Arc<Policy>) {
        self.stats.access_reloads_total.increment();
        // Mail of several reloads arrives in order.
        self.access.policy = policy;
        self.access.forget_decisions();
        self.access.sweep.next = Some(SessionSlot::new(0));
        let version = self.access.policy.version();
        for begun in &mut self.access.sweep.begun {
            // By the new policy from the beginning; what it has lost by the former one it has lost.
            begun.kept = 0;
            if self.sessions.is_current(begun.slot, begun.generation) {
                self.sessions[begun.slot].access.apply(version);
            }
        }
    }

    /// Certificates are judged by other CAs or revocation lists from now on.
    pub(in crate::shard) fn sweep_certificates(&mut self) {
        self.access.sweep.next = Some(SessionSlot::new(0));
        self.access.sweep.judges_certificates = true;
    }

    /// The sessions of an earlier start are there: the rules may be others since.
    pub(in crate::shard) fn sweep_restored(&mut self) {
        if self.access.has_rules() {
            self.access.sweep.next = Some(SessionSlot::new(0));
        }
    }

    /// Goes on with applying a policy, as long as the turn lasts. True if there is more to do.
    #[inline]
    pub(in crate::shard) fn continue_sweep(&mut self, net: &mut Net) -> bool {
        let sweep = &self.access.sweep;
        (sweep.next.is_some() || !sweep.begun.is_empty()) && self.sweep(net)
    }

    #[cold]
    fn sweep(&mut self, net: &mut Net) -> bool {
        net.begin_work();
        while let Some(session) = self.access.sweep.begun.pop_front() {
            if !self.apply_policy(net, session) {
                return true;
            }
        }
        let Some(first) = self.access.sweep.next.take() else { return false };
        for index in first.index()..self.sessions.slots_end() {
            let slot = SessionSlot::new(index as u32);
            if !self.sessions.contains(slot) {
                continue;
            }
            let is_done = match self.begin_sweep(slot) {
                Some(session) => self.apply_policy(net, session),
                None => {
                    self.end_unwelcome(net, slot, false);
                    net.charge(1)
                }
            };
            if !is_done {
                self.access.sweep.next = Some(SessionSlot::new(index as u32 + 1));
                return true;
            }
        }
        // Once for each change: it is the costliest of all checks.
        self.access.sweep.judges_certificates = false;
        false
    }

    /// Goes on with applying the policy in force to a session; false if there is no time for more.
    fn apply_policy(&mut self, net: &mut Net, mut session: SweptSession) -> bool {
        let slot = session.slot;
        if !self.sessions.is_current(slot, session.generation) {
            return true;
        }
        if self.sessions[slot].link().is_none() {
            self.apply_limits(slot);
        }
        if !self.end_forbidden(net, &mut session) {
            self.access.sweep.begun.push_front(session);
            return false;
        }
        self.sessions[slot].access.swept();
        self.end_unwelcome(net, slot, session.has_lost);
        net.charge(1)
    }

    /// A client that is banned or has lost something is disconnected: only that tells it, where it
    /// is to be told.
    fn end_unwelcome(&mut self, net: &mut Net, slot: SessionSlot, has_lost: bool) {
        let Some(conn) = self.sessions[slot].connection() else { return };
        if self.end_banned(net, slot, conn) {
            return;
        }
        if self.access.sweep.judges_certificates && self.end_refused_certificate(net, slot, conn) {
            return;
        }
        let is_told = has_lost && self.access.tells_revoked();
        if is_told || self.is_users_end(slot, conn) || self.is_shut_out(slot) {
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
    pub(in crate::shard) fn is_shut_out(&self, slot: SessionSlot) -> bool {
        let session = &self.sessions[slot];
        let decision = self.access.connecting(&session.who());
        session.link().is_none() && decision.is_some_and(|decision| !decision.is_allowed)
    }

    /// A client is about to have this session: the subscriptions that the rules in force do not
    /// grant end, in this event as far as there is time. True if any did.
    pub(in crate::shard) fn end_forbidden_subscriptions(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
    ) -> bool {
        let Some(mut session) = self.begin_sweep(slot) else { return false };
        let is_done = self.end_forbidden(net, &mut session);
        // What it has lost so far is for the caller to tell.
        let has_lost = std::mem::take(&mut session.has_lost);
        if is_done {
            self.sessions[slot].access.swept();
        } else {
            self.access.sweep.begun.push_back(session);
        }
        has_lost
    }

    /// Begins to apply the policy in force to a session; `None` if that has been done or begun, or
    /// there are no rules for it.
    fn begin_sweep(&mut self, slot: SessionSlot) -> Option<SweptSession> {
        let version = self.access.policy.version();
        let session = &mut self.sessions[slot];
        if session.access.awaits_client() {
            // What its login brings, or where it connects from, may allow them: it is asked when
            // it is back.
            let may_bring_rules = self.access.has_login_rules && session.access.user().is_some();
            if may_bring_rules || self.access.asks_origins() || self.access.asks_attributes() {
                return None;
            }
        }
        // Bridges have rules of their own.
        if !self.access.has_rules || session.link().is_some() || !session.access.apply(version) {
            return None;
        }
        let generation = session.generation();
        if session.access.is_swept() {
            // It is another user's now.
            self.access.sweep.start_anew(slot);
            return None;
        }
        session.access.begin_sweep();
        Some(SweptSession { slot, generation, kept: 0, has_lost: false })
    }

    /// Ends subscriptions of a session that the rules in force do not grant. True if all were
    /// looked at; otherwise there is no time for more.
    fn end_forbidden(&mut self, net: &mut Net, swept: &mut SweptSession) -> bool {
        let slot = swept.slot;
        let (mut forbidden, mut has_time) = (Vec::new(), true);
        net.charge((swept.kept / PASSED_PER_UNIT) as u32);
        for filter in self.sessions[slot].subscriptions.iter().skip(swept.kept) {
            if !has_time {
                break;
            }
            let mut steps = Steps::default();
            let before = steps.done();
            let qos = self.options_of(slot, filter).map_or(QoS::ExactlyOnce, |options| options.qos);
            let is_granted = self.covers(slot, (filter, qos), &mut steps) == Coverage::Whole;
            let mut units = 1 + units_of(before, &steps);
            if is_granted {
                swept.kept += 1;
            } else {
                forbidden.push(filter.clone());
                units += ENDING_UNITS;
            }
            has_time = net.charge(units);
        }
        for filter in &forbidden {
            self.stats.ended_subscriptions_total.increment();
            let topic_filter = filter.to_string();
            self.log_denied(net, slot, "subscribe", &topic_filter, &CHANGED);
            let ended = Some(&*topic_filter);
            self.audit_ended(net, slot, AuditKind::SubscriptionEnded, ended, CHANGED);
        }
        self.forget_all(net, slot, &forbidden);
        if !forbidden.is_empty() {
            swept.has_lost = true;
            if self.access.revoked_queue == RevokedQueue::Drop {
                has_time &= self.drop_queue(net, slot);
            }
        }
        has_time
    }

    /// Drops what waits for a session. Other members get the messages of shared subscriptions;
    /// those of a group without others stay. False if there is no time for more.
    fn drop_queue(&mut self, net: &mut Net, slot: SessionSlot) -> bool {
        self.pass_on_unsent(net, slot);
        let dropped = self.act(slot, |machine, recorder| {
            machine.take_queued(|copy| copy.group == NO_GROUP, recorder)
        });
        self.stats.denied_deliveries_total.add(dropped.len() as u64);
        net.charge((dropped.len() / DROPPED_PER_UNIT) as u32)
    }

    /// Whether a policy is being applied to a session: its subscriptions do not change meanwhile.
    #[inline]
    pub(in crate::shard) fn is_swept(&self, slot: SessionSlot) -> bool {
        self.sessions[slot].access.is_swept()
    }

    /// A session has lost a subscription for another reason.
    pub(in crate::shard) fn sweep_anew(&mut self, slot: SessionSlot) {
        if self.is_swept(slot) {
            self.access.sweep.start_anew(slot);
        }
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
