//! The access rules of a broker: a file in our own format, or one of mosquitto.

use crate::acl::Acl;
use crate::covers::{Rule, STEPS_MAX, Steps};
use crate::decision::{Access, Cause, Decision};
use crate::kinds::{PublishKinds, SubscriptionKind};
use crate::rules::{ClientLimits, PublishRules, RuleSet};
use crate::template::Who;

/// What clients may do, as a file says.
#[derive(Clone, Debug)]
pub enum AccessList {
    /// An access list in the format of mosquitto.
    Mosquitto(Acl),
    /// A rules file.
    Rules(RuleSet),
}

impl AccessList {
    /// Whether it says something about users by name.
    pub fn names_users(&self) -> bool {
        match self {
            Self::Mosquitto(acl) => acl.names_users(),
            Self::Rules(rules) => rules.names_users(),
        }
    }

    /// Whether it asks where a client has connected from.
    pub const fn names_origins(&self) -> bool {
        match self {
            Self::Mosquitto(_) => false,
            Self::Rules(rules) => rules.names_origins(),
        }
    }

    /// Whether it asks for attributes of clients.
    pub const fn names_attributes(&self) -> bool {
        match self {
            Self::Mosquitto(_) => false,
            Self::Rules(rules) => rules.names_attributes(),
        }
    }

    /// Whether it says who may connect.
    pub const fn has_connect(&self) -> bool {
        match self {
            Self::Mosquitto(_) => false,
            Self::Rules(rules) => rules.has_connect(),
        }
    }

    /// Whether the response topic of a message is asked about: its publisher must be allowed to
    /// receive there. mosquitto does not ask.
    pub const fn asks_response_topics(&self) -> bool {
        matches!(self, Self::Rules(_))
    }

    /// The limits of a client, by its roles.
    pub fn limits(&self, user: Option<&str>) -> ClientLimits {
        match self {
            Self::Mosquitto(_) => ClientLimits::NONE,
            Self::Rules(rules) => rules.limits(user),
        }
    }

    /// Whether a client may connect.
    pub fn connecting(&self, who: &Who<'_>) -> Decision {
        match self {
            Self::Mosquitto(_) => Decision { is_allowed: true, cause: Cause::NoEntry },
            Self::Rules(rules) => rules.connecting(who),
        }
    }

    /// The kinds of PUBLISH that a client may send to a topic.
    pub fn publishing(&self, who: &Who<'_>, topic: &str) -> PublishKinds {
        match self {
            Self::Mosquitto(acl) => {
                let any = Access::Publish(PublishKinds::ANY);
                PublishKinds::all_if(acl.decide(who, any, topic).is_allowed)
            }
            Self::Rules(rules) => rules.publishing(who, topic),
        }
    }

    /// What a client may publish, ready for many topics, if that pays.
    pub fn publish_rules(&self, who: &Who<'_>) -> Option<PublishRules> {
        match self {
            Self::Mosquitto(_) => None,
            Self::Rules(rules) => rules.publish_rules(who),
        }
    }

    /// Whether a client may publish to a topic or receive its messages.
    pub fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Decision {
        match self {
            Self::Mosquitto(acl) => acl.decide(who, access, topic),
            Self::Rules(rules) => rules.decide(who, access, topic),
        }
    }

    /// The rules that a subscription has to be covered by, one list after the other. No more are
    /// looked at than a decision may take.
    pub(crate) fn about_subscribing<'a>(
        &'a self,
        who: &'a Who<'a>,
        kind: &SubscriptionKind<'_>,
        steps: &mut Steps,
    ) -> Vec<Vec<Rule<'a>>> {
        match self {
            Self::Mosquitto(acl) => {
                let asked: Vec<Rule<'_>> = acl.asked(who).take(STEPS_MAX + 1).collect();
                steps.pass_over(acl.len_for(who).saturating_sub(asked.len()));
                vec![asked]
            }
            Self::Rules(rules) => {
                let subscribing = rules.about_subscribing(who, kind, steps);
                [subscribing].into_iter().chain(rules.about_receiving(who, steps)).collect()
            }
        }
    }
}
