//! What topics begin and end with: a quick look at rules, most of which are about other topics.

/// Bytes of a text that are looked at.
const LEN: usize = size_of::<u64>();

/// A topic that several filters are asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topic<'a> {
    text: &'a str,
    /// Its first and last bytes; those that a short one lacks are 0, which is in no topic.
    first: u64,
    last: u64,
}

/// What all topics of a filter begin and end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterEnds {
    first: u64,
    first_mask: u64,
    last: u64,
    last_mask: u64,
}

impl<'a> Topic<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, first: first_bytes(text), last: last_bytes(text) }
    }

    #[inline]
    pub(crate) const fn text(&self) -> &'a str {
        self.text
    }
}

impl FilterEnds {
    /// Of a filter whose topics begin and end with these texts.
    pub(crate) fn new(first: &str, last: &str) -> Self {
        // The bytes that a text has, as bits: of a topic they are compared, the others are not.
        let bits = 8 * first.len().min(LEN) as u32;
        let first_mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        let bits = 8 * last.len().min(LEN) as u32;
        let last_mask = u64::MAX.checked_shl(u64::BITS - bits).unwrap_or(0);
        Self { first: first_bytes(first), first_mask, last: last_bytes(last), last_mask }
    }

    /// Its topics may end with any text.
    pub(crate) const fn open(&mut self) {
        (self.last, self.last_mask) = (0, 0);
    }

    /// False only for a topic that the filter does not match.
    #[inline]
    pub(crate) const fn may_match(&self, topic: &Topic<'_>) -> bool {
        topic.first & self.first_mask == self.first && topic.last & self.last_mask == self.last
    }
}

/// The first bytes of a text, the first of them lowest.
#[inline]
fn first_bytes(text: &str) -> u64 {
    match text.as_bytes().first_chunk::<LEN>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => short_bytes(text),
    }
}

/// The last bytes of a text, the last of them highest.
#[inline]
fn last_bytes(text: &str) -> u64 {
    match text.as_bytes().last_chunk::<LEN>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let unused = 8 * (LEN - text.len()) as u32;
            short_bytes(text).checked_shl(unused).unwrap_or(0)
        }
    }
}

/// A text of fewer bytes than a number has.
fn short_bytes(text: &str) -> u64 {
    let mut bytes = [0; LEN];
    for (byte, of_text) in bytes.iter_mut().zip(text.bytes()) {
        *byte = of_text;
    }
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_with_both_ends_may_match_and_others_do_not() {
        let texts =
            ["", "a", "b", "ab", "abcdefg", "abcdefgh", "abcdefghi", "habcdefgh", "zbcdefgh"];
        for first in texts {
            for last in texts {
                let ends = FilterEnds::new(first, last);
                for topic in texts.into_iter().chain(["abcdefg/abcdefgh", "a/b", "b/a"]) {
                    // Eight bytes of each end are looked at.
                    let begins = topic.starts_with(&first[..first.len().min(LEN)]);
                    let ended = topic.ends_with(&last[last.len().saturating_sub(LEN)..]);
                    let expected = begins && ended;
                    assert_eq!(
                        ends.may_match(&Topic::new(topic)),
                        expected,
                        "{topic:?} with {first:?} and {last:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_open_end_is_any() {
        let mut ends = FilterEnds::new("a", "b");
        assert!(!ends.may_match(&Topic::new("a/c")));
        ends.open();
        assert!(ends.may_match(&Topic::new("a/c")) && !ends.may_match(&Topic::new("b/b")));
    }
}
