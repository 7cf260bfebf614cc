//! Findings, counted by kind; the first ones with a text.

use std::collections::BTreeMap;

/// Findings that are kept as texts.
const TEXTS_MAX: usize = 20;

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// An acknowledged message did not arrive.
    Lost,
    /// A message arrived more often than its QoS allows.
    Twice,
    /// A message arrived after a later one of the same publisher to the same topic.
    Disorder,
    /// A message arrived altered.
    Damaged,
    /// A message arrived without a subscription.
    Unasked,
    /// A publish was refused.
    Refused,
    /// A session was lost.
    Session,
    /// The retained message is not the one acknowledged last.
    Retained,
    /// A will was published twice, not at all, or after its deletion.
    Will,
    /// The broker ended by itself, did not start, or broke the protocol.
    Broker,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    counts: BTreeMap<Kind, u64>,
    texts: Vec<String>,
    /// The disk fails now and then: what is refused breaks no promise.
    pub(crate) may_refuse: bool,
}

impl Findings {
    pub(crate) fn add(&mut self, kind: Kind, text: String) {
        if kind == Kind::Refused && self.may_refuse {
            return;
        }
        *self.counts.entry(kind).or_default() += 1;
        if self.texts.len() < TEXTS_MAX {
            self.texts.push(format!("{kind:?}: {text}"));
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}
