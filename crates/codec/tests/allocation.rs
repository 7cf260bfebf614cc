//! Decoding and encoding PUBLISH, acknowledgements and heads does not allocate.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use tacho_codec::{
    Ack, AckKind, Direction, Packet, PacketId, Publish, PublishHead, QoS, ReasonCode, Version,
    split_frame,
};
use tacho_testkit::notation::bytes;
use tacho_testkit::vectors::INVALID;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // Fails only while the thread ends and its counter is gone; such calls are not counted.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

#[allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]
// SAFETY: all calls are forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

const PUBLISHES: [(Version, &str); 4] = [
    (Version::V31, "32 | <sensor/1/temperature> 0001 'payload'"),
    (Version::V311, "30 | <sensor/1/temperature> 'payload'"),
    (Version::V5, "34 | <sensor/1/temperature> 0001 [] 'payload'"),
    (
        Version::V5,
        "34 | <caf\u{e9}/1/temperature> 0001 [01 01 02 0000003c 23 0001 08 <answer> 09 <id>
            03 <text/plain> 0b 01 0b 02 26 <k> <v> 26 <k> <w>] 'payload'",
    ),
];

#[test]
fn publish_is_decoded_and_encoded_without_allocation() {
    for (version, notation) in PUBLISHES {
        let bytes = bytes(notation);
        let mut out = Vec::with_capacity(1024);
        let mut seen = 0;
        let allocations = allocations_of(|| {
            let frame = split_frame(&bytes, 65_536).unwrap().unwrap();
            let publish = Publish::decode(&frame, version, Direction::ToClient).unwrap();
            for (name, value) in publish.properties.user_properties {
                seen += name.len() + value.len();
            }
            seen += publish.properties.subscription_ids.iter().count();
            publish.encode(version, &mut out).unwrap();
            let packet = Packet::decode(&frame, version, Direction::ToClient).unwrap();
            packet.encode(version, &mut out).unwrap();
        });
        black_box(seen);
        assert_eq!(allocations, 0, "{version} {notation}");
        assert_eq!(out, [&bytes[..], &bytes[..]].concat());
    }
}

#[test]
fn refusing_does_not_allocate() {
    for &(version, direction, notation, _) in INVALID {
        let bytes = bytes(notation);
        if bytes[0] >> 4 != 3 {
            continue;
        }
        let allocations = allocations_of(|| {
            let frame = split_frame(&bytes, 65_536).unwrap().unwrap();
            assert!(Publish::decode(&frame, version, direction).is_err());
        });
        assert_eq!(allocations, 0, "{notation}");
    }
    let claim = [0x30, 0xFF, 0xFF, 0xFF, 0x7F];
    assert_eq!(allocations_of(|| assert!(split_frame(&claim, u32::MAX).unwrap().is_none())), 0);
    assert_eq!(allocations_of(|| assert!(split_frame(&claim, 1_000).is_err())), 0);
}

#[test]
fn heads_and_acknowledgements_are_encoded_without_allocation() {
    let publish = Publish {
        qos: QoS::AtLeastOnce,
        topic: "sensor/1/temperature",
        packet_id: Some(PacketId::FIRST),
        payload: &[0; 128],
        ..Publish::default()
    };
    let mut head = PublishHead::new();
    head.encode(&publish, Version::V5).unwrap();
    let mut out = Vec::with_capacity(64 * 1024);
    let allocations = allocations_of(|| {
        for value in 1..=100 {
            let packet_id = PacketId::new(value);
            head.encode(&publish, Version::V5).unwrap();
            head.append(&mut out, false, false, QoS::ExactlyOnce, packet_id);
            for kind in AckKind::ALL {
                let ack = Ack::new(packet_id.unwrap(), ReasonCode::SUCCESS);
                ack.encode(kind, Version::V5, &mut out).unwrap();
            }
        }
    });
    assert_eq!(allocations, 0);
}

#[test]
fn a_fresh_buffer_grows_once() {
    let (version, notation) = PUBLISHES[3];
    let bytes = bytes(notation);
    let frame = split_frame(&bytes, u32::MAX).unwrap().unwrap();
    let publish = Publish::decode(&frame, version, Direction::ToClient).unwrap();
    let mut out = Vec::new();
    assert_eq!(allocations_of(|| publish.encode(version, &mut out).unwrap()), 1);
}
