//! One TLS connection between socket and handler.

use std::io::{self, BufRead, Write};

use rustls::Connection;

use super::error::broken;
use crate::Filter;

/// What may wait for the end of the handshake.
const EARLY_BYTES_MAX: usize = 1024 * 1024;
/// What rustls may hold between two of our calls afterwards.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

/// Encrypts one connection. Made by [`TlsClient`](super::TlsClient) or
/// [`TlsServer`](super::TlsServer).
#[derive(Debug)]
pub struct TlsFilter {
    connection: Connection,
    ready: bool,
    /// The peer has sent close_notify.
    peer_closed: bool,
    failed: bool,
}

impl TlsFilter {
    pub(super) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(EARLY_BYTES_MAX));
        Self { connection, ready: false, peer_closed: false, failed: false }
    }

    /// Moves what was decrypted to `plain`.
    fn take_plain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // An error means that there is nothing for now, or never again.
        while let Ok(bytes) = reader.fill_buf() {
            if bytes.is_empty() {
                break;
            }
            plain.extend_from_slice(bytes);
            let len = bytes.len();
            reader.consume(len);
        }
    }

    /// Moves what rustls has to send to `wire`.
    fn take_wire(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(wire)?;
        }
        Ok(())
    }
}

impl Filter for TlsFilter {
    fn inbound(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        while !wire.is_empty() && !self.peer_closed && !self.failed {
            self.connection.read_tls(&mut wire)?;
            let state = self.connection.process_new_packets();
            self.take_plain(plain);
            match state {
                Ok(state) => self.peer_closed = state.peer_has_closed(),
                Err(error) => {
                    self.failed = true;
                    return Err(broken(&error));
                }
            }
        }
        if !self.ready && !self.connection.is_handshaking() {
            self.ready = true;
            self.connection.set_buffer_limit(Some(BUFFERED_BYTES_MAX));
        }
        Ok(())
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = if self.failed { &[] } else { plain };
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest)?;
            self.take_wire(wire)?;
            if taken == 0 {
                let why = "too much was written before the TLS handshake was over";
                return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
            }
            rest = &rest[taken..];
        }
        self.take_wire(wire)
    }

    fn is_ready(&self) -> bool {
        self.ready
    }

    fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        if !self.failed {
            self.connection.send_close_notify();
        }
        // Writing to memory does not fail.
        let _ = self.take_wire(wire);
    }
}
