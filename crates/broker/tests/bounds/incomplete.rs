//! Large packets that stop in the middle, on simulated loops: what they hold is counted as it is
//! allocated, the budget holds within a piece per connection, and other clients are served.

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{Direction, Packet, PacketId, Publish, QoS, Subscribe, SubscribeFilter};
use tacho_codec::{SubscribeOptions, Version, split_frame};
use tacho_net::sim::{Faults, Peer};
use tacho_testkit::connect;

/// Incomplete packets arrive in pieces of so many bytes.
const PIECE: usize = 64 * 1024;
const SECOND_NS: u64 = 1_000_000_000;
const VERSION: Version = Version::V311;

fn cluster(toml: &str, faults: Faults) -> Cluster {
    let raw: RawConfig = toml::from_str(toml).expect("a valid test configuration");
    let config = raw.resolve().expect("consistent");
    Cluster::new(&config, |bounds| bounds, 5, faults, SECOND_NS).expect("starts")
}

fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(VERSION, &mut bytes).unwrap();
    bytes
}

fn large_publish(len: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect();
    encode(&Packet::Publish(Publish { topic: "large", payload: &payload, ..Publish::default() }))
}

/// What the loops hold for all connections.
fn buffered(cluster: &mut Cluster) -> usize {
    let shards = 0..cluster.stats().len();
    shards.filter_map(|shard| cluster.loops().net(shard).map(|net| net.buffered_bytes())).sum()
}

/// Turns until nothing is left to do, and `look` after each of them.
fn settle(cluster: &mut Cluster, mut look: impl FnMut(&mut Cluster)) {
    for _ in 0..1_000_000 {
        if !cluster.loops().step() {
            return;
        }
        look(cluster);
    }
    panic!("the loops never come to rest");
}

fn connected(cluster: &mut Cluster, shard: usize, client_id: &str) -> Peer {
    let peer = cluster.connect(shard);
    let mut request = connect(client_id, VERSION);
    request.keep_alive_s = 0;
    peer.send(&encode(&Packet::Connect(request)));
    peer.arrive(usize::MAX);
    settle(cluster, |_| {});
    assert_eq!(peer.receive(usize::MAX), [0x20, 2, 0, 0], "CONNACK");
    peer
}

/// A client that sends itself a message, again and again.
struct Honest {
    peer: Peer,
    sent: u16,
    /// Bytes that came and are no whole packet yet.
    buffer: Vec<u8>,
    received: u16,
    acknowledged: u16,
}

impl Honest {
    fn new(cluster: &mut Cluster, shard: usize) -> Self {
        let name = format!("honest-{shard}");
        let peer = connected(cluster, shard, &name);
        let options = SubscribeOptions::new(QoS::AtMostOnce);
        peer.send(&encode(&Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(1).unwrap(),
            subscription_id: None,
            filters: vec![SubscribeFilter { filter: &name, options }],
            user_properties: Default::default(),
        })));
        peer.arrive(usize::MAX);
        settle(cluster, |_| {});
        assert_eq!(peer.receive(usize::MAX), [0x90, 3, 0, 1, 0], "SUBACK");
        Self { peer, sent: 0, buffer: Vec::new(), received: 0, acknowledged: 0 }
    }

    fn publish(&mut self, shard: usize) {
        self.sent += 1;
        let topic = format!("honest-{shard}");
        let packet_id = PacketId::new(self.sent);
        let (qos, payload) = (QoS::AtLeastOnce, &[1; 20]);
        let publish = Publish { topic: &topic, qos, packet_id, payload, ..Publish::default() };
        assert!(self.peer.send(&encode(&Packet::Publish(publish))), "an honest client was closed");
        self.peer.arrive(usize::MAX);
    }

    fn read(&mut self) {
        self.buffer.extend_from_slice(&self.peer.receive(usize::MAX));
        let mut used = 0;
        while let Some(frame) = split_frame(&self.buffer[used..], u32::MAX).unwrap() {
            match Packet::decode(&frame, VERSION, Direction::ToClient).unwrap() {
                Packet::Publish(_) => self.received += 1,
                Packet::PubAck(_) => self.acknowledged += 1,
                other => panic!("{other:?}"),
            }
            used += frame.total_len;
        }
        self.buffer.drain(..used);
    }
}

#[test]
fn unfinished_packets_stay_within_the_budget_and_honest_clients_are_served() {
    const CLIENTS: usize = 60;
    const SENT: usize = 600_000;
    const BUDGET: usize = 8_000_000;
    let faults = Faults { short_io_percent: 30, event_delay_percent: 20, ..Faults::default() };
    let text = format!("shards = 2\n[limits]\nbuffers_bytes_max = {BUDGET}");
    let mut cluster = cluster(&text, faults);
    let cluster = &mut cluster;
    let mut honest = [Honest::new(cluster, 0), Honest::new(cluster, 1)];
    let bad: Vec<Peer> =
        (0..CLIENTS).map(|i| connected(cluster, i % 2, &format!("bad-{i}"))).collect();
    let packet = large_publish(1_000_000);
    for peer in &bad {
        peer.set_window(packet.len());
        assert!(peer.send(&packet[..SENT]));
    }
    let mut most = 0;
    for round in 0..400 {
        for peer in &bad {
            peer.arrive(SENT / 200);
        }
        for (shard, client) in honest.iter_mut().enumerate() {
            client.publish(shard);
        }
        settle(cluster, |cluster| most = most.max(buffered(cluster)));
        honest.iter_mut().for_each(Honest::read);
        // A client that sends little is not held back for those that send much.
        for client in &honest {
            assert!(
                client.received + 2 > client.sent,
                "round {round}: {} of {}",
                client.received,
                client.sent
            );
        }
        cluster.loops().advance(SECOND_NS / 10);
    }
    assert!(most > BUDGET * 9 / 10, "the budget was used: {most}");
    assert!(most <= BUDGET + CLIENTS * PIECE, "the budget was exceeded: {most}");
    // The loops hold no more for each client that is left than it has sent, in whole pieces.
    let ended = cluster.counter("ended_incomplete_total") as usize;
    let left = bad.iter().filter(|peer| !peer.is_over()).count();
    assert_eq!((ended + left, left > 5), (CLIENTS, true), "{ended} ended");
    assert_eq!(buffered(cluster), left * SENT.div_ceil(PIECE) * PIECE);
    assert!(left * SENT <= BUDGET);
    for client in &mut honest {
        client.read();
        assert!(client.acknowledged + 2 > client.sent);
    }
    drop(bad);
    for _ in 0..50 {
        settle(cluster, |_| {});
        cluster.loops().advance(SECOND_NS / 10);
    }
    assert_eq!(buffered(cluster), 0);
    honest.iter_mut().for_each(Honest::read);
    for client in &honest {
        assert_eq!((client.received, client.acknowledged), (client.sent, client.sent));
    }
}

#[test]
fn a_header_alone_takes_no_memory_for_what_it_announces() {
    let mut cluster = cluster("shards = 1", Faults::default());
    let cluster = &mut cluster;
    let packet = large_publish(1_000_000);
    let bad: Vec<Peer> = (0..100).map(|i| connected(cluster, 0, &i.to_string())).collect();
    for peer in &bad {
        peer.send(&packet[..20]);
        peer.arrive(usize::MAX);
    }
    settle(cluster, |_| {});
    assert!(buffered(cluster) <= 100 * 64, "{} bytes", buffered(cluster));
}

#[test]
fn large_packets_arrive_whole_whatever_their_kind() {
    let faults = Faults { short_io_percent: 50, ..Faults::default() };
    let mut cluster = cluster("shards = 2", faults);
    let cluster = &mut cluster;
    let subscriber = connected(cluster, 1, "subscriber");
    subscriber.set_window(1 << 22);
    // A SUBSCRIBE of more than one piece.
    let filters: Vec<String> = (0..900).map(|i| format!("{i}/{}", "x".repeat(200))).collect();
    let mut wanted: Vec<&str> = filters.iter().map(String::as_str).collect();
    wanted.push("large");
    let options = SubscribeOptions::default();
    let subscribe = encode(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        subscription_id: None,
        filters: wanted.iter().map(|filter| SubscribeFilter { filter, options }).collect(),
        user_properties: Default::default(),
    }));
    assert!(subscribe.len() > 2 * PIECE);
    // A CONNECT of more than one piece, which moves to another shard.
    let will = vec![7; 60_000];
    let mut request = connect("publisher", VERSION);
    request.username = Some("u");
    request.password = Some(&will);
    request.will = Some(tacho_codec::Will {
        topic: "w",
        payload: &will,
        qos: QoS::AtMostOnce,
        retain: false,
        properties: Default::default(),
    });
    let connect = encode(&Packet::Connect(request));
    assert!(connect.len() > PIECE);
    subscriber.send(&subscribe);
    subscriber.arrive(usize::MAX);
    settle(cluster, |_| {});
    let suback = subscriber.receive(usize::MAX);
    let codes = &suback[suback.len() - 901..];
    assert_eq!((suback[0], codes), (0x90, &[0; 901][..]));
    let packet = large_publish(900_000);
    for shard in 0..2 {
        let publisher = cluster.connect(shard);
        publisher.set_window(1 << 22);
        publisher.send(&[&connect[..], &packet, &packet].concat());
        publisher.arrive(usize::MAX);
        settle(cluster, |_| {});
        assert_eq!(publisher.receive(usize::MAX)[..4], [0x20, 2, 0, 0]);
        let received = subscriber.receive(usize::MAX);
        assert!(received == [&packet[..], &packet].concat(), "{} bytes", received.len());
        assert_eq!(buffered(cluster), 0);
    }
}
