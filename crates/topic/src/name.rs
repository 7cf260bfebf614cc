//! Topic names: what a message is published to (MQTT 5.0 section 4.7).

use std::fmt;
use std::str::Split;

/// The longest topic name or filter, in bytes: its length travels as 16 bits.
pub const TOPIC_LEN_MAX: usize = 65_535;

/// Why a text is no topic name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// A topic name has at least one character [MQTT-4.7.3-1].
    #[error("a topic name must not be empty")]
    Empty,
    /// It holds U+0000 [MQTT-4.7.3-2].
    #[error("a topic name must not contain the null character")]
    Nul,
    /// More than [`TOPIC_LEN_MAX`] bytes [MQTT-4.7.3-3].
    #[error("a topic name must not exceed 65,535 bytes")]
    TooLong,
    /// It holds `+` or `#` [MQTT-4.7.1-1].
    #[error("a topic name must not contain the wildcards '+' and '#'")]
    Wildcard,
}

/// Checks a topic name: not empty, at most [`TOPIC_LEN_MAX`] bytes, no wildcard, no U+0000.
pub fn check_topic_name(topic: &str) -> Result<(), TopicError> {
    if topic.is_empty() {
        return Err(TopicError::Empty);
    }
    if topic.len() > TOPIC_LEN_MAX {
        return Err(TopicError::TooLong);
    }
    match memchr::memchr3(b'+', b'#', 0, topic.as_bytes()) {
        None => Ok(()),
        Some(at) if topic.as_bytes()[at] == 0 => Err(TopicError::Nul),
        Some(_) => Err(TopicError::Wildcard),
    }
}

/// A checked topic name, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName<'a>(&'a str);

impl<'a> TopicName<'a> {
    /// Checks `topic` with [`check_topic_name`].
    pub fn parse(topic: &'a str) -> Result<Self, TopicError> {
        check_topic_name(topic).map(|()| Self(topic))
    }

    /// The text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// The levels between the slashes; a topic has one more level than slashes, and a level may be
    /// empty.
    pub fn levels(self) -> Split<'a, char> {
        self.0.split('/')
    }

    /// Whether the topic starts with `$`: such topics are not matched by filters that start with a
    /// wildcard [MQTT-4.7.2-1].
    pub fn is_reserved(self) -> bool {
        self.0.starts_with('$')
    }
}

impl AsRef<str> for TopicName<'_> {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for TopicName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_names_and_refuses_the_rest() {
        let longest = "a".repeat(TOPIC_LEN_MAX);
        for topic in ["a", "/", "//", "/a", "a/", "a b", "$SYS/x", "ü/é", longest.as_str()] {
            assert_eq!(check_topic_name(topic), Ok(()), "{topic}");
        }
        let too_long = "a".repeat(TOPIC_LEN_MAX + 1);
        for (topic, error) in [
            ("", TopicError::Empty),
            ("a\0b", TopicError::Nul),
            ("a/+", TopicError::Wildcard),
            ("a#", TopicError::Wildcard),
            (too_long.as_str(), TopicError::TooLong),
        ] {
            assert_eq!(check_topic_name(topic), Err(error));
        }
    }

    #[test]
    fn levels_include_empty_ones() {
        let name = TopicName::parse("/a//").unwrap();
        assert_eq!(name.levels().collect::<Vec<_>>(), ["", "a", "", ""]);
        assert!(!name.is_reserved());
        assert!(TopicName::parse("$SYS").unwrap().is_reserved());
    }
}
