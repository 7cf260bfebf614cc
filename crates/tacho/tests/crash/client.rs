//! A client: the client session state machine on successive connections.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use tacho_codec::{PacketId, Version};
use tacho_session::client::{ClientLimits, Session};

use crate::cast::Role;
use crate::ledger::Viewer;
use crate::wire::{self, Event, Opening};

/// Loopback connects at once, unless the accept backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// A SUBSCRIBE or UNSUBSCRIBE without its answer so far.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// Filters and their spans in the ledger.
    Subscribe(Vec<(usize, usize)>),
    Unsubscribe(usize, Vec<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// CONNECT was sent.
    Connecting,
    Online,
    /// DISCONNECT was sent; the broker closes.
    Leaving,
}

/// One connection.
pub(crate) struct Link {
    stream: TcpStream,
    pub(crate) stage: Stage,
    pub(crate) opening: Opening,
    input: Vec<u8>,
    output: Vec<u8>,
    /// The broker has closed its side.
    pub(crate) is_over: bool,
    /// Its DISCONNECT requests the will.
    pub(crate) keeps_will: bool,
}

impl Link {
    fn dial(port: u16, opening: Opening) -> Option<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()?;
        // Without a listener the socket may connect to itself.
        if stream.local_addr().ok()? == address {
            return None;
        }
        stream.set_nodelay(true).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            stream,
            stage: Stage::Connecting,
            opening,
            input: Vec::new(),
            output: Vec::new(),
            is_over: false,
            keeps_will: false,
        })
    }

    /// Reads available bytes; false if there are none.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES];
        let mut moved = false;
        while !self.is_over {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_over = true,
                Ok(len) => self.input.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.is_over = true,
            }
            moved = true;
            if self.input.len() > 16 * READ_BYTES {
                break;
            }
        }
        moved
    }

    /// The next complete packet.
    pub(crate) fn next(&mut self, version: Version) -> Result<Option<Event>, String> {
        let Some((event, len)) = wire::decode(&self.input, version)? else { return Ok(None) };
        self.input.drain(..len);
        Ok(Some(event))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Writes as much as the socket accepts.
    pub(crate) fn flush(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(len) => drop(self.output.drain(..len)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Pending input is read first, even after a close.
                Err(_) => return,
            }
        }
    }
}

pub(crate) struct Client {
    pub(crate) index: usize,
    pub(crate) role: Role,
    pub(crate) machine: Session<u64>,
    pub(crate) link: Option<Link>,
    /// Connections that were left open; the next CONNECT takes over from them.
    pub(crate) left_open: Vec<Link>,
    /// Number of sessions so far.
    pub(crate) epoch: u32,
    /// Its next CONNECT has clean start.
    pub(crate) wants_clean: bool,
    /// CONNACK has granted a session without expiry.
    pub(crate) has_session: bool,
    pub(crate) requests: HashMap<PacketId, Request>,
    /// QoS 2 messages in flight, until PUBREC.
    pub(crate) unreceived: HashMap<PacketId, u64>,
    /// Filters that it believes to be subscribed to.
    pub(crate) subscribed: HashSet<usize>,
    /// It does not connect before this time.
    pub(crate) away_until_ms: u64,
}

impl Client {
    pub(crate) fn new(index: usize, role: Role) -> Self {
        let limits =
            ClientLimits { inflight_max: role.inflight_max, receive_maximum: role.receive_maximum };
        Self {
            index,
            wants_clean: !role.durable,
            role,
            machine: Session::new(limits),
            link: None,
            left_open: Vec::new(),
            epoch: 0,
            has_session: false,
            requests: HashMap::new(),
            unreceived: HashMap::new(),
            subscribed: HashSet::new(),
            away_until_ms: 0,
        }
    }

    pub(crate) fn viewer(&self) -> Viewer {
        Viewer { client: self.index, epoch: self.epoch }
    }

    pub(crate) fn is_online(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.stage == Stage::Online)
    }

    /// Whether all its requests are answered.
    pub(crate) fn is_done(&self) -> bool {
        self.is_online()
            && self.requests.is_empty()
            && self.machine.inflight_len() == 0
            && !self.machine.has_output()
    }

    /// Opens a connection; false without a listener.
    pub(crate) fn dial(&mut self, port: u16, opening: Opening) -> bool {
        let Some(mut link) = Link::dial(port, opening) else { return false };
        link.write(&wire::connect(&self.role, opening));
        link.flush();
        self.link = Some(link);
        true
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if let Some(link) = &mut self.link {
            link.write(bytes);
        }
    }

    /// Reports the end of the connection to the state machine.
    pub(crate) fn disconnected(&mut self) {
        self.machine.disconnected();
        self.requests.clear();
    }
}
