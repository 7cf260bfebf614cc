//! An answer by the rules, and the line that it is from.

use tacho_access::{
    Access, AccessList, Acl, Attributes, Cause, ClientRules, Coverage, Decision, Exceeded, Origin,
    PublishKind, RuleSet, Steps, SubscriptionKind, TokenAcl, Who,
};
use tacho_broker::SubscribeCheck;
use tacho_topic::Filter;

use super::files::{AccessFiles, ListFile};
use super::{Action, ExplainArguments, invalid, text_of};
use crate::exit::Failure;

/// Lines of a rule that are shown.
const RULE_LINES_MAX: usize = 12;

/// An answer, and why.
pub(super) struct Answer {
    pub(super) may: bool,
    pub(super) why: String,
}

impl Answer {
    fn new(may: bool, why: impl Into<String>) -> Self {
        Self { may, why: why.into() }
    }
}

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

    fn rules(&self) -> ClientRules<'_> {
        ClientRules { token: self.brought.as_ref(), list: self.list() }
    }

    fn list(&self) -> Option<&AccessList> {
        self.file.as_ref().map(|file| &file.list)
    }

    pub(super) fn answer(&self, arguments: &ExplainArguments) -> Result<Answer, Failure> {
        if self.rules().is_empty() {
            return Ok(Answer::new(true, "no access rules: every client may do everything"));
        }
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
        let access = match arguments.action {
            Action::Connect => return Ok(self.explain_connecting(&who)),
            Action::Publish => Access::Publish(PublishKind::new(arguments.qos, arguments.retain)),
            Action::Receive => Access::Receive,
            Action::Subscribe => return self.explain_filter(&who, topic, arguments.qos),
        };
        if !tacho_codec::is_valid_topic_name(topic) {
            return Err(invalid(format!("'{topic}' is not a topic name")));
        }
        let first = topic.split('/').next();
        if arguments.action == Action::Publish && matches!(first, Some("$SYS" | "$share")) {
            let why = format!("topics of {} belong to the broker", first.unwrap_or_default());
            return Ok(Answer::new(false, why));
        }
        let limits = self.list().map(|list| list.limits(user)).unwrap_or_default();
        let exceeded = limits.exceeded(topic, arguments.qos, arguments.retain);
        if let (Action::Publish, Some(exceeded)) = (arguments.action, exceeded) {
            return Ok(Answer::new(false, exceeded.sentence()));
        }
        Ok(self.explained(self.rules().decide(&who, access, topic)))
    }

    fn explain_connecting(&self, who: &Who<'_>) -> Answer {
        match &self.file {
            None => Answer::new(true, "no access rules about connecting"),
            Some(file) if !file.list.has_connect() => {
                Answer::new(true, format!("{} has no rule about connecting", file.shown))
            }
            Some(file) => self.explained(file.list.connecting(who)),
        }
    }

    /// A decision in words.
    fn explained(&self, decision: Decision) -> Answer {
        let may = decision.is_allowed;
        let Some(file) = self.file.as_ref().filter(|_| decision.cause != Cause::Token) else {
            let why = match decision.cause {
                Cause::Token => "by the rules that the backend has brought",
                _ => "no rule that the backend has brought is about it, and there are no others",
            };
            return Answer::new(may, why);
        };
        let (shown, text) = (&file.shown, &file.text);
        let why = match decision.cause {
            Cause::Line(line) => {
                let words = text.lines().nth(line as usize - 1).unwrap_or_default();
                format!("{shown}:{line}: {}", words.trim_end().escape_debug())
            }
            Cause::Rule(line) => format!("{shown}:{line}: {}", rule_text(text, line)),
            Cause::NoEntry | Cause::Token => format!("no entry of {shown} allows it"),
            Cause::NoRule => format!("no rule of {shown} allows it"),
            Cause::SpecialCharacters => format!(
                "no own entry of {shown} allows it, and user name or client identifier contain +, \
                 #, / or a control character: such a client gets nothing from patterns"
            ),
            Cause::SpecialName => format!(
                "no rule of {shown} allows it, and user name or client identifier contain +, #, / \
                 or a control character: such a client gets nothing from topics with its name"
            ),
        };
        Answer::new(may, why)
    }

    fn explain_filter(&self, who: &Who<'_>, text: &str, qos: u8) -> Result<Answer, Failure> {
        let filter = Filter::parse(text).map_err(|error| invalid(format!("'{text}': {error}")))?;
        let limits = self.list().map(|list| list.limits(who.user)).unwrap_or_default();
        let topics = filter.topic_filter();
        if limits.has_too_many_levels(topics.as_str()) {
            return Ok(Answer::new(false, Exceeded::TopicLevels.sentence()));
        }
        // Granted, if not as high.
        let qos = limits.qos_max.map_or(qos, |max| qos.min(max));
        let kind = SubscriptionKind::of(&filter, qos);
        let rules = self.rules();
        let coverage = rules.covers(who, topics, &kind, &mut Steps::default());
        let is_filtered = self.subscribe == SubscribeCheck::Filtered && !filter.is_shared();
        let (may, why) = match coverage {
            Coverage::Whole => (true, "every topic of the filter may be received"),
            _ if is_filtered => (true, "messages that may not be received are left out"),
            Coverage::Partial => (false, "not every topic of the filter may be received"),
            Coverage::Undecided => (false, "filter and access rules are too complex to decide"),
        };
        let mut answer = Answer::new(may, why);
        if is_filtered && coverage != Coverage::Whole {
            return Ok(answer);
        }
        // A filter without wildcards is one topic, which one rule decides about.
        let is_in_toml = matches!(self.list(), Some(AccessList::Rules(_)));
        if topics.is_exact() && is_in_toml {
            answer.why = self.explained(self.about_topic(who, &kind, topics.as_str(), may)).why;
        } else if let Some(topic) = rules.denied_topic(who, topics, &kind, &mut Steps::default()) {
            let why = self.explained(self.about_topic(who, &kind, &topic, false)).why;
            answer.why = format!("{}: not {}: {why}", answer.why, topic.escape_debug());
        }
        Ok(answer)
    }

    /// What decides about a subscription to one topic.
    fn about_topic(
        &self,
        who: &Who<'_>,
        kind: &SubscriptionKind<'_>,
        topic: &str,
        may: bool,
    ) -> Decision {
        let receiving = self.rules().decide(who, Access::Receive, topic);
        let Some(AccessList::Rules(rules)) = self.list() else { return receiving };
        if receiving.cause == Cause::Token {
            return receiving;
        }
        match rules.decide_subscription(who, kind, topic) {
            subscribing if subscribing.is_allowed && !may => receiving,
            subscribing => subscribing,
        }
    }
}

/// A rule as it stands in the file, in one line.
fn rule_text(text: &str, line: u32) -> String {
    let mut lines = text.lines().skip(line as usize - 1);
    let first = lines.next().unwrap_or_default().trim();
    if !first.starts_with("[[") {
        return without_controls(first);
    }
    let goes_on = |line: &&str| !line.starts_with('[') && !line.is_empty();
    let lines = lines.map(str::trim).take_while(goes_on).filter(|line| !line.starts_with('#'));
    let keys: Vec<&str> = lines.take(RULE_LINES_MAX).collect();
    without_controls(&keys.join("; "))
}

/// Quotes stay as they are in the file.
fn without_controls(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}
