//! What a client may do by its rules, and why, in words.

use tacho_topic::Filter;

use crate::client_rules::ClientRules;
use crate::covers::{Coverage, Steps};
use crate::decision::{Access, Cause, Decision};
use crate::kinds::{PublishKind, SubscriptionKind};
use crate::list::AccessList;
use crate::rules::Exceeded;
use crate::template::Who;

/// Lines of a rule that are shown.
const RULE_LINES_MAX: usize = 12;

/// What a client wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedAction {
    /// Connect.
    Connect,
    /// Publish to the topic.
    Publish,
    /// Subscribe to the filter.
    Subscribe,
    /// Receive messages of the topic.
    Receive,
}

/// A question about what a client may do.
#[derive(Clone, Copy, Debug)]
pub struct AccessQuestion<'a> {
    /// What it wants to do.
    pub action: AskedAction,
    /// The topic, which the caller has checked, or the filter of a subscription; unused for
    /// [`AskedAction::Connect`].
    pub topic: &'a str,
    /// Of the message or the subscription.
    pub qos: u8,
    /// The message is to be retained.
    pub retain: bool,
    /// Messages that may not be received are left out of a subscription.
    pub is_filtered: bool,
}

/// The file of the rules, by which they are named.
#[derive(Clone, Copy, Debug)]
pub struct RulesFile<'a> {
    /// Its path, as it is shown.
    pub shown: &'a str,
    /// Its text, of which lines are quoted.
    pub text: Option<&'a str>,
}

/// An answer, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The client may do it.
    pub is_allowed: bool,
    /// By which line, or what is missing: a sentence without a capital.
    pub why: String,
}

impl Explanation {
    fn new(is_allowed: bool, why: impl Into<String>) -> Self {
        Self { is_allowed, why: why.into() }
    }
}

/// The rules of a client, and the file that those of the broker are from.
#[derive(Clone, Copy, Debug)]
pub struct ExplainedRules<'a> {
    /// The rules.
    pub rules: ClientRules<'a>,
    /// Present where the broker has rules.
    pub file: Option<RulesFile<'a>>,
}

impl ExplainedRules<'_> {
    /// Whether a client may do it.
    ///
    /// # Errors
    /// A sentence: the filter is none.
    pub fn answer(
        &self,
        who: &Who<'_>,
        question: &AccessQuestion<'_>,
    ) -> Result<Explanation, String> {
        if self.rules.is_empty() {
            return Ok(Explanation::new(true, "no access rules: every client may do everything"));
        }
        let &AccessQuestion { action, topic, qos, retain, .. } = question;
        let access = match action {
            AskedAction::Connect => return Ok(self.connecting(who)),
            AskedAction::Subscribe => return self.filter(who, question),
            AskedAction::Publish => Access::Publish(PublishKind::new(qos, retain)),
            AskedAction::Receive => Access::Receive,
        };
        let first = topic.split('/').next();
        if action == AskedAction::Publish && matches!(first, Some("$SYS" | "$share")) {
            let why = format!("topics of {} belong to the broker", first.unwrap_or_default());
            return Ok(Explanation::new(false, why));
        }
        let limits = self.rules.list.map(|list| list.limits(who.user)).unwrap_or_default();
        let exceeded = limits.exceeded(topic, qos, retain);
        if let (AskedAction::Publish, Some(exceeded)) = (action, exceeded) {
            return Ok(Explanation::new(false, exceeded.sentence()));
        }
        Ok(self.explained(self.rules.decide(who, access, topic)))
    }

    fn connecting(&self, who: &Who<'_>) -> Explanation {
        match (self.rules.list, self.file) {
            (Some(list), Some(file)) if !list.has_connect() => {
                Explanation::new(true, format!("{} has no rule about connecting", file.shown))
            }
            (Some(list), Some(_)) => self.explained(list.connecting(who)),
            _ => Explanation::new(true, "no access rules about connecting"),
        }
    }

    /// A decision in words.
    fn explained(&self, decision: Decision) -> Explanation {
        let may = decision.is_allowed;
        let Some(file) = self.file.filter(|_| decision.cause != Cause::Token) else {
            let why = match decision.cause {
                Cause::Token => "by the rules that the login has brought",
                _ => "no rule that the login has brought is about it, and there are no others",
            };
            return Explanation::new(may, why);
        };
        let shown = file.shown;
        let why = match decision.cause {
            Cause::Line(line) => quoted(file, line, |text| {
                let words = text.lines().nth(line as usize - 1).unwrap_or_default();
                words.trim_end().escape_debug().to_string()
            }),
            Cause::Rule(line) => quoted(file, line, |text| rule_text(text, line)),
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
        Explanation::new(may, why)
    }

    fn filter(&self, who: &Who<'_>, question: &AccessQuestion<'_>) -> Result<Explanation, String> {
        let filter = Filter::parse(question.topic).map_err(|error| error.to_string())?;
        let limits = self.rules.list.map(|list| list.limits(who.user)).unwrap_or_default();
        let topics = filter.topic_filter();
        if limits.has_too_many_levels(topics.as_str()) {
            return Ok(Explanation::new(false, Exceeded::TopicLevels.sentence()));
        }
        // Granted, if not as high.
        let qos = limits.qos_max.map_or(question.qos, |max| question.qos.min(max));
        let kind = SubscriptionKind::of(&filter, qos);
        let coverage = self.rules.covers(who, topics, &kind, &mut Steps::default());
        let is_filtered = question.is_filtered && !filter.is_shared();
        let (may, why) = match coverage {
            Coverage::Whole => (true, "every topic of the filter may be received"),
            _ if is_filtered => (true, "messages that may not be received are left out"),
            Coverage::Partial => (false, "not every topic of the filter may be received"),
            Coverage::Undecided => (false, "filter and access rules are too complex to decide"),
        };
        let mut answer = Explanation::new(may, why);
        if is_filtered && coverage != Coverage::Whole {
            return Ok(answer);
        }
        let rules = self.rules;
        // A filter without wildcards is one topic, which one rule decides about.
        let is_in_toml = matches!(rules.list, Some(AccessList::Rules(_)));
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
        let receiving = self.rules.decide(who, Access::Receive, topic);
        let Some(AccessList::Rules(rules)) = self.rules.list else { return receiving };
        if receiving.cause == Cause::Token {
            return receiving;
        }
        match rules.decide_subscription(who, kind, topic) {
            subscribing if subscribing.is_allowed && !may => receiving,
            subscribing => subscribing,
        }
    }
}

/// A place in the file, with what stands there where its text is known.
fn quoted(file: RulesFile<'_>, line: u32, words: impl FnOnce(&str) -> String) -> String {
    match file.text {
        Some(text) => format!("{}:{line}: {}", file.shown, words(text)),
        None => format!("{}:{line}", file.shown),
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
