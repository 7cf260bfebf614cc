//! Users and rules that change while clients act; logins that are answered late, twice or never;
//! publishers that are held to a rate; and in some runs a broker that dies.
//!
//! [`judge`] knows which policies each shard had at each moment, by counting those that came to it.
//! No client may receive or publish what no policy of that moment lets it, be let in by none, or be
//! disconnected without a reason; and what all policies since it was published let a client have
//! must have come at the end. [`policy`] is the naive model of what the files say.

mod client;
mod judge;
mod policy;
mod seen;

use std::collections::{HashMap, HashSet};
use std::fs;

use tacho_access::StoredPassword;
use tacho_broker::sim::{Cluster, Seeds};
use tacho_broker::{AccessReloaded, Config, RawConfig};
use tacho_codec::{Disconnect, Packet, QoS};
use tacho_journal::sim::Disk;
use tacho_net::sim::Faults;
use tacho_testkit::rng::Rng;
use tempfile::TempDir;

use crate::world::SECOND_NS;
use client::{Client, Content};
use judge::{Judge, Message, Moment, ShardView, Who};
use policy::{FILTERS, Policy, SHARED_TOPIC, TOPICS, USERS, WILL, pattern};

const START_NS: u64 = 1_000 * SECOND_NS;
const UNIX_OFFSET_NS: u64 = 1_700_000_000 * SECOND_NS;
/// Rounds after which a run that does not come to rest has failed.
const ROUNDS_MAX: usize = 20_000;
/// What shards have scheduled for so soon belongs to their work: a message whose commit was not
/// complete is read from the journal 1 ms later.
const SOON_NS: u64 = 10_000_000;
/// Seconds in which everything has to come that waits for a rate.
const CALM_S: usize = 120;

struct World {
    rng: Rng,
    seed: u64,
    folder: TempDir,
    config: Config,
    faults: Faults,
    cluster: Cluster,
    disk: Option<Disk>,
    is_filtered: bool,
    stored: HashMap<(usize, u8), StoredPassword>,
    judge: Judge,
    /// The policy that the broker has started with.
    first_policy: usize,
    now: Moment,
    clients: Vec<Client>,
    messages: Vec<Message>,
    /// Messages that came to a member of the shared subscription.
    shared_got: HashSet<usize>,
    seen: u64,
    talks: bool,
}

/// One run; how many packets were seen.
pub(crate) fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    for _ in 0..world.rng.between(60, 400) {
        world.step();
    }
    world.calm_down();
    world.verdict();
    world.seen
}

impl World {
    fn new(seed: u64) -> Self {
        fastrand::seed(seed);
        let mut rng = Rng::new(seed);
        let folder = TempDir::new().unwrap();
        let shards = rng.between(1, 3) as usize;
        let is_filtered = rng.percent(30);
        let mut stored = HashMap::new();
        let policy = Policy::draw(&mut rng);
        write(&folder, &policy, &mut stored);
        let config = config(&mut rng, &folder, shards, is_filtered);
        let disk = rng.percent(30).then(|| Disk::new(rng.next_u64()));
        let mut percent = |max| rng.below(max) as u8;
        let faults = Faults {
            mail_delay_percent: percent(60),
            event_delay_percent: percent(50),
            short_io_percent: percent(20),
            stall_percent: percent(5),
            stall_ns_max: 3_000_000,
            turn_ns_max: rng.below(2_000_000),
            unit_ns_max: if rng.percent(50) { rng.below(50_000) } else { 0 },
            ..Faults::default()
        };
        let clients = (0..rng.between(2, 6)).map(|number| {
            Client::new(number as usize, rng.below(USERS.len() as u64) as usize, shards)
        });
        let clients = clients.collect();
        let cluster = start(&config, seed, faults, START_NS, disk.as_ref());
        cluster.hold_logins(true);
        let mut judge = Judge::default();
        judge.policies.push(policy);
        judge.shards.resize_with(shards, ShardView::default);
        let mut world = Self {
            rng,
            seed,
            folder,
            config,
            faults,
            cluster,
            disk,
            is_filtered,
            stored,
            judge,
            first_policy: 0,
            now: 0,
            clients,
            messages: Vec::new(),
            shared_got: HashSet::new(),
            seen: 0,
            talks: std::env::var_os("TACHO_SIM_TALK").is_some(),
        };
        world.observe();
        world
    }

    fn step(&mut self) {
        let client = self.rng.below(self.clients.len() as u64) as usize;
        match self.rng.below(30) {
            0..5 => self.connect(client),
            5..14 => self.publish(client),
            14..18 => self.subscribe(client),
            18 => self.unsubscribe(client),
            19 => self.cut(client),
            20 => self.disconnect(client),
            21 | 22 => self.change_policy(),
            23 => {
                let shard = self.rng.below(self.config.shards as u64) as usize;
                let ns = self.rng.below(50_000_000);
                self.cluster.loops().stall(shard, ns);
            }
            24 => {
                // Sometimes longer than a client may take to connect.
                let seconds = if self.rng.percent(10) { 30 } else { 2 };
                let ns = self.rng.below(seconds * SECOND_NS);
                self.cluster.loops().advance(ns);
            }
            25 if self.disk.is_some() && self.rng.percent(20) => self.crash(),
            _ => {}
        }
        self.answer_logins();
        for _ in 0..self.rng.below(6) {
            self.turn();
            let pause_ns = self.rng.below(100_000);
            self.cluster.loops().advance(pause_ns);
        }
    }

    /// One shard takes a turn, and clients see what comes of it. False if there was nothing to do.
    fn turn(&mut self) -> bool {
        if self.disk.is_some() && self.rng.percent(60) {
            self.cluster.commit();
        }
        let has_worked = self.cluster.loops().step();
        self.observe();
        has_worked
    }

    fn observe(&mut self) {
        self.now += 1;
        for (shard, stats) in self.cluster.stats().iter().enumerate() {
            let reloads = stats.access_reloads_total.value() as usize;
            let is_new = self.judge.shards[shard].note(self.now, self.first_policy + reloads);
            if is_new && self.talks {
                let policy = self.first_policy + reloads;
                eprintln!("{:>6} shard {shard} has policy {policy}", self.now);
            }
        }
        for client in 0..self.clients.len() {
            for event in self.clients[client].take_events() {
                self.seen += 1;
                self.say(client, &format!("sees {event:?}"));
                self.event(client, event);
            }
            let Some(link) = &self.clients[client].link else { continue };
            if link.peer.is_over() {
                if link.is_online && !link.was_dismissed {
                    // What it was told did not leave in time.
                    self.dismissed(client, None);
                }
                self.lose_link(client);
            }
        }
        for shard in 0..self.judge.shards.len() {
            if self.cluster.output_bytes(shard) == 0 {
                self.judge.shards[shard].drained = self.now;
            }
        }
    }

    fn who(&self, client: usize) -> Who {
        Who { user: self.clients[client].user, shard: self.clients[client].shard }
    }

    fn policy(&self) -> &Policy {
        // Invariant: there is one from the beginning.
        self.judge.policies.last().unwrap()
    }
}

/// What clients do.
impl World {
    fn connect(&mut self, client: usize) {
        if self.clients[client].link.is_some() {
            return;
        }
        let known = self.policy().password_of(self.clients[client].user);
        let password = match self.rng.below(10) {
            0 => None,
            1 => Some(self.rng.below(2) as u8),
            _ => known.or(Some(0)),
        };
        let will = self.rng.percent(40).then(|| {
            let qos = if self.rng.percent(50) { QoS::AtMostOnce } else { QoS::AtLeastOnce };
            let retain = self.rng.percent(20);
            let content = Content { number: self.messages.len(), topic: WILL, qos, retain };
            (content, self.rng.below(4) as u32)
        });
        self.dial(client, password, will);
    }

    fn dial(&mut self, client: usize, password: Option<u8>, will: Option<(Content, u32)>) {
        if let Some((content, _)) = will {
            self.note_message(client, content, Some(None));
        }
        let shard = self.rng.below(self.config.shards as u64) as usize;
        let peer = self.cluster.connect(shard);
        self.clients[client].connect(peer, self.now, password, will);
        self.arrive(client);
        self.say(client, &format!("connects with password {password:?} and will {will:?}"));
    }

    fn note_message(&mut self, client: usize, content: Content, will: Option<Option<Moment>>) {
        let Content { topic, qos, retain, .. } = content;
        let (publisher, sent, done) = (client, self.now, None);
        self.messages.push(Message { publisher, topic, qos, retain, sent, done, will });
    }

    fn publish(&mut self, client: usize) {
        if !self.clients[client].is_online() || self.clients[client].unacked.len() >= 20 {
            return;
        }
        let content = Content {
            number: self.messages.len(),
            topic: match self.rng.percent(20) {
                true => SHARED_TOPIC,
                false => self.rng.below(WILL as u64) as usize,
            },
            qos: if self.rng.percent(30) { QoS::AtMostOnce } else { QoS::AtLeastOnce },
            retain: self.rng.percent(20),
        };
        self.note_message(client, content, None);
        self.clients[client].publish(content);
        self.arrive(client);
        self.say(client, &format!("publishes {content:?}"));
    }

    fn subscribe(&mut self, client: usize) {
        if !self.clients[client].is_online() || self.clients[client].requests.len() >= 5 {
            return;
        }
        let filter = match self.rng.percent(20) {
            true => FILTERS.len() - 1,
            false => self.rng.below(FILTERS.len() as u64) as usize,
        };
        let now = self.now;
        self.clients[client].subscribe(filter, now);
        self.arrive(client);
        self.say(client, &format!("subscribes {}", FILTERS[filter]));
    }

    fn unsubscribe(&mut self, client: usize) {
        let filters: Vec<usize> = self.clients[client].spans.keys().copied().collect();
        if !self.clients[client].is_online() || filters.is_empty() {
            return;
        }
        let filter = filters[self.rng.below(filters.len() as u64) as usize];
        self.clients[client].unsubscribe(filter);
        self.arrive(client);
        self.say(client, &format!("unsubscribes {}", FILTERS[filter]));
    }

    fn disconnect(&mut self, client: usize) {
        if self.clients[client].is_online() {
            self.clients[client].send(&Packet::Disconnect(Disconnect::default()));
            if let Some(link) = &self.clients[client].link {
                link.peer.finish();
            }
            self.say(client, "disconnects");
            self.lose_link(client);
        }
    }

    fn cut(&mut self, client: usize) {
        if let Some(link) = &self.clients[client].link {
            link.peer.reset();
            self.say(client, "is cut off");
            self.lose_link(client);
        }
    }

    fn lose_link(&mut self, client: usize) {
        let Some(link) = self.clients[client].link.take() else { return };
        if let Some(will) = link.will {
            self.messages[will].will = Some(Some(self.now));
        }
        self.clients[client].abandoned.push(link.peer);
    }

    fn arrive(&self, client: usize) {
        if let Some(link) = &self.clients[client].link {
            link.peer.arrive(usize::MAX);
        }
    }
}

/// What happens to the broker.
impl World {
    fn change_policy(&mut self) {
        let new = self.policy().clone().changed(&mut self.rng);
        self.post(new);
    }

    fn post(&mut self, new: Policy) {
        if new == *self.policy() {
            return;
        }
        write(&self.folder, &new, &mut self.stored);
        assert_eq!(self.cluster.access().reload(), AccessReloaded::New);
        if self.talks {
            eprintln!("{:>6} policy {}: {new:?}", self.now, self.judge.policies.len());
        }
        self.judge.policies.push(new);
    }

    /// Some of the logins that wait are answered, once or twice; some never.
    fn answer_logins(&mut self) {
        for _ in 0..self.cluster.logins_waiting() {
            if self.rng.percent(40) {
                let waiting = self.cluster.logins_waiting() as u64;
                let at = self.rng.below(waiting) as usize;
                let times = [1, 1, 1, 1, 2, 2, 0][self.rng.below(7) as usize];
                self.cluster.answer_login(at, times);
            }
        }
    }

    /// The broker dies and comes back with what it has kept, and the files as they are now.
    fn crash(&mut self) {
        let Some(disk) = self.disk.take() else { return };
        for client in 0..self.clients.len() {
            self.lose_link(client);
            self.clients[client].abandoned.clear();
        }
        let disk = if self.rng.percent(50) { disk.kill() } else { disk.power_cut() };
        self.seed = self.rng.next_u64();
        let now_ns = self.cluster.now_ns();
        // What is counted per thread has to be given back before the next one begins to count.
        self.cluster = start(&self.config, self.seed, self.faults, now_ns, None);
        self.cluster = start(&self.config, self.seed, self.faults, now_ns, Some(&disk));
        self.cluster.hold_logins(true);
        self.disk = Some(disk);
        self.first_policy = self.judge.policies.len() - 1;
        if self.talks {
            eprintln!("{:>6} the broker dies", self.now);
        }
        self.observe();
    }

    /// No more faults and changes: all clients come back and get what waits for them.
    fn calm_down(&mut self) {
        self.cluster.loops().set_faults(Faults::default());
        self.cluster.loops().end_stalls();
        self.cluster.hold_logins(false);
        while self.cluster.logins_waiting() > 0 {
            self.cluster.answer_login(0, 1);
        }
        let last = self.policy().for_all();
        self.post(last);
        self.run_until_quiet();
        for _ in 0..CALM_S {
            for client in 0..self.clients.len() {
                if self.clients[client].link.is_none() {
                    let password = self.policy().password_of(self.clients[client].user);
                    self.dial(client, password, None);
                }
            }
            self.run_until_quiet();
            let is_done = |client: &Client| {
                client.is_online() && client.unacked.is_empty() && client.requests.is_empty()
            };
            if self.clients.iter().all(is_done) {
                return;
            }
            self.cluster.loops().advance(SECOND_NS);
        }
        panic!("clients do not come to rest");
    }

    fn run_until_quiet(&mut self) {
        for _ in 0..ROUNDS_MAX {
            (0..self.clients.len()).for_each(|client| self.arrive(client));
            let has_committed = self.disk.is_some() && self.cluster.commit();
            if self.turn() || has_committed {
                self.cluster.loops().advance(1_000);
                continue;
            }
            let now_ns = self.cluster.now_ns();
            let due_ns = self.cluster.loops().next_deadline_ns().unwrap_or(u64::MAX);
            if due_ns > now_ns + SOON_NS {
                return;
            }
            self.cluster.loops().advance(due_ns - now_ns);
        }
        panic!("it does not come to rest");
    }

    fn say(&self, client: usize, what: &str) {
        if self.talks {
            let Client { name, shard, .. } = &self.clients[client];
            eprintln!("{:>6} {name} of shard {shard} {what}", self.now);
        }
    }
}

/// At the end.
impl World {
    /// What every policy lets a client have must have come.
    fn verdict(&self) {
        for client in 0..self.clients.len() {
            let (who, known) = (self.who(client), &self.clients[client]);
            for (&filter, span) in &known.spans {
                let (topics, is_shared) = pattern(filter);
                let lasts = self.is_filtered && !is_shared
                    || self.judge.must_have(who, filter, span.asked, self.now);
                if !lasts {
                    continue;
                }
                for (number, message) in self.messages.iter().enumerate() {
                    let is_taken = message.will.is_none()
                        && message.qos == QoS::AtLeastOnce
                        && message.sent > span.granted
                        && message.done.is_some_and(|(_, reason)| !reason.is_error());
                    let must = is_taken
                        && tacho_topic::matches(topics, TOPICS[message.topic])
                        && self.judge.must_receive(who, message.topic, message.sent, self.now);
                    let came = match is_shared {
                        true => self.shared_got.contains(&number),
                        false => known.got.contains(&number),
                    };
                    assert!(
                        !must || came,
                        "{number} {message:?} is missing: {} by {}",
                        known.name,
                        FILTERS[filter]
                    );
                }
            }
        }
    }
}

fn write(folder: &TempDir, policy: &Policy, stored: &mut HashMap<(usize, u8), StoredPassword>) {
    fs::write(folder.path().join("users"), policy.users(stored)).unwrap();
    fs::write(folder.path().join("rules.toml"), policy.rules()).unwrap();
}

fn config(rng: &mut Rng, folder: &TempDir, shards: usize, is_filtered: bool) -> Config {
    let path = |name: &str| folder.path().join(name);
    let remembered = if rng.percent(50) { 0 } else { 1_000 };
    let subscribe = if is_filtered { "filtered" } else { "whole" };
    let rate = match rng.percent(30) {
        true => format!("publish_messages_per_s_max = {}\n", rng.between(5, 50)),
        false => String::new(),
    };
    let text = format!(
        "shards = {shards}\n[access]\npassword_file = {:?}\nrules_file = {:?}\n\
         remembered_logins_max = {remembered}\nsubscribe = '{subscribe}'\n\
         [[listeners]]\naddress = '127.0.0.1:1883'\n{rate}",
        path("users"),
        path("rules.toml"),
    );
    let mut raw: RawConfig = toml::from_str(&text).unwrap();
    raw.limits.inflight_max = rng.between(1, 20) as u16;
    if rng.percent(30) {
        raw.limits.deliveries_per_turn_max = rng.between(1, 4) as usize;
        raw.limits.route_cache_topics_max = rng.between(1, 4) as usize;
    }
    raw.resolve().unwrap()
}

fn start(config: &Config, seed: u64, faults: Faults, now_ns: u64, disk: Option<&Disk>) -> Cluster {
    let Some(disk) = disk else {
        return Cluster::new(config, |bounds| bounds, seed, faults, now_ns).unwrap();
    };
    let (seeds, unix_ns) = (Seeds { seed, faults, now_ns }, now_ns + UNIX_OFFSET_NS);
    Cluster::with_journal(config, |bounds| bounds, seeds, disk.clone(), unix_ns).unwrap()
}
