use std::collections::BTreeMap;

use tacho_codec::QoS;

use super::super::slot::Progress;
use super::*;
use crate::Delivery;

fn slot(message: u32) -> Slot<u32> {
    Slot::publish(u64::from(message), Delivery::new(QoS::AtLeastOnce, message))
}

fn message(slot: &Slot<u32>) -> u32 {
    slot.delivery.as_ref().expect("a live slot has a message").message
}

/// Pushes `message` and sends it.
fn send(window: &mut Window<u32>, message: u32, width: usize) -> PacketId {
    assert!(window.make_room(width));
    let (packet_id, _) = window.push(slot(message));
    while !window.is_sent() {
        assert!(window.next_unsent().is_some());
        window.advance();
    }
    packet_id
}

fn resend(window: &mut Window<u32>) -> Vec<(PacketId, u32)> {
    window.rewind();
    let mut sent = Vec::new();
    while let Some((packet_id, slot)) = window.next_unsent() {
        slot.progress = Progress::Published;
        sent.push((packet_id, message(slot)));
        window.advance();
    }
    sent
}

#[test]
fn identifiers_are_consecutive_and_wrap_from_65535_to_1() {
    let mut window = Window::new();
    for n in 0..140_000_u32 {
        let packet_id = send(&mut window, n, 10);
        assert_eq!(u32::from(packet_id.get()), n % 65_535 + 1);
        assert_eq!(window.finish(packet_id).map(|slot| message(&slot)), Some(n));
    }
    assert_eq!(window.live(), 0);
    assert!(window.ring.is_empty());
}

#[test]
fn a_blocked_front_neither_stops_the_ring_nor_loses_its_identifier() {
    let mut window = Window::new();
    let blocked = send(&mut window, 0, 4);
    // Twice through all identifiers, so that the allocation reaches the blocked one.
    for n in 1..140_000 {
        let packet_id = send(&mut window, n, 4);
        assert_ne!(packet_id, blocked);
        assert!(window.finish(packet_id).is_some());
        assert!(window.ring.len() <= SPAN_MIN + 1);
    }
    assert_eq!(resend(&mut window), [(blocked, 0)]);
    assert_eq!(window.finish(blocked).map(|slot| message(&slot)), Some(0));
    assert!(window.finish(blocked).is_none());
    assert_eq!(window.live(), 0);
}

#[test]
fn an_unsent_front_refuses_new_slots_instead_of_growing() {
    let mut window = Window::new();
    let front = send(&mut window, 0, 4);
    for n in 1..SPAN_MIN as u32 {
        let packet_id = send(&mut window, n, 4);
        window.finish(packet_id);
    }
    window.rewind();
    assert!(!window.make_room(4), "the front has to be retransmitted first");
    assert_eq!(window.next_unsent().map(|(packet_id, _)| packet_id), Some(front));
    window.advance();
    assert!(window.make_room(4));
}

#[test]
fn all_identifiers_can_be_in_use_but_one() {
    let mut window = Window::new();
    while window.make_room(IDS) {
        window.push(slot(0));
    }
    assert_eq!(window.live(), IDS - 1);
}

#[test]
fn reserved_identifiers_are_not_sent_and_end_with_the_connection() {
    let mut window: Window<u32> = Window::new();
    assert!(window.make_room(4));
    let (reserved, _) = window.push(Slot::reserved());
    assert!(window.is_sent());
    let sent = send(&mut window, 7, 4);
    assert_eq!(window.get_mut(reserved).map(|slot| slot.stage), Some(Stage::Reserved));
    assert_eq!(resend(&mut window), [(sent, 7)]);
    assert!(window.get_mut(reserved).is_none());
}

/// Random operations against a plain map in order of sending.
#[test]
fn the_window_agrees_with_a_map() {
    let mut state = 1_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for width in [1, 3, 40, 100] {
        let mut window = Window::new();
        let mut model: BTreeMap<u32, PacketId> = BTreeMap::new();
        for n in 0..20_000 {
            if model.len() < width && window.make_room(width) {
                let packet_id = send(&mut window, n, width);
                assert!(!model.values().any(|used| *used == packet_id), "{packet_id} is in use");
                model.insert(n, packet_id);
            }
            // Mostly the newest finish first, so that old ones become stragglers.
            if random(3) > 0 && !model.is_empty() {
                let skip = random(model.len().min(3));
                let (&n, &packet_id) = model.iter().rev().nth(skip).expect("enough entries");
                model.remove(&n);
                assert_eq!(window.get_mut(packet_id).map(|slot| message(slot)), Some(n));
                assert_eq!(window.finish(packet_id).map(|slot| message(&slot)), Some(n));
            }
            assert_eq!(window.live(), model.len());
            assert!(window.ring.len() <= (2 * width).max(SPAN_MIN) + width);
            if random(500) == 0 {
                let expected: Vec<_> = model.iter().map(|(n, id)| (*id, *n)).collect();
                assert_eq!(resend(&mut window), expected);
            }
        }
        let drained = window.drain().filter(|(_, slot)| slot.is_live());
        let drained: Vec<_> = drained.map(|(id, slot)| (message(&slot), id)).collect();
        assert_eq!(drained, model.into_iter().collect::<Vec<_>>());
    }
}

/// A restored window with exchanges of these identifiers, in the order of sending.
fn restored(ids: &[u16], width: usize) -> Window<u32> {
    let slots = ids
        .iter()
        .zip(0..)
        .map(|(&packet_id, message)| (PacketId::new(packet_id).expect("not zero"), slot(message)));
    Window::restore(slots.collect(), width)
}

fn ids(sent: &[(PacketId, u32)]) -> Vec<u16> {
    sent.iter().map(|(packet_id, _)| packet_id.get()).collect()
}

#[test]
fn a_restored_window_sends_in_order_whatever_the_identifiers() {
    for given in [
        &[][..],
        &[1],
        &[65_535],
        &[3, 4, 7, 12],
        &[65_533, 65_535, 2, 3],
        &[500, 7, 9],
        &[9, 8, 7],
        &[7, 3, 9],
        &[40_000, 10, 20_000, 30_000],
    ] {
        let mut window = restored(given, 10);
        assert_eq!(window.live(), given.len());
        let sent = resend(&mut window);
        assert_eq!(ids(&sent), given);
        assert!(sent.iter().map(|(_, message)| *message).eq(0..given.len() as u32), "{given:?}");
        for (packet_id, n) in sent {
            assert_eq!(window.finish(packet_id).map(|slot| message(&slot)), Some(n));
        }
        assert_eq!(window.live(), 0);
        assert!(window.ring.is_empty() && window.stragglers.is_none());
    }
}

#[test]
fn new_identifiers_start_behind_the_newest_restored_one_and_skip_the_others() {
    let given = [9, 65_000, 17, 12, 14];
    let mut window = restored(&given, 10);
    resend(&mut window);
    assert_eq!(send(&mut window, 100, 10).get(), 15);
    window.finish(PacketId::new(15).expect("not zero"));
    // Once through all identifiers.
    for n in 0..IDS as u32 {
        let packet_id = send(&mut window, n, 10).get();
        assert!(!given.contains(&packet_id), "{packet_id} is in use");
        window.finish(PacketId::new(packet_id).expect("not zero"));
    }
    assert_eq!(ids(&resend(&mut window)), given);
}

#[test]
fn a_restored_ring_is_no_longer_than_the_window_needs() {
    let window = restored(&[1, 1_000, 1_001], 10);
    assert_eq!(window.ring.len(), 2);
    let window = restored(&[1, 1_000, 1_001], 1_000);
    assert_eq!(window.ring.len(), 1_001);
}

/// Random operations, with random restarts that keep the messages in flight.
#[test]
fn a_window_survives_restarts() {
    let mut state = 7_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for width in [1, 2, 9, 70] {
        let mut window = Window::new();
        let mut model: BTreeMap<u32, PacketId> = BTreeMap::new();
        for n in 0..10_000 {
            if model.len() < width && window.make_room(width) {
                let packet_id = send(&mut window, n, width);
                assert!(!model.values().any(|used| *used == packet_id), "{packet_id} is in use");
                model.insert(n, packet_id);
            }
            if random(3) > 0 && !model.is_empty() {
                let skip = random(model.len());
                let (&n, &packet_id) = model.iter().nth(skip).expect("enough entries");
                model.remove(&n);
                assert_eq!(window.finish(packet_id).map(|slot| message(&slot)), Some(n));
            }
            if random(100) == 0 {
                let slots = model.iter().map(|(&n, &packet_id)| (packet_id, slot(n)));
                window = Window::restore(slots.collect(), width);
                let expected: Vec<_> = model.iter().map(|(n, id)| (*id, *n)).collect();
                assert_eq!(resend(&mut window), expected);
            }
        }
    }
}
