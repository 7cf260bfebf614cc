//! The clients of a run, drawn from the seed, and their topics.

use tacho_codec::{QoS, Version};

use tacho_testkit::rng::Rng;

/// Topics by use: plain messages, changing subscriptions, retained messages, shared subscriptions
/// (separate ones for each group), wills.
pub(crate) const TOPICS: [&str; 14] = [
    "t/0", "t/1", "t/2", "t/3", "c/0", "c/1", "c/2", "r/0", "r/1", "r/2", "s/a/0", "s/a/1",
    "s/b/0", "w/0",
];
pub(crate) const RETAINED: [usize; 3] = [7, 8, 9];
pub(crate) const WILL: usize = 13;

/// The filters of all clients. No client has two overlapping filters.
pub(crate) const FILTERS: [&str; 10] =
    ["t/#", "t/+", "t/0", "r/+", "c/0", "c/1", "c/2", "$share/a/s/a/+", "$share/b/s/b/#", "w/+"];
/// All retained topics.
pub(crate) const ALL_RETAINED: usize = 3;
const CHANGING: [usize; 3] = [4, 5, 6];
const WILLS: usize = 9;

/// The pattern of a filter, and whether it is a shared subscription.
fn pattern(filter: usize) -> (&'static str, bool) {
    let text = FILTERS[filter];
    match text.strip_prefix("$share/").and_then(|rest| rest.split_once('/')) {
        Some((_, pattern)) => (pattern, true),
        None => (text, false),
    }
}

pub(crate) fn matches(filter: usize, topic: usize) -> bool {
    tacho_topic::matches(pattern(filter).0, TOPICS[topic])
}

pub(crate) fn is_shared(filter: usize) -> bool {
    pattern(filter).1
}

/// The role of one client.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) version: Version,
    /// Its session outlives connections and the broker.
    pub(crate) durable: bool,
    pub(crate) publishes: bool,
    /// Subscriptions from its first connection on.
    pub(crate) wishes: Vec<(usize, QoS)>,
    /// Filters that it repeatedly subscribes to and unsubscribes from.
    pub(crate) changes: Vec<(usize, QoS)>,
    /// It has wills, and loses its connections.
    pub(crate) mortal: bool,
    /// It starts a new session occasionally.
    pub(crate) fickle: bool,
    /// It never disconnects by itself.
    pub(crate) steady: bool,
    pub(crate) receive_maximum: u16,
    pub(crate) inflight_max: u16,
    /// Probability of answering in a turn, in percent.
    pub(crate) diligence: u64,
}

impl Role {
    fn new(name: String, rng: &mut Rng) -> Self {
        let version = if rng.percent(25) { Version::V311 } else { Version::V5 };
        Self {
            name,
            version,
            durable: true,
            publishes: false,
            wishes: Vec::new(),
            changes: Vec::new(),
            mortal: false,
            fickle: false,
            steady: false,
            receive_maximum: if rng.percent(50) { rng.between(1, 8) as u16 } else { u16::MAX },
            inflight_max: rng.between(1, 40) as u16,
            diligence: if rng.percent(50) { 100 } else { rng.between(5, 60) },
        }
    }

    /// Receives the retained messages, once.
    pub(crate) fn auditor(number: u32) -> Self {
        Self {
            name: format!("auditor-{number}"),
            version: Version::V5,
            durable: false,
            publishes: false,
            wishes: vec![(ALL_RETAINED, QoS::ExactlyOnce)],
            changes: Vec::new(),
            mortal: false,
            fickle: false,
            steady: true,
            receive_maximum: u16::MAX,
            inflight_max: 1,
            diligence: 100,
        }
    }
}

fn assured(rng: &mut Rng) -> QoS {
    if rng.percent(35) { QoS::AtLeastOnce } else { QoS::ExactlyOnce }
}

/// All clients of a run. The first one receives all wills. One of the shared groups subscribes at
/// QoS 2.
pub(crate) fn cast(rng: &mut Rng) -> Vec<Role> {
    let mut all = vec![Role {
        version: Version::V5,
        wishes: vec![(WILLS, QoS::ExactlyOnce)],
        steady: true,
        ..Role::new("warden".to_owned(), rng)
    }];
    for number in 0..rng.between(3, 6) {
        let mut role = Role::new(format!("publisher-{number}"), rng);
        role.publishes = true;
        role.durable = rng.percent(65);
        if role.durable && rng.percent(40) {
            role.wishes = vec![(2, assured(rng))];
        }
        all.push(role);
    }
    for number in 0..rng.between(2, 5) {
        let mut role = Role::new(format!("subscriber-{number}"), rng);
        role.wishes = vec![(rng.below(3) as usize, assured(rng))];
        if rng.percent(40) {
            role.wishes.push((ALL_RETAINED, assured(rng)));
        }
        // Before 5.0 the same flag also ends a session with its connection.
        role.fickle = number > 0 && role.version.is_v5() && rng.percent(40);
        all.push(role);
    }
    for number in 0..2 {
        let mut role = Role::new(format!("changer-{number}"), rng);
        role.changes = CHANGING.map(|filter| (filter, assured(rng))).to_vec();
        role.publishes = rng.percent(30);
        all.push(role);
    }
    for number in 0..rng.between(2, 4) {
        let mut role = Role::new(format!("member-{number}"), rng);
        role.wishes = vec![(7, QoS::ExactlyOnce), (8, QoS::AtLeastOnce)];
        all.push(role);
    }
    for number in 0..3 {
        let mut role = Role::new(format!("mortal-{number}"), rng);
        (role.version, role.mortal) = (Version::V5, true);
        all.push(role);
    }
    all
}

/// A topic to publish to, and whether the message is retained.
pub(crate) fn draw_topic(rng: &mut Rng) -> (usize, bool) {
    let topic = rng.below(WILL as u64) as usize;
    (topic, RETAINED.contains(&topic) && rng.percent(85))
}
