//! Length-limited lines over a socket with read timeouts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::now_ns;

/// Bytes per read.
const CHUNK: usize = 16 * 1024;

/// Reads and writes lines on a socket.
#[derive(Debug)]
pub(super) struct Lines {
    stream: TcpStream,
    buffer: Vec<u8>,
    bytes_max: usize,
}

/// The outcome of waiting for a line.
#[derive(Debug)]
pub(super) enum Received {
    /// A line, and the time at which it was complete.
    Line(Vec<u8>, u64),
    /// No complete line yet.
    Nothing,
}

impl Lines {
    /// Accepts lines of at most `bytes_max` bytes.
    pub(super) fn new(stream: TcpStream, bytes_max: usize) -> Self {
        Self { stream, buffer: Vec::new(), bytes_max }
    }

    /// Waits for a line, at most `wait`.
    ///
    /// # Errors
    /// The peer closed the connection, it broke, or a line is too long.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Received> {
        let deadline_ns = now_ns() + wait.as_nanos() as u64;
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                return Ok(Received::Line(line, now_ns()));
            }
            searched = self.buffer.len();
            if searched > self.bytes_max {
                return Err(io::Error::new(ErrorKind::InvalidData, "the line is too long"));
            }
            let left_ns = deadline_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return Ok(Received::Nothing);
            }
            // A zero read timeout would block for ever.
            let left = Duration::from_nanos(left_ns.max(1_000_000));
            self.stream.set_read_timeout(Some(left))?;
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.buffer.extend(&chunk[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Waits at most `wait` for a line that parses as `T`; no line in time is an error.
    pub(super) fn expect<T: DeserializeOwned>(&mut self, wait: Duration) -> io::Result<(T, u64)> {
        match self.next(wait)? {
            Received::Line(line, at_ns) => Ok((parse(&line)?, at_ns)),
            Received::Nothing => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// Writes a line.
    pub(super) fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}

/// Parses a line as JSON.
pub(super) fn parse<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}
