//! Access lists in the format of mosquitto's `acl_file`, evaluated as mosquitto does.
//!
//! `topic` lines before the first `user` line are for clients without a user, those behind it for
//! that user; `pattern` lines are for all clients. Of each list the `deny` entries are asked before
//! the others; the client's own list is asked before the patterns, and the first hit decides. What
//! no entry allows is denied. Topics that start with `$` are matched only by entries that do.

use std::collections::HashMap;

use crate::covers::Rule;
use crate::decision::{Access, Cause, Decision};
use crate::file::FileError;
use crate::template::{Placeholder, Template, Who, is_plain};

/// As for users: far above what is written by hand.
const ENTRIES_MAX: usize = 1_000_000;

/// An access list.
#[derive(Clone, Debug, Default)]
pub struct Acl {
    anonymous: List,
    by_user: HashMap<Box<str>, List>,
    patterns: List,
    /// Names that patterns use.
    used: Vec<Placeholder>,
}

#[derive(Clone, Debug, Default)]
struct List {
    denies: Vec<Entry>,
    allows: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    template: Template,
    may: May,
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    Nothing,
    Read,
    Write,
    ReadWrite,
}

impl May {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "deny" => Self::Nothing,
            "read" => Self::Read,
            "write" => Self::Write,
            "readwrite" => Self::ReadWrite,
            _ => return None,
        })
    }

    const fn allows(self, access: Access) -> bool {
        match self {
            Self::Nothing => false,
            Self::Read => matches!(access, Access::Receive),
            Self::Write => matches!(access, Access::Publish(_)),
            Self::ReadWrite => true,
        }
    }
}

impl List {
    fn add(&mut self, entry: Entry) {
        match entry.may {
            May::Nothing => self.denies.push(entry),
            _ => self.allows.push(entry),
        }
    }

    fn len(&self) -> usize {
        self.denies.len() + self.allows.len()
    }

    /// The entries in the order in which they are asked about one access.
    fn asked(&self, access: Access) -> impl Iterator<Item = &Entry> {
        let allows = self.allows.iter().filter(move |entry| entry.may.allows(access));
        self.denies.iter().chain(allows)
    }

    fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Option<Decision> {
        let hit = self.asked(access).find(|entry| entry.template.matches(topic, who))?;
        Some(Decision { is_allowed: hit.may != May::Nothing, cause: Cause::Line(hit.line) })
    }
}

impl Acl {
    /// Parses the text of an access list; `path` is for errors.
    ///
    /// # Errors
    /// A line has an unknown keyword, no or a wrong filter, or no user name.
    pub fn parse(path: &str, text: &str) -> Result<Self, FileError> {
        let mut acl = Self::default();
        let mut user: Option<&str> = None;
        for (number, line) in (1_u32..).zip(text.lines()) {
            let fail = |what: String| Err(FileError::at(path, number as usize, what));
            if number as usize > ENTRIES_MAX {
                return fail(format!("there are more than {ENTRIES_MAX} lines"));
            }
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
            let parsed = match keyword {
                "user" => match rest.trim() {
                    "" => return fail("the name of the user is missing".to_owned()),
                    name => {
                        user = Some(name);
                        acl.by_user.entry(name.into()).or_default();
                        continue;
                    }
                },
                "topic" => entry(rest, number, Template::literal),
                "pattern" => entry(rest, number, Template::pattern),
                _ => {
                    return fail(format!(
                        "`{}` is unknown: a line begins with `user`, `topic`, `pattern` or `#`",
                        keyword.chars().take(32).collect::<String>().escape_debug()
                    ));
                }
            };
            let entry = match parsed {
                Ok(entry) => entry,
                Err(what) => return fail(what),
            };
            match (keyword, user) {
                ("pattern", _) => acl.add_pattern(entry),
                (_, None) => acl.anonymous.add(entry),
                (_, Some(user)) => acl.by_user.entry(user.into()).or_default().add(entry),
            }
        }
        Ok(acl)
    }

    fn add_pattern(&mut self, entry: Entry) {
        for name in Placeholder::ALL {
            if entry.template.names(name) && !self.used.contains(&name) {
                self.used.push(name);
            }
        }
        self.patterns.add(entry);
    }

    /// Whether it has entries for users by name.
    pub fn names_users(&self) -> bool {
        !self.by_user.is_empty() || self.used.contains(&Placeholder::User)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        let lists = self.by_user.values().chain([&self.anonymous, &self.patterns]);
        lists.map(List::len).sum()
    }

    /// Whether it has no entries, and so denies everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a client may publish to a topic or receive its messages.
    pub fn decide(&self, who: &Who<'_>, access: Access, topic: &str) -> Decision {
        if let Some(decision) = self.own(who).and_then(|list| list.decide(who, access, topic)) {
            return decision;
        }
        let denied = |cause| Decision { is_allowed: false, cause };
        if !self.may_use_patterns(who) {
            return denied(Cause::SpecialCharacters);
        }
        let decision = self.patterns.decide(who, access, topic);
        decision.unwrap_or_else(|| denied(Cause::NoEntry))
    }

    /// The rules about what a client may receive, in the order in which they are asked.
    pub(crate) fn asked(&self, who: &Who<'_>) -> impl Iterator<Item = Rule<'_>> {
        let entries = self.lists(who).flat_map(|list| list.asked(Access::Receive));
        entries.map(|entry| Rule { template: &entry.template, allows: entry.may != May::Nothing })
    }

    /// How many entries are for a client, whatever they are about.
    pub(crate) fn len_for(&self, who: &Who<'_>) -> usize {
        self.lists(who).map(List::len).sum()
    }

    fn lists(&self, who: &Who<'_>) -> impl Iterator<Item = &List> {
        let patterns = Some(&self.patterns).filter(|_| self.may_use_patterns(who));
        self.own(who).into_iter().chain(patterns)
    }

    fn own(&self, who: &Who<'_>) -> Option<&List> {
        match who.user {
            None => Some(&self.anonymous),
            Some(user) => self.by_user.get(user),
        }
    }

    /// A name that could be read as a wildcard or as several levels must not widen or escape what a
    /// pattern says (CVE-2017-7650).
    fn may_use_patterns(&self, who: &Who<'_>) -> bool {
        self.used.iter().all(|name| name.value(who).is_none_or(is_plain))
    }
}

/// `[read|write|readwrite|deny] filter`. Without an access word, the filter has no blanks.
fn entry<E: std::fmt::Display>(
    rest: &str,
    line: u32,
    template: impl Fn(&str) -> Result<Template, E>,
) -> Result<Entry, String> {
    let rest = rest.trim_start_matches(' ');
    let (may, filter) = match rest.split_once(' ') {
        None => (May::ReadWrite, rest),
        Some((word, filter)) => match May::parse(word) {
            Some(may) => (may, filter.trim()),
            None => {
                return Err(
                    "the access must be `read`, `write`, `readwrite` or `deny`; without it \
                            the filter must not contain blanks"
                        .to_owned(),
                );
            }
        },
    };
    if filter.is_empty() {
        return Err("the topic filter is missing".to_owned());
    }
    let template = template(filter).map_err(|error| error.to_string())?;
    Ok(Entry { template, may, line })
}

#[cfg(test)]
mod tests;
