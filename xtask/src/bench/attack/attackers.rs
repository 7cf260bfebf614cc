//! What attackers do: everything is legal, and more than anyone should.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Attack;
use crate::mqtt::{connect, packet, publish, push_text, subscribe, unsubscribe_all};

const SLOW_READERS: usize = 20;
const UNACKNOWLEDGING: usize = 200;
const RETAINED: usize = 1_000_000;
const WILLS: usize = 6_000;
const HTTP_CONNECTIONS: usize = 200;
const REQUESTERS: usize = 8;
/// What a session may have, by default.
const FILTERS_PER_REQUEST: usize = 1_000;
/// In a packet of nearly the largest size, 1 MiB, that is refused.
const FILTERS_TOO_MANY: usize = 200_000;

/// The unit of work of an attacker that goes on all the time.
const TICK: Duration = Duration::from_millis(1);
/// Messages in each, at QoS 0 and at QoS 1.
const FLOOD_PER_TICK: usize = 50;
const MESSAGES_PER_TICK: u16 = 2;
/// Messages in one write while topics are retained.
const RETAINED_PER_WRITE: usize = 500;
/// Between two subscribers to everything that is retained, and between two batches of what goes on.
const PAUSE: Duration = Duration::from_millis(250);
/// From the beginning until everyone with a will is gone.
const BEFORE_THE_END: Duration = Duration::from_secs(1);

/// The connections of an attack that is prepared.
pub(super) struct Attacker {
    attack: Attack,
    broker: SocketAddr,
    /// Where the broker serves HTTP.
    http: Option<SocketAddr>,
    publisher: TcpStream,
    others: Vec<TcpStream>,
}

impl Attacker {
    /// Connects, and does what comes before the attack.
    pub(super) fn prepare(attack: Attack, port: u16, http: Option<SocketAddr>) -> Result<Self> {
        let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut publisher = connect(broker, "attacker")?;
        let others = match attack {
            Attack::Flood => subscribers(broker, SLOW_READERS, ("flood", 0))?,
            Attack::NoAcknowledgements => subscribers(broker, UNACKNOWLEDGING, ("unacked", 1))?,
            Attack::Retained => {
                for first in (0..RETAINED).step_by(RETAINED_PER_WRITE) {
                    let last = RETAINED.min(first + RETAINED_PER_WRITE);
                    let bytes: Vec<u8> = (first..last).flat_map(retained).collect();
                    publisher.write_all(&bytes).context("cannot retain")?;
                }
                // Answered behind all of them.
                publisher.write_all(&[0xc0, 0]).context("cannot ping")?;
                publisher.read_exact(&mut [0; 2]).context("no PINGRESP")?;
                Vec::new()
            }
            Attack::Wills => (0..WILLS).map(|at| with_will(broker, at)).collect::<Result<_>>()?,
            Attack::LongRequests => (0..REQUESTERS)
                .map(|client| connect(broker, &format!("requester-{client}")))
                .collect::<Result<_>>()?,
            Attack::IdleHttp => Vec::new(),
        };
        let nonblocking = publisher.set_nonblocking(true);
        nonblocking.context("cannot make a socket non-blocking")?;
        Ok(Self { attack, broker, http, publisher, others })
    }

    /// Attacks until it is told to stop.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let goes_on = || !stop.load(Ordering::Relaxed);
        match self.attack {
            Attack::Flood => {
                let bytes = publish("flood", &[0x55; 100]).repeat(FLOOD_PER_TICK);
                let mut rest = Vec::new();
                while goes_on() {
                    self.write(&mut rest, &bytes)?;
                    thread::sleep(TICK);
                }
            }
            Attack::NoAcknowledgements => {
                let (mut id, mut rest, mut scrap) = (1, Vec::new(), vec![0; 64 << 10]);
                self.others.iter().try_for_each(|other| other.set_nonblocking(true))?;
                while goes_on() {
                    let bytes: Vec<u8> = (0..MESSAGES_PER_TICK)
                        .flat_map(|_| {
                            id = id % 60_000 + 1;
                            publish_1("unacked", id)
                        })
                        .collect();
                    self.write(&mut rest, &bytes)?;
                    // Everything is read, and nothing is acknowledged.
                    for other in self.others.iter_mut().chain([&mut self.publisher]) {
                        drop(other.read(&mut scrap));
                    }
                    thread::sleep(TICK);
                }
            }
            Attack::Retained => self.replay(stop)?,
            Attack::Wills => {
                thread::sleep(BEFORE_THE_END);
                self.others.clear();
                while goes_on() {
                    thread::sleep(PAUSE);
                }
            }
            Attack::LongRequests => self.request(stop)?,
            Attack::IdleHttp => self.idle(stop),
        }
        Ok(())
    }

    /// Writes as much as the broker takes now; what a write was cut at comes first.
    fn write(&mut self, rest: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
        write(&mut self.publisher, rest, bytes)
    }

    /// Subscribes to as much as a session may have and ends all of it, again and again; beside
    /// that, a client at a time sends a packet with far too many filters, and is closed.
    fn request(&mut self, stop: &AtomicBool) -> Result<()> {
        self.others.iter().try_for_each(|other| other.set_nonblocking(true))?;
        let pairs: Vec<Vec<u8>> = (0..REQUESTERS).map(subscribe_and_end).collect();
        let mut rests = vec![Vec::new(); REQUESTERS];
        let too_many = subscribe(1, &vec![String::from("a"); FILTERS_TOO_MANY]);
        let mut scrap = vec![0; 64 << 10];
        for tick in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for ((other, rest), pair) in self.others.iter_mut().zip(&mut rests).zip(&pairs) {
                write(other, rest, pair)?;
                drop(other.read(&mut scrap));
            }
            if tick % PAUSE.as_millis() == 0 {
                let mut refused = connect(self.broker, "refused")?;
                // The broker closes while it is written.
                drop(refused.write_all(&too_many));
                drop(refused.read(&mut scrap));
            }
            thread::sleep(TICK);
        }
        Ok(())
    }

    /// Subscribes to everything again and again, and retains more.
    fn replay(&mut self, stop: &AtomicBool) -> Result<()> {
        let (mut next, mut rest, mut scrap) = (RETAINED, Vec::new(), vec![0; 64 << 10]);
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut reader = connect(self.broker, &format!("replay-{number}"))?;
            number += 1;
            let packet = subscribe(1, &["retained/#".to_owned()]);
            reader.write_all(&packet).context("cannot subscribe")?;
            reader.set_nonblocking(true).context("cannot make a socket non-blocking")?;
            for _ in 0..PAUSE.as_millis() {
                let bytes: Vec<u8> = (next..next + FLOOD_PER_TICK).flat_map(retained).collect();
                next += FLOOD_PER_TICK;
                self.write(&mut rest, &bytes)?;
                drop(reader.read(&mut scrap));
                thread::sleep(TICK);
            }
        }
        Ok(())
    }

    /// Holds connections with half a request, or none.
    fn idle(&self, stop: &AtomicBool) {
        let Some(http) = self.http else {
            // A forwarder serves no HTTP: nothing to attack.
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
            }
            return;
        };
        let mut held = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            if held.len() >= HTTP_CONNECTIONS {
                held.remove(0);
            }
            if let Ok(mut stream) = TcpStream::connect(http) {
                if held.len() % 2 == 0 {
                    drop(stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: "));
                }
                held.push(stream);
            }
            thread::sleep(TICK);
        }
    }
}

/// Writes as much as a non-blocking socket takes now; what a write was cut at comes first.
fn write(stream: &mut TcpStream, rest: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    if rest.is_empty() {
        rest.extend_from_slice(bytes);
    }
    match stream.write(rest) {
        Ok(count) => drop(rest.drain(..count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error).context("the attacker was closed"),
    }
    Ok(())
}

/// A long SUBSCRIBE, every other filter with a wildcard, and the UNSUBSCRIBE of all of it.
fn subscribe_and_end(client: usize) -> Vec<u8> {
    let filter = |number| match number % 2 {
        0 => format!("requests/{client}/{number}/of/many/levels"),
        _ => format!("requests/{client}/{number}/+/many/#"),
    };
    let filters: Vec<String> = (0..FILTERS_PER_REQUEST).map(filter).collect();
    [subscribe(1, &filters), unsubscribe_all(2, &filters)].concat()
}

/// Clients that subscribe, and are not read from.
fn subscribers(broker: SocketAddr, count: usize, filter: (&str, u8)) -> Result<Vec<TcpStream>> {
    (0..count)
        .map(|client| {
            let mut stream = connect(broker, &format!("subscriber-{client}"))?;
            let mut body = 1_u16.to_be_bytes().to_vec();
            push_text(&mut body, filter.0);
            body.push(filter.1);
            stream.write_all(&packet(0x82, &body)).context("cannot subscribe")?;
            stream.read_exact(&mut [0; 5]).context("no SUBACK")?;
            Ok(stream)
        })
        .collect()
}

/// A PUBLISH of QoS 0 that is retained, each to a topic of its own.
fn retained(number: usize) -> Vec<u8> {
    let mut bytes = publish(&format!("retained/{number}"), b"0123456789abcdef");
    if let Some(first) = bytes.first_mut() {
        *first |= 1;
    }
    bytes
}

/// A PUBLISH of QoS 1.
fn publish_1(topic: &str, id: u16) -> Vec<u8> {
    let mut body = Vec::new();
    push_text(&mut body, topic);
    body.extend_from_slice(&id.to_be_bytes());
    body.extend_from_slice(&[0x55; 100]);
    packet(0x32, &body)
}

/// A connected client with a will of QoS 0 on a topic of its own.
fn with_will(broker: SocketAddr, number: usize) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(broker).context("cannot connect")?;
    // Clean session, will, no keep-alive.
    let mut body = b"\x00\x04MQTT\x04\x06\x00\x00".to_vec();
    push_text(&mut body, &format!("will-{number}"));
    push_text(&mut body, &format!("wills/{number}"));
    push_text(&mut body, "gone");
    stream.write_all(&packet(0x10, &body)).context("cannot say CONNECT")?;
    stream.read_exact(&mut [0; 4]).context("no CONNACK")?;
    Ok(stream)
}
