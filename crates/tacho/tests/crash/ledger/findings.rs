//! Broken promises, counted by kind, the first ones in words.

use std::collections::BTreeMap;

/// Findings that are kept in words.
const TOLD_MAX: usize = 20;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// An acknowledged message did not come.
    Lost,
    /// A message came more often than its QoS allows.
    Twice,
    /// A message came after a later one of the same publisher to the same topic.
    Disorder,
    /// A message is not as it was sent.
    Damaged,
    /// A message came without a subscription.
    Unasked,
    /// A publish was refused.
    Refused,
    /// A session was gone.
    Session,
    /// Another message is retained than was acknowledged last.
    Retained,
    /// A will was not published, twice, or in spite of its deletion.
    Will,
    /// The broker ended by itself, did not start, or broke the protocol.
    Broker,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    counts: BTreeMap<Kind, u64>,
    told: Vec<String>,
}

impl Findings {
    pub(crate) fn add(&mut self, kind: Kind, text: String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(format!("{kind:?}: {text}"));
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn told(&self) -> &[String] {
        &self.told
    }
}
