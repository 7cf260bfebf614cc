//! Receives collectd's packets.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::feed::Feed;
use crate::collectd::{Hosts, PacketError, parse};
use crate::{HostRow, now_ns};

/// The largest datagram.
const PACKET_BYTES_MAX: usize = 65_535;

/// How often the stop flag is checked.
const WAIT: Duration = Duration::from_millis(100);

/// A socket to which collectd instances send.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UdpSocket,
    hosts: Hosts,
    reported: HashSet<PacketError>,
}

/// The destination of a host's rows, by the name that its collectd sends; without a name, of all
/// rows.
#[derive(Debug)]
pub(super) struct HostFeed {
    pub(super) host: Option<String>,
    pub(super) feed: Feed,
}

impl Listener {
    /// Binds the address.
    pub(super) fn new(address: SocketAddr) -> Result<Self, String> {
        let socket = UdpSocket::bind(address).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(WAIT)).map_err(|error| error.to_string())?;
        Ok(Self { socket, hosts: Hosts::default(), reported: HashSet::new() })
    }

    /// Receives packets until stopped.
    pub(super) fn watch(&mut self, feeds: &[HostFeed]) {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        // Invariant: a listener has at least one feed, and all feeds stop together.
        while feeds.iter().any(|to| !to.feed.stopping()) {
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.handle_packet(&buffer[..length], feeds),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    report(feeds, &error.to_string());
                    std::thread::sleep(WAIT);
                }
            }
            for row in self.hosts.overdue(now_ns()) {
                deliver(row, feeds);
            }
        }
        for row in self.hosts.flush() {
            deliver(row, feeds);
        }
    }

    fn handle_packet(&mut self, packet: &[u8], feeds: &[HostFeed]) {
        let now_ns = now_ns();
        let refused = self.hosts.refused();
        let result = parse(packet, |reading| {
            if let Some(row) = self.hosts.add(reading, now_ns) {
                deliver(row, feeds);
            }
        });
        if let Err(error) = result {
            // Each kind of error is reported once and then only counted.
            if self.reported.insert(error) {
                report(feeds, &error.to_string());
            } else {
                feeds.iter().for_each(|to| to.feed.count_error());
            }
        }
        if self.hosts.refused() > refused {
            report(feeds, "too many hosts or series; some are ignored");
        }
    }
}

fn deliver(row: HostRow, feeds: &[HostFeed]) {
    for to in feeds.iter().filter(|to| to.host.as_ref().is_none_or(|name| *name == row.host)) {
        to.feed.row(row.clone());
    }
}

fn report(feeds: &[HostFeed], sentence: &str) {
    feeds.iter().for_each(|to| to.feed.error(sentence.to_owned()));
}
