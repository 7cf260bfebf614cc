//! The filter of one TLS connection.

use std::io::{self, BufRead, Write};

use rustls::Connection;

use super::error::connection_error;
use crate::filter::Filter;
use crate::peer_certificates::PeerCertificates;

/// Output that may wait for the end of the handshake.
const EARLY_BYTES_MAX: usize = 1024 * 1024;
/// Output that rustls may buffer between two of our calls afterwards.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

/// Encrypts one connection. Created by [`TlsClient`](super::TlsClient) or
/// [`TlsServer`](super::TlsServer).
#[derive(Debug)]
pub struct TlsFilter {
    connection: Connection,
    /// The handshake is complete.
    ready: bool,
    input: Input,
    /// Which version of the server's CAs and revocation lists judges the peer.
    trust: u32,
}

/// The state of the peer's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// The peer has sent close_notify.
    Closed,
    /// The peer has violated the protocol, or the handshake has failed.
    Failed,
}

impl TlsFilter {
    pub(super) fn new(mut connection: Connection, trust: u32) -> Self {
        connection.set_buffer_limit(Some(EARLY_BYTES_MAX));
        Self { connection, ready: false, input: Input::Open, trust }
    }

    /// Moves decrypted bytes to `plain`.
    fn take_plain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // An error means that there are no more bytes, for now or at all.
        while let Ok(bytes) = reader.fill_buf() {
            if bytes.is_empty() {
                break;
            }
            plain.extend_from_slice(bytes);
            let len = bytes.len();
            reader.consume(len);
        }
    }

    /// Moves the output of rustls to `wire`.
    fn take_wire(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(wire)?;
        }
        Ok(())
    }
}

impl Filter for TlsFilter {
    fn inbound(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        while !wire.is_empty() && self.input == Input::Open {
            self.connection.read_tls(&mut wire)?;
            let state = self.connection.process_new_packets();
            self.take_plain(plain);
            match state {
                Ok(state) if state.peer_has_closed() => self.input = Input::Closed,
                Ok(_) => {}
                Err(error) => {
                    self.input = Input::Failed;
                    return Err(connection_error(&error));
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
        let mut rest = if self.input == Input::Failed { &[] } else { plain };
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest)?;
            self.take_wire(wire)?;
            if taken == 0 {
                let why = "too much output before the TLS handshake was complete";
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
        self.input == Input::Closed
    }

    fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    fn peer_certificates(&self) -> Option<PeerCertificates<'_>> {
        let chain = self.connection.peer_certificates()?;
        (self.ready && !chain.is_empty()).then_some(PeerCertificates { chain, trust: self.trust })
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        if self.input != Input::Failed {
            self.connection.send_close_notify();
        }
        // Writing to memory does not fail.
        let _ = self.take_wire(wire);
    }
}
