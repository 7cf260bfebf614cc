//! The server: one epoll loop.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::hold::{Faults, Schedule, Treatment};
use super::ledger::{Ledger, Testimony};
use super::options::ResponderOptions;
use super::wire::{self, Message, Request};
use crate::floor::accepting::{self, FIRST_CLIENT, INPUT, LISTENER};
use crate::floor::now_ns;

const READ_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 512;
const SECOND_NS: u64 = 1_000_000_000;
/// A reordered message waits so long for its successor.
const SUCCESSOR_NS: u64 = SECOND_NS / 2;
/// Longest sleep.
const SLEEP_NS: u64 = SECOND_NS / 10;
/// More waiting messages or unsent bytes are an error: the load does not fit the limit.
const WAITING_MAX: usize = 2_000_000;
const UNSENT_BYTES_MAX: usize = 64 << 20;

struct ServedClient {
    stream: TcpStream,
    mqtt5: bool,
    /// The beginning of a packet that has not arrived completely.
    rest: Vec<u8>,
    /// Bytes that the socket did not take.
    unsent: Vec<u8>,
    /// Of the last delivery.
    id: u16,
}

/// A message on its way.
struct Held {
    publisher: u64,
    message: Message,
    arrived_ns: u64,
}

pub(super) struct Responder<'a> {
    options: &'a ResponderOptions,
    epoll: OwnedFd,
    listener: TcpListener,
    clients: HashMap<u64, ServedClient>,
    next_client: u64,
    /// Topic → subscribers with their QoS.
    routes: HashMap<String, Vec<(u64, u8)>>,
    waiting: VecDeque<Held>,
    schedule: Schedule,
    faults: Faults<Held>,
    ledger: Ledger,
    /// Hold times are recorded from here on.
    record_from_ns: Option<u64>,
    buffer: Box<[u8]>,
}

impl<'a> Responder<'a> {
    /// Serves on a non-blocking listener, until `input` has something to read or is closed.
    pub(super) fn new(
        options: &'a ResponderOptions,
        listener: TcpListener,
        input: &impl AsFd,
    ) -> Result<Self> {
        let epoll = accepting::watch(&listener, input)?;
        Ok(Self {
            options,
            epoll,
            listener,
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            routes: HashMap::new(),
            waiting: VecDeque::new(),
            schedule: Schedule::new(options.hold()),
            faults: Faults::new(options.fault, options.fault_every),
            ledger: Ledger::default(),
            record_from_ns: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Ends with its input, or after the seconds of its options.
    pub(super) fn serve(mut self) -> Result<Testimony> {
        let end_ns = now_ns() + self.options.seconds * SECOND_NS;
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            let timeout = self.timeout();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for events"),
            }
            let now = now_ns();
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    INPUT => return Ok(self.ledger.close()),
                    client => self.handle(client, event.flags, now)?,
                }
            }
            self.release()?;
            if now > end_ns {
                return Ok(self.ledger.close());
            }
        }
    }

    fn timeout(&mut self) -> Timespec {
        let sleep_ns = match (self.options.spin, self.waiting.front()) {
            (true, _) => 0,
            (false, None) => SLEEP_NS,
            (false, Some(head)) => {
                self.schedule.release_ns(head.arrived_ns).saturating_sub(now_ns()).min(SLEEP_NS)
            }
        };
        Timespec { tv_sec: 0, tv_nsec: sleep_ns as i64 }
    }

    fn accept(&mut self) -> Result<()> {
        while let Some(stream) = accepting::accept(&self.listener, &self.epoll, self.next_client)? {
            let (rest, unsent) = (Vec::new(), Vec::new());
            let client = ServedClient { stream, mqtt5: false, rest, unsent, id: 0 };
            self.clients.insert(self.next_client, client);
            self.next_client += 1;
        }
        Ok(())
    }

    fn handle(&mut self, key: u64, flags: EventFlags, now: u64) -> Result<()> {
        if flags.contains(EventFlags::OUT) {
            self.send(key, &[]);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
            return Ok(());
        }
        let Some(client) = self.clients.get_mut(&key) else { return Ok(()) };
        let mut bytes = std::mem::take(&mut client.rest);
        let mut is_open = true;
        loop {
            match client.stream.read(&mut self.buffer) {
                Ok(0) => is_open = false,
                Ok(count) => {
                    bytes.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
                    // A short read has drained the socket: no second call to be told so.
                    if count == READ_BYTES || flags.contains(EventFlags::RDHUP) {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => is_open = false,
            }
            break;
        }
        let mut at = 0;
        while let Some(length) = wire::packet_length(bytes.get(at..).unwrap_or_default())? {
            let Some(packet) = bytes.get(at..at + length) else { break };
            let mqtt5 = self.clients.get(&key).is_some_and(|client| client.mqtt5);
            let request = wire::parse(packet, mqtt5)?;
            is_open &= request != Request::Disconnect;
            self.answer(key, mqtt5, request, now)?;
            at += length;
        }
        bytes.drain(..at);
        match self.clients.get_mut(&key) {
            Some(client) if is_open => client.rest = bytes,
            _ => self.close(key),
        }
        Ok(())
    }

    fn answer(&mut self, key: u64, mqtt5: bool, request: Request, now: u64) -> Result<()> {
        match request {
            Request::Connect { mqtt5 } => {
                if let Some(client) = self.clients.get_mut(&key) {
                    client.mqtt5 = mqtt5;
                }
                self.send(key, &wire::connack(mqtt5));
            }
            Request::Publish(message) => {
                if self.waiting.len() >= WAITING_MAX {
                    bail!("{WAITING_MAX} messages wait: the load is far above the limit");
                }
                self.ledger.messages += 1;
                let skip_ns = self.options.skip * SECOND_NS;
                self.record_from_ns.get_or_insert(now + skip_ns);
                self.waiting.push_back(Held { publisher: key, message, arrived_ns: now });
            }
            Request::Subscribe { id, filters } => {
                self.send(key, &wire::suback(id, &filters, mqtt5));
                for (filter, qos) in filters {
                    self.routes.entry(filter).or_default().push((key, qos));
                }
            }
            Request::Unsubscribe { id, filters } => {
                self.send(key, &wire::unsuback(id, filters, mqtt5));
            }
            Request::Received(id) => self.send(key, &wire::acknowledgement(0x62, id)),
            Request::Release(id) => self.send(key, &wire::acknowledgement(0x70, id)),
            Request::Ping => self.send(key, &[0xd0, 0]),
            Request::Disconnect | Request::Done => {}
        }
        Ok(())
    }

    /// Everything that is due leaves. What has lost its receiver takes none of the limit.
    fn release(&mut self) -> Result<()> {
        loop {
            let now = now_ns();
            let Some(head) = self.waiting.front() else { break };
            let is_wanted = self.routes.contains_key(&head.message.topic);
            if is_wanted && self.schedule.release_ns(head.arrived_ns) > now {
                break;
            }
            let Some(held) = self.waiting.pop_front() else { break };
            if is_wanted {
                self.schedule.note_release(held.arrived_ns);
            }
            let acknowledgement = match held.message.qos {
                0 => Vec::new(),
                1 => wire::acknowledgement(0x40, held.message.id),
                _ => wire::acknowledgement(0x50, held.message.id),
            };
            let publisher = held.publisher;
            match self.faults.treat(publisher, now, held) {
                Treatment::Deliver(held) => drop(self.deliver(&held)),
                Treatment::Lose => self.ledger.lost += 1,
                Treatment::Double(held) => {
                    let receivers = self.deliver(&held);
                    self.deliver(&held);
                    self.ledger.doubled += receivers;
                }
                Treatment::Kept => {}
                Treatment::Swapped(first, second) => {
                    self.deliver(&first);
                    self.ledger.reordered += self.deliver(&second);
                }
            }
            self.send(publisher, &acknowledgement);
        }
        for held in self.faults.overdue(now_ns().saturating_sub(SUCCESSOR_NS)) {
            self.deliver(&held);
        }
        Ok(())
    }

    /// Returns the number of receivers.
    fn deliver(&mut self, held: &Held) -> u64 {
        let receivers = self.routes.get(&held.message.topic).cloned().unwrap_or_default();
        for (key, granted) in &receivers {
            let Some(client) = self.clients.get_mut(key) else { continue };
            client.id = client.id.checked_add(1).unwrap_or(1);
            let qos = held.message.qos.min(*granted);
            let packet = held.message.delivery(qos, client.id, client.mqtt5);
            self.send(*key, &packet);
            let now = now_ns();
            if self.record_from_ns.is_some_and(|from| held.arrived_ns >= from) {
                self.ledger.note_hold(now - held.arrived_ns);
            }
        }
        receivers.len() as u64
    }

    /// Writes what the socket takes and keeps the rest.
    fn send(&mut self, key: u64, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.unsent.extend_from_slice(bytes);
        while !client.unsent.is_empty() {
            match client.stream.write(&client.unsent) {
                Ok(count) => drop(client.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock
                        && client.unsent.len() < UNSENT_BYTES_MAX =>
                {
                    return;
                }
                Err(_) => return self.close(key),
            }
        }
    }

    fn close(&mut self, key: u64) {
        if self.clients.remove(&key).is_some() {
            self.routes.retain(|_, receivers| {
                receivers.retain(|(receiver, _)| *receiver != key);
                !receivers.is_empty()
            });
        }
    }
}
