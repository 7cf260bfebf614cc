//! Decoding records.

use thiserror::Error;

use super::varint::{take, take_bytes};
use super::{Checksum, kind};
use crate::id::MessageId;

/// Bytes that are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum RecordError {
    /// It ends too early, or a number in it is impossible.
    #[error("a record is malformed")]
    Malformed,
    /// A kind that this version does not know.
    #[error("a record is of the unknown kind {0}")]
    Kind(u8),
}

/// A record as encoded in a frame. A message number of 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    Message { id: MessageId, checksum: u32, body: &'a [u8] },
    Entry { queue: u64, seq: u64, message: u64, state: u32, meta: &'a [u8] },
    State { queue: u64, seq: u64, state: u32, keep_message: bool },
    Remove { queue: u64, seq: u64 },
    Put { queue: u64, key: &'a [u8], version: u64, value: &'a [u8], message: u64 },
    Delete { queue: u64, key: &'a [u8], version: u64 },
    DropQueue { queue: u64 },
    Open { message: MessageId, meta: &'a [u8] },
    Done { message: MessageId },
    OpenState { message: MessageId, times: u32, opened: OpenedList<'a> },
}

impl<'a> Decoded<'a> {
    /// The body of message `wanted`, if this is its record and the checksum matches.
    pub(crate) fn whole_body(&self, wanted: MessageId) -> Option<&'a [u8]> {
        let Self::Message { id, checksum, body } = *self else { return None };
        let mut expected = Checksum::for_message(id);
        expected.add(body);
        (id == wanted && expected.value() == checksum).then_some(body)
    }
}

/// For each time that a message was opened: the caller's data, and the queues that have received it
/// since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenedList<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> OpenedList<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a [u8], Vec<u64>)> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| {
            let meta = take_bytes(&mut rest)?;
            let count = take(&mut rest)?;
            // No memory is reserved for a count that may be wrong.
            let served = (0..count).map_while(|_| take(&mut rest)).collect();
            Some((meta, served))
        })
    }

    /// Takes a list off the front, if all of it is there.
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let count = usize::try_from(take(bytes)?).ok()?;
        let all = *bytes;
        for _ in 0..count {
            take_bytes(bytes)?;
            for _ in 0..take(bytes)? {
                take(bytes)?;
            }
        }
        Some(Self { count, bytes: all.get(..all.len() - bytes.len())? })
    }
}

/// Decodes the record at the start of `bytes`; returns it with its length.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Decoded<'_>, usize), RecordError> {
    let mut rest = bytes;
    let (&first, fields) = rest.split_first().ok_or(RecordError::Malformed)?;
    rest = fields;
    if !(kind::MESSAGE..=kind::OPEN_STATE).contains(&first) {
        return Err(RecordError::Kind(first));
    }
    let record = decode_fields(first, &mut rest).ok_or(RecordError::Malformed)?;
    Ok((record, bytes.len() - rest.len()))
}

fn decode_fields<'a>(kind: u8, rest: &mut &'a [u8]) -> Option<Decoded<'a>> {
    Some(match kind {
        kind::MESSAGE => {
            let id = MessageId::new(take(rest)?)?;
            let len = usize::try_from(take(rest)?).ok()?;
            let (checksum, after) = rest.split_first_chunk()?;
            let (body, after) = after.split_at_checked(len)?;
            *rest = after;
            Decoded::Message { id, checksum: u32::from_le_bytes(*checksum), body }
        }
        kind::ENTRY => Decoded::Entry {
            queue: take(rest)?,
            seq: take(rest)?,
            message: take(rest)?,
            state: u32::try_from(take(rest)?).ok()?,
            meta: take_bytes(rest)?,
        },
        kind::STATE | kind::STATE_WITHOUT_MESSAGE => Decoded::State {
            queue: take(rest)?,
            seq: take(rest)?,
            state: u32::try_from(take(rest)?).ok()?,
            keep_message: kind == kind::STATE,
        },
        kind::REMOVE => Decoded::Remove { queue: take(rest)?, seq: take(rest)? },
        kind::PUT => {
            let (queue, key) = (take(rest)?, take_bytes(rest)?);
            let (version, message) = (take(rest)?, take(rest)?);
            Decoded::Put { queue, key, version, value: take_bytes(rest)?, message }
        }
        kind::DELETE => {
            Decoded::Delete { queue: take(rest)?, key: take_bytes(rest)?, version: take(rest)? }
        }
        kind::DROP_QUEUE => Decoded::DropQueue { queue: take(rest)? },
        kind::OPEN => {
            Decoded::Open { message: MessageId::new(take(rest)?)?, meta: take_bytes(rest)? }
        }
        kind::DONE => Decoded::Done { message: MessageId::new(take(rest)?)? },
        kind::OPEN_STATE => Decoded::OpenState {
            message: MessageId::new(take(rest)?)?,
            times: u32::try_from(take(rest)?).ok()?,
            opened: OpenedList::take(rest)?,
        },
        _ => return None,
    })
}

/// The records of a frame, with their offsets in it. Ends after the first error.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Records<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self { bytes: payload, offset: 0 }
    }
}

/// A record and its position in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located<'a> {
    pub(crate) offset: usize,
    /// Its own bytes.
    pub(crate) bytes: &'a [u8],
    pub(crate) record: Decoded<'a>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Located<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        match decode(self.bytes) {
            Ok((record, len)) => {
                let (bytes, rest) = self.bytes.split_at(len);
                let offset = self.offset;
                self.bytes = rest;
                self.offset += len;
                Some(Ok(Located { offset, bytes, record }))
            }
            Err(error) => {
                self.bytes = &[];
                Some(Err(error))
            }
        }
    }
}
