//! Bridges in the data plane: connections that this shard opens to remote brokers.
//!
//! Each link of a bridge's pool is an ordinary session with an outgoing connection: its queue is
//! the bridge's buffer, its packet identifiers are those towards the remote broker, and with a data
//! directory it is durable. Routing sends a topic always to the same link of each bridge
//! (`routing::destinations`), so that order holds with any number of links.
//!
//! [`modes`] does what operators want of bridges, [`links`] creates and ends links, [`dial`] opens
//! connections and handles their loss, [`greet`] handles CONNECT and CONNACK, [`subscribe`]
//! SUBSCRIBE and UNSUBSCRIBE, [`egress`] sends messages to the remote broker, [`ingress`] receives
//! messages from it.

mod dial;
mod egress;
mod greet;
mod ingress;
mod links;
mod modes;
mod subscribe;

use std::sync::Arc;

use tacho_codec::{PacketId, QoS};
use tacho_net::{ConnId, TimerId};
use tacho_session::{DropReason, Link};

use crate::bridge::Bridges;
use crate::keys::{LinkIndex, SessionSlot};
use crate::shard::Shard;
use crate::shard::last_told::LastTold;

/// The bridge links of a shard.
pub(super) struct BridgeLinks {
    /// All bridges, as this shard knows them.
    known: Arc<Bridges>,
    all: Vec<BridgeLink>,
    /// Sessions of surplus links, which the configuration no longer contains.
    orphans: Vec<SessionSlot>,
    /// Reused buffer for expanded templates.
    topic: String,
    payload: Vec<u8>,
}

/// One connection of a bridge.
struct BridgeLink {
    /// The index of its bridge.
    bridge: usize,
    /// Its number in the bridge's pool.
    number: u16,
    slot: SessionSlot,
    protocol: Link,
    timer: Option<TimerId>,
    conn: Option<ConnId>,
    stage: Stage,
    /// The known state of the remote session.
    peer: PeerSession,
    introduction: Introduction,
    tenure: Tenure,
    /// An operator wants no connection.
    rests: bool,
    attempts: u32,
    subscribing: Asking,
    /// The remote session may have subscriptions of an earlier configuration whose rules other
    /// links have now: they must be removed.
    unsubscribing: Asking,
    /// When the log last told of a message that the remote broker refused.
    told_refusal: LastTold,
    /// When the log last told of a message that circulates.
    told_loop: LastTold,
    granted: Granted,
    /// Bytes in the queue that are counted in the bridge's total.
    held_bytes: u64,
}

/// The known state of the remote broker's session for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerSession {
    /// It may have a session from an earlier start of this broker.
    Unknown,
    /// It has a stale session; the next CONNECT asks for a clean start.
    ToBeForgotten,
    /// It has the session that this broker expects.
    Known,
    /// The same, and a connection of this life of the broker has used it.
    Used,
}

/// How CONNECT introduces a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Introduction {
    Client,
    /// With the bit of bridges (3.1.1).
    Bridge,
}

/// How long a link stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenure {
    /// It is in the configuration.
    Configured,
    /// It is not: the link ends once its queue is empty.
    Leaving,
}

/// What the other broker granted in its last CONNACK.
#[derive(Clone, Copy, Debug)]
struct Granted {
    /// The highest QoS that it accepts.
    qos_max: QoS,
    /// It keeps retained messages.
    retain: bool,
}

impl Granted {
    const ALL: Self = Self { qos_max: QoS::ExactlyOnce, retain: true };
}

/// The phase of a link's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not connected.
    Disconnected,
    /// The TCP connection is being opened.
    Opening,
    /// CONNECT was sent, with or without a clean start.
    Greeting { clean: bool },
    /// CONNACK was received.
    Up,
}

/// The progress of subscribing or unsubscribing at the remote broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// Complete, or not needed.
    Done,
    /// The packet is sent as soon as an identifier is free.
    Wanted,
    /// SUBACK or UNSUBACK is outstanding.
    Awaited(PacketId),
}

impl BridgeLinks {
    pub(super) fn new(known: Arc<Bridges>) -> Self {
        let (all, orphans) = (Vec::new(), Vec::new());
        Self { known, all, orphans, topic: String::new(), payload: Vec::new() }
    }

    /// All bridges, as this shard knows them.
    pub(super) const fn known(&self) -> &Arc<Bridges> {
        &self.known
    }

    /// The links whose sessions this shard owns.
    pub(super) fn len(&self) -> usize {
        let with_session = self.all.iter().filter(|link| link.slot != SessionSlot::NONE);
        with_session.count() + self.orphans.len()
    }

    /// All links that are no orphans.
    fn indexes(&self) -> impl Iterator<Item = LinkIndex> + use<> {
        (0..self.all.len() as u16).map(LinkIndex::new)
    }
}

impl Shard {
    /// The session of a link, if it still has one.
    pub(super) fn session_of_link(&self, link: LinkIndex) -> Option<SessionSlot> {
        self.bridges.all.get(link.index()).map(|link| link.slot)
    }

    /// Updates the metrics of a link.
    fn report_link(&mut self, link: LinkIndex) {
        let entry = &mut self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        let Some(session) = self.sessions.get(entry.slot) else { return };
        let machine = &session.machine;
        let bytes = machine.queue_bytes();
        if bytes != entry.held_bytes {
            bridge.holds(entry.held_bytes, bytes);
            entry.held_bytes = bytes;
        }
        let Some(stats) = bridge.stats(entry.number) else { return };
        let dropped = |reason: DropReason| machine.counters().dropped(reason);
        stats.buffered_messages.set(machine.queue_len() as u64);
        stats.buffered_bytes.set(bytes);
        stats.inflight.set(machine.inflight_len() as u64);
        stats.dropped_expired.set(dropped(DropReason::Expired));
        stats.dropped_too_large.set(dropped(DropReason::PacketTooLarge));
        let full = dropped(DropReason::QueueFull) + dropped(DropReason::QueueBytesFull);
        let full = full + dropped(DropReason::NoCredit) + dropped(DropReason::Offline);
        // Those that the bridge's buffer had no room for are among the shed ones.
        stats.dropped_full.set(full + session.pressure.shed_total());
    }
}
