//! Rules that a token, or the answer of a backend, brings along, in both forms that EMQX has.
//!
//! The older one lists filters that are allowed; all else is denied. The newer one is an array of
//! rules of which the first that matches decides; what none matches is left to the access list.

use std::fmt;

use serde_json::{Map, Value};

use crate::attributes::Attributes;
use crate::covers::Rule;
use crate::decision::Access;
use crate::file::cut;
use crate::template::{Placeholder, Template, Who, is_plain};

/// All are walked for each new topic.
const FILTERS_MAX: usize = 1_000;

/// What a token, or the answer of a backend, lets its client publish, subscribe to and receive, and
/// the attributes that it brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAcl {
    rules: Vec<TokenRule>,
    /// What no rule matches is denied.
    is_closed: bool,
    /// There is nothing to ask: the client is a superuser.
    allows_all: bool,
    attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TokenRule {
    template: Template,
    allows: bool,
    publish: bool,
    receive: bool,
}

impl fmt::Display for TokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permission = if self.allows { "allow" } else { "deny" };
        let action = match (self.publish, self.receive) {
            (true, true) => "all",
            (true, false) => "publish",
            (false, _) => "subscribe",
        };
        write!(f, "{permission} {action} {}", self.template)
    }
}

impl TokenAcl {
    /// The rules in a claim, for one client; a sentence for one that cannot be used.
    pub(crate) fn of_claim(claim: &Value, who: &Who<'_>) -> Result<Self, String> {
        let acl = Self::parse(claim)?;
        match acl.suits(who) {
            true => Ok(acl),
            false => Err("a name in it contains +, #, / or a control character".to_owned()),
        }
    }

    /// Everything is allowed.
    pub(crate) fn everything() -> Self {
        Self { allows_all: true, ..Self::open() }
    }

    /// Without a rule: all is left to the access list.
    const fn open() -> Self {
        let attributes = Attributes::NONE;
        Self { rules: Vec::new(), is_closed: false, allows_all: false, attributes }
    }

    /// What a login has brought: rules, attributes, both, or nothing.
    pub(crate) fn brought(rules: Option<Self>, attributes: Attributes) -> Option<Self> {
        if attributes.is_empty() {
            return rules;
        }
        Some(Self { attributes, ..rules.unwrap_or(Self::open()) })
    }

    /// The rules in a claim, for any client; a sentence for one that cannot be used.
    pub(crate) fn parse(claim: &Value) -> Result<Self, String> {
        let is_closed = claim.is_object();
        let mut acl = Self { is_closed, ..Self::open() };
        match claim {
            Value::Object(lists) => {
                for (action, filters) in lists {
                    let filters = filters.as_array().ok_or("a list of filters is no array")?;
                    acl.add(action, true, filters)?;
                }
            }
            Value::Array(rules) => {
                for rule in rules {
                    acl.add_rule(rule.as_object().ok_or("a rule is no object")?)?;
                }
            }
            _ => return Err("it is neither an object nor an array".to_owned()),
        }
        Ok(acl)
    }

    fn add_rule(&mut self, rule: &Map<String, Value>) -> Result<(), String> {
        let (mut action, mut allows, mut filters) = ("all", None, Vec::new());
        for (name, value) in rule {
            match (&**name, value) {
                ("permission", Value::String(word)) if word == "allow" => allows = Some(true),
                ("permission", Value::String(word)) if word == "deny" => allows = Some(false),
                ("action", Value::String(word)) => action = word,
                ("topic", filter @ Value::String(_)) => filters.push(filter.clone()),
                ("topics", Value::Array(more)) => filters.extend(more.iter().cloned()),
                ("qos" | "retain", Value::String(word)) if word == "all" => {}
                _ => return Err(format!("`{}` of a rule is not supported", cut(name))),
            }
        }
        self.add(action, allows.ok_or("a rule has no `permission`")?, &filters)
    }

    fn add(&mut self, action: &str, allows: bool, filters: &[Value]) -> Result<(), String> {
        let (publish, receive) = match action {
            "pub" | "publish" => (true, false),
            "sub" | "subscribe" => (false, true),
            "all" => (true, true),
            _ => return Err(format!("the action `{}` is unknown", cut(action))),
        };
        for filter in filters {
            let filter = filter.as_str().ok_or("a filter is no text")?;
            if filter.starts_with("eq ") {
                return Err("`eq` before a filter is not supported".to_owned());
            }
            let text = filter.replace("${clientid}", "%c").replace("${username}", "%u");
            let template = Template::pattern(&text);
            let template = template.map_err(|error| format!("`{}`: {error}", cut(filter)))?;
            self.rules.push(TokenRule { template, allows, publish, receive });
            if self.rules.len() > FILTERS_MAX {
                return Err(format!("it has more than {FILTERS_MAX} filters"));
            }
        }
        Ok(())
    }

    /// The rules in words, in the order in which they are asked.
    pub fn lines(&self) -> Vec<String> {
        if self.allows_all {
            return vec!["allow everything: the client is a superuser".to_owned()];
        }
        let last = self.is_closed.then(|| "deny all else".to_owned());
        self.rules.iter().map(ToString::to_string).chain(last).collect()
    }

    /// Whether no name of a client in a rule could be read as a wildcard or as several levels.
    pub fn suits(&self, who: &Who<'_>) -> bool {
        let is_used = |name: &Placeholder| self.rules.iter().any(|rule| rule.template.names(*name));
        let mut used = Placeholder::ALL.into_iter().filter(is_used);
        used.all(|name| name.value(who).is_some_and(is_plain))
    }

    /// The attributes of the client.
    #[must_use]
    pub const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Whether it has no rules: all is left to the access list.
    pub(crate) const fn is_silent(&self) -> bool {
        self.rules.is_empty() && !self.is_closed && !self.allows_all
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) const fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// The rules about one access, in the order in which they are asked.
    pub(crate) fn asked(&self, access: Access) -> impl Iterator<Item = Rule<'_>> {
        let is_asked = move |rule: &&TokenRule| match access {
            Access::Publish(_) => rule.publish,
            Access::Receive => rule.receive,
        };
        let rules = self.rules.iter().filter(is_asked);
        rules.map(|rule| Rule { template: &rule.template, allows: rule.allows })
    }

    /// `None` where the access list decides.
    pub(crate) fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Option<bool> {
        if self.allows_all {
            return Some(true);
        }
        let hit = self.asked(access).find(|rule| rule.template.matches(topic, who));
        hit.map(|rule| rule.allows).or_else(|| self.is_closed.then_some(false))
    }
}
