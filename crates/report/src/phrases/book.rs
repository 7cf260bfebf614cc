//! The phrase book: all sentences with their codes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::pattern::{Pattern, Values};

const ENGLISH: &str = include_str!("en.txt");
const CHINESE: &str = include_str!("zh.txt");

/// A sentence in both languages.
#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) code: &'static str,
    pub(super) en: Pattern,
    /// Absent where it was forgotten, which a test finds.
    pub(super) zh: Option<Pattern>,
}

/// All sentences, the most particular first.
#[derive(Debug)]
pub(super) struct PhraseBook {
    phrases: Vec<Phrase>,
}

/// The book of the program.
pub(super) fn book() -> &'static PhraseBook {
    static BOOK: OnceLock<PhraseBook> = OnceLock::new();
    BOOK.get_or_init(|| PhraseBook::new(ENGLISH, CHINESE))
}

/// The codes and sentences of a file.
pub(super) fn entries(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = "))
}

impl PhraseBook {
    fn new(english: &'static str, chinese: &'static str) -> Self {
        let mut chinese: BTreeMap<_, _> = entries(chinese).collect();
        let phrase = |(code, text)| Phrase {
            code,
            en: Pattern::new(text),
            zh: chinese.remove(code).map(Pattern::new),
        };
        let mut phrases: Vec<Phrase> = entries(english).map(phrase).collect();
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.en.fixed_bytes()));
        Self { phrases }
    }

    /// The sentence that `text` is, with its values.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<(&Phrase, Values<'t>)> {
        self.phrases.iter().find_map(|phrase| Some((phrase, phrase.en.values(text)?)))
    }

    #[cfg(test)]
    pub(super) fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }
}

#[cfg(test)]
pub(super) const FILES: [&str; 2] = [ENGLISH, CHINESE];
