//! Writers: how shards append records.

use std::mem;
use std::sync::{Arc, Mutex};

use crate::buffers::{Buffer, lock};
use crate::id::CommitSeq;
use crate::options::{Level, Urgency};
use crate::record::Record;
use crate::shared::Shared;

/// A record batch of this size is passed on as it is; a smaller one is copied to the buffer's end.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// A backlog of this size does not wait until its commit is requested.
const WAITS_BYTES: usize = 4 << 20;

/// Appends the records of one shard. Created by [`Journal::writer`](crate::Journal::writer).
pub struct Writer {
    shared: Arc<Shared>,
    buffer: Arc<Mutex<Buffer>>,
    batch: RecordBatch,
}

/// Records that are appended together; one commit includes all of them.
#[derive(Default)]
struct RecordBatch {
    bytes: Vec<u8>,
    records: u32,
    synced: bool,
    body_bytes: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let buffer = shared.buffers.add();
        Self { shared, buffer, batch: RecordBatch::default() }
    }

    /// Appends a record and returns the commit that will include it.
    ///
    /// Of two records the one that was appended first is in the same commit or in an earlier one,
    /// also across writers. Blocks at most while a commit exchanges the buffers.
    pub fn append(&mut self, record: Record<'_>, level: Level, urgency: Urgency) -> CommitSeq {
        let mut buffer = lock(&self.buffer);
        let piece = buffer.piece(0);
        let before = piece.len();
        record.encode_unsummed(piece);
        let more = piece.len() - before;
        buffer.bytes += more;
        buffer.records += 1;
        buffer.synced |= level == Level::Fsynced;
        let commit = buffer.commit;
        let bytes = buffer.bytes;
        drop(buffer);
        self.appended(record.body_bytes(), bytes, urgency);
        commit
    }

    /// Adds a record to the current batch, which is invisible to commits until [`Writer::close`].
    #[inline]
    pub fn gather(&mut self, record: Record<'_>, level: Level) {
        let batch = &mut self.batch;
        record.encode_unsummed(&mut batch.bytes);
        batch.records += 1;
        batch.synced |= level == Level::Fsynced;
        batch.body_bytes += record.body_bytes();
    }

    /// Appends the current batch: one commit includes all of it, so that all of it survives or
    /// nothing. Its position among the records of all writers is that of this call.
    pub fn close(&mut self, urgency: Urgency) -> CommitSeq {
        let RecordBatch { records, synced, body_bytes, .. } = self.batch;
        let mut gathered = mem::take(&mut self.batch.bytes);
        let mut buffer = lock(&self.buffer);
        buffer.bytes += gathered.len();
        if gathered.len() < PIECE_BYTES_MIN {
            buffer.piece(gathered.len()).extend_from_slice(&gathered);
            gathered.clear();
        } else {
            let spare = buffer.spares.pop().unwrap_or_default();
            buffer.pieces.push(mem::replace(&mut gathered, spare));
        }
        buffer.records += records;
        buffer.synced |= synced;
        let commit = buffer.commit;
        let bytes = buffer.bytes;
        drop(buffer);
        self.batch = RecordBatch { bytes: gathered, ..RecordBatch::default() };
        self.appended(body_bytes, bytes, urgency);
        commit
    }

    /// Counts an append with `body_bytes` of bodies and wakes the commit thread if needed;
    /// `waiting` bytes are in the buffer.
    #[inline]
    fn appended(&self, body_bytes: u64, waiting: usize, urgency: Urgency) {
        if body_bytes > 0 {
            self.shared.stats.body_bytes.add(body_bytes);
        }
        if waiting > self.shared.options.buffer_bytes_max {
            self.shared.buffers.press(&self.shared.stats);
        }
        let is_much = urgency == Urgency::Waits && waiting > WAITS_BYTES;
        self.shared.signal.appended(if is_much { Urgency::Forces } else { urgency });
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::buffers::Cut;
    use crate::committer::Step;
    use crate::id::MessageId;
    use crate::journal::Journal;
    use crate::options::Options;
    use crate::sim::Disk;

    #[test]
    fn a_record_batch_is_in_one_commit_as_a_whole() {
        let opened = Journal::open_on(Disk::new(1), Options::default()).expect("opens");
        let (journal, mut committer) = (opened.journal, opened.committer);
        let (mut writer, mut other) = (journal.writer(), journal.writer());
        let done = |id| Record::Done { message: MessageId::new(id).expect("not zero") };
        writer.gather(done(1), Level::Written);
        assert_eq!(committer.step(), Step::Idle, "no record of a batch is visible before its end");
        let before = other.append(done(2), Level::Fsynced, Urgency::Forces);
        assert_eq!(committer.step(), Step::Committed(before));
        writer.gather(done(3), Level::Fsynced);
        let group = writer.close(Urgency::Forces);
        assert!(group > before);
        // Appended behind the records of the batch.
        let single = writer.append(done(4), Level::Written, Urgency::Rides);
        writer.gather(done(5), Level::Written);
        assert_eq!((single, writer.close(Urgency::Rides)), (group, group));
        let cut = writer.shared.buffers.cut(false, &mut Vec::new());
        let mut expected = Vec::new();
        [1, 3, 4, 5].into_iter().for_each(|id| done(id).encode(&mut expected));
        assert_eq!(cut, Some(Cut { taken: vec![expected], records: 4, synced: true }));
    }
}
