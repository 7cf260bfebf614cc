//! The text of a rules file, as rules.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::RuleSet;
use super::limits::RawRole;
use super::rule::{
    Actions, AttributeTerm, ClientTerms, FileRule, ListenerName, RoleId, RuleFilter,
};
use super::values::{each, flag, text_list, texts};
use crate::address::AddressRange;
use crate::file::FileError;
use crate::file::{cut, shown};
use crate::kinds::{PublishKinds, QosSet, Sharing, SubscriptionTerms};
use crate::template::{NamePattern, Placeholder, Template};
use crate::toml_text::{Wrong, parse_text};

const RULES_MAX: usize = 100_000;
const USERS_MAX: usize = 1_000_000;
const ROLES_MAX: usize = 10_000;
/// All of them may be looked at for each new topic, which takes about half a millisecond.
const FILTERS_PER_CLIENT_MAX: usize = 10_000;
const ROLES_PER_USER_MAX: usize = 32;
/// The role that all clients have.
const DEFAULT_ROLE: &str = "default";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRuleSet {
    #[serde(default)]
    users: BTreeMap<String, Spanned<Value>>,
    #[serde(default)]
    roles: BTreeMap<String, Spanned<RawRole>>,
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    allow: Option<Spanned<Value>>,
    deny: Option<Spanned<Value>>,
    topics: Option<Spanned<Value>>,
    users: Option<Spanned<Value>>,
    roles: Option<Spanned<Value>>,
    client_ids: Option<Spanned<Value>>,
    anonymous: Option<Spanned<Value>>,
    addresses: Option<Spanned<Value>>,
    listeners: Option<Spanned<Value>>,
    attributes: Option<Spanned<Value>>,
    qos: Option<Spanned<Value>>,
    retain: Option<Spanned<Value>>,
    shared: Option<Spanned<Value>>,
    groups: Option<Spanned<Value>>,
}

pub(super) fn read(
    path: &str,
    text: &str,
    listeners: Option<&[SocketAddr]>,
) -> Result<RuleSet, FileError> {
    let raw: RawRuleSet = parse_text(path, text)?;
    for (len, max, what) in [
        (raw.rules.len(), RULES_MAX, "rules"),
        (raw.users.len(), USERS_MAX, "users"),
        (raw.roles.len(), ROLES_MAX, "roles"),
    ] {
        if len > max {
            return Err(FileError::whole(path, format!("there are more than {max} {what}")));
        }
    }
    let roles: HashMap<&str, RoleId> =
        raw.roles.keys().map(String::as_str).zip((0..).map(RoleId)).collect();
    let mut set = RuleSet {
        role_names: raw.roles.keys().map(|name| name.as_str().into()).collect(),
        by_role: vec![Vec::new(); raw.roles.len()],
        default_roles: roles.get(DEFAULT_ROLE).copied().into_iter().collect(),
        ..RuleSet::default()
    };
    for role in raw.roles.values() {
        let limits = role.get_ref().limits();
        let limits = limits.map_err(|wrong| wrong.in_file(path, text, &role.span()))?;
        set.role_limits.push(limits);
    }
    for (name, value) in &raw.users {
        let own = roles_of(name, value, &roles);
        let own = own.map_err(|wrong| wrong.in_file(path, text, &value.span()))?;
        let all = own.into_iter().chain(set.default_roles.iter().copied());
        let all = without_repetition(all);
        set.roles_of.insert(name.as_str().into(), all);
    }
    let lines = Lines::of(text);
    for entry in raw.rules {
        let span = entry.span();
        let context = Context { line: lines.at(&span), roles: &roles, listeners };
        let rule = context.rule(entry.into_inner());
        set.add(rule.map_err(|wrong| wrong.in_file(path, text, &span))?);
    }
    set.check_connect().and_then(|()| set.check_len()).map_err(|(line, what)| match line {
        Some(line) => FileError::at(path, line as usize, what),
        None => FileError::whole(path, what),
    })?;
    Ok(set)
}

/// The roles of one user, each once.
fn roles_of(
    name: &str,
    value: &Spanned<Value>,
    roles: &HashMap<&str, RoleId>,
) -> Result<Vec<RoleId>, Wrong> {
    let key = format!("users.{}", cut(name));
    let names = texts(&key, value)?;
    if names.len() > ROLES_PER_USER_MAX {
        let what = format!("`{key}` has more than {ROLES_PER_USER_MAX} roles");
        return Err(Wrong::of(value, what));
    }
    names
        .iter()
        .map(|role| role_id(&key, role, roles).map_err(|what| Wrong::of(value, what)))
        .collect()
}

fn role_id(key: &str, name: &str, roles: &HashMap<&str, RoleId>) -> Result<RoleId, String> {
    roles.get(name).copied().ok_or_else(|| {
        let name = cut(name);
        format!("`{key}` names the role `{name}`, which is not defined: add [roles.{name}]")
    })
}

fn without_repetition(roles: impl Iterator<Item = RoleId>) -> Box<[RoleId]> {
    let mut once: Vec<RoleId> = Vec::new();
    for role in roles {
        if !once.contains(&role) {
            once.push(role);
        }
    }
    once.into()
}

impl RuleSet {
    fn add(&mut self, rule: FileRule) {
        let number = self.rules.len() as u32;
        let clients = &rule.clients;
        self.has_connect |= rule.actions.has(Actions::CONNECT);
        self.names_origins |= clients.name_origins();
        self.names_attributes |= !clients.attributes.is_empty();
        self.names_users |= !clients.users.is_empty()
            || !clients.attributes.is_empty()
            || clients.is_anonymous.is_some()
            || clients.roles.iter().any(|role| !self.default_roles.contains(role))
            || clients.client_ids.iter().any(|pattern| pattern.names(Placeholder::User))
            || rule.filters.iter().any(|filter| filter.template.names(Placeholder::User));
        self.has_receive_alone |=
            rule.actions.has(Actions::RECEIVE) && !rule.actions.has(Actions::SUBSCRIBE);
        if !clients.users.is_empty() {
            for user in &clients.users {
                self.by_user.entry(user.clone()).or_default().push(number);
            }
        } else if !clients.roles.is_empty() {
            for role in &clients.roles {
                self.by_role[role.0 as usize].push(number);
            }
        } else {
            self.general.push(number);
        }
        self.rules.push(rule);
    }

    /// Rules that only forbid to connect would keep all clients away.
    fn check_connect(&self) -> Result<(), (Option<u32>, String)> {
        let mut about = self.rules.iter().filter(|rule| rule.actions.has(Actions::CONNECT));
        let first = about.clone().next();
        match (first, about.any(|rule| rule.allows)) {
            (Some(rule), false) => {
                let what = "`deny` is about `connect`, and no rule allows it: no client could \
                            connect; add a last rule with `allow = \"connect\"`";
                Err((Some(rule.line), what.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn check_len(&self) -> Result<(), (Option<u32>, String)> {
        let len = |numbers: &[u32]| -> usize {
            numbers.iter().map(|&number| self.rules[number as usize].filters.len()).sum()
        };
        let (general, by_role): (usize, Vec<usize>) =
            (len(&self.general), self.by_role.iter().map(|rules| len(rules)).collect());
        let of = |own: usize, roles: &[RoleId]| -> usize {
            let of_roles: usize = roles.iter().map(|role| by_role[role.0 as usize]).sum();
            general + own + of_roles
        };
        let max = FILTERS_PER_CLIENT_MAX;
        if of(0, &self.default_roles) > max {
            return Err((None, format!("more than {max} topic filters are for every client")));
        }
        let users = self.roles_of.keys().chain(self.by_user.keys());
        for user in users {
            let own = self.by_user.get(user).map_or(0, |rules| len(rules));
            if of(own, self.roles_of(Some(user))) > max {
                let what =
                    format!("more than {max} topic filters are for the user {}", shown(user));
                return Err((None, what));
            }
        }
        Ok(())
    }
}

/// What the reading of a rule has to know.
struct Context<'a> {
    line: u32,
    roles: &'a HashMap<&'a str, RoleId>,
    listeners: Option<&'a [SocketAddr]>,
}

impl Context<'_> {
    fn rule(&self, raw: RawRule) -> Result<FileRule, Wrong> {
        let (allows, key, words) = match (&raw.allow, &raw.deny) {
            (Some(words), None) => (true, "allow", words),
            (None, Some(words)) => (false, "deny", words),
            _ => return Err(Wrong::whole("a rule has exactly one of `allow` and `deny`")),
        };
        let actions = actions_of(key, words)?;
        let filters = filters_of(actions, allows, raw.topics.as_ref())?;
        let qos = qos_of(actions, raw.qos.as_ref())?;
        let retain = flag("retain", raw.retain.as_ref())?;
        needs(actions, Actions::PUBLISH, "retain", "publish", raw.retain.as_ref())?;
        let sharing = sharing_of(actions, raw.shared.as_ref(), raw.groups.as_ref())?;
        let publishes = match actions.has(Actions::PUBLISH) {
            true => PublishKinds::of(qos, retain),
            false => PublishKinds::NONE,
        };
        let clients = self.clients(&raw)?;
        let subscriptions = SubscriptionTerms { qos, sharing };
        let line = self.line;
        Ok(FileRule { line, allows, actions, clients, publishes, subscriptions, filters })
    }

    fn clients(&self, raw: &RawRule) -> Result<ClientTerms, Wrong> {
        let mut users: Vec<Box<str>> =
            each("users", raw.users.as_ref(), |name| Ok(name.into()))?.into();
        users.sort_unstable();
        users.dedup();
        let is_anonymous = flag("anonymous", raw.anonymous.as_ref())?;
        if let (Some(true), Some(value)) = (is_anonymous, &raw.users) {
            return Err(Wrong::of(value, "`users` and `anonymous = true` are never both true"));
        }
        Ok(ClientTerms {
            users: users.into(),
            roles: each("roles", raw.roles.as_ref(), |name| role_id("roles", name, self.roles))?,
            client_ids: each("client_ids", raw.client_ids.as_ref(), |text| {
                NamePattern::parse(text).map_err(|error| format!("{}: {error}", shown(text)))
            })?,
            is_anonymous,
            addresses: each("addresses", raw.addresses.as_ref(), AddressRange::parse)?,
            listeners: each("listeners", raw.listeners.as_ref(), |text| self.listener(text))?,
            attributes: attributes_of(raw.attributes.as_ref())?,
        })
    }

    fn listener(&self, text: &str) -> Result<ListenerName, String> {
        let name = ListenerName::parse(text).ok_or_else(|| {
            format!("{} is no listener: it must be as 127.0.0.1:1883 or 1883", shown(text))
        })?;
        let is_known = |listeners: &[SocketAddr]| listeners.iter().any(|&known| name.is(known));
        match self.listeners.is_none_or(is_known) {
            true => Ok(name),
            false => Err(format!("no listener has the address {}", shown(text))),
        }
    }
}

fn actions_of(key: &str, words: &Spanned<Value>) -> Result<Actions, Wrong> {
    let mut actions = Actions::NONE;
    for word in texts(key, words)? {
        let action = Actions::parse(&word).ok_or_else(|| {
            let what = format!(
                "`{key}` has {}, but takes `connect`, `publish`, `subscribe`, `receive` and `all`",
                shown(&word)
            );
            Wrong::of(words, what)
        })?;
        actions = actions.with(action);
    }
    Ok(actions)
}

fn filters_of(
    actions: Actions,
    allows: bool,
    value: Option<&Spanned<Value>>,
) -> Result<Box<[RuleFilter]>, Wrong> {
    match value {
        None if actions.has(Actions::WITH_TOPICS) => {
            Err(Wrong::whole("`topics` is missing: it lists topic filters, as [\"up/%c/#\"]"))
        }
        Some(value) if !actions.has(Actions::WITH_TOPICS) => {
            Err(Wrong::of(value, "`topics` has no meaning for `connect`"))
        }
        value => each("topics", value, |text| {
            let template = Template::with_parts(text);
            let template = template.map_err(|error| format!("{}: {error}", shown(text)))?;
            Ok(RuleFilter::new(template, allows))
        }),
    }
}

/// Attributes with the values that they may have.
fn attributes_of(value: Option<&Spanned<Value>>) -> Result<Box<[AttributeTerm]>, Wrong> {
    let Some(spanned) = value else { return Ok(Box::default()) };
    let Some(table) = spanned.get_ref().as_table().filter(|table| !table.is_empty()) else {
        let what = "`attributes` must be names with values, as { site = \"north\" }";
        return Err(Wrong::of(spanned, what));
    };
    let term = |(name, values): (&String, &Value)| {
        let key = format!("attributes.{}", cut(name));
        let values = text_list(values).filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| {
            Wrong::of(spanned, format!("`{key}` must be a text, or a list of texts"))
        })?;
        let values = values.into_iter().map(String::into_boxed_str).collect();
        Ok(AttributeTerm { name: name.as_str().into(), values })
    };
    table.iter().map(term).collect()
}

fn qos_of(actions: Actions, value: Option<&Spanned<Value>>) -> Result<QosSet, Wrong> {
    let Some(spanned) = value else { return Ok(QosSet::ALL) };
    let asked = Actions::PUBLISH.with(Actions::SUBSCRIBE);
    needs(actions, asked, "qos", "publish` or `subscribe", value)?;
    let levels = match spanned.get_ref() {
        Value::Integer(level) => Some(vec![*level]),
        Value::Array(levels) => levels.iter().map(Value::as_integer).collect(),
        _ => None,
    };
    let levels = levels.filter(|levels| !levels.is_empty());
    let qos = levels.and_then(|levels| QosSet::of(&levels));
    qos.ok_or_else(|| Wrong::of(spanned, "`qos` must be 0, 1 or 2, or a list of them"))
}

fn sharing_of(
    actions: Actions,
    shared: Option<&Spanned<Value>>,
    groups: Option<&Spanned<Value>>,
) -> Result<Sharing, Wrong> {
    needs(actions, Actions::SUBSCRIBE, "shared", "subscribe", shared)?;
    needs(actions, Actions::SUBSCRIBE, "groups", "subscribe", groups)?;
    let is_shared = flag("shared", shared)?;
    match (is_shared, groups) {
        (None, None) => Ok(Sharing::Any),
        (Some(true), None) => Ok(Sharing::Shared),
        (Some(false), None) => Ok(Sharing::NotShared),
        (Some(false), Some(groups)) => {
            Err(Wrong::of(groups, "`groups` and `shared = false` are never both true"))
        }
        (_, groups) => Ok(Sharing::Groups(each("groups", groups, |name| Ok(name.into()))?)),
    }
}

/// A key that says something about some actions only.
fn needs(
    actions: Actions,
    any: Actions,
    key: &str,
    words: &str,
    value: Option<&Spanned<Value>>,
) -> Result<(), Wrong> {
    match value {
        Some(value) if !actions.has(any) => {
            Err(Wrong::of(value, format!("`{key}` has no meaning without `{words}`")))
        }
        _ => Ok(()),
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self(ends.map(|(at, _)| at).collect())
    }

    /// The line in which something begins, from 1 on.
    fn at(&self, span: &Range<usize>) -> u32 {
        1 + self.0.partition_point(|&end| end < span.start) as u32
    }
}
