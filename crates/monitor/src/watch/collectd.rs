//! Listening to collectd.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::Feed;
use crate::collectd::{Hosts, PacketError, parse};
use crate::{HostRow, now_ns};

/// The largest datagram.
const PACKET_BYTES_MAX: usize = 65_535;

/// How long to wait for a packet before looking whether to stop.
const WAIT: Duration = Duration::from_millis(100);

/// A socket that collectd sends to, and who wants which of its hosts.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UdpSocket,
    hosts: Hosts,
    complained: HashSet<PacketError>,
}

/// Who wants a host's rows: by the name that its collectd sends, or all.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) host: Option<String>,
    pub(super) feed: Feed,
}

impl Listener {
    /// Binds the address.
    pub(super) fn new(address: SocketAddr) -> Result<Self, String> {
        let socket = UdpSocket::bind(address).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(WAIT)).map_err(|error| error.to_string())?;
        Ok(Self { socket, hosts: Hosts::default(), complained: HashSet::new() })
    }

    /// Listens until it is stopped.
    pub(super) fn watch(&mut self, wishes: &[Wish]) {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        // Invariant: a listener is started for at least one wish, and all stop together.
        while wishes.iter().any(|wish| !wish.feed.stopping()) {
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.packet(&buffer[..length], wishes),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    complain(wishes, &error.to_string());
                    std::thread::sleep(WAIT);
                }
            }
            for row in self.hosts.overdue(now_ns()) {
                deliver(row, wishes);
            }
        }
        for row in self.hosts.flush() {
            deliver(row, wishes);
        }
    }

    fn packet(&mut self, packet: &[u8], wishes: &[Wish]) {
        let now_ns = now_ns();
        let refused = self.hosts.refused();
        let result = parse(packet, |reading| {
            if let Some(row) = self.hosts.take(reading, now_ns) {
                deliver(row, wishes);
            }
        });
        if let Err(error) = result {
            // Each kind is told in words once; then it is only counted.
            if self.complained.insert(error) {
                complain(wishes, &format!("it got {error}"));
            } else {
                wishes.iter().for_each(|wish| wish.feed.count_error());
            }
        }
        if self.hosts.refused() > refused {
            complain(wishes, "too many hosts or series send to it; some are left out");
        }
    }
}

fn deliver(row: HostRow, wishes: &[Wish]) {
    for wish in wishes.iter().filter(|wish| wish.host.as_ref().is_none_or(|name| *name == row.host))
    {
        wish.feed.row(row.clone());
    }
}

fn complain(wishes: &[Wish], sentence: &str) {
    wishes.iter().for_each(|wish| wish.feed.error(sentence.to_owned()));
}
