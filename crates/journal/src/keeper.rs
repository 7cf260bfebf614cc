//! Prepares segments ahead of time, and recycles those without live records.
//!
//! All operations on names and zeros are done here, in the background: the committer takes a
//! segment whose name is synced and whose blocks are zeroed, so that a sync has only data to write.
//!
//! A freed file is renamed to a new segment and reused as it is: every frame names its segment.

use std::io;
use std::sync::{Arc, PoisonError};

use crate::blocks::Blocks;
use crate::id::SegmentId;
use crate::pool::{Job, Pool, PoolState, Ready, Unused};
use crate::segment::file_name;
use crate::shared::Shared;
use crate::storage::{StorageFile, is_full, write_all_at};
use crate::troubles::Trouble;

/// Zeros are written and synced in pieces, so that commits can proceed in between.
const ZEROS_BYTES: usize = 1 << 20;

/// So many more than [`Options::segments_ready`](crate::Options::segments_ready) are kept when
/// files are given back, before they are removed.
const KEPT_MORE: usize = 2;

impl Pool {
    /// Takes the next segment; if none is ready, waits for one, but not for its zeros.
    pub(crate) fn take(&self, shared: &Shared) -> io::Result<Ready> {
        let mut state = self.lock();
        state.failed = None;
        let result = loop {
            if let Some(ready) = state.ready.pop_front() {
                break Ok(ready);
            }
            if let Some(error) = state.failed.take() {
                break Err(error);
            }
            state.hurry = true;
            if state.threaded {
                self.changed.notify_all();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                drop(state);
                self.work(shared);
                state = self.lock();
            }
        };
        state.hurry = false;
        if result.is_ok() {
            state.segment_bytes = shared.options.segment_bytes_after(state.segment_bytes);
        }
        self.changed.notify_all();
        result
    }

    /// Does one job; false if there is none, or if it failed.
    pub(crate) fn work(&self, shared: &Shared) -> bool {
        let Some(job) = self.lock().next_job(shared) else { return false };
        let done = match job {
            Job::Create(id) => self.create(shared, id).map(Some),
            Job::Recycle(unused, id) => self.recycle(shared, unused, id),
            Job::Remove(unused) => self.remove(shared, unused).map(|()| None),
        };
        let mut state = self.lock();
        let fine = done.is_ok();
        match done {
            Ok(ready) => {
                state.failed = None;
                if ready.is_some() || !state.has_job(shared) {
                    shared.troubles.end(Trouble::NoSegment);
                    shared.troubles.end(Trouble::BadSegment);
                }
                state.ready.extend(ready);
            }
            Err(error) => {
                let full = is_full(&error);
                let stats = &shared.stats;
                if full { &stats.full_errors } else { &stats.write_errors }.add(1);
                let trouble = if full { Trouble::NoSegment } else { Trouble::BadSegment };
                if shared.troubles.begin(trouble) {
                    tracing::error!(%error, "the journal cannot prepare another segment");
                }
                state.failed = Some(error);
            }
        }
        drop(state);
        self.changed.notify_all();
        fine
    }

    /// Works until [`Pool::stop`] is called.
    pub(crate) fn run(&self, shared: &Shared) {
        while !self.lock().stop {
            if self.work(shared) {
                continue;
            }
            let state = self.lock();
            if state.failed.is_some() {
                // Retried after a pause, or when the committer asks again.
                let rests = |state: &mut PoolState| !state.stop && state.failed.is_some();
                drop(self.changed.wait_timeout_while(state, shared.options.retry, rests));
            } else {
                let rests = |state: &mut PoolState| !state.stop && !state.has_job(shared);
                drop(self.changed.wait_while(state, rests));
            }
        }
    }

    fn create(&self, shared: &Shared, id: SegmentId) -> io::Result<Ready> {
        let name = file_name(id);
        let file = shared.storage.create(&name)?;
        let bytes = self.lock().segment_bytes;
        let zeroed = self.zero(shared, &*file, (0, bytes));
        let prepared = zeroed.and_then(|all| shared.storage.sync_names().map(|()| all));
        match prepared {
            Ok(all) => Ok(Ready { id, file, bytes, is_raw: !all }),
            Err(error) => {
                // The file is useless; a failure to remove it has no consequence.
                let _ = shared.storage.remove(&name);
                Err(error)
            }
        }
    }

    fn recycle(&self, shared: &Shared, unused: Unused, id: SegmentId) -> io::Result<Option<Ready>> {
        if shared.storage.is_linked(&unused.name) {
            // A backup has it, of this process or of an earlier one.
            return self.remove(shared, unused).map(|()| None);
        }
        let name = file_name(id);
        match shared.storage.rename(&unused.name, &name) {
            Ok(()) => {}
            // It was removed from outside.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.remove(shared, unused).map(|()| None);
            }
            Err(error) => return self.not_given_back(unused, error),
        }
        let unused = Unused { name, sound: false };
        if let Err(error) = shared.storage.sync_names() {
            return self.not_given_back(unused, error);
        }
        shared.stats.freed_segments.add(1);
        self.lock().recycling_failed = false;
        match self.refit(shared, &unused.name) {
            Ok((file, bytes, is_raw)) => {
                shared.stats.recycled_segments.add(1);
                Ok(Some(Ready { id, file, bytes, is_raw }))
            }
            Err(error) => self.not_given_back(unused, error),
        }
    }

    /// Resizes a used file to that of a segment; true if it could not be zeroed in time. A larger
    /// one keeps its size up to the largest of a segment.
    fn refit(&self, shared: &Shared, name: &str) -> io::Result<(Arc<dyn StorageFile>, u32, bool)> {
        let file = shared.storage.open(name)?;
        let size = file.size()?;
        let max = shared.options.segment_bytes;
        if size > u64::from(max) {
            file.set_size(max.into())?;
            file.sync()?;
        }
        let bytes = u32::try_from(size).unwrap_or(max).clamp(self.lock().segment_bytes, max);
        let all = self.zero(shared, &*file, (size, bytes))?;
        Ok((file, bytes, !all))
    }

    fn remove(&self, shared: &Shared, unused: Unused) -> io::Result<()> {
        match shared.storage.remove(&unused.name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return self.not_given_back(unused, error);
            }
            Ok(()) | Err(_) => {}
        }
        if let Err(error) = shared.storage.sync_names() {
            return self.not_given_back(unused, error);
        }
        shared.stats.freed_segments.add(1);
        self.lock().recycling_failed = false;
        Ok(())
    }

    /// It stays the first in line: no later file may be removed before it.
    fn not_given_back<T>(&self, unused: Unused, error: io::Error) -> io::Result<T> {
        let mut state = self.lock();
        state.unused.push_front(unused);
        state.recycling_failed = true;
        Err(error)
    }

    /// Writes zeros from `from` to `end`; false if the committer needs the segment before.
    fn zero(
        &self,
        shared: &Shared,
        file: &dyn StorageFile,
        (from, end): (u64, u32),
    ) -> io::Result<bool> {
        let end = u64::from(end);
        if from >= end {
            return Ok(true);
        }
        let zeros = Blocks::zeroed(ZEROS_BYTES.min(end as usize));
        let mut at = from;
        while at < end {
            if self.lock().is_called() {
                return Ok(false);
            }
            let piece = zeros.len().min((end - at) as usize);
            write_all_at(file, at, &zeros[..piece])?;
            file.sync()?;
            at += piece as u64;
            shared.stats.zeroed_bytes.add(piece as u64);
        }
        Ok(true)
    }
}

impl PoolState {
    fn next_job(&mut self, shared: &Shared) -> Option<Job> {
        let ready = shared.options.segments_ready;
        let next = SegmentId::new(self.next);
        // A file that cannot be recycled must not keep the committer waiting.
        let urgent = self.hurry && self.ready.is_empty() && self.recycling_failed;
        if let Some(unused) = if urgent { None } else { self.unused.pop_front() } {
            if !unused.sound || self.ready.len() >= ready + KEPT_MORE && self.is_enough(shared) {
                return Some(Job::Remove(unused));
            }
            self.next += 1;
            return Some(Job::Recycle(unused, next));
        }
        if self.wants_more(ready) {
            self.next += 1;
            return Some(Job::Create(next));
        }
        None
    }

    /// The log and the ready segments have reached the size up to which the log may grow; a file
    /// removed before that would have to be prepared again.
    fn is_enough(&self, shared: &Shared) -> bool {
        let (_, log_bytes) = shared.segments.sum();
        let ready_bytes = self.ready.iter().map(|ready| u64::from(ready.bytes)).sum::<u64>();
        log_bytes + ready_bytes >= shared.log_bytes_max(shared.stats.live_bytes.get())
    }

    fn has_job(&self, shared: &Shared) -> bool {
        !self.unused.is_empty() || self.wants_more(shared.options.segments_ready)
    }
}

#[cfg(test)]
mod tests;
