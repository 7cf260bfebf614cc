//! A turn is bounded in time: on simulated loops, where every unit of work takes a drawn time.
#![cfg(feature = "sim")]
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::collections::VecDeque;

use tacho_net::sim::{Faults, Peer, Simulation};
use tacho_net::{Closed, ConnId, Handler, LoopConfig, Net, Next, mailboxes};

const TURN_NS: u64 = 1_000_000;
/// A unit takes a microsecond on average.
const UNIT_NS_MAX: u64 = 2_000;
/// A turn ends late by no more than 32 units for each of its parts, and newcomers come on top.
const LONGEST_NS: u64 = TURN_NS + TURN_NS / 4 + 8 * 32 * UNIT_NS_MAX;

/// What a loop has told its handler, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Input(usize),
    Closed(usize),
    Timer(u64),
    Mail(u64),
}

/// Echoes. A byte `m` posts a thousand mails, each of which posts itself again; `f` is a fan-out of
/// ten bytes to all connections.
#[derive(Default)]
struct Probe {
    events: Vec<Event>,
    conns: Vec<ConnId>,
    fan_outs: VecDeque<usize>,
    reposts: bool,
    drained: usize,
}

impl Handler for Probe {
    type Mail = u64;
    type Shared = Vec<u8>;

    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, _: usize) {
        self.conns.push(conn);
        net.established(conn);
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        self.events.push(Event::Input(conn.index()));
        net.charge(8);
        match data[0] {
            b'm' => {
                self.reposts = true;
                (0..1_000).for_each(|number| net.post(0, number));
            }
            b'f' => self.fan_outs.push_back(0),
            b't' => {
                net.set_timer(net.now_ns() + 10_000_000, conn.index() as u64);
            }
            b'd' => net.await_drained(conn),
            _ => {}
        }
        if data[0] != b'f' {
            net.out(conn).extend_from_slice(data);
        }
        data.len()
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, _: Closed) {
        self.events.push(Event::Closed(conn.index()));
        net.charge(16);
    }

    fn timer(&mut self, _: &mut Net<Self>, token: u64) {
        self.events.push(Event::Timer(token));
    }

    fn mail(&mut self, net: &mut Net<Self>, _: usize, number: u64) {
        self.events.push(Event::Mail(number));
        if self.reposts {
            net.post(0, number);
        }
    }

    fn drained(&mut self, net: &mut Net<Self>, _: ConnId) {
        self.drained += 1;
        net.charge(8);
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        while let Some(mut at) = self.fan_outs.pop_front() {
            while at < self.conns.len() {
                net.out_later(self.conns[at], 10).extend_from_slice(b"0123456789");
                at += 1;
                if !net.charge(1) {
                    self.fan_outs.push_front(at);
                    return Next::Again;
                }
            }
        }
        Next::Sleep
    }
}

fn simulation(unit_ns_max: u64) -> Simulation<Probe> {
    let config = LoopConfig {
        turn_ns_max: TURN_NS,
        newcomers_budget_ns: TURN_NS / 4,
        ..LoopConfig::default()
    };
    let faults = Faults { unit_ns_max, ..Faults::default() };
    let member = (config, mailboxes(1).remove(0), Probe::default());
    Simulation::new(3, faults, 1_000_000_000, [member])
}

fn settle(simulation: &mut Simulation<Probe>) {
    for _ in 0..100_000 {
        if !simulation.step() {
            return;
        }
    }
    panic!("the loop never comes to rest");
}

fn connected(simulation: &mut Simulation<Probe>, count: usize) -> Vec<Peer> {
    let peers = (0..count).map(|_| simulation.connect(0, 0)).collect();
    settle(simulation);
    peers
}

fn send(peer: &Peer, bytes: &[u8]) {
    assert!(peer.send(bytes));
    peer.arrive(usize::MAX);
}

fn longest_ns(simulation: &Simulation<Probe>) -> u64 {
    simulation.net(0).unwrap().counters().turn_ns_max
}

/// However many leave at once, those that stay are answered at once; and all ends are reported.
#[test]
fn a_connection_that_stays_does_not_wait_for_thousands_that_leave() {
    const PEERS: usize = 2_000;
    let mut simulation = simulation(UNIT_NS_MAX);
    let peers = connected(&mut simulation, PEERS + 1);
    let (stays, leave) = peers.split_last().unwrap();
    for peer in leave {
        // What was sent before the end is read, too.
        send(peer, b"bye");
        peer.finish();
        peer.arrive(usize::MAX);
    }
    simulation.step();
    send(stays, b"hello");
    settle(&mut simulation);
    let events = &simulation.handler(0).events;
    let hello = events.iter().position(|event| *event == Event::Input(PEERS)).unwrap();
    let closed =
        |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
    assert!(closed(&events[..hello]) < PEERS / 4, "{} before it", closed(&events[..hello]));
    assert_eq!(closed(events), PEERS);
    let inputs = events.iter().filter(|event| matches!(event, Event::Input(_))).count();
    assert_eq!(inputs, PEERS + 1);
}

#[test]
fn reads_and_writes_of_thousands_take_several_turns_in_order() {
    const PEERS: usize = 1_000;
    let mut simulation = simulation(UNIT_NS_MAX);
    let peers = connected(&mut simulation, PEERS);
    let mut seen = 0;
    peers.iter().for_each(|peer| send(peer, b"e"));
    let mut turns = 0;
    while simulation.step() {
        turns += 1;
        let answered = peers.iter().filter(|peer| peer.waiting() > 0).count();
        // First come, first served: no gap among those that have their answer.
        assert!(peers[..answered].iter().all(|peer| peer.waiting() == 1));
        seen = answered;
    }
    assert_eq!(seen, PEERS);
    // Ten units for each read and four for each write.
    assert!(turns >= PEERS * 14 / 1_500, "{turns} turns");
    let expected: Vec<Event> = (0..PEERS).map(Event::Input).collect();
    assert_eq!(simulation.handler(0).events, expected);
    let longest_ns = longest_ns(&simulation);
    assert!((TURN_NS / 4..LONGEST_NS).contains(&longest_ns), "{longest_ns} ns");
}

#[test]
fn many_ends_at_once_take_several_turns_and_delay_no_other_connection() {
    const PEERS: usize = 2_000;
    let mut simulation = simulation(UNIT_NS_MAX);
    let other = connected(&mut simulation, 1).remove(0);
    let peers = connected(&mut simulation, PEERS);
    drop(peers);
    let mut turns = 0;
    loop {
        turns += 1;
        send(&other, b"e");
        simulation.turn(0);
        let closed = |event: &&Event| matches!(event, Event::Closed(_));
        let ended = simulation.handler(0).events.iter().filter(closed).count();
        if ended == PEERS {
            break;
        }
        assert!(turns < 10_000, "{ended} after {turns} turns");
    }
    assert!(turns > 10, "{turns} turns");
    settle(&mut simulation);
    assert_eq!(other.receive(usize::MAX).len(), turns, "none of its bytes is lost");
    assert!(longest_ns(&simulation) < LONGEST_NS, "{} ns", longest_ns(&simulation));
}

#[test]
fn mail_that_never_ends_leaves_time_for_all_else() {
    let mut simulation = simulation(UNIT_NS_MAX);
    let peers = connected(&mut simulation, 2);
    send(&peers[0], b"m");
    simulation.turn(0);
    assert_eq!(peers[0].receive(1), b"m");
    send(&peers[1], b"t");
    simulation.turn(0);
    assert_eq!(peers[1].receive(1), b"t", "read and answered in the same turn");
    simulation.advance(20_000_000);
    simulation.turn(0);
    let events = &simulation.handler(0).events;
    assert!(events.contains(&Event::Timer(1)));
    // In order, however many turns it takes.
    let mails = events.iter().filter_map(|event| match event {
        Event::Mail(number) => Some(*number),
        _ => None,
    });
    let mails: Vec<u64> = mails.collect();
    assert!(mails.len() > 64, "{} mails", mails.len());
    assert!(mails.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 1_000));
}

#[test]
fn many_timers_of_one_moment_take_several_turns() {
    const PEERS: usize = 3_000;
    let mut simulation = simulation(UNIT_NS_MAX);
    let peers = connected(&mut simulation, PEERS);
    peers.iter().for_each(|peer| send(peer, b"t"));
    settle(&mut simulation);
    simulation.advance(50_000_000);
    let turns = (1..).take_while(|_| simulation.step()).count();
    let fired = |event: &&Event| matches!(event, Event::Timer(_));
    assert_eq!(simulation.handler(0).events.iter().filter(fired).count(), PEERS);
    assert!(turns > 5, "{turns} turns");
    assert!(longest_ns(&simulation) < LONGEST_NS, "{} ns", longest_ns(&simulation));
}

#[test]
fn output_that_may_wait_leaves_behind_other_output_and_with_fewer_writes_the_more_there_is() {
    const PEERS: usize = 1_000;
    let writes_per_message = |messages: usize| {
        let mut simulation = simulation(UNIT_NS_MAX);
        let peers = connected(&mut simulation, PEERS);
        for peer in &peers[..messages] {
            send(peer, b"f");
        }
        let before = simulation.net(0).unwrap().counters().writes;
        let mut turns = 0;
        while simulation.step() {
            turns += 1;
            if turns == 2 {
                assert!(simulation.net(0).unwrap().later_bytes() > 0);
                peers[PEERS - 1].receive(usize::MAX);
                send(&peers[PEERS - 1], b"e");
                simulation.turn(0);
                let answer = peers[PEERS - 1].receive(usize::MAX);
                assert!(answer.contains(&b'e'), "not behind them");
            }
        }
        let net = simulation.net(0).unwrap();
        assert_eq!(net.later_bytes(), 0);
        let got: usize = peers.iter().map(|peer| peer.receive(usize::MAX).len()).sum();
        assert!(got >= (PEERS - 1) * messages * 10);
        assert!(longest_ns(&simulation) < LONGEST_NS, "{} ns", longest_ns(&simulation));
        (net.counters().writes - before) as f64 / (messages * PEERS) as f64
    };
    let [one, four, sixteen] = [1, 4, 16].map(writes_per_message);
    assert!(one > 0.9, "{one}");
    assert!(four < 0.7 * one && sixteen < 0.7 * four, "{one} {four} {sixteen}");
}

#[test]
fn drained_connections_beyond_the_time_of_a_turn_are_reported_in_the_next() {
    const PEERS: usize = 2_000;
    let mut simulation = simulation(UNIT_NS_MAX);
    let peers = connected(&mut simulation, PEERS);
    peers.iter().for_each(|peer| send(peer, b"d"));
    settle(&mut simulation);
    assert_eq!(simulation.handler(0).drained, PEERS);
    assert!(longest_ns(&simulation) < LONGEST_NS, "{} ns", longest_ns(&simulation));
}

#[test]
fn output_written_early_is_written_once() {
    struct Early;
    impl Handler for Early {
        type Mail = ();
        type Shared = Vec<u8>;

        fn accepted(&mut self, _: &mut Net<Self>, _: ConnId, _: usize) {}

        fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
            net.out(conn).extend_from_slice(b"12");
            net.out_later(conn, 1).extend_from_slice(b"3");
            assert_eq!(net.write_early(conn), 0);
            assert_eq!(net.later_bytes(), 0);
            net.out(conn).extend_from_slice(b"4");
            data.len()
        }

        fn closed(&mut self, _: &mut Net<Self>, _: ConnId, _: Closed) {}
    }
    let member = (LoopConfig::default(), mailboxes(1).remove(0), Early);
    let mut simulation = Simulation::new(1, Faults::default(), 1, [member]);
    let peer = simulation.connect(0, 0);
    send(&peer, b"x");
    while simulation.step() {}
    assert_eq!(peer.receive(usize::MAX), b"1234");
    assert_eq!(simulation.net(0).unwrap().counters().writes, 2);
}

#[test]
fn after_a_late_turn_all_that_has_arrived_is_read_before_timers_fire() {
    const PEERS: usize = 500;
    // With time for all in one turn, and in many turns.
    for unit_ns_max in [0, UNIT_NS_MAX] {
        let mut simulation = simulation(unit_ns_max);
        let peers = connected(&mut simulation, PEERS);
        peers.iter().for_each(|peer| send(peer, b"t"));
        settle(&mut simulation);
        let before = simulation.handler(0).events.len();
        peers.iter().for_each(|peer| send(peer, b"e"));
        simulation.advance(60_000_000_000);
        settle(&mut simulation);
        let events = &simulation.handler(0).events[before..];
        assert_eq!(events.len(), 2 * PEERS);
        assert!(events[..PEERS].iter().all(|event| matches!(event, Event::Input(_))));
        assert!(events[PEERS..].iter().all(|event| matches!(event, Event::Timer(_))));
    }
}

#[test]
fn the_most_units_of_work_in_a_turn_are_known() {
    let mut simulation = simulation(0);
    // Accepting one costs 32.
    let peers: Vec<Peer> = (0..10).map(|_| connected(&mut simulation, 1).remove(0)).collect();
    peers.iter().for_each(|peer| send(peer, b"e"));
    settle(&mut simulation);
    let counters = simulation.net(0).unwrap().counters();
    // Ten for each read, four for each write.
    assert_eq!((counters.turn_units_max, counters.slow_turns), (140, 0));
}
