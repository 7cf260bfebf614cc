//! Words of a private language, which documents, comments and messages must not use.

use std::collections::BTreeSet;

use super::Finding;

/// What is not written, and what is written instead.
const PHRASES: [(&str, &str); 14] = [
    ("anybody", "name the subject: a client, a shard, any caller"),
    ("everybody", "name the subjects: all clients, every shard"),
    ("nobody", "name the subject: no client, no shard"),
    ("somebody", "name the subject: a client, another thread"),
    ("whoever", "name the subject"),
    ("whom", "name the subject"),
    ("those who", "name the subjects: the clients that"),
    ("he who", "name the subject"),
    ("all who", "name the subjects: the clients that"),
    ("whose it is", "name the owner"),
    ("of now", "current"),
    ("of then", "say which moment is meant"),
    ("for good", "permanently, or until when"),
    ("deeds", "actions"),
];

/// Files that quote the words.
const QUOTING: [&str; 2] = ["xtask/src/tidy/words.rs", "xtask/src/tidy/tests.rs"];

/// Checks one text file. `name` is relative to the root.
pub(super) fn check(name: &str, text: &str, findings: &mut Vec<Finding>) {
    let is_prose = name.ends_with(".md") || name.ends_with(".rs") || name.ends_with(".ts");
    let is_recorded = name.starts_with("bench/runs/") || QUOTING.contains(&name);
    if !is_prose || is_recorded {
        return;
    }
    for (line, phrase, instead) in phrases(text) {
        findings.push(Finding::new(name, line, format!("\"{phrase}\": {instead}")));
    }
}

/// The phrases in a text with their lines, also where a comment breaks them into two lines.
fn phrases(text: &str) -> BTreeSet<(usize, &'static str, &'static str)> {
    let mut found = BTreeSet::new();
    let mut carried = "";
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim_start_matches([' ', '/', '!', '*', '#', '-']);
        let lower = line.to_lowercase();
        let joined = format!("{carried} {content}").to_lowercase();
        for (phrase, instead) in PHRASES {
            let is_broken = phrase.contains(' ') && has_phrase(&joined, phrase);
            if is_broken || has_phrase(&lower, phrase) {
                found.insert((number, phrase, instead));
            }
        }
        carried = line.rsplit([' ', '/']).next().unwrap_or_default();
    }
    found
}

/// True when the words stand in the line and no letter, digit or `_` continues them.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let continues = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(phrase).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + phrase.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(continues) && !after.is_some_and(continues)
    })
}
