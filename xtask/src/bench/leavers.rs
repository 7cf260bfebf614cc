//! Clients with many subscriptions that all leave at once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::mqtt;

const CLIENTS: usize = 1_000;
const SUBSCRIPTIONS: usize = 1_000;

/// From the start of the run until they leave: it has ramped up and measures.
const LEAVE_AFTER: Duration = Duration::from_secs(5);

/// Connected clients with their subscriptions, until it is time.
pub(super) struct Leavers {
    connections: Vec<TcpStream>,
    leave_at: Option<Instant>,
}

impl Leavers {
    /// Connects all and makes their subscriptions: plain ones, every other with a wildcard, or
    /// shared ones, a third of them in groups of one filter.
    pub(super) fn connect(port: u16, shared: bool) -> Result<Self> {
        let connect = |client| connect(port, client, shared);
        let connections = (0..CLIENTS).map(connect).collect::<Result<_>>()?;
        Ok(Self { connections, leave_at: None })
    }

    /// Called again and again during the run; at its time all connections are closed.
    pub(super) fn tick(&mut self) {
        let leave_at = *self.leave_at.get_or_insert_with(|| Instant::now() + LEAVE_AFTER);
        if Instant::now() >= leave_at {
            self.connections.clear();
        }
    }

    pub(super) fn have_left(&self) -> bool {
        self.connections.is_empty()
    }
}

fn connect(port: u16, client: usize, shared: bool) -> Result<TcpStream> {
    let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = mqtt::connect(broker, &format!("leaver-{client}"))?;
    let filter = |number| match (shared, number % 6) {
        (false, 0 | 2 | 4) => format!("leaving/{client}/{number}/x"),
        (false, _) => format!("leaving/{client}/{number}/+"),
        (true, 0 | 3) => format!("$share/{client}-{number}/leaving/all"),
        (true, _) => format!("$share/g/leaving/{client}/{number}"),
    };
    let filters: Vec<String> = (0..SUBSCRIPTIONS).map(filter).collect();
    let subscribe = mqtt::subscribe_at(1, 1, &filters);
    stream.write_all(&subscribe).context("cannot send SUBSCRIBE")?;
    // The remaining length of SUBACK takes two bytes.
    let mut suback = vec![0; 3 + 2 + SUBSCRIPTIONS];
    stream.read_exact(&mut suback).context("no SUBACK")?;
    ensure!(suback[5..].iter().all(|code| *code == 1), "not all subscriptions are granted");
    Ok(stream)
}
