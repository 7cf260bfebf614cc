//! A broker with a journal in memory, and clients that write and read packets.

use std::collections::VecDeque;

use tacho_broker::sim::{Cluster, Seeds};
use tacho_broker::{Config, RawConfig};
use tacho_codec::{
    Ack, AckKind, Connect, ConnectProperties, Direction, Packet, PacketId, Publish, QoS,
    ReasonCode, Subscribe, SubscribeFilter, SubscribeOptions, Unsubscribe, UserProperties, Version,
    Will, split_frame,
};
use tacho_journal::Condition;
use tacho_journal::sim::Disk;
use tacho_net::sim::{Faults, Peer};
use tacho_topic::owner_shard;

use tacho_testkit::packets::{ack, encode};

const SECOND_NS: u64 = 1_000_000_000;
/// The wall clock when the first broker starts.
const UNIX_NS: u64 = 1_800_000_000 * SECOND_NS;

/// A client identifier whose session belongs to `shard`.
pub(crate) fn named_for(shard: usize, shards: usize, prefix: &str) -> String {
    let mut names = (0..).map(|number| format!("{prefix}-{number}"));
    names.find(|name| owner_shard(0, name.as_bytes(), shards) == shard).expect("there is one")
}

/// The broker of a test and its disk.
pub(crate) struct DurableBroker {
    pub(crate) cluster: Cluster,
    pub(crate) disk: Disk,
    config: Config,
    faults: Faults,
    seed: u64,
    /// How far the wall clock has been set forward, in nanoseconds; negative is back.
    wall_step_ns: i128,
}

/// How the broker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// What was written is there.
    Killed,
    /// What was not synced may be lost.
    PowerCut,
}

impl DurableBroker {
    pub(crate) fn new(shards: usize) -> Self {
        Self::configured(shards, |_| {})
    }

    pub(crate) fn configured(shards: usize, change: impl FnOnce(&mut RawConfig)) -> Self {
        Self::with_faults(1, shards, Faults::default(), change)
    }

    /// The same with loops in which things come late.
    pub(crate) fn with_faults(
        seed: u64,
        shards: usize,
        faults: Faults,
        change: impl FnOnce(&mut RawConfig),
    ) -> Self {
        let mut raw = RawConfig { shards: Some(shards), ..RawConfig::default() };
        change(&mut raw);
        let config = raw.resolve().unwrap();
        let disk = Disk::new(seed);
        let cluster = start(&config, &disk, seed, faults, 0);
        let mut broker = Self { cluster, disk, config, faults, seed, wall_step_ns: 0 };
        broker.commit();
        broker
    }

    /// Shards do what there is to do; nothing is committed.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000_000 {
            if !self.cluster.loops().step() {
                return;
            }
        }
        panic!("the shards do not come to rest");
    }

    /// Fills the disk until the journal says so. What it prepared before is used up first.
    pub(crate) fn fill(&mut self) {
        let mut filler = self.passing("filler");
        self.disk.set_capacity(Some(self.disk.used_bytes()));
        let payload = "x".repeat(900_000);
        for _ in 0..1_000 {
            filler.publish_with("filler", &payload, QoS::AtLeastOnce, 1, |publish| Publish {
                retain: true,
                ..publish
            });
            self.commit();
            if !filler
                .all()
                .iter()
                .any(|seen| matches!(seen, Seen::Ack(_, 1, ok) if !ok.is_error()))
            {
                assert_ne!(self.cluster.journal().unwrap().condition(), Condition::Fine);
                return;
            }
        }
        panic!("the disk is never full");
    }

    /// There is space on the disk again, and the broker has noticed.
    pub(crate) fn make_space(&mut self) {
        self.disk.set_capacity(None);
        self.commit();
        self.sleep(2);
        self.commit();
        assert_eq!(self.cluster.journal().unwrap().condition(), Condition::Fine);
    }

    /// Everything is committed that can be.
    pub(crate) fn commit(&mut self) {
        self.settle();
        for _ in 0..1_000 {
            if !self.cluster.commit() {
                return;
            }
            self.settle();
        }
        panic!("there is always more to commit");
    }

    /// Time passes.
    pub(crate) fn sleep(&mut self, seconds: u64) {
        self.cluster.loops().advance(seconds * SECOND_NS);
        self.settle();
    }

    /// The broker dies and starts again.
    pub(crate) fn restart(&mut self, death: Death) {
        self.disk = match death {
            Death::Killed => self.disk.kill(),
            Death::PowerCut => self.disk.power_cut(),
        };
        self.seed += 1;
        self.cluster = start(&self.config, &self.disk, self.seed, self.faults, self.wall_step_ns);
        self.commit();
    }

    /// The same, and meanwhile the wall clock is set forward, or back, by so many seconds.
    pub(crate) fn restart_after_step(&mut self, death: Death, step_s: i64) {
        self.wall_step_ns += i128::from(step_s) * i128::from(SECOND_NS);
        self.restart(death);
    }

    /// A client's first connection: its session is new, and lasts.
    pub(crate) fn lasting(&mut self, client_id: &str) -> Client {
        let mut client = self.dial(client_id, u32::MAX);
        client.connect(&Connect { clean_start: true, ..client.opening() });
        self.commit();
        client.expect_connected(false);
        client
    }

    /// A later connection to a session that is still there.
    pub(crate) fn resumed(&mut self, client_id: &str) -> Client {
        let mut client = self.dial(client_id, u32::MAX);
        client.connect(&client.opening());
        self.commit();
        client.expect_connected(true);
        client
    }

    /// The same, and nothing happens yet.
    pub(crate) fn resuming(&mut self, client_id: &str) -> Client {
        self.connecting(client_id, Version::V5, |_| {})
    }

    /// A connection for a session that lasts, with a CONNECT to a test's liking.
    pub(crate) fn connecting(
        &mut self,
        client_id: &str,
        version: Version,
        change: impl FnOnce(&mut Connect<'static>),
    ) -> Client {
        let mut client = self.dial(client_id, u32::MAX);
        client.version = version;
        let mut connect = client.opening();
        change(&mut connect);
        client.connect(&connect);
        client
    }

    /// The connection of another broker's bridge (3.1.1); nothing happens yet.
    pub(crate) fn bridging(&mut self, client_id: &str) -> Client {
        let mut client = self.dial(client_id, u32::MAX);
        client.version = Version::V311;
        let mut connect = encode(&Packet::Connect(client.opening()), client.version);
        // The protocol level, behind the fixed header and the protocol's name.
        connect[8] |= 0x80;
        client.send_bytes(&connect);
        client
    }

    /// A first connection with a subscription; nothing happens yet.
    pub(crate) fn joining(&mut self, client_id: &str, filter: &str, qos: QoS) -> Client {
        let client = self.dial(client_id, u32::MAX);
        client.connect(&Connect { clean_start: true, ..client.opening() });
        client.subscribe(filter, qos);
        client
    }

    /// A client whose session ends with its connection.
    pub(crate) fn passing(&mut self, client_id: &str) -> Client {
        let mut client = self.dial(client_id, 0);
        client.connect(&Connect { clean_start: true, ..client.opening() });
        self.settle();
        client.expect_connected(false);
        client
    }

    /// A connection to a session that ends with it; nothing happens yet.
    pub(crate) fn visiting(&mut self, client_id: &str, clean_start: bool) -> Client {
        let client = self.dial(client_id, 0);
        client.connect(&Connect { clean_start, ..client.opening() });
        client
    }

    /// The same in a version that has no word for refusing a message.
    pub(crate) fn passing_v3(&mut self, client_id: &str) -> Client {
        let mut client = self.dial(client_id, 0);
        client.version = Version::V311;
        client.connect(&Connect { clean_start: true, ..client.opening() });
        self.settle();
        client.expect_connected(false);
        client
    }

    /// A session with a will, that lasts.
    pub(crate) fn with_will(&mut self, client_id: &str, will: Will<'_>) -> Client {
        let mut client = self.dial(client_id, u32::MAX);
        client.connect(&Connect { clean_start: true, will: Some(will), ..client.opening() });
        self.commit();
        client.expect_connected(false);
        client
    }

    /// A connection to the shard that will own the session.
    fn dial(&mut self, client_id: &str, expiry_s: u32) -> Client {
        let shard = owner_shard(0, client_id.as_bytes(), self.config.shards);
        let peer = self.cluster.connect(shard);
        Client {
            peer,
            client_id: client_id.to_owned(),
            version: Version::V5,
            expiry_s,
            buffer: Vec::new(),
            seen: VecDeque::new(),
        }
    }

    /// Subscribes, and waits for the answer.
    pub(crate) fn subscribe(&mut self, client: &mut Client, filter: &str, qos: QoS) {
        client.subscribe(filter, qos);
        self.commit();
        assert!(matches!(client.next(), Seen::SubAck), "{} subscribes", client.client_id);
    }
}

fn start(config: &Config, disk: &Disk, seed: u64, faults: Faults, wall_step_ns: i128) -> Cluster {
    fastrand::seed(seed);
    // Every start of the broker is a minute later, on a clock that begins anew.
    let seeds = Seeds { seed, faults, now_ns: SECOND_NS };
    let unix_ns = i128::from(UNIX_NS + 60 * seed * SECOND_NS) + wall_step_ns;
    let unix_ns = u64::try_from(unix_ns).unwrap_or(0);
    Cluster::with_journal(config, |bounds| bounds, seeds, disk.clone(), unix_ns).unwrap()
}

/// A packet from the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Connected {
        session_present: bool,
    },
    Refused(ReasonCode),
    SubAck,
    /// SUBACK in which everything is refused.
    NotSubscribed(Vec<ReasonCode>),
    Ack(AckKind, u16, ReasonCode),
    Message {
        topic: String,
        payload: String,
        qos: QoS,
        id: u16,
        dup: bool,
        retain: bool,
    },
    Other(String),
}

/// A message as a test expects it, not repeated and not retained.
pub(crate) fn message(topic: &str, payload: &str, qos: QoS, id: u16) -> Seen {
    let (topic, payload) = (topic.to_owned(), payload.to_owned());
    Seen::Message { topic, payload, qos, id, dup: false, retain: false }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) client_id: String,
    pub(crate) version: Version,
    expiry_s: u32,
    buffer: Vec<u8>,
    /// Came, and was not looked at.
    seen: VecDeque<Seen>,
}

impl Client {
    fn opening(&self) -> Connect<'static> {
        Connect {
            version: self.version,
            clean_start: false,
            keep_alive_s: 0,
            client_id: Box::leak(self.client_id.clone().into_boxed_str()),
            username: None,
            password: None,
            will: None,
            properties: ConnectProperties {
                session_expiry_s: self.version.is_v5().then_some(self.expiry_s),
                ..ConnectProperties::default()
            },
        }
    }

    fn connect(&self, connect: &Connect<'_>) {
        self.send(&Packet::Connect(connect.clone()));
    }

    #[track_caller]
    fn expect_connected(&mut self, session_present: bool) {
        self.look();
        let first = self.seen.pop_front();
        assert_eq!(first, Some(Seen::Connected { session_present }), "{}", self.client_id);
    }

    pub(crate) fn send(&self, packet: &Packet<'_>) {
        self.send_bytes(&encode(packet, self.version));
    }

    fn send_bytes(&self, bytes: &[u8]) {
        self.peer.send(bytes);
        self.peer.arrive(usize::MAX);
    }

    pub(crate) fn subscribe(&self, filter: &str, qos: QoS) {
        self.subscribe_all([filter], qos);
    }

    /// One SUBSCRIBE.
    pub(crate) fn subscribe_all<'a>(&self, filters: impl IntoIterator<Item = &'a str>, qos: QoS) {
        let options = SubscribeOptions { qos, ..SubscribeOptions::default() };
        let filters = filters.into_iter().map(|filter| SubscribeFilter { filter, options });
        self.send(&Packet::Subscribe(Subscribe {
            packet_id: PacketId::FIRST,
            subscription_id: None,
            user_properties: UserProperties::EMPTY,
            filters: filters.collect(),
        }));
    }

    pub(crate) fn unsubscribe(&self, filter: &str) {
        self.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id: PacketId::FIRST,
            user_properties: UserProperties::EMPTY,
            filters: vec![filter],
        }));
    }

    pub(crate) fn publish(&self, topic: &str, payload: &str, qos: QoS, id: u16) {
        self.publish_with(topic, payload, qos, id, |publish| publish);
    }

    pub(crate) fn publish_with(
        &self,
        topic: &str,
        payload: &str,
        qos: QoS,
        id: u16,
        change: impl for<'a> FnOnce(Publish<'a>) -> Publish<'a>,
    ) {
        let packet_id = PacketId::new(id);
        let payload = payload.as_bytes();
        let publish = Publish { topic, payload, qos, packet_id, ..Publish::default() };
        self.send(&Packet::Publish(change(publish)));
    }

    pub(crate) fn acknowledge(&self, kind: AckKind, id: u16) {
        let packet_id = PacketId::new(id).unwrap();
        self.send_bytes(&ack(self.version, kind, packet_id, ReasonCode::SUCCESS));
    }

    /// All packets that have come.
    pub(crate) fn all(&mut self) -> Vec<Seen> {
        self.look();
        self.seen.drain(..).collect()
    }

    fn look(&mut self) {
        self.buffer.extend(self.peer.receive(usize::MAX));
        let mut used = 0;
        while let Some(frame) = split_frame(&self.buffer[used..], u32::MAX).unwrap() {
            let packet = Packet::decode(&frame, self.version, Direction::ToClient).unwrap();
            self.seen.push_back(see(&packet));
            used += frame.total_len;
        }
        self.buffer.drain(..used);
    }

    /// The one packet that has come.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Seen {
        let mut all = self.all();
        assert_eq!(all.len(), 1, "{} sees {all:?}", self.client_id);
        all.remove(0)
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &[Seen]) {
        assert_eq!(self.all(), expected, "{}", self.client_id);
    }

    #[track_caller]
    pub(crate) fn expect_ack(&mut self, kind: AckKind, id: u16) {
        self.expect(&[Seen::Ack(kind, id, ReasonCode::SUCCESS)]);
    }

    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) {
        self.expect(&[]);
    }
}

fn see(packet: &Packet<'_>) -> Seen {
    let ack = |kind, ack: &Ack<'_>| Seen::Ack(kind, ack.packet_id.get(), ack.reason);
    match packet {
        Packet::ConnAck(connack) if connack.reason.is_error() => Seen::Refused(connack.reason),
        Packet::ConnAck(connack) => Seen::Connected { session_present: connack.session_present },
        Packet::SubAck(suback) if suback.reasons.iter().all(|reason| reason.is_error()) => {
            Seen::NotSubscribed(suback.reasons.clone())
        }
        Packet::SubAck(_) => Seen::SubAck,
        Packet::PubAck(acked) => {
            let mut seen = ack(AckKind::PubAck, acked);
            // These tests do not check that there are no subscribers.
            if let Seen::Ack(_, _, reason) = &mut seen
                && !reason.is_error()
            {
                *reason = ReasonCode::SUCCESS;
            }
            seen
        }
        Packet::PubRec(acked) => ack(AckKind::PubRec, acked),
        Packet::PubRel(acked) => ack(AckKind::PubRel, acked),
        Packet::PubComp(acked) => ack(AckKind::PubComp, acked),
        Packet::Publish(publish) => Seen::Message {
            topic: publish.topic.to_owned(),
            payload: match publish.payload.len() {
                0..100 => String::from_utf8(publish.payload.to_vec()).unwrap(),
                len => format!("{len} bytes"),
            },
            qos: publish.qos,
            id: publish.packet_id.map_or(0, PacketId::get),
            dup: publish.dup,
            retain: publish.retain,
        },
        other => Seen::Other(format!("{other:?}")),
    }
}
