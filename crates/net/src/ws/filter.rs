//! The filter of one WebSocket.

use std::io;

use super::close::{self, Violation};
use super::frame::{self, Control, Frames, Role};
use super::handshake::{self, HEAD_BYTES_MAX, Refusal};
use super::settings::{WsClient, WsServer};
use crate::filter::Filter;

/// Output that may wait for the end of the handshake.
const EARLY_BYTES_MAX: usize = 1024 * 1024;

impl WsClient {
    /// The filter of a new connection. It begins the handshake.
    pub fn filter(&self) -> WsFilter {
        let key = tungstenite::handshake::client::generate_key();
        let request = handshake::request(self, &key);
        let protocol = self.protocol.clone();
        WsFilter::new(Opening::Client { key, protocol }, request)
    }
}

impl WsServer {
    /// The filter of a new connection. It waits for the client's handshake.
    pub fn filter(&self) -> WsFilter {
        WsFilter::new(Opening::Server(self.clone()), Vec::new())
    }
}

/// The WebSocket protocol on one connection. Created by [`WsClient`] or [`WsServer`].
#[derive(Debug)]
pub struct WsFilter {
    role: Role,
    stage: Stage,
    frames: Frames,
    /// Requests and responses of the handshake, to be sent before other output.
    first: Vec<u8>,
    /// The latest unanswered ping; earlier ones need no answer (RFC 6455, 5.5.3).
    ping: Option<Box<[u8]>>,
    /// The code of our close frame, if it is not the normal one.
    close_code: Option<u16>,
    peer_closed: bool,
}

/// The state that each side needs until the WebSocket is open.
#[derive(Debug)]
enum Opening {
    Client { key: String, protocol: String },
    Server(WsServer),
}

#[derive(Debug)]
enum Stage {
    /// The peer's HTTP head is not complete.
    Opening(Box<Handshake>),
    Open,
    /// No more output, except for the rest of `first`.
    Over,
}

#[derive(Debug)]
struct Handshake {
    opening: Opening,
    head: Vec<u8>,
    /// Output of the handler that waits for the handshake.
    early: Vec<u8>,
}

impl WsFilter {
    fn new(opening: Opening, first: Vec<u8>) -> Self {
        let role = match opening {
            Opening::Client { .. } => Role::Client,
            Opening::Server(_) => Role::Server,
        };
        let handshake = Handshake { opening, head: Vec::new(), early: Vec::new() };
        Self {
            role,
            stage: Stage::Opening(Box::new(handshake)),
            frames: Frames::new(role),
            first,
            ping: None,
            close_code: None,
            peer_closed: false,
        }
    }

    /// Takes bytes of the peer's head; false while it is not complete.
    fn open(&mut self, wire: &mut &[u8]) -> io::Result<bool> {
        let Stage::Opening(handshake) = &mut self.stage else { return Ok(true) };
        let taken = wire.len().min(HEAD_BYTES_MAX - handshake.head.len());
        handshake.head.extend_from_slice(&wire[..taken]);
        match handshake.step(taken) {
            Ok(None) => {
                *wire = &[];
                Ok(false)
            }
            Ok(Some(opened)) => {
                // The bytes behind the head stay in `wire`.
                *wire = &wire[taken - (handshake.head.len() - opened.head_len)..];
                let early = std::mem::take(&mut handshake.early);
                self.first.extend_from_slice(&opened.answer);
                if !early.is_empty() {
                    frame::write_data(self.role, &early, &mut self.first);
                }
                self.stage = Stage::Open;
                Ok(true)
            }
            Err(refused) => {
                self.first.extend_from_slice(&refused.answer);
                self.stage = Stage::Over;
                Err(refused.error)
            }
        }
    }

    fn decode(&mut self, wire: &mut &[u8], plain: &mut Vec<u8>) -> Result<(), Violation> {
        while !wire.is_empty() && !self.peer_closed {
            match self.frames.decode(wire, plain)? {
                Some(Control::Ping(payload)) => self.ping = Some(payload.into()),
                Some(Control::Close(payload)) => {
                    self.close_code = close::parse(payload)?;
                    self.peer_closed = true;
                }
                Some(Control::Pong) | None => {}
            }
        }
        Ok(())
    }
}

/// A handshake that has succeeded.
struct Opened {
    head_len: usize,
    answer: Vec<u8>,
}

/// A handshake that has failed.
struct Refused {
    answer: Vec<u8>,
    error: io::Error,
}

impl Handshake {
    /// Examines the head, of which the last `new` bytes are new.
    fn step(&self, new: usize) -> Result<Option<Opened>, Refused> {
        let silent = |error| Refused { answer: Vec::new(), error };
        let word: &[u8] = match self.opening {
            Opening::Client { .. } => b"HTTP/1.",
            Opening::Server(_) => b"GET ",
        };
        if !handshake::may_begin(&self.head, word) {
            return Err(silent(handshake::error("the peer does not speak WebSocket here")));
        }
        let Some(head_len) = handshake::head_len(&self.head, new) else {
            return match self.head.len() < HEAD_BYTES_MAX {
                true => Ok(None),
                false => Err(self.refused(Refusal::too_long())),
            };
        };
        let head = &self.head[..head_len];
        match &self.opening {
            Opening::Client { key, protocol } => match handshake::verify(key, protocol, head) {
                Ok(()) => Ok(Some(Opened { head_len, answer: Vec::new() })),
                Err(error) => Err(silent(error)),
            },
            Opening::Server(server) => match handshake::accept(server, head) {
                Ok(answer) => Ok(Some(Opened { head_len, answer })),
                Err(refusal) => Err(self.refused(refusal)),
            },
        }
    }

    fn refused(&self, refusal: Refusal) -> Refused {
        let answer = match self.opening {
            Opening::Client { .. } => Vec::new(),
            Opening::Server(_) => refusal.answer(),
        };
        Refused { answer, error: refusal.error() }
    }
}

impl Filter for WsFilter {
    fn inbound(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        if matches!(self.stage, Stage::Over) || !self.open(&mut wire)? {
            return Ok(());
        }
        self.decode(&mut wire, plain).map_err(|violation| {
            self.close_code = Some(violation.code);
            // All further input is ignored.
            self.peer_closed = true;
            violation.into()
        })
    }

    fn outbound(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        if !self.first.is_empty() {
            wire.append(&mut self.first);
            self.first = Vec::new();
        }
        match &mut self.stage {
            Stage::Open => {
                if let Some(ping) = self.ping.take() {
                    frame::write_pong(self.role, &ping, wire);
                }
                if !plain.is_empty() {
                    frame::write_data(self.role, plain, wire);
                }
            }
            Stage::Opening(handshake) => {
                if handshake.early.len() + plain.len() > EARLY_BYTES_MAX {
                    let why = "too much output before the WebSocket was open";
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
                }
                handshake.early.extend_from_slice(plain);
            }
            Stage::Over => {}
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    fn wants_write(&self) -> bool {
        !self.first.is_empty() || self.ping.is_some()
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        if matches!(self.stage, Stage::Open) {
            frame::write_close(self.role, self.close_code.unwrap_or(close::NORMAL), wire);
            self.stage = Stage::Over;
        }
    }
}

#[cfg(test)]
mod tests;
