//! A bare forwarder that speaks enough of MQTT 3.1.1 to be attacked as a broker is: it answers, and
//! passes a PUBLISH on to those that subscribe to exactly its topic, at QoS 0.
//!
//! It has no sessions, limits, wills and retained messages. What an honest client sees beside it is
//! the share of the kernel, the machine and the attacker itself.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

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
}

struct MqttForwarder {
    epoll: OwnedFd,
    listener: TcpListener,
    clients: HashMap<u64, ForwarderClient>,
    next: u64,
    /// Topic → subscribers.
    routes: HashMap<Vec<u8>, Vec<u64>>,
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
    let epoll = accepting::watch(&listener, std::io::stdin())?;
    let mut forwarder = MqttForwarder {
        epoll,
        listener,
        clients: HashMap::new(),
        next: FIRST_CLIENT,
        routes: HashMap::new(),
        dirty: Vec::new(),
        buffer: vec![0; READ_BYTES].into_boxed_slice(),
    };
    forwarder.serve()
}

impl MqttForwarder {
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
                        self.read(client);
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
            };
            self.clients.insert(self.next, client);
            self.next += 1;
        }
        Ok(())
    }

    /// Takes in what has arrived, a buffer at a time.
    fn read(&mut self, key: u64) {
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
        }
    }

    /// Answers a packet, or passes it on; `None` ends the connection.
    fn take(&mut self, key: u64, packet: &[u8]) -> Option<()> {
        let first = *packet.first()?;
        let head = 2 + packet.iter().skip(1).take_while(|byte| **byte & 0x80 != 0).count();
        let body = packet.get(head..)?;
        match first >> 4 {
            1 => self.send(key, &[0x20, 2, 0, 0]),
            3 => self.forward(key, first, body)?,
            8 => {
                let mut answer = body.get(..2)?.to_vec();
                let mut rest = body.get(2..)?;
                while !rest.is_empty() {
                    let (filter, more) = text(rest)?;
                    rest = more.get(1..)?;
                    answer.push(0);
                    self.routes.entry(filter.to_vec()).or_default().push(key);
                    self.clients.get_mut(&key)?.filters.push(filter.to_vec());
                }
                self.send(key, &mqtt::packet(0x90, &answer));
            }
            10 => self.send(key, &mqtt::packet(0xb0, body.get(..2)?)),
            12 => self.send(key, &[0xd0, 0]),
            14 => return None,
            _ => {}
        }
        Some(())
    }

    fn forward(&mut self, key: u64, first: u8, body: &[u8]) -> Option<()> {
        let (topic, mut payload) = text(body)?;
        if first & 0x06 != 0 {
            let (id, rest) = payload.split_at_checked(2)?;
            payload = rest;
            self.send(key, &mqtt::packet(0x40, id));
        }
        let receivers = self.routes.get(topic).cloned().unwrap_or_default();
        if receivers.is_empty() {
            return Some(());
        }
        let mut out = (topic.len() as u16).to_be_bytes().to_vec();
        out.extend_from_slice(topic);
        out.extend_from_slice(payload);
        let out = mqtt::packet(0x30, &out);
        for receiver in receivers {
            let client = self.clients.get(&receiver);
            if client.is_some_and(|client| client.unsent.len() < UNSENT_BYTES_MAX) {
                self.send(receiver, &out);
            }
        }
        Some(())
    }

    /// Output for the end of the turn.
    fn send(&mut self, key: u64, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.unsent.extend_from_slice(bytes);
        if !client.dirty && !client.blocked && !client.unsent.is_empty() {
            client.dirty = true;
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
                receivers.retain(|receiver| *receiver != key);
                if receivers.is_empty() {
                    self.routes.remove(&filter);
                }
            }
        }
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

/// A text with its length in front, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_packets() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 200_000] {
            let packet = mqtt::packet(0x30, &vec![0; len]);
            assert_eq!(packet_len(&packet), Some(packet.len()), "{len}");
            assert_eq!(packet_len(&packet[..1]), None);
        }
        assert_eq!(packet_len(&[0x30, 0xff, 0xff, 0xff, 0xff]), Some(usize::MAX));
        assert_eq!(text(b"\x00\x01ab"), Some((&b"a"[..], &b"b"[..])));
        assert_eq!(text(b"\x00\x02a"), None);
    }
}
