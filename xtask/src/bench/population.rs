//! Clients that hold many subscriptions: plain MQTT 3.1.1 over blocking sockets, one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::mqtt::{connect, subscribe};

/// Filters in one SUBSCRIBE.
const FILTERS_PER_PACKET: usize = 50;

/// Connected clients.
pub(super) struct Population {
    streams: Vec<TcpStream>,
    scrap: Vec<u8>,
}

impl Population {
    /// Connects that many clients, one after the other.
    pub(super) fn connect(port: u16, clients: usize) -> Result<Self> {
        let mut population = Self { streams: Vec::new(), scrap: vec![0; 64 * 1024] };
        population.connect_more(port, clients)?;
        Ok(population)
    }

    /// Connects so many more.
    pub(super) fn connect_more(&mut self, port: u16, clients: usize) -> Result<()> {
        let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for _ in 0..clients {
            self.streams.push(connect(broker, &format!("p{}", self.streams.len()))?);
        }
        Ok(())
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
                ensure!(suback[0] == 0x90, "expected SUBACK, got {suback:02x?}");
                ensure!(suback[4..].iter().all(|code| *code == 0), "refused: {suback:02x?}");
            }
        }
        Ok(started.elapsed())
    }

    /// Makes [`Self::drain`] non-blocking.
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
