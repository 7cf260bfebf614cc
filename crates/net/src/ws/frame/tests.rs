use std::io::{self, Cursor, Read, Write};

use proptest::collection::vec;
use proptest::prelude::*;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use super::*;

/// The result of decoding a stream that is split into pieces.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    plain: Vec<u8>,
    controls: Vec<String>,
    violation: Option<u16>,
}

fn decode(role: Role, wire: &[u8], cuts: &[usize]) -> Seen {
    let mut frames = Frames::new(role);
    let mut seen = Seen::default();
    let mut rest = wire;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let len = rest.len().min(*cuts.next().unwrap_or(&usize::MAX));
        let (mut piece, behind) = rest.split_at(len);
        rest = behind;
        while !piece.is_empty() {
            match frames.decode(&mut piece, &mut seen.plain) {
                Ok(Some(control)) => seen.controls.push(format!("{control:?}")),
                Ok(None) => assert!(piece.is_empty()),
                Err(violation) => {
                    seen.violation = Some(violation.code);
                    return seen;
                }
            }
        }
    }
    seen
}

/// The socket of tungstenite: bytes to read, and the bytes written.
#[derive(Default)]
struct Memory {
    input: Cursor<Vec<u8>>,
    output: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.input.read(into)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            len => Ok(len),
        }
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn tungstenite(role: tungstenite::protocol::Role, input: Vec<u8>) -> WebSocket<Memory> {
    let memory = Memory { input: Cursor::new(input), output: Vec::new() };
    WebSocket::from_raw_socket(memory, role, Some(WebSocketConfig::default()))
}

/// Tungstenite's result for a stream: the payload of complete messages, and whether it refused one.
fn second_opinion(role: tungstenite::protocol::Role, wire: &[u8]) -> (Vec<u8>, bool) {
    let mut socket = tungstenite(role, wire.to_vec());
    let mut plain = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Binary(data)) => plain.extend_from_slice(&data),
            Ok(_) => {}
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return (plain, false);
            }
            Err(_) => return (plain, true),
        }
    }
}

const ROLES: [(Role, tungstenite::protocol::Role); 2] = [
    (Role::Server, tungstenite::protocol::Role::Server),
    (Role::Client, tungstenite::protocol::Role::Client),
];

/// A frame, valid or not.
#[derive(Clone, Debug)]
struct Written {
    first: u8,
    masked: bool,
    mask: [u8; 4],
    payload: Vec<u8>,
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.first];
        let bit = if self.masked { MASKED } else { 0 };
        match self.payload.len() {
            len @ ..126 => bytes.push(bit | len as u8),
            len => {
                bytes.push(bit | 126);
                bytes.extend_from_slice(&(len as u16).to_be_bytes());
            }
        }
        let mut payload = self.payload.clone();
        if self.masked {
            bytes.extend_from_slice(&self.mask);
            for (index, byte) in payload.iter_mut().enumerate() {
                *byte ^= self.mask[index % 4];
            }
        }
        bytes.extend(payload);
        bytes
    }
}

/// Frames that are mostly valid; without text, which we refuse, and close, where we stop.
fn written(masked: bool) -> impl Strategy<Value = Written> {
    let opcode = prop_oneof![
        8 => Just(BINARY),
        8 => Just(CONTINUATION),
        4 => Just(PING),
        4 => Just(PONG),
        1 => 0x3_u8..8,
        1 => 0xb_u8..16,
    ];
    let flags =
        prop_oneof![12 => Just(FIN), 12 => Just(0_u8), 1 => (0_u8..16).prop_map(|b| b << 4)];
    let masked = prop_oneof![24 => Just(masked), 1 => Just(!masked)];
    let payload = prop_oneof![6 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 120..300)];
    (opcode, flags, masked, any::<[u8; 4]>(), payload).prop_map(
        |(opcode, flags, masked, mask, payload)| Written {
            first: opcode | flags,
            masked,
            mask,
            payload,
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_safe(wire in vec(any::<u8>(), 0..400), cuts in vec(1_usize..20, 1..5)) {
        for (role, _) in ROLES {
            let seen = decode(role, &wire, &cuts);
            prop_assert!(seen.plain.len() <= wire.len());
            prop_assert_eq!(&seen, &decode(role, &wire, &[usize::MAX]), "splits make no difference");
        }
    }

    #[test]
    fn each_side_reads_the_output_of_the_other(
        pieces in vec(vec(any::<u8>(), 0..300), 0..6),
        large in 65_530_usize..65_545,
        cuts in vec(1_usize..5000, 1..5),
    ) {
        for (writer, reader) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
            let large = vec![7; large];
            let mut wire = Vec::new();
            for piece in &pieces {
                write_data(writer, piece, &mut wire);
                write_pong(writer, &piece[..piece.len().min(CONTROL_BYTES_MAX)], &mut wire);
            }
            write_data(writer, &large, &mut wire);
            let seen = decode(reader, &wire, &cuts);
            prop_assert_eq!(seen.violation, None);
            prop_assert_eq!(seen.plain, [pieces.concat(), large].concat());
            prop_assert_eq!(seen.controls.len(), pieces.len());
        }
    }

    #[test]
    fn tungstenite_reads_what_we_write(pieces in vec(vec(any::<u8>(), 0..300), 0..6)) {
        for ((writer, _), (_, reader)) in [(ROLES[0], ROLES[1]), (ROLES[1], ROLES[0])] {
            let mut wire = Vec::new();
            for piece in &pieces {
                write_data(writer, piece, &mut wire);
            }
            prop_assert_eq!(second_opinion(reader, &wire), (pieces.concat(), false));
        }
    }

    #[test]
    fn we_read_what_tungstenite_writes(pieces in vec(vec(any::<u8>(), 0..300), 1..6)) {
        for ((reader, _), (_, writer)) in [(ROLES[0], ROLES[1]), (ROLES[1], ROLES[0])] {
            let mut socket = tungstenite(writer, Vec::new());
            for piece in &pieces {
                socket.send(Message::binary(piece.clone())).unwrap();
                socket.send(Message::Ping(vec![1, 2].into())).unwrap();
            }
            let seen = decode(reader, &socket.get_ref().output, &[13]);
            prop_assert_eq!(seen.violation, None);
            prop_assert_eq!(seen.plain, pieces.concat());
            prop_assert_eq!(seen.controls.len(), pieces.len());
        }
    }

    #[test]
    fn tungstenite_agrees_on_validity(frames in vec(written(true), 1..8)) {
        for (ours, theirs) in ROLES {
            let wire: Vec<u8> = frames
                .iter()
                .map(|frame| Written { masked: frame.masked == (ours == Role::Server), ..frame.clone() })
                .flat_map(|frame| frame.bytes())
                .collect();
            let seen = decode(ours, &wire, &[17]);
            let (plain, refused) = second_opinion(theirs, &wire);
            prop_assert_eq!(seen.violation.is_some(), refused, "{:?}", frames);
            // We pass parts of a message at once, tungstenite only complete messages.
            prop_assert!(seen.plain.starts_with(&plain), "{:?}", frames);
        }
    }
}

// [MQTT-6.0.0-1]
// [MQTT-3.1.1: 6.0.0-1]
#[test]
fn violations_have_their_close_codes() {
    let masked = |first: u8, payload: &[u8]| {
        Written { first, masked: true, mask: [1, 2, 3, 4], payload: payload.to_vec() }.bytes()
    };
    let whole = |first| masked(first, b"ab");
    for (wire, code) in [
        (whole(FIN | TEXT), 1003),
        (whole(FIN | CONTINUATION), 1002),
        ([whole(BINARY), whole(FIN | BINARY)].concat(), 1002),
        ([whole(BINARY), whole(FIN | TEXT)].concat(), 1002),
        (whole(FIN | 0x40 | BINARY), 1002),
        (whole(PING), 1002),
        (masked(FIN | PING, &[0; 126]), 1002),
        (vec![FIN | BINARY, 2, 1, 2], 1002),
        ([&[FIN | BINARY, MASKED | 127][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat(), 1009),
        ([&[FIN | BINARY, MASKED | 127][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat(), 1009),
    ] {
        assert_eq!(decode(Role::Server, &wire, &[1]).violation, Some(code), "{wire:?}");
    }
    assert_eq!(decode(Role::Client, &whole(FIN | BINARY), &[1]).violation, Some(1002));
}
