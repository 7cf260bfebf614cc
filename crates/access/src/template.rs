//! Topic filters of rules, in which a level may stand for the client's user name or identifier.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use tacho_topic::{FilterError, TopicFilter};

use crate::attributes::Attributes;
use crate::ends::FilterEnds;

/// The client that rules are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who<'a> {
    /// The user that the client has logged in as; `None` is anonymous.
    pub user: Option<&'a str>,
    /// The client identifier.
    pub client_id: &'a str,
    /// Where it has connected from.
    pub origin: Origin,
    /// What its login has said of it; `None`: that is not known.
    pub attributes: Option<&'a Attributes>,
}

impl<'a> Who<'a> {
    /// A client of which it is not known where it has connected from, nor its attributes.
    pub const fn new(user: Option<&'a str>, client_id: &'a str) -> Self {
        Self { user, client_id, origin: Origin::UNKNOWN, attributes: None }
    }
}

/// Where a client has connected from, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: Option<IpAddr>,
    /// The configured address of the listener that it has connected to.
    pub listener: Option<SocketAddr>,
}

impl Origin {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { address: None, listener: None };
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
    // Asked with each new topic: names in ASCII, which most are, take an instruction or two a byte.
    let is_special = |byte: u8| matches!(byte, b'+' | b'#' | b'/') || byte.is_ascii_control();
    let is_control = |character: char| character.is_control();
    !value.is_empty()
        && !value.bytes().any(is_special)
        && (value.is_ascii() || !value.contains(is_control))
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
    /// Text with names in it.
    Parts(Box<[Part]>),
}

/// As it is written.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, level) in self.levels.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            match level {
                Level::Text(text) => f.write_str(text)?,
                Level::Single => f.write_str("+")?,
                Level::Multi => f.write_str("#")?,
                Level::Name(name) => f.write_str(name.text())?,
                Level::Parts(parts) => parts.iter().try_for_each(|part| match part {
                    // What stands for itself is doubled there.
                    Part::Text(text) => f.write_str(&text.replace('%', "%%")),
                    Part::Name(name) => f.write_str(name.text()),
                })?,
            }
        }
        Ok(())
    }
}

/// A piece of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Name(Placeholder),
}

impl Part {
    /// `None` where the client has no such name.
    fn value<'a>(&'a self, who: &Who<'a>) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Name(name) => name.value(who),
        }
    }
}

/// A level of a template, for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LevelFor<'a> {
    Text(Cow<'a, str>),
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
    #[error("`%` begins `%c`, `%u` or `%%`")]
    UnknownPlaceholder,
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

    /// A filter in which `%u` is the user name, `%c` the client identifier and `%%` a `%`, also as
    /// parts of a level.
    pub(crate) fn with_parts(text: &str) -> Result<Self, TemplateError> {
        let filter = TopicFilter::parse(text)?;
        let level = |level: &str| match level {
            "+" => Ok(Level::Single),
            "#" => Ok(Level::Multi),
            text => parts(text).map(level_of),
        };
        Ok(Self {
            levels: filter.levels().map(level).collect::<Result<_, _>>()?,
            starts_with_dollar: text.starts_with('$'),
        })
    }

    /// It up to the first level with this placeholder, and whatever follows; `None` without one.
    pub(crate) fn cut_at(&self, placeholder: Placeholder) -> Option<Self> {
        let at = self.levels.iter().position(|level| level.names(placeholder))?;
        let levels = self.levels[..at].iter().cloned().chain([Level::Multi]).collect();
        Some(Self { levels, starts_with_dollar: self.starts_with_dollar })
    }

    /// Whether it has this placeholder.
    pub(crate) fn names(&self, placeholder: Placeholder) -> bool {
        self.levels.iter().any(|level| level.names(placeholder))
    }

    /// What all topics begin and end with, for any client.
    pub(crate) fn ends(&self) -> FilterEnds {
        let text = |level: &'_ Level| match level {
            Level::Text(text) => Some(text.clone()),
            _ => None,
        };
        let first: Vec<_> = self.levels.iter().map_while(text).collect();
        let mut last: Vec<_> = self.levels.iter().rev().map_while(text).collect();
        last.reverse();
        FilterEnds::new(&first.join("/"), &last.join("/"))
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
            Level::Text(text) => LevelFor::Text(Cow::Borrowed(text)),
            Level::Single => LevelFor::Single,
            Level::Multi => LevelFor::Multi,
            Level::Name(name) => match name.value(who) {
                Some(value) => LevelFor::Text(Cow::Borrowed(value)),
                None => LevelFor::Nothing,
            },
            Level::Parts(parts) => {
                let whole: Option<String> = parts.iter().map(|part| part.value(who)).collect();
                whole.map_or(LevelFor::Nothing, |whole| LevelFor::Text(Cow::Owned(whole)))
            }
        })
    }

    /// It with the names of a client, which are those of a plain one; `None` if the client has no
    /// value for one.
    pub(crate) fn filled(&self, who: &Who<'_>) -> Option<Self> {
        let levels = (0..self.len()).map_while(|depth| self.level(depth, who));
        let levels = levels.map(|level| match level {
            LevelFor::Text(text) => Some(Level::Text(text.into())),
            LevelFor::Single => Some(Level::Single),
            LevelFor::Multi => Some(Level::Multi),
            LevelFor::Nothing => None,
        });
        Some(Self {
            levels: levels.collect::<Option<_>>()?,
            starts_with_dollar: self.starts_with_dollar,
        })
    }

    /// The text of its levels, and whether `#` follows, if it has neither placeholders nor other
    /// wildcards.
    pub(crate) fn literal_text(&self) -> Option<(String, bool)> {
        let (levels, is_open) = match self.levels.split_last()? {
            (Level::Multi, levels) if !levels.is_empty() => (levels, true),
            _ => (&*self.levels, false),
        };
        let text = |level: &'_ Level| match level {
            Level::Text(text) => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<_>> = levels.iter().map(text).collect();
        Some((texts?.join("/"), is_open))
    }

    /// Whether it matches a topic, for one client.
    pub(crate) fn matches(&self, topic: &str, who: &Who<'_>) -> bool {
        if topic.starts_with('$') != self.starts_with_dollar {
            return false;
        }
        let mut topic_levels = topic.split('/');
        for level in &self.levels {
            if matches!(level, Level::Multi) {
                return true;
            }
            let Some(found) = topic_levels.next() else { return false };
            let is_same = match level {
                Level::Single | Level::Multi => true,
                Level::Text(text) => **text == *found,
                Level::Name(name) => name.value(who) == Some(found),
                Level::Parts(parts) => behind(parts, found, who) == Some(""),
            };
            if !is_same {
                return false;
            }
        }
        topic_levels.next().is_none()
    }
}

impl Level {
    fn names(&self, placeholder: Placeholder) -> bool {
        match self {
            Self::Name(name) => *name == placeholder,
            Self::Parts(parts) => parts.contains(&Part::Name(placeholder)),
            Self::Text(_) | Self::Single | Self::Multi => false,
        }
    }
}

/// What follows these parts in a text that begins with them, one behind the other.
fn behind<'t>(parts: &[Part], text: &'t str, who: &Who<'_>) -> Option<&'t str> {
    parts.iter().try_fold(text, |rest, part| rest.strip_prefix(part.value(who)?))
}

/// The parts of a text with placeholders.
fn parts(text: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            plain.push(character);
            continue;
        }
        let name = match characters.next() {
            Some('u') => Placeholder::User,
            Some('c') => Placeholder::ClientId,
            Some('%') => {
                plain.push('%');
                continue;
            }
            _ => return Err(TemplateError::UnknownPlaceholder),
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain).into()));
        }
        parts.push(Part::Name(name));
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain.into()));
    }
    Ok(parts)
}

fn level_of(mut parts: Vec<Part>) -> Level {
    match (parts.len(), parts.pop()) {
        (_, None) => Level::Text("".into()),
        (1, Some(Part::Text(text))) => Level::Text(text),
        (1, Some(Part::Name(name))) => Level::Name(name),
        (_, Some(last)) => {
            parts.push(last);
            Level::Parts(parts.into())
        }
    }
}

/// A name with placeholders, of a client identifier; a last `*` stands for any further text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern {
    parts: Box<[Part]>,
    is_prefix: bool,
}

impl NamePattern {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let (text, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        Ok(Self { parts: parts(text)?.into(), is_prefix })
    }

    /// Whether it has this placeholder.
    pub(crate) fn names(&self, placeholder: Placeholder) -> bool {
        self.parts.contains(&Part::Name(placeholder))
    }

    pub(crate) fn matches(&self, name: &str, who: &Who<'_>) -> bool {
        let rest = behind(&self.parts, name, who);
        rest.is_some_and(|rest| self.is_prefix || rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'static> = Who::new(Some("ann"), "c1");

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
        let who = Who::new(Some("$SYS"), "$SYS");
        assert!(!Template::pattern("%u/#").unwrap().matches("$SYS/x", &who));
        assert!(!Template::pattern("%c/#").unwrap().matches("$SYS/x", &who));
        let nameless = Who::new(None, "c");
        assert!(!Template::pattern("%u/#").unwrap().matches("/x", &nameless));
    }

    #[test]
    fn names_fill_parts_of_levels() {
        for (text, topic, expected) in [
            ("up/dev-%c/#", "up/dev-c1/x", true),
            ("up/dev-%c/#", "up/dev-c2/x", false),
            ("up/dev-%c/#", "up/dev-c1x", false),
            ("%u-%c/+", "ann-c1/x", true),
            ("%u%c", "annc1", true),
            ("%c", "c1", true),
            ("100%%/%%c", "100%/%c", true),
            ("100%%/%%c", "100%/c1", false),
        ] {
            let template = Template::with_parts(text).expect(text);
            assert_eq!(template.matches(topic, &WHO), expected, "{text} on {topic}");
        }
        let nameless = Who::new(None, "c");
        assert!(!Template::with_parts("a%u").unwrap().matches("a", &nameless));
        for text in ["a/%", "a/%x", "%C"] {
            assert_eq!(Template::with_parts(text), Err(TemplateError::UnknownPlaceholder));
        }
        assert!(Template::with_parts("a%c+/b").is_err());
    }

    #[test]
    fn a_template_is_cut_before_a_name() {
        let cut = |text: &str| Template::with_parts(text).unwrap().cut_at(Placeholder::ClientId);
        assert_eq!(cut("a/%u/x-%c/b"), Some(Template::with_parts("a/%u/#").unwrap()));
        assert_eq!(cut("%c"), Some(Template::with_parts("#").unwrap()));
        assert_eq!(cut("a/%u"), None);
        // Of topics that begin with `$`, as before.
        let cut = cut("$%c/a").unwrap();
        assert!(cut.matches("$x/b", &WHO) && !cut.matches("x/b", &WHO));
    }

    #[test]
    fn name_patterns_fill_in_names_and_end_anywhere_with_a_star() {
        for (text, name, expected) in [
            ("c1", "c1", true),
            ("c1", "c12", false),
            ("c*", "c1", true),
            ("*", "", true),
            ("%u", "ann", true),
            ("%u-*", "ann-7", true),
            ("%u-*", "anna-7", false),
        ] {
            assert_eq!(NamePattern::parse(text).unwrap().matches(name, &WHO), expected, "{text}");
        }
        assert!(!NamePattern::parse("%u*").unwrap().matches("x", &Who::new(None, "x")));
        assert!(NamePattern::parse("%x").is_err());
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
