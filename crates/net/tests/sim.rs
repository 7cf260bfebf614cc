//! Simulated loops: the same handlers without sockets, threads and clock.
#![cfg(feature = "sim")]
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::io;

use tacho_net::sim::{Faults, Peer, Simulation};
use tacho_net::{Closed, ConnId, Detached, Handler, LoopConfig, Net, mailboxes};

enum Mail {
    Number(u64),
    Conn(Box<Detached<Vec<u8>>>),
}

/// Echoes; a byte `m` moves the connection to the next shard, `n` posts a number there, `i`
/// requests a call of `idle`, `c` closes, `a` aborts, `L` adds a large output.
#[derive(Default)]
struct Echo {
    numbers: Vec<(usize, u64)>,
    fired: Vec<(u64, u64)>,
    closed: Vec<String>,
    drained: usize,
    asks: bool,
    idle: usize,
    next_number: u64,
}

impl Handler for Echo {
    type Mail = Mail;
    type Shared = Vec<u8>;

    fn accepted(&mut self, net: &mut Net<Self>, _: ConnId, _: usize) {
        net.set_timer(net.now_ns() + 5_000_000, 7);
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let next = (net.shard() + 1) % net.shards();
        match data[0] {
            b'm' => {
                if let Some(detached) = net.detach(conn, &data[1..]) {
                    net.post(next, Mail::Conn(Box::new(detached)));
                }
                return data.len();
            }
            b'n' => {
                net.post(next, Mail::Number(self.next_number));
                self.next_number += 1;
            }
            b'i' => self.asks = true,
            b'c' => net.close(conn),
            b'a' => net.abort(conn),
            _ => {}
        }
        net.out(conn).extend_from_slice(&data[..1]);
        if data[0] == b'L' {
            net.out(conn).push_shared(vec![b'l'; 100_000]);
        }
        1 + if data.len() > 1 && net.is_open(conn) { self.input(net, conn, &data[1..]) } else { 0 }
    }

    fn closed(&mut self, _: &mut Net<Self>, _: ConnId, why: Closed) {
        self.closed.push(match why {
            Closed::ByPeer => "peer".into(),
            Closed::ByUs => "us".into(),
            Closed::Error(error) => format!("{:?}", error.kind()),
        });
    }

    fn drained(&mut self, _: &mut Net<Self>, _: ConnId) {
        self.drained += 1;
    }

    fn turn_ended(&mut self, net: &mut Net<Self>) {
        if self.asks {
            net.tell_idle();
        }
    }

    fn idle(&mut self, _: &mut Net<Self>) {
        self.asks = false;
        self.idle += 1;
    }

    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        self.fired.push((net.now_ns(), token));
    }

    fn mail(&mut self, net: &mut Net<Self>, from: usize, mail: Mail) {
        match mail {
            Mail::Number(number) => self.numbers.push((from, number)),
            Mail::Conn(detached) => {
                net.attach(*detached);
            }
        }
    }
}

fn simulation(shards: usize, seed: u64, faults: Faults) -> Simulation<Echo> {
    let config =
        || LoopConfig { output_high_bytes: 1000, output_low_bytes: 100, ..LoopConfig::default() };
    let boxes = mailboxes(shards).into_iter();
    let members = boxes.map(|mailbox| (config(), mailbox, Echo::default()));
    Simulation::new(seed, faults, 1_000_000_000, members)
}

fn all_bad() -> Faults {
    Faults {
        mail_delay_percent: 70,
        event_delay_percent: 50,
        short_io_percent: 60,
        turn_ns_max: 1_000_000,
        stall_percent: 10,
        stall_ns_max: 100_000,
        ..Faults::default()
    }
}

/// Steps until no work is left; returns the bytes that the peer received.
fn settle(simulation: &mut Simulation<Echo>, peer: &Peer) -> Vec<u8> {
    let mut got = Vec::new();
    for _ in 0..100_000 {
        peer.arrive(3);
        let stepped = simulation.step();
        simulation.advance(1_000);
        let bytes = peer.receive(usize::MAX);
        let quiet = bytes.is_empty() && peer.in_transit() == 0;
        got.extend(bytes);
        let due = simulation.next_deadline_ns().is_some_and(|at| at <= simulation.now_ns());
        if !stepped && quiet && !due {
            return got;
        }
    }
    panic!("there is always more work");
}

#[test]
fn bytes_are_echoed_in_order_under_all_delays() {
    for seed in 0..200 {
        let mut simulation = simulation(1 + seed as usize % 3, seed, all_bad());
        let peer = simulation.connect(0, 0);
        peer.set_window(10);
        let sent: Vec<u8> = (0..300_u32).map(|i| b'A' + (i % 11) as u8).collect();
        peer.send(&sent);
        assert_eq!(settle(&mut simulation, &peer), sent, "seed {seed}");
    }
}

#[test]
fn a_connection_moves_with_its_unread_bytes() {
    for seed in 0..200 {
        let mut simulation = simulation(3, seed, all_bad());
        let peer = simulation.connect(0, 0);
        peer.send(b"1m2m3mm4");
        assert_eq!(settle(&mut simulation, &peer), b"1234", "seed {seed}");
        let homes = (0..3).map(|shard| simulation.net(shard).unwrap().connections());
        assert_eq!(homes.collect::<Vec<_>>(), [0, 1, 0], "seed {seed}");
    }
}

#[test]
fn mails_of_one_sender_keep_their_order() {
    for seed in 0..200 {
        let faults = Faults { mail_overtakes: seed % 2 == 0, ..all_bad() };
        let mut simulation = simulation(2, seed, faults);
        let (one, other) = (simulation.connect(0, 0), simulation.connect(1, 0));
        one.send(&[b'n'; 50]);
        other.send(&[b'n'; 20]);
        other.arrive(usize::MAX);
        settle(&mut simulation, &one);
        let expected = |from: usize, count| (0..count).map(move |n| (from, n)).collect::<Vec<_>>();
        assert_eq!(simulation.handler(1).numbers, expected(0, 50), "seed {seed}");
        assert_eq!(simulation.handler(0).numbers, expected(1, 20), "seed {seed}");
    }
}

#[test]
fn time_advances_only_on_command_and_timers_are_not_early() {
    let mut simulation = simulation(1, 1, Faults::default());
    let _peer = simulation.connect(0, 0);
    assert!(simulation.step());
    while simulation.step() {}
    assert!(simulation.handler(0).fired.is_empty());
    let deadline_ns = simulation.next_deadline_ns().unwrap();
    simulation.advance(deadline_ns - simulation.now_ns());
    while simulation.handler(0).fired.is_empty() {
        if !simulation.step() {
            simulation.advance(100_000);
        }
    }
    let (at_ns, token) = simulation.handler(0).fired[0];
    assert_eq!(token, 7);
    assert!((1_005_000_000..1_008_000_000).contains(&at_ns), "{at_ns}");
}

#[test]
fn a_handler_is_told_once_that_its_loop_is_idle() {
    for seed in 0..50 {
        let mut simulation = simulation(1, seed, all_bad());
        let peer = simulation.connect(0, 0);
        peer.send(b"1i234");
        assert_eq!(settle(&mut simulation, &peer), b"1i234", "seed {seed}");
        assert_eq!(simulation.handler(0).idle, 1, "seed {seed}");
        peer.send(b"5");
        settle(&mut simulation, &peer);
        assert_eq!(simulation.handler(0).idle, 1, "seed {seed}: not requested");
    }
}

#[test]
fn output_backs_up_behind_a_peer_that_does_not_read() {
    let mut simulation = simulation(1, 3, Faults::default());
    let peer = simulation.connect(0, 0);
    peer.set_window(500);
    peer.send(b"L");
    peer.arrive(1);
    while simulation.step() {}
    assert_eq!(peer.waiting(), 500, "the window is full");
    assert_eq!(simulation.handler(0).drained, 0);
    assert_eq!(settle(&mut simulation, &peer).len(), 100_001);
    assert_eq!(simulation.handler(0).drained, 1, "called once");
}

#[test]
fn ends_are_distinguished() {
    let ended = |end: fn(&Peer)| {
        let mut simulation = simulation(1, 5, Faults::default());
        let peer = simulation.connect(0, 0);
        peer.send(b"xy");
        peer.arrive(usize::MAX);
        while simulation.step() {}
        end(&peer);
        let got = settle(&mut simulation, &peer);
        // A closed connection waits for the peer's FIN, for a second at most.
        simulation.advance(2_000_000_000);
        settle(&mut simulation, &peer);
        assert!(peer.is_forgotten());
        assert_eq!(simulation.net(0).unwrap().connections(), 0);
        (simulation.handler(0).closed.join(" "), String::from_utf8(got).unwrap(), peer.was_reset())
    };
    let said = |why: &str, got: &str, reset| (why.to_owned(), got.to_owned(), reset);
    assert_eq!(ended(Peer::finish), said("peer", "xy", false));
    assert_eq!(ended(Peer::reset), said("ConnectionReset", "", true));
    assert_eq!(ended(|peer| assert!(peer.send(b"c"))), said("us", "xy", false));
    assert_eq!(ended(|peer| assert!(peer.send(b"a"))), said("us", "", true));
}

#[test]
fn connections_are_refused_when_descriptors_run_out() {
    let mut simulation = simulation(1, 1, Faults { refuse_percent: 100, ..Faults::default() });
    let peer = simulation.connect(0, 0);
    while simulation.step() {}
    assert!(peer.is_over() && peer.is_forgotten());
    assert_eq!(simulation.net(0).unwrap().counters().refused, 1);
    assert_eq!(simulation.net(0).unwrap().counters().accepted, 0);
}

#[test]
fn a_simulated_loop_connects_to_the_holder_of_the_other_end() {
    #[derive(Default)]
    struct Caller(Vec<String>);
    impl Handler for Caller {
        type Mail = ();
        type Shared = Vec<u8>;
        fn started(&mut self, net: &mut Net<Self>) {
            let conn = net.connect("127.0.0.1:1".parse().unwrap(), None).unwrap();
            net.out(conn).extend_from_slice(b"hello");
        }
        fn accepted(&mut self, _: &mut Net<Self>, _: ConnId, _: usize) {}
        fn connected(&mut self, _: &mut Net<Self>, _: ConnId, result: io::Result<()>) {
            self.0.push(format!("{:?}", result.map_err(|error| error.kind())));
        }
        fn input(&mut self, _: &mut Net<Self>, _: ConnId, data: &[u8]) -> usize {
            self.0.push(String::from_utf8(data.to_vec()).unwrap());
            data.len()
        }
        fn closed(&mut self, _: &mut Net<Self>, _: ConnId, _: Closed) {
            self.0.push("closed".to_owned());
        }
    }
    let begin = || {
        let members =
            mailboxes(1).into_iter().map(|b| (LoopConfig::default(), b, Caller::default()));
        let mut simulation = Simulation::new(1, Faults::default(), 1, members);
        let (to, peer) = simulation.begun(0).remove(0);
        assert_eq!(to.to_string(), "127.0.0.1:1");
        (simulation, peer)
    };
    let (mut simulation, peer) = begin();
    while simulation.step() {}
    assert_eq!(peer.receive(usize::MAX), b"hello");
    peer.send(b"there");
    peer.finish();
    while simulation.step() {}
    assert_eq!(simulation.handler(0).0, ["Ok(())", "there", "closed"]);
    let (mut simulation, peer) = begin();
    drop(peer);
    while simulation.step() {}
    assert_eq!(simulation.handler(0).0, ["Err(ConnectionRefused)"]);
    assert_eq!(simulation.net(0).unwrap().connections(), 0);
}
