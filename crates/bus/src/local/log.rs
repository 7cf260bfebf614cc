//! Logs in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::lock;
use crate::bus::check_size;
use crate::{BusError, Log, LogEntry};

/// Cost of an entry beside its content.
const ENTRY_BYTES: u64 = 48;

#[derive(Clone, Debug)]
pub(super) struct LocalLog(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    bytes_max: u64,
    bytes: u64,
    /// Number of the first entry that is kept.
    first: u64,
    kept: VecDeque<Bytes>,
}

impl LocalLog {
    pub(super) fn new(bytes_max: u64) -> Self {
        let entries = Entries { bytes_max, bytes: 0, first: 1, kept: VecDeque::new() };
        Self(Arc::new(Mutex::new(entries)))
    }
}

impl Log for LocalLog {
    fn append(&self, entry: Bytes) -> Result<u64, BusError> {
        check_size(&entry)?;
        let mut entries = lock(&self.0);
        entries.bytes += ENTRY_BYTES + entry.len() as u64;
        entries.kept.push_back(entry);
        let seq = entries.first + entries.kept.len() as u64 - 1;
        while entries.bytes > entries.bytes_max
            && entries.kept.len() > 1
            && let Some(oldest) = entries.kept.pop_front()
        {
            entries.bytes -= ENTRY_BYTES + oldest.len() as u64;
            entries.first += 1;
        }
        Ok(seq)
    }

    fn read(&self, from: u64, entries_max: usize) -> Result<Vec<LogEntry>, BusError> {
        let entries = lock(&self.0);
        let skip = from.saturating_sub(entries.first) as usize;
        let kept = (entries.first..).zip(&entries.kept).skip(skip).take(entries_max);
        Ok(kept.map(|(seq, payload)| LogEntry { seq, payload: payload.clone() }).collect())
    }
}
