//! What a session's client may do, for operators.

use crate::asked_access::{AccessAnswer, AskedAccess};
use crate::shard::Shard;

impl Shard {
    /// The answer for a client that has a session here.
    pub(in crate::shard) fn explain_access(
        &self,
        asked: &AskedAccess,
    ) -> Option<Result<AccessAnswer, String>> {
        let session = &self.sessions[self.client_slot(&asked.client_id)?];
        let rules = self.access.rules_of(session.access.rules());
        Some(asked.answer(rules, &session.who(), true))
    }
}
