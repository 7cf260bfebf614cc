//! One rule: which clients it is about, what they do, and the topics.

use std::net::SocketAddr;

use crate::address::AddressRange;
use crate::attributes::Attributes;
use crate::ends::{FilterEnds, Topic};
use crate::kinds::{PublishKinds, SubscriptionKind, SubscriptionTerms};
use crate::template::{NamePattern, Placeholder, Template, Who, is_plain};

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actions(u8);

impl Actions {
    pub(super) const NONE: Self = Self(0);
    pub(super) const CONNECT: Self = Self(1);
    pub(super) const PUBLISH: Self = Self(2);
    /// Making subscriptions, and receiving by them.
    pub(super) const SUBSCRIBE: Self = Self(4);
    /// Receiving by any subscription.
    pub(super) const RECEIVE: Self = Self(8);
    /// All that have topics.
    pub(super) const WITH_TOPICS: Self = Self(2 | 4 | 8);

    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "connect" => Self::CONNECT,
            "publish" => Self::PUBLISH,
            "subscribe" => Self::SUBSCRIBE,
            "receive" => Self::RECEIVE,
            "all" => Self::WITH_TOPICS,
            _ => return None,
        })
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has any of these.
    pub(super) const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }
}

#[derive(Clone, Debug)]
pub(super) struct FileRule {
    /// Where it stands in the file.
    pub(super) line: u32,
    pub(super) allows: bool,
    pub(super) actions: Actions,
    pub(super) clients: ClientTerms,
    pub(super) publishes: PublishKinds,
    pub(super) subscriptions: SubscriptionTerms,
    pub(super) filters: Box<[RuleFilter]>,
}

impl FileRule {
    /// The filter that matches a topic, for one client.
    #[inline]
    pub(super) fn matches(&self, topic: &Topic<'_>, client: &Client<'_>) -> bool {
        let mut filters = self.filters.iter().filter(|filter| filter.ends.may_match(topic));
        filters.any(|filter| {
            let template = filter.template_for(client.names, self.allows);
            template.is_some_and(|template| template.matches(topic.text(), client.who))
        })
    }

    /// Its filters, as far as they have topics for a client.
    pub(super) fn templates<'a>(
        &'a self,
        client: &Client<'_>,
    ) -> impl Iterator<Item = &'a Template> + use<'a> {
        let (names, allows) = (client.names, self.allows);
        self.filters.iter().filter_map(move |filter| filter.template_for(names, allows))
    }

    /// Whether it says something about a subscription of this kind.
    pub(super) fn is_about(&self, kind: &SubscriptionKind<'_>) -> bool {
        self.actions.has(Actions::SUBSCRIBE) && self.subscriptions.has(kind)
    }

    /// Whether it says something about messages that are received, by whichever subscription: a
    /// denial for some subscriptions leaves the others.
    pub(super) fn is_about_receiving(&self) -> bool {
        self.actions.has(Actions::RECEIVE)
            || self.actions.has(Actions::SUBSCRIBE) && (self.allows || self.subscriptions.has_all())
    }
}

/// Which clients a rule is about: those for which all of this holds.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTerms {
    /// Sorted; empty: any.
    pub(super) users: Box<[Box<str>]>,
    /// Empty: any.
    pub(super) roles: Box<[RoleId]>,
    /// Empty: any.
    pub(super) client_ids: Box<[NamePattern]>,
    pub(super) is_anonymous: Option<bool>,
    /// Empty: any.
    pub(super) addresses: Box<[AddressRange]>,
    /// Empty: any.
    pub(super) listeners: Box<[ListenerName]>,
    /// All of them must hold.
    pub(super) attributes: Box<[AttributeTerm]>,
}

/// An attribute that a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttributeTerm {
    pub(super) name: Box<str>,
    /// One of these.
    pub(super) values: Box<[Box<str>]>,
}

impl AttributeTerm {
    fn holds(&self, own: &Attributes) -> bool {
        own.get(&self.name).is_some_and(|value| self.values.iter().any(|known| **known == *value))
    }
}

/// The number of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoleId(pub(super) u32);

/// A listener, as a rule names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenerName {
    Address(SocketAddr),
    Port(u16),
}

impl ListenerName {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let port = || text.parse().ok().map(Self::Port);
        text.parse().ok().map(Self::Address).or_else(port)
    }

    pub(super) fn is(self, listener: SocketAddr) -> bool {
        match self {
            Self::Address(address) => address == listener,
            Self::Port(port) => listener.port() == port,
        }
    }
}

impl ClientTerms {
    /// Whether they ask where a client has connected from.
    pub(super) fn name_origins(&self) -> bool {
        !self.addresses.is_empty() || !self.listeners.is_empty()
    }

    /// Whether they hold for a client. Of one whose origin or attributes are not known a rule that
    /// denies takes the worst.
    pub(super) fn hold(&self, client: &Client<'_>, allows: bool) -> bool {
        let who = client.who;
        let user = who.user;
        let holds_user = self.users.is_empty()
            || user.is_some_and(|user| {
                self.users.binary_search_by(|known| (**known).cmp(user)).is_ok()
            });
        let has_role = |role: &RoleId| client.roles.contains(role);
        let origin = &who.origin;
        holds_user
            && self.is_anonymous.is_none_or(|is_anonymous| is_anonymous == user.is_none())
            && (self.roles.is_empty() || self.roles.iter().any(has_role))
            && (self.client_ids.is_empty()
                || self.client_ids.iter().any(|pattern| pattern.matches(who.client_id, who)))
            && (self.addresses.is_empty()
                || origin.address.map_or(!allows, |address| {
                    self.addresses.iter().any(|range| range.contains(address))
                }))
            && (self.listeners.is_empty()
                || origin.listener.map_or(!allows, |listener| {
                    self.listeners.iter().any(|name| name.is(listener))
                }))
            && (self.attributes.is_empty()
                || who
                    .attributes
                    .map_or(!allows, |own| self.attributes.iter().all(|term| term.holds(own))))
    }
}

/// A topic filter of a rule.
#[derive(Clone, Debug)]
pub(super) struct RuleFilter {
    pub(super) template: Template,
    /// By placeholder, whether it is used.
    uses: [bool; 2],
    /// By placeholder, the filter up to there, for rules that deny.
    cuts: [Option<Box<Template>>; 2],
    ends: FilterEnds,
}

impl RuleFilter {
    pub(super) fn new(template: Template, allows: bool) -> Self {
        let uses = Placeholder::ALL.map(|name| template.names(name));
        let cut = |name| template.cut_at(name).filter(|_| !allows).map(Box::new);
        let cuts = Placeholder::ALL.map(cut);
        let mut ends = template.ends();
        if cuts.iter().any(Option::is_some) {
            ends.open(); // The filter up to a placeholder goes on with any text.
        }
        Self { template, uses, cuts, ends }
    }

    /// The filter for a client with these names. A name with special characters must not widen what
    /// a rule allows, nor escape what it denies (CVE-2017-7650): with it an allowing rule has no
    /// topics, and a denying one all that follow. Without a name no topic is meant.
    fn template_for(&self, names: [NameForm; 2], allows: bool) -> Option<&Template> {
        let used = |form| (0..2).any(|at| self.uses[at] && names[at] == form);
        if used(NameForm::Absent) || allows && used(NameForm::Special) {
            return None;
        }
        let special = (0..2).filter(|&at| names[at] == NameForm::Special);
        let cuts = special.filter_map(|at| self.cuts[at].as_deref());
        cuts.min_by_key(|cut| cut.len()).or(Some(&self.template))
    }
}

/// What a name of a client may do in filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameForm {
    Absent,
    Plain,
    /// It could be read as a wildcard or as several levels.
    Special,
}

/// A client, as rules are asked about it.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) who: &'a Who<'a>,
    pub(super) roles: &'a [RoleId],
    /// By placeholder.
    names: [NameForm; 2],
}

impl<'a> Client<'a> {
    pub(super) fn new(who: &'a Who<'a>, roles: &'a [RoleId]) -> Self {
        let names = Placeholder::ALL.map(|name| match name.value(who) {
            None => NameForm::Absent,
            Some(value) if is_plain(value) => NameForm::Plain,
            Some(_) => NameForm::Special,
        });
        Self { who, roles, names }
    }

    /// Whether a name of it cannot be used in filters.
    pub(super) fn has_special_name(&self) -> bool {
        self.names.contains(&NameForm::Special)
    }
}
