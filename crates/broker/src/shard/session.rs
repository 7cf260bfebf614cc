//! A session as its shard keeps it: the protocol machine and what surrounds it.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tacho_codec::{Publish, Version};
use tacho_net::{ConnId, TimerId};
use tacho_session::server;
use tacho_topic::Filter;

use crate::keys::ClientKey;
use crate::message::Source;

use super::budget::Held;
use super::committing::Promises;
use super::keeping::Kept;
use super::overload::Inflow;
use super::retained::Replays;
use super::shared::{LeftGroups, Membership};

pub(crate) use crate::delivery::{Body, Copy, GroupRef, NO_GROUP};

/// One session, connected or not. Boxed, so that an idle one costs no more than it is.
pub(crate) struct Session {
    pub(crate) generation: u32,
    pub(crate) key: ClientKey,
    pub(crate) machine: server::Session<Copy>,
    pub(crate) connection: Option<ConnId>,
    pub(crate) version: Version,
    /// Who its publishes come from.
    pub(crate) source: Source,
    /// The client's Maximum Packet Size; `u32::MAX` when it named none.
    pub(crate) packet_size_max: u32,
    /// The client named a Maximum Packet Size or takes topic aliases, or it is a bridge's other
    /// broker: what goes to it is looked at one by one.
    pub(crate) is_particular: bool,
    /// The client wants no reason strings and user properties on answers [MQTT-3.1.2-29].
    pub(crate) no_problem_information: bool,
    /// Messages expired in the machine's keeping that the shard has counted.
    pub(crate) expired_counted: u64,
    /// How much of an unfinished packet has counted as a sign of life.
    pub(crate) partial_len: u32,
    /// Every filter as subscribed; their text is shared with the indexes.
    pub(crate) subscriptions: HashSet<Filter, RandomState>,
    /// Its places in shared subscriptions.
    pub(crate) memberships: Vec<Membership>,
    /// Present once it has left a shared subscription with messages in hand.
    pub(crate) left_groups: Option<Box<LeftGroups>>,
    pub(crate) timer: Option<(TimerId, u64)>,
    /// A PINGREQ came while the output was full: one PINGRESP follows once it is not.
    pub(crate) owes_pingresp: bool,
    /// Present while retained messages are being replayed.
    pub(crate) replays: Option<Box<Replays>>,
    /// Places of messages as the shard's ledger has them.
    pub(crate) places_counted: u32,
    /// Its client is another broker's bridge (3.1.1).
    pub(crate) is_kin: bool,
    /// Its number among the shard's members of bridges, if it is one.
    pub(crate) member: Option<u16>,
    /// Present once the client was slow or was held back.
    pub(crate) pressure: Option<Box<Pressure>>,
    /// Its place in the journal, if it is durable.
    pub(crate) kept: Option<Kept>,
    /// Which of the shard's lent places are its own, once it had some: never if it is durable.
    pub(crate) lent: Option<u32>,
    /// Present while its client waits for a commit.
    pub(crate) promises: Option<Box<Promises>>,
    /// Messages in its queue and window that are not in memory.
    pub(crate) stored: u32,
    /// Some of them have been asked for.
    pub(crate) is_loading: bool,
}

/// What is known of a client that is or was slow, or sends much while others are behind.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    pub(crate) inflow: Inflow,
    pub(crate) held: Held,
    /// Since when its output is above its limit.
    pub(crate) blocked_since_ns: Option<u64>,
    /// QoS 0 messages it did not get because the shard sheds load.
    pub(crate) shed: u64,
}

impl Session {
    /// Whether the packet is within the client's Maximum Packet Size [MQTT-3.1.2-24].
    pub(crate) fn takes(&self, publish: &Publish<'_>) -> bool {
        self.packet_size_max == u32::MAX
            || publish
                .encoded_len(self.version)
                .is_ok_and(|len| len <= self.packet_size_max as usize)
    }
}
