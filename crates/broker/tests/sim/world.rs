//! One run: the broker, its clients, and what happens between them.

mod calm;
mod crash;
mod input;
mod output;

use std::collections::BTreeMap;

use tacho_broker::sim::{Cluster, OverLimit, Totals};
use tacho_codec::{QoS, ReasonCode, Version};
use tacho_journal::sim::Disk;

use crate::client::{Client, Stage};
use crate::ledger::{Ending, Ledger, Message, NEVER};
use crate::setup::{Nature, QOS, Setup, WILL, WILLS, Wish};
use crate::wire::{self, Opening, WillWish};
pub(crate) use calm::let_shards_work;
use tacho_testkit::rng::Rng;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Virtual time begins somewhere.
const START_NS: u64 = 1_000 * SECOND_NS;

/// What a run comes to: two runs of one seed come to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Packets that clients got.
    pub(crate) seen: u64,
    /// A hash of all of them, in order.
    pub(crate) trace: u64,
    /// The broker's own count of messages sent.
    pub(crate) publishes_out: u64,
}

pub(crate) struct World {
    rng: Rng,
    setup: Setup,
    cluster: Cluster,
    clients: Vec<Client>,
    ledger: Ledger,
    /// What the broker's data are on, if it has any.
    disk: Option<Disk>,
    /// What it had over all shards when it last came back.
    restored: Option<Totals>,
    /// Queues that were above their limits then.
    restored_queues: Vec<OverLimit>,
    /// What the broker counted in earlier lives.
    earlier: BTreeMap<&'static str, u64>,
    /// Retained messages as the auditor gets them.
    retained: BTreeMap<usize, u32>,
    auditor: Option<usize>,
    seen: u64,
    trace: u64,
    /// Events are printed, to understand a seed.
    talks: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(seed, Setup::new)
    }

    /// With a journal, and crashes.
    pub(crate) fn durable(seed: u64) -> Self {
        Self::of(seed, Setup::durable)
    }

    fn of(seed: u64, draw: fn(&mut Rng) -> Setup) -> Self {
        fastrand::seed(seed);
        let mut rng = Rng::new(seed);
        let setup = draw(&mut rng);
        let disk = setup.durable.as_ref().map(|durable| Disk::new(durable.disk_seed));
        let cluster = setup.cluster(START_NS, disk.as_ref());
        let ledger = Ledger::new(setup.queues_drop());
        let mut clients: Vec<Client> = Vec::new();
        for nature in &setup.natures {
            clients.push(Client::new(clients.len(), nature.clone()));
        }
        Self {
            rng,
            setup,
            cluster,
            disk,
            restored: None,
            restored_queues: Vec::new(),
            earlier: BTreeMap::new(),
            clients,
            ledger,
            retained: BTreeMap::new(),
            auditor: None,
            seen: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            talks: std::env::var_os("TACHO_SIM_TALK").is_some(),
        }
    }

    /// Runs to the end and checks everything.
    pub(crate) fn run(mut self) -> Outcome {
        let warden = self.add_reliable_client();
        self.connect_calmly(warden);
        self.subscribe(warden, &[WILLS]);
        self.wait_for_answers(warden);
        self.run_until_quiet();
        while !self.clients[warden].requests.is_empty() {
            // A shard is stalled. Whatever is a will has to be seen.
            self.cluster.loops().advance(1_000_000);
            self.run_until_quiet();
        }
        self.begin_disk_faults();
        for _ in 0..self.setup.steps {
            self.step(warden);
        }
        self.end_disk_faults();
        self.calm_down();
        self.audit(warden);
        self.leave_nothing();
        let publishes_out = self.counted("publishes_out_total");
        self.nothing_is_kept();
        Outcome { seen: self.seen, trace: self.trace, publishes_out }
    }

    /// A client without faults: 5.0, reads and answers everything.
    fn add_reliable_client(&mut self) -> usize {
        let wish =
            Wish { qos: QoS::ExactlyOnce, no_local: false, retain_as_published: false, id: 0 };
        let nature = Nature {
            version: Version::V5,
            receive_maximum: u16::MAX,
            inflight_max: u16::MAX,
            alias_max: 0,
            packet_size_max: None,
            keep_alive_s: 0,
            expiry_s: u32::MAX,
            wishes: vec![wish; crate::setup::FILTERS.len()],
            diligence: 100,
            window_bytes: 1 << 20,
        };
        let index = self.clients.len();
        let mut client = Client::new(index, nature);
        client.calm = true;
        self.clients.push(client);
        index
    }

    fn step(&mut self, warden: usize) {
        let client = self.rng.below(warden as u64) as usize;
        match self.rng.below(20) {
            0 | 1 => self.connect(client),
            2..5 => self.publish(client),
            5 => self.subscribe_somehow(client),
            6 => self.unsubscribe_somehow(client),
            7 => self.seldom(client),
            8 => self.favourite(client),
            _ => {}
        }
        if self.rng.below(100) < self.setup.cut_percent {
            self.cut(client);
        }
        self.let_work(warden);
        self.check_bounds();
        self.crash_somehow();
    }

    /// Bytes move and shards take turns.
    fn let_work(&mut self, warden: usize) {
        let client = self.rng.below(warden as u64) as usize;
        self.exchange(client);
        for _ in 0..self.rng.below(5) {
            self.commit_somehow();
            self.cluster.loops().step();
            let pause_ns = self.rng.below(100_000);
            self.cluster.loops().advance(pause_ns);
        }
        self.exchange(warden);
    }

    /// What this run is about more than others.
    fn favourite(&mut self, client: usize) {
        match self.setup.favourite {
            0 => self.publish(client),
            1 => self.subscribe_somehow(client),
            2 => {
                self.subscribe_somehow(client);
                self.unsubscribe_somehow(client);
            }
            3 => self.take_over(client),
            4 => self.disconnect(client),
            _ => self.retain_and_subscribe(client),
        }
    }

    fn seldom(&mut self, client: usize) {
        match self.rng.below(10) {
            0..3 => self.clients[client].deaf = !self.clients[client].deaf,
            3..5 => self.disconnect(client),
            5 => self.take_over(client),
            6 => {
                let shard = self.rng.below(self.setup.shards as u64) as usize;
                let ns = self.rng.below(50_000_000);
                self.cluster.loops().stall(shard, ns);
            }
            7 => {
                let ns = self.rng.below(4 * SECOND_NS);
                self.cluster.loops().advance(ns);
                self.keep_alive();
            }
            _ => {
                self.cluster.loops().advance(5_000_000);
                self.keep_alive();
            }
        }
    }

    /// Connects if there is no connection and nothing is left of those before.
    fn connect(&mut self, client: usize) {
        self.clients[client].abandoned.retain(|peer| !peer.is_forgotten());
        let known = &self.clients[client];
        if known.link.is_some() || !known.abandoned.is_empty() {
            return;
        }
        self.dial(client);
    }

    fn dial(&mut self, client: usize) {
        let version = self.clients[client].version();
        let clean_start = self.clients[client].must_start_anew(self.cluster.now_ns())
            || self.rng.below(100) < self.setup.clean_percent;
        // Before 5.0 one flag says both.
        let ephemeral = if version.is_v5() { self.rng.percent(10) } else { clean_start };
        let will = self.draw_will(client, version, ephemeral);
        self.open(client, Opening { clean_start, ephemeral, will });
    }

    fn open(&mut self, client: usize, opening: Opening) {
        let shard = self.rng.below(self.setup.shards as u64) as usize;
        let ended_before = self.ended_silently();
        let known = &mut self.clients[client];
        known.wants_clean |= opening.clean_start;
        if opening.clean_start || opening.ephemeral {
            // It may be accepted without the client ever learning of it.
            known.safe_until_ns = 0;
            self.ledger.session_may_end(client, known.epoch);
        }
        known.dial(&mut self.cluster, shard, opening);
        if let Some(link) = &mut known.link {
            // Also before its DISCONNECT, which it may send to a connection that is closed.
            link.ended_before = ended_before;
        }
        self.ledger.wills.connecting(client);
        self.say(client, &format!("connects to shard {shard} {opening:?}"));
    }

    fn draw_will(&mut self, client: usize, version: Version, ephemeral: bool) -> Option<WillWish> {
        if self.rng.below(100) >= self.setup.will_percent {
            return None;
        }
        let id = self.ledger.next_id();
        let qos = QOS[self.rng.below(3) as usize];
        let delay_s = if version == Version::V5 { self.rng.below(4) as u32 } else { 0 };
        let retain = self.rng.below(100) < self.setup.retained_will_percent;
        let first_sent = self.ledger.tick();
        self.ledger.published(Message {
            publisher: client,
            epoch: self.clients[client].epoch,
            topic: WILL,
            qos,
            retain,
            len: 4,
            expiry_s: None,
            is_will: true,
            first_sent,
            done: NEVER,
            refused: false,
            sends: 1,
            refusals_before: 0,
            comes_late: false,
        });
        let wish = WillWish { id, topic: WILL, qos, retain, delay_s };
        self.ledger.wills.armed(wish, client, !ephemeral);
        Some(wish)
    }

    /// DISCONNECT, which deletes the will. The broker closes.
    fn disconnect(&mut self, client: usize) {
        let known = &mut self.clients[client];
        let version = known.version();
        let Some(link) = known.link.as_mut().filter(|link| link.stage == Stage::Online) else {
            return;
        };
        link.stage = Stage::Leaving;
        let ends = version == Version::V5 && self.rng.percent(20);
        let expiry_s = ends.then_some(0);
        link.peer.send(&wire::disconnect(version, ReasonCode::SUCCESS, expiry_s));
        if ends {
            link.opening.ephemeral = true;
        }
        self.say(client, "disconnects");
    }

    /// The connection breaks.
    fn cut(&mut self, client: usize) {
        let Some(link) = self.clients[client].link.take() else { return };
        let since_ns = link.since_ns(self.clients[client].nature.keep_alive_s);
        let ending = match link.stage {
            Stage::Connecting if link.refused => Ending::Refused,
            Stage::Connecting => Ending::Unaccepted,
            Stage::Leaving => Ending::MaybePolite,
            Stage::Online => Ending::Lost { since_ns, session_ends: link.opening.ephemeral },
        };
        if self.rng.percent(50) {
            // What was sent still arrives; no client reads the answers.
            link.peer.finish();
        }
        self.say(client, "is cut off");
        self.ended(client, link.stage, link.opening, ending, since_ns);
        let abandoned = &mut self.clients[client].abandoned;
        abandoned.push(link.peer);
        abandoned.iter().for_each(tacho_net::sim::Peer::reset);
    }

    /// Connects although there is a connection, which the client forgets.
    fn take_over(&mut self, client: usize) {
        if !self.clients[client].is_online() {
            return;
        }
        let Some(link) = self.clients[client].link.take() else { return };
        let since_ns = link.since_ns(self.clients[client].nature.keep_alive_s);
        let ending = Ending::Lost { since_ns, session_ends: link.opening.ephemeral };
        self.say(client, "takes over");
        self.ended(client, link.stage, link.opening, ending, since_ns);
        self.clients[client].abandoned.push(link.peer);
        self.dial(client);
    }

    /// A connection is over for the client.
    fn ended(
        &mut self,
        client: usize,
        stage: Stage,
        opening: Opening,
        ending: Ending,
        since_ns: u64,
    ) {
        if let Some(will) = opening.will {
            self.ledger.wills.ended(will.id, ending);
        }
        let known = &mut self.clients[client];
        known.machine.disconnected();
        known.requests.clear();
        if stage == Stage::Connecting {
            known.unanswered = true;
        } else {
            let expiry_ns = u64::from(known.nature.expiry_s) * SECOND_NS;
            known.safe_until_ns = match (opening.ephemeral, known.version(), known.nature.expiry_s)
            {
                (true, ..) => 0,
                (false, Version::V5, seconds) if seconds != u32::MAX => since_ns + expiry_ns,
                _ => u64::MAX,
            };
            if known.safe_until_ns != u64::MAX {
                let epoch = known.epoch;
                self.ledger.session_may_end(client, epoch);
            }
            let epoch = self.clients[client].epoch;
            self.ledger.left(client, epoch);
        }
    }

    fn check_bounds(&self) {
        for shard in 0..self.setup.shards {
            if let Some(over) = self.cluster.over_limit(shard)
                && !self.was_queued(&over)
            {
                panic!("shard {shard} holds too much: {over:?}");
            }
        }
        let totals = self.cluster.totals();
        if let Some(over) = self.cluster.total_over_limit()
            && !self.was_restored(&totals, &over)
        {
            panic!("all shards hold too much: {over:?}");
        }
        let held = self.held();
        let counted = (totals.subscriptions, totals.filter_bytes);
        let there = held.iter().fold((0, 0), |(n, b), h| (n + h.subscriptions, b + h.filter_bytes));
        assert_eq!(counted, there, "subscriptions");
        let counted = (totals.retained, totals.retained_bytes);
        let there = held.iter().fold((0, 0), |(n, b), h| (n + h.retained, b + h.retained_bytes));
        assert_eq!(counted, there, "retained messages");
        assert!(totals.waiting_bytes >= 0, "more was given back than taken: {totals:?}");
    }

    /// Whether there was more than the limit when the broker came back, and has not become more:
    /// it may have died before it had deleted what it had refused to retain.
    fn was_restored(&self, totals: &Totals, over: &OverLimit) -> bool {
        let Some(then) = &self.restored else { return false };
        over.what.starts_with("retained")
            && totals.retained <= then.retained.max(self.setup.config.limits.retained_count_max)
            && totals.retained_bytes
                <= then.retained_bytes.max(self.setup.config.limits.retained_bytes_max)
    }

    /// Whether a queue was above its limit when the broker came back, and nothing came to it since:
    /// what was on its way to it when the broker died is put there and not dropped.
    fn was_queued(&self, over: &OverLimit) -> bool {
        let then = self.restored_queues.iter().filter(|then| then.what == over.what);
        over.what.contains("queue") && then.map(|then| then.amount).max() >= Some(over.amount)
    }

    fn say(&self, client: usize, what: &str) {
        if self.talks {
            eprintln!(
                "{:>12} {} {what}",
                self.cluster.now_ns() - START_NS,
                self.clients[client].name
            );
        }
    }
}
