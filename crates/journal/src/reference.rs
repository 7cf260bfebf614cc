//! Reads a log for tests, by nothing but the rules in [`crate::frame`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::blocks::BLOCK;
use crate::frame::{self, Header};
use crate::id::SegmentId;
use crate::options::Options;
use crate::recovery;
use crate::segment::{file_name, parse_name};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::storage::Storage;

/// What a disk holds.
#[derive(Default)]
pub(crate) struct Log {
    /// The records of each commit.
    pub(crate) frames: BTreeMap<u64, Vec<u8>>,
    /// What is missing although it was on the disk.
    pub(crate) damage: Option<String>,
    segments: Vec<SegmentId>,
    unused: Vec<String>,
    next_segment: u64,
    message_ids: u64,
    queue_ids: u64,
    /// The newest frame that was on the disk for certain, says one that is there.
    synced: u64,
}

impl Log {
    pub(crate) fn read(disk: &impl Storage) -> Self {
        let mut log = Self::default();
        let names = disk.list().expect("names");
        let mut segments: Vec<_> = names.iter().filter_map(|name| parse_name(name)).collect();
        segments.sort_unstable();
        log.next_segment = segments.last().map_or(1, |id| id.get() + 1);
        let chains: Vec<_> = segments.iter().map(|id| (*id, log.chain(disk, *id))).collect();
        for (index, (id, chain)) in chains.iter().enumerate() {
            let later = chains[index + 1..].iter();
            let limit = later.filter_map(|(_, chain)| chain.first()).map(|(first, _)| *first).min();
            let mut holds = false;
            for (number, records) in chain {
                if limit.is_some_and(|limit| *number >= limit) {
                    break;
                }
                let expected = log.last() + 1;
                if !log.frames.is_empty() && *number != expected {
                    log.damage = Some(format!("{expected} is missing before {number}"));
                }
                log.frames.insert(*number, records.clone());
                holds = true;
            }
            if holds { log.segments.push(*id) } else { log.unused.push(file_name(*id)) }
        }
        if log.synced > log.last() {
            log.damage = Some(format!("{} was synced, {} is the last", log.synced, log.last()));
        }
        log
    }

    /// The number of the last commit.
    pub(crate) fn last(&self) -> u64 {
        self.frames.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// The frames of a segment from its beginning on.
    fn chain(&mut self, disk: &impl Storage, id: SegmentId) -> Vec<(u64, Vec<u8>)> {
        let file = disk.open(&file_name(id)).expect("the file can be opened");
        let size = file.size().expect("a size");
        let mut chain = Vec::new();
        let mut offset = 0;
        while let Some(header) = self.frame_at(&*file, id, offset) {
            let mut records = Vec::new();
            if frame::read(&*file, offset, &mut records).expect("readable").is_none()
                || chain.last().is_some_and(|(last, _)| header.number != last + 1)
            {
                break;
            }
            self.message_ids = self.message_ids.max(header.message_ids);
            self.queue_ids = self.queue_ids.max(header.queue_ids);
            offset += header.frame_bytes();
            chain.push((header.number, records));
        }
        for block in (offset..size).step_by(BLOCK) {
            self.frame_at(&*file, id, block);
        }
        chain
    }

    fn frame_at(
        &mut self,
        file: &dyn crate::storage::StorageFile,
        id: SegmentId,
        offset: u64,
    ) -> Option<Header> {
        let header = frame::header_at(file, offset).expect("readable");
        let header = header.filter(|header| header.segment == id)?;
        self.synced = self.synced.max(header.synced);
        Some(header)
    }

    /// What goes on where this log ends; the journal's own way to read it must come to the same.
    pub(crate) fn open(&self, disk: impl Storage + 'static, options: Options) -> Arc<Shared> {
        let recovery = recovery::read(&disk).expect("the disk can be read");
        assert_eq!(recovery.report.damage, []);
        assert!(recovery.segments.iter().map(|(id, _)| *id).eq(self.segments.iter().copied()));
        let mut unused = (self.unused.clone(), recovery.unused.clone());
        unused.0.sort();
        unused.1.sort();
        assert_eq!(unused.0, unused.1);
        let ids = (recovery.last_frame, recovery.message_ids, recovery.queue_ids);
        assert_eq!(ids, (self.last(), self.message_ids, self.queue_ids));
        assert_eq!(recovery.next_segment, self.next_segment);
        Arc::new(Shared::new(Arc::new(disk), options, Stats::default(), None, recovery))
    }
}
