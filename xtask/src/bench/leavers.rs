//! Clients with many subscriptions that all leave at once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

const CLIENTS: usize = 1_000;
const SUBSCRIPTIONS: usize = 1_000;

/// From the start of the run until they leave: it has ramped up and measures.
const LEAVE_AFTER: Duration = Duration::from_secs(5);
/// For an answer of the broker.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE)).context("cannot set a timeout")?;
    let name = format!("leaver-{client}");
    // 3.1.1, clean session, without keep-alive.
    let mut connect = vec![0x10, 12 + name.len() as u8, 0, 4];
    connect.extend_from_slice(b"MQTT\x04\x02\x00\x00\x00");
    connect.push(name.len() as u8);
    connect.extend_from_slice(name.as_bytes());
    stream.write_all(&connect).context("cannot send CONNECT")?;
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).context("no CONNACK")?;
    ensure!(connack == [0x20, 2, 0, 0], "{name} is refused: {connack:?}");
    let mut body = vec![0, 1];
    for number in 0..SUBSCRIPTIONS {
        let filter = match (shared, number % 6) {
            (false, 0 | 2 | 4) => format!("leaving/{client}/{number}/x"),
            (false, _) => format!("leaving/{client}/{number}/+"),
            (true, 0 | 3) => format!("$share/{client}-{number}/leaving/all"),
            (true, _) => format!("$share/g/leaving/{client}/{number}"),
        };
        body.extend_from_slice(&(filter.len() as u16).to_be_bytes());
        body.extend_from_slice(filter.as_bytes());
        body.push(1);
    }
    let mut subscribe = vec![0x82];
    push_len(&mut subscribe, body.len());
    subscribe.append(&mut body);
    stream.write_all(&subscribe).context("cannot send SUBSCRIBE")?;
    // The remaining length of SUBACK takes two bytes.
    let mut suback = vec![0; 3 + 2 + SUBSCRIPTIONS];
    stream.read_exact(&mut suback).context("no SUBACK")?;
    ensure!(suback[5..].iter().all(|code| *code == 1), "not all subscriptions are granted");
    Ok(stream)
}

/// A remaining length (2.2.3).
fn push_len(bytes: &mut Vec<u8>, mut len: usize) {
    while len > 0x7f {
        bytes.push(len as u8 | 0x80);
        len >>= 7;
    }
    bytes.push(len as u8);
}
