//! A bare forwarder that speaks enough of MQTT 3.1.1 and 5.0 to be measured and attacked like a
//! broker: it answers, and passes a PUBLISH on, at QoS 0 or 1, to those that speak the same version
//! and subscribe to exactly its topic, or to it with `+` as the last level.
//!
//! It has no sessions, limits, wills and retained messages, keeps nothing until it is acknowledged,
//! and ends connections that publish at QoS 2 or, in 5.0, unsubscribe. A message costs the kernel's
//! share here; what an honest client sees beside an attacker is the machine's and the attacker's.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::accepting::{self, FIRST_CLIENT, INPUT, LISTENER};
use super::process::{pin_self, raise_descriptor_limit};
use crate::mqtt;

const READ_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 1024;
/// A receiver with so much unsent output gets no more.
const UNSENT_BYTES_MAX: usize = 256 * 1024;
/// A longer packet ends its connection.
const PACKET_BYTES_MAX: usize = 1 << 20;

struct ForwarderClient {
    stream: TcpStream,
    /// The beginning of a packet that has not arrived completely.
    rest: Vec<u8>,
    unsent: Vec<u8>,
    /// It has output that waits for the end of the turn.
    dirty: bool,
    /// Its socket takes nothing until it says so.
    blocked: bool,
    filters: Vec<Vec<u8>>,
    /// The packet identifier of the last message at QoS 1.
    packet_id: u16,
    /// It speaks MQTT 5.0.
    is_v5: bool,
}

#[derive(Clone, Copy)]
struct Receiver {
    key: u64,
    /// At QoS 1 if the message is, too.
    acknowledges: bool,
    is_v5: bool,
}

struct MqttForwarder {
    epoll: OwnedFd,
    listener: TcpListener,
    clients: HashMap<u64, ForwarderClient>,
    next: u64,
    /// Topic filter → subscribers.
    routes: HashMap<Vec<u8>, Rc<Vec<Receiver>>>,
    dirty: Vec<u64>,
    buffer: Box<[u8]>,
}

/// Prints its port, and serves until its input closes.
pub(super) fn run(cpu: Option<usize>) -> Result<()> {
    if let Some(cpu) = cpu {
        pin_self(cpu)?;
    }
    raise_descriptor_limit()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    listener.set_nonblocking(true).context("cannot make the listener non-blocking")?;
    println!("{}", listener.local_addr().context("no local address")?.port());
    MqttForwarder::new(listener, std::io::stdin())?.serve()
}

impl MqttForwarder {
    /// Until `input` closes.
    fn new(listener: TcpListener, input: impl AsFd) -> Result<Self> {
        Ok(Self {
            epoll: accepting::watch(&listener, input)?,
            listener,
            clients: HashMap::new(),
            next: FIRST_CLIENT,
            routes: HashMap::new(),
            dirty: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    fn serve(&mut self) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for events"),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    INPUT => return Ok(()),
                    client => {
                        let flags = event.flags;
                        if flags.contains(EventFlags::OUT)
                            && let Some(known) = self.clients.get_mut(&client)
                        {
                            known.blocked = false;
                            self.send(client, &[]);
                        }
                        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                        self.read(client, flags.intersects(ends));
                    }
                }
            }
            for client in std::mem::take(&mut self.dirty) {
                self.flush(client);
            }
        }
    }

    fn accept(&mut self) -> Result<()> {
        while let Some(stream) = accepting::accept(&self.listener, &self.epoll, self.next)? {
            let client = ForwarderClient {
                stream,
                rest: Vec::new(),
                unsent: Vec::new(),
                dirty: false,
                blocked: false,
                filters: Vec::new(),
                packet_id: 0,
                is_v5: false,
            };
            self.clients.insert(self.next, client);
            self.next += 1;
        }
        Ok(())
    }

    /// Takes in what has arrived, a buffer at a time; to the end of the input if there is one.
    fn read(&mut self, key: u64, at_end: bool) {
        loop {
            let Some(client) = self.clients.get_mut(&key) else { return };
            let count = match client.stream.read(&mut self.buffer) {
                Ok(0) => return self.close(key),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.close(key),
            };
            let mut bytes = std::mem::take(&mut client.rest);
            bytes.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
            let mut at = 0;
            while let Some(len) = packet_len(bytes.get(at..).unwrap_or_default()) {
                if len > PACKET_BYTES_MAX {
                    return self.close(key);
                }
                let Some(packet) = bytes.get(at..at + len) else { break };
                if self.take(key, packet).is_none() {
                    return self.close(key);
                }
                at += len;
            }
            bytes.drain(..at);
            if let Some(client) = self.clients.get_mut(&key) {
                client.rest = bytes;
            }
            if count < READ_BYTES && !at_end {
                return;
            }
        }
    }

    /// Answers a packet, or passes it on; `None` ends the connection.
    fn take(&mut self, key: u64, packet: &[u8]) -> Option<()> {
        let first = *packet.first()?;
        let head = 2 + packet.iter().skip(1).take_while(|byte| **byte & 0x80 != 0).count();
        let body = packet.get(head..)?;
        let is_v5 = self.clients.get(&key)?.is_v5;
        match first >> 4 {
            1 => {
                let (_, rest) = text(body)?;
                let is_v5 = *rest.first()? == 5;
                self.clients.get_mut(&key)?.is_v5 = is_v5;
                let answer: &[u8] = if is_v5 { &[0, 0, 0] } else { &[0, 0] };
                self.send(key, &mqtt::packet(0x20, answer));
            }
            3 => self.forward(key, is_v5, first, body)?,
            8 => self.subscribe(key, is_v5, body)?,
            10 if is_v5 => return None,
            10 => self.send(key, &mqtt::packet(0xb0, body.get(..2)?)),
            12 => self.send(key, &[0xd0, 0]),
            14 => return None,
            _ => {}
        }
        Some(())
    }

    fn subscribe(&mut self, key: u64, is_v5: bool, body: &[u8]) -> Option<()> {
        let mut answer = body.get(..2)?.to_vec();
        let mut rest = body.get(2..)?;
        if is_v5 {
            // Properties: none of them matters here, and none is answered.
            let len = varying(rest)?;
            rest = rest.get(len..)?;
            answer.push(0);
        }
        while !rest.is_empty() {
            let (filter, more) = text(rest)?;
            let (options, more) = more.split_first()?;
            rest = more;
            let qos = options & 3;
            let acknowledges = qos > 0;
            answer.push(qos);
            let receivers = self.routes.entry(filter.to_vec()).or_default();
            Rc::make_mut(receivers).push(Receiver { key, acknowledges, is_v5 });
            self.clients.get_mut(&key)?.filters.push(filter.to_vec());
        }
        self.send(key, &mqtt::packet(0x90, &answer));
        Some(())
    }

    fn forward(&mut self, key: u64, is_v5: bool, first: u8, body: &[u8]) -> Option<()> {
        let (topic, mut behind) = text(body)?;
        let qos = first >> 1 & 3;
        if qos > 1 {
            return None;
        }
        if qos == 1 {
            let (id, rest) = behind.split_at_checked(2)?;
            behind = rest;
            self.send(key, &mqtt::packet(0x40, id));
        }
        let parent_len = topic.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let siblings = [topic.get(..parent_len)?, b"+"].concat();
        let routes = [topic, &siblings].map(|filter| self.routes.get(filter).cloned());
        if routes.iter().all(Option::is_none) {
            return Some(());
        }
        let name = body.get(..2 + topic.len())?;
        let once = mqtt::packet(0x30, &[name, behind].concat());
        let mut acknowledged = mqtt::packet(0x32, &[name, &[0, 0], behind].concat());
        let id_at = acknowledged.len() - behind.len() - 2;
        for receiver in routes.iter().flatten().flat_map(|receivers| receivers.iter()) {
            let Some(client) = self.clients.get_mut(&receiver.key) else { continue };
            if receiver.is_v5 != is_v5 || client.unsent.len() >= UNSENT_BYTES_MAX {
                continue;
            }
            if qos == 1 && receiver.acknowledges {
                client.packet_id = client.packet_id.checked_add(1).unwrap_or(1);
                let id = acknowledged.get_mut(id_at..id_at + 2)?;
                id.copy_from_slice(&client.packet_id.to_be_bytes());
                client.unsent.extend_from_slice(&acknowledged);
            } else {
                client.unsent.extend_from_slice(&once);
            }
            if client.is_due() {
                self.dirty.push(receiver.key);
            }
        }
        Some(())
    }

    /// Output for the end of the turn.
    fn send(&mut self, key: u64, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.unsent.extend_from_slice(bytes);
        if client.is_due() {
            self.dirty.push(key);
        }
    }

    /// Writes what the socket takes and keeps the rest.
    fn flush(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.dirty = false;
        while !client.unsent.is_empty() {
            match client.stream.write(&client.unsent) {
                Ok(count) => drop(client.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    client.blocked = true;
                    return;
                }
                Err(_) => return self.close(key),
            }
        }
    }

    fn close(&mut self, key: u64) {
        let Some(client) = self.clients.remove(&key) else { return };
        for filter in client.filters {
            if let Some(receivers) = self.routes.get_mut(&filter) {
                let receivers = Rc::make_mut(receivers);
                receivers.retain(|receiver| receiver.key != key);
                if receivers.is_empty() {
                    self.routes.remove(&filter);
                }
            }
        }
    }
}

impl ForwarderClient {
    /// Whether its output waits for the end of the turn from now on.
    fn is_due(&mut self) -> bool {
        let due = !self.dirty && !self.blocked && !self.unsent.is_empty();
        self.dirty |= due;
        due
    }
}

/// The length of the packet at the beginning; `None` while its head is not complete.
fn packet_len(bytes: &[u8]) -> Option<usize> {
    let mut len = 0;
    for (place, byte) in bytes.iter().skip(1).take(4).enumerate() {
        len |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(2 + place + len);
        }
    }
    // A length of five bytes: longer than any packet may be.
    (bytes.len() > 4).then_some(usize::MAX)
}

/// The length of properties with the length in front of them.
fn varying(bytes: &[u8]) -> Option<usize> {
    // As of a packet without its first byte.
    packet_len(&[&[0], bytes.get(..4.min(bytes.len()))?].concat()).map(|len| len - 1)
}

/// A text with its length in front, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(client: &mut TcpStream, packet: &[u8], answer: &[u8]) {
        client.write_all(packet).expect("writes");
        receive(client, answer);
    }

    fn receive(client: &mut TcpStream, expected: &[u8]) {
        let mut bytes = vec![0; expected.len()];
        client.read_exact(&mut bytes).expect("an answer");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn messages_are_passed_on_at_both_levels_and_in_both_versions() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("is possible");
        let address = listener.local_addr().expect("an address");
        let (input, end) = std::io::pipe().expect("a pipe");
        let serving = std::thread::spawn(move || {
            MqttForwarder::new(listener, &input).and_then(|mut forwarder| forwarder.serve())
        });
        let text = |text: &str| [&[0, text.len() as u8], text.as_bytes()].concat();
        // What MQTT 5.0 has more: properties, none of them, in three packets.
        for none in [&[][..], &[0][..]] {
            let level = 4 + none.len() as u8;
            let connect = |name: &str| {
                let mut client = TcpStream::connect(address).expect("accepts");
                let head = [&text("MQTT")[..], &[level, 2, 0, 0], none, &text(name)].concat();
                let connack = mqtt::packet(0x20, &[&[0, 0], none].concat());
                exchange(&mut client, &mqtt::packet(0x10, &head), &connack);
                client
            };
            let subscribed = |name: &str, filter: &str, qos: u8| {
                let mut client = connect(name);
                let body = [&[0, 7], none, &text(filter), &[qos]].concat();
                let suback = mqtt::packet(0x90, &[&[0, 7], none, &[qos]].concat());
                exchange(&mut client, &mqtt::packet(0x82, &body), &suback);
                client
            };
            let mut all = subscribed("all", "a/+", 1);
            let mut one = subscribed("one", "a/b", 0);
            let mut publisher = connect("publisher");
            let once = mqtt::packet(0x30, &[&text("a/b")[..], none, b"x"].concat());
            for id in 1..=2 {
                let with = |id| [&text("a/b")[..], &[0, id], none, b"x"].concat();
                let publish = mqtt::packet(0x32, &with(90 + id));
                exchange(&mut publisher, &publish, &[0x40, 2, 0, 90 + id]);
                receive(&mut all, &mqtt::packet(0x32, &with(id)));
                receive(&mut one, &once);
            }
            publisher.write_all(&once).expect("writes");
            receive(&mut all, &once);
            receive(&mut one, &once);
        }
        drop(end);
        serving.join().expect("does not panic").expect("ends with its input");
    }

    #[test]
    fn lengths_of_packets() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 200_000] {
            let packet = mqtt::packet(0x30, &vec![0; len]);
            assert_eq!(packet_len(&packet), Some(packet.len()), "{len}");
            assert_eq!(packet_len(&packet[..1]), None);
        }
        assert_eq!(packet_len(&[0x30, 0xff, 0xff, 0xff, 0xff]), Some(usize::MAX));
        assert_eq!(
            (varying(&[0, 9]), varying(&[3, 1, 2, 3]), varying(&[])),
            (Some(1), Some(4), None)
        );
        assert_eq!(text(b"\x00\x01ab"), Some((&b"a"[..], &b"b"[..])));
        assert_eq!(text(b"\x00\x02a"), None);
    }
}
