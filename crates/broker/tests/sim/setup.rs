//! What a run is made of, drawn from its seed.

use tacho_broker::sim::{Cluster, Seeds};
use tacho_broker::{Config, Level, QueuePolicy, RawConfig, SharedStrategy};
use tacho_codec::{QoS, Version};
use tacho_journal::Journal;
use tacho_journal::sim::Disk;
use tacho_net::LoopConfig;
use tacho_net::sim::Faults;

use tacho_testkit::rng::Rng;

/// Where the wall clock stands when the loops' clock is at 0.
const UNIX_OFFSET_NS: u64 = 1_700_000_000_000_000_000;
/// A queue that may hold this many messages does not fill up in a simulation.
const NEVER_FULL: u32 = 100;

pub(crate) const QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

/// Topics by what happens there: plain messages, retained ones, those of shared subscriptions (each
/// group has its own), wills.
pub(crate) const TOPICS: [&str; 14] = [
    "p/0", "p/1", "p/2", "p/1/x", "r/0", "r/1", "r/2", "r/0/x", "s/a/0", "s/a/1", "s/b/0", "s/b/1",
    "w/0", "$data/0",
];
pub(crate) const PLAIN: [usize; 5] = [0, 1, 2, 3, 13];
pub(crate) const RETAINED: [usize; 4] = [4, 5, 6, 7];
pub(crate) const SHARED: [usize; 4] = [8, 9, 10, 11];
pub(crate) const WILL: usize = 12;

/// What clients subscribe to. Every shared filter has topics of its own.
pub(crate) const FILTERS: [&str; 15] = [
    "p/0",
    "p/1",
    "p/+",
    "p/#",
    "+/0",
    "p/1/#",
    "r/0",
    "r/1",
    "r/+",
    "r/#",
    "+/0/x",
    "$data/+",
    "w/+",
    "$share/a/s/a/+",
    "$share/b/s/b/#",
];
/// The filter that sees all wills.
pub(crate) const WILLS: usize = 12;

/// The pattern of a filter and the name of its group.
pub(crate) fn pattern(filter: usize) -> (&'static str, Option<&'static str>) {
    let text = FILTERS[filter];
    match text.strip_prefix("$share/").and_then(|rest| rest.split_once('/')) {
        Some((group, pattern)) => (pattern, Some(group)),
        None => (text, None),
    }
}

pub(crate) fn matches(filter: usize, topic: usize) -> bool {
    tacho_topic::matches(pattern(filter).0, TOPICS[topic])
}

pub(crate) fn is_shared(filter: usize) -> bool {
    pattern(filter).1.is_some()
}

/// What a client asks for with a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) qos: QoS,
    pub(crate) no_local: bool,
    pub(crate) retain_as_published: bool,
    /// 0 is none.
    pub(crate) id: u32,
}

/// One client's nature.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) version: Version,
    pub(crate) receive_maximum: u16,
    pub(crate) inflight_max: u16,
    pub(crate) alias_max: u16,
    pub(crate) keep_alive_s: u16,
    /// The largest packet that it takes, if it says so.
    pub(crate) packet_size_max: Option<u32>,
    /// Seconds that its session outlives a connection, if it is not to end with it.
    pub(crate) expiry_s: u32,
    pub(crate) wishes: Vec<Wish>,
    /// Percent of chances to send acknowledgements that it uses.
    pub(crate) diligence: u64,
    /// Bytes that wait on its side before the broker's writes block.
    pub(crate) window_bytes: usize,
}

/// What is drawn for a broker with a journal.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    /// Ends of the broker per thousand steps of the run.
    pub(crate) crash_permille: u64,
    /// The process dies, but nothing of what it wrote is lost.
    pub(crate) only_kills: bool,
    /// The disk's own faults while the run is not calm.
    pub(crate) disk_faults: tacho_journal::sim::Faults,
    /// Bytes that the disk has, now and then.
    pub(crate) narrow_bytes: Option<u64>,
    /// Percent of chances to commit that the commit thread uses.
    pub(crate) commit_percent: u64,
    pub(crate) options: tacho_journal::Options,
    pub(crate) disk_seed: u64,
}

impl Durable {
    fn new(rng: &mut Rng, config: &mut Config) -> Self {
        let only_kills = rng.percent(20);
        let level = if only_kills { Level::Written } else { Level::Fsynced };
        config.durability.persistent_level = level;
        config.durability.retained_level = level;
        if config.limits.session_queue_len_max < NEVER_FULL {
            config.durability.session_queue_len_max = config.limits.session_queue_len_max;
        }
        let mut chance = |percent, max: u64| match rng.percent(percent) {
            true => rng.below(max) as f64 / 1000.0,
            false => 0.0,
        };
        let disk_faults = tacho_journal::sim::Faults {
            write_error: chance(15, 50),
            short: chance(30, 300),
            sync_error: chance(15, 50),
            read_error: 0.0,
            name_error: chance(10, 50),
        };
        let segment_bytes = [16 << 10, 64 << 10, 1 << 20][rng.below(3) as usize];
        let options = tacho_journal::Options {
            segment_bytes,
            segments_ready: 1,
            log_bytes_min: u64::from(segment_bytes) * rng.between(2, 6),
            ..tacho_journal::Options::default()
        };
        let narrow = rng.percent(10);
        let narrow_bytes = narrow.then(|| u64::from(segment_bytes) * rng.between(2, 8));
        Self {
            crash_permille: rng.between(3, 40),
            only_kills,
            disk_faults,
            narrow_bytes,
            commit_percent: if rng.percent(60) { rng.between(20, 100) } else { rng.between(1, 20) },
            options,
            disk_seed: rng.next_u64(),
        }
    }
}

/// What is drawn for a bridge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bridged {
    pub(crate) version: Version,
    pub(crate) connections: usize,
}

impl Bridged {
    fn new(rng: &mut Rng) -> Self {
        let version = if rng.percent(70) { Version::V5 } else { Version::V311 };
        Self { version, connections: rng.between(1, 3) as usize }
    }

    /// Its configuration: what is plain goes out, what is retained elsewhere comes in.
    fn text(self, rng: &mut Rng) -> String {
        let Self { version, connections } = self;
        let version = if version.is_v5() { "'5'" } else { "'3.1.1'\nbridge_flag = false" };
        let inflight = rng.between(1, 20);
        format!(
            "[[bridges]]\nname = 'b'\naddress = 'mqtt://127.0.0.1:1'\nversion = {version}\n\
             connections = {connections}\ninflight = {inflight}\nretry_longest_s = 1\n\
             [[bridges.egress]]\nfilter = 'p/#'\n[[bridges.ingress]]\nfilter = 'r/#'\n"
        )
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) shards: usize,
    pub(crate) natures: Vec<Nature>,
    pub(crate) steps: u32,
    pub(crate) cut_percent: u64,
    pub(crate) clean_percent: u64,
    pub(crate) will_percent: u64,
    pub(crate) large_percent: u64,
    pub(crate) expiry_percent: u64,
    /// Subscriptions whose options change.
    pub(crate) change_percent: u64,
    pub(crate) retained_will_percent: u64,
    /// Only a part of what can be done is done often; which part differs.
    pub(crate) favourite: u64,
    pub(crate) faults: Faults,
    pub(crate) config: Config,
    pub(crate) loop_seed: u64,
    pub(crate) narrow: bool,
    /// With a journal, and crashes.
    pub(crate) durable: Option<Durable>,
}

impl Setup {
    /// Whether the queue of a session may get full.
    pub(crate) fn queues_fill_up(&self) -> bool {
        self.config.limits.session_queue_len_max < NEVER_FULL
    }

    /// Whether the full queue of a session may drop messages.
    pub(crate) fn queues_drop(&self) -> bool {
        let limits = &self.config.limits;
        let policies = [limits.persistent_queue_full, limits.clean_queue_full];
        self.queues_fill_up() && policies.iter().any(|policy| *policy != QueuePolicy::Refuse)
    }

    pub(crate) fn new(rng: &mut Rng) -> Self {
        let shards = rng.between(1, 3) as usize;
        let clients = rng.between(2, 6);
        let natures: Vec<Nature> = (0..clients).map(|_| nature(rng)).collect();
        let bad = rng.percent(75);
        let turn_ns_max = if bad { rng.below(2_000_000) } else { 0 };
        // Up to turns that end after the least work that each of their parts does.
        let unit_ns_max = if bad { rng.below(50_000) } else { 0 };
        let config = config(rng, shards, clients as usize);
        let mut percent = |max| if bad { rng.below(max) as u8 } else { 0 };
        let faults = Faults {
            mail_delay_percent: percent(60),
            mail_overtakes: false,
            event_delay_percent: percent(50),
            short_io_percent: percent(30),
            turn_ns_max,
            unit_ns_max,
            stall_percent: percent(5),
            stall_ns_max: 3_000_000,
            refuse_percent: percent(10),
        };
        Self {
            shards,
            natures,
            steps: rng.between(60, 400) as u32,
            cut_percent: if rng.percent(70) { rng.between(1, 6) } else { 0 },
            clean_percent: if rng.percent(40) { rng.between(5, 50) } else { 0 },
            will_percent: rng.below(60),
            large_percent: match () {
                // Something to use the budget up with.
                () if config.limits.queues_bytes_max > 0 => rng.between(20, 60),
                () if rng.percent(30) => rng.below(30),
                () => 0,
            },
            expiry_percent: if rng.percent(30) { rng.below(50) } else { 0 },
            change_percent: if rng.percent(50) { rng.between(10, 100) } else { 0 },
            retained_will_percent: if rng.percent(40) { rng.between(10, 100) } else { 0 },
            favourite: rng.below(6),
            faults,
            config,
            loop_seed: rng.next_u64(),
            narrow: rng.percent(40),
            durable: None,
        }
    }

    /// The same with a journal.
    pub(crate) fn durable(rng: &mut Rng) -> Self {
        let mut setup = Self::new(rng);
        setup.durable = Some(Durable::new(rng, &mut setup.config));
        setup
    }

    /// With a journal and a bridge; limits are ample, so that nothing is dropped.
    pub(crate) fn bridged(rng: &mut Rng) -> (Self, Bridged) {
        let mut setup = Self::durable(rng);
        let bridged = Bridged::new(rng);
        let mut raw: RawConfig = toml::from_str(&bridged.text(rng)).unwrap();
        raw.shards = Some(setup.shards);
        let limits = &mut raw.limits;
        limits.inflight_max = rng.between(1, 20) as u16;
        limits.receive_maximum = rng.between(1, 20) as u16;
        if rng.percent(30) {
            limits.deliveries_per_turn_max = rng.between(1, 4) as usize;
            limits.route_cache_topics_max = rng.between(1, 4) as usize;
        }
        let mut config = raw.resolve().unwrap();
        config.durability = setup.config.durability;
        setup.config = config;
        (setup, bridged)
    }

    pub(crate) fn cluster(&self, now_ns: u64, disk: Option<&Disk>) -> Cluster {
        let bounds = |config: LoopConfig| match self.narrow {
            // Every bound of a turn is met all the time.
            true => LoopConfig {
                read_buffer_bytes: 64,
                connections_per_turn_max: 2,
                accepts_per_turn_max: 1,
                mails_per_turn_max: 3,
                timers_per_turn_max: 1,
                ..config
            },
            false => LoopConfig { read_buffer_bytes: 4096, ..config },
        };
        let (seed, faults) = (self.loop_seed, self.faults);
        let (Some(disk), Some(durable)) = (disk, &self.durable) else {
            return Cluster::new(&self.config, bounds, seed, faults, now_ns).unwrap();
        };
        let opened = Journal::open_on(disk.clone(), durable.options.clone());
        let opened = opened.expect("the journal can be opened");
        let seeds = Seeds { seed, faults, now_ns };
        Cluster::on_journal(&self.config, bounds, seeds, opened, now_ns + UNIX_OFFSET_NS)
            .expect("the journal can be read")
    }
}

/// Options for a subscription, and an identifier that no other filter has.
pub(crate) fn wish(rng: &mut Rng, filter: usize, v5: bool) -> Wish {
    let id = filter as u32 + 1;
    Wish {
        qos: QOS[if rng.percent(20) { 0 } else { rng.between(1, 2) as usize }],
        no_local: v5 && !is_shared(filter) && rng.percent(10),
        retain_as_published: v5 && rng.percent(20),
        id: match v5 {
            true if rng.percent(30) => id,
            true if rng.percent(20) => id + FILTERS.len() as u32,
            _ => 0,
        },
    }
}

fn nature(rng: &mut Rng) -> Nature {
    let version = match rng.below(10) {
        0 => Version::V31,
        1..4 => Version::V311,
        _ => Version::V5,
    };
    let v5 = version == Version::V5;
    let wishes = (0..FILTERS.len()).map(|filter| wish(rng, filter, v5)).collect();
    Nature {
        version,
        receive_maximum: if rng.percent(50) { rng.between(1, 8) as u16 } else { u16::MAX },
        inflight_max: rng.between(1, 10) as u16,
        alias_max: rng.below(3) as u16,
        packet_size_max: (v5 && rng.percent(15)).then(|| rng.between(60, 3_000) as u32),
        keep_alive_s: if rng.percent(20) { rng.between(2, 20) as u16 } else { 0 },
        expiry_s: if rng.percent(70) { u32::MAX } else { rng.between(1, 60) as u32 },
        wishes,
        diligence: if rng.percent(60) { 100 } else { rng.between(5, 60) },
        window_bytes: if rng.percent(70) { 64 * 1024 } else { rng.between(1, 600) as usize },
    }
}

/// Mostly one that loses nothing.
fn queue_policy(rng: &mut Rng) -> QueuePolicy {
    let losing = [QueuePolicy::DropNewest, QueuePolicy::DropOldest];
    if rng.percent(60) { QueuePolicy::Refuse } else { losing[rng.below(2) as usize] }
}

/// The broker's limits: ample, or so narrow that they are met.
fn config(rng: &mut Rng, shards: usize, clients: usize) -> Config {
    let mut raw = RawConfig { shards: Some(shards), ..RawConfig::default() };
    if rng.percent(50) {
        raw.shared_subscription_strategy = Some(SharedStrategy::ALL[rng.below(6) as usize]);
    }
    let limits = &mut raw.limits;
    limits.inflight_max = rng.between(1, 20) as u16;
    limits.receive_maximum = rng.between(1, 20) as u16;
    limits.topic_alias_maximum = rng.below(4) as u16;
    limits.packet_size_max = 64 * 1024;
    if rng.percent(30) {
        limits.session_queue_len_max = rng.between(1, 30) as u32;
        limits.persistent_queue_full = queue_policy(rng);
        limits.clean_queue_full = queue_policy(rng);
        limits.shared_queue_full = queue_policy(rng);
        // A client that disconnected behind a held-back PUBLISH acknowledges no more.
        limits.publish_hold_s = 3;
        limits.shared_queue_len_max = rng.between(1, 20) as usize;
    }
    if rng.percent(40) {
        limits.output_bytes_max = 4096;
    }
    if rng.percent(50) {
        limits.deliveries_per_turn_max = rng.between(1, 4) as usize;
        limits.fanout_backlog_max = rng.between(1, 4) as usize;
        limits.route_cache_topics_max = rng.between(1, 4) as usize;
    }
    // The totals over all clients.
    if rng.percent(30) {
        // One for each, and for the one without faults.
        limits.connections_max = clients + 1;
    }
    if rng.percent(20) {
        limits.handshakes_max = rng.between(1, 4) as usize;
    }
    if rng.percent(15) {
        limits.subscriptions_max = rng.between(3, 20) as usize;
    }
    if rng.percent(15) {
        limits.subscriptions_bytes_max = rng.between(10, 100);
    }
    if rng.percent(30) {
        limits.subscription_removals_per_turn_max = rng.between(1, 3) as usize;
    }
    if rng.percent(15) {
        limits.retained_count_max = rng.between(1, 4) as usize;
        limits.retained_bytes_max = rng.between(20, 400);
    }
    if rng.percent(20) {
        limits.queues_bytes_max = rng.between(500, 20_000);
        // A client that disconnected behind a held-back PUBLISH acknowledges no more.
        limits.publish_hold_s = 3;
    }
    raw.resolve().unwrap()
}
