//! Time and memory of the topic indexes at a million filters.
//!
//! `cargo bench -p tacho-topic [-- SECTION]`; `TACHO_BENCH_FILTERS` sets another number. Each
//! section runs in a process of its own, so that sections do not share resident memory. Memory
//! includes the text of the filters; look-ups are in random order.

use std::env;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use tacho_testkit::memory::resident_bytes;
use tacho_topic::{
    Filter, Progress, RetainedCursor, RetainedIndex, RouteChange, RouteMap, SubscriptionIndex,
    TopicFilter,
};

/// Look-ups per measurement.
const LOOKUPS: usize = 1_000_000;

/// Updates published one by one per measurement.
const SINGLE_UPDATES: usize = 10_000;

/// Updates per publication in batches.
const BATCH_LEN: usize = 64;

/// The data that a broker keeps per subscription: options and identifier.
type Options = (u8, u32);

/// A part of the benchmark, given the number of filters.
type Section = fn(usize);

const SECTIONS: [(&str, Section); 8] = [
    ("index-exact", index_exact),
    ("index-wildcard", index_wildcard),
    ("index-fan-out", index_fan_out),
    ("routes-exact", routes_exact),
    ("routes-wildcard", routes_wildcard),
    ("routes-groups", routes_groups),
    ("index-and-routes", index_and_routes),
    ("retained", retained),
];

fn main() {
    let filters = env::var("TACHO_BENCH_FILTERS")
        .map_or(1_000_000, |text| text.parse().expect("TACHO_BENCH_FILTERS is a number"));
    let wanted: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if let Ok(own) = env::var("TACHO_BENCH_SECTION") {
        let section = SECTIONS.iter().find(|(name, _)| own == *name);
        println!("{own}, {filters} filters");
        return section.expect("a section of this benchmark").1(filters);
    }
    let program = env::current_exe().expect("the path of this program");
    for (name, _) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|section| section == name) {
            let status = Command::new(&program).env("TACHO_BENCH_SECTION", name).status();
            assert!(status.is_ok_and(|status| status.success()), "section {name} fails");
        }
    }
}

fn index_exact(count: usize) {
    let rss = resident_bytes();
    let mut index = SubscriptionIndex::<u32, Options>::new();
    report_each("insert, with check and copy of the text", count, |id| {
        index.insert(&exact_filter(id), id as u32, (1, 0));
    });
    report_memory(rss, count);
    report_match(&index, count, exact_topic);
}

fn index_wildcard(count: usize) {
    let rss = resident_bytes();
    let mut index = SubscriptionIndex::<u32, Options>::new();
    report_each("insert, with check and copy of the text", count, |id| {
        index.insert(&wildcard_filter(id), id as u32, (1, 0));
    });
    report_memory(rss, count);
    report_match(&index, count, wildcard_topic);
    report_each("remove", count, |id| {
        index.remove(&wildcard_filter(id), id as u32);
    });
}

fn index_fan_out(count: usize) {
    let rss = resident_bytes();
    let mut index = SubscriptionIndex::<u32, Options>::new();
    let filter = exact_filter(0);
    report_each("insert into one filter", count, |id| {
        index.insert(&filter, id as u32, (1, 0));
    });
    report_memory(rss, count);
    let topic = exact_topic(0);
    let (mut found, start) = (0_u64, Instant::now());
    index.for_each_match(&topic, |&key, _| found += u64::from(key));
    black_box(found);
    report("match, per subscriber", start, count);
}

fn routes_exact(count: usize) {
    routes(count, exact_filter, exact_topic);
}

fn routes_wildcard(count: usize) {
    routes(count, wildcard_filter, wildcard_topic);
}

fn routes(count: usize, filter: fn(usize) -> TopicFilter, topic: fn(usize) -> String) {
    let rss = resident_bytes();
    let map = RouteMap::with_shards(4);
    add_in_batches(&map, count, filter);
    report_memory(rss, count);
    let topics: Vec<String> = (0..LOOKUPS).map(|_| topic(fastrand::usize(..count))).collect();
    let mut snapshot = map.snapshot();
    report_best("shards_for", LOOKUPS, |at| {
        black_box(snapshot.shards_for(&topics[at], &mut |_| {}));
    });
    let hot = &topics[..1_000];
    report_best("shards_for, 1,000 repeated topics", LOOKUPS, |at| {
        black_box(snapshot.shards_for(&hot[at % hot.len()], &mut |_| {}));
    });
    report_best("generation_for", LOOKUPS, |at| {
        black_box(snapshot.generation_for(&topics[at]));
    });
    report_best("generation_for, 1,000 repeated topics", LOOKUPS, |at| {
        black_box(snapshot.generation_for(&hot[at % hot.len()]));
    });
    report_best("refresh without changes", LOOKUPS, |_| {
        black_box(map.refresh(&mut snapshot));
    });
    drop(snapshot);
    let others: Vec<Filter> = (0..SINGLE_UPDATES).map(|id| filter(count + id * 7).into()).collect();
    report_each("add, each published", SINGLE_UPDATES, |at| {
        map.add(&others[at], 1);
    });
    report_each("remove, each published", SINGLE_UPDATES, |at| map.remove(&others[at], 1));
}

/// Shared groups of one filter.
fn routes_groups(count: usize) {
    let rss = resident_bytes();
    let map = RouteMap::with_shards(4);
    let filter = |id: usize| {
        Filter::parse(&format!("$share/group-{id:07}/plant/7/line-1/+/data")).expect("valid")
    };
    let change = |id: usize| RouteChange::Add { filter: filter(id), shard: id % 4 };
    for decade in 0..10 {
        let first = count / 10 * decade;
        report_each(&format!("join among {first}, in batches of 64"), count / 10 / 64, |batch| {
            let ids = (first + batch * 64)..(first + batch * 64 + 64);
            map.apply(&ids.map(change).collect::<Vec<_>>());
        });
    }
    report_memory(rss, count);
    let others: Vec<Filter> = (0..SINGLE_UPDATES).map(|id| filter(count + id)).collect();
    report_each("join, each published", SINGLE_UPDATES, |at| drop(map.add(&others[at], 1)));
    report_each("leave, each published", SINGLE_UPDATES, |at| map.remove(&others[at], 1));
    report_each("leave, per batch of 64", count.div_ceil(64), |batch| {
        let ids = (batch * 64)..(batch * 64 + 64);
        let remove = |id| RouteChange::Remove { filter: filter(id), shard: id % 4 };
        map.apply(&ids.map(remove).collect::<Vec<_>>());
    });
    println!("  {:<50} {:>9}", "groups left", map.groups_len());
    report_memory(rss, count);
}

fn index_and_routes(count: usize) {
    let rss = resident_bytes();
    let map = RouteMap::with_shards(4);
    let mut index = SubscriptionIndex::<u32, Options>::new();
    add_in_batches(&map, count, |id| {
        let filter = exact_filter(id);
        index.insert(&filter, id as u32, (1, 0));
        filter
    });
    report_memory(rss, count);
    black_box((map, index));
}

fn retained(count: usize) {
    let rss = resident_bytes();
    let mut index = RetainedIndex::<u64>::new();
    report_each("insert", count, |id| {
        index.insert(&exact_topic(id), id as u64);
    });
    report_memory(rss, count);
    let topics: Vec<String> = (0..LOOKUPS).map(|_| exact_topic(fastrand::usize(..count))).collect();
    report_best("get", LOOKUPS, |at| {
        black_box(index.get(&topics[at]));
    });
    report_best("replace", LOOKUPS, |at| {
        black_box(index.insert(&topics[at], 1));
    });
    for text in ["#", "plant/+/line-3/#", "plant/+/+/sensor-0000777/data"] {
        let filter = TopicFilter::parse(text).expect("a valid filter");
        let (mut cursor, mut found, start) = (RetainedCursor::default(), 0, Instant::now());
        while index.next(&filter, &mut cursor, 256, |_, _| found += 1) == Progress::More {}
        report(&format!("replay of {text}, per topic of {found}"), start, found);
    }
}

fn add_in_batches(map: &RouteMap, count: usize, mut filter: impl FnMut(usize) -> TopicFilter) {
    let mut batch = Vec::with_capacity(BATCH_LEN);
    report_each("add, in batches of 64", count, |id| {
        batch.push(RouteChange::Add { filter: filter(id).into(), shard: id % 4 });
        if batch.len() == BATCH_LEN {
            map.apply(&batch);
            batch.clear();
        }
    });
    map.apply(&batch);
}

fn report_match(index: &SubscriptionIndex<u32, Options>, count: usize, topic: fn(usize) -> String) {
    let topics: Vec<String> = (0..LOOKUPS).map(|_| topic(fastrand::usize(..count))).collect();
    let mut found = 0_u32;
    report_best("match", LOOKUPS, |at| index.for_each_match(&topics[at], |_, _| found += 1));
    println!("  {:<50} {:>9.2}", "matches per topic", f64::from(found) / 3.0 / LOOKUPS as f64);
    let hot = &topics[..1_000];
    report_best("match, 1,000 repeated topics", LOOKUPS, |at| {
        index.for_each_match(&hot[at % hot.len()], |key, _| {
            black_box(key);
        });
    });
}

/// A topic of about 35 bytes, like those of devices.
fn exact_topic(id: usize) -> String {
    format!("plant/{}/line-{}/sensor-{id:07}/data", id % 100, id / 100 % 10)
}

fn exact_filter(id: usize) -> TopicFilter {
    TopicFilter::parse(&exact_topic(id)).expect("a valid filter")
}

/// Four kinds of wildcard filters.
fn wildcard_filter(id: usize) -> TopicFilter {
    let text = match id % 4 {
        0 => format!("plant/{}/+/sensor-{id:07}/data", id % 100),
        1 => format!("plant/{}/line-{}/sensor-{id:07}/#", id % 100, id / 100 % 10),
        2 => format!("+/{}/line-{}/sensor-{id:07}/+", id % 100, id / 100 % 10),
        _ => format!("plant/+/+/sensor-{id:07}/#"),
    };
    TopicFilter::parse(&text).expect("a valid filter")
}

/// A topic that the filter of the same number matches.
fn wildcard_topic(id: usize) -> String {
    exact_topic(id)
}

fn report_each(what: &str, count: usize, mut step: impl FnMut(usize)) {
    let start = Instant::now();
    (0..count).for_each(&mut step);
    report(what, start, count);
}

/// Like [`report_each`] for a repeatable step: the best of three rounds, since other work on the
/// machine may disturb a round.
fn report_best(what: &str, count: usize, mut step: impl FnMut(usize)) {
    let mut best = u128::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        (0..count).for_each(&mut step);
        best = best.min(start.elapsed().as_nanos());
    }
    println!("  {what:<50} {:>9.1} ns", best as f64 / count as f64);
}

fn report(what: &str, start: Instant, count: usize) {
    let ns = start.elapsed().as_nanos() as f64 / count as f64;
    println!("  {what:<50} {ns:>9.1} ns");
}

fn report_memory(before: u64, count: usize) {
    let bytes = resident_bytes().saturating_sub(before) as f64 / count as f64;
    println!("  {:<50} {bytes:>9.1} bytes", "memory per filter, its text included");
}
