//! Rules files: our own format of access rules, in TOML.
//!
//! The rules are one list, asked from the top; the first that is about a client, what it asks for,
//! and the topic decides. What none decides is denied. Users have roles, and a rule may be for
//! roles. Rules that name users or roles are found by those, so that a client's questions cost what
//! its own rules cost, not what the file has.

mod limits;
mod publisher;
mod read;
mod rule;
mod values;

use std::collections::HashMap;
use std::net::SocketAddr;

pub use limits::{ClientLimits, Exceeded, PublishExcess, PublishRate};
pub use publisher::PublishRules;

use crate::covers::{self, Steps};
use crate::decision::{Access, Cause, Decision};
use crate::ends::Topic;
use crate::file::FileError;
use crate::kinds::{PublishKinds, SubscriptionKind};
use crate::template::Who;
use rule::{Actions, Client, FileRule, RoleId};

/// The rules of a file.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<FileRule>,
    /// Numbers of rules, ascending: those that name neither users nor roles, ...
    general: Vec<u32>,
    /// ... those that name a user, ...
    by_user: HashMap<Box<str>, Vec<u32>>,
    /// ... and those that name a role and no user.
    by_role: Vec<Vec<u32>>,
    /// By [`RoleId`].
    role_names: Vec<Box<str>>,
    /// By [`RoleId`].
    role_limits: Vec<ClientLimits>,
    /// With the role that all clients have.
    roles_of: HashMap<Box<str>, Box<[RoleId]>>,
    /// Of clients that are not named.
    default_roles: Box<[RoleId]>,
    /// Whether any rule is about connecting.
    has_connect: bool,
    /// Whether any rule asks where a client has connected from.
    names_origins: bool,
    /// Whether any rule asks for attributes of a client.
    names_attributes: bool,
    names_users: bool,
    /// Whether any rule is about receiving and not about subscribing.
    has_receive_alone: bool,
}

impl RuleSet {
    /// Parses the text of a rules file; `path` is for errors. `listeners` are the addresses that
    /// the broker listens on, if they are known: rules must name no others.
    ///
    /// # Errors
    /// It is not TOML, has an unknown key, a value that cannot be used, an unknown role or
    /// listener, a rule that says nothing, or too much.
    pub fn parse(
        path: &str,
        text: &str,
        listeners: Option<&[SocketAddr]>,
    ) -> Result<Self, FileError> {
        read::read(path, text, listeners)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules, and so everything but connecting is denied.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether rules name users or roles of users.
    pub const fn names_users(&self) -> bool {
        self.names_users
    }

    /// Whether rules ask where a client has connected from.
    pub const fn names_origins(&self) -> bool {
        self.names_origins
    }

    /// Whether rules ask for attributes of clients.
    pub const fn names_attributes(&self) -> bool {
        self.names_attributes
    }

    /// Whether rules say which clients may connect.
    pub const fn has_connect(&self) -> bool {
        self.has_connect
    }

    /// The names of all roles.
    pub fn role_names(&self) -> impl Iterator<Item = &str> {
        self.role_names.iter().map(|name| &**name)
    }

    /// The names of the roles of a client.
    pub fn roles(&self, user: Option<&str>) -> impl Iterator<Item = &str> {
        self.roles_of(user).iter().map(|role| &*self.role_names[role.0 as usize])
    }

    /// The limits of a client: of its roles, the first that says something about one counts.
    pub fn limits(&self, user: Option<&str>) -> ClientLimits {
        let roles = self.roles_of(user).iter();
        let limits = roles.map(|role| &self.role_limits[role.0 as usize]);
        limits.fold(ClientLimits::NONE, |so_far, more| so_far.or(more))
    }

    /// Whether a client may connect. Without rules about that all may.
    pub fn connecting(&self, who: &Who<'_>) -> Decision {
        if !self.has_connect {
            return Decision { is_allowed: true, cause: Cause::NoRule };
        }
        let client = self.client(who);
        let hit = self.asked(&client).find(|rule| rule.actions.has(Actions::CONNECT));
        self.decision(hit, &client)
    }

    /// The kinds of PUBLISH that a client may send to a topic.
    pub fn publishing(&self, who: &Who<'_>, topic: &str) -> PublishKinds {
        let client = self.client(who);
        let (mut open, mut allowed) = (PublishKinds::ALL, PublishKinds::NONE);
        let topic = Topic::new(topic);
        // The cheapest question first.
        for rule in self.of_names(&client) {
            let decided = open.and(rule.publishes);
            let is_asked = !decided.is_empty()
                && rule.matches(&topic, &client)
                && rule.clients.hold(&client, rule.allows);
            if !is_asked {
                continue;
            }
            if rule.allows {
                allowed = allowed.with(decided);
            }
            open = open.without(decided);
            if open.is_empty() {
                break;
            }
        }
        allowed
    }

    /// Whether a client may publish to a topic or receive its messages, and by which rule.
    pub fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Decision {
        let client = self.client(who);
        let is_about = |rule: &&FileRule| match access {
            Access::Publish(kind) => rule.publishes.has(kind),
            Access::Receive => rule.is_about_receiving(),
        };
        let mut asked = self.asked(&client).filter(is_about);
        let topic = Topic::new(topic);
        let hit = asked.find(|rule| rule.matches(&topic, &client));
        self.decision(hit, &client)
    }

    /// What a rule says about subscriptions to one topic, as [`Self::decide`].
    pub fn decide_subscription(
        &self,
        who: &Who<'_>,
        kind: &SubscriptionKind<'_>,
        topic: &str,
    ) -> Decision {
        let client = self.client(who);
        let mut asked = self.asked(&client).filter(|rule| rule.is_about(kind));
        let topic = Topic::new(topic);
        let hit = asked.find(|rule| rule.matches(&topic, &client));
        self.decision(hit, &client)
    }

    /// The rules about subscriptions of this kind, in the order in which they are asked.
    pub(crate) fn about_subscribing<'a>(
        &'a self,
        who: &'a Who<'a>,
        kind: &SubscriptionKind<'_>,
        steps: &mut Steps,
    ) -> Vec<covers::Rule<'a>> {
        self.about(who, steps, |rule| rule.is_about(kind))
    }

    /// The rules about receiving, if that is not all said by those about subscriptions.
    pub(crate) fn about_receiving<'a>(
        &'a self,
        who: &'a Who<'a>,
        steps: &mut Steps,
    ) -> Option<Vec<covers::Rule<'a>>> {
        self.has_receive_alone.then(|| self.about(who, steps, FileRule::is_about_receiving))
    }

    fn about<'a>(
        &'a self,
        who: &'a Who<'a>,
        steps: &mut Steps,
        is_about: impl Fn(&FileRule) -> bool,
    ) -> Vec<covers::Rule<'a>> {
        let client = self.client(who);
        let rules = self.of_names(&client).filter(|rule| {
            let is_asked = rule.clients.hold(&client, rule.allows) && is_about(rule);
            steps.pass_over(usize::from(!is_asked));
            is_asked
        });
        let flat = rules.flat_map(|rule| {
            let allows = rule.allows;
            rule.templates(&client).map(move |template| covers::Rule { template, allows })
        });
        flat.collect()
    }

    fn client<'a>(&'a self, who: &'a Who<'a>) -> Client<'a> {
        Client::new(who, self.roles_of(who.user))
    }

    fn roles_of(&self, user: Option<&str>) -> &[RoleId] {
        user.and_then(|user| self.roles_of.get(user)).unwrap_or(&self.default_roles)
    }

    /// The rules that are about a client, in their order.
    fn asked<'a>(&'a self, client: &Client<'a>) -> impl Iterator<Item = &'a FileRule> {
        let client = *client;
        self.of_names(&client).filter(move |rule| rule.clients.hold(&client, rule.allows))
    }

    /// Those that a client's user and roles lead to.
    fn of_names<'a>(&'a self, client: &Client<'a>) -> impl Iterator<Item = &'a FileRule> + use<'a> {
        let own = client.who.user.and_then(|user| self.by_user.get(user));
        let of_roles = client.roles.iter();
        let of_roles = of_roles.map(|role| &self.by_role[role.0 as usize]);
        let lists = [&self.general].into_iter().chain(own).chain(of_roles);
        Merged::new(lists.map(Vec::as_slice)).map(|number| &self.rules[number as usize])
    }

    fn decision(&self, hit: Option<&FileRule>, client: &Client<'_>) -> Decision {
        match hit {
            Some(rule) => Decision { is_allowed: rule.allows, cause: Cause::Rule(rule.line) },
            None if client.has_special_name() => {
                Decision { is_allowed: false, cause: Cause::SpecialName }
            }
            None => Decision { is_allowed: false, cause: Cause::NoRule },
        }
    }
}

/// Ascending lists as one, each number once.
struct Merged<'a> {
    first: &'a [u32],
    /// Few: those of a client's roles.
    others: Vec<&'a [u32]>,
}

impl<'a> Merged<'a> {
    fn new(lists: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut lists = lists.filter(|list| !list.is_empty());
        Self { first: lists.next().unwrap_or_default(), others: lists.collect() }
    }
}

impl Iterator for Merged<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.others.is_empty() {
            let (&head, rest) = self.first.split_first()?;
            self.first = rest;
            return Some(head);
        }
        self.next_of_several()
    }
}

impl Merged<'_> {
    fn next_of_several(&mut self) -> Option<u32> {
        let heads = self.others.iter().chain([&self.first]).filter_map(|list| list.first());
        let least = *heads.min()?;
        for list in self.others.iter_mut().chain([&mut self.first]) {
            if let Some((&head, rest)) = list.split_first()
                && head == least
            {
                *list = rest;
            }
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests;
