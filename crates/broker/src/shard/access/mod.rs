//! Access control in a shard: the policy in force, logins, and what sessions may do.
//!
//! [`permission`](super::permission) says what holds without rules. Where there is no access list a
//! question costs one branch.

mod bans;
mod decisions;
mod log;
mod session;
mod sweep;

use std::sync::Arc;

use tacho_access::{
    Access, ClientRules, Coverage, Proof, Remembered, Steps, TokenAcl, TokenVerifier, Users, Who,
};
use tacho_topic::Filter;

use crate::access::SharedAccess;
use crate::config::{OnDeny, SubscribeCheck};
use crate::keys::{SessionSlot, User};
use crate::policy::Policy;
use crate::shard::Shard;
use decisions::Decisions;
use log::LineLimit;

pub(in crate::shard) use bans::Banned;
pub(in crate::shard) use log::Shown;
pub(in crate::shard) use session::SessionAccess;

/// Owns the policy in force, remembered logins and decisions.
pub(super) struct AccessRules {
    policy: Arc<Policy>,
    /// Whether there is an access list, or tokens may have rules. A reload does not change that.
    has_rules: bool,
    /// Whether tokens may have rules.
    has_token_rules: bool,
    /// Subscriptions are granted whatever the rules say, and messages left out.
    is_filtered: bool,
    on_deny: OnDeny,
    remembered: Remembered,
    decisions: Decisions,
    /// Counts how often all decisions were forgotten, from 1 on.
    epoch: u32,
    /// The next session to which a new policy is applied.
    sweep: Option<SessionSlot>,
    lines: LineLimit,
}

impl AccessRules {
    pub(super) fn new(shared: &SharedAccess, shards: usize) -> Self {
        let settings = &shared.settings;
        let remembered_max = settings.remembered_logins_max as usize / shards.max(1);
        let keep_ns = u64::from(settings.remember_logins_s) * 1_000_000_000;
        let has_token_rules = settings.jwt.as_ref().is_some_and(|jwt| !jwt.acl_claim.is_empty());
        Self {
            policy: Arc::clone(&shared.first),
            has_rules: has_token_rules || shared.first.acl().is_some(),
            has_token_rules,
            is_filtered: settings.subscribe == SubscribeCheck::Filtered,
            on_deny: settings.on_deny,
            remembered: Remembered::new(remembered_max, keep_ns),
            decisions: Decisions::default(),
            epoch: 1,
            sweep: None,
            lines: LineLimit::default(),
        }
    }

    /// Whether anything has to be asked about messages and subscriptions.
    #[inline]
    pub(super) const fn has_rules(&self) -> bool {
        self.has_rules
    }

    pub(super) const fn on_deny(&self) -> OnDeny {
        self.on_deny
    }

    /// For a session that is made now: what it will be sent was granted by the policy in force.
    pub(super) fn of_new_session(&self, user: Option<User>) -> SessionAccess {
        SessionAccess::new(user, self.policy.version())
    }

    /// The users of a listener, if it has a password file.
    pub(super) fn users(&self, listener: u16) -> Option<&Arc<Users>> {
        self.policy.users(listener)
    }

    /// What verifies tokens, if clients may log in with them.
    pub(super) fn tokens(&self) -> Option<&Arc<TokenVerifier>> {
        self.policy.tokens()
    }

    /// The version of the policy.
    pub(super) fn version(&self) -> u32 {
        self.policy.version()
    }

    /// Whether a login was verified a short while ago.
    pub(super) fn remembers(&mut self, proof: Proof, now_ns: u64) -> bool {
        self.remembered.knows(proof, now_ns)
    }

    /// A login has been verified.
    pub(super) fn remember(&mut self, proof: Proof, now_ns: u64) {
        self.remembered.add(proof, now_ns);
    }

    /// Whether a client may publish to a topic: for one that has no session yet.
    pub(super) fn lets_publish(
        &self,
        who: &Who<'_>,
        token: Option<&TokenAcl>,
        topic: &str,
    ) -> bool {
        self.rules_of(token).decide(who, Access::Publish, topic).is_allowed
    }

    /// The rules, or the user of a session, are others.
    fn forget_decisions(&mut self) {
        self.decisions.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Whether a line may be written to the log, and how many were left out before it.
    pub(super) fn line(&mut self, now_ns: u64) -> Option<u64> {
        self.lines.take(now_ns)
    }

    /// The rules of a client with these of its token.
    fn rules_of<'a>(&'a self, token: Option<&'a TokenAcl>) -> ClientRules<'a> {
        ClientRules { token, acl: self.policy.acl() }
    }
}

impl Shard {
    /// The session is this user's from now on.
    pub(super) fn give_to(&mut self, slot: SessionSlot, user: Option<User>) {
        let access = &mut self.sessions[slot].access;
        if access.set_user(user) {
            access.distrust();
            self.access.forget_decisions();
        }
    }

    /// Whether the rules let a session publish to a topic of the route cache.
    #[inline]
    pub(super) fn may_publish_to(&mut self, slot: SessionSlot, topic: &Arc<str>) -> bool {
        let epoch = self.access.epoch;
        if self.sessions[slot].access.was_allowed(topic, epoch) {
            return true;
        }
        let is_allowed = self.is_allowed(slot, Access::Publish, topic);
        if is_allowed {
            self.sessions[slot].access.allow(topic, epoch);
        }
        is_allowed
    }

    /// Whether the rules let a session publish to a topic, or receive its messages.
    pub(super) fn is_allowed(&mut self, slot: SessionSlot, access: Access, topic: &str) -> bool {
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        if rules.is_empty() {
            return true;
        }
        let asked = decisions::Question { slot, generation: session.generation(), access, topic };
        if let Some(is_allowed) = self.access.decisions.get(&asked) {
            return is_allowed;
        }
        let is_allowed = rules.decide(&session.who(), access, topic).is_allowed;
        self.access.decisions.put(&asked, is_allowed);
        is_allowed
    }

    /// Whether a session may not have a message that is about to be sent to it. That is asked only
    /// where its subscriptions were not granted as a whole, or not by the rules in force.
    pub(super) fn withholds(&mut self, slot: SessionSlot, topic: &str) -> bool {
        let session = &self.sessions[slot];
        let is_granted =
            !self.access.is_filtered && session.access.is_trusted(self.access.policy.version());
        // Bridges have rules of their own.
        !is_granted && session.link().is_none() && !self.is_allowed(slot, Access::Receive, topic)
    }

    /// Whether the rules grant a session a subscription.
    pub(super) fn covers(&self, slot: SessionSlot, filter: &Filter, steps: &mut Steps) -> Coverage {
        // A member that left messages out would lose them for its group.
        if self.access.is_filtered && !filter.is_shared() {
            return Coverage::Whole;
        }
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        rules.covers(&session.who(), filter.topic_filter(), steps)
    }
}
