//! The client: an open-loop absolute schedule, with every returned frame checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::process::{cpu_ns, now_ns, pin_self, raise_descriptor_limit};
use super::{FRAME_BYTES, Floor, Load};

const TIMER: u64 = u64::MAX;
const EVENTS_PER_WAIT: usize = 1024;
const SECOND_NS: u64 = 1_000_000_000;
/// Time to wait for late frames.
const DRAIN_NS: u64 = SECOND_NS / 2;

/// Offers the load to the server on `port`, whose process is `pid`.
pub(super) fn run(load: &Load, port: u16, pid: u32) -> Result<Floor> {
    pin_self(load.client_cpu)?;
    raise_descriptor_limit()?;
    let mut client = Client::connect(load, port)?;
    client.run(pid)
}

struct Client {
    streams: Vec<TcpStream>,
    epoll: OwnedFd,
    timer: OwnedFd,
    rate: u64,
    start_ns: u64,
    window_start_ns: u64,
    window_end_ns: u64,
    /// Frames written so far; frame k is due at `due_ns(k)` on socket k modulo the senders.
    sent: u64,
    tally: Tally,
}

/// Returned frames of those due in the window.
#[derive(Default)]
struct Tally {
    sent: u64,
    received: u64,
    latencies_ns: Vec<u64>,
}

/// Counters at an edge of the window.
struct Edge {
    at_ns: u64,
    server_cpu_ns: u64,
    client_cpu_ns: u64,
}

impl Edge {
    fn now(pid: u32) -> Result<Self> {
        Ok(Self {
            at_ns: now_ns(),
            server_cpu_ns: cpu_ns(pid)?,
            client_cpu_ns: cpu_ns(std::process::id())?,
        })
    }
}

impl Client {
    fn connect(load: &Load, port: u16) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll")?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
            .context("cannot create a timer")?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)
            .context("cannot watch the timer")?;
        let mut streams = Vec::with_capacity(load.sockets);
        for index in 0..load.sockets {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .with_context(|| format!("cannot connect socket {index}"))?;
            stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
            let hello = u32::try_from(index).context("too many sockets")?.to_le_bytes();
            stream.write_all(&hello).context("cannot say the index")?;
            stream.set_nonblocking(true).context("cannot make a socket non-blocking")?;
            if index >= load.sockets / 2 {
                let data = EventData::new_u64(index as u64);
                epoll::add(&epoll, &stream, data, EventFlags::IN | EventFlags::ET)
                    .context("cannot watch a socket")?;
            }
            streams.push(stream);
        }
        // The server may still be busy accepting.
        let start_ns = now_ns() + SECOND_NS / 2;
        let window_start_ns = start_ns + load.warmup * SECOND_NS;
        let frames = usize::try_from(load.rate * load.seconds).context("too many frames")?;
        Ok(Self {
            streams,
            epoll,
            timer,
            rate: load.rate,
            start_ns,
            window_start_ns,
            window_end_ns: window_start_ns + load.seconds * SECOND_NS,
            sent: 0,
            tally: Tally { latencies_ns: Vec::with_capacity(frames + 1), ..Tally::default() },
        })
    }

    fn due_ns(&self, frame: u64) -> u64 {
        let offset = u128::from(frame) * u128::from(SECOND_NS) / u128::from(self.rate);
        self.start_ns + u64::try_from(offset).unwrap_or(u64::MAX / 2)
    }

    fn run(&mut self, pid: u32) -> Result<Floor> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let mut start: Option<Edge> = None;
        let mut end: Option<Edge> = None;
        loop {
            let now = now_ns();
            if start.is_none() && now >= self.window_start_ns {
                start = Some(Edge::now(pid)?);
            }
            if end.is_none() && now >= self.window_end_ns {
                end = Some(Edge::now(pid)?);
            }
            if now >= self.window_end_ns + DRAIN_NS {
                break;
            }
            let next_ns = self.send_due(now)?;
            arm(&self.timer, next_ns)?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for events"),
            }
            for event in events.drain(..) {
                let index = event.data.u64();
                if index != TIMER {
                    self.receive(usize::try_from(index).unwrap_or(usize::MAX))?;
                }
            }
        }
        let (Some(start), Some(end)) = (start, end) else { bail!("the window never passed") };
        Ok(self.result(&start, &end))
    }

    /// Writes every frame that is due and returns when the next event is.
    fn send_due(&mut self, now: u64) -> Result<u64> {
        let senders = (self.streams.len() / 2) as u64;
        loop {
            let due_ns = self.due_ns(self.sent);
            if due_ns >= self.window_end_ns {
                return Ok(self.window_end_ns + if now < self.window_end_ns { 0 } else { DRAIN_NS });
            }
            if due_ns > now {
                return Ok(due_ns);
            }
            let index = usize::try_from(self.sent % senders).unwrap_or_default();
            let mut frame = [0x55; FRAME_BYTES];
            if let Some(head) = frame.first_chunk_mut::<8>() {
                *head = due_ns.to_le_bytes();
            }
            let Some(stream) = self.streams.get_mut(index) else { bail!("no socket {index}") };
            let written = stream.write(&frame).context("the server does not keep up")?;
            if written != FRAME_BYTES {
                bail!("the server does not keep up: a frame was cut");
            }
            self.sent += 1;
            if due_ns >= self.window_start_ns {
                self.tally.sent += 1;
            }
        }
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        let mut buffer = [0; 64 * FRAME_BYTES];
        let Some(stream) = self.streams.get_mut(index) else { bail!("no socket {index}") };
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) => bail!("the server closed socket {index}"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot read"),
            };
            let now = now_ns();
            for frame in buffer.get(..count).unwrap_or_default().chunks(FRAME_BYTES) {
                let Some(head) = frame.first_chunk::<8>() else { bail!("a frame was cut") };
                let due_ns = u64::from_le_bytes(*head);
                if due_ns >= self.window_start_ns {
                    self.tally.received += 1;
                    self.tally.latencies_ns.push(now.saturating_sub(due_ns));
                }
            }
            if count < buffer.len() {
                return Ok(());
            }
        }
    }

    fn result(&mut self, start: &Edge, end: &Edge) -> Floor {
        let window_ns = (end.at_ns - start.at_ns) as f64;
        let server_ns = (end.server_cpu_ns - start.server_cpu_ns) as f64;
        let client_ns = (end.client_cpu_ns - start.client_cpu_ns) as f64;
        let frames = self.tally.sent + self.tally.received;
        let latencies = &mut self.tally.latencies_ns;
        latencies.sort_unstable();
        let total: u64 = latencies.iter().sum();
        let at = |share: f64| {
            let index = (latencies.len() as f64 * share) as usize;
            latencies.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
        };
        Floor {
            offered_in_per_s: self.rate as f64,
            sent: self.tally.sent,
            received: self.tally.received,
            server_cpu_us_per_frame: server_ns / 1e3 / frames.max(1) as f64,
            server_cpu_percent: 100.0 * server_ns / window_ns,
            client_cpu_percent: 100.0 * client_ns / window_ns,
            latency_us_mean: total as f64 / 1e3 / latencies.len().max(1) as f64,
            latency_us_p50: at(0.5),
            latency_us_p99: at(0.99),
        }
    }
}

/// Sets a timer to go off at `at_ns`.
pub(super) fn arm(timer: &OwnedFd, at_ns: u64) -> Result<()> {
    let time = Timespec {
        tv_sec: i64::try_from(at_ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at_ns % SECOND_NS).unwrap_or_default(),
    };
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let spec = Itimerspec { it_interval: zero, it_value: time };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec).context("cannot set the timer")?;
    Ok(())
}
