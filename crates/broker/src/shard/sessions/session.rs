//! A session as its shard keeps it: the protocol machine and what surrounds it.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tacho_codec::{Publish, Version};
use tacho_net::{ConnId, TimerId};

use crate::keys::ClientKey;
use crate::message::Source;

use crate::shard::admission::{BudgetHold, Inflow};
use crate::shard::durability::{Confirmations, JournaledSession, Machine, Subject};
use crate::shard::groups::{FormerGroups, Membership};
use crate::shard::retained::Replays;
use crate::shard::routing::Subscription;

/// One session, connected or not. Boxed, so that an idle one costs no more than it is.
pub(in crate::shard) struct Session {
    pub(in crate::shard) generation: u32,
    pub(in crate::shard) key: ClientKey,
    pub(in crate::shard) machine: Machine,
    pub(in crate::shard) connection: Option<ConnId>,
    pub(in crate::shard) version: Version,
    /// Who its publishes come from.
    pub(in crate::shard) source: Source,
    /// The client's Maximum Packet Size; `u32::MAX` when it named none.
    pub(in crate::shard) packet_size_max: u32,
    /// The client named a Maximum Packet Size or takes topic aliases, or it is a bridge's other
    /// broker: what goes to it is looked at one by one.
    pub(in crate::shard) fits_each_publish: bool,
    /// The client wants no reason strings and user properties on answers [MQTT-3.1.2-29].
    pub(in crate::shard) no_problem_information: bool,
    /// Messages expired in the machine's keeping that the shard has counted.
    pub(in crate::shard) expired_counted: u64,
    /// How much of an unfinished packet has counted as a sign of life.
    pub(in crate::shard) partial_len: u32,
    /// Every filter as subscribed; their text is shared with the indexes.
    pub(in crate::shard) subscriptions: HashSet<Subscription, RandomState>,
    /// Its places in shared subscriptions.
    pub(in crate::shard) memberships: Vec<Membership>,
    /// Present once it has left a shared subscription with messages in hand.
    pub(in crate::shard) former_groups: Option<Box<FormerGroups>>,
    pub(in crate::shard) timer: Option<(TimerId, u64)>,
    /// A PINGREQ came while the output was full: one PINGRESP follows once it is not.
    pub(in crate::shard) owes_pingresp: bool,
    /// Present while retained messages are being replayed.
    pub(in crate::shard) replays: Option<Box<Replays>>,
    /// Places of messages as the shard's ledger has them.
    pub(in crate::shard) places_counted: u32,
    /// Its client is another broker's bridge (3.1.1).
    pub(in crate::shard) is_bridge_client: bool,
    /// Its number among the shard's links of bridges, if it is one.
    pub(in crate::shard) link: Option<u16>,
    /// Present once the client was slow or was held back.
    pub(in crate::shard) pressure: Option<Box<Pressure>>,
    /// Its place in the journal, if it is durable.
    pub(in crate::shard) journaled: Option<JournaledSession>,
    /// Which of the shard's lent places are its own, once it had some: never if it is durable.
    pub(in crate::shard) hand_offs: Option<u32>,
    /// Present while its client waits for a commit.
    pub(in crate::shard) confirmations: Option<Box<Confirmations>>,
    /// Messages in its queue and window that are not in memory.
    pub(in crate::shard) stored: u32,
    /// Some of them have been asked for.
    pub(in crate::shard) is_loading: bool,
}

/// What is known of a client that is or was slow, or sends much while others are behind.
#[derive(Debug, Default)]
pub(in crate::shard) struct Pressure {
    pub(in crate::shard) inflow: Inflow,
    pub(in crate::shard) held: BudgetHold,
    /// Since when its output is above its limit.
    pub(in crate::shard) blocked_since_ns: Option<u64>,
    /// QoS 0 messages it did not get because the shard sheds load.
    pub(in crate::shard) shed: u64,
}

impl Session {
    /// What an action on the session needs to know of it.
    #[inline]
    pub(in crate::shard) fn subject(&mut self) -> Subject<'_> {
        Subject {
            machine: &mut self.machine,
            journaled: self.journaled.as_ref(),
            hand_offs: self.hand_offs,
            is_connected: self.connection.is_some(),
            generation: self.generation,
        }
    }

    /// Whether the session goes on when its client connects: being taken over ends one that lasts
    /// no longer than its connection.
    pub(in crate::shard) fn is_resumable(&self) -> bool {
        self.machine.exists() && (self.connection.is_none() || self.machine.expiry_s() > 0)
    }

    /// Messages to the client that were dropped, for whatever reason.
    pub(in crate::shard) fn dropped_total(&self) -> u64 {
        let shed = self.pressure.as_ref().map_or(0, |pressure| pressure.shed);
        self.machine.counters().dropped_total() + shed
    }

    /// For how long the client's output has been above its limit; 0 while it is not.
    pub(in crate::shard) fn blocked_ms(&self, now_ns: u64) -> u64 {
        let since_ns = self.pressure.as_ref().and_then(|pressure| pressure.blocked_since_ns);
        since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns) / 1_000_000)
    }

    /// Whether the packet is within the client's Maximum Packet Size [MQTT-3.1.2-24].
    pub(in crate::shard) fn takes(&self, publish: &Publish<'_>) -> bool {
        self.packet_size_max == u32::MAX
            || publish
                .encoded_len(self.version)
                .is_ok_and(|len| len <= self.packet_size_max as usize)
    }
}
