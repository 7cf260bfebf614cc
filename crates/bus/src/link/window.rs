//! A link's state: pieces in flight, and what has arrived. It reads no clock and does no I/O.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::BusError;

/// Size of a piece: with its head it fits any engine.
const PIECE_BYTES: usize = 128 * 1024;
/// Pieces that may be ahead of their acknowledgements: the credit.
const PIECES_MAX: usize = 64;
/// A piece that is not acknowledged within this time is sent again.
const REPEAT_NS: u64 = 500_000_000;
/// A side that has nothing to send says that it is there this often.
const SIGN_NS: u64 = 1_000_000_000;

/// What travels.
#[derive(Debug, Serialize, Deserialize)]
enum Piece<'a> {
    /// A piece of a message; `last` if the message ends with it.
    Data {
        seq: u64,
        last: bool,
        #[serde(borrow)]
        bytes: &'a [u8],
    },
    /// All pieces before this have arrived. Also the sign of life.
    Next { seq: u64 },
    /// This side ends the link.
    Goodbye,
}

/// What a piece meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Nothing,
    Message(Vec<u8>),
    End(String),
}

#[derive(Debug)]
struct Sent {
    last: bool,
    bytes: Vec<u8>,
    /// When it was sent last; `None` if it is to be sent.
    at_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Window {
    silence_ns: u64,
    bytes_max: usize,
    /// Pieces without an acknowledgement, in order, those not sent yet at the end.
    pieces: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    waiting_bytes: usize,
    /// The next piece of the other side.
    expected: u64,
    /// The message that is arriving.
    partial: Vec<u8>,
    /// An acknowledgement is due.
    owes: bool,
    heard_ns: u64,
    looked_ns: u64,
    told_ns: u64,
    bytes: (u64, u64),
    ended: bool,
}

impl Window {
    pub(super) fn new(silence_ns: u64, bytes_max: usize) -> Self {
        Self {
            silence_ns,
            bytes_max,
            pieces: VecDeque::new(),
            first: 0,
            waiting_bytes: 0,
            expected: 0,
            partial: Vec::new(),
            owes: false,
            heard_ns: 0,
            looked_ns: 0,
            told_ns: 0,
            bytes: (0, 0),
            ended: false,
        }
    }

    /// Accepts a message; [`Window::poll`] returns its pieces.
    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        if self.ended {
            return Err(BusError::Closed { why: "the other side has ended".to_owned() });
        }
        if message.len() > self.bytes_max {
            let (bytes, bytes_max) = (message.len(), self.bytes_max);
            return Err(BusError::TooLarge { bytes, bytes_max });
        }
        if self.waiting_bytes + message.len() > self.bytes_max {
            return Err(BusError::Full { what: format!("{} bytes", self.waiting_bytes) });
        }
        self.waiting_bytes += message.len();
        let count = message.len().div_ceil(PIECE_BYTES).max(1);
        for at in 0..count {
            let end = message.len().min((at + 1) * PIECE_BYTES);
            let bytes = message[at * PIECE_BYTES..end].to_vec();
            self.pieces.push_back(Sent { last: at + 1 == count, bytes, at_ns: None });
        }
        Ok(())
    }

    /// Takes what arrived. What is no piece, comes twice or too early, is ignored.
    pub(super) fn take(&mut self, now_ns: u64, payload: &[u8]) -> Taken {
        let Ok(piece) = postcard::from_bytes::<Piece<'_>>(payload) else { return Taken::Nothing };
        self.heard_ns = now_ns;
        self.bytes.1 += payload.len() as u64;
        match piece {
            Piece::Goodbye => Taken::End("it ended the link".to_owned()),
            Piece::Next { seq } => {
                self.acknowledged(seq);
                Taken::Nothing
            }
            Piece::Data { seq, last, bytes } => {
                self.owes = true;
                if seq != self.expected {
                    return Taken::Nothing;
                }
                self.expected += 1;
                if self.partial.len() + bytes.len() > self.bytes_max {
                    return Taken::End("it sent a message that is too large".to_owned());
                }
                self.partial.extend_from_slice(bytes);
                match last {
                    true => Taken::Message(std::mem::take(&mut self.partial)),
                    false => Taken::Nothing,
                }
            }
        }
    }

    fn acknowledged(&mut self, seq: u64) {
        while self.first < seq
            && self.pieces.front().is_some_and(|piece| piece.at_ns.is_some())
            && let Some(piece) = self.pieces.pop_front()
        {
            self.first += 1;
            self.waiting_bytes -= piece.bytes.len();
        }
    }

    /// The next piece to publish now, if any. Returned pieces count as sent.
    pub(super) fn poll(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        if self.ended {
            return None;
        }
        let is_due = |piece: &Sent| match piece.at_ns {
            None => true,
            Some(at_ns) => now_ns.saturating_sub(at_ns) >= REPEAT_NS,
        };
        let due = self.pieces.iter_mut().take(PIECES_MAX).position(|piece| is_due(piece));
        if let Some(at) = due
            && let Some(sent) = self.pieces.get_mut(at)
        {
            sent.at_ns = Some(now_ns);
            let seq = self.first + at as u64;
            let piece = Piece::Data { seq, last: sent.last, bytes: &sent.bytes };
            let encoded = encode(&piece);
            self.bytes.0 += encoded.len() as u64;
            return Some(encoded);
        }
        if self.owes || now_ns.saturating_sub(self.told_ns) >= SIGN_NS {
            (self.owes, self.told_ns) = (false, now_ns);
            let encoded = encode(&Piece::Next { seq: self.expected });
            self.bytes.0 += encoded.len() as u64;
            return Some(encoded);
        }
        None
    }

    /// For how many seconds the other side has been silent, if that is too long.
    pub(super) fn silence_s(&self, now_ns: u64) -> Option<u64> {
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        (silent_ns >= self.silence_ns).then_some(silent_ns / 1_000_000_000)
    }

    /// For how many seconds this side has not looked, if that is too long: its process was stopped,
    /// and the other side has given it up.
    pub(super) fn stood_still_s(&mut self, now_ns: u64) -> Option<u64> {
        let stood_ns = now_ns.saturating_sub(std::mem::replace(&mut self.looked_ns, now_ns));
        (stood_ns >= self.silence_ns).then_some(stood_ns / 1_000_000_000)
    }

    /// Ends the link, with the piece that says so.
    pub(super) fn goodbye(&mut self) -> Vec<u8> {
        self.ended = true;
        encode(&Piece::Goodbye)
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the other side has acknowledged everything.
    pub(super) fn is_settled(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) const fn bytes(&self) -> (u64, u64) {
        self.bytes
    }
}

fn encode(piece: &Piece<'_>) -> Vec<u8> {
    // Invariant: encoding into memory fails for types without a length only; there are none here.
    postcard::to_allocvec(piece).expect("a piece can be encoded")
}

#[cfg(test)]
mod tests;
