//! The rules about publishing for one client, ready for many topics.

use super::RuleSet;
use super::limits::ClientLimits;
use super::rule::FileRule;
use crate::ends::{FilterEnds, Topic};
use crate::kinds::PublishKinds;
use crate::template::{Template, Who};

/// Of clients with more filters no rules are made ready.
const FILTERS_MAX: usize = 64;

/// What one client may publish: the filters that are about it, with its names filled in. They
/// decide as [`RuleSet::publishing`] and the client's limits do together, for fewer instructions
/// per topic, and hold as long as the rule set, and the client's user, identifier and origin.
#[derive(Clone, Debug)]
pub struct PublishRules {
    /// In the order in which they are asked.
    filters: Box<[OwnFilter]>,
    limits: ClientLimits,
    /// By the limits, to a topic that has not too many levels.
    limited_to: PublishKinds,
}

#[derive(Clone, Debug)]
struct OwnFilter {
    ends: FilterEnds,
    publishes: PublishKinds,
    allows: bool,
    topics: Topics,
}

/// The topics of a filter.
#[derive(Clone, Debug)]
enum Topics {
    One(Box<str>),
    /// This topic, and those below it.
    Below(Box<str>),
    /// Those of any other filter, which names no clients.
    Of(Template),
}

impl PublishRules {
    /// The kinds of PUBLISH that the client may send to a topic.
    pub fn publishing(&self, topic: &str) -> PublishKinds {
        if self.limits.has_too_many_levels(topic) {
            return PublishKinds::NONE;
        }
        let (mut open, mut allowed) = (PublishKinds::ALL, PublishKinds::NONE);
        let topic = Topic::new(topic);
        let matching = self.filters.iter().filter(|filter| filter.matches(&topic));
        for filter in matching {
            let decided = open.and(filter.publishes);
            if filter.allows {
                allowed = allowed.with(decided);
            }
            open = open.without(decided);
            if open.is_empty() {
                break;
            }
        }
        allowed.and(self.limited_to)
    }
}

impl RuleSet {
    /// What a client may publish; `None` if it has too many filters.
    pub fn publish_rules(&self, who: &Who<'_>) -> Option<PublishRules> {
        let client = self.client(who);
        let mut filters = Vec::new();
        for rule in self.asked(&client).filter(|rule| !rule.publishes.is_empty()) {
            let own = rule.templates(&client);
            filters.extend(own.filter_map(|template| OwnFilter::new(rule, template, who)));
            if filters.len() > FILTERS_MAX {
                return None;
            }
        }
        let limits = self.limits(who.user);
        Some(PublishRules { filters: filters.into(), limits, limited_to: limits.kinds() })
    }
}

impl OwnFilter {
    /// `None` if it has no topics for this client.
    fn new(rule: &FileRule, template: &Template, who: &Who<'_>) -> Option<Self> {
        let template = template.filled(who)?;
        let (ends, publishes, allows) = (template.ends(), rule.publishes, rule.allows);
        let topics = match template.literal_text() {
            // A name never reaches topics that begin with `$`.
            Some((text, _)) if text.starts_with('$') != template.starts_with_dollar() => {
                return None;
            }
            Some((text, false)) => Topics::One(text.into()),
            Some((text, true)) => Topics::Below(text.into()),
            None => Topics::Of(template),
        };
        Some(Self { ends, publishes, allows, topics })
    }

    #[inline]
    fn matches(&self, topic: &Topic<'_>) -> bool {
        self.ends.may_match(topic)
            && match &self.topics {
                Topics::One(text) => topic.text() == &**text,
                Topics::Below(text) => {
                    let below = topic.text().strip_prefix(&**text);
                    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                }
                Topics::Of(template) => template.matches(topic.text(), &Who::new(None, "")),
            }
    }
}
