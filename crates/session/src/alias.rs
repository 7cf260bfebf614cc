//! Topic aliases of one connection, both directions (MQTT 5.0, 3.3.2.3.4).

use std::hash::BuildHasher;
use std::num::NonZeroU16;
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashTable;
use tacho_codec::ReasonCode;

use crate::ProtocolError;
use crate::on_demand::OnDemand;

/// The shortest topic that gets an alias: defining it costs 3 bytes, each use saves the length of
/// the topic minus 3.
const TOPIC_LEN_MIN: usize = 5;
/// The longest topic that gets an alias, to limit the memory of the table.
const TOPIC_LEN_MAX: usize = 1024;
/// The number of rejected topics that the table remembers before it starts over.
const REJECTED_MAX: u32 = 32;

/// How to send a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasOut {
    /// The topic without an alias.
    None,
    /// An empty topic and this alias, which the peer knows.
    Use(NonZeroU16),
    /// The topic and this alias, which the peer is to remember.
    Define(NonZeroU16),
}

/// The aliases that the peer defined.
#[derive(Debug)]
pub(crate) struct AliasesIn {
    defined: OnDemand<Defined>,
    /// The largest possible number of topics of the largest possible length have fewer bytes than
    /// `u32::MAX`.
    bytes_max: u32,
    alias_max: u16,
}

#[derive(Debug, Default)]
struct Defined {
    topics: Vec<Option<Arc<str>>>,
    /// The total length of the topics.
    bytes: usize,
}

impl Default for AliasesIn {
    fn default() -> Self {
        Self { defined: OnDemand::new(), bytes_max: u32::MAX, alias_max: 0 }
    }
}

impl AliasesIn {
    /// Starts a connection on which the peer may use aliases up to `alias_max`
    /// [MQTT-3.3.2-12]; those of the previous connection are dropped [MQTT-3.3.2-7].
    pub(crate) fn reset(&mut self, alias_max: u16) {
        self.defined.clear();
        self.alias_max = alias_max;
    }

    /// Limits the total length of the topics that the peer's aliases refer to.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
    }

    /// The topic that `topic` and `alias` of a PUBLISH refer to; `None` is `topic` itself.
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
                "a topic alias is above the Topic Alias Maximum [MQTT-3.3.2-9]",
            ));
        }
        let index = usize::from(alias.get()) - 1;
        if topic.is_empty() {
            return match self.defined.get().and_then(|defined| defined.topics.get(index)) {
                Some(Some(known)) => Ok(Some(Arc::clone(known))),
                _ => Err(ProtocolError::new(
                    ReasonCode::PROTOCOL_ERROR,
                    "a topic alias is used before it is defined",
                )),
            };
        }
        let (bytes_max, defined) = (self.bytes_max as usize, self.defined.get_or_default());
        if index >= defined.topics.len() {
            defined.topics.resize(index + 1, None);
        }
        // Redefining an alias with its own topic is common and costs no allocation.
        if defined.topics[index].as_deref() != Some(topic) {
            let before = defined.topics[index].as_ref().map_or(0, |topic| topic.len());
            let bytes = defined.bytes - before + topic.len();
            if bytes > bytes_max {
                return Err(ProtocolError::new(
                    ReasonCode::QUOTA_EXCEEDED,
                    "the topics of all aliases exceed their size limit",
                ));
            }
            defined.bytes = bytes;
            defined.topics[index] = Some(Arc::from(topic));
        }
        Ok(None)
    }
}

/// The aliases that this side defined.
///
/// The first topics get them. Once all are in use, a topic replaces one that was not used since the
/// hand last passed it (second chance), but only if the topic was requested twice recently. So
/// neither a number of topics above the number of aliases nor topics that occur once redefine an
/// alias with every message.
#[derive(Debug, Default)]
pub(crate) struct AliasesOut {
    table: Option<Box<Table>>,
    alias_max: u16,
}

#[derive(Debug, Default)]
struct Table {
    /// Indexes of `entries` by the hash of their topics.
    by_topic: HashTable<u16>,
    /// The topic of alias `index + 1`.
    entries: Vec<Entry>,
    hand: usize,
    hasher: RandomState,
    /// Bit set of the hashes, mod 64, of topics that were recently rejected.
    rejected: u64,
    rejected_len: u32,
}

#[derive(Debug)]
struct Entry {
    topic: Arc<str>,
    hash: u64,
    /// Whether it was used since the hand passed.
    used: bool,
}

impl AliasesOut {
    /// Starts a connection on which aliases up to `alias_max` may be used. Those of the previous
    /// connection are dropped [MQTT-3.3.2-7].
    pub(crate) fn reset(&mut self, alias_max: u16) {
        self.table = None;
        self.alias_max = alias_max;
    }

    /// How to send `topic`. `Define` is a proposal without effect until `define` is called for it.
    #[inline]
    pub(crate) fn plan(&mut self, topic: &str) -> AliasOut {
        if self.alias_max == 0 || topic.len() < TOPIC_LEN_MIN || topic.len() > TOPIC_LEN_MAX {
            return AliasOut::None; // [MQTT-3.1.2-27]
        }
        self.table.get_or_insert_default().plan(topic, usize::from(self.alias_max))
    }

    /// Records the `alias` of the last `plan`; the packet that defines it is certainly written.
    pub(crate) fn define(&mut self, alias: NonZeroU16, topic: &Arc<str>) {
        if let Some(table) = &mut self.table {
            table.define(alias, topic);
        }
    }
}

impl Table {
    fn plan(&mut self, topic: &str, alias_max: usize) -> AliasOut {
        let hash = self.hasher.hash_one(topic);
        let is_topic = |&index: &u16| &*self.entries[usize::from(index)].topic == topic;
        if let Some(&index) = self.by_topic.find(hash, is_topic) {
            self.entries[usize::from(index)].used = true;
            return alias(index).map_or(AliasOut::None, AliasOut::Use);
        }
        let index = if self.entries.len() < alias_max {
            self.entries.len()
        } else if self.was_rejected(topic) {
            let index = self.hand;
            if std::mem::replace(&mut self.entries[index].used, false) {
                self.hand = (self.hand + 1) % self.entries.len();
                return AliasOut::None;
            }
            index
        } else {
            return AliasOut::None;
        };
        // Invariant: index < alias_max <= 65,535, so the alias is not above the peer's maximum
        // [MQTT-3.3.2-11].
        u16::try_from(index).ok().and_then(alias).map_or(AliasOut::None, AliasOut::Define)
    }

    /// Whether the topic was rejected recently; if not, it is recorded as rejected.
    fn was_rejected(&mut self, topic: &str) -> bool {
        // Not by the seed of the table: whose bits collide does not differ from run to run.
        let bit = 1 << (FixedState::default().hash_one(topic) % 64);
        if self.rejected & bit != 0 {
            return true;
        }
        if self.rejected_len >= REJECTED_MAX {
            (self.rejected, self.rejected_len) = (0, 0);
        }
        self.rejected |= bit;
        self.rejected_len += 1;
        false
    }

    fn define(&mut self, alias: NonZeroU16, topic: &Arc<str>) {
        let index = usize::from(alias.get() - 1);
        let hash = self.hasher.hash_one(&**topic);
        let entry = Entry { topic: Arc::clone(topic), hash, used: true };
        if index == self.entries.len() {
            self.entries.push(entry);
        } else if let Some(held) = self.entries.get_mut(index) {
            let held = std::mem::replace(held, entry);
            let is_held = |&other: &u16| usize::from(other) == index;
            if let Ok(found) = self.by_topic.find_entry(held.hash, is_held) {
                found.remove();
            }
            self.hand = (index + 1) % self.entries.len();
        }
        let entries = &self.entries;
        self.by_topic.insert_unique(hash, alias.get() - 1, |&i| entries[usize::from(i)].hash);
    }
}

fn alias(index: u16) -> Option<NonZeroU16> {
    NonZeroU16::new(index.checked_add(1)?)
}
