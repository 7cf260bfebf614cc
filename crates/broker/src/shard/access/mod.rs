//! Access control in a shard: the policy in force, logins, and what sessions may do.
//!
//! [`permission`](super::permission) says what holds without rules. Where there are no rules a
//! question costs one branch.

mod asked;
mod bans;
mod certificates;
mod decisions;
mod limits;
mod log;
mod publishers;
mod session;
mod sweep;
mod wills;

use std::sync::Arc;

use tacho_access::{
    Access, AccessList, ClientRules, Coverage, Decision, Origin, Proof, PublishKind, PublishKinds,
    Remembered, RememberedAnswers, Steps, SubscriptionKind, TokenAcl, TokenVerifier, Users, Who,
};
use tacho_codec::QoS;
use tacho_net::ConnId;
use tacho_topic::Filter;

use crate::access::SharedAccess;
use crate::config::{HttpSettings, JwtSettings, OnDeny, OnRevoked, RevokedQueue, SubscribeCheck};
use crate::keys::{SessionSlot, User};
use crate::login_answer::BackendLogin;
use crate::policy::Policy;
use crate::shard::{Net, Shard};
use decisions::{Decisions, Question, Right};
use log::LineLimit;
use publishers::{Publisher, Publishers};
use sweep::Sweep;

pub(in crate::shard) use bans::Banned;
pub(in crate::shard) use certificates::ENDED as CERTIFICATE_ENDED;
pub(in crate::shard) use limits::reason_of;
pub(in crate::shard) use log::{CauseShown, Shown};
pub(in crate::shard) use session::{SessionAccess, attributes_of};

/// Looks at an access rule that take as long as a unit of work.
const STEPS_PER_UNIT: usize = 16;

/// What the steps cost that were done since `before`.
pub(in crate::shard) fn units_of(before: usize, steps: &Steps) -> u32 {
    ((steps.done() - before) / STEPS_PER_UNIT) as u32
}

/// Owns the policy in force, remembered logins, answers of the backend, and decisions.
pub(super) struct AccessRules {
    policy: Arc<Policy>,
    /// Whether there are access rules, or logins may bring some. A reload does not change that.
    has_rules: bool,
    /// Whether tokens or answers of a backend may have rules.
    has_login_rules: bool,
    /// Subscriptions are granted whatever the rules say, and messages left out.
    is_filtered: bool,
    /// Whether there is a rules file, whose roles may have limits. A reload does not change that.
    has_roles: bool,
    on_deny: OnDeny,
    on_revoked: OnRevoked,
    revoked_queue: RevokedQueue,
    remembered: Remembered,
    /// By backend.
    backend_answers: Vec<RememberedAnswers<BackendLogin>>,
    decisions: Decisions,
    publishers: Publishers,
    /// Counts how often all decisions were forgotten, from 1 on.
    epoch: u32,
    sweep: Sweep,
    lines: LineLimit,
}

impl AccessRules {
    pub(super) fn new(shared: &SharedAccess, shards: usize) -> Self {
        let settings = &shared.settings;
        let remembered_max = settings.remembered_logins_max as usize / shards.max(1);
        let keep_ns = u64::from(settings.remember_logins_s) * 1_000_000_000;
        let has_token_rules = settings.jwt.as_ref().is_some_and(JwtSettings::brings_rules);
        let has_login_rules = has_token_rules || !settings.http.is_empty();
        let answers = |http: &HttpSettings| {
            RememberedAnswers::new(http.remembered_max as usize / shards.max(1))
        };
        Self {
            policy: Arc::clone(&shared.first),
            has_rules: has_login_rules || shared.first.list().is_some(),
            has_login_rules,
            is_filtered: settings.subscribe == SubscribeCheck::Filtered,
            has_roles: settings.rules_file.is_some(),
            on_deny: settings.on_deny,
            on_revoked: settings.on_revoked,
            revoked_queue: settings.revoked_queue,
            remembered: Remembered::new(remembered_max, keep_ns),
            backend_answers: settings.http.all().iter().map(answers).collect(),
            decisions: Decisions::default(),
            publishers: Publishers::default(),
            epoch: 1,
            sweep: Sweep::default(),
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

    /// Whether a client that has lost a subscription is told so: by the end of its connection.
    pub(super) fn tells_revoked(&self) -> bool {
        self.on_revoked == OnRevoked::Disconnect
    }

    /// For a session that is made now: what it will be sent was granted by the policy in force.
    pub(super) fn of_new_session(&self, user: Option<User>, origin: Origin) -> SessionAccess {
        SessionAccess::new(user, origin, self.policy.version())
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

    /// What a backend has said of this login a short while ago.
    pub(super) fn backend_answer(
        &self,
        backend: usize,
        asked: Proof,
        now_ns: u64,
    ) -> Option<BackendLogin> {
        self.backend_answers.get(backend)?.get(asked, now_ns).cloned()
    }

    /// A backend has said this of a login, and is not asked again before that time.
    pub(super) fn remember_answer(
        &mut self,
        backend: usize,
        asked: Proof,
        answer: BackendLogin,
        until_ns: u64,
    ) {
        if let Some(answers) = self.backend_answers.get_mut(backend) {
            answers.add(asked, answer, until_ns);
        }
    }

    /// Whether a client may connect, and why; `None` where no rules are about that.
    pub(super) fn connecting(&self, who: &Who<'_>) -> Option<Decision> {
        let list = self.policy.list().filter(|list| list.has_connect());
        list.map(|list| list.connecting(who))
    }

    /// Whether a client that has no session yet may publish to a topic or receive from it.
    pub(super) fn lets(
        &self,
        who: &Who<'_>,
        token: Option<&TokenAcl>,
        access: Access,
        topic: &str,
    ) -> bool {
        self.rules_of(token).decide(who, access, topic).is_allowed
    }

    /// Whether the publisher of a message must be allowed to receive at its response topic.
    pub(super) fn asks_response_topics(&self) -> bool {
        self.policy.list().is_some_and(AccessList::asks_response_topics)
    }

    /// Whether rules ask where clients have connected from.
    fn asks_origins(&self) -> bool {
        self.policy.list().is_some_and(AccessList::names_origins)
    }

    /// Whether rules ask for attributes of clients.
    fn asks_attributes(&self) -> bool {
        self.policy.list().is_some_and(AccessList::names_attributes)
    }

    /// The rules are others.
    fn forget_decisions(&mut self) {
        self.decisions.clear();
        self.publishers.clear();
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Whether a line may be written to the log, and how many were left out before it.
    pub(super) fn line(&mut self, now_ns: u64) -> Option<u64> {
        self.lines.take(now_ns)
    }

    /// The rules of a client with these of its token.
    fn rules_of<'a>(&'a self, token: Option<&'a TokenAcl>) -> ClientRules<'a> {
        ClientRules { token, list: self.policy.list() }
    }
}

impl Shard {
    /// The session is this user's from now on, and its client connects from there.
    pub(super) fn give_to(&mut self, slot: SessionSlot, user: Option<User>, origin: Origin) {
        let asks_origins = self.access.asks_origins();
        let access = &mut self.sessions[slot].access;
        let has_moved = access.set_origin(origin) && asks_origins;
        if access.set_user(user) || has_moved {
            access.distrust();
        }
    }

    /// Where the client of a connection has connected from, if a rules file may ask.
    pub(super) fn origin_of(&self, net: &Net, conn: ConnId) -> Origin {
        match self.access.policy.list() {
            Some(AccessList::Rules(_)) => Origin {
                address: net.peer_addr(conn).map(|address| address.ip().to_canonical()),
                listener: self.shared.access.address_of(self.connections.listener_of(conn)),
            },
            _ => Origin::UNKNOWN,
        }
    }

    /// Whether the rules let a session publish to a topic of the route cache.
    #[inline]
    pub(super) fn may_publish_to(
        &mut self,
        slot: SessionSlot,
        topic: &Arc<str>,
        kind: PublishKind,
    ) -> bool {
        let epoch = self.access.epoch;
        if self.sessions[slot].access.was_allowed(topic, kind, epoch) {
            return true;
        }
        let kinds = self.publishing(slot, topic);
        let is_allowed = kinds.has(kind);
        if is_allowed {
            self.sessions[slot].access.allow(topic, kinds, epoch);
        }
        is_allowed
    }

    /// The kinds of messages that the rules let a session publish to a topic.
    pub(super) fn publishing(&mut self, slot: SessionSlot, topic: &str) -> PublishKinds {
        let session = &self.sessions[slot];
        let (generation, identity) = (session.generation(), session.access.identity());
        let publisher = Publisher { slot, generation, identity };
        if let Some(rules) = self.access.publishers.rules(publisher) {
            return rules.publishing(topic);
        }
        let mut is_new = false;
        let kinds = self.decided(slot, Right::Publish, topic, |rules, who| {
            is_new = true;
            rules.publishing(who, topic)
        });
        if is_new && self.access.publishers.decided(publisher) {
            self.make_ready(publisher);
        }
        kinds
    }

    /// Makes the rules of a client ready that publishes to many topics.
    fn make_ready(&mut self, publisher: Publisher) {
        let session = &self.sessions[publisher.slot];
        let rules = self.access.rules_of(session.access.rules()).publish_rules(&session.who());
        if let Some(rules) = rules {
            self.access.publishers.keep(publisher, rules);
        }
    }

    /// Whether the rules let a session receive the messages of a topic.
    pub(super) fn may_receive_from(&mut self, slot: SessionSlot, topic: &str) -> bool {
        let allowed = self.decided(slot, Right::Receive, topic, |rules, who| {
            match rules.decide(who, Access::Receive, topic).is_allowed {
                true => PublishKinds::ALL,
                false => PublishKinds::NONE,
            }
        });
        allowed == PublishKinds::ALL
    }

    fn decided(
        &mut self,
        slot: SessionSlot,
        right: Right,
        topic: &str,
        decide: impl FnOnce(&ClientRules<'_>, &Who<'_>) -> PublishKinds,
    ) -> PublishKinds {
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        if rules.is_empty() {
            return PublishKinds::ALL;
        }
        let (generation, identity) = (session.generation(), session.access.identity());
        let asked = Question { slot, generation, identity, right, topic };
        if let Some(allowed) = self.access.decisions.get(&asked) {
            return allowed;
        }
        let allowed = decide(&rules, &session.who());
        self.access.decisions.put(&asked, allowed);
        allowed
    }

    /// Whether a session may not have a message that is about to be sent to it. That is asked only
    /// where its subscriptions were not granted as a whole, or not by the rules in force.
    pub(super) fn withholds(&mut self, slot: SessionSlot, topic: &str) -> bool {
        let session = &self.sessions[slot];
        let is_granted =
            !self.access.is_filtered && session.access.is_trusted(self.access.policy.version());
        // Bridges have rules of their own.
        !is_granted && session.link().is_none() && !self.may_receive_from(slot, topic)
    }

    /// Whether the rules grant a session a subscription of this QoS.
    pub(super) fn covers(
        &self,
        slot: SessionSlot,
        (filter, qos): (&Filter, QoS),
        steps: &mut Steps,
    ) -> Coverage {
        // A member that left messages out would lose them for its group.
        if self.access.is_filtered && !filter.is_shared() {
            return Coverage::Whole;
        }
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        let kind = SubscriptionKind::of(filter, qos as u8);
        rules.covers(&session.who(), filter.topic_filter(), &kind, steps)
    }

    /// A topic of a filter that is not granted, which the rules deny to a session, and why.
    fn denied_topic(
        &self,
        slot: SessionSlot,
        (filter, qos): (&Filter, QoS),
        steps: &mut Steps,
    ) -> Option<(String, Decision)> {
        let session = &self.sessions[slot];
        let rules = self.access.rules_of(session.access.rules());
        let kind = SubscriptionKind::of(filter, qos as u8);
        let topic = rules.denied_topic(&session.who(), filter.topic_filter(), &kind, steps)?;
        let decision = rules.decide(&session.who(), Access::Receive, &topic);
        Some((topic, decision))
    }
}
