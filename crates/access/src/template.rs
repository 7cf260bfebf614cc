//! Topic filters of rules, in which a level may stand for the client's user name or identifier.

use tacho_topic::{FilterError, TopicFilter};

/// The client that rules are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who<'a> {
    /// The user that the client has logged in as; `None` is anonymous.
    pub user: Option<&'a str>,
    /// The client identifier.
    pub client_id: &'a str,
}

/// What a level may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    User,
    ClientId,
}

impl Placeholder {
    pub(crate) const ALL: [Self; 2] = [Self::User, Self::ClientId];

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::User => "%u",
            Self::ClientId => "%c",
        }
    }

    /// The value for a client, if it has one.
    pub(crate) fn value<'a>(self, who: &Who<'a>) -> Option<&'a str> {
        match self {
            Self::User => who.user,
            Self::ClientId => Some(who.client_id),
        }
    }
}

/// Whether a name that a client has chosen may stand for a level: not if it could be read as a
/// wildcard or as several levels.
pub(crate) fn is_plain(value: &str) -> bool {
    let is_special = |character: char| "+#/".contains(character) || character.is_control();
    !value.is_empty() && !value.contains(is_special)
}

/// A topic filter with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    levels: Box<[Level]>,
    /// Only then it matches topics that start with `$`.
    starts_with_dollar: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Level {
    Text(Box<str>),
    Single,
    Multi,
    Name(Placeholder),
}

/// A level of a template, for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LevelFor<'a> {
    Text(&'a str),
    Single,
    Multi,
    /// The client has no value for it: no level is equal.
    Nothing,
}

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("{0}")]
    Filter(#[from] FilterError),
    #[error("`%u` and `%c` must stand alone in their level")]
    PartOfLevel,
}

impl Template {
    /// A filter in which `%u` and `%c` are ordinary text.
    pub(crate) fn literal(text: &str) -> Result<Self, TemplateError> {
        Self::new(text, |_| None)
    }

    /// A filter in which the level `%u` is the user name, and `%c` the client identifier.
    pub(crate) fn pattern(text: &str) -> Result<Self, TemplateError> {
        let named = |level: &str| Placeholder::ALL.into_iter().find(|name| name.text() == level);
        let has_any = |level: &str| Placeholder::ALL.iter().any(|name| level.contains(name.text()));
        if text.split('/').any(|level| has_any(level) && named(level).is_none()) {
            return Err(TemplateError::PartOfLevel);
        }
        Self::new(text, named)
    }

    fn new(text: &str, named: impl Fn(&str) -> Option<Placeholder>) -> Result<Self, TemplateError> {
        let filter = TopicFilter::parse(text)?;
        let level = |level: &str| match level {
            "+" => Level::Single,
            "#" => Level::Multi,
            text => named(text).map_or_else(|| Level::Text(text.into()), Level::Name),
        };
        Ok(Self {
            levels: filter.levels().map(level).collect(),
            starts_with_dollar: text.starts_with('$'),
        })
    }

    /// Whether it has this placeholder.
    pub(crate) fn names(&self, placeholder: Placeholder) -> bool {
        self.levels.contains(&Level::Name(placeholder))
    }

    pub(crate) const fn starts_with_dollar(&self) -> bool {
        self.starts_with_dollar
    }

    pub(crate) const fn len(&self) -> usize {
        self.levels.len()
    }

    /// Whether it ends with `#` at this level or before: then it matches whatever follows.
    pub(crate) fn is_open_at(&self, depth: usize) -> bool {
        self.levels.last() == Some(&Level::Multi) && self.levels.len() <= depth + 1
    }

    /// A level for one client; `None` behind the last one. Names are those of plain clients: see
    /// [`is_plain`].
    pub(crate) fn level<'a>(&'a self, depth: usize, who: &Who<'a>) -> Option<LevelFor<'a>> {
        Some(match self.levels.get(depth)? {
            Level::Text(text) => LevelFor::Text(text),
            Level::Single => LevelFor::Single,
            Level::Multi => LevelFor::Multi,
            Level::Name(name) => name.value(who).map_or(LevelFor::Nothing, LevelFor::Text),
        })
    }

    /// Whether it matches a topic, for one client.
    pub(crate) fn matches(&self, topic: &str, who: &Who<'_>) -> bool {
        if topic.starts_with('$') && !self.starts_with_dollar {
            return false;
        }
        let mut topic_levels = topic.split('/');
        for level in &self.levels {
            let wanted = match level {
                Level::Multi => return true,
                Level::Single => None,
                Level::Text(text) => Some(&**text),
                Level::Name(name) => match name.value(who) {
                    Some(value) => Some(value),
                    None => return false,
                },
            };
            match topic_levels.next() {
                Some(found) if wanted.is_none_or(|wanted| wanted == found) => {}
                _ => return false,
            }
        }
        topic_levels.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'static> = Who { user: Some("ann"), client_id: "c1" };

    #[test]
    fn templates_match_like_filters_and_fill_in_names() {
        for (text, topic, expected) in [
            ("a/+/b", "a/x/b", true),
            ("a/#", "a", true),
            ("#", "$SYS/x", false),
            ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
            ("home/%u/#", "home/ann/door", true),
            ("home/%u/#", "home/bob/door", false),
            ("dev/%c", "dev/c1", true),
            ("dev/%c", "dev/c1/x", false),
            ("%u/%c", "ann/c1", true),
        ] {
            let template = Template::pattern(text).expect(text);
            assert_eq!(template.matches(topic, &WHO), expected, "{text} on {topic}");
        }
        assert!(Template::literal("a/%u").unwrap().matches("a/%u", &WHO));
        assert!(!Template::literal("a/%u").unwrap().matches("a/ann", &WHO));
    }

    #[test]
    fn a_name_never_reaches_topics_of_the_broker() {
        let who = Who { user: Some("$SYS"), client_id: "$SYS" };
        assert!(!Template::pattern("%u/#").unwrap().matches("$SYS/x", &who));
        assert!(!Template::pattern("%c/#").unwrap().matches("$SYS/x", &who));
        let nameless = Who { user: None, client_id: "c" };
        assert!(!Template::pattern("%u/#").unwrap().matches("/x", &nameless));
    }

    #[test]
    fn wrong_templates_are_refused() {
        for text in ["a/x%u", "%c%u", "a/%c-1/b"] {
            assert_eq!(Template::pattern(text), Err(TemplateError::PartOfLevel), "{text}");
        }
        for text in ["", "a/#/b", "a+/b"] {
            assert!(matches!(Template::pattern(text), Err(TemplateError::Filter(_))), "{text}");
        }
    }

    #[test]
    fn names_with_wildcards_levels_or_control_characters_are_not_plain() {
        for value in ["", "+", "a+", "#", "a/b", "a\n", "\u{85}"] {
            assert!(!is_plain(value), "{value:?}");
        }
        for value in ["a", "ü b", "$x", "%u"] {
            assert!(is_plain(value), "{value:?}");
        }
    }
}
