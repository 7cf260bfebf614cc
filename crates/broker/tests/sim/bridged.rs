//! A broker with a journal and a bridge: power is cut, and nothing is lost between its clients and
//! those of another broker.
//!
//! Clients publish what goes out by the bridge, one receives what comes by it, at QoS 1 and 2. The
//! [other broker](other) is in the simulation too. It keeps its sessions or forgets them, refuses,
//! falls silent and breaks connections, while this one dies and comes back with another number of
//! shards. [`promises`] says what must hold: what was acknowledged on either side comes at the
//! other, QoS 2 once as long as the session is kept, and in order.

mod other;
mod promises;

use tacho_broker::sim::Cluster;
use tacho_codec::{AckKind, QoS, ReasonCode, RetainHandling, Version};
use tacho_journal::sim::{Disk, Faults as DiskFaults};
use tacho_net::sim::Faults;
use tacho_session::client::{ConnAckParams, Publish};
use tacho_session::{AliasOut, Inbound, Transmit};

use crate::client::{Client, Request, Stage};
use crate::setup::{Bridged, Nature, PLAIN, Setup, Wish};
use crate::wire::{self, Event, Opening, Outgoing, Received};
use crate::world::{SECOND_NS, let_shards_work};
use other::{Manners, Other};
use promises::{Promises, Way};
use tacho_testkit::rng::Rng;

/// Virtual time begins somewhere.
const START_NS: u64 = 1_000 * SECOND_NS;
/// The client that receives what comes by the bridge; the others publish.
const TAKER: usize = 0;
/// The filter of all that comes.
const ALL_INCOMING: usize = 9;
/// Seconds after which a run that does not come to rest has failed.
const CALM_S: u32 = 60;
/// Steps of what is to be done at once, the same.
const ROUNDS_MAX: usize = 20_000;

struct World {
    rng: Rng,
    setup: Setup,
    bridged: Bridged,
    cluster: Cluster,
    disk: Disk,
    clients: Vec<Client>,
    other: Other,
    promises: Promises,
    /// What the broker refused in earlier lives.
    refused_before: u64,
    calm: bool,
    seen: u64,
    talks: bool,
}

/// One run; how many packets were seen.
pub(crate) fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    world.begin();
    for _ in 0..world.setup.steps {
        world.step();
    }
    world.calm_down();
    world.promises.verdict();
    world.nothing_is_kept();
    world.seen + world.other.seen
}

impl World {
    fn new(seed: u64) -> Self {
        fastrand::seed(seed);
        let mut rng = Rng::new(seed);
        let (setup, bridged) = Setup::bridged(&mut rng);
        let disk = Disk::new(rng.next_u64());
        let cluster = setup.cluster(START_NS, Some(&disk));
        let manners = Manners {
            version: bridged.version,
            receive_maximum: rng.between(1, 20) as u16,
            forget_percent: if rng.percent(50) { rng.between(10, 60) } else { 0 },
            refuse_percent: if rng.percent(50) { rng.between(1, 20) } else { 0 },
            diligence: if rng.percent(60) { 100 } else { rng.between(10, 60) },
        };
        let mut clients = vec![Client::new(TAKER, nature(&mut rng, Version::V5))];
        for index in 1..=rng.between(1, 3) as usize {
            let version = if rng.percent(70) { Version::V5 } else { Version::V311 };
            clients.push(Client::new(index, nature(&mut rng, version)));
        }
        Self {
            rng,
            setup,
            bridged,
            cluster,
            disk,
            clients,
            other: Other::new(manners),
            promises: Promises::default(),
            refused_before: 0,
            calm: false,
            seen: 0,
            talks: std::env::var_os("TACHO_SIM_TALK").is_some(),
        }
    }

    /// The taker has subscribed before anything goes wrong with the disk.
    fn begin(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.connect(TAKER);
            self.exchange(TAKER);
            if self.clients[TAKER].is_online() && self.clients[TAKER].subscribed.is_empty() {
                self.subscribe();
            }
            let taker = &self.clients[TAKER];
            if taker.is_online() && taker.requests.is_empty() {
                self.disk.set_faults(self.durable().disk_faults);
                return;
            }
            self.cluster.loops().step();
            self.commit();
            self.cluster.loops().advance(10_000);
        }
        panic!("the subscriber gets no answer");
    }

    fn durable(&self) -> &crate::setup::Durable {
        // Invariant: `Setup::bridged` draws it.
        self.setup.durable.as_ref().expect("a broker with a journal")
    }

    fn subscribe(&mut self) {
        let known = &mut self.clients[TAKER];
        let Some(packet_id) = known.machine.reserve_id() else { return };
        let wish = known.nature.wishes[0];
        let wanted = [(ALL_INCOMING, wish, RetainHandling::Never)];
        known.requests.insert(packet_id, Request::Subscribe(Vec::new()));
        known.subscribed.insert(ALL_INCOMING);
        known.write(&wire::subscribe(known.nature.version, packet_id, &wanted));
    }

    fn step(&mut self) {
        let client = self.rng.below(self.clients.len() as u64) as usize;
        let now_ns = self.cluster.now_ns();
        match self.rng.below(14) {
            0..2 => self.connect(client),
            2..6 => self.publish(client),
            6..9 => self.other.publish(&mut self.rng, &mut self.promises, now_ns),
            9 if self.rng.percent(30) => self.lose(client),
            10 if self.rng.percent(40) => self.other.cut(&mut self.rng),
            11 => self.cluster.loops().advance(300_000_000),
            12 if self.rng.percent(10) => {
                // Longer than any timeout for CONNACK.
                let ns = self.rng.below(15 * SECOND_NS);
                self.cluster.loops().advance(ns);
            }
            13 if self.rng.percent(30) => {
                let shard = self.rng.below(self.setup.shards as u64) as usize;
                let ns = self.rng.below(50_000_000);
                self.cluster.loops().stall(shard, ns);
            }
            _ => {}
        }
        self.exchange(client);
        self.exchange(TAKER);
        self.exchange_with_other();
        for _ in 0..self.rng.below(6) {
            if self.rng.percent(self.durable().commit_percent) {
                self.commit();
            }
            self.cluster.loops().step();
            let pause_ns = self.rng.below(100_000);
            self.cluster.loops().advance(pause_ns);
        }
        if let Some(bytes) = self.durable().narrow_bytes
            && self.rng.percent(5)
        {
            self.disk.set_capacity(self.rng.percent(50).then_some(bytes));
        }
        if self.rng.below(1000) < self.durable().crash_permille {
            self.crash();
        }
    }

    fn commit(&mut self) -> bool {
        let committed = self.cluster.commit();
        self.other.commits += u64::from(committed);
        committed
    }

    fn exchange_with_other(&mut self) {
        for shard in 0..self.setup.shards {
            for (_, peer) in self.cluster.loops().begun(shard) {
                self.other.arrives(&mut self.rng, peer);
            }
        }
        let now_ns = self.cluster.now_ns();
        self.other.exchange(&mut self.rng, &mut self.promises, now_ns);
    }

    fn connect(&mut self, client: usize) {
        if self.clients[client].link.is_some() {
            return;
        }
        let shard = self.rng.below(self.setup.shards as u64) as usize;
        let opening = Opening { clean_start: false, ephemeral: false, will: None };
        self.clients[client].dial(&mut self.cluster, shard, opening);
        self.say(client, "connects");
    }

    fn publish(&mut self, client: usize) {
        if client == TAKER {
            return;
        }
        for _ in 0..self.rng.between(1, 3) {
            if !self.clients[client].is_online() || !self.clients[client].machine.can_publish() {
                return;
            }
            let topic = PLAIN[self.rng.below(4) as usize];
            let qos = if self.rng.percent(50) { QoS::AtLeastOnce } else { QoS::ExactlyOnce };
            let id = self.promises.published(Way::Out, client, topic, qos);
            let now_ns = self.cluster.now_ns();
            if let Publish::Send(transmit) = self.clients[client].machine.publish(now_ns, qos, id) {
                self.transmit(client, transmit);
            }
        }
    }

    fn transmit(&mut self, client: usize, transmit: Transmit<u32>) {
        let version = self.clients[client].version();
        let bytes = match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                let id = delivery.message;
                let (topic, qos) = self.promises.topic_and_qos(id);
                self.promises.sent(id, self.refusals());
                if let (QoS::ExactlyOnce, Some(packet_id)) = (qos, packet_id) {
                    self.clients[client].unreceived.insert(packet_id, id);
                }
                self.say(client, &format!("publishes {id} {qos:?} {packet_id:?} dup {dup}"));
                let (retain, expiry_s, alias) = (false, None, AliasOut::None);
                let outgoing = Outgoing { topic, qos, retain, expiry_s, alias };
                wire::publish(version, outgoing, packet_id, dup, &wire::payload(id, 12))
            }
            Transmit::Ack { kind, packet_id, reason } => {
                wire::ack(version, kind, packet_id, reason)
            }
            Transmit::PubRel { packet_id, reason } => {
                wire::ack(version, AckKind::PubRel, packet_id, reason)
            }
        };
        self.clients[client].write(&bytes);
    }

    /// Publishes that the broker has refused, over all its lives.
    fn refusals(&self) -> u64 {
        let names = ["refused_publishes_total", "journal_refused_publishes_total"];
        self.refused_before + names.map(|name| self.cluster.counter(name)).iter().sum::<u64>()
    }

    /// Some bytes arrive at the broker, some at the client, which answers.
    fn exchange(&mut self, client: usize) {
        let Some(link) = &self.clients[client].link else { return };
        let calm = self.calm;
        let rng = &mut self.rng;
        let mut part = |all: usize| match calm || rng.percent(60) {
            true => all,
            false => rng.below(all as u64 + 1) as usize,
        };
        link.peer.arrive(part(link.peer.in_transit()));
        let bytes = link.peer.receive(part(link.peer.waiting()));
        self.take_in(client, &bytes);
        if self.clients[client].link.as_ref().is_some_and(|link| link.peer.is_over()) {
            return self.lose(client);
        }
        let diligence = self.clients[client].nature.diligence;
        if !self.clients[client].is_online() || !calm && !self.rng.percent(diligence) {
            return;
        }
        let now_ns = self.cluster.now_ns();
        while let Some(transmit) = self.clients[client].machine.poll_transmit(now_ns) {
            self.transmit(client, transmit);
        }
    }

    fn take_in(&mut self, client: usize, bytes: &[u8]) {
        let version = self.clients[client].version();
        let Some(link) = &mut self.clients[client].link else { return };
        let mut buffer = std::mem::take(&mut link.buffer);
        buffer.extend_from_slice(bytes);
        let mut used = 0;
        while let Some((event, len)) = wire::decode(&buffer[used..], version) {
            used += len;
            self.seen += 1;
            self.handle(client, event);
        }
        buffer.drain(..used);
        if let Some(link) = &mut self.clients[client].link {
            link.buffer = buffer;
        }
    }

    fn handle(&mut self, client: usize, event: Event) {
        self.say(client, &format!("gets {event:?}"));
        match event {
            Event::ConnAck { reason, .. } if reason.is_error() => {}
            Event::ConnAck { session_present, receive_maximum, .. } => {
                self.connected(client, session_present, receive_maximum);
            }
            Event::Publish(received) => self.received(client, &received),
            Event::Ack { kind, packet_id, reason } => {
                if let Some(id) = self.clients[client].acknowledged(kind, packet_id, reason) {
                    self.promises.acknowledged(id, reason.is_error());
                }
            }
            Event::SubAck { packet_id, reasons } => {
                let known = &mut self.clients[client];
                known.requests.remove(&packet_id);
                assert!(known.machine.release_id(packet_id), "SUBACK answers nothing");
                assert_eq!(reasons, [ReasonCode::GRANTED_QOS_2]);
            }
            // The end comes next.
            Event::Disconnect(_) => {}
            Event::UnsubAck { .. } | Event::PingResp => {
                panic!("an answer without a request: {event:?}")
            }
        }
    }

    fn connected(&mut self, client: usize, session_present: bool, receive_maximum: u16) {
        let now_ns = self.cluster.now_ns();
        let known = &mut self.clients[client];
        assert!(session_present || known.epoch == 0, "the session of client {client} is lost");
        known.epoch = 1;
        let version = known.version();
        let params =
            ConnAckParams { session_present, receive_maximum, ..ConnAckParams::new(version) };
        known.machine.connack(now_ns, params);
        if let Some(link) = &mut known.link {
            link.stage = Stage::Online;
        }
    }

    fn received(&mut self, client: usize, received: &Received) {
        let Received { topic, qos, packet_id, dup, payload, .. } = received;
        let inbound = self.clients[client].machine.handle_publish(*qos, *packet_id);
        match inbound.expect("the broker keeps our receive maximum") {
            Inbound::Duplicate => assert!(*dup, "repeated without DUP: {received:?}"),
            Inbound::New => {
                let id = wire::number(payload).expect("a numbered message");
                self.promises.came(Way::In, id, topic, *qos);
            }
        }
    }

    /// A connection of a client is over.
    fn lose(&mut self, client: usize) {
        let known = &mut self.clients[client];
        if known.link.take().is_some() {
            known.machine.disconnected();
            if !std::mem::take(&mut known.requests).is_empty() {
                known.subscribed.clear();
            }
        }
    }

    /// The broker ends without a farewell and comes back with what is left on the disk.
    fn crash(&mut self) {
        for client in 0..self.clients.len() {
            if self.rng.percent(60)
                && let Some(link) = &self.clients[client].link
            {
                let bytes = link.peer.receive(usize::MAX);
                self.take_in(client, &bytes);
            }
            self.lose(client);
        }
        self.other.lose(&mut self.rng, &mut self.promises);
        self.refused_before = self.refusals();
        let only_kill = self.durable().only_kills || self.rng.percent(30);
        self.disk = if only_kill { self.disk.kill() } else { self.disk.power_cut() };
        // A restarted broker has space and a readable disk.
        self.disk.set_capacity(None);
        self.disk.set_faults(DiskFaults::default());
        self.setup.shards = self.rng.between(1, 3) as usize;
        self.setup.config.shards = self.setup.shards;
        self.setup.loop_seed = self.rng.next_u64();
        let now_ns = self.cluster.now_ns() + self.rng.below(2 * SECOND_NS);
        if self.talks {
            eprintln!("the broker dies, power cut {}, {} shards", !only_kill, self.setup.shards);
        }
        self.restart(now_ns);
        self.disk.set_faults(self.durable().disk_faults);
    }

    fn restart(&mut self, now_ns: u64) {
        // What is counted per thread has to be given back before the next one begins to count.
        self.cluster = self.setup.cluster(now_ns, None);
        self.cluster = self.setup.cluster(now_ns, Some(&self.disk));
    }

    /// No more faults: everything comes that is to come.
    fn calm_down(&mut self) {
        (self.calm, self.other.calm) = (true, true);
        self.disk.set_faults(DiskFaults::default());
        self.disk.set_capacity(None);
        self.cluster.loops().set_faults(Faults::default());
        self.cluster.loops().end_stalls();
        for _ in 0..CALM_S {
            for client in 0..self.clients.len() {
                self.connect(client);
            }
            self.run_until_quiet();
            if self.is_done() {
                return;
            }
            self.cluster.loops().advance(SECOND_NS);
        }
        panic!("it does not deliver: {:?}, {} at rest", self.held(), self.other.at_rest());
    }

    fn run_until_quiet(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut moved = self.other.has_traffic();
            self.exchange_with_other();
            for client in 0..self.clients.len() {
                moved |= self.clients[client].link.as_ref().is_some_and(|link| {
                    link.peer.in_transit() > 0 || link.peer.waiting() > 0 || link.peer.is_over()
                });
                self.exchange(client);
            }
            moved |= let_shards_work(&mut self.cluster);
            moved |= self.commit();
            if !moved {
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.held());
    }

    fn held(&self) -> Vec<tacho_broker::sim::Held> {
        (0..self.setup.shards).map(|shard| self.cluster.held(shard)).collect()
    }

    fn is_done(&self) -> bool {
        let done = |client: &Client| client.is_online() && client.machine.inflight_len() == 0;
        self.clients.iter().all(done)
            && self.other.at_rest() == self.bridged.connections
            && self.held().iter().all(|held| held.queue_len + held.inflight_len == 0)
    }

    /// Everything was delivered, and the disk knows that too.
    fn nothing_is_kept(&mut self) {
        self.disk = self.disk.kill();
        let now_ns = self.cluster.now_ns();
        self.restart(now_ns);
        for held in self.held() {
            assert_eq!((held.queue_len, held.inflight_len), (0, 0), "after a restart: {held:?}");
        }
    }

    fn say(&self, client: usize, what: &str) {
        if self.talks {
            let name = &self.clients[client].name;
            eprintln!("{:>12} {name} {what}", self.cluster.now_ns() - START_NS);
        }
    }
}

fn nature(rng: &mut Rng, version: Version) -> Nature {
    let wish = Wish { qos: QoS::ExactlyOnce, no_local: false, retain_as_published: false, id: 0 };
    Nature {
        version,
        receive_maximum: u16::MAX,
        inflight_max: rng.between(1, 10) as u16,
        alias_max: 0,
        packet_size_max: None,
        keep_alive_s: 0,
        expiry_s: u32::MAX,
        wishes: vec![wish],
        diligence: if rng.percent(60) { 100 } else { rng.between(5, 60) },
        window_bytes: 64 * 1024,
    }
}
