//! Visiting the live content of the log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::error::ReadError;
use crate::id::{MessageId, QueueId, SegmentId};
use crate::index::{Index, Place};
use crate::record::{Decoded, Records, decode};
use crate::salt::Salt;
use crate::scan::{Scan, Window};
use crate::storage::StorageFile;

/// Receives the live content.
pub trait Visitor {
    /// A key; with the body of the message that its value refers to.
    fn key(
        &mut self,
        queue: QueueId,
        key: &[u8],
        version: u64,
        value: &[u8],
        message: Option<(MessageId, &[u8])>,
    );

    /// An entry; in any order across queues and within one.
    fn entry(
        &mut self,
        queue: QueueId,
        seq: u64,
        message: Option<MessageId>,
        state: u32,
        meta: &[u8],
    );

    /// A message whose distribution is not finished; `served` are the queues that have an entry of
    /// it, or had one since it was opened. Called once for each time that it was opened.
    fn open(&mut self, message: MessageId, body: &[u8], meta: &[u8], served: &[QueueId]);
}

/// Looks up the file of a segment.
type FileOf<'a> = dyn Fn(SegmentId) -> Option<Arc<dyn StorageFile>> + 'a;

/// Visits all live content.
pub(crate) fn visit(
    index: &Index,
    file: &FileOf<'_>,
    salt: Option<Salt>,
    visitor: &mut dyn Visitor,
) -> Result<(), ReadError> {
    let mut bodies = Places::new(file);
    visit_keys(index, file, &mut bodies, visitor)?;
    visit_entries(index, file, salt, visitor)?;
    for (id, opened) in index.opens() {
        let Some(message) = MessageId::new(id) else { continue };
        let place = index.message(id);
        let Some(body) = place.and_then(|place| bodies.body(place, message)) else { continue };
        for opened in opened {
            let served: Vec<_> = opened.served.iter().copied().map(QueueId::new).collect();
            visitor.open(message, body, &opened.meta, &served);
        }
    }
    Ok(())
}

fn visit_keys(
    index: &Index,
    file: &FileOf<'_>,
    bodies: &mut Places<'_>,
    visitor: &mut dyn Visitor,
) -> Result<(), ReadError> {
    let mut keys = Places::new(file);
    for place in index.keys() {
        let Some(Decoded::Put { queue, key, version, value, message }) = keys.record(place) else {
            tracing::error!(segment = place.segment, offset = place.offset, "a key is unreadable");
            continue;
        };
        let message = MessageId::new(message).and_then(|message| {
            let place = index.message(message.get())?;
            Some((message, bodies.body(place, message)?))
        });
        visitor.key(QueueId::new(queue), key, version, value, message);
    }
    Ok(())
}

fn visit_entries(
    index: &Index,
    file: &FileOf<'_>,
    salt: Option<Salt>,
    visitor: &mut dyn Visitor,
) -> Result<(), ReadError> {
    for segment in index.segments().filter(|segment| segment.live > 0) {
        let id = SegmentId::new(segment.number.into());
        let Some(file) = file(id) else { continue };
        let mut scan = Scan::new(id, file, salt)?;
        frames(&mut scan, segment.last_frame, |records| {
            for located in Records::new(records).map_while(Result::ok) {
                let Decoded::Entry { queue, seq, meta, .. } = located.record else { continue };
                let Some((message, state)) = index.entry(segment.number, queue, seq) else {
                    continue;
                };
                let (queue, message) = (QueueId::new(queue), MessageId::new(message));
                visitor.entry(queue, seq, message, state, meta);
            }
        });
    }
    Ok(())
}

/// Calls `each` with the records of all frames of a segment up to this number.
fn frames(scan: &mut Scan, last_frame: u64, mut each: impl FnMut(&[u8])) {
    let mut offset = 0;
    while let Some((at, header)) = scan.next_whole(offset) {
        if header.number <= last_frame {
            each(scan.records(at, &header));
        }
        if header.number >= last_frame {
            return;
        }
        offset = at + header.frame_bytes();
    }
}

/// Reads single records. Neighbouring ones cost one read.
pub(crate) struct Places<'a> {
    file: &'a FileOf<'a>,
    windows: BTreeMap<u32, Window>,
}

/// Segments held open at once.
const WINDOWS_MAX: usize = 8;

impl<'a> Places<'a> {
    pub(crate) fn new(file: &'a FileOf<'a>) -> Self {
        Self { file, windows: BTreeMap::new() }
    }

    /// The body of a message whose record is at this place.
    pub(crate) fn body(&mut self, place: Place, message: MessageId) -> Option<&[u8]> {
        self.record(place)?.whole_body(message)
    }

    fn record(&mut self, place: Place) -> Option<Decoded<'_>> {
        if !self.windows.contains_key(&place.segment) {
            let window = self.open(place.segment).ok().flatten()?;
            while self.windows.len() >= WINDOWS_MAX {
                self.windows.pop_first();
            }
            self.windows.insert(place.segment, window);
        }
        let window = self.windows.get_mut(&place.segment)?;
        let bytes = window.get(place.offset.into(), place.len as usize);
        decode(bytes).ok().map(|(record, _)| record)
    }

    fn open(&self, segment: u32) -> io::Result<Option<Window>> {
        let file = (self.file)(SegmentId::new(segment.into()));
        file.map(Window::small).transpose()
    }
}
