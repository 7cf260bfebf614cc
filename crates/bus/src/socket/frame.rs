//! Frames: a length in four bytes, big-endian, and that many bytes of content.

use std::io::{self, Read, Write};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{
    BusError, Expected, LogEntry, LogLimits, MESSAGE_BYTES_MAX, Message, Name, Pattern, Revision,
    Subject, Value,
};

/// Limit on a frame: answers to reads of logs are the largest.
pub(super) const FRAME_BYTES_MAX: usize = 16 * MESSAGE_BYTES_MAX;
/// Entries that one frame may carry: together they are below [`FRAME_BYTES_MAX`].
pub(super) const ENTRIES_BYTES_MAX: usize = FRAME_BYTES_MAX / 2;

/// From a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    /// The answer has the same number.
    pub(super) number: u64,
    pub(super) ask: Ask,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Without an answer.
    Publish {
        subject: Subject,
        payload: Bytes,
    },
    /// The client chooses the number of the subscription.
    Subscribe {
        subscription: u64,
        pattern: Pattern,
        capacity: u32,
    },
    /// Without an answer.
    Unsubscribe {
        subscription: u64,
    },
    Request {
        subject: Subject,
        payload: Bytes,
        timeout: Duration,
    },
    OpenLog {
        name: Name,
        limits: LogLimits,
    },
    FindLog {
        name: Name,
    },
    DeleteLog {
        name: Name,
    },
    Append {
        log: Name,
        entry: Bytes,
    },
    Read {
        log: Name,
        from: u64,
        entries_max: u32,
    },
    OpenTable {
        name: Name,
        lease: Option<Duration>,
    },
    Get {
        table: Name,
        key: Name,
    },
    Put {
        table: Name,
        key: Name,
        value: Bytes,
        expected: Expected,
    },
    Delete {
        table: Name,
        key: Name,
        expected: Expected,
    },
    Keys {
        table: Name,
    },
}

/// To a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Frame {
    Answer { number: u64, answer: Result<Answer, BusError> },
    Message { subscription: u64, dropped: u64, message: Message },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    Found(bool),
    Payload(Bytes),
    Appended(u64),
    Entries(Vec<LogEntry>),
    Value(Option<Value>),
    Written(Revision),
    Keys(Vec<Name>),
}

/// Writes one frame.
pub(super) fn write(to: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(content).map_err(io::Error::other)?;
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(io::Error::other("a frame is too large"));
    }
    // One write, so that a frame is whole or not there.
    let mut frame = Vec::with_capacity(4 + bytes.len());
    frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    frame.extend_from_slice(&bytes);
    to.write_all(&frame)
}

/// Reads one frame; `None` at the end of the stream.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other("a frame is too large"));
    }
    // The buffer grows with what arrives, not with what is announced.
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_cut_too_large_or_damaged_are_refused() {
        let mut bytes = Vec::new();
        let ask = Ask::Keys { table: Name::parse("agents").expect("a name") };
        write(&mut bytes, &Call { number: 7, ask }).expect("written");
        let whole: Option<Call> = read(&mut &bytes[..]).expect("read");
        assert_eq!(whole.map(|call| call.number), Some(7));
        assert!(read::<Call>(&mut &bytes[..0]).expect("the end").is_none());
        assert!(read::<Call>(&mut &bytes[..bytes.len() - 1]).is_err());
        assert!(read::<Call>(&mut &[0xff, 0xff, 0xff, 0xff, 1][..]).is_err());
        assert!(read::<Call>(&mut &[0, 0, 0, 2, 1, 99][..]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            let mut frame = (bytes.len() as u32).to_be_bytes().to_vec();
            frame.extend(&bytes);
            let _ = read::<Call>(&mut &frame[..]);
            let _ = read::<Frame>(&mut &frame[..]);
            let _ = read::<Call>(&mut &bytes[..]);
        }
    }
}
