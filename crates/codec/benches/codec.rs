//! Nanoseconds per PUBLISH of 128 bytes: split, decode, encode, patch a head.
//!
//! `cargo bench -p tacho-codec`; prints the median of many short rounds, and the fastest one in
//! parentheses.

use std::hint::black_box;
use std::time::Instant;

use tacho_codec::{
    Ack, AckKind, Direction, Packet, PacketId, Publish, PublishHead, PublishProperties, QoS,
    ReasonCode, UserPropertiesBuf, Version, split_frame,
};

/// Short rounds, so that other work on the machine disturbs few of them.
const ROUNDS: usize = 1_001;
const ITERATIONS: u32 = 2_000;

/// Runs `work` repeatedly and prints nanoseconds per call.
fn measure(name: &str, mut work: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ITERATIONS {
                work();
            }
            start.elapsed().as_nanos() as f64 / f64::from(ITERATIONS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:<44} {:>7.1} ns   ({:.1})", rounds[ROUNDS / 2], rounds[0]);
}

fn encoded(publish: &Publish<'_>, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    publish.encode(version, &mut out).expect("a legal packet");
    out
}

fn decode_and_encode(name: &str, publish: &Publish<'_>, version: Version) {
    let bytes = encoded(publish, version);
    measure(&format!("{name}: split and decode"), || {
        let frame = split_frame(black_box(&bytes), 1 << 20).expect("legal").expect("whole");
        let publish = Publish::decode(&frame, version, Direction::ToServer);
        black_box(&publish);
    });
    measure(&format!("{name}: split and decode any packet"), || {
        let frame = split_frame(black_box(&bytes), 1 << 20).expect("legal").expect("whole");
        let packet = Packet::decode(&frame, version, Direction::ToServer);
        black_box(&packet);
    });
    let mut out = Vec::with_capacity(1 << 16);
    measure(&format!("{name}: encode"), || {
        if out.len() > 60_000 {
            out.clear();
        }
        let _ = black_box(publish).encode(version, &mut out);
    });
}

fn main() {
    let payload = [0x5A; 128];
    let qos0 = Publish { topic: "symmetric/topic/0427", payload: &payload, ..Publish::default() };
    let packet_id = PacketId::new(4711);
    let qos1 = Publish { qos: QoS::AtLeastOnce, packet_id, ..qos0 };
    decode_and_encode("3.1.1 QoS 0", &qos0, Version::V311);
    decode_and_encode("3.1.1 QoS 1", &qos1, Version::V311);
    decode_and_encode("5.0 QoS 1", &qos1, Version::V5);

    let mut user_properties = UserPropertiesBuf::new();
    user_properties.push("trace", "0af7651916cd43dd8448eb211c80319c").expect("legal text");
    let properties = PublishProperties {
        message_expiry_s: Some(60),
        content_type: Some("text/plain"),
        user_properties: user_properties.view(),
        ..PublishProperties::default()
    };
    decode_and_encode("5.0 QoS 1, 3 properties", &Publish { properties, ..qos1 }, Version::V5);

    let mut head = PublishHead::new();
    measure("head: encode", || {
        let _ = head.encode(black_box(&qos1), Version::V5);
    });
    let mut out = Vec::with_capacity(1 << 16);
    measure("head: append with payload", || {
        if out.len() > 60_000 {
            out.clear();
        }
        head.append(&mut out, false, false, QoS::AtLeastOnce, black_box(packet_id));
        out.extend_from_slice(&payload);
    });

    let ack = Ack::new(PacketId::FIRST, ReasonCode::SUCCESS);
    measure("PUBACK: encode", || {
        if out.len() > 60_000 {
            out.clear();
        }
        let _ = black_box(&ack).encode(AckKind::PubAck, Version::V5, &mut out);
    });
    let bytes = [0x40, 2, 0, 1];
    measure("PUBACK: split and decode any packet", || {
        let frame = split_frame(black_box(&bytes), 1 << 20).expect("legal").expect("whole");
        let packet = Packet::decode(&frame, Version::V5, Direction::ToServer);
        black_box(&packet);
    });
}
