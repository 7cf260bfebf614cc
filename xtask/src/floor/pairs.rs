//! Publishers and subscribers in pairs: a client of MQTT 3.1.1 that writes each message when it is
//! due and never sleeps, so that neither the broker nor a latency pays for a wake-up.
//!
//! It shares no code with the load generator, whose figures must agree with those of this client.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use super::process::{cpu_ns, now_ns, pin_self, raise_descriptor_limit};
use super::publication::{Delivery, Publication};
use crate::mqtt;

const EVENTS_PER_WAIT: usize = 1024;
const READ_BYTES: usize = 16 * 1024;
const SECOND_NS: u64 = 1_000_000_000;
/// Time to wait for late messages.
const DRAIN_NS: u64 = SECOND_NS / 2;

#[derive(Args, Clone, Debug)]
pub(super) struct Options {
    /// The broker, an address with port
    broker: SocketAddr,
    /// Process id of the broker
    #[arg(long)]
    pid: u32,
    /// Pairs of a publisher and a subscriber
    #[arg(long, default_value_t = 1000)]
    pairs: u32,
    /// Messages per second in, and the same number out
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    /// 0 or 1
    #[arg(long, default_value_t = 1)]
    qos: u8,
    /// Seconds to measure
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Seconds of warm-up
    #[arg(long, default_value_t = 1)]
    warmup: u64,
    /// Core to run on
    #[arg(long)]
    cpu: Option<usize>,
}

/// What one run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PairsFigures {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) broker_cpu_us_per_message: f64,
    pub(crate) latency_us_p50: f64,
    pub(crate) latency_us_p99: f64,
    pub(crate) late_us_max: f64,
}

pub(super) fn run(options: &Options) -> Result<()> {
    if options.rate == 0 || options.seconds == 0 || options.pairs == 0 || options.qos > 1 {
        bail!("needs a rate, a duration, pairs, and QoS 0 or 1");
    }
    if let Some(cpu) = options.cpu {
        pin_self(cpu)?;
    }
    raise_descriptor_limit()?;
    let figures = Pairs::connect(options)?.run()?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(())
}

struct Pairs {
    publishers: Vec<PairPublisher>,
    subscribers: Vec<PairSubscriber>,
    epoll: OwnedFd,
    options: Options,
    start_ns: u64,
    window_start_ns: u64,
    window_end_ns: u64,
    /// Message k is due at `due_ns(k)` at publisher k modulo the pairs.
    sent: u64,
    late_ns_max: u64,
    /// Messages due in the window.
    sent_in_window: u64,
    latencies_ns: Vec<u64>,
    buffer: Vec<u8>,
}

struct PairPublisher {
    stream: TcpStream,
    publication: Publication,
}

struct PairSubscriber {
    stream: TcpStream,
    packet_bytes: usize,
    /// The beginning of a packet that has not arrived completely.
    rest: Vec<u8>,
}

impl Pairs {
    fn connect(options: &Options) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll")?;
        let pairs = options.pairs as usize;
        let (mut publishers, mut subscribers) = (Vec::new(), Vec::new());
        let watch = |stream: &TcpStream, index: usize| -> Result<()> {
            stream.set_nonblocking(true)?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, stream, data, EventFlags::IN | EventFlags::ET)
                .context("cannot watch a socket")
        };
        for index in 0..pairs {
            let topic = format!("pairs/{index}");
            let publication = Publication::new(&topic, options.qos);
            let packet_bytes = publication.bytes();
            let mut stream = mqtt::connect(options.broker, &format!("floor-sub-{index}"))?;
            subscribe(&mut stream, &topic, options.qos)?;
            watch(&stream, pairs + index)?;
            subscribers.push(PairSubscriber { stream, packet_bytes, rest: Vec::new() });
            let stream = mqtt::connect(options.broker, &format!("floor-pub-{index}"))?;
            watch(&stream, index)?;
            publishers.push(PairPublisher { stream, publication });
        }
        let start_ns = now_ns() + SECOND_NS / 2;
        let window_start_ns = start_ns + options.warmup * SECOND_NS;
        let messages = usize::try_from(options.rate * options.seconds).context("too many")?;
        Ok(Self {
            publishers,
            subscribers,
            epoll,
            options: options.clone(),
            start_ns,
            window_start_ns,
            window_end_ns: window_start_ns + options.seconds * SECOND_NS,
            sent: 0,
            late_ns_max: 0,
            sent_in_window: 0,
            latencies_ns: Vec::with_capacity(messages + 1),
            buffer: vec![0; READ_BYTES],
        })
    }

    fn due_ns(&self, message: u64) -> u64 {
        let offset = u128::from(message) * u128::from(SECOND_NS) / u128::from(self.options.rate);
        self.start_ns + u64::try_from(offset).unwrap_or(u64::MAX / 2)
    }

    fn run(mut self) -> Result<PairsFigures> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (mut start_cpu_ns, mut end_cpu_ns) = (None, None);
        loop {
            let now = now_ns();
            if start_cpu_ns.is_none() && now >= self.window_start_ns {
                start_cpu_ns = Some(cpu_ns(self.options.pid)?);
            }
            if end_cpu_ns.is_none() && now >= self.window_end_ns {
                end_cpu_ns = Some(cpu_ns(self.options.pid)?);
            }
            if now >= self.window_end_ns + DRAIN_NS {
                break;
            }
            self.send_due(now)?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&no_time)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot poll"),
            }
            for event in events.drain(..) {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                match index.checked_sub(self.publishers.len()) {
                    None => self.read_acknowledgements(index)?,
                    Some(subscriber) => self.receive(subscriber)?,
                }
            }
        }
        let (Some(start), Some(end)) = (start_cpu_ns, end_cpu_ns) else {
            bail!("the window never passed");
        };
        self.figures(end - start)
    }

    /// Writes every message that is due.
    fn send_due(&mut self, now: u64) -> Result<()> {
        loop {
            let due_ns = self.due_ns(self.sent);
            if due_ns > now || due_ns >= self.window_end_ns {
                return Ok(());
            }
            let index = (self.sent % self.publishers.len() as u64) as usize;
            let Some(publisher) = self.publishers.get_mut(index) else { bail!("no pair {index}") };
            let packet = publisher.publication.next_with(due_ns);
            let written = publisher.stream.write(packet).context("the broker does not keep up")?;
            ensure!(written == packet.len(), "the broker does not keep up: a packet was cut");
            self.sent += 1;
            if due_ns >= self.window_start_ns {
                self.sent_in_window += 1;
                self.late_ns_max = self.late_ns_max.max(now - due_ns);
            }
        }
    }

    fn read_acknowledgements(&mut self, index: usize) -> Result<()> {
        let Some(publisher) = self.publishers.get_mut(index) else { bail!("no pair {index}") };
        while let Some(count) = read(&mut publisher.stream, &mut self.buffer)? {
            if count < self.buffer.len() {
                break;
            }
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        let Some(subscriber) = self.subscribers.get_mut(index) else { bail!("no pair {index}") };
        let mut acknowledgements = Vec::new();
        while let Some(count) = read(&mut subscriber.stream, &mut self.buffer)? {
            let now = now_ns();
            let mut bytes = std::mem::take(&mut subscriber.rest);
            bytes.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
            let packets = bytes.chunks_exact(subscriber.packet_bytes);
            subscriber.rest = packets.remainder().to_vec();
            for packet in packets {
                let Some(delivery) = Delivery::parse(packet) else { bail!("not a delivery") };
                if let Some(id) = delivery.id {
                    acknowledgements.extend([0x40, 2]);
                    acknowledgements.extend(id.to_be_bytes());
                }
                if delivery.stamp >= self.window_start_ns {
                    self.latencies_ns.push(now.saturating_sub(delivery.stamp));
                }
            }
            if count < self.buffer.len() {
                break;
            }
        }
        if !acknowledgements.is_empty() {
            let written = subscriber.stream.write(&acknowledgements).context("cannot write")?;
            ensure!(written == acknowledgements.len(), "an acknowledgement was cut");
        }
        Ok(())
    }

    fn figures(mut self, broker_cpu_ns: u64) -> Result<PairsFigures> {
        self.latencies_ns.sort_unstable();
        let received = self.latencies_ns.len() as u64;
        let sent = self.sent_in_window;
        ensure!(sent == received, "{sent} messages were sent and {received} were received");
        let at = |share: f64| {
            let index = (self.latencies_ns.len() as f64 * share) as usize;
            self.latencies_ns.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
        };
        Ok(PairsFigures {
            sent,
            received,
            broker_cpu_us_per_message: broker_cpu_ns as f64 / 1e3 / (sent + received).max(1) as f64,
            latency_us_p50: at(0.5),
            latency_us_p99: at(0.99),
            late_us_max: self.late_ns_max as f64 / 1e3,
        })
    }
}

/// The bytes that a read took; `None` when nothing is there.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<Option<usize>> {
    loop {
        match stream.read(buffer) {
            Ok(0) => bail!("the broker closed a connection"),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read"),
        }
    }
}

/// Subscribes to one topic and waits for SUBACK.
fn subscribe(stream: &mut TcpStream, topic: &str, qos: u8) -> Result<()> {
    let mut body = 1_u16.to_be_bytes().to_vec();
    mqtt::push_text(&mut body, topic);
    body.push(qos);
    stream.write_all(&mqtt::packet(0x82, &body)).context("cannot subscribe")?;
    let mut suback = [0; 5];
    stream.read_exact(&mut suback).context("no SUBACK")?;
    ensure!(suback == [0x90, 3, 0, 1, qos], "not subscribed: {suback:02x?}");
    Ok(())
}
