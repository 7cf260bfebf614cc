//! Single connections that are sent anything: legal packets in the wrong state, packets of the
//! other direction, damaged ones, halves. After each, the broker must have answered what the
//! specification says or have closed; whatever comes, it neither panics nor exceeds a limit.

mod expect;
mod packets;

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{Direction, Packet, Version, split_frame};
use tacho_net::sim::{Faults, Peer};

use crate::world::SECOND_NS;
use expect::Expectation;
use tacho_testkit::rng::Rng;

const PACKET_SIZE_MAX: u32 = 4096;

/// One connection and what is known of it.
struct Line {
    peer: Peer,
    expectation: Expectation,
    /// What came from the broker and is no whole packet yet.
    buffer: Vec<u8>,
}

/// Runs one seed; returns how many packets were answered.
pub(crate) fn run(seed: u64) -> u64 {
    fastrand::seed(seed);
    let mut rng = Rng::new(seed ^ 0xF022);
    let mut raw = RawConfig { shards: Some(rng.between(1, 2) as usize), ..RawConfig::default() };
    raw.limits.packet_size_max = PACKET_SIZE_MAX;
    raw.limits.receive_maximum = 5;
    raw.limits.inflight_max = 5;
    raw.limits.topic_alias_maximum = 3;
    raw.limits.session_queue_len_max = 20;
    raw.limits.subscriptions_per_session_max = 5;
    raw.limits.filter_levels_max = 6;
    raw.limits.retained_count_max = 10;
    let config = raw.resolve().unwrap();
    let faults = Faults {
        short_io_percent: rng.below(40) as u8,
        event_delay_percent: rng.below(30) as u8,
        mail_delay_percent: rng.below(30) as u8,
        ..Faults::default()
    };
    let cluster = Cluster::new(&config, |bounds| bounds, rng.next_u64(), faults, SECOND_NS);
    let mut run = Run { rng, cluster: cluster.unwrap(), lines: Vec::new(), answers: 0 };
    for _ in 0..run.rng.between(10, 60) {
        run.step();
    }
    run.end(config.shards);
    run.answers
}

struct Run {
    rng: Rng,
    cluster: Cluster,
    lines: Vec<Line>,
    answers: u64,
}

impl Run {
    fn step(&mut self) {
        self.lines.retain(|line| !line.peer.is_over());
        if self.lines.len() < 2 && self.rng.percent(60) || self.lines.is_empty() {
            self.dial();
        }
        let line = self.rng.below(self.lines.len() as u64) as usize;
        match self.rng.below(40) {
            0 => {
                self.lines[line].peer.finish();
                self.lines[line].expectation.leaves();
            }
            1 => {
                self.lines[line].peer.reset();
                self.lines[line].expectation.leaves();
            }
            2 => {
                let ns = self.rng.below(20 * SECOND_NS);
                self.cluster.loops().advance(ns);
                self.lines.iter_mut().for_each(|line| line.expectation.time_passed());
            }
            _ => self.send(line),
        }
        self.settle();
        for line in 0..self.lines.len() {
            self.check(line);
        }
    }

    fn dial(&mut self) {
        let shards = self.cluster.stats().len() as u64;
        let shard = self.rng.below(shards) as usize;
        let peer = self.cluster.connect(shard);
        let version = Version::ALL[self.rng.below(3) as usize];
        self.may_take_over();
        let mut line = Line { peer, expectation: Expectation::new(version), buffer: Vec::new() };
        if self.rng.percent(90) {
            let bytes = packets::connect(&mut self.rng, version);
            line.expectation.sends(&bytes, PACKET_SIZE_MAX);
            line.peer.send(&bytes);
            line.peer.arrive(usize::MAX);
        }
        self.lines.push(line);
        self.settle();
        self.check(self.lines.len() - 1);
    }

    /// A CONNECT may end any other connection.
    fn may_take_over(&mut self) {
        self.lines.iter_mut().for_each(|line| line.expectation.may_be_closed());
    }

    /// One or several packets, or what is left of them.
    fn send(&mut self, line: usize) {
        if self.lines[line].expectation.is_fresh() {
            self.may_take_over();
        }
        let version = self.lines[line].expectation.version();
        for _ in 0..self.rng.between(1, 3) {
            let bytes = packets::any(&mut self.rng, version);
            let line = &mut self.lines[line];
            line.expectation.sends(&bytes, PACKET_SIZE_MAX);
            line.peer.send(&bytes);
        }
        let line = &self.lines[line];
        if self.rng.percent(30) {
            line.peer.arrive(line.peer.in_transit() / 2);
            for _ in 0..3 {
                self.cluster.loops().step();
            }
        }
        line.peer.arrive(usize::MAX);
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.cluster.loops().step() {
                let mut heard = 0;
                for line in 0..self.lines.len() {
                    heard += self.hear(line);
                }
                if heard == 0 {
                    return;
                }
            }
            for shard in 0..self.cluster.stats().len() {
                if let Some(over) = self.cluster.over_limit(shard) {
                    panic!("shard {shard} holds too much: {over:?}");
                }
            }
        }
        panic!("the broker does not come to rest");
    }

    /// Takes what the broker has said; returns how many bytes that was.
    fn hear(&mut self, line: usize) -> usize {
        let Line { peer, expectation, buffer } = &mut self.lines[line];
        let bytes = peer.receive(usize::MAX);
        buffer.extend(&bytes);
        let mut used = 0;
        while let Some(frame) = split_frame(&buffer[used..], u32::MAX).expect("whole packets") {
            used += frame.total_len;
            let version = expectation.version();
            let packet = Packet::decode(&frame, version, Direction::ToClient);
            let packet = packet
                .unwrap_or_else(|error| panic!("the broker sent {:02x?}: {error}", frame.body));
            expectation.hears(&packet);
            self.answers += 1;
        }
        buffer.drain(..used);
        bytes.len()
    }

    fn check(&mut self, line: usize) {
        let Line { peer, expectation, buffer } = &mut self.lines[line];
        if peer.is_over() {
            assert!(buffer.is_empty(), "half a packet at the end");
        }
        expectation.check(peer.is_over());
    }

    /// Whatever was sent, everything ends and is given back.
    fn end(&mut self, shards: usize) {
        self.lines.iter().for_each(|line| line.peer.reset());
        self.settle();
        self.cluster.loops().advance(20 * SECOND_NS);
        self.settle();
        assert_eq!(
            self.cluster.totals().connections,
            0,
            "connections are counted that do not exist"
        );
        for shard in 0..shards {
            let held = self.cluster.held(shard);
            assert_eq!((held.connections, held.loop_connections), (0, 0), "{held:?}");
            assert_eq!((held.fan_outs, held.held_publishers, held.mails), (0, 0, 0), "{held:?}");
            assert_eq!(held.sessions, held.client_ids, "{held:?}");
        }
    }
}
