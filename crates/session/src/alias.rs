//! Topic aliases of one connection, both directions (MQTT 5.0, 3.3.2.3.4).

use std::num::NonZeroU16;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::ReasonCode;

use crate::ProtocolError;

/// A shorter topic gains too little to spend an alias on.
const TOPIC_LEN_MIN: usize = 5;

/// How to send a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasOut {
    /// The topic, no alias.
    None,
    /// An empty topic and this alias, which the peer knows.
    Use(NonZeroU16),
    /// The topic and this alias, which the peer learns.
    Define(NonZeroU16),
}

/// The aliases that the peer defined.
#[derive(Debug, Default)]
pub(crate) struct AliasesIn {
    topics: Vec<Option<Arc<str>>>,
    alias_max: u16,
}

impl AliasesIn {
    /// Starts a connection on which the peer may use aliases up to `alias_max`.
    pub(crate) fn reset(&mut self, alias_max: u16) {
        self.topics = Vec::new();
        self.alias_max = alias_max;
    }

    /// The topic that stands behind `topic` and `alias` of a PUBLISH; `None` is `topic` itself.
    #[inline]
    pub(crate) fn resolve(
        &mut self,
        topic: &str,
        alias: Option<NonZeroU16>,
    ) -> Result<Option<Arc<str>>, ProtocolError> {
        match alias {
            None if topic.is_empty() => Err(ProtocolError::new(
                ReasonCode::PROTOCOL_ERROR,
                "a PUBLISH has neither topic nor topic alias",
            )),
            None => Ok(None),
            Some(alias) => self.resolve_alias(topic, alias),
        }
    }

    fn resolve_alias(
        &mut self,
        topic: &str,
        alias: NonZeroU16,
    ) -> Result<Option<Arc<str>>, ProtocolError> {
        if alias.get() > self.alias_max {
            return Err(ProtocolError::new(
                ReasonCode::TOPIC_ALIAS_INVALID,
                "a topic alias is above the Topic Alias Maximum",
            ));
        }
        let index = usize::from(alias.get()) - 1;
        if topic.is_empty() {
            return match self.topics.get(index) {
                Some(Some(known)) => Ok(Some(Arc::clone(known))),
                _ => Err(ProtocolError::new(
                    ReasonCode::PROTOCOL_ERROR,
                    "a topic alias is used before it was defined",
                )),
            };
        }
        if index >= self.topics.len() {
            self.topics.resize(index + 1, None);
        }
        // Redefining an alias with its own topic is common and costs no allocation.
        if self.topics[index].as_deref() != Some(topic) {
            self.topics[index] = Some(Arc::from(topic));
        }
        Ok(None)
    }
}

/// The aliases that the peer learnt from us. Second-chance replacement, so that more topics than
/// aliases do not redefine one with every message.
#[derive(Debug, Default)]
pub(crate) struct AliasesOut {
    table: Option<Box<Table>>,
    alias_max: u16,
}

#[derive(Debug, Default)]
struct Table {
    by_topic: HashMap<Arc<str>, u16, RandomState>,
    /// The topic of alias `index + 1`, and whether it was used since the hand passed.
    entries: Vec<(Arc<str>, bool)>,
    hand: usize,
}

impl AliasesOut {
    /// Starts a connection on which we may use aliases up to `alias_max`.
    pub(crate) fn reset(&mut self, alias_max: u16) {
        self.table = None;
        self.alias_max = alias_max;
    }

    /// Call it only for a PUBLISH that is certainly written.
    #[inline]
    pub(crate) fn assign(&mut self, topic: &str) -> AliasOut {
        if self.alias_max == 0 || topic.len() < TOPIC_LEN_MIN {
            return AliasOut::None;
        }
        self.table.get_or_insert_default().assign(topic, usize::from(self.alias_max))
    }
}

impl Table {
    fn assign(&mut self, topic: &str, alias_max: usize) -> AliasOut {
        if let Some(&index) = self.by_topic.get(topic) {
            self.entries[usize::from(index)].1 = true;
            return alias(index).map_or(AliasOut::None, AliasOut::Use);
        }
        let index = if self.entries.len() < alias_max {
            self.entries.push((Arc::from(topic), true));
            self.entries.len() - 1
        } else {
            let index = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            let (held, used) = &mut self.entries[index];
            if std::mem::replace(used, false) {
                return AliasOut::None;
            }
            self.by_topic.remove(&**held);
            *held = Arc::from(topic);
            *used = true;
            index
        };
        // Invariant: index < alias_max <= 65,535.
        let index = u16::try_from(index).unwrap_or(u16::MAX - 1);
        self.by_topic.insert(Arc::clone(&self.entries[usize::from(index)].0), index);
        alias(index).map_or(AliasOut::None, AliasOut::Define)
    }
}

fn alias(index: u16) -> Option<NonZeroU16> {
    NonZeroU16::new(index + 1)
}
