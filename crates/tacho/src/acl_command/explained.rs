//! An answer by the rules, and the line that it is from.

use tacho_access::{
    AccessList, AccessQuestion, Acl, AskedAction, Attributes, ClientRules, ExplainedRules,
    Explanation, Origin, RuleSet, RulesFile, TokenAcl, Who,
};
use tacho_broker::SubscribeCheck;

use super::files::{AccessFiles, ListFile};
use super::{Action, ExplainArguments, invalid, text_of};
use crate::exit::Failure;

/// The rules for a client.
pub(super) struct Explained {
    file: Option<RuleFile>,
    /// Those that its login has brought.
    brought: Option<TokenAcl>,
    /// Those that were named, or else those that its login has brought.
    attributes: Attributes,
    subscribe: SubscribeCheck,
}

/// Rules, and the text that they are from.
struct RuleFile {
    shown: String,
    text: String,
    list: AccessList,
}

impl RuleFile {
    fn read(file: &ListFile, files: &AccessFiles) -> Result<Self, Failure> {
        let shown = file.path().display().to_string();
        let text = text_of(file.path())?;
        let list = match file {
            ListFile::Mosquitto(_) => Acl::parse(&shown, &text).map(AccessList::Mosquitto),
            ListFile::Rules(_) => {
                let listeners = files.listeners();
                RuleSet::parse(&shown, &text, listeners.as_deref()).map(AccessList::Rules)
            }
        };
        let list = list.map_err(invalid)?;
        Ok(Self { shown, text, list })
    }
}

impl Explained {
    pub(super) fn read(
        files: &AccessFiles,
        brought: Option<TokenAcl>,
        named: &[(String, String)],
    ) -> Result<Self, Failure> {
        let file = files.list.as_ref().map(|file| RuleFile::read(file, files)).transpose()?;
        let mut attributes = Attributes::default();
        for (name, value) in named {
            attributes.add(name, value).map_err(|why| invalid(format!("--attribute: {why}")))?;
        }
        if let (true, Some(brought)) = (named.is_empty(), &brought) {
            attributes = brought.attributes().clone();
        }
        Ok(Self { file, brought, attributes, subscribe: files.subscribe })
    }

    fn list(&self) -> Option<&AccessList> {
        self.file.as_ref().map(|file| &file.list)
    }

    pub(super) fn answer(&self, arguments: &ExplainArguments) -> Result<Explanation, Failure> {
        let rules = ClientRules { token: self.brought.as_ref(), list: self.list() };
        let origin = Origin { address: arguments.address, listener: arguments.listener };
        let user = arguments.user.as_deref();
        let attributes = Some(&self.attributes);
        let who = Who { user, client_id: &arguments.client_id, origin, attributes };
        if let Some(AccessList::Rules(rules)) = self.list() {
            let roles: Vec<&str> = rules.roles(user).collect();
            if !roles.is_empty() {
                println!("roles: {}", roles.join(", ").escape_debug());
            }
        }
        let topic = arguments.topic.as_deref().unwrap_or_default();
        let is_topic = matches!(arguments.action, Action::Publish | Action::Receive);
        if !rules.is_empty() && is_topic && !tacho_codec::is_valid_topic_name(topic) {
            return Err(invalid(format!("'{topic}' is not a topic name")));
        }
        let question = AccessQuestion {
            action: match arguments.action {
                Action::Connect => AskedAction::Connect,
                Action::Publish => AskedAction::Publish,
                Action::Subscribe => AskedAction::Subscribe,
                Action::Receive => AskedAction::Receive,
            },
            topic,
            qos: arguments.qos,
            retain: arguments.retain,
            is_filtered: self.subscribe == SubscribeCheck::Filtered,
        };
        let file = self.file.as_ref();
        let file = file.map(|file| RulesFile { shown: &file.shown, text: Some(&file.text) });
        ExplainedRules { rules, file }
            .answer(&who, &question)
            .map_err(|why| invalid(format!("'{topic}': {why}")))
    }
}
