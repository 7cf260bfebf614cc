//! What the program says about wrong settings and requests, as data: a code, the values in the
//! sentence, and the sentence in Chinese.
//!
//! These sentences arise in all crates and in English, as terminals show them. The phrase book has
//! each of them under a code that stays when its words change: `en.txt` with names for the values,
//! `zh.txt` the same in Chinese. A test reads the sources for sentences that the book lacks.

mod book;
mod pattern;

use std::collections::BTreeMap;

use book::book;

/// A longer message is none of ours.
const MESSAGE_BYTES_MAX: usize = 4_000;
/// Sentences of one message.
const SENTENCES_MAX: usize = 32;
/// Sentences within sentences.
const DEPTH_MAX: usize = 4;
/// What stands between two sentences, in English and Chinese.
const BETWEEN: (&str, &str) = ("; ", "；");
/// Values that are sentences or words of the program; all others are names, numbers and texts of
/// the user, or of other programs.
const SAID: [&str; 13] = [
    "below", "example", "expected", "help", "kind", "lacks", "needs", "origin", "rates", "remedy",
    "run", "what", "why",
];

/// A message as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Says what it is about, such as `variable.unknown`; of several sentences the first.
    pub code: &'static str,
    /// The values in that sentence by their names, as they stand in the message.
    pub values: BTreeMap<&'static str, String>,
    /// The whole message in Chinese.
    pub zh: String,
}

/// What a message of the program says; `None` where it is one of another program.
pub fn said(message: &str) -> Option<Said> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    // The terminal's lines are of no use elsewhere.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    sentences(message.strip_prefix("error: ").unwrap_or(&message), 0)
}

/// One sentence or several, perhaps behind the place that they are about.
fn sentences(text: &str, depth: usize) -> Option<Said> {
    let whole = sentence(text, depth);
    // A value with the end of a sentence in it has swallowed the next one, if that is known.
    let is_one = |told: &Said| !told.values.values().any(|value| value.contains(BETWEEN.0));
    if whole.as_ref().is_some_and(is_one) {
        return whole;
    }
    several(text, depth).or(whole)
}

fn several(text: &str, depth: usize) -> Option<Said> {
    if let Some((place, rest)) = place(text) {
        let told = sentences(rest, depth)?;
        return Some(Said { zh: format!("{place}：{}", told.zh), ..told });
    }
    let (en, zh) = BETWEEN;
    let ends = text.match_indices(en).take(SENTENCES_MAX);
    let (first, rest) = ends.into_iter().find_map(|(end, _)| {
        let (first, rest) = (text.get(..end)?, text.get(end + en.len()..)?);
        Some((sentence(first, depth)?, rest))
    })?;
    // Each call has less to read: at most as many as there are sentences.
    let rest = sentences(rest, depth)?;
    Some(Said { zh: format!("{}{zh}{}", first.zh, rest.zh), ..first })
}

/// `FILE:LINE:COLUMN: ` or `FILE: ` before a sentence.
fn place(text: &str) -> Option<(&str, &str)> {
    let (place, rest) = text.split_once(": ")?;
    let is_place = !place.contains(' ')
        && (place.contains('.') || place.ends_with(|c: char| c.is_ascii_digit()));
    is_place.then_some((place, rest))
}

fn sentence(text: &str, depth: usize) -> Option<Said> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let (phrase, values) = book().find(text)?;
    let in_chinese = |name: &str, value: &str| {
        let said = SAID.contains(&name).then(|| sentences(value, depth + 1)).flatten();
        said.map_or_else(|| value.to_owned(), |said| said.zh)
    };
    let zh = phrase.zh.as_ref()?.filled(|name| {
        let value = values.iter().find(|(known, _)| *known == name);
        value.map(|(name, value)| in_chinese(name, value)).unwrap_or_default()
    });
    let values = values.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    Some(Said { code: phrase.code, values, zh })
}

#[cfg(test)]
mod tests;
