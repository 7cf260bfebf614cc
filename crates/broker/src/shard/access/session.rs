//! What a session has to do with access control: its user, and which policy it was checked by.

use crate::keys::User;

/// The part of a session that access control owns.
#[derive(Clone, Debug, Default)]
pub(in crate::shard) struct SessionAccess {
    user: Option<User>,
    /// The policy that granted everything that the session may be sent; 0: it is not known.
    trusted: u32,
    /// The policy that was last applied to its subscriptions; 0: none.
    applied: u32,
}

impl SessionAccess {
    pub(super) const fn new(user: Option<User>, policy: u32) -> Self {
        Self { user, trusted: policy, applied: policy }
    }

    /// Of a session from the journal, with its user.
    pub(in crate::shard) const fn restored(user: Option<User>) -> Self {
        Self { user, trusted: 0, applied: 0 }
    }

    pub(in crate::shard) const fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The name of its user.
    pub(in crate::shard) fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// True if it was another user's before.
    pub(super) fn set_user(&mut self, user: Option<User>) -> bool {
        let is_other = self.user_name() != user.as_ref().map(|user| &*user.name);
        self.user = user;
        is_other
    }

    /// Rights that it got as another user's mean nothing.
    pub(super) const fn distrust(&mut self) {
        (self.trusted, self.applied) = (0, 0);
    }

    #[inline]
    pub(super) const fn is_trusted(&self, policy: u32) -> bool {
        self.trusted == policy
    }

    /// Notes that a policy is applied; false if it was before.
    pub(super) const fn apply(&mut self, policy: u32) -> bool {
        let is_new = self.applied != policy;
        self.applied = policy;
        is_new
    }
}
