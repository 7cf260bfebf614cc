//! Bridges in the data plane: connections that this shard opens to other brokers.
//!
//! Each link of a bridge's pool is an ordinary session, whose socket is ours: its queue is the
//! bridge's buffer, its packet identifiers are those towards the other broker, and with a data
//! directory it is durable. Routing leads a topic to one link of each bridge, always the same
//! (`routing::destinations`), so that order holds whatever the number of links.
//!
//! [`links`] makes them and ends those that are not wanted any more, [`dial`] opens and loses
//! connections, [`greet`] is CONNECT and CONNACK, [`subscribe`] SUBSCRIBE and UNSUBSCRIBE,
//! [`egress`] sends messages there, [`ingress`] takes in what comes from there.

mod dial;
mod egress;
mod greet;
mod ingress;
mod links;
mod subscribe;

use tacho_codec::{PacketId, QoS};
use tacho_net::{ConnId, TimerId};
use tacho_session::{DropReason, Link};

use crate::keys::SessionSlot;
use crate::shard::Shard;

/// The links of bridges that a shard has.
#[derive(Default)]
pub(super) struct BridgeLinks {
    all: Vec<BridgeLink>,
    /// Sessions of links that the configuration has no place for.
    orphans: Vec<SessionSlot>,
    /// Reused for what templates make.
    topic: String,
    payload: Vec<u8>,
}

/// One connection of a bridge.
struct BridgeLink {
    /// Its bridge's place.
    bridge: usize,
    /// Its number there.
    number: u16,
    slot: SessionSlot,
    protocol: Link,
    timer: Option<TimerId>,
    conn: Option<ConnId>,
    stage: Stage,
    /// What is known of the session that the other broker has.
    peer: PeerSession,
    introduction: Introduction,
    tenure: Tenure,
    attempts: u32,
    subscribing: Asking,
    /// The session there may have subscriptions of an earlier configuration, for rules that other
    /// links have now: they are to be ended.
    unsubscribing: Asking,
    /// Messages that it refused were said in the log until then.
    refusals_told_ns: u64,
    granted: Granted,
    /// Bytes in the queue as the bridge has them.
    held_bytes: u64,
    /// Messages that did not find room in the bridge's buffer.
    dropped_full: u64,
}

/// What is known of the session that the other broker has for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerSession {
    /// It may have one of an earlier life of this broker.
    Unknown,
    /// It has one, and the next CONNECT asks it to forget that.
    ToBeForgotten,
    /// It has what this broker expects.
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

/// How far a link's connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Disconnected,
    /// TCP.
    Opening,
    /// CONNECT is on its way, which asks for a clean session or not.
    Greeting { clean: bool },
    /// CONNACK came.
    Up,
}

/// Whether the other broker knows what is to come from there, or what is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// It does, or there is nothing to know.
    Done,
    /// The packet is to be sent as soon as there is an identifier for it.
    Wanted,
    /// SUBACK or UNSUBACK is to come.
    Awaited(PacketId),
}

impl BridgeLinks {
    /// The links whose sessions the shard has beside those of clients.
    pub(super) fn len(&self) -> usize {
        self.all.len() + self.orphans.len()
    }
}

impl Shard {
    /// The session of a link, if it has one still.
    pub(super) fn session_of_link(&self, link: u32) -> Option<SessionSlot> {
        self.bridges.all.get(link as usize).map(|link| link.slot)
    }

    /// Updates the figures of a link.
    fn report_link(&mut self, link: usize) {
        let entry = &mut self.bridges.all[link];
        let bridge = self.shared.bridges.at(entry.bridge);
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
        let shed = session.pressure.shed_total();
        stats.dropped_full.set(full + shed + entry.dropped_full);
    }
}
