//! Reads the log when it is opened.

use std::sync::Arc;

use crate::error::{OpenError, ReadError};
use crate::id::{MessageId, QueueId, SegmentId};
use crate::index::Index;
use crate::journal::Shared;
use crate::options::Options;
use crate::segment::{Segment, parse_name};
use crate::stats::Stats;
use crate::storage::Storage;

/// What the log says when it is opened.
pub(crate) struct Recovery {
    pub(crate) index: Index,
    /// The segments that are the log, in order.
    pub(crate) segments: Vec<(SegmentId, Segment)>,
    /// Files of segments in which nothing counts.
    pub(crate) unused: Vec<String>,
    /// The newest frame, 0 if there is none.
    pub(crate) last_frame: u64,
    /// Greater than the number of any segment that there is or was a file of.
    pub(crate) next_segment: u64,
    /// The greatest message id that was ever given out.
    pub(crate) message_ids: u64,
    /// The greatest queue id that was ever given out.
    pub(crate) queue_ids: u64,
}

/// Reads all segments.
pub(crate) fn recover(
    storage: &Arc<dyn Storage>,
    _options: &Options,
    _stats: &Stats,
) -> Result<Recovery, OpenError> {
    let names = storage.list().map_err(OpenError::io("cannot list the data directory"))?;
    let last = names.iter().filter_map(|name| parse_name(name)).max();
    Ok(Recovery {
        index: Index::default(),
        segments: Vec::new(),
        unused: Vec::new(),
        last_frame: 0,
        next_segment: last.map_or(1, |id| id.get() + 1),
        message_ids: 0,
        queue_ids: 0,
    })
}

/// What was live at the end of the log when it was opened.
pub struct Recovered {
    _shared: Arc<Shared>,
}

impl Recovered {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { _shared: shared }
    }

    /// Shows everything that is live: all keys, then entries, then open messages.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn visit(&mut self, _visitor: &mut dyn Visitor) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Gets to see what was live.
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

    /// A message whose distribution is not finished; `served` are the queues that have, or had, an
    /// entry of it in the log.
    fn open(&mut self, message: MessageId, body: &[u8], meta: &[u8], served: &[QueueId]);
}
