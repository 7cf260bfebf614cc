//! Cost of routing with many filters: for known topics, new topics, and during subscriptions.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::figures::Sample;
use super::population::Population;
use crate::floor::cpu_ns;
use crate::mqtt::{connect, publish, subscribe, unsubscribe};

/// Clients that receive; any others only subscribe.
const RECEIVERS: usize = 100;
/// Publishes per second, in batches of one millisecond.
const RATE: u64 = 20_000;
const TICK: Duration = Duration::from_millis(1);
/// Publishes without a rate, before the deliveries are awaited.
const BATCH_AT_ONCE: usize = 1_000;
const WARM_UP: Duration = Duration::from_secs(2);
const PAYLOAD: [u8; 16] = *b"0123456789abcdef";
/// Bytes of a delivered PUBLISH; all topics have the same length.
const FRAME_BYTES: u64 = 2 + 2 + TOPIC_BYTES + PAYLOAD.len() as u64;
const TOPIC_BYTES: u64 = "s/000/0000/00000000".len() as u64;

/// How many there are.
#[derive(Clone, Copy)]
pub(super) struct RoutedSizes {
    pub(super) clients: usize,
    /// Of each client.
    pub(super) filters: usize,
    /// That are published to in turn.
    pub(super) topics: usize,
}

impl RoutedSizes {
    /// 100,000 filters.
    pub(super) const USUAL: Self = Self { clients: RECEIVERS, filters: 1_000, topics: 10_000 };
}

#[derive(Clone, Copy)]
pub(super) struct RoutingCase {
    pub(super) routing: Routing,
    pub(super) sizes: RoutedSizes,
}

/// The filters, the published topics, and concurrent changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Routing {
    /// One filter of each client, which matches all topics of its own.
    Covered,
    /// Exact filters only.
    Exact,
    /// 30 % of the filters with a `+`, 10 % with a `#`; the same topics and receivers.
    Wildcards,
    /// The same filters; every publish has a topic of its own, which a wildcard matches.
    Unseen,
    /// Exact filters, while 1,000 subscriptions change every second.
    Churn,
}

/// Measures one variant against the broker with this process id.
pub(super) fn measure(
    mut sample: Sample,
    RoutingCase { routing, sizes }: RoutingCase,
    pid: u32,
    port: u16,
    seconds: u64,
) -> Result<Sample> {
    let mut population = Population::connect(port, sizes.clients)?;
    population.subscribe(sizes.filters, |client, k| filter(routing, client, k))?;
    population.unblock()?;
    let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut load = RouteLoad {
        routing,
        sizes,
        population,
        publisher: connect(broker, "publisher")?,
        churner: connect(broker, "churner")?,
        sent: 0,
        received_bytes: 0,
        changes: 0,
    };
    // The cost of the changes alone is not part of the cost of publishing.
    let changes_us_per_s = if routing == Routing::Churn { load.changes_alone(pid)? } else { 0.0 };
    if routing == Routing::Covered {
        load.publish_each_once()?;
    }
    load.run_for(WARM_UP)?;
    let (cpu, at) = (cpu_ns(pid)?, Instant::now());
    let (sent, received) = (load.sent, load.received());
    load.run_for(Duration::from_secs(seconds))?;
    let cpu_us = (cpu_ns(pid)? - cpu) as f64 / 1e3;
    let elapsed_s = at.elapsed().as_secs_f64();
    let cpu_us = cpu_us - changes_us_per_s * elapsed_s;
    let (sent, received) = ((load.sent - sent) as f64, (load.received() - received) as f64);
    load.settle()?;
    let messages = sent + received;
    sample.set("cpu_us_per_message", Some(cpu_us / messages));
    sample.set("tps", Some(messages / elapsed_s));
    sample.set("in_per_s", Some(sent / elapsed_s));
    sample.set("out_per_s", Some(received / elapsed_s));
    sample.set("broker_cpu_percent", Some(cpu_us / elapsed_s / 1e4));
    sample.set("sent", Some(load.sent as f64));
    sample.set("received", Some(load.received() as f64));
    sample.set("lost", Some(load.sent as f64 - load.received() as f64));
    Ok(sample)
}

/// A million subscriptions: seconds until the last SUBACK, and memory for each.
pub(super) fn subscribe_million(
    mut sample: Sample,
    port: u16,
    rss_bytes: impl Fn() -> Result<u64>,
) -> Result<Sample> {
    let (clients, per_client) = (1000, 1000);
    let mut population = Population::connect(port, clients)?;
    let before = rss_bytes()?;
    let took =
        population.subscribe(per_client, |client, k| filter(Routing::Wildcards, client, k))?;
    let bytes = rss_bytes()?.saturating_sub(before) as f64;
    sample.set("subscribe_s", Some(took.as_secs_f64()));
    sample.set("rss_bytes_per_subscription", Some(bytes / (clients * per_client) as f64));
    Ok(sample)
}

/// One of ten filters ends with a `#`, three with a `+`.
fn filter(routing: Routing, client: usize, k: usize) -> String {
    if routing == Routing::Covered {
        return format!("s/{client:03}/#");
    }
    let last = match (routing, k % 10) {
        (Routing::Wildcards | Routing::Unseen, 0) => "#",
        (Routing::Wildcards | Routing::Unseen, 1..=3) => "+",
        _ => "00000000",
    };
    format!("s/{client:03}/{k:04}/{last}")
}

struct RouteLoad {
    routing: Routing,
    sizes: RoutedSizes,
    population: Population,
    publisher: TcpStream,
    churner: TcpStream,
    sent: u64,
    received_bytes: u64,
    changes: u64,
}

impl RouteLoad {
    /// The broker's CPU, in microseconds per second, while subscriptions change and no
    /// client publishes.
    fn changes_alone(&mut self, pid: u32) -> Result<f64> {
        let (cpu, started) = (cpu_ns(pid)?, Instant::now());
        for tick in 1..=WARM_UP.as_millis() as u32 {
            self.change_a_subscription()?;
            let due = started + TICK * tick;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok((cpu_ns(pid)? - cpu) as f64 / 1e3 / started.elapsed().as_secs_f64())
    }

    fn run_for(&mut self, time: Duration) -> Result<()> {
        let started = Instant::now();
        let batch = RATE / 1000;
        let ticks = time.as_millis() as u64;
        let mut packets = Vec::new();
        for tick in 1..=ticks {
            packets.clear();
            for _ in 0..batch {
                packets.extend_from_slice(&publish(&self.topic(self.sent), &PAYLOAD));
                self.sent += 1;
            }
            self.publisher.write_all(&packets).context("cannot publish")?;
            if self.routing == Routing::Churn {
                self.change_a_subscription()?;
            }
            self.received_bytes += self.population.drain()?;
            let due = started + TICK * tick as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// A measurement at the rate would not come to all of many topics.
    fn publish_each_once(&mut self) -> Result<()> {
        let mut packets = Vec::new();
        while self.sent < self.sizes.topics as u64 {
            packets.clear();
            for _ in 0..BATCH_AT_ONCE {
                packets.extend_from_slice(&publish(&self.topic(self.sent), &PAYLOAD));
                self.sent += 1;
            }
            self.publisher.write_all(&packets).context("cannot publish")?;
            self.settle()?;
        }
        ensure!(self.received() == self.sent, "messages to new topics were lost");
        Ok(())
    }

    fn topic(&self, seq: u64) -> String {
        // Spread over clients and filters: 7919 has no factor in common with the numbers of both.
        let turn = (seq as usize % self.sizes.topics) * 7919;
        let at = match self.routing {
            Routing::Covered => turn % self.sizes.topics,
            _ => turn % (RECEIVERS * self.sizes.filters),
        };
        let (client, k) = (at % RECEIVERS, at / RECEIVERS);
        if self.routing == Routing::Unseen {
            // Four of ten filters have a wildcard: the first ones.
            let k = k / 10 * 10 + k % 4;
            return format!("s/{client:03}/{k:04}/{:08}", seq + 1);
        }
        format!("s/{client:03}/{k:04}/00000000")
    }

    /// Adds a subscription that matches no publication, or removes it again.
    fn change_a_subscription(&mut self) -> Result<()> {
        let k = self.changes / 2;
        let filter = match k % 10 {
            0 => format!("s/churn/{k}/#"),
            1..=3 => format!("s/churn/{k}/+"),
            _ => format!("s/churn/{k}/0"),
        };
        let (packet, answer_bytes) = if self.changes.is_multiple_of(2) {
            (subscribe(1, &[filter]), 5)
        } else {
            (unsubscribe(1, &filter), 4)
        };
        self.changes += 1;
        self.churner.write_all(&packet).context("cannot subscribe")?;
        let mut answer = [0; 5];
        let answer = &mut answer[..answer_bytes];
        std::io::Read::read_exact(&mut self.churner, answer).context("no answer")
    }

    /// Waits for the last deliveries.
    fn settle(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.received() < self.sent && Instant::now() < deadline {
            self.received_bytes += self.population.drain()?;
            thread::sleep(TICK);
        }
        ensure!(self.received_bytes.is_multiple_of(FRAME_BYTES), "a delivery of an odd length");
        Ok(())
    }

    fn received(&self) -> u64 {
        self.received_bytes / FRAME_BYTES
    }
}
