//! A connection that waits for its packets: for trying out, not for load.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tacho_codec::{Direction, Packet, Version, split_frame};
use tacho_net::tls::{TlsClient, TlsFilter};
use tacho_net::{Filter, clock};

/// The largest packet that the other broker may send.
const PACKET_BYTES_MAX: u32 = 1 << 20;

/// A connection to another broker.
#[derive(Debug)]
pub struct BridgeWire {
    stream: TcpStream,
    tls: Option<TlsFilter>,
    version: Version,
    deadline_ns: u64,
    received: Vec<u8>,
}

impl BridgeWire {
    /// Connects; everything has to be over within `patience`.
    ///
    /// # Errors
    /// There is no connection.
    pub fn connect(address: SocketAddr, version: Version, patience: Duration) -> io::Result<Self> {
        let deadline_ns = clock::now_ns().saturating_add(patience.as_nanos() as u64);
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, tls: None, version, deadline_ns, received: Vec::new() })
    }

    /// Goes through a TLS handshake.
    ///
    /// # Errors
    /// The handshake fails, or takes too long.
    pub fn secure(&mut self, client: &TlsClient) -> io::Result<()> {
        self.tls = Some(client.filter()?);
        self.send(&[])?;
        while self.tls.as_ref().is_some_and(|tls| !tls.is_ready()) {
            self.read()?;
        }
        Ok(())
    }

    /// Sends bytes of MQTT.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some(tls) => {
                let mut wire = Vec::new();
                tls.outbound(bytes, &mut wire)?;
                self.stream.write_all(&wire)
            }
        }
    }

    /// Waits for packets until `wanted` makes something of one.
    ///
    /// # Errors
    /// The connection is lost, what arrives is no MQTT, or no such packet comes in time.
    pub fn wait_for<T>(
        &mut self,
        mut wanted: impl FnMut(&Packet<'_>) -> Option<T>,
    ) -> io::Result<T> {
        loop {
            let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
            while let Some(frame) = split_frame(&self.received, PACKET_BYTES_MAX)
                .map_err(|error| invalid(format!("it does not speak MQTT: {error}")))?
            {
                let packet = Packet::decode(&frame, self.version, Direction::ToClient)
                    .map_err(|error| invalid(format!("it sent a packet that is wrong: {error}")))?;
                let found = wanted(&packet);
                if let (None, Packet::Disconnect(last)) = (&found, &packet) {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        format!("it has ended the connection: {}", last.reason),
                    ));
                }
                let length = frame.total_len;
                self.received.drain(..length);
                if let Some(found) = found {
                    return Ok(found);
                }
            }
            self.read()?;
        }
    }

    /// Waits for bytes.
    fn read(&mut self) -> io::Result<()> {
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "no answer came in time");
        let left = self.deadline_ns.saturating_sub(clock::now_ns());
        let left = Duration::from_nanos(left);
        if left.is_zero() {
            return Err(silent());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 16_384];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => {
                let why = "it has closed the connection without a word";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                return Err(silent());
            }
            Err(error) => return Err(error),
        };
        let Some(tls) = &mut self.tls else {
            self.received.extend_from_slice(&buffer[..count]);
            return Ok(());
        };
        let outcome = tls.inbound(&buffer[..count], &mut self.received);
        // Sends the TLS response, which may be an alert.
        let mut wire = Vec::new();
        if tls.wants_write() && tls.outbound(&[], &mut wire).is_ok() {
            self.stream.write_all(&wire)?;
        }
        outcome
    }
}
