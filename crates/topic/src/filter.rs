//! Topic filters, plain and shared (MQTT 5.0 sections 4.7 and 4.8.2).

use std::borrow::Borrow;
use std::fmt;
use std::str::Split;
use std::sync::Arc;

/// The longest topic name or filter, in bytes: its length travels as 16 bits.
pub const TOPIC_LEN_MAX: usize = 65_535;

/// The prefix of a shared subscription's filter.
const SHARE_PREFIX: &str = "$share/";

/// Why a text is not a topic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// A filter has at least one character [MQTT-4.7.3-1].
    Empty,
    /// `#` does not stand alone in the last level [MQTT-4.7.1-1].
    MultiLevelWildcard,
    /// It contains U+0000 [MQTT-4.7.3-2].
    Nul,
    /// `$share/name` is not followed by a filter [MQTT-4.8.2-2].
    ShareFilterMissing,
    /// The share name is empty or contains a wildcard [MQTT-4.8.2-1], [MQTT-4.8.2-2].
    ShareName,
    /// `+` shares its level with other characters [MQTT-4.7.1-2].
    SingleLevelWildcard,
    /// More than [`TOPIC_LEN_MAX`] bytes [MQTT-4.7.3-3].
    TooLong,
}

impl FilterError {
    /// What is wrong, as a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Empty => "a topic filter must not be empty",
            Self::MultiLevelWildcard => "'#' must stand alone in the last level of a topic filter",
            Self::Nul => "a topic filter must not contain the null character",
            Self::ShareFilterMissing => {
                "a shared subscription needs a topic filter: $share/name/filter"
            }
            Self::ShareName => "the share name must not be empty nor contain '/', '+' or '#'",
            Self::SingleLevelWildcard => "'+' must stand alone in its level of a topic filter",
            Self::TooLong => "a topic filter must not exceed 65,535 bytes",
        }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

impl std::error::Error for FilterError {}

/// A checked topic filter, without a share name. A clone shares the text.
///
/// It hashes, compares and orders like its text, so maps can be searched by `&str`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicFilter(Arc<str>);

impl TopicFilter {
    /// Checks `filter`. A `$share/` prefix has no meaning here: see [`Filter::parse`].
    pub fn parse(filter: &str) -> Result<Self, FilterError> {
        check_filter(filter).map(|()| Self(filter.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared text, to keep without a copy.
    pub fn as_arc(&self) -> &Arc<str> {
        &self.0
    }

    /// The levels between the slashes, wildcards included as `+` and `#`.
    pub fn levels(&self) -> Split<'_, char> {
        self.0.split('/')
    }

    /// The number of levels. A filter with wildcards costs memory per level in the indexes, so a
    /// broker should limit it.
    pub fn level_count(&self) -> usize {
        memchr::memchr_iter(b'/', self.0.as_bytes()).count() + 1
    }

    /// Whether the filter contains no wildcard, so that it matches exactly one topic.
    pub fn is_exact(&self) -> bool {
        memchr::memchr2(b'+', b'#', self.0.as_bytes()).is_none()
    }

    /// Whether the first level is a wildcard: such filters do not match topics that start with `$`.
    pub fn starts_with_wildcard(&self) -> bool {
        self.0.starts_with(['+', '#'])
    }

    /// Whether the filter matches `topic`.
    pub fn matches(&self, topic: &str) -> bool {
        crate::matches(&self.0, topic)
    }
}

impl AsRef<str> for TopicFilter {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicFilter {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A checked filter of a shared subscription: `$share/{group}/{filter}`. A clone shares both.
///
/// Both are behind one pointer, so that a [`Filter`] is as small as a [`TopicFilter`]: brokers hold
/// millions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedFilter(Arc<GroupAndFilter>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct GroupAndFilter {
    group: Box<str>,
    filter: TopicFilter,
}

impl SharedFilter {
    /// The share name.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The topic filter behind the share name.
    pub fn filter(&self) -> &TopicFilter {
        &self.0.filter
    }
}

impl fmt::Debug for SharedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for SharedFilter {
    /// The full text, as in SUBSCRIBE.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SHARE_PREFIX}{}/{}", self.group(), self.filter())
    }
}

/// A plain or a shared filter, as SUBSCRIBE and UNSUBSCRIBE carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filter {
    /// An ordinary subscription: each subscriber gets each message.
    Plain(TopicFilter),
    /// A shared subscription: one member of the group gets each message.
    Shared(SharedFilter),
}

impl Filter {
    /// Checks the text of a subscription. `$share/name/filter` is a shared filter; any other text
    /// that starts with `$share/` is refused. The length limit applies to the whole text.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let Some(shared) = text.strip_prefix(SHARE_PREFIX) else {
            return TopicFilter::parse(text).map(Self::Plain);
        };
        if text.len() > TOPIC_LEN_MAX {
            return Err(FilterError::TooLong);
        }
        let (group, filter) = match shared.split_once('/') {
            Some((group, filter)) => (group, filter),
            None => (shared, ""),
        };
        if group.contains('\0') {
            return Err(FilterError::Nul);
        }
        if group.is_empty() || group.contains(['+', '#']) {
            return Err(FilterError::ShareName);
        }
        if filter.is_empty() {
            return Err(FilterError::ShareFilterMissing);
        }
        let filter = TopicFilter::parse(filter)?;
        Ok(Self::Shared(SharedFilter(Arc::new(GroupAndFilter { group: group.into(), filter }))))
    }

    /// The topic filter, without the share name.
    pub fn topic_filter(&self) -> &TopicFilter {
        match self {
            Self::Plain(filter) => filter,
            Self::Shared(shared) => shared.filter(),
        }
    }

    /// Whether this is a shared subscription.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }
}

impl From<TopicFilter> for Filter {
    fn from(filter: TopicFilter) -> Self {
        Self::Plain(filter)
    }
}

impl From<SharedFilter> for Filter {
    fn from(filter: SharedFilter) -> Self {
        Self::Shared(filter)
    }
}

impl fmt::Display for Filter {
    /// The full text, as in SUBSCRIBE.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(filter) => filter.fmt(f),
            Self::Shared(shared) => shared.fmt(f),
        }
    }
}

fn check_filter(filter: &str) -> Result<(), FilterError> {
    if filter.is_empty() {
        return Err(FilterError::Empty);
    }
    if filter.len() > TOPIC_LEN_MAX {
        return Err(FilterError::TooLong);
    }
    let bytes = filter.as_bytes();
    for at in memchr::memchr3_iter(b'+', b'#', 0, bytes) {
        let starts_level = at == 0 || bytes[at - 1] == b'/';
        match bytes[at] {
            0 => return Err(FilterError::Nul),
            b'#' if !starts_level || at + 1 != bytes.len() => {
                return Err(FilterError::MultiLevelWildcard);
            }
            b'+' if !starts_level || bytes.get(at + 1).is_some_and(|&next| next != b'/') => {
                return Err(FilterError::SingleLevelWildcard);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
