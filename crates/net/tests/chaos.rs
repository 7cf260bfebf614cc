//! All operations combined: connections echo, pause, move between loops and end at random, with
//! small bounds per turn. A client receives a prefix of what it sent, and all of it unless the
//! server ended the connection.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tacho_net::{ConnId, Detached, LoopConfig, Net, Next, mailboxes};
use tacho_testkit::net::*;

const SHARDS: usize = 3;
const CLIENTS: usize = 24;

/// A small random number generator (xorshift) with the same sequence on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % sides
    }
}

/// Connections whose first byte is an upper-case letter may be ended by the server.
#[derive(Default)]
struct Owner {
    mortal: HashMap<ConnId, bool>,
}

type Shard = Mutex<(Owner, Dice)>;

fn lock(shard: &Shard) -> MutexGuard<'_, (Owner, Dice)> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_away(net: &mut Net<Probe>, owner: &mut Owner, conn: ConnId, unread: &[u8], to: usize) {
    let mortal = owner.mortal.remove(&conn);
    if let Some(mut detached) = net.detach(conn, unread) {
        detached.tag = match mortal {
            None => 0,
            Some(false) => 1,
            Some(true) => 2,
        };
        net.post(to, Mail::Conn(Box::new(detached)));
    }
}

fn take_in(net: &mut Net<Probe>, owner: &mut Owner, detached: Detached<Shared>) {
    let tag = detached.tag;
    let conn = net.attach(detached);
    if tag > 0 {
        owner.mortal.insert(conn, tag == 2);
    }
}

fn chaotic(seed: u64, ended: Arc<AtomicUsize>) -> Probe {
    let owner = Arc::new(Shard::new((Owner::default(), Dice(seed))));
    let (input, closed, mail, timer) =
        (Arc::clone(&owner), Arc::clone(&owner), Arc::clone(&owner), Arc::clone(&owner));
    Probe {
        on_input: Box::new(move |net, conn, data| {
            let (owner, dice) = &mut *lock(&input);
            let mortal = *owner.mortal.entry(conn).or_insert_with(|| data[0].is_ascii_uppercase());
            let len = 1 + dice.roll(data.len() as u64) as usize;
            if dice.roll(2) == 0 {
                net.out(conn).extend_from_slice(&data[..len]);
            } else {
                net.out(conn).push_shared(Arc::from(&data[..len]));
            }
            match dice.roll(12) {
                0 => {
                    let to = dice.roll(SHARDS as u64) as usize;
                    send_away(net, owner, conn, &data[len..], to);
                    return data.len();
                }
                1 => {
                    net.pause_read(conn);
                    net.set_timer(net.now_ns() + dice.roll(2_000_000), conn.index() as u64);
                    return len;
                }
                2 if mortal => net.close(conn),
                3 if mortal && dice.roll(4) == 0 => net.abort(conn),
                _ => {}
            }
            net.resume_read(conn);
            len
        }),
        on_timer: Box::new(move |net, index| {
            // The index may have been reused meanwhile; both connections may be resumed.
            let (owner, dice) = &mut *lock(&timer);
            let conns: Vec<_> = net.open_connections().collect();
            for conn in conns {
                if conn.index() as u64 == index {
                    net.resume_read(conn);
                } else if dice.roll(20) == 0 {
                    // Bytes kept by the loop move along.
                    send_away(net, owner, conn, b"", dice.roll(SHARDS as u64) as usize);
                }
            }
        }),
        on_mail: Box::new(move |net, _, message| {
            if let Mail::Conn(detached) = message {
                take_in(net, &mut lock(&mail).0, *detached);
            }
        }),
        on_closed: Box::new(move |_, conn, _| {
            lock(&closed).0.mortal.remove(&conn);
            ended.fetch_add(1, Ordering::SeqCst);
        }),
        on_turn: Box::new(|_| Next::Sleep),
        ..Probe::default()
    }
}

#[test]
fn chaos_loses_nothing() {
    for seed in 1..=4u64 {
        let ended = Arc::new(AtomicUsize::new(0));
        let loops: Vec<_> = mailboxes(SHARDS)
            .into_iter()
            .enumerate()
            .map(|(shard, mailbox)| {
                let config = LoopConfig {
                    listeners: vec![local()],
                    // Turns end after the least work that they do, or are unlimited.
                    turn_ns_max: seed % 2,
                    batch_writes: seed > 2,
                    read_buffer_bytes: 700,
                    connections_per_turn_max: 3,
                    mails_per_turn_max: 2,
                    events_per_turn_max: 4,
                    output_high_bytes: 1000,
                    output_low_bytes: 100,
                    linger_ns: 5_000_000_000,
                    ..LoopConfig::default()
                };
                let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + shard as u64;
                start_with(config, mailbox, chaotic(seed, Arc::clone(&ended)))
            })
            .collect();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                let mut stream = loops[index % SHARDS].client();
                thread::spawn(move || {
                    let mortal = index % 3 == 0;
                    let mut sent = pattern(20_000 + index * 1000);
                    sent[0] = if mortal { b'M' } else { b'i' };
                    let mut writer = stream.try_clone().unwrap();
                    let bytes = sent.clone();
                    let writing = thread::spawn(move || {
                        let mut dice = Dice(index as u64 + 99);
                        let mut rest = bytes.as_slice();
                        while !rest.is_empty() {
                            let len = (1 + dice.roll(1500) as usize).min(rest.len());
                            if writer.write_all(&rest[..len]).is_err() {
                                return;
                            }
                            rest = &rest[len..];
                        }
                        let _ = writer.shutdown(Shutdown::Write);
                    });
                    let mut got = Vec::new();
                    let result = stream.read_to_end(&mut got);
                    writing.join().unwrap();
                    if mortal {
                        assert!(sent.starts_with(&got), "client {index}");
                    } else {
                        result.unwrap();
                        assert!(got == sent, "client {index}: {} of {}", got.len(), sent.len());
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        eventually("every end is told", || ended.load(Ordering::SeqCst) == CLIENTS);
        for running in &loops {
            eventually("nothing is left", || running.ask(|_, net| net.connections()) == 0);
        }
    }
}
