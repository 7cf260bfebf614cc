//! What waits for another broker that cannot be reached, as the broker dies again and again: every
//! message that was acknowledged, once.

use tacho_broker::RawConfig;
use tacho_codec::{
    AckKind, ConnAck, ConnAckProperties, Packet, PacketId, Publish, QoS, ReasonCode, Version,
};
use tacho_net::sim::{Faults, Peer};

use crate::durable_broker::{Client, Death, DurableBroker, Seen};
use tacho_testkit::packets::encode;

const SEEDS: u64 = 30;
const TOPICS: u16 = 5;
/// No broker is there, and the link does not retry while a test runs.
const BRIDGE: &str = "[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\nconnections = 4\n\
                      retry_first_s = 86400\nretry_longest_s = 86400\n\
                      [[bridges.egress]]\nfilter = 't/#'\n";

fn configure(raw: &mut RawConfig, bridge: &str) {
    raw.bridges = toml::from_str::<RawConfig>(bridge).unwrap().bridges;
}

/// The publisher releases what the broker has received.
fn receive(publisher: &mut Client, unreceived: &mut Vec<u16>) {
    for seen in publisher.all() {
        if let Seen::Ack(AckKind::PubRec, id, reason) = seen {
            assert_eq!(reason, ReasonCode::SUCCESS);
            unreceived.retain(|known| *known != id);
            publisher.acknowledge(AckKind::PubRel, id);
        }
    }
}

fn run(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let shards = rng.usize(1..=3);
    let narrow = rng.bool();
    let faults = Faults {
        mail_delay_percent: rng.u8(..60),
        event_delay_percent: rng.u8(..40),
        ..Faults::default()
    };
    let mut broker = DurableBroker::with_faults(seed, shards, faults, |raw| {
        configure(raw, BRIDGE);
        if narrow {
            // Fan-outs go on in later turns.
            raw.limits.deliveries_per_turn_max = 1;
        }
    });
    let mut publisher = broker.lasting("publisher");
    let mut unreceived: Vec<u16> = Vec::new();
    let mut next = 0;
    let topic = |id: u16| format!("t/{}", id % TOPICS);
    for _ in 0..rng.u32(2..5) {
        for _ in 0..rng.u32(1..20) {
            next += 1;
            publisher.publish(&topic(next), &next.to_string(), QoS::ExactlyOnce, next);
            unreceived.push(next);
            for _ in 0..rng.u32(..6) {
                match rng.u8(..4) {
                    0 => drop(broker.cluster.commit()),
                    1 => receive(&mut publisher, &mut unreceived),
                    _ => drop(broker.cluster.loops().step()),
                }
            }
        }
        receive(&mut publisher, &mut unreceived);
        broker.restart(if rng.bool() { Death::Killed } else { Death::PowerCut });
        publisher = broker.resumed("publisher");
        for id in &unreceived {
            publisher.publish_with(&topic(*id), &id.to_string(), QoS::ExactlyOnce, *id, |mut p| {
                p.dup = true;
                p
            });
        }
        broker.commit();
        receive(&mut publisher, &mut unreceived);
        broker.commit();
        assert!(unreceived.is_empty(), "seed {seed}: {unreceived:?} are not acknowledged");
        let held: usize = (0..shards).map(|shard| broker.cluster.held(shard).queue_len).sum();
        assert_eq!(held, usize::from(next), "seed {seed}: {shards} shards");
    }
}

#[test]
fn messages_queued_for_a_remote_broker_arrive_once_after_a_crash_at_any_point() {
    for seed in 0..SEEDS {
        assert!(std::panic::catch_unwind(|| run(seed)).is_ok(), "failing seed: {seed}");
    }
}

const INCOMING: &str = "[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\n\
                        [[bridges.ingress]]\nfilter = 'in/#'\n";

/// The other end of the connection that the bridge has begun: it says CONNACK and this.
fn other_end(broker: &mut DurableBroker, behind: &[u8]) -> Peer {
    let (_, peer) = broker.cluster.loops().begun(0).remove(0);
    let properties = ConnAckProperties::default();
    let connack = ConnAck { session_present: false, reason: ReasonCode::SUCCESS, properties };
    say(&peer, &[&encode(&Packet::ConnAck(connack), Version::V5), behind].concat());
    broker.settle();
    peer
}

fn say(peer: &Peer, bytes: &[u8]) {
    peer.send(bytes);
    peer.arrive(usize::MAX);
}

fn incoming(payload: &str, id: u16) -> Vec<u8> {
    let (payload, packet_id) = (payload.as_bytes(), PacketId::new(id));
    let (topic, qos) = ("in/a", QoS::AtLeastOnce);
    let publish = Publish { topic, payload, qos, packet_id, ..Publish::default() };
    encode(&Packet::Publish(publish), Version::V5)
}

// What was looked at behind the packet at which a connection was held back was taken for looked at
// on the next one.
#[test]
fn a_bridge_that_was_held_back_reads_its_next_connection_from_the_beginning() {
    let mut broker = DurableBroker::configured(1, |raw| configure(raw, INCOMING));
    let mut receiver = broker.lasting("receiver");
    broker.subscribe(&mut receiver, "in/#", QoS::AtLeastOnce);
    let peer = other_end(&mut broker, b"");
    broker.fill();
    say(&peer, &[incoming(&"x".repeat(100), 1), incoming("y", 2)].concat());
    broker.settle();
    drop(peer);
    broker.settle();
    // It connects again.
    broker.sleep(2);
    let peer = other_end(&mut broker, &incoming("z", 1));
    broker.make_space();
    broker.sleep(1);
    broker.commit();
    let seen = receiver.all();
    let is_z = |seen: &Seen| matches!(seen, Seen::Message { payload, .. } if payload == "z");
    assert!(matches!(&*seen, [one] if is_z(one)), "{seen:?}");
    let puback = &[0x40, 0x02, 0x00, 0x01][..];
    let said = peer.receive(usize::MAX);
    assert!(said.windows(4).any(|bytes| bytes == puback), "{said:02x?}");
}
