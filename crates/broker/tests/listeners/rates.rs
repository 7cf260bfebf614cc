//! How much the clients of a listener may publish per second.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{Direction, Packet, PacketId, Publish, QoS, ReasonCode, Version, split_frame};
use tacho_net::sim::{Faults, Peer};
use tacho_testkit::{Client, connect, wait_until};

use super::{bytes_of, entry};

const SECOND_NS: u64 = 1_000_000_000;

/// A broker on simulated loops with one listener, and a client of it.
struct World {
    cluster: Cluster,
    peer: Peer,
    version: Version,
    buffer: Vec<u8>,
}

impl World {
    fn new(keys: &str, version: Version) -> Self {
        let raw: RawConfig = toml::from_str(&format!("shards = 1\n{}", entry(keys))).unwrap();
        let config = raw.resolve().unwrap();
        let faults = Faults::default();
        let mut cluster = Cluster::new(&config, |bounds| bounds, 1, faults, SECOND_NS).unwrap();
        let peer = cluster.connect(0);
        let mut world = Self { cluster, peer, version, buffer: Vec::new() };
        let hello = bytes_of(&tacho_codec::Connect { keep_alive_s: 10, ..connect("c", version) });
        world.send(&hello);
        assert_eq!(world.arrived(), ["CONNACK"]);
        world
    }

    /// What happens by itself, without time going by.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            if !self.cluster.loops().step() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Lets time go by, and what is due happen at its time.
    fn pass(&mut self, ns: u64) {
        let end_ns = self.cluster.now_ns() + ns;
        while let Some(due_ns) = self.cluster.loops().next_deadline_ns()
            && due_ns <= end_ns
        {
            let now_ns = self.cluster.now_ns();
            self.cluster.loops().advance(due_ns - now_ns);
            self.settle();
        }
        let now_ns = self.cluster.now_ns();
        self.cluster.loops().advance(end_ns - now_ns);
        self.settle();
    }

    fn send(&mut self, bytes: &[u8]) {
        self.peer.send(bytes);
        self.peer.arrive(usize::MAX);
        self.settle();
    }

    /// Sends messages of QoS 1 with these identifiers, and perhaps something behind them.
    fn publish(&mut self, ids: std::ops::RangeInclusive<u16>, len: usize, behind: &[u8]) {
        let mut bytes = Vec::new();
        for id in ids {
            let (qos, packet_id) = (QoS::AtLeastOnce, PacketId::new(id));
            let payload = vec![7; len];
            let publish =
                Publish { topic: "a", payload: &payload, qos, packet_id, ..Publish::default() };
            Packet::Publish(publish).encode(self.version, &mut bytes).unwrap();
        }
        bytes.extend_from_slice(behind);
        self.send(&bytes);
    }

    /// What has come.
    fn arrived(&mut self) -> Vec<String> {
        self.buffer.extend_from_slice(&self.peer.receive(usize::MAX));
        let (mut packets, mut used) = (Vec::new(), 0);
        while let Some(frame) = split_frame(&self.buffer[used..], u32::MAX).unwrap() {
            packets.push(
                match Packet::decode(&frame, self.version, Direction::ToClient).unwrap() {
                    Packet::ConnAck(_) => "CONNACK".to_owned(),
                    Packet::PubAck(ack) => ack.packet_id.get().to_string(),
                    Packet::PingResp => "PINGRESP".to_owned(),
                    Packet::Disconnect(disconnect) => format!("DISCONNECT {}", disconnect.reason),
                    other => panic!("{other:?}"),
                },
            );
            used += frame.total_len;
        }
        self.buffer.drain(..used);
        packets
    }
}

fn numbers(ids: std::ops::RangeInclusive<u16>) -> Vec<String> {
    ids.map(|id| id.to_string()).collect()
}

#[test]
fn a_client_that_publishes_more_is_held_back_and_loses_nothing() {
    let keys = "publish_messages_per_s_max = 10\npublish_messages_burst = 5";
    for version in [Version::V311, Version::V5] {
        let mut world = World::new(keys, version);
        world.publish(1..=40, 10, &[]);
        // The message that exceeds the burst is taken in, too.
        assert_eq!(world.arrived(), numbers(1..=6));
        world.pass(SECOND_NS + SECOND_NS / 20);
        assert_eq!(world.arrived(), numbers(7..=16));
        world.pass(2 * SECOND_NS);
        assert_eq!(world.arrived(), numbers(17..=36));
        world.pass(60 * SECOND_NS / 100);
        assert_eq!(world.arrived(), numbers(37..=40));
        assert!(world.cluster.counter("throttled_rate_total") > 1);
        // After a while it has its burst again.
        world.pass(SECOND_NS);
        world.publish(41..=50, 10, &[]);
        assert_eq!(world.arrived(), numbers(41..=46));
    }
}

#[test]
fn a_client_that_is_held_back_has_its_pings_answered_and_is_not_taken_for_silent() {
    let keys = "publish_messages_per_s_max = 1\npublish_messages_burst = 1";
    let mut world = World::new(keys, Version::V311);
    world.publish(1..=4, 10, &[0xc0, 0]);
    assert_eq!(world.arrived(), ["PINGRESP", "1", "2"]);
    world.send(&[0xc0, 0]);
    assert_eq!(world.arrived(), ["PINGRESP"], "in what is read behind the message");
    // More than is read behind it.
    world.publish(5..=30, 5_000, &[]);
    world.pass(SECOND_NS / 2);
    for _ in 0..27 {
        world.pass(SECOND_NS);
    }
    assert_eq!(world.arrived(), numbers(3..=29), "its keep alive was 10 s");
    world.pass(SECOND_NS);
    assert_eq!(world.arrived(), ["30"]);
}

#[test]
fn bytes_are_limited_too_and_a_message_above_the_burst_is_paid_for_later() {
    let mut world = World::new("publish_bytes_per_s_max = 1000", Version::V5);
    world.publish(1..=1, 4_990, &[]);
    assert_eq!(world.arrived(), ["1"]);
    world.publish(2..=2, 10, &[]);
    assert_eq!(world.arrived(), [""; 0]);
    world.pass(3 * SECOND_NS + SECOND_NS / 2);
    assert_eq!(world.arrived(), [""; 0]);
    world.pass(SECOND_NS);
    assert_eq!(world.arrived(), ["2"]);
}

#[test]
fn a_client_that_publishes_more_is_disconnected_where_the_listener_says_so() {
    let keys = "publish_messages_per_s_max = 10\npublish_messages_burst = 5\n\
                publish_excess = 'disconnect'";
    let mut world = World::new(keys, Version::V5);
    world.publish(1..=5, 10, &[]);
    world.pass(SECOND_NS / 10);
    world.publish(6..=6, 10, &[]);
    assert_eq!(world.arrived(), numbers(1..=6), "no more than it may");
    world.publish(7..=9, 10, &[]);
    let expected = format!("DISCONNECT {}", ReasonCode::MESSAGE_RATE_TOO_HIGH);
    assert_eq!(world.arrived(), ["7".to_owned(), expected]);
    assert_eq!(
        (world.cluster.counter("ended_rate_total"), world.cluster.counter("protocol_errors_total")),
        (1, 0)
    );
}

#[test]
fn a_client_before_5_is_closed_and_those_of_other_listeners_have_no_limit() {
    let keys = "publish_messages_per_s_max = 1\npublish_messages_burst = 3\n\
                publish_excess = 'disconnect'";
    let broker = super::broker_with(2, "", keys);
    let mut client = Client::open(super::tested(&broker), Version::V311);
    client.connect(&connect("c", Version::V311));
    for _ in 0..100 {
        let mut bytes = Vec::new();
        let publish = Publish { topic: "a", payload: b"x", ..Publish::default() };
        Packet::Publish(publish).encode(Version::V311, &mut bytes).unwrap();
        client.send_carelessly(&bytes);
    }
    client.expect_closed();
    wait_until("counted", || broker.counter("ended_rate_total") == 1);
    let mut other = broker.connected("other", Version::V5);
    for _ in 0..50 {
        other.publish("a", b"x", QoS::AtLeastOnce, false);
    }
}

#[test]
fn rates_that_do_not_fit_are_refused_and_others_are_described() {
    let resolve = |keys: &str| {
        let raw: RawConfig = toml::from_str(&entry(keys)).unwrap();
        raw.resolve().map_err(|error| error.to_string())
    };
    for (keys, words) in [
        ("publish_messages_per_s_max = 0", "`publish_messages_per_s_max` must be at least 1"),
        ("publish_bytes_burst = 7", "needs `publish_bytes_per_s_max`"),
        (
            "publish_messages_burst = 7\npublish_bytes_per_s_max = 7",
            "needs `publish_messages_per_s_max`",
        ),
        ("publish_excess = 'hold'", "`publish_excess` needs"),
    ] {
        let refused = resolve(keys).unwrap_err();
        assert!(refused.contains(words) && refused.contains("127.0.0.1:0"), "{keys}: {refused}");
    }
    let text = "publish_messages_per_s_max = 10\npublish_bytes_per_s_max = 100000\n\
                publish_bytes_burst = 1000000\npublish_excess = 'disconnect'";
    let config = resolve(text).unwrap();
    let again: RawConfig = toml::from_str(&config.describe()).unwrap();
    assert_eq!(again.resolve().unwrap().listeners, config.listeners);
    let unknown = entry("publish_excess = 'drop'");
    let unknown = toml::from_str::<RawConfig>(&unknown).err().map(|error| error.to_string());
    assert!(unknown.is_some_and(|error| error.contains("disconnect")));
}
