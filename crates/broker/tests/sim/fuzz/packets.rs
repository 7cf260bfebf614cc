//! Packets to send: any legal one, sequences that fit together, and damaged ones.

use std::cell::RefCell;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tacho_codec::{
    Ack, AckKind, Connect, ConnectProperties, Direction, Packet, PacketId, Publish,
    PublishProperties, ReasonCode, Subscribe, SubscribeFilter, SubscribeOptions, UserProperties,
    Version, set_bridge_bit,
};
use tacho_testkit::packets::{acknowledgement, encode};
use tacho_testkit::rng::Rng;
use tacho_testkit::strategies;

use crate::setup::QOS;

/// Arbitrary packets that are kept, per version and direction.
const POOL: usize = 800;

thread_local! {
    static POOLS: RefCell<Vec<Vec<Vec<u8>>>> = const { RefCell::new(Vec::new()) };
}

/// One of the arbitrary packets, which are the same in every run.
fn arbitrary(rng: &mut Rng, version: Version, direction: Direction) -> Vec<u8> {
    POOLS.with_borrow_mut(|pools| {
        if pools.is_empty() {
            for version in Version::ALL {
                pools.push(pool(version, Direction::ToServer));
                pools.push(pool(version, Direction::ToClient));
            }
        }
        let at = Version::ALL.iter().position(|known| *known == version).unwrap() * 2;
        let pool = &pools[at + usize::from(direction == Direction::ToClient)];
        pool[rng.below(pool.len() as u64) as usize].clone()
    })
}

fn pool(version: Version, direction: Direction) -> Vec<Vec<u8>> {
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let strategy = strategies::packet(version, direction);
    let mut draw = || encode(&strategy.new_tree(&mut runner).unwrap().current(), version);
    (0..POOL).map(|_| draw()).collect()
}

/// Anything that a client may send, or may not.
pub(super) fn any(rng: &mut Rng, version: Version) -> Vec<u8> {
    let mut bytes = match rng.below(10) {
        0..3 => arbitrary(rng, version, Direction::ToServer),
        3 => {
            let other = Version::ALL[rng.below(3) as usize];
            arbitrary(rng, other, Direction::ToServer)
        }
        4 if rng.percent(30) => arbitrary(rng, version, Direction::ToClient),
        _ => sensible(rng, version),
    };
    if rng.percent(8) {
        damage(rng, &mut bytes);
    }
    bytes
}

fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.between(1, 3) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(5) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next_u64() as u8,
            2 => bytes.insert(at, rng.next_u64() as u8),
            3 if bytes.len() > 1 => bytes.truncate(at.max(1)),
            _ => bytes[0] = rng.next_u64() as u8,
        }
    }
}

/// A CONNECT that the broker usually accepts.
pub(super) fn connect(rng: &mut Rng, version: Version) -> Vec<u8> {
    let v5 = version.is_v5();
    let connect = Connect {
        version,
        clean_start: rng.percent(50),
        keep_alive_s: if rng.percent(10) { 5 } else { 0 },
        client_id: ["one", "two", "three"][rng.below(3) as usize],
        username: None,
        password: None,
        will: None,
        properties: ConnectProperties {
            session_expiry_s: v5.then_some(100),
            receive_maximum: v5.then_some(rng.between(1, 5) as u16),
            topic_alias_maximum: v5.then_some(rng.below(3) as u16),
            ..ConnectProperties::default()
        },
    };
    let mut bytes = encode(&Packet::Connect(connect), version);
    if !v5 && rng.percent(5) {
        set_bridge_bit(&mut bytes);
    }
    bytes
}

/// Packets of a client that knows what it does, with few identifiers, so that they meet.
fn sensible(rng: &mut Rng, version: Version) -> Vec<u8> {
    // Invariant: not zero.
    let packet_id = PacketId::new(rng.between(1, 6) as u16).expect("from 1 to 6");
    let packet = match rng.below(12) {
        0 => Packet::PingReq,
        1 => Packet::Subscribe(Subscribe {
            packet_id,
            subscription_id: None,
            user_properties: UserProperties::EMPTY,
            filters: vec![SubscribeFilter {
                filter: ["a", "a/+", "#", "$share/g/a", "a/b/c/d/e/f/+/h", "b#"]
                    [rng.below(6) as usize],
                options: SubscribeOptions::new(QOS[rng.below(3) as usize]),
            }],
        }),
        2..7 => {
            let qos = QOS[rng.below(3) as usize];
            Packet::Publish(Publish {
                dup: qos != QOS[0] && rng.percent(30),
                qos,
                retain: rng.percent(30),
                topic: ["a", "a/b", "b", "$SYS/x"][rng.below(4) as usize],
                packet_id: (qos != QOS[0]).then_some(packet_id),
                properties: PublishProperties::default(),
                payload: &[0xA5; 9][..rng.below(10) as usize],
            })
        }
        kind => {
            let ack = Ack::new(packet_id, ReasonCode::SUCCESS);
            acknowledgement(AckKind::ALL[kind as usize % 4], ack)
        }
    };
    encode(&packet, version)
}
