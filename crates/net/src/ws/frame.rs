//! Frames: headers, masks, and their valid order.

use super::close::{TOO_BIG, UNSUPPORTED, Violation};

/// A frame with a larger payload is refused.
const FRAME_BYTES_MAX: u64 = 1 << 29;
/// The largest payload of a control frame.
pub(super) const CONTROL_BYTES_MAX: usize = 125;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// Which end of a WebSocket this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Masks what it sends.
    Client,
    /// Never masks.
    Server,
}

/// A complete control frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    Close(&'a [u8]),
    Ping(&'a [u8]),
    Pong,
}

/// Decodes frames from a stream that may be split anywhere.
#[derive(Debug)]
pub(super) struct Frames {
    role: Role,
    /// The bytes of an incomplete header.
    header: [u8; 14],
    header_len: u8,
    /// The frame whose payload comes next.
    opcode: u8,
    /// Bytes of its payload that have not arrived yet.
    left: u64,
    mask: [u8; 4],
    /// A message has begun whose final frame has not arrived.
    in_message: bool,
    control: [u8; CONTROL_BYTES_MAX],
    control_len: u8,
}

impl Frames {
    pub(super) const fn new(role: Role) -> Self {
        Self {
            role,
            header: [0; 14],
            header_len: 0,
            opcode: CONTINUATION,
            left: 0,
            mask: [0; 4],
            in_message: false,
            control: [0; CONTROL_BYTES_MAX],
            control_len: 0,
        }
    }

    /// Takes bytes from `wire` until it is empty or a control frame is complete, and appends the
    /// payload of data frames to `plain`.
    pub(super) fn decode(
        &mut self,
        wire: &mut &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<Option<Control<'_>>, Violation> {
        loop {
            if self.left == 0 && !self.take_header(wire)? {
                return Ok(None);
            }
            let len = wire.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let (payload, rest) = wire.split_at(len);
            *wire = rest;
            self.left -= len as u64;
            if is_control(self.opcode) {
                let start = usize::from(self.control_len);
                // Invariant: `check_start` refused control frames that exceed the buffer.
                let room = &mut self.control[start..start + len];
                room.copy_from_slice(payload);
                apply_mask(self.mask, room);
                self.control_len += len as u8;
            } else {
                let start = plain.len();
                plain.extend_from_slice(payload);
                apply_mask(self.mask, &mut plain[start..]);
            }
            self.mask.rotate_left(len % 4);
            if self.left > 0 {
                return Ok(None);
            }
            if is_control(self.opcode) {
                let payload = &self.control[..usize::from(std::mem::take(&mut self.control_len))];
                return Ok(Some(match self.opcode {
                    CLOSE => Control::Close(payload),
                    PING => Control::Ping(payload),
                    _ => Control::Pong,
                }));
            }
        }
    }

    /// False when the header is not complete yet.
    fn take_header(&mut self, wire: &mut &[u8]) -> Result<bool, Violation> {
        loop {
            let have = usize::from(self.header_len);
            let need = match have {
                0 | 1 => 2,
                _ => header_len(self.header[1]),
            };
            if have >= 2 && have == need {
                self.header_len = 0;
                self.begin()?;
                return Ok(true);
            }
            let len = wire.len().min(need - have);
            if len == 0 {
                return Ok(false);
            }
            let (bytes, rest) = wire.split_at(len);
            *wire = rest;
            self.header[have..have + len].copy_from_slice(bytes);
            self.header_len += len as u8;
            if self.header_len == 2 {
                self.check_start()?;
            }
        }
    }

    /// Validates the first two bytes of a frame.
    fn check_start(&self) -> Result<(), Violation> {
        let [first, second, ..] = self.header;
        if first & RESERVED != 0 {
            return Err(Violation::protocol("set reserved bits"));
        }
        match (self.role, second & MASKED != 0) {
            (Role::Server, false) => return Err(Violation::protocol("did not mask a frame")),
            (Role::Client, true) => return Err(Violation::protocol("masked a frame as a server")),
            _ => {}
        }
        match (first & 0x0f, self.in_message) {
            (CONTINUATION, true) | (BINARY, false) => Ok(()),
            (CONTINUATION, false) => {
                Err(Violation::protocol("continued a message that it had not begun"))
            }
            (BINARY | TEXT, true) => Err(Violation::protocol("began a message within another")),
            (TEXT, false) => {
                Err(Violation { code: UNSUPPORTED, why: "sent text instead of binary data" })
            }
            (CLOSE | PING | PONG, _) if first & FIN == 0 => {
                Err(Violation::protocol("fragmented a control frame"))
            }
            (CLOSE | PING | PONG, _) if usize::from(second & !MASKED) > CONTROL_BYTES_MAX => {
                Err(Violation::protocol("sent a control frame of more than 125 bytes"))
            }
            (CLOSE | PING | PONG, _) => Ok(()),
            _ => Err(Violation::protocol("sent a frame with an unknown opcode")),
        }
    }

    /// Reads a complete header.
    fn begin(&mut self) -> Result<(), Violation> {
        let len = match self.header[1] & !MASKED {
            126 => u64::from(u16::from_be_bytes([self.header[2], self.header[3]])),
            // Invariant: a header with this length code has ten bytes or more.
            127 => u64::from_be_bytes(*self.header[2..].first_chunk().expect("ten bytes")),
            short => u64::from(short),
        };
        if len > FRAME_BYTES_MAX {
            return Err(Violation { code: TOO_BIG, why: "announced a frame of more than 512 MiB" });
        }
        self.mask = [0; 4];
        if self.header[1] & MASKED != 0 {
            let end = header_len(self.header[1]);
            self.mask.copy_from_slice(&self.header[end - 4..end]);
        }
        self.left = len;
        self.opcode = self.header[0] & 0x0f;
        if !is_control(self.opcode) {
            self.in_message = self.header[0] & FIN == 0;
        }
        Ok(())
    }
}

const fn is_control(opcode: u8) -> bool {
    opcode & 0x8 != 0
}

/// Length of a header by its second byte.
const fn header_len(second: u8) -> usize {
    let len = match second & !MASKED {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    if second & MASKED == 0 { len } else { len + 4 }
}

/// Appends `payload` as one binary message.
pub(super) fn write_data(role: Role, payload: &[u8], wire: &mut Vec<u8>) {
    write(role, BINARY, payload, wire);
}

/// Appends the answer to a ping.
pub(super) fn write_pong(role: Role, payload: &[u8], wire: &mut Vec<u8>) {
    write(role, PONG, payload, wire);
}

/// Appends a close frame.
pub(super) fn write_close(role: Role, code: u16, wire: &mut Vec<u8>) {
    write(role, CLOSE, &code.to_be_bytes(), wire);
}

fn write(role: Role, opcode: u8, payload: &[u8], wire: &mut Vec<u8>) {
    let masked = if role == Role::Client { MASKED } else { 0 };
    wire.reserve(payload.len() + 14);
    wire.push(FIN | opcode);
    match payload.len() {
        len @ ..126 => wire.push(masked | len as u8),
        len @ ..0x1_0000 => {
            wire.push(masked | 126);
            wire.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            wire.push(masked | 127);
            wire.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    if role == Role::Server {
        wire.extend_from_slice(payload);
        return;
    }
    let mask = fastrand::u32(..).to_ne_bytes();
    wire.extend_from_slice(&mask);
    let start = wire.len();
    wire.extend_from_slice(payload);
    apply_mask(mask, &mut wire[start..]);
}

/// Masks or unmasks; both are the same operation.
fn apply_mask(mask: [u8; 4], bytes: &mut [u8]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests;
