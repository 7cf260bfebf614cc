//! The other broker: it has a session for each connection of the bridge, and takes and publishes
//! messages. It is always up, but not always kind.

use std::collections::{BTreeMap, BTreeSet};

use tacho_codec::{
    ConnAck, ConnAckProperties, Direction, Packet, PacketId, QoS, ReasonCode, SubAck, UnsubAck,
    UserProperties, Version, split_frame,
};
use tacho_net::sim::Peer;
use tacho_session::client::{ClientLimits, ConnAckParams, Publish, Session};
use tacho_session::{AliasOut, Inbound, Transmit};

use super::promises::{Promises, Way};
use crate::setup::RETAINED;
use crate::wire::{self, Outgoing};
use tacho_testkit::packets::{ack, encode};
use tacho_testkit::rng::Rng;

/// A connection of the bridge.
struct Line {
    peer: Peer,
    buffer: Vec<u8>,
}

/// What the other broker has for one connection of the bridge. QoS 1 and 2 are symmetric: its
/// machine is a client's.
struct Seat {
    machine: Session<u32>,
    line: Option<Line>,
    has_session: bool,
    subscribed: bool,
    /// Messages of QoS 2 that came, until PUBREL.
    unreleased: BTreeMap<PacketId, u32>,
    /// Messages of QoS 2 that were sent, until PUBREC.
    unreceived: BTreeMap<PacketId, u32>,
    /// Their identifiers, until PUBCOMP.
    used: BTreeSet<PacketId>,
    ghosts: Ghosts,
}

/// Identifiers of QoS 2 that were in use when the session was forgotten. The broker at the other
/// end learns of that by CONNACK. If it dies before it has written it down, it takes a new message
/// with such an identifier for one that it has (DURABILITY.md, "What is not promised").
#[derive(Default)]
struct Ghosts {
    ids: BTreeSet<PacketId>,
    /// It received CONNACK after this number of commits.
    heard_at: Option<u64>,
    /// It has died before it was written down for certain.
    haunt: bool,
}

/// Commits after which everything that came before them is kept: the first may be of what was
/// handed over earlier and held.
const COMMITS_OF_HELD: u64 = 2;

impl Ghosts {
    fn forgotten(&mut self, used: &mut BTreeSet<PacketId>) {
        self.ids.append(used);
        self.heard_at = None;
    }

    fn broker_died(&mut self, commits: u64) {
        if self.heard_at.is_some_and(|at| commits >= at + COMMITS_OF_HELD) {
            *self = Self::default();
        }
        self.haunt = !self.ids.is_empty();
    }
}

/// How the other broker is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    pub(super) version: Version,
    pub(super) receive_maximum: u16,
    /// Percent of connections for which it has no session any more.
    pub(super) forget_percent: u64,
    /// Percent of connections that it refuses or does not answer.
    pub(super) refuse_percent: u64,
    /// Percent of chances to answer that it uses.
    pub(super) diligence: u64,
}

pub(super) struct Other {
    manners: Manners,
    /// CONNECT has not come.
    arriving: Vec<Line>,
    /// Those that are not answered, or were refused.
    ignored: Vec<Peer>,
    seats: BTreeMap<String, Seat>,
    /// No more faults.
    pub(super) calm: bool,
    /// Packets that came.
    pub(super) seen: u64,
    /// Commits at the bridge's end.
    pub(super) commits: u64,
}

impl Other {
    pub(super) fn new(manners: Manners) -> Self {
        Self {
            manners,
            arriving: Vec::new(),
            ignored: Vec::new(),
            seats: BTreeMap::new(),
            calm: false,
            seen: 0,
            commits: 0,
        }
    }

    /// The bridge connects.
    pub(super) fn arrives(&mut self, rng: &mut Rng, peer: Peer) {
        // Otherwise no socket listens.
        if self.calm || !rng.percent(self.manners.refuse_percent) {
            self.arriving.push(Line { peer, buffer: Vec::new() });
        }
    }

    /// Bytes move, some or all, and are answered.
    pub(super) fn exchange(&mut self, rng: &mut Rng, promises: &mut Promises, now_ns: u64) {
        self.ignored.retain(|peer| !peer.is_forgotten());
        for mut line in std::mem::take(&mut self.arriving) {
            line.move_bytes(rng, self.calm);
            match line.next_frame() {
                Some(frame) => self.greet(rng, promises, now_ns, line, &frame),
                None if line.peer.is_over() => {}
                None => self.arriving.push(line),
            }
        }
        for seat in self.seats.values_mut() {
            let Some(line) = &mut seat.line else { continue };
            line.move_bytes(rng, self.calm);
            seat.hear(promises, self.manners.version, &mut self.seen, self.commits);
            if self.calm || rng.percent(self.manners.diligence) {
                seat.poll(promises, self.manners.version, now_ns);
            }
        }
    }

    /// Publishes something that the bridge is to bring, if it has asked for it.
    pub(super) fn publish(&mut self, rng: &mut Rng, promises: &mut Promises, now_ns: u64) {
        for seat in self.seats.values_mut() {
            if !seat.subscribed || seat.line.is_none() || !seat.machine.can_publish() {
                continue;
            }
            let topic = RETAINED[rng.below(RETAINED.len() as u64) as usize];
            let qos = if rng.percent(50) { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
            let id = promises.published(Way::In, 0, topic, qos);
            if let Publish::Send(transmit) = seat.machine.publish(now_ns, qos, id) {
                seat.transmit(promises, self.manners.version, transmit);
            }
        }
    }

    /// A connection breaks.
    pub(super) fn cut(&mut self, rng: &mut Rng) {
        let place = rng.below(self.seats.len().max(1) as u64) as usize;
        let Some(seat) = self.seats.values_mut().nth(place) else { return };
        if let Some(line) = &seat.line
            && rng.percent(50)
        {
            // What was sent arrives still.
            line.peer.finish();
        }
        seat.part();
    }

    /// The broker at the bridge's end has died: what it had written comes, or not.
    pub(super) fn lose(&mut self, rng: &mut Rng, promises: &mut Promises) {
        self.arriving.clear();
        self.ignored.clear();
        for seat in self.seats.values_mut() {
            if let Some(line) = &mut seat.line
                && rng.percent(60)
            {
                line.buffer.extend(line.peer.receive(usize::MAX));
                seat.hear(promises, self.manners.version, &mut self.seen, self.commits);
            }
            seat.part();
            seat.ghosts.broker_died(self.commits);
        }
    }

    /// Something is on its way to it or from it.
    pub(super) fn has_traffic(&self) -> bool {
        let lines = self.seats.values().filter_map(|seat| seat.line.as_ref());
        let moves = |line: &Line| line.peer.in_transit() > 0 || line.peer.waiting() > 0;
        lines.chain(&self.arriving).any(moves)
            || self.seats.values().any(|seat| seat.line.is_some() && seat.machine.has_output())
    }

    /// How many connections are up with nothing under way.
    pub(super) fn at_rest(&self) -> usize {
        let rests = |seat: &&Seat| seat.line.is_some() && seat.machine.inflight_len() == 0;
        self.seats.values().filter(rests).count()
    }

    fn greet(
        &mut self,
        rng: &mut Rng,
        promises: &mut Promises,
        now_ns: u64,
        line: Line,
        frame: &[u8],
    ) {
        let Manners { version, receive_maximum, .. } = self.manners;
        let Packet::Connect(connect) = decode(frame, version) else {
            panic!("a bridge begins with CONNECT");
        };
        if !self.calm && rng.percent(self.manners.refuse_percent) {
            if rng.percent(50) {
                let refusal = ConnAck::refusal(ReasonCode::SERVER_UNAVAILABLE);
                line.peer.send(&encode(&Packet::ConnAck(refusal), version));
                line.peer.finish();
            }
            return self.ignored.push(line.peer);
        }
        let seat = self.seats.entry(connect.client_id.to_owned()).or_insert_with(|| Seat {
            machine: Session::new(ClientLimits { receive_maximum, ..ClientLimits::default() }),
            line: None,
            has_session: false,
            subscribed: false,
            unreleased: BTreeMap::new(),
            unreceived: BTreeMap::new(),
            used: BTreeSet::new(),
            ghosts: Ghosts::default(),
        });
        seat.part();
        let forgets = !self.calm && rng.percent(self.manners.forget_percent);
        let session_present = seat.has_session && !connect.clean_start && !forgets;
        if !session_present {
            std::mem::take(&mut seat.unreleased)
                .into_values()
                .for_each(|id| promises.forgotten(id));
            seat.unreceived.clear();
            seat.ghosts.forgotten(&mut seat.used);
            seat.subscribed = false;
        }
        // Before 5.0 a clean session ends with its connection.
        seat.has_session = version.is_v5() || !connect.clean_start;
        let granted = connect.properties.receive_maximum.unwrap_or(u16::MAX);
        let params = ConnAckParams {
            session_present,
            receive_maximum: granted,
            ..ConnAckParams::new(version)
        };
        seat.machine.connack(now_ns, params);
        let properties = ConnAckProperties {
            receive_maximum: version.is_v5().then_some(receive_maximum),
            ..ConnAckProperties::default()
        };
        let reason = ReasonCode::SUCCESS;
        let connack = Packet::ConnAck(ConnAck { session_present, reason, properties });
        line.peer.send(&encode(&connack, version));
        seat.line = Some(line);
    }
}

impl Line {
    fn move_bytes(&mut self, rng: &mut Rng, calm: bool) {
        let mut part = |all: usize| match calm || rng.percent(60) {
            true => all,
            false => rng.below(all as u64 + 1) as usize,
        };
        self.peer.arrive(part(self.peer.in_transit()));
        self.buffer.extend(self.peer.receive(part(self.peer.waiting())));
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let frame = split_frame(&self.buffer, 1 << 20).expect("the bridge writes whole packets")?;
        let len = frame.total_len;
        Some(self.buffer.drain(..len).collect())
    }
}

fn decode(frame: &[u8], version: Version) -> Packet<'_> {
    let frame = split_frame(frame, 1 << 20).expect("a frame").expect("a whole one");
    Packet::decode(&frame, version, Direction::ToServer).expect("the bridge writes legal packets")
}

impl Seat {
    /// The connection is over.
    fn part(&mut self) {
        if self.line.take().is_some() {
            self.machine.disconnected();
        }
    }

    fn hear(&mut self, promises: &mut Promises, version: Version, seen: &mut u64, commits: u64) {
        while let Some(frame) = self.line.as_mut().and_then(Line::next_frame) {
            *seen += 1;
            let packet = decode(&frame, version);
            if let Packet::Subscribe(_) = packet {
                // It comes behind every CONNACK that says that there is no session.
                self.ghosts.heard_at.get_or_insert(commits);
            }
            self.handle(promises, version, &packet);
        }
        if self.line.as_ref().is_some_and(|line| line.peer.is_over()) {
            self.part();
        }
    }

    fn handle(&mut self, promises: &mut Promises, version: Version, packet: &Packet<'_>) {
        let answered = "the bridge answers what was sent";
        let done = match packet {
            Packet::Publish(publish) => return self.take(promises, publish),
            Packet::PubAck(ack) => {
                self.machine.handle_puback(ack.packet_id, ack.reason).expect(answered)
            }
            Packet::PubRec(ack) => {
                self.machine.handle_pubrec(ack.packet_id, ack.reason).expect(answered);
                self.unreceived.remove(&ack.packet_id)
            }
            Packet::PubComp(ack) => {
                self.used.remove(&ack.packet_id);
                self.ghosts.ids.remove(&ack.packet_id);
                self.machine.handle_pubcomp(ack.packet_id, ack.reason).expect(answered);
                return;
            }
            Packet::PubRel(ack) => {
                self.unreleased.remove(&ack.packet_id);
                return self.machine.handle_pubrel(ack.packet_id).expect(answered);
            }
            Packet::Subscribe(subscribe) => {
                self.subscribed = true;
                return self.write(&encode(
                    &Packet::SubAck(SubAck {
                        packet_id: subscribe.packet_id,
                        reasons: vec![ReasonCode::GRANTED_QOS_2; subscribe.filters.len()],
                        reason_string: None,
                        user_properties: UserProperties::EMPTY,
                    }),
                    version,
                ));
            }
            Packet::Unsubscribe(unsubscribe) => {
                // For rules that another connection of the bridge has, and this one never had.
                assert!(!self.subscribed, "it ends what it has asked for: {unsubscribe:?}");
                return self.write(&encode(
                    &Packet::UnsubAck(UnsubAck {
                        packet_id: unsubscribe.packet_id,
                        reasons: vec![
                            ReasonCode::NO_SUBSCRIPTION_EXISTED;
                            unsubscribe.filters.len()
                        ],
                        reason_string: None,
                        user_properties: UserProperties::EMPTY,
                    }),
                    version,
                ));
            }
            Packet::PingReq => return self.write(&encode(&Packet::PingResp, version)),
            Packet::Disconnect(_) => return self.part(),
            other => panic!("a bridge does not send {other:?}"),
        };
        if let Some(id) = done {
            promises.acknowledged(id, false);
        }
    }

    fn take(&mut self, promises: &mut Promises, publish: &tacho_codec::Publish<'_>) {
        let inbound = self.machine.handle_publish(publish.qos, publish.packet_id);
        match inbound.expect("the bridge keeps the receive maximum") {
            Inbound::Duplicate => assert!(publish.dup, "repeated without DUP: {publish:?}"),
            Inbound::New => {
                let id = wire::number(publish.payload).expect("a numbered message");
                if publish.qos == QoS::ExactlyOnce
                    && let Some(packet_id) = publish.packet_id
                {
                    self.unreleased.insert(packet_id, id);
                }
                promises.came(Way::Out, id, publish.topic, publish.qos);
            }
        }
    }

    fn poll(&mut self, promises: &mut Promises, version: Version, now_ns: u64) {
        while self.line.is_some()
            && let Some(transmit) = self.machine.poll_transmit(now_ns)
        {
            self.transmit(promises, version, transmit);
        }
    }

    fn transmit(&mut self, promises: &mut Promises, version: Version, transmit: Transmit<u32>) {
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                let id = delivery.message;
                let (topic, qos) = promises.topic_and_qos(id);
                promises.sent(id, 0);
                if let (QoS::ExactlyOnce, Some(packet_id)) = (qos, packet_id) {
                    self.unreceived.insert(packet_id, id);
                    self.used.insert(packet_id);
                    if self.ghosts.haunt && self.ghosts.ids.contains(&packet_id) {
                        promises.excused(id);
                    }
                }
                let (retain, expiry_s, alias) = (false, None, AliasOut::None);
                let outgoing = Outgoing { topic, qos, retain, expiry_s, alias };
                wire::publish(version, outgoing, packet_id, dup, &wire::payload(id, 12))
            }
            Transmit::Ack { kind, packet_id, reason } => ack(version, kind, packet_id, reason),
            Transmit::PubRel { packet_id, reason } => {
                ack(version, tacho_codec::AckKind::PubRel, packet_id, reason)
            }
        };
        self.write(&bytes);
    }

    fn write(&self, bytes: &[u8]) {
        if let Some(line) = &self.line {
            line.peer.send(bytes);
        }
    }
}
