//! Subjects, patterns and names: checked once, where they enter.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::BusError;

/// Limit on a subject: far below the 4 KiB that a line of NATS may have.
const SUBJECT_BYTES_MAX: usize = 255;
const TOKENS_MAX: usize = 16;
const NAME_BYTES_MAX: usize = 64;

/// Where a message goes: tokens of printable ASCII, separated by dots, such as
/// `tacho.agent.load-1.hire`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subject(Arc<str>);

/// Which subjects a subscription wants: `*` stands for one token, `>` at the end for one or more.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Arc<str>);

/// Name of a log, a table or a key: 1 to 64 letters, digits, `-` and `_`. It is also a token of a
/// subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Subject {
    /// Checks a subject.
    ///
    /// # Errors
    /// It is empty, longer than 255 bytes, has more than 16 tokens, an empty one, a wildcard, a
    /// blank, or a first token that begins with `$`, which engines keep for themselves.
    pub fn parse(text: &str) -> Result<Self, BusError> {
        let refuse = |why| refused("subject", text, why);
        for (at, token) in tokens(text).map_err(refuse)?.enumerate() {
            if token.contains(['*', '>']) {
                return Err(refuse("wildcards belong into patterns"));
            }
            if at == 0 && token.starts_with('$') {
                return Err(refuse("subjects that begin with $ belong to the engine"));
            }
        }
        Ok(Self(text.into()))
    }

    /// The subject one token below this one.
    ///
    /// # Errors
    /// It would be too long.
    pub fn below(&self, token: &Name) -> Result<Self, BusError> {
        Self::parse(&format!("{}.{token}", self.0))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last token.
    #[must_use]
    pub fn last(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or_default()
    }
}

impl Pattern {
    /// Checks a pattern.
    ///
    /// # Errors
    /// As for a subject, but for wildcards, which must be whole tokens, `>` the last one.
    pub fn parse(text: &str) -> Result<Self, BusError> {
        let refuse = |why| refused("pattern", text, why);
        let count = tokens(text).map_err(refuse)?.count();
        for (at, token) in text.split('.').enumerate() {
            if token.contains(['*', '>']) && token.len() > 1 {
                return Err(refuse("a wildcard is a whole token"));
            }
            if token == ">" && at + 1 < count {
                return Err(refuse("> is the last token"));
            }
            if at == 0 && token.starts_with('$') {
                return Err(refuse("subjects that begin with $ belong to the engine"));
            }
        }
        Ok(Self(text.into()))
    }

    /// Whether a message with this subject is wanted.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let (mut wanted, mut given) = (self.0.split('.'), subject.0.split('.'));
        loop {
            match (wanted.next(), given.next()) {
                (Some(">"), Some(_)) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(wanted), Some(given)) if wanted == given => {}
                _ => return false,
            }
        }
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The pattern of this subject alone.
impl From<Subject> for Pattern {
    fn from(subject: Subject) -> Self {
        Self(subject.0)
    }
}

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// It is empty, longer than 64 bytes, or has a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, BusError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(is_allowed) {
            return Err(refused("name", text, "it has 1 to 64 letters, digits, - and _"));
        }
        Ok(Self(text.into()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn tokens(text: &str) -> Result<impl Iterator<Item = &str>, &'static str> {
    if text.is_empty() || text.len() > SUBJECT_BYTES_MAX {
        return Err("it has 1 to 255 bytes");
    }
    if text.split('.').count() > TOKENS_MAX {
        return Err("it has at most 16 tokens");
    }
    if text.split('.').any(str::is_empty) {
        return Err("a token is empty");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has printable ASCII only");
    }
    Ok(text.split('.'))
}

fn refused(what: &str, text: &str, why: &str) -> BusError {
    // Text from outside may be long; an error need not be.
    let text: String = text.chars().take(80).collect();
    BusError::Name { what: what.to_owned(), text, why: why.to_owned() }
}

macro_rules! text_of {
    ($($type:ident),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = BusError;

            fn try_from(text: String) -> Result<Self, BusError> {
                Self::parse(&text)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.0.as_ref().to_owned()
            }
        }
    )*};
}

text_of!(Subject, Pattern, Name);

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, subject: &str) -> bool {
        let pattern = Pattern::parse(pattern).expect("a pattern");
        pattern.matches(&Subject::parse(subject).expect("a subject"))
    }

    #[test]
    fn wildcards_stand_for_whole_tokens() {
        assert!(matches("a.b", "a.b"));
        assert!(matches("a.*", "a.b"));
        assert!(matches("a.>", "a.b.c"));
        assert!(matches("*.b.>", "a.b.c.d"));
        assert!(!matches("a.>", "a"));
        assert!(!matches("a.*", "a.b.c"));
        assert!(!matches("a.b.c", "a.b"));
        assert!(!matches("a", "b"));
    }

    #[test]
    fn texts_from_outside_are_checked() {
        let long = "a".repeat(256);
        let deep = ["a"; 17].join(".");
        for bad in ["", ".", "a..b", "a.", "a b", "a\r\nb", "ä", "$JS.API", "a.*", "a.>"] {
            assert!(Subject::parse(bad).is_err(), "{bad}");
        }
        for bad in [&*long, &*deep, "a*", "a.>.b", "$SYS.>", "a.b>", ""] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
        for bad in ["", "a.b", "a b", "ä", &*"n".repeat(65)] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
        let error = Subject::parse(&long).expect_err("too long").to_string();
        assert!(error.len() < 200 && error.contains("255 bytes"), "{error}");
        let bytes = postcard::to_allocvec("a..b").expect("encodes");
        assert!(postcard::from_bytes::<Subject>(&bytes).is_err());
    }
}
