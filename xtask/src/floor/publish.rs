//! The floor of publishing: the kernel's share when a bare loop writes PUBLISH packets to a broker
//! on an absolute schedule, reads the acknowledgements, and does nothing else.
//!
//! No generator that writes each message when it is due and reads each acknowledgement when it
//! comes can cost less. Packets are made once; there is no session, no header in the payload, no
//! histogram.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use serde::Serialize;

use super::client::arm;
use super::process::{cpu_ns, now_ns, pin_self, raise_descriptor_limit};
use super::publication::Publication;
use crate::mqtt;

const TIMER: u64 = u64::MAX;
const EVENTS_PER_WAIT: usize = 1024;
const SECOND_NS: u64 = 1_000_000_000;
/// PUBACK of MQTT 3.1.1.
const ACK_BYTES: usize = 4;

#[derive(Args, Clone, Debug)]
pub(super) struct Options {
    /// The broker, an address with port
    broker: SocketAddr,
    /// Connections
    #[arg(long, default_value_t = 10)]
    clients: u32,
    /// Messages per second, of all connections together
    #[arg(long, default_value_t = 50_000)]
    rate: u64,
    /// 0 or 1
    #[arg(long, default_value_t = 1)]
    qos: u8,
    /// Seconds to measure, after one second of warm-up
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Microseconds from one look at the sockets to the next; 0 looks whenever something comes
    #[arg(long, default_value_t = 0)]
    turn_us: u64,
    /// Core to run on
    #[arg(long)]
    cpu: Option<usize>,
}

#[derive(Serialize)]
struct PublishFigures {
    sent_per_s: f64,
    acknowledged_per_s: f64,
    cpu_us_per_message: f64,
    cpu_percent: f64,
    late_us_mean: f64,
    late_us_max: f64,
}

pub(super) fn run(options: &Options) -> Result<()> {
    if options.rate == 0 || options.seconds == 0 || options.clients == 0 || options.qos > 1 {
        bail!("needs a rate, a duration, connections, and QoS 0 or 1");
    }
    if let Some(cpu) = options.cpu {
        pin_self(cpu)?;
    }
    raise_descriptor_limit()?;
    let figures = Publisher::connect(options)?.run()?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(())
}

struct Connection {
    stream: TcpStream,
    publication: Publication,
}

struct Publisher {
    clients: Vec<Connection>,
    epoll: OwnedFd,
    timer: OwnedFd,
    options: Options,
    start_ns: u64,
    /// Message k is due at `start + k / rate` on connection k modulo their number.
    sent: u64,
    acknowledged_bytes: u64,
    late_ns: u64,
    late_max_ns: u64,
}

/// Counts at an edge of the window.
struct Snapshot {
    at_ns: u64,
    cpu_ns: u64,
    sent: u64,
    acknowledged_bytes: u64,
    late_ns: u64,
}

impl Publisher {
    fn connect(options: &Options) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll")?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
            .context("cannot create a timer")?;
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), events)
            .context("cannot watch the timer")?;
        let mut clients = Vec::new();
        for index in 0..options.clients {
            let client = Connection::connect(options, index)
                .with_context(|| format!("cannot connect client {index}"))?;
            epoll::add(&epoll, &client.stream, EventData::new_u64(index.into()), events)
                .context("cannot watch a socket")?;
            clients.push(client);
        }
        Ok(Self {
            clients,
            epoll,
            timer,
            options: options.clone(),
            start_ns: now_ns(),
            sent: 0,
            acknowledged_bytes: 0,
            late_ns: 0,
            late_max_ns: 0,
        })
    }

    fn edge(&self) -> Result<Snapshot> {
        Ok(Snapshot {
            at_ns: now_ns(),
            cpu_ns: cpu_ns(std::process::id())?,
            sent: self.sent,
            acknowledged_bytes: self.acknowledged_bytes,
            late_ns: self.late_ns,
        })
    }

    fn run(mut self) -> Result<PublishFigures> {
        let window_ns = self.start_ns + SECOND_NS;
        let end_ns = window_ns + self.options.seconds * SECOND_NS;
        let turn_ns = self.options.turn_us * 1_000;
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let mut start = None;
        loop {
            let now = now_ns();
            if start.is_none() && now >= window_ns {
                self.late_max_ns = 0;
                start = Some(self.edge()?);
            }
            if now >= end_ns {
                break;
            }
            let next_ns = self.send_due(now)?;
            if turn_ns == 0 {
                arm(&self.timer, next_ns)?;
                wait(&self.epoll, &mut events, false)?;
            } else {
                let next_ns = next_ns.max(now + turn_ns);
                std::thread::sleep(Duration::from_nanos(next_ns.saturating_sub(now_ns())));
                wait(&self.epoll, &mut events, true)?;
            }
            for event in events.drain(..) {
                let index = event.data.u64();
                if index != TIMER {
                    self.receive(index as usize)?;
                }
            }
        }
        let Some(start) = start else { bail!("the window never began") };
        Ok(self.figures(&start, &self.edge()?))
    }

    /// Writes every message that is due and returns when the next one is.
    fn send_due(&mut self, now: u64) -> Result<u64> {
        loop {
            let offset = u128::from(self.sent) * u128::from(SECOND_NS);
            let due_ns = self.start_ns + (offset / u128::from(self.options.rate)) as u64;
            if due_ns > now {
                return Ok(due_ns);
            }
            let index = (self.sent % u64::from(self.options.clients)) as usize;
            let Some(client) = self.clients.get_mut(index) else { bail!("no client {index}") };
            client.publish()?;
            self.sent += 1;
            self.late_ns += now - due_ns;
            self.late_max_ns = self.late_max_ns.max(now - due_ns);
        }
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        let mut buffer = [0; 4096];
        let Some(client) = self.clients.get_mut(index) else { bail!("no client {index}") };
        loop {
            match client.stream.read(&mut buffer) {
                Ok(0) => bail!("the broker closed connection {index}"),
                Ok(count) => {
                    self.acknowledged_bytes += count as u64;
                    if count < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read"),
            }
        }
    }

    fn figures(&self, start: &Snapshot, end: &Snapshot) -> PublishFigures {
        let seconds = (end.at_ns - start.at_ns) as f64 / 1e9;
        let sent = (end.sent - start.sent) as f64;
        let cpu_ns = (end.cpu_ns - start.cpu_ns) as f64;
        let acknowledged = (end.acknowledged_bytes - start.acknowledged_bytes) as f64;
        PublishFigures {
            sent_per_s: sent / seconds,
            acknowledged_per_s: acknowledged / ACK_BYTES as f64 / seconds,
            cpu_us_per_message: cpu_ns / 1e3 / sent.max(1.0),
            cpu_percent: cpu_ns / 1e7 / seconds,
            late_us_mean: (end.late_ns - start.late_ns) as f64 / 1e3 / sent.max(1.0),
            late_us_max: self.late_max_ns as f64 / 1e3,
        }
    }
}

impl Connection {
    fn connect(options: &Options, index: u32) -> Result<Self> {
        let stream = mqtt::connect(options.broker, &format!("floor-{index}"))?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, publication: Publication::new(&format!("floor/{index}"), options.qos) })
    }

    fn publish(&mut self) -> Result<()> {
        let packet = self.publication.next();
        let written = self.stream.write(packet).context("the broker does not keep up")?;
        if written < packet.len() {
            bail!("the broker does not keep up: a packet was cut");
        }
        Ok(())
    }
}

/// Waits for events, or only looks.
fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, look: bool) -> Result<()> {
    let zero = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let timeout = if look { Some(&zero) } else { None };
    match epoll::wait(epoll, spare_capacity(events), timeout) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for events"),
    }
}
