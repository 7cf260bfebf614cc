//! Large units of input: they arrive in pieces, take memory as they arrive, and are passed whole.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use tacho_net::{ConnId, Filter, Net};
use tacho_testkit::net::*;

const PIECE: usize = 64 * 1024;

type OnInput = Box<dyn FnMut(&mut Net<Probe>, ConnId, &[u8]) -> usize + Send>;

/// Bytes of a unit's length, at its front.
const HEAD: usize = 4;

/// A unit with this much content.
fn unit(len: usize) -> Vec<u8> {
    [&(len as u32).to_be_bytes()[..], &pattern(len)].concat()
}

/// The length of the unit at the front, with its head.
fn unit_len(data: &[u8]) -> Option<usize> {
    let head = data.first_chunk::<HEAD>()?;
    Some(HEAD + u32::from_be_bytes(*head) as usize)
}

/// Tells each whole unit, and expects the rest of one that is not, whose beginning is at most so
/// many bytes.
fn framer(heard: Sender<Vec<u8>>, beginning_max: usize) -> OnInput {
    Box::new(move |net, _, data| {
        let mut used = 0;
        while let Some(len) = unit_len(&data[used..]) {
            let left = data.len() - used;
            if left < len {
                assert!(left <= beginning_max, "{left} bytes of {len} were passed");
                net.expect_unit(len);
                break;
            }
            heard.send(data[used..used + len].to_vec()).unwrap();
            used += len;
        }
        used
    })
}

/// All bytes are changed on the wire.
struct Inverted;

impl Filter for Inverted {
    fn inbound(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        plain.extend(wire.iter().map(|byte| !byte));
        Ok(())
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        wire.extend(plain.iter().map(|byte| !byte));
        Ok(())
    }
}

fn inverted(mut probe: Probe) -> Probe {
    probe.on_accepted = Box::new(|net, conn| net.set_filter(conn, Box::new(Inverted)));
    probe
}

#[test]
fn units_of_any_size_are_passed_whole_and_in_order() {
    for filtered in [false, true] {
        let (heard, hears) = events();
        let probe = Probe { on_input: framer(heard, 2 * PIECE), ..Probe::default() };
        let server = start(if filtered { inverted(probe) } else { probe });
        let lens = [3, 70_000, 0, 1_000_000, PIECE - HEAD, PIECE, 5, 2 * PIECE - HEAD, 200_001, 9];
        let units: Vec<Vec<u8>> = lens.into_iter().map(unit).collect();
        let mut wire = units.concat();
        if filtered {
            wire.iter_mut().for_each(|byte| *byte = !*byte);
        }
        for step in [wire.len(), 100_003, 9_973] {
            let mut client = server.client();
            for piece in wire.chunks(step) {
                write(&mut client, piece);
            }
            for (at, unit) in units.iter().enumerate() {
                assert!(next(&hears) == *unit, "unit {at}, {step} bytes at a time, {filtered}");
            }
            assert!(finish(client).is_empty());
        }
        eventually("nothing is held", || server.ask(|_, net| net.buffered_bytes()) == 0);
    }
}

#[test]
fn memory_is_taken_for_what_has_arrived_and_freed_with_the_connection() {
    let (heard, hears) = events();
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&longest);
    let server = start(Probe {
        on_input: framer(heard, 2 * PIECE),
        on_unit_grew: Box::new(move |net, _, len| {
            assert!(net.buffered_bytes() >= len && net.buffered_bytes() < len + PIECE);
            seen.fetch_max(len, Ordering::SeqCst);
        }),
        ..Probe::default()
    });
    let held = || server.ask(|_, net| net.buffered_bytes());
    let whole = unit(1_000_000);
    let mut client = server.client();
    write(&mut client, &whole[..10]);
    eventually("its head is held", || held() > 0);
    assert!(held() < 4096, "and nothing for what it announces");
    write(&mut client, &whole[10..600_000]);
    eventually("all of it has arrived", || longest.load(Ordering::SeqCst) == 600_000);
    assert_eq!(held(), 10 * PIECE);
    write(&mut client, &whole[600_000..]);
    assert!(next(&hears) == whole);
    eventually("it is free", || held() == 0);
    write(&mut client, &whole[..300_000]);
    eventually("the next one begins", || held() == 5 * PIECE);
    drop(client);
    eventually("it is free, too", || held() == 0);
}

#[test]
fn a_unit_that_is_left_is_passed_again_with_what_is_behind_it() {
    for filtered in [false, true] {
        let (heard, hears) = events();
        let holds = Arc::new(AtomicBool::new(true));
        let hold = Arc::clone(&holds);
        let (mut taken, longest) = (framer(heard, 2 * PIECE), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&longest);
        let probe = Probe {
            on_input: Box::new(move |net, conn, data| {
                let is_whole = unit_len(data).is_some_and(|len| len <= data.len());
                if is_whole && hold.load(Ordering::SeqCst) {
                    seen.fetch_max(data.len(), Ordering::SeqCst);
                    return 0;
                }
                taken(net, conn, data)
            }),
            ..Probe::default()
        };
        let server = start(if filtered { inverted(probe) } else { probe });
        let units = [unit(150_000), unit(7), unit(90_000)];
        let mut wire = units[..2].concat();
        if filtered {
            wire.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let mut client = server.client();
        write(&mut client, &wire);
        eventually("all is passed", || longest.load(Ordering::SeqCst) == wire.len());
        let held = server.ask(|_, net| net.buffered_bytes());
        assert!(held >= wire.len() && held < wire.len() * 5 / 4, "{held}");
        holds.store(false, Ordering::SeqCst);
        server.ask(|_, net| {
            let conn = net.open_connections().next().unwrap();
            net.resume_read(conn);
        });
        assert!(next(&hears) == units[0]);
        assert!(next(&hears) == units[1]);
        let more: Vec<u8> =
            units[2].iter().map(|&byte| if filtered { !byte } else { byte }).collect();
        write(&mut client, &more);
        assert!(next(&hears) == units[2]);
    }
}

#[test]
fn a_large_unit_can_be_kept_without_a_copy() {
    type Kept = Arc<Mutex<Vec<Arc<Vec<u8>>>>>;
    let kept = Kept::default();
    let keeps = Arc::clone(&kept);
    let (heard, hears) = events();
    let server = start(Probe {
        on_input: Box::new(move |net, _, data| {
            let Some(len) = unit_len(data).filter(|len| data.len() >= *len) else {
                net.expect_unit(unit_len(data).unwrap_or(0));
                return 0;
            };
            if let Some(input) = net.shared_input() {
                assert!(std::ptr::eq(&input[..], data));
                keeps.lock().unwrap().push(Arc::clone(input));
            }
            heard.send(()).unwrap();
            len
        }),
        ..Probe::default()
    });
    let mut client = server.client();
    let (large, small) = (unit(500_000), unit(10));
    for unit in [&small, &large, &small] {
        write(&mut client, unit);
        next(&hears);
    }
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), 1, "small ones are in the buffer of the loop");
    assert!(*kept[0] == large);
    assert_eq!(kept[0].capacity(), large.len());
    // It belongs to the handler alone.
    eventually("the loop has let it go", || Arc::strong_count(&kept[0]) == 1);
    assert_eq!(server.ask(|_, net| net.buffered_bytes()), 0);
}

#[test]
fn the_beginning_of_a_unit_moves_with_its_connection() {
    let (heard, hears) = events();
    let server = start(Probe { on_input: framer(heard, 250_000), ..Probe::default() });
    let held = || server.ask(|_, net| net.buffered_bytes());
    let whole = unit(400_000);
    let mut client = server.client();
    write(&mut client, &whole[..250_000]);
    eventually("it has arrived", || held() == 4 * PIECE);
    server.ask(|_, net| {
        let conn = net.open_connections().next().unwrap();
        let detached = net.detach(conn, b"").unwrap();
        assert_eq!(net.buffered_bytes(), 0);
        assert_eq!(detached.unread().len(), 250_000);
        net.attach(detached);
    });
    eventually("it is counted again", || held() == 4 * PIECE);
    write(&mut client, &whole[250_000..]);
    assert!(next(&hears) == whole);
}
