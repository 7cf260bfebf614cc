//! What bad clients do, and that neither the broker's memory nor the other clients notice.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tacho_codec::{Ack, Connect, Packet, PacketId, Publish, QoS, ReasonCode, Version};
use tacho_testkit::memory::{alone, assert_grew_less_than, resident_bytes};
use tacho_testkit::{Client, PATIENCE, TestBroker, VERSIONS, connect, will};

const MIB: u64 = 1024 * 1024;

/// Packets with something of everything, for a connection of 5.0.
const SAMPLES: [&str; 9] = [
    "10 | <MQTT> 05 2e 003c [11 00000001 26 <k> <v>] <c> [18 00000001 03 <t>] <w> <gone>",
    "34 | <a/b> 0001 [01 01 02 0000000a 08 <r> 09 <id> 03 <t> 26 <k> <v>] 'payload'",
    "82 | 0002 [0b 80 01 26 <k> <v>] <a/+> 2e <$share/g/x> 01",
    "a2 | 0003 [26 <k> <v>] <a/+> <b>",
    "40 | 0004 10 [1f <reason> 26 <k> <v>]",
    "62 | 0001 00 [1f <reason>]",
    "f0 | 18 [15 <method> 16 <data>]",
    "e0 | 04 [11 00000000 1f <reason> 26 <k> <v>]",
    "c0 00",
];

// 5, 60
#[test]
fn packets_cut_anywhere_are_refused_or_waited_for() {
    let _alone = alone();
    let broker = TestBroker::start(2);
    let mut good = broker.connected("good", Version::V5);
    let mut cases = 0;
    for (i, sample) in SAMPLES.iter().enumerate() {
        let whole = tacho_testkit::packet(sample);
        for len in 1..whole.len() {
            // Once with the connection's end in the middle of the packet, once with a length that
            // says that the rest was never meant to come.
            let cut = whole[..len].to_vec();
            let mut framed = cut.clone();
            if len >= 2 {
                framed[1] = (len - 2) as u8;
            }
            for bytes in [cut, framed] {
                let mut bad = if i == 0 {
                    broker.client(Version::V5)
                } else {
                    broker.connected("bad", Version::V5)
                };
                bad.send_carelessly(&bytes);
                bad.stream.shutdown(std::net::Shutdown::Write).unwrap();
                // Whatever it answers, the end comes, and a goodbye names a reason.
                while let Some(frame) = bad.frame() {
                    if frame[0] == 0xe0 {
                        assert!(frame[2] >= 0x80, "{bytes:02x?}: {frame:02x?}");
                    }
                }
                cases += 1;
            }
        }
        good.ping();
    }
    assert!(cases > 300);
}

// 24
#[test]
fn random_bytes_end_only_their_own_connection() {
    let _alone = alone();
    let broker = TestBroker::start(2);
    let mut good = broker.connected("good", Version::V5);
    let mut rng = Rng::with_seed(0x007A_C401);
    for round in 0..300 {
        let version = VERSIONS[round % 3];
        let mut bytes: Vec<u8> = (0..rng.usize(1..200)).map(|_| rng.u8(..)).collect();
        let mut bad = if rng.bool() {
            broker.client(version)
        } else {
            // Behind a CONNECT, and framed, so that it gets to the decoders.
            let len = bytes.len().min(125);
            bytes.truncate(len + 2);
            if bytes.len() >= 2 {
                bytes[1] = (bytes.len() - 2) as u8;
            }
            broker.connected("bad", version)
        };
        bad.send_carelessly(&bytes);
        bad.stream.shutdown(std::net::Shutdown::Write).unwrap();
        while let Some(frame) = bad.frame() {
            assert!(version == Version::V5 || frame[0] != 0xe0, "3.x has no DISCONNECT from us");
        }
    }
    good.ping();
}

// 1
#[test]
fn claimed_lengths_cost_nothing() {
    let _alone = alone();
    let broker = TestBroker::configured("shards = 2\n[limits]\npacket_size_max = 268435460");
    let before = resident_bytes();
    let claims: Vec<_> = (0..200)
        .map(|i| {
            let mut bad = if i % 2 == 0 {
                broker.client(Version::V5)
            } else {
                broker.connected(&format!("claims-{i}"), Version::V5)
            };
            let first = if i % 2 == 0 { 0x10 } else { 0x30 };
            bad.send_raw(&[first, 0xff, 0xff, 0xff, 0x7f, 0, 4, b'M', b'Q', b'T', b'T']);
            bad
        })
        .collect();
    let mut good = broker.connected("good", Version::V5);
    good.ping();
    // Those that have connected may still keep their promise; a CONNECT has a limit of its own.
    tacho_testkit::wait_until("half are there", || broker.counter("connections") == 101);
    assert_eq!(broker.counter("protocol_errors_total"), 100);
    assert_grew_less_than(before, 32 * MIB);
    drop(claims);
}

#[test]
fn long_topics_leave_nothing_behind() {
    let _alone = alone();
    let broker = TestBroker::start(1);
    let mut publisher = broker.connected("publisher", Version::V5);
    let before = resident_bytes();
    for i in 0..3_000 {
        let topic = format!("{i}/{}", "x".repeat(60_000));
        publisher.publish(&topic, b"", QoS::AtLeastOnce, false);
    }
    assert_grew_less_than(before, 64 * MIB);
}

// 32
#[test]
fn too_large_packets_are_told_so() {
    let _alone = alone();
    let broker = TestBroker::configured("shards = 1\n[limits]\npacket_size_max = 10000");
    for (version, packet) in [(Version::V5, "30 ff ff ff 7f"), (Version::V311, "82 91 4e")] {
        let mut bad = broker.connected("bad", version);
        bad.send_notation(packet);
        if version == Version::V5 {
            assert_eq!(bad.expect_disconnect(), ReasonCode::PACKET_TOO_LARGE);
        } else {
            bad.expect_closed();
        }
    }
}

/// Publishes until `enough`, each message read by a good subscriber before the next is sent.
fn flood(broker: &TestBroker, qos: QoS, payload_len: usize, enough: impl Fn() -> bool) -> u32 {
    let mut reader = broker.connected("reader", Version::V5);
    reader.subscribe("flood", qos);
    let mut publisher = broker.connected("publisher", Version::V5);
    let mut payload = vec![0; payload_len];
    let deadline = Instant::now() + PATIENCE;
    let mut sent = 0_u32;
    while !enough() {
        assert!(Instant::now() < deadline, "the limit is never reached: {sent} messages");
        for _ in 0..20 {
            payload[..4].copy_from_slice(&sent.to_be_bytes());
            publisher.publish("flood", &payload, qos, false);
            assert_eq!(reader.receive_and_ack().payload[..4], sent.to_be_bytes());
            sent += 1;
        }
    }
    reader.ping();
    sent
}

// 58
#[test]
fn only_subscribers_that_never_read_lose_qos_0_messages() {
    let _alone = alone();
    for payload_len in [1_000, 50_000] {
        let broker = TestBroker::configured("shards = 2\n[limits]\noutput_bytes_max = 100000");
        let mut deaf: Vec<_> = (0..4)
            .map(|i| {
                let mut deaf = broker.connected(&format!("deaf-{i}"), Version::V311);
                deaf.subscribe("flood", QoS::AtMostOnce);
                deaf
            })
            .collect();
        let before = resident_bytes();
        let dropped = || broker.counter("dropped_output_full_total");
        let sent = flood(&broker, QoS::AtMostOnce, payload_len, || dropped() > 1_000);
        assert_grew_less_than(before, 32 * MIB);
        // One that starts to read gets what had found room, in order, and is served again.
        let late = &mut deaf[0];
        late.send(&Packet::PingReq);
        let mut last = None;
        loop {
            let frame = late.frame().expect("still connected");
            if frame[0] == 0xd0 {
                break;
            }
            let start = frame.len() - payload_len;
            let number = u32::from_be_bytes(frame[start..start + 4].try_into().unwrap());
            assert!(number < sent && last < Some(number));
            last = Some(number);
        }
        late.ping();
    }
}

// 58
#[test]
fn subscribers_that_never_read_qos_1_fill_their_queue_and_no_more() {
    let _alone = alone();
    let broker = TestBroker::configured(
        "shards = 2\n[limits]\noutput_bytes_max = 100000\nsession_queue_len_max = 50\n\
         session_queue_bytes_max = 100000\ninflight_max = 500",
    );
    let mut deaf: Vec<_> = (0..4)
        .map(|i| {
            let mut deaf = broker.connected(&format!("deaf-{i}"), Version::V5);
            deaf.subscribe("flood", QoS::AtLeastOnce);
            deaf
        })
        .collect();
    let before = resident_bytes();
    let dropped = || broker.counter("dropped_queue_full_total");
    flood(&broker, QoS::AtLeastOnce, 5_000, || dropped() > 500);
    assert_grew_less_than(before, 32 * MIB);
    // One that starts to read and acknowledge gets what was kept, without a gap.
    let late = &mut deaf[0];
    let kept = broker.counter("publishes_out_total");
    for number in 0..50_u32 {
        assert_eq!(late.receive_and_ack().payload[..4], number.to_be_bytes());
    }
    assert!(kept > 50);
}

/// A client whose output is full: it subscribed and does not read.
fn deaf(broker: &TestBroker) -> Client {
    let mut deaf = broker.connected("deaf", Version::V5);
    deaf.subscribe("flood", QoS::AtMostOnce);
    let dropped = broker.counter("dropped_output_full_total");
    flood(broker, QoS::AtMostOnce, 15_000, || {
        broker.counter("dropped_output_full_total") > dropped
    });
    deaf
}

// 58
#[test]
fn clients_that_never_read_their_answers_are_bounded() {
    let _alone = alone();
    let broker = TestBroker::configured(
        // One read is handled in one turn, before its answers are sent.
        "shards = 1\n[limits]\noutput_bytes_max = 20000\npacket_size_max = 20000\n\
         turn_us_max = 1000000",
    );
    // PINGREQ: one answer, once there is room for it.
    let mut pinging = deaf(&broker);
    pinging.send_raw(&[0xc0, 0].repeat(50_000));
    pinging.send_notation("82 | 0001 [] <end> 00");
    let (mut answers, mut ended) = (0, false);
    while answers == 0 || !ended {
        let frame = pinging.frame().expect("still connected");
        answers += u32::from(frame[0] == 0xd0);
        ended |= frame[0] == 0x90;
    }
    assert!(answers < 30_000, "{answers} answers");
    // SUBSCRIBE: ended, sooner or later. PUBLISH: no more than may be unacknowledged.
    let filters = "<a> 00 ".repeat(1_000);
    let subscribe = tacho_testkit::packet(&format!("82 | 0001 [] {filters}"));
    let publish = tacho_testkit::packet("32 | <t> 0001 []").repeat(100);
    for (packets, reason) in [(subscribe, 0x97), (publish, 0x93)] {
        let mut bad = deaf(&broker);
        let before = broker.counter("protocol_errors_total");
        tacho_testkit::wait_until("the broker ends it", || {
            bad.send_carelessly(&packets);
            broker.counter("protocol_errors_total") > before
        });
        // If it begins to read in time it learns why.
        let mut last = None;
        while let Some(frame) = bad.frame() {
            last = Some(frame);
        }
        let goodbye = last.filter(|frame| frame[0] == 0xe0);
        let is_right = goodbye.as_ref().is_none_or(|frame| frame[2] == reason);
        assert!(is_right, "{goodbye:?}, not {reason:#x}");
    }
    broker.connected("good", Version::V5).ping();
}

/// One bad client of each kind in turn; what it keeps open is returned.
fn misbehave(broker: &TestBroker, i: usize, rng: &mut Rng) -> Client {
    let name = format!("bad-{i}");
    let version = VERSIONS[i % 3];
    let mut client = broker.client(version);
    let hello = |client: &mut Client| {
        let mut bytes = Vec::new();
        let will = Some(will("last/words", b"gone"));
        let connect = Connect { will, ..connect(&name, version) };
        Packet::Connect(connect).encode(version, &mut bytes).unwrap();
        client.send_carelessly(&bytes);
    };
    match i % 10 {
        0 => {}
        1 => client.send_carelessly(&[0x10, 0x7f, 0, 4, b'M']),
        2 => {
            let noise: Vec<u8> = (0..4096).map(|_| rng.u8(..)).collect();
            client.send_carelessly(&noise);
        }
        3 => client.send_carelessly(&[0x10, 0xff, 0xff, 0xff, 0x7f]),
        4 => {
            hello(&mut client);
            let noise: Vec<u8> = (0..4096).map(|_| rng.u8(..)).collect();
            client.send_carelessly(&noise);
        }
        5 => {
            hello(&mut client);
            client.send_carelessly(&[0x32, 0xff, 0xff, 0xff, 0x7f]);
        }
        6 => {
            hello(&mut client);
            hello(&mut client);
        }
        7 => {
            // A packet that never ends, and then the connection does.
            hello(&mut client);
            client.send_carelessly(&[0x30, 0x80, 0x40, 0, 1, b't']);
            let _ = client.stream.shutdown(std::net::Shutdown::Both);
        }
        kind => {
            hello(&mut client);
            let qos = if kind == 8 { QoS::AtMostOnce } else { QoS::AtLeastOnce };
            let mut subscribe = Vec::new();
            let packet = subscribe_packet("noise", qos);
            packet.encode(version, &mut subscribe).unwrap();
            client.send_carelessly(&subscribe);
        }
    }
    client
}

fn subscribe_packet(filter: &str, qos: QoS) -> Packet<'_> {
    let options = tacho_codec::SubscribeOptions { qos, ..Default::default() };
    Packet::Subscribe(tacho_codec::Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        subscription_id: None,
        filters: vec![tacho_codec::SubscribeFilter { filter, options }],
        user_properties: Default::default(),
    })
}

/// Sets a flag when dropped, also by a panic: the other threads of a scope must not go on for ever.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thousand, or as many as there are descriptors for: both ends are in this process.
fn bad_clients_max() -> usize {
    let descriptors = tacho_net::raise_fd_limit().map_or(1024, |limit| limit.soft);
    usize::try_from(descriptors.saturating_sub(200) / 3).unwrap_or(usize::MAX).min(1_000)
}

// 58
#[test]
fn a_thousand_bad_clients_do_not_disturb_a_good_pair() {
    let _alone = alone();
    let count = bad_clients_max();
    let broker = TestBroker::configured(
        "shards = 2\n[limits]\nconnect_timeout_s = 1\noutput_bytes_max = 65536\n\
         session_queue_len_max = 200\nsession_queue_bytes_max = 200000\ninflight_max = 200",
    );
    let before = resident_bytes();
    let done = AtomicBool::new(false);
    let delivered = std::thread::scope(|scope| {
        let _finally = Finally(&done);
        let good = scope.spawn(|| {
            let mut subscriber = broker.connected("good-sub", Version::V5);
            subscriber.subscribe("good", QoS::ExactlyOnce);
            let mut publisher = broker.connected("good-pub", Version::V5);
            let mut number = 0_u32;
            let mut slowest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) || number < 300 {
                let qos = tacho_testkit::ALL_QOS[number as usize % 3];
                let start = Instant::now();
                publisher.publish("good", &number.to_be_bytes(), qos, false);
                assert_eq!(subscriber.receive_and_ack().payload, number.to_be_bytes());
                slowest = slowest.max(start.elapsed());
                number += 1;
            }
            subscriber.ping();
            (number, slowest)
        });
        scope.spawn(|| {
            // What the deaf ones do not read.
            let mut publisher = broker.connected("noisy", Version::V5);
            let payload = [0; 1_000];
            let mut id = 0;
            while !done.load(Ordering::Relaxed) {
                publisher.publish("noise", &payload, QoS::AtMostOnce, false);
                id = id % 60_000 + 1;
                let packet_id = PacketId::new(id);
                let qos = QoS::AtLeastOnce;
                let publish = Publish { topic: "noise", qos, packet_id, ..Publish::default() };
                publisher.publish_packet(&publish);
            }
        });
        let mut rng = Rng::with_seed(0x007A_C402);
        let kept: Vec<_> = (0..count).map(|i| misbehave(&broker, i, &mut rng)).collect();
        tacho_testkit::wait_until("the half-open ones are gone", || {
            broker.counter("connect_timeouts_total") >= count as u64 * 15 / 100
        });
        assert_grew_less_than(before, 128 * MIB);
        done.store(true, Ordering::Relaxed);
        drop(kept);
        good.join().unwrap()
    });
    println!("{} exchanges, the slowest took {:?}", delivered.0, delivered.1);
    assert!(broker.counter("protocol_errors_total") >= count as u64 * 4 / 10);
    tacho_testkit::wait_until("all bad connections are gone", || {
        broker.counter("connections") <= 3
    });
    assert_grew_less_than(before, 128 * MIB);
}

// 59
#[test]
fn a_flood_of_connections_above_the_limit_is_refused_and_the_others_go_on() {
    let _alone = alone();
    let broker = TestBroker::configured("shards = 2\n[limits]\nconnections_max = 10");
    let mut inside: Vec<_> =
        (0..10).map(|i| broker.connected(&format!("in-{i}"), Version::V5)).collect();
    inside[0].subscribe("t", QoS::AtLeastOnce);
    for round in 0..5 {
        // More at once than the broker keeps to tell them why.
        let mut outside: Vec<_> = (0..150).map(|_| broker.client(Version::V5)).collect();
        for (i, client) in outside.iter_mut().enumerate() {
            let name = format!("out-{i}");
            let mut bytes = Vec::new();
            let packet = Packet::Connect(connect(&name, Version::V5));
            packet.encode(Version::V5, &mut bytes).unwrap();
            client.send_carelessly(&bytes);
        }
        let mut told = 0;
        for client in &mut outside {
            if let Some(frame) = client.frame() {
                assert_eq!((frame[0], frame[3]), (0x20, 0x97));
                told += 1;
                client.expect_closed();
            }
        }
        assert!(told > 0, "some client gets the reason");
        inside[1].publish("t", &[round], QoS::AtLeastOnce, false);
        let message = inside[0].receive();
        assert_eq!(message.payload, [round]);
        let ack = Ack::new(message.packet_id.unwrap(), ReasonCode::SUCCESS);
        inside[0].send(&Packet::PubAck(ack));
    }
    for client in &mut inside {
        client.ping();
    }
    assert!(broker.counter("refused_connections_total") >= 750);
}
