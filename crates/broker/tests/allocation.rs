//! In steady state a publish costs one allocation and a delivery none, whatever the QoS. Incomplete
//! packets take the memory that is counted for them, and large ones are put together once. An idle
//! connection takes less than a kilobyte.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tacho_codec::{
    Connect, ConnectProperties, Packet, PacketId, Publish, QoS, Version, split_frame,
};
use tacho_testkit::{Client, PATIENCE, TestBroker, wait_until};

struct Counting;

/// Of all threads: the broker's are among them, and the test's own allocates nothing meanwhile.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes of all allocations made.
static MADE_BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes allocated and not freed.
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn count(size: usize, freed: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    MADE_BYTES.fetch_add(size as u64, Ordering::Relaxed);
    LIVE_BYTES.fetch_add(size as i64 - freed as i64, Ordering::Relaxed);
}

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: all calls are passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: whatever allocates is counted.
static ALONE: Mutex<()> = Mutex::new(());

/// A read is handled in one turn, also by an unoptimised program: what is left for the next turn
/// would be kept in a buffer of its own.
const UNCUT: &str = "[limits]\nturn_us_max = 1000000\n";

const TOPIC: &str = "building/7/floor/3/temperature";
/// What the bridge makes of it.
const RENAMED: &str = "building/7/floor/3/+";
const SUBSCRIBERS: usize = 10;
const PUBLISHES_PER_ROUND: usize = 50;
const ROUNDS: usize = 40;
/// For what grows now and then: event lists, mailboxes, timers.
const SLACK: u64 = 100;

/// One publisher and its subscribers, all bytes prepared.
struct Course {
    publisher: Client,
    subscribers: Vec<Client>,
    publishes: Vec<u8>,
    /// What the publisher sends when its messages have been received: PUBREL.
    releases: Vec<u8>,
    qos: QoS,
    payload_len: usize,
    buffer: Vec<u8>,
    answers: Vec<u8>,
}

impl Course {
    fn new(broker: &TestBroker, qos: QoS, version: Version, payload_len: usize) -> Self {
        Self::between(broker, broker, qos, version, payload_len)
    }

    /// The publisher at `here`, the subscribers at `there`.
    fn between(
        here: &TestBroker,
        there: &TestBroker,
        qos: QoS,
        version: Version,
        payload_len: usize,
    ) -> Self {
        let topic = TOPIC;
        let filter = if std::ptr::eq(here, there) { TOPIC } else { RENAMED };
        let subscribers = (0..SUBSCRIBERS)
            .map(|i| {
                let mut subscriber = there.connected(&format!("sub-{i}"), version);
                subscriber.subscribe(if i % 2 == 0 { filter } else { "building/+/#" }, qos);
                subscriber
            })
            .collect();
        let publisher = here.connected("pub", version);
        publisher.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut publishes, mut releases) = (Vec::new(), Vec::new());
        for i in 1..=PUBLISHES_PER_ROUND as u16 {
            let packet_id = PacketId::new(i).filter(|_| qos != QoS::AtMostOnce);
            let payload = &vec![7; payload_len];
            let publish = Publish { topic, qos, packet_id, payload, ..Publish::default() };
            Packet::Publish(publish).encode(version, &mut publishes).unwrap();
            if qos == QoS::ExactlyOnce {
                releases.extend([0x62, 2, 0, i as u8]);
            }
        }
        let buffer = vec![0; 1 << 20];
        let answers = Vec::with_capacity(1 << 16);
        Self { publisher, subscribers, publishes, releases, qos, payload_len, buffer, answers }
    }

    /// Every message published, delivered, acknowledged on both sides.
    fn round(&mut self) {
        let count = PUBLISHES_PER_ROUND;
        self.publisher.stream.write_all(&self.publishes).unwrap();
        if self.qos != QoS::AtMostOnce {
            self.read_all(None, count * 4);
        }
        if !self.releases.is_empty() {
            self.publisher.stream.write_all(&self.releases).unwrap();
            self.read_all(None, count * 4);
        }
        for i in 0..SUBSCRIBERS {
            self.subscribers[i].stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // The packets differ only in what is patched, so each is as long as the published one.
            self.read_all(Some(i), self.publishes.len());
            if self.qos == QoS::AtMostOnce {
                continue;
            }
            let packet_len = self.publishes.len() / count;
            let id_at = packet_len - self.payload_len - self.id_offset();
            let first = if self.qos == QoS::AtLeastOnce { 0x40 } else { 0x50 };
            self.answers.clear();
            for packet in self.buffer[..self.publishes.len()].chunks(packet_len) {
                self.answers.extend_from_slice(&[first, 2, packet[id_at], packet[id_at + 1]]);
            }
            let stream = &mut self.subscribers[i].stream;
            stream.write_all(&self.answers).unwrap();
            if self.qos == QoS::ExactlyOnce {
                self.read_all(Some(i), count * 4);
                self.answers.chunks_mut(4).for_each(|answer| answer[0] = 0x70);
                self.subscribers[i].stream.write_all(&self.answers).unwrap();
            }
        }
    }

    /// How far before the payload the packet identifier starts.
    fn id_offset(&self) -> usize {
        if self.publisher.version == Version::V5 { 3 } else { 2 }
    }

    fn read_all(&mut self, subscriber: Option<usize>, len: usize) {
        let stream = match subscriber {
            Some(i) => &mut self.subscribers[i].stream,
            None => &mut self.publisher.stream,
        };
        stream.read_exact(&mut self.buffer[..len]).unwrap();
    }
}

/// Number of allocations while `messages` are published.
fn allocations(shards: usize, qos: QoS, version: Version, payload_len: usize) -> (u64, u64) {
    let broker = TestBroker::configured(&format!("shards = {shards}\n{UNCUT}"));
    let mut course = Course::new(&broker, qos, version, payload_len);
    for _ in 0..10 {
        course.round();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..ROUNDS {
        course.round();
    }
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    (made, (PUBLISHES_PER_ROUND * ROUNDS) as u64)
}

#[test]
fn a_publish_costs_one_allocation_and_a_delivery_none() {
    let _alone = ALONE.lock().unwrap();
    for shards in [1, 2] {
        for qos in tacho_testkit::ALL_QOS {
            for (version, payload_len) in
                [(Version::V311, 100), (Version::V5, 100), (Version::V311, 8_192)]
            {
                let (made, publishes) = allocations(shards, qos, version, payload_len);
                let what = format!("{shards} shards, {qos:?}, {version:?}, {payload_len} B");
                println!("{what}: {made} for {publishes} publishes");
                // Large payloads wait by reference, and the list of them grows where a socket is
                // behind: less than once in so many deliveries.
                let lists =
                    if payload_len > 4_096 { publishes * SUBSCRIBERS as u64 / 32 } else { 0 };
                assert!(made <= publishes + lists + SLACK, "{what}: {made}");
            }
        }
    }
}

#[test]
fn a_bridge_costs_no_allocation_but_the_other_brokers_also_where_it_renames() {
    let _alone = ALONE.lock().unwrap();
    // As long as the topic here.
    let rule = "[[bridges.egress]]\nfilter = 'building/#'\n\
                topic = 'building/7/floor/3/${qos}emperature'\n";
    for (shards, qos) in
        [(1, QoS::AtMostOnce), (1, QoS::AtLeastOnce), (2, QoS::AtLeastOnce), (1, QoS::ExactlyOnce)]
    {
        let there = TestBroker::configured(&format!("shards = {shards}\n{UNCUT}"));
        let here = TestBroker::configured(&format!(
            "shards = {shards}\n{UNCUT}[[bridges]]\nname = 'b'\naddress = 'mqtt://{}'\n\
             connections = 3\nhealth_check_s = 0\nkeep_alive_s = 0\n{rule}",
            there.address
        ));
        tacho_testkit::wait_until("the bridge is up", || here.bridges()[0].connected == 3);
        let mut course = Course::between(&here, &there, qos, Version::V5, 100);
        for _ in 0..10 {
            course.round();
        }
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..ROUNDS {
            course.round();
        }
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        // One in each of the two brokers.
        let allowed = 2 * (PUBLISHES_PER_ROUND * ROUNDS) as u64 + SLACK;
        assert!(made <= allowed, "{shards} shards, {qos:?}: {made} of {allowed}");
    }
}

/// Reads this number of PUBLISH packets; bytes after the last one are dropped.
fn skip_publishes(client: &mut Client, buffer: &mut [u8], count: usize) {
    let (mut filled, mut packets) = (0, 0);
    while packets < count {
        filled += client.stream.read(&mut buffer[filled..]).unwrap();
        let mut used = 0;
        while let Some(frame) = split_frame(&buffer[used..filled], u32::MAX).unwrap() {
            used += frame.total_len;
            packets += 1;
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
    }
    assert_eq!((packets, filled), (count, 0));
}

#[test]
fn topic_aliases_cost_no_allocation_either_also_where_they_change_hands() {
    let _alone = ALONE.lock().unwrap();
    let broker = TestBroker::configured(&format!("shards = 1\n{UNCUT}"));
    let mut subscriber = broker.client(Version::V5);
    let properties = ConnectProperties { topic_alias_maximum: Some(4), ..Default::default() };
    subscriber.connect(&Connect { properties, ..tacho_testkit::connect("sub", Version::V5) });
    subscriber.subscribe("#", QoS::AtMostOnce);
    subscriber.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut publisher = broker.connected("pub", Version::V5);
    // Which topics are frequent changes within a round, so aliases are taken over in each.
    let (mut publishes, mut count) = (Vec::new(), 0);
    for topic in 0..12 {
        let topic = format!("building/7/floor/3/temperature/{topic}");
        for _ in 0..8 {
            let publish = Publish { topic: &topic, payload: b"21", ..Publish::default() };
            Packet::Publish(publish).encode(Version::V5, &mut publishes).unwrap();
            count += 1;
        }
    }
    let mut buffer = vec![0; 1 << 16];
    let mut rounds = |rounds: usize| {
        for _ in 0..rounds {
            publisher.stream.write_all(&publishes).unwrap();
            skip_publishes(&mut subscriber, &mut buffer, count);
        }
    };
    rounds(20);
    let aliased = broker.counter("publishes_aliased_out_total");
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    rounds(50);
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let aliased = broker.counter("publishes_aliased_out_total") - aliased;
    assert!(aliased > 50 * count as u64 / 4, "{aliased} of {}", 50 * count);
    assert!(aliased < 50 * count as u64, "aliases are taken over");
    assert!(made <= 50 * count as u64 + SLACK, "{made} for {} publishes", 50 * count);
}

/// A PUBLISH of a megabyte.
fn large_publish() -> Vec<u8> {
    let payload = &vec![7; 1_000_000];
    let mut bytes = Vec::new();
    let publish = Publish { topic: TOPIC, payload, ..Publish::default() };
    publish.encode(Version::V311, &mut bytes).unwrap();
    bytes
}

#[test]
fn incomplete_packets_take_the_memory_that_is_counted_for_them() {
    const CLIENTS: usize = 40;
    let _alone = ALONE.lock().unwrap();
    let broker = TestBroker::start(1);
    let packet = large_publish();
    let mut clients: Vec<Client> =
        (0..CLIENTS).map(|i| broker.connected(&i.to_string(), Version::V311)).collect();
    clients.iter_mut().for_each(Client::ping);
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    let taken = || LIVE_BYTES.load(Ordering::Relaxed) - before;
    let counted = || broker.counter("buffers_bytes").cast_signed();
    for client in &mut clients {
        client.send_raw(&packet[..600_000]);
    }
    let pieces = 600_000_usize.div_ceil(64 * 1024) * 64 * 1024;
    wait_until("all has arrived", || counted() == (CLIENTS * pieces) as i64);
    assert!(taken() >= counted(), "{} of {}", taken(), counted());
    assert!(taken() < counted() + counted() / 50, "{} of {}", taken(), counted());
    // Some of them send the rest, the others leave.
    for client in &mut clients[..CLIENTS / 2] {
        client.send_raw(&packet[600_000..]);
        client.ping();
    }
    drop(clients);
    wait_until("nothing is counted", || counted() == 0);
    wait_until("nothing is taken", || taken() < 1_000_000);
}

#[test]
fn a_large_publish_is_put_together_once_and_not_copied_again() {
    const ROUNDS: u64 = 20;
    let _alone = ALONE.lock().unwrap();
    for shards in [1, 2] {
        let broker = TestBroker::start(shards);
        let packet = large_publish();
        let mut publisher = broker.connected("pub", Version::V311);
        let mut subscribers: Vec<Client> = (0..3)
            .map(|i| {
                let mut subscriber = broker.connected(&format!("sub-{i}"), Version::V311);
                subscriber.subscribe(TOPIC, QoS::AtMostOnce);
                subscriber.stream.set_read_timeout(Some(PATIENCE)).unwrap();
                subscriber
            })
            .collect();
        let mut received = vec![0; packet.len()];
        let mut round = || {
            publisher.stream.write_all(&packet).unwrap();
            for subscriber in &mut subscribers {
                subscriber.stream.read_exact(&mut received).unwrap();
                assert!(received == packet);
            }
        };
        (0..3).for_each(|_| round());
        let before = MADE_BYTES.load(Ordering::Relaxed);
        (0..ROUNDS).for_each(|_| round());
        let made = (MADE_BYTES.load(Ordering::Relaxed) - before) / ROUNDS;
        // Once in pieces, once as a whole.
        let twice = 2 * packet.len() as u64;
        assert!(made >= twice && made < twice + twice / 6, "{made} bytes per publish");
    }
}

/// Bytes per client that only connects, with one subscription to a topic of its own if it
/// `subscribes`.
fn idle_bytes(subscribes: bool) -> i64 {
    // Just below the size of the tables: connections, directory of clients.
    const CLIENTS: usize = 440;
    const BEFORE: usize = 50;
    let broker = TestBroker::start(1);
    let mut streams = Vec::with_capacity(CLIENTS);
    let mut before = 0;
    for i in 0..CLIENTS {
        if i == BEFORE {
            before = LIVE_BYTES.load(Ordering::Relaxed);
        }
        let mut stream = TcpStream::connect(broker.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut ask = |question: &[u8], answer: &[u8]| {
            stream.write_all(question).unwrap();
            let mut received = vec![0; answer.len()];
            stream.read_exact(&mut received).unwrap();
            assert_eq!(received, answer);
        };
        let id = format!("{i:08}");
        ask(format!("\x10\x14\0\x04MQTT\x04\x02\0\0\0\x08{id}").as_bytes(), b"\x20\x02\0\0");
        if subscribes {
            let subscribe = format!("\x0d\0\x01\0\x08{id}\x01");
            ask(&[b"\x82", subscribe.as_bytes()].concat(), b"\x90\x03\0\x01\x01");
        }
        streams.push(stream);
    }
    (LIVE_BYTES.load(Ordering::Relaxed) - before) / (CLIENTS - BEFORE) as i64
}

#[test]
fn an_idle_connection_takes_less_than_a_kilobyte() {
    let _alone = ALONE.lock().unwrap();
    let (idle, subscribed) = (idle_bytes(false), idle_bytes(true));
    println!("{idle} bytes, {subscribed} with a subscription");
    assert!(idle > 0 && idle < 1_024, "{idle} bytes");
    assert!(subscribed < idle + 400, "{subscribed} bytes, {idle} without a subscription");
}
