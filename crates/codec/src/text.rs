//! MQTT strings: which bytes are legal text, and which text is a legal topic name.
//!
//! One rule for all strings of all packets: besides what the specification forbids (ill-formed
//! UTF-8, surrogates, U+0000) this module refuses what a sender should not send: the control
//! characters U+0001..U+001F and U+007F..U+009F, and the non-characters. They have no use in names
//! and garble terminals and logs. U+FEFF is ordinary text and is kept [MQTT-1.5.4-3].
//!
//! This is the only definition of a topic name in the workspace. It is here and not in `topic`
//! because decoding a PUBLISH checks text and wildcards in one pass over the bytes, and because
//! `topic`, which works on names that are checked already, would otherwise have to depend on the
//! codec or the codec on `topic` and its dependencies.

use std::fmt;

use crate::{DecodeError, ReasonCode};

const ILL_FORMED: DecodeError =
    DecodeError::malformed("a string is not well-formed UTF-8 [MQTT-1.5.4-1]");
const NUL: DecodeError = DecodeError::malformed("a string contains U+0000 [MQTT-1.5.4-2]");
const CONTROL: DecodeError =
    DecodeError::malformed("a string contains a control character or a non-character (1.5.4)");

/// True if `text` may be sent as an MQTT string: at most 65,535 bytes, no U+0000, no control
/// characters, no non-characters.
#[must_use]
pub fn is_valid_text(text: &str) -> bool {
    text.len() <= usize::from(u16::MAX) && decode(text.as_bytes()).is_ok()
}

/// Why a text is not a topic name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicNameError {
    /// A topic name has at least one character [MQTT-4.7.3-1].
    Empty,
    /// It contains U+0000 [MQTT-4.7.3-2], a control character or a non-character.
    ForbiddenCharacter,
    /// It has more than 65,535 bytes [MQTT-4.7.3-3].
    TooLong,
    /// It contains `+` or `#` [MQTT-4.7.0-1].
    Wildcard,
}

impl fmt::Display for TopicNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a topic name must not be empty",
            Self::ForbiddenCharacter => {
                "a topic name must not contain control characters or non-characters"
            }
            Self::TooLong => "a topic name must not exceed 65,535 bytes",
            Self::Wildcard => "a topic name must not contain the wildcards '+' and '#'",
        })
    }
}

impl std::error::Error for TopicNameError {}

/// Checks that messages may be published to `topic`: valid text of 1 to 65,535 bytes without `+`
/// and `#`.
///
/// # Errors
/// The violated rule.
pub fn check_topic_name(topic: &str) -> Result<(), TopicNameError> {
    if topic.is_empty() {
        return Err(TopicNameError::Empty);
    }
    if topic.len() > usize::from(u16::MAX) {
        return Err(TopicNameError::TooLong);
    }
    match decode_topic_name(topic.as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) if error.reason == ReasonCode::TOPIC_NAME_INVALID => {
            Err(TopicNameError::Wildcard)
        }
        Err(_) => Err(TopicNameError::ForbiddenCharacter),
    }
}

/// True if [`check_topic_name`] accepts `topic`.
#[must_use]
pub fn is_valid_topic_name(topic: &str) -> bool {
    check_topic_name(topic).is_ok()
}

/// Checks and borrows an MQTT string.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, DecodeError> {
    if scan(bytes).unusual == 0 { Ok(printable(bytes)) } else { decode_unusual(bytes) }
}

/// Checks and borrows a topic name, which may be empty here.
#[inline]
pub(crate) fn decode_topic_name(bytes: &[u8]) -> Result<&str, DecodeError> {
    let Scan { unusual, wildcard } = scan(bytes);
    if unusual | wildcard == 0 { Ok(printable(bytes)) } else { decode_unusual_topic_name(bytes) }
}

/// Borrows bytes in which [`scan`] found nothing unusual.
#[inline]
#[expect(unsafe_code, reason = "checking twice costs a third of decoding a PUBLISH")]
fn printable(bytes: &[u8]) -> &str {
    debug_assert!(bytes.iter().all(|byte| matches!(byte, 0x20..=0x7E)));
    // SAFETY: `scan` found every byte within 0x20..=0x7E, which is ASCII and therefore well-formed
    // UTF-8. Tests compare it with the plain rule for every byte at every position.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

#[cold]
fn decode_unusual(bytes: &[u8]) -> Result<&str, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ILL_FORMED)?;
    check_chars(text)?;
    Ok(text)
}

#[cold]
fn decode_unusual_topic_name(bytes: &[u8]) -> Result<&str, DecodeError> {
    let text = decode_unusual(bytes)?;
    if has_wildcard(text) {
        return Err(DecodeError::new(
            ReasonCode::TOPIC_NAME_INVALID,
            "a topic name contains a wildcard [MQTT-3.3.2-2]",
        ));
    }
    Ok(text)
}

/// True if the text contains `+` or `#`.
#[inline]
pub(crate) fn has_wildcard(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'+' | b'#'))
}

fn check_chars(text: &str) -> Result<(), DecodeError> {
    for character in text.chars() {
        match character {
            '\0' => return Err(NUL),
            '\u{1}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{FDD0}'..='\u{FDEF}' => {
                return Err(CONTROL);
            }
            // U+FFFE, U+FFFF and the last two of every plane.
            _ if character as u32 & 0xFFFE == 0xFFFE => return Err(CONTROL),
            _ => {}
        }
    }
    Ok(())
}

/// The findings of a pass over the bytes; zero means none.
#[derive(Clone, Copy)]
struct Scan {
    /// Non-zero if a byte is not printable ASCII: such text needs [`decode_unusual`].
    unusual: u64,
    /// Non-zero if a byte is `+` or `#`; exact only while `unusual` is zero.
    wildcard: u64,
}

/// Scans eight bytes at a time; the last word overlaps the one before.
#[inline]
fn scan(bytes: &[u8]) -> Scan {
    let mut unusual = 0;
    let mut wildcard = 0;
    let mut look = |word: u64| {
        unusual |= unusual_bytes(word);
        wildcard |= wildcard_bytes(word);
    };
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            look(u64::from_le_bytes(*word));
        }
        look(u64::from_le_bytes(*last));
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        look(u64::from(first) << 32 | u64::from(last));
    } else {
        let word = bytes.iter().fold(SPACES, |word, &byte| word << 8 | u64::from(byte));
        look(word);
    }
    Scan { unusual, wildcard }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x80 * ONES;
const SPACES: u64 = 0x20 * ONES;

/// Non-zero if a byte is below 0x20 or above 0x7E. Exact as a boolean: borrows and carries can
/// only mark further bytes beside one that is marked correctly.
#[inline]
const fn unusual_bytes(word: u64) -> u64 {
    (word | word.wrapping_add(ONES) | word.wrapping_sub(SPACES)) & HIGH_BITS
}

/// Non-zero if a byte is `+` or `#`, which differ only in the bit 0x08.
#[inline]
const fn wildcard_bytes(word: u64) -> u64 {
    let zero_if_wildcard = (word | (0x08 * ONES)) ^ (b'+' as u64 * ONES);
    zero_if_wildcard.wrapping_sub(ONES) & !zero_if_wildcard & HIGH_BITS
}
