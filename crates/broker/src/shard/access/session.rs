//! What a session has to do with access control: its user, and which policy it was checked by.

use std::sync::Arc;

use tacho_access::{Attributes, ClientLimits, Origin, PublishKind, PublishKinds, TokenAcl};

use crate::keys::User;

/// The part of a session that access control owns.
#[derive(Clone, Debug, Default)]
pub(in crate::shard) struct SessionAccess {
    user: Option<User>,
    /// Where its client has connected from, where a rules file may ask. Boxed: most have none.
    origin: Option<Box<Origin>>,
    /// By the roles of its user. Boxed: most have none.
    limits: Option<Box<ClientLimits>>,
    /// Counts changes of the user and of where it is, as far as rules ask.
    identity: u32,
    /// The policy that granted everything that the session may be sent; 0: it is not known.
    trusted: u32,
    /// The policy that was last applied to its subscriptions; 0: none.
    applied: u32,
    /// A policy is being applied to its subscriptions.
    is_swept: bool,
    /// It is from the journal, which has no rules of tokens and no origins, and its client was not
    /// here since.
    awaits_client: bool,
    /// Then: what the rules of the token of its client said of its will, if they said something.
    restored_word: Option<bool>,
    /// The topic that it was last allowed to publish to, as the route cache has it, which kinds of
    /// messages, and the epoch of the decision. A client that stays with one topic costs a
    /// comparison of two pointers.
    last_topic: Option<Arc<str>>,
    last_kinds: PublishKinds,
    last_epoch: u32,
}

impl SessionAccess {
    pub(super) fn new(user: Option<User>, origin: Origin, policy: u32) -> Self {
        let mut new = Self { user, trusted: policy, applied: policy, ..Self::default() };
        new.set_origin(origin);
        new
    }

    /// Of a session from the journal, with its user and what its token said of its will.
    pub(in crate::shard) fn restored(user: Option<User>, word: Option<bool>) -> Self {
        Self { user, awaits_client: true, restored_word: word, ..Self::default() }
    }

    pub(in crate::shard) const fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The name of its user.
    pub(in crate::shard) fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// The rules that the login of its user has brought.
    pub(super) fn rules(&self) -> Option<&TokenAcl> {
        self.user.as_ref()?.rules.as_deref()
    }

    /// The attributes of its client; `None`: they are not known, as it was not here since the
    /// broker has started.
    pub(in crate::shard) fn attributes(&self) -> Option<&Attributes> {
        (!self.awaits_client).then(|| attributes_of(self.user.as_ref()))
    }

    /// Where its client has connected from.
    pub(in crate::shard) fn origin(&self) -> Origin {
        self.origin.as_deref().copied().unwrap_or(Origin::UNKNOWN)
    }

    /// True if it was elsewhere before.
    pub(super) fn set_origin(&mut self, origin: Origin) -> bool {
        let is_same = self.origin() == origin;
        if !is_same {
            self.origin = (origin != Origin::UNKNOWN).then(|| Box::new(origin));
        }
        !is_same
    }

    /// The limits of its client.
    pub(super) fn limits(&self) -> ClientLimits {
        self.limits.as_deref().copied().unwrap_or(ClientLimits::NONE)
    }

    /// True if they were others before.
    pub(super) fn set_limits(&mut self, limits: &ClientLimits) -> bool {
        let is_same = self.limits() == *limits;
        if !is_same {
            self.limits = (*limits != ClientLimits::NONE).then(|| Box::new(*limits));
        }
        !is_same
    }

    /// Tells decisions about its client from those about another one, or elsewhere.
    #[inline]
    pub(super) const fn identity(&self) -> u32 {
        self.identity
    }

    /// Whether its client was not here since the broker has started.
    pub(super) const fn awaits_client(&self) -> bool {
        self.awaits_client
    }

    /// What the rules of the token of its client said of its will, as long as the client was not
    /// here.
    pub(super) const fn restored_word(&self) -> Option<bool> {
        self.restored_word
    }

    /// True if it was another user's before, or had other rules.
    pub(super) fn set_user(&mut self, user: Option<User>) -> bool {
        let is_same = self.user_name() == user.as_ref().map(|user| &*user.name)
            && self.rules() == user.as_ref().and_then(|user| user.rules.as_deref());
        self.user = user;
        self.awaits_client = false;
        self.restored_word = None;
        !is_same
    }

    /// Whether it was allowed to publish to this topic when last asked, in this epoch.
    #[inline]
    pub(super) fn was_allowed(&self, topic: &Arc<str>, kind: PublishKind, epoch: u32) -> bool {
        let is_same = |last: &Arc<str>| Arc::ptr_eq(last, topic);
        self.last_epoch == epoch
            && self.last_kinds.has(kind)
            && self.last_topic.as_ref().is_some_and(is_same)
    }

    /// It may publish these kinds of messages to this topic.
    pub(super) fn allow(&mut self, topic: &Arc<str>, kinds: PublishKinds, epoch: u32) {
        (self.last_topic, self.last_epoch) = (Some(Arc::clone(topic)), epoch);
        self.last_kinds = kinds;
    }

    /// Rights that it got as another user's, or elsewhere, mean nothing.
    pub(super) fn distrust(&mut self) {
        (self.trusted, self.applied) = (0, 0);
        self.identity = self.identity.wrapping_add(1);
        self.last_topic = None;
    }

    #[inline]
    pub(super) const fn is_trusted(&self, policy: u32) -> bool {
        self.trusted == policy
    }

    /// Whether a policy is being applied to its subscriptions.
    #[inline]
    pub(super) const fn is_swept(&self) -> bool {
        self.is_swept
    }

    /// A policy is being applied to its subscriptions.
    pub(super) const fn begin_sweep(&mut self) {
        self.is_swept = true;
    }

    /// The policy is applied to all its subscriptions.
    pub(super) const fn swept(&mut self) {
        self.is_swept = false;
    }

    /// Notes that a policy is applied; false if it was before.
    pub(super) const fn apply(&mut self, policy: u32) -> bool {
        let is_new = self.applied != policy;
        self.applied = policy;
        is_new
    }
}

/// The attributes of a client that has logged in as this user.
pub(in crate::shard) fn attributes_of(user: Option<&User>) -> &Attributes {
    match user.and_then(|user| user.rules.as_deref()) {
        Some(brought) => brought.attributes(),
        None => Attributes::none(),
    }
}
