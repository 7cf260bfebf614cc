//! What of a changed configuration takes effect when: every key is marked.

use super::Applies::{self, Live, Restart};
use super::{Limits, limits, listener, log};

/// The keys of a section.
enum SectionKeys {
    /// Each as it says; the list stands beside the definition of the keys.
    Each(&'static [(&'static str, Applies)]),
    /// All alike, with those of tables and lists in it.
    All(Applies),
}

use SectionKeys::{All, Each};

/// All sections; the first has the keys that are in none.
const SECTIONS: [(&str, SectionKeys); 11] = [
    ("", Each(&super::KEYS)),
    ("limits", Each(&limits::KEYS)),
    ("log", Each(&log::KEYS)),
    ("tls", Each(&listener::TLS_KEYS)),
    ("listeners", All(Live)),
    ("overload", All(Restart)),
    ("alarms", All(Restart)),
    ("access", All(Restart)),
    ("durability", All(Restart)),
    ("bridges", All(Restart)),
    ("management", All(Restart)),
];

/// When a change of this key takes effect, such as `limits.sessions_max` or
/// `listeners.0.address`.
pub(super) fn applies(key: &str) -> Applies {
    let (section, rest) = key.split_once('.').unwrap_or(("", key));
    let rest = rest.split('.').next().unwrap_or_default();
    let found = SECTIONS.iter().find(|(name, _)| *name == section);
    match found.map(|(_, keys)| keys) {
        Some(All(all)) => *all,
        Some(Each(keys)) => {
            keys.iter().find(|(name, _)| *name == rest).map_or(Restart, |(_, of)| *of)
        }
        None => Restart,
    }
}

impl Limits {
    /// These limits with the values of others that apply without a restart.
    pub(crate) fn changed_to(&self, other: &Self) -> Self {
        // Invariant: a test does this with limits of all kinds; what cannot be is no change.
        let table = |limits: &Self| toml::Table::try_from(limits).unwrap_or_default();
        let (mut changed, other) = (table(self), table(other));
        for (key, of) in limits::KEYS {
            if of != Restart
                && let Some(value) = other.get(key)
            {
                changed.insert(key.to_owned(), value.clone());
            }
        }
        changed.try_into().unwrap_or_else(|_| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Applies::NewConnections;
    use crate::config::RawConfig;

    /// The keys that may stand in a section, as the error for another one names them.
    fn known_keys(section: &str) -> BTreeSet<String> {
        let head = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        let error = toml::from_str::<RawConfig>(&format!("{head}no_such_key = 1\n"));
        let error = error.expect_err("there is no such key").message().to_owned();
        let (_, names) = error.split_once("expected one of ").expect("names them");
        names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
    }

    #[test]
    fn every_key_is_marked() {
        for (section, keys) in &SECTIONS {
            let Each(keys) = keys else { continue };
            let marked: BTreeSet<String> = keys.iter().map(|(key, _)| (*key).to_owned()).collect();
            assert_eq!(marked.len(), keys.len(), "[{section}] marks a key twice");
            let sections: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
            let mut known = known_keys(section);
            known.retain(|key| !section.is_empty() || !sections.contains(&&**key));
            assert_eq!(marked, known, "[{section}]");
        }
        for key in known_keys("") {
            let is_marked = super::super::KEYS.iter().any(|(name, _)| *name == key);
            assert!(is_marked || SECTIONS.iter().any(|(name, _)| *name == key), "{key}");
        }
    }

    #[test]
    fn limits_change_as_far_as_they_can() {
        let mut other = Limits { sessions_max: 7, inflight_max: 8, ..Limits::default() };
        (other.turn_us_max, other.queue_qos0_offline) = (500, true);
        other.shared_queue_full = crate::config::QueuePolicy::DropOldest;
        let old = Limits::default();
        let changed = old.changed_to(&other);
        assert_eq!((changed.sessions_max, changed.inflight_max), (7, 8));
        assert_eq!(changed.shared_queue_full, crate::config::QueuePolicy::DropOldest);
        assert!(changed.queue_qos0_offline);
        assert_eq!(changed.turn_us_max, old.turn_us_max, "at the next start");
        assert_eq!(changed.session_expiry_max_s, u32::MAX);
    }

    #[test]
    fn keys_in_lists_and_tables_are_found() {
        assert_eq!(applies("limits.sessions_max"), Live);
        assert_eq!(applies("limits.inflight_max"), NewConnections);
        assert_eq!(applies("listeners.3.address"), Live);
        assert_eq!(applies("log.levels.access"), Live);
        assert_eq!(applies("shards"), Restart);
        assert_eq!(applies("no.such.key"), Restart);
    }

    /// The document has the same: a row for each kind.
    #[test]
    fn the_document_says_when_each_key_applies() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/broker-configuration.md");
        let text = std::fs::read_to_string(path).expect("is there");
        let (_, table) =
            text.split_once("## Changing it while the broker runs").expect("a chapter");
        let mut wanted = Vec::new();
        for when in [Live, NewConnections, Restart] {
            let mut keys = Vec::new();
            for (section, marked) in &SECTIONS {
                match marked {
                    All(all) if *all == when => keys.push(format!("all of `[{section}]`")),
                    All(_) => {}
                    Each(marked) => {
                        let marked = marked.iter().filter(|(_, of)| *of == when);
                        keys.extend(marked.map(|(key, _)| match *section {
                            "" => format!("`{key}`"),
                            section => format!("`{section}.{key}`"),
                        }));
                    }
                }
            }
            wanted.push(format!("| {} | {} |\n", when.name(), keys.join(", ")));
        }
        for row in wanted {
            assert!(table.contains(&row), "this row is missing:\n{row}");
        }
    }
}
