//! Reading the bodies of messages back from the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::ReadError;
use crate::id::{MessageId, SegmentId};
use crate::index::Place;
use crate::record::decode;
use crate::shared::Shared;
use crate::storage::{StorageFile, read_full_at};

/// The body of a message, or the reason why it is not available.
pub type Body = Result<Arc<[u8]>, ReadError>;

/// Attempts for a read that fails or finds unexpected content.
const TRIES: u32 = 4;

/// The bodies of these messages.
pub(crate) fn messages(shared: &Shared, ids: &[MessageId]) -> Vec<(MessageId, Body)> {
    let mut buffer = Vec::new();
    let bodies = ids.iter().map(|id| {
        let body = message(shared, *id, &mut buffer);
        if matches!(body, Err(ReadError::Damaged | ReadError::Io(_))) {
            shared.stats.unreadable.add(1);
        }
        (*id, body)
    });
    bodies.collect()
}

fn message(shared: &Shared, id: MessageId, buffer: &mut Vec<u8>) -> Body {
    let mut place = find(shared, id)?;
    let mut tries = 1;
    loop {
        let error = match at(shared, id, place, buffer) {
            Ok(body) => return Ok(body),
            Err(error) => error,
        };
        // It may have been moved meanwhile, and its segment recycled.
        let Some(now) = shared.index().message(id.get()) else { return Err(ReadError::Gone) };
        if now == place {
            tries += 1;
            if tries > TRIES {
                tracing::error!(%error, segment = place.segment, "a message cannot be read");
                return Err(error);
            }
        }
        place = now;
    }
}

/// The place of a message. A message that is not in the index is either not committed yet or gone;
/// its number does not tell which.
fn find(shared: &Shared, id: MessageId) -> Result<Place, ReadError> {
    loop {
        // Read before the index, since commits update the index first.
        let committed = shared.committed.load(Ordering::Acquire);
        if let Some(place) = shared.index().message(id.get()) {
            return Ok(place);
        }
        let until = shared.doubts.until(id, || shared.buffers.appended().get());
        if until <= committed {
            shared.doubts.end(id);
            return Err(ReadError::Gone);
        }
        if shared.committed.load(Ordering::Acquire) < until {
            return Err(ReadError::NotYet);
        }
    }
}

/// Reads the record at this place.
fn at(shared: &Shared, id: MessageId, place: Place, buffer: &mut Vec<u8>) -> Body {
    let segment = SegmentId::new(place.segment.into());
    let segment = shared.segments.get(segment).ok_or(ReadError::Damaged)?;
    body(&*segment.file, id, place, buffer)
}

/// Reads the body of a message from the file of its segment.
pub(crate) fn body(
    file: &dyn StorageFile,
    id: MessageId,
    place: Place,
    buffer: &mut Vec<u8>,
) -> Body {
    buffer.clear();
    buffer.resize(place.len as usize, 0);
    let read = read_full_at(file, place.offset.into(), buffer).map_err(ReadError::Io)?;
    if read < buffer.len() {
        return Err(ReadError::Damaged);
    }
    let record = decode(buffer).ok();
    let body = record.and_then(|(record, _)| record.whole_body(id));
    body.map(Arc::from).ok_or(ReadError::Damaged)
}
