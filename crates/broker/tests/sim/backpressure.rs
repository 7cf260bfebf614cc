//! A publisher of 3.x that is held back because what waits has used its budget up.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{AckKind, PacketId, QoS, ReasonCode, RetainHandling, Version};
use tacho_net::sim::{Faults, Peer};
use tacho_session::AliasOut;

use crate::setup::{Nature, Wish};
use crate::wire::{self, Event, Opening, Outgoing};
use crate::world::SECOND_NS;

/// More than all that happens in these tests takes, and not long enough for any timer.
const TURNS_MAX: usize = 1_000;
const TURN_NS: u64 = 10_000;

/// A client whose answers are read as they come.
struct Line {
    peer: Peer,
    version: Version,
    buffer: Vec<u8>,
}

impl Line {
    /// Connects, takes one message at a time, and has its CONNACK.
    fn connect(cluster: &mut Cluster, version: Version) -> Self {
        let nature = Nature {
            version,
            receive_maximum: 1,
            inflight_max: 10,
            alias_max: 0,
            keep_alive_s: 0,
            packet_size_max: None,
            expiry_s: 0,
            wishes: Vec::new(),
            diligence: 100,
            window_bytes: 1 << 20,
        };
        let peer = cluster.connect(0);
        peer.set_window(nature.window_bytes);
        let mut line = Self { peer, version, buffer: Vec::new() };
        let opening = Opening { clean_start: true, ephemeral: true, will: None };
        line.send(cluster, &wire::connect(&nature, &version.to_string(), opening));
        let events = line.events();
        assert!(matches!(events[..], [Event::ConnAck { reason: ReasonCode::SUCCESS, .. }]));
        line
    }

    /// Sends and lets everything happen that comes of it by itself, in less than a second.
    fn send(&mut self, cluster: &mut Cluster, bytes: &[u8]) {
        let start_ns = cluster.now_ns();
        self.peer.send(bytes);
        self.peer.arrive(usize::MAX);
        for _ in 0..TURNS_MAX {
            if !cluster.loops().step() {
                assert!(cluster.now_ns() - start_ns < SECOND_NS);
                return;
            }
            cluster.loops().advance(TURN_NS);
        }
        panic!("it does not come to rest");
    }

    fn publish(&mut self, cluster: &mut Cluster, number: u16, len: usize) {
        let alias = AliasOut::None;
        let outgoing =
            Outgoing { topic: 0, qos: QoS::AtLeastOnce, retain: false, expiry_s: None, alias };
        let payload = wire::payload(number.into(), len);
        let packet_id = PacketId::new(number);
        let bytes = wire::publish(self.version, outgoing, packet_id, false, &payload);
        self.send(cluster, &bytes);
    }

    fn events(&mut self) -> Vec<Event> {
        self.buffer.extend_from_slice(&self.peer.receive(usize::MAX));
        let mut events = Vec::new();
        while let Some((event, len)) = wire::decode(&self.buffer, self.version) {
            self.buffer.drain(..len);
            events.push(event);
        }
        events
    }

    /// The messages that came, by number, and their identifiers.
    fn messages(&mut self) -> Vec<(Option<u32>, PacketId)> {
        let message = |event| match event {
            Event::Publish(received) => {
                (wire::number(&received.payload), received.packet_id.unwrap())
            }
            other => panic!("no message: {other:?}"),
        };
        self.events().into_iter().map(message).collect()
    }

    /// The identifiers that PUBACK came for.
    fn acknowledged(&mut self) -> Vec<u16> {
        let id = |event| match event {
            Event::Ack { kind: AckKind::PubAck, packet_id, .. } => packet_id.get(),
            other => panic!("no PUBACK: {other:?}"),
        };
        self.events().into_iter().map(id).collect()
    }
}

/// A broker with one shard and this byte budget, and a client that reads from it.
fn start(queues_bytes_max: u64) -> (Cluster, Line) {
    let mut raw = RawConfig { shards: Some(1), ..RawConfig::default() };
    raw.limits.queues_bytes_max = queues_bytes_max;
    let config = raw.resolve().unwrap();
    let faults = Faults::default();
    let mut cluster = Cluster::new(&config, |bounds| bounds, 1, faults, SECOND_NS).unwrap();
    let mut reader = Line::connect(&mut cluster, Version::V5);
    let wish = Wish { qos: QoS::AtLeastOnce, no_local: false, retain_as_published: false, id: 0 };
    let (id, wanted) = (PacketId::FIRST, [(0, wish, RetainHandling::Always)]);
    reader.send(&mut cluster, &wire::subscribe(Version::V5, id, &wanted));
    assert!(matches!(reader.events()[..], [Event::SubAck { .. }]));
    (cluster, reader)
}

/// No other client does anything then: without this it would stay held back until it is looked at
/// again a second later.
#[test]
fn a_publisher_goes_on_in_the_turn_in_which_its_shard_has_room_again() {
    let (mut cluster, mut reader) = start(1_000);
    let cluster = &mut cluster;
    let mut publisher = Line::connect(cluster, Version::V311);
    publisher.publish(cluster, 1, 5_000);
    assert_eq!(publisher.acknowledged(), [1], "there was room for it");
    for number in 2..10 {
        publisher.publish(cluster, number, 5_000);
        assert_eq!(publisher.acknowledged(), [0; 0], "it would have to wait");
        assert_eq!(cluster.held(0).held_publishers, 1);
        let received = reader.messages();
        let [(Some(last), packet_id)] = received[..] else { panic!("not one: {received:?}") };
        assert_eq!(last, u32::from(number) - 1);
        let ack = wire::ack(Version::V5, AckKind::PubAck, packet_id, ReasonCode::SUCCESS);
        reader.send(cluster, &ack);
        assert_eq!(publisher.acknowledged(), [number], "there is room for it now");
        assert_eq!(cluster.held(0).held_publishers, 0);
    }
}

/// Holds are short and follow each other closely, and together they are longer than any may be.
#[test]
fn a_slow_publisher_whose_messages_are_taken_in_one_by_one_is_not_closed() {
    let (mut cluster, mut reader) = start(1_000);
    let cluster = &mut cluster;
    let mut publisher = Line::connect(cluster, Version::V311);
    publisher.publish(cluster, 1, 5_000);
    assert_eq!(publisher.acknowledged(), [1], "there was room for it");
    for number in 2..20 {
        publisher.publish(cluster, number, 5_000);
        for _ in 0..4 {
            cluster.loops().advance(SECOND_NS);
            publisher.send(cluster, &[]);
        }
        assert_eq!(publisher.acknowledged(), [0; 0], "it is held back for seconds");
        let received = reader.messages();
        let [(_, packet_id)] = received[..] else { panic!("not one: {received:?}") };
        let ack = wire::ack(Version::V5, AckKind::PubAck, packet_id, ReasonCode::SUCCESS);
        reader.send(cluster, &ack);
        assert_eq!(publisher.acknowledged(), [number]);
    }
    assert_eq!(cluster.counter("ended_publishers_total"), 0);
    // One message that cannot be taken in for long is another matter.
    publisher.publish(cluster, 20, 5_000);
    for _ in 0..40 {
        cluster.loops().advance(SECOND_NS);
        publisher.send(cluster, &[]);
    }
    assert_eq!(cluster.counter("ended_publishers_total"), 1);
}

/// The sums that shards share are not exact: what is too little to be told counts for whether there
/// is room, but not for some and for others not. A publisher that is held back for it stays held
/// back.
#[test]
fn a_publisher_at_the_very_edge_of_the_budget_is_not_let_go_on_again_and_again() {
    for first_len in (4_000..5_000).step_by(200) {
        let (mut cluster, _reader) = start(1 << 20);
        let cluster = &mut cluster;
        let mut publisher = Line::connect(cluster, Version::V311);
        let held = (1..1_000).find(|&number| {
            let len = match number {
                1 => first_len,
                2..200 => 5_000,
                _ => 4,
            };
            publisher.publish(cluster, number, len);
            publisher.acknowledged().is_empty()
        });
        assert!(held.is_some_and(|number| number > 200), "held back at {held:?}");
        assert_eq!(cluster.held(0).held_publishers, 1);
    }
}
