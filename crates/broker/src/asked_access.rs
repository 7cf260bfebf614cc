//! What a client may do by the rules in force, as operators ask it.

use std::sync::Arc;

use serde::Serialize;
use tacho_access::{
    AccessList, AccessQuestion, AskedAction, ClientRules, ExplainedRules, RulesFile, Who,
};

/// A question about a client.
#[derive(Clone, Debug)]
pub(crate) struct AskedAccess {
    pub(crate) client_id: Arc<str>,
    pub(crate) action: AskedAction,
    pub(crate) topic: String,
    pub(crate) qos: u8,
    pub(crate) retain: bool,
    /// Messages that may not be received are left out of subscriptions.
    pub(crate) is_filtered: bool,
    /// The path of the rules, where there are some.
    pub(crate) file: Option<String>,
}

/// Whether it may, and why.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AccessAnswer {
    client_id: String,
    user: Option<String>,
    /// Those of the user in the rules file.
    roles: Vec<String>,
    allowed: bool,
    why: String,
    /// It is about the client as it is, or was, connected: with its login and its address.
    of_session: bool,
}

impl AskedAccess {
    /// The answer by these rules, for a client that has a session, or for one that is named only.
    ///
    /// # Errors
    /// A sentence: the filter is none.
    pub(crate) fn answer(
        &self,
        rules: ClientRules<'_>,
        who: &Who<'_>,
        of_session: bool,
    ) -> Result<AccessAnswer, String> {
        let &Self { action, qos, retain, is_filtered, .. } = self;
        let question = AccessQuestion { action, topic: &self.topic, qos, retain, is_filtered };
        let file = self.file.as_deref().filter(|_| rules.list.is_some());
        let file = file.map(|shown| RulesFile { shown, text: None });
        let explained = ExplainedRules { rules, file }.answer(who, &question)?;
        let roles = match rules.list {
            Some(AccessList::Rules(rules)) => rules.roles(who.user).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Ok(AccessAnswer {
            client_id: (*self.client_id).to_owned(),
            user: who.user.map(str::to_owned),
            roles,
            allowed: explained.is_allowed,
            why: explained.why,
            of_session,
        })
    }
}
