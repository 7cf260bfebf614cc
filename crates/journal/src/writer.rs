//! Buffers of the writers, and the cut that takes them all at one instant.

use std::mem;
use std::sync::{Arc, Mutex};

use crate::buffers::{Buffer, lock};
use crate::id::CommitSeq;
use crate::options::{Level, Urgency};
use crate::record::Record;
use crate::shared::Shared;

/// What is gathered in a group of this size is handed over as it is; less is copied behind what is
/// there already.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// So much does not wait until somebody asks for its commit.
const WAITS_BYTES: usize = 4 << 20;

/// What one shard tells the journal. Made by [`Journal::writer`](crate::Journal::writer).
pub struct Writer {
    shared: Arc<Shared>,
    buffer: Arc<Mutex<Buffer>>,
    group: Group,
}

/// Records that are appended together. No commit sees a part of them.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    records: u32,
    synced: bool,
    body_bytes: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let buffer = shared.buffers.add();
        Self { shared, buffer, group: Group::default() }
    }

    /// Appends a record and returns the commit that will take it.
    ///
    /// Of two records the one that was appended first is in the same commit or in an earlier one,
    /// whichever writers they went to. Never blocks for longer than it takes to exchange buffers.
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
        self.tell(record.body_bytes(), bytes, urgency);
        commit
    }

    /// Adds a record to the present group. Nobody else knows of it until [`Writer::close`].
    #[inline]
    pub fn gather(&mut self, record: Record<'_>, level: Level) {
        let group = &mut self.group;
        record.encode_unsummed(&mut group.bytes);
        group.records += 1;
        group.synced |= level == Level::Fsynced;
        group.body_bytes += record.body_bytes();
    }

    /// Appends the group that was gathered: one commit takes all of it, so that all of it survives
    /// or nothing. The order among what all writers append is that of this call.
    pub fn close(&mut self, urgency: Urgency) -> CommitSeq {
        let Group { records, synced, body_bytes, .. } = self.group;
        let mut gathered = mem::take(&mut self.group.bytes);
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
        self.group = Group { bytes: gathered, ..Group::default() };
        self.tell(body_bytes, bytes, urgency);
        commit
    }

    /// Something was appended, with so many bytes of bodies; `waiting` bytes are in the buffer.
    #[inline]
    fn tell(&self, body_bytes: u64, waiting: usize, urgency: Urgency) {
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
    fn a_group_is_in_one_commit_as_a_whole() {
        let opened = Journal::open_on(Disk::new(1), Options::default()).expect("opens");
        let (journal, mut committer) = (opened.journal, opened.committer);
        let (mut writer, mut other) = (journal.writer(), journal.writer());
        let done = |id| Record::Done { message: MessageId::new(id).expect("not zero") };
        writer.gather(done(1), Level::Written);
        assert_eq!(committer.step(), Step::Idle, "nothing of a group is seen before its end");
        let before = other.append(done(2), Level::Fsynced, Urgency::Forces);
        assert_eq!(committer.step(), Step::Committed(before));
        writer.gather(done(3), Level::Fsynced);
        let group = writer.close(Urgency::Forces);
        assert!(group > before);
        // Behind what is there already.
        let single = writer.append(done(4), Level::Written, Urgency::Rides);
        writer.gather(done(5), Level::Written);
        assert_eq!((single, writer.close(Urgency::Rides)), (group, group));
        let cut = writer.shared.buffers.cut(false, &mut Vec::new());
        let mut expected = Vec::new();
        [1, 3, 4, 5].into_iter().for_each(|id| done(id).encode(&mut expected));
        assert_eq!(cut, Some(Cut { taken: vec![expected], records: 4, synced: true }));
    }
}
