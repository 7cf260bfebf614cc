//! Clients that hold many subscriptions: plain MQTT 3.1.1 over blocking sockets, one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Filters in one SUBSCRIBE.
const FILTERS_PER_PACKET: usize = 50;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Connected clients.
pub(super) struct Population {
    streams: Vec<TcpStream>,
    scrap: Vec<u8>,
}

impl Population {
    /// Connects that many clients, one after the other.
    pub(super) fn connect(port: u16, clients: usize) -> Result<Self> {
        let streams = (0..clients)
            .map(|client| connect(port, &format!("p{client}")))
            .collect::<Result<_>>()?;
        Ok(Self { streams, scrap: vec![0; 64 * 1024] })
    }

    /// Subscribes every client to its filters at QoS 0, each SUBACK awaited; returns how long all
    /// of it took.
    pub(super) fn subscribe(
        &mut self,
        per_client: usize,
        filter: impl Fn(usize, usize) -> String,
    ) -> Result<Duration> {
        let started = Instant::now();
        for (client, stream) in self.streams.iter_mut().enumerate() {
            let filters: Vec<String> = (0..per_client).map(|k| filter(client, k)).collect();
            let packets: Vec<u8> = filters
                .chunks(FILTERS_PER_PACKET)
                .zip(1..)
                .flat_map(|(filters, id)| subscribe(id, filters))
                .collect();
            stream.write_all(&packets).context("cannot subscribe")?;
            for filters in filters.chunks(FILTERS_PER_PACKET) {
                // A remaining length below 128 has one byte: 2 + 50 codes fit.
                let mut suback = vec![0; 4 + filters.len()];
                stream.read_exact(&mut suback).context("no SUBACK")?;
                ensure!(suback[0] == 0x90, "no SUBACK but {suback:02x?}");
                ensure!(suback[4..].iter().all(|code| *code == 0), "refused: {suback:02x?}");
            }
        }
        Ok(started.elapsed())
    }

    /// From now on [`Self::drain`] does not wait.
    pub(super) fn unblock(&self) -> Result<()> {
        self.streams
            .iter()
            .try_for_each(|stream| stream.set_nonblocking(true))
            .context("cannot make a socket non-blocking")
    }

    /// Reads what has arrived; returns the number of bytes.
    pub(super) fn drain(&mut self) -> Result<u64> {
        let mut bytes = 0;
        for stream in &mut self.streams {
            match stream.read(&mut self.scrap) {
                Ok(0) => bail!("the broker has closed a connection"),
                Ok(read) => bytes += read as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("cannot read"),
            }
        }
        Ok(bytes)
    }
}

/// A connected client with a clean session and no keep-alive.
pub(super) fn connect(port: u16, client_id: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("cannot connect")?;
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).context("cannot set a timeout")?;
    let mut body = b"\x00\x04MQTT\x04\x02\x00\x00".to_vec();
    push_text(&mut body, client_id);
    stream.write_all(&packet(0x10, &body)).context("cannot say CONNECT")?;
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).context("no CONNACK")?;
    ensure!(connack == [0x20, 2, 0, 0], "refused: {connack:02x?}");
    Ok(stream)
}

/// A SUBSCRIBE of QoS 0.
pub(super) fn subscribe(id: u16, filters: &[String]) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    for filter in filters {
        push_text(&mut body, filter);
        body.push(0);
    }
    packet(0x82, &body)
}

/// An UNSUBSCRIBE.
pub(super) fn unsubscribe(id: u16, filter: &str) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    push_text(&mut body, filter);
    packet(0xa2, &body)
}

/// A PUBLISH of QoS 0.
pub(super) fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(2 + topic.len() + payload.len());
    push_text(&mut body, topic);
    body.extend_from_slice(payload);
    packet(0x30, &body)
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut rest = body.len();
    loop {
        let low = (rest % 128) as u8;
        rest /= 128;
        packet.push(if rest > 0 { low | 0x80 } else { low });
        if rest == 0 {
            break;
        }
    }
    packet.extend_from_slice(body);
    packet
}

/// Texts here are far shorter than 64 KiB.
fn push_text(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(&(text.len() as u16).to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}
