//! Inputs of published vulnerabilities of other brokers; docs/security-tests.md lists them all.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use tacho_codec::{Packet, PacketId, Publish, QoS, Version};
use tacho_testkit::memory::{alone, assert_grew_less_than, resident_bytes};
use tacho_testkit::{Client, PATIENCE, TestBroker, packet};

const MIB: u64 = 1024 * 1024;

/// Sends the last bytes of a connection, which the broker may refuse to read to their end.
fn send_last(client: &mut Client, bytes: &[u8]) {
    client.send_carelessly(bytes);
    let _ = client.stream.shutdown(Shutdown::Write);
}

/// Reads until the broker has closed the connection; the last packet before that.
fn last_frame(client: &mut Client) -> Option<Vec<u8>> {
    std::iter::from_fn(|| client.frame()).last()
}

/// CVE-2023-28366: each repeat was kept.
#[test]
fn repeats_of_a_qos_2_identifier_leave_nothing_behind() {
    let _alone = alone();
    let broker = TestBroker::start(1);
    let payload = [7; 50_000];
    for version in [Version::V311, Version::V5] {
        let mut subscriber = broker.connected("subscriber", version);
        subscriber.subscribe("leak", QoS::AtMostOnce);
        let mut publisher = broker.durable("publisher", version, None);
        let packet_id = PacketId::new(1);
        let qos = QoS::ExactlyOnce;
        let publish =
            Publish { topic: "leak", payload: &payload, qos, packet_id, ..Publish::default() };
        let before = resident_bytes();
        for repeat in 0..2_000 {
            publisher.send(&Packet::Publish(Publish { dup: repeat > 0, ..publish }));
            assert_eq!(publisher.frame().unwrap()[0], 0x50, "PUBREC");
        }
        assert_grew_less_than(before, 32 * MIB);
        publisher.send_notation("62 | 0001");
        assert_eq!(publisher.frame().unwrap()[0], 0x70, "PUBCOMP");
        // It is one message.
        assert_eq!(subscriber.receive().payload.len(), payload.len());
        subscriber.ping();
    }
}

/// CVE-2023-3592: the will of a refused CONNECT was kept.
#[test]
fn wills_with_wrong_properties_leave_nothing_behind() {
    let _alone = alone();
    let broker = TestBroker::start(1);
    let before = resident_bytes();
    let will = "w".repeat(20_000);
    for round in 0..2_000 {
        // A topic alias, a reason string, a payload format of 2, a property twice.
        let properties = ["23 0001", "1f <why>", "01 02", "18 00000001 18 00000002"][round % 4];
        let mut bad = broker.client(Version::V5);
        let connect = format!("10 | <MQTT> 05 2e 003c [] <c> [{properties}] <w> <{will}>");
        send_last(&mut bad, &packet(&connect));
        let answer = last_frame(&mut bad).expect("a CONNACK");
        assert!(answer[0] == 0x20 && answer[3] >= 0x80, "{answer:02x?}");
    }
    assert_grew_less_than(before, 16 * MIB);
    assert_eq!(broker.counter("sessions"), 0);
}

/// CVE-2017-7651, CVE-2023-0809: what came before CONNECT was kept, up to the largest packet.
#[test]
fn packets_before_connect_are_not_kept() {
    let _alone = alone();
    let broker = TestBroker::start(1);
    let before = resident_bytes();
    let mut all = Vec::new();
    for first_byte in [0x20, 0x30, 0x82, 0xa2, 0xf0].repeat(20) {
        let mut bad = broker.client(Version::V5);
        // 200,000 bytes, of which one is missing.
        let mut bytes = vec![first_byte, 0xc0, 0x9a, 0x0c];
        bytes.resize(200_003, 0);
        bad.stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let _ = bad.stream.write_all(&bytes);
        all.push(bad);
    }
    for bad in &mut all {
        assert_eq!(bad.frame(), None, "closed without an answer");
    }
    assert_grew_less_than(before, 16 * MIB);
}

/// CVE-2026-21888: an integer of five bytes was read beyond the properties of CONNECT.
#[test]
fn integers_of_five_bytes_in_connect_are_refused() {
    let _alone = alone();
    let broker = TestBroker::start(1);
    for connect in [
        "10 | <MQTT> 05 02 003c 8080808001 <c>",
        "10 | <MQTT> 05 02 003c ffffffffff <c>",
        "10 | <MQTT> 05 06 003c [] <c> 8080808001 <w> <gone>",
        "10 | <MQTT> 05 06 003c [] <c> ffffff7f <w> <gone>",
    ] {
        let mut bad = broker.client(Version::V5);
        send_last(&mut bad, &packet(connect));
        let answer = last_frame(&mut bad).expect("a CONNACK");
        assert_eq!((answer[0], answer[3]), (0x20, 0x81), "{connect}");
    }
    assert_eq!(broker.counter("protocol_errors_total"), 4);
}

/// CVE-2024-8376, CVE-2025-59946: sequences of SUBSCRIBE and UNSUBSCRIBE freed a subscription
/// twice, or while a message was delivered.
#[test]
fn subscribing_and_unsubscribing_in_bursts_keeps_the_last_state() {
    const BURST: [&str; 7] = [
        "82 | 0001 [] <a/b> 01 <a/+> 02 <a/b> 00",
        "a2 | 0002 [] <a/b> <a/b> <none>",
        "82 | 0003 [] <$share/g/a/b> 01",
        "a2 | 0004 [] <$share/g/a/b> <a/+>",
        "a2 | 0005 [] <$share/g/a/b>",
        "82 | 0006 [] <a/#> 00",
        "a2 | 0007 [] <a/#>",
    ];
    let _alone = alone();
    let broker = TestBroker::start(2);
    let publishers: Vec<Client> =
        (0..4).map(|i| broker.connected(&format!("publisher-{i}"), Version::V5)).collect();
    let mut client = broker.connected("client", Version::V5);
    std::thread::scope(|scope| {
        for mut publisher in publishers {
            scope.spawn(move || {
                for number in 0..500_u32 {
                    publisher.publish("a/b", &number.to_be_bytes(), QoS::AtMostOnce, false);
                }
                publisher.ping();
            });
        }
        for _ in 0..100 {
            let bytes: Vec<u8> = BURST.iter().flat_map(|one| packet(one)).collect();
            client.send_raw(&bytes);
            for (one, id) in BURST.iter().zip(1..) {
                let first_byte = if one.starts_with("82") { 0x90 } else { 0xb0 };
                let answer = loop {
                    let frame = client.frame().expect("still connected");
                    if frame[0] & 0xf0 != 0x30 {
                        break frame;
                    }
                };
                assert_eq!((answer[0], answer[3]), (first_byte, id), "{answer:02x?}");
            }
        }
    });
    client.acknowledge_what_came();
    let mut other = broker.connected("other", Version::V5);
    other.publish("a/b", b"unheard", QoS::AtLeastOnce, false);
    client.ping();
    assert_eq!(broker.counter("subscriptions"), 0);
}

/// CVE-2026-25627: a WebSocket frame shorter than the packet in it was read beyond its end.
#[test]
fn websocket_frames_shorter_than_their_packet_wait_for_the_rest() {
    let _alone = alone();
    let listener = "[[listeners]]\naddress = '127.0.0.1:0'\ntransport = 'ws'";
    let broker = TestBroker::configured(&format!("shards = 1\n{listener}"));
    let mut subscriber = broker.connected("subscriber", Version::V5);
    subscriber.subscribe("#", QoS::AtMostOnce);
    let whole = packet("30 | <t> [] 'the payload of this message'");
    for (cut, is_continued) in [(2, true), (9, true), (2, false), (9, false)] {
        let mut socket = TcpStream::connect(broker.addresses()[1]).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = "GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n";
        socket.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        // Masked with zeros, so that the payload is as it is.
        let mut frame = |data: &[u8]| {
            let mut bytes = vec![0x82, 0x80 | data.len() as u8, 0, 0, 0, 0];
            bytes.extend_from_slice(data);
            socket.write_all(&bytes).unwrap();
        };
        frame(&packet("10 | <MQTT> 05 02 003c [] <ws>"));
        frame(&whole[..cut]);
        if is_continued {
            frame(&whole[cut..]);
            assert_eq!(subscriber.receive().payload, b"the payload of this message");
        }
        drop(socket);
        subscriber.ping();
    }
}
