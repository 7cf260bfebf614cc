//! Logs in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;

use super::lock;
use crate::bus::check_size;
use crate::{BusError, Log, LogEntry, LogLimits};

/// Cost of an entry beside its content.
const ENTRY_BYTES: u64 = 64;

#[derive(Clone, Debug)]
pub(super) struct LocalLog(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    limits: LogLimits,
    bytes: u64,
    /// Number of the first entry that is kept.
    first: u64,
    kept: VecDeque<(Instant, Bytes)>,
    is_deleted: bool,
}

impl LocalLog {
    pub(super) fn new(limits: LogLimits) -> Self {
        let kept = VecDeque::new();
        Self(Arc::new(Mutex::new(Entries { limits, bytes: 0, first: 1, kept, is_deleted: false })))
    }

    pub(super) fn delete(&self) {
        let mut entries = lock(&self.0);
        entries.kept.clear();
        entries.is_deleted = true;
    }
}

impl Entries {
    fn check(&self) -> Result<(), BusError> {
        match self.is_deleted {
            true => Err(BusError::Refused { why: "the log was deleted".to_owned() }),
            false => Ok(()),
        }
    }

    /// Forgets what is beyond the limits; of the bytes, never the newest entry.
    fn forget(&mut self) {
        let LogLimits { bytes_max, age_max } = self.limits;
        let is_old = |at: &Instant| age_max.is_some_and(|age_max| at.elapsed() >= age_max);
        while let Some((at, _)) = self.kept.front()
            && (is_old(at) || (self.bytes > bytes_max && self.kept.len() > 1))
            && let Some((_, oldest)) = self.kept.pop_front()
        {
            self.bytes -= ENTRY_BYTES + oldest.len() as u64;
            self.first += 1;
        }
    }
}

impl Log for LocalLog {
    fn append(&self, entry: Bytes) -> Result<u64, BusError> {
        check_size(&entry)?;
        let mut entries = lock(&self.0);
        entries.check()?;
        entries.bytes += ENTRY_BYTES + entry.len() as u64;
        entries.kept.push_back((Instant::now(), entry));
        let seq = entries.first + entries.kept.len() as u64 - 1;
        entries.forget();
        Ok(seq)
    }

    fn read(&self, from: u64, entries_max: usize) -> Result<Vec<LogEntry>, BusError> {
        let mut entries = lock(&self.0);
        entries.check()?;
        entries.forget();
        let skip = from.saturating_sub(entries.first) as usize;
        let kept = (entries.first..).zip(&entries.kept).skip(skip).take(entries_max);
        Ok(kept.map(|(seq, (_, payload))| LogEntry { seq, payload: payload.clone() }).collect())
    }
}
