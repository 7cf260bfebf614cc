//! A virtual client: the client's session machine on one connection after the other.

use std::collections::{HashMap, HashSet};

use tacho_broker::sim::Cluster;
use tacho_codec::{AckKind, PacketId, ReasonCode, Version};
use tacho_journal::{Condition, Journal};
use tacho_net::sim::Peer;
use tacho_session::client::{ClientLimits, Session};

use crate::ledger::{Subscribing, Viewer};
use crate::setup::Nature;
use crate::wire::Opening;

/// What a client reads at once when there are no more faults.
pub(crate) const CALM_WINDOW_BYTES: usize = 1 << 20;

/// A SUBSCRIBE or UNSUBSCRIBE whose answer has not come.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Subscribe(Vec<Subscribing>),
    /// Spans of the ledger.
    Unsubscribe(Vec<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// CONNECT was sent.
    Connecting,
    Online,
    /// DISCONNECT was sent; the broker closes.
    Leaving,
}

/// One connection.
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) number: u32,
    pub(crate) stage: Stage,
    pub(crate) opening: Opening,
    /// Bytes that came and are no whole packet yet.
    pub(crate) buffer: Vec<u8>,
    /// The broker did not want to close then.
    pub(crate) alive_ns: u64,
    /// The client did not read for a while.
    pub(crate) was_deaf: bool,
    /// The broker has said why it closes.
    pub(crate) dismissed: bool,
    /// CONNACK said no.
    pub(crate) refused: bool,
    /// How many clients the broker had ended without a word when it began: perhaps this
    /// one next, without reading on.
    pub(crate) ended_before: u64,
    /// The journal took nothing at some time since CONNECT was sent, until CONNACK came.
    pub(crate) was_stuck: bool,
}

impl Link {
    /// Before this time the broker has certainly not considered it over: its idea of the time may
    /// be behind, and what it closes may have to wait for its last output to leave.
    pub(crate) fn since_ns(&self, keep_alive_s: u16) -> u64 {
        let may_wait = keep_alive_s > 0 || self.was_deaf;
        self.alive_ns - if may_wait { LINGER_NS } else { LAG_NS }
    }
}

/// Whether the journal takes nothing now.
pub(crate) fn is_stuck(journal: &Journal) -> bool {
    journal.condition() != Condition::Fine
}

const LAG_NS: u64 = 5_000_000;
const LINGER_NS: u64 = 1_200_000_000;

pub(crate) struct Client {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) nature: Nature,
    pub(crate) machine: Session<u32>,
    pub(crate) link: Option<Link>,
    /// Connections that were left; the broker may not know yet.
    pub(crate) abandoned: Vec<Peer>,
    /// The sessions that the broker had for this client, counted.
    pub(crate) epoch: u32,
    /// A CONNECT with clean start was sent and not answered, or has to be.
    pub(crate) wants_clean: bool,
    /// The last CONNECT got no answer: the broker may have had it at any time since.
    pub(crate) unanswered: bool,
    /// The broker certainly has the session for a CONNECT that it gets before this time.
    pub(crate) safe_until_ns: u64,
    pub(crate) requests: HashMap<PacketId, Request>,
    /// Messages of QoS 1 that came in this session: identifier, message, and the connection.
    pub(crate) seen: HashMap<(PacketId, u32), u32>,
    /// Messages of QoS 2 under way, until PUBREC.
    pub(crate) unreceived: HashMap<PacketId, u32>,
    /// Filters that it believes to be subscribed to.
    pub(crate) subscribed: HashSet<usize>,
    /// Does not read.
    pub(crate) deaf: bool,
    pub(crate) links: u32,
    /// It connects again with what it had, whatever happens.
    pub(crate) calm: bool,
}

impl Client {
    pub(crate) fn new(index: usize, nature: Nature) -> Self {
        let limits = ClientLimits {
            inflight_max: nature.inflight_max,
            receive_maximum: nature.receive_maximum,
        };
        Self {
            index,
            name: format!("client-{index}"),
            machine: Session::new(limits),
            link: None,
            abandoned: Vec::new(),
            epoch: 0,
            wants_clean: nature.version.is_v5(),
            unanswered: false,
            safe_until_ns: 0,
            requests: HashMap::new(),
            seen: HashMap::new(),
            unreceived: HashMap::new(),
            subscribed: HashSet::new(),
            deaf: false,
            links: 0,
            calm: false,
            nature,
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.nature.version
    }

    /// Whether its next CONNECT has to be with clean start. One that was not answered may have come
    /// at any time until now: did it come too late for the session, it has made a new one, and a
    /// client that does not know could take that for the one it had.
    pub(crate) fn must_start_anew(&mut self, now_ns: u64) -> bool {
        self.wants_clean |= self.unanswered && self.safe_until_ns <= now_ns;
        self.wants_clean
    }

    pub(crate) fn is_online(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.stage == Stage::Online)
    }

    pub(crate) fn viewer(&self) -> Viewer {
        Viewer { client: self.index, epoch: self.epoch, version: self.nature.version }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        if let Some(link) = &self.link {
            link.peer.send(bytes);
        }
    }

    /// An acknowledgement of the broker came: the message that it has now.
    pub(crate) fn acknowledged(
        &mut self,
        kind: AckKind,
        packet_id: PacketId,
        reason: ReasonCode,
    ) -> Option<u32> {
        let machine = &mut self.machine;
        let done = match kind {
            AckKind::PubAck => machine.handle_puback(packet_id, reason),
            AckKind::PubRec => {
                let id = self.unreceived.remove(&packet_id);
                machine.handle_pubrec(packet_id, reason).map(|_| id)
            }
            // PUBREC has promised it already.
            AckKind::PubComp => machine.handle_pubcomp(packet_id, reason).map(|_| None),
            AckKind::PubRel => machine.handle_pubrel(packet_id).map(|()| None),
        };
        done.expect("the broker answers what was sent")
    }

    /// Begins a connection: its CONNECT is on the way. The client's own side of the one before must
    /// have ended.
    pub(crate) fn dial(&mut self, cluster: &mut Cluster, shard: usize, opening: Opening) {
        let peer = cluster.connect(shard);
        // A calm client reads all that there is.
        peer.set_window(if self.calm { CALM_WINDOW_BYTES } else { self.nature.window_bytes });
        peer.send(&crate::wire::connect(&self.nature, &self.name, opening));
        self.links += 1;
        self.link = Some(Link {
            peer,
            number: self.links,
            stage: Stage::Connecting,
            opening,
            buffer: Vec::new(),
            alive_ns: cluster.now_ns(),
            was_deaf: self.deaf,
            dismissed: false,
            refused: false,
            ended_before: 0,
            was_stuck: cluster.journal().is_some_and(is_stuck),
        });
    }
}
