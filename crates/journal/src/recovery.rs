//! Reads the log when it is opened.
//!
//! What is read, and what that means, is said at the format of [frames](crate::frame). Nothing is
//! changed while reading; what [`recover`] does about damage comes after it.

mod report;
mod segments;
mod visit;

use std::io;

use crate::error::OpenError;
use crate::id::SegmentId;
use crate::index::Index;
use crate::salt::Salt;
use crate::segment::{Segment, file_name};
use crate::stats::Stats;
use crate::storage::{Storage, read_full_at, write_all_at};

pub use report::{Damage, Report, Torn};
pub use visit::Visitor;
pub(crate) use visit::{Places, visit};

/// Damaged files are kept here.
const QUARANTINE: &str = "quarantine";

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
    /// The mark of frames.
    pub(crate) salt: Option<Salt>,
    /// The greatest message id that was ever given out.
    pub(crate) message_ids: u64,
    /// The greatest queue id that was ever given out.
    pub(crate) queue_ids: u64,
    /// How it went.
    pub(crate) report: Report,
}

/// Reads all segments, and sets aside what is damaged.
pub(crate) fn recover(storage: &dyn Storage, stats: &Stats) -> Result<Recovery, OpenError> {
    let mut recovery = read(storage)?;
    if recovery.salt.is_none() {
        recovery.salt = Salt::make(storage, SegmentId::new(recovery.next_segment));
    }
    if !recovery.report.damage.is_empty() {
        quarantine(storage, &mut recovery);
        stats.quarantined.add(recovery.report.quarantined.len() as u64);
    }
    recovery.report.log();
    Ok(recovery)
}

/// Reads all segments and changes nothing.
pub(crate) fn read(storage: &dyn Storage) -> Result<Recovery, OpenError> {
    segments::LogReader::begin(storage)?.finish()
}

/// Keeps a copy of each damaged segment, for who wants to know more; the segment itself goes on
/// being used for what is left of it. A file that holds nothing but damage is moved away.
fn quarantine(storage: &dyn Storage, recovery: &mut Recovery) {
    let mut done: Vec<String> = Vec::new();
    let names: Vec<String> =
        recovery.report.damage.iter().map(|damage| damage.file.clone()).collect();
    for name in names {
        if done.contains(&name) {
            continue;
        }
        let is_used = recovery.segments.iter().any(|(id, _)| file_name(*id) == name);
        let result = if is_used { keep(storage, &name) } else { set_aside(storage, &name) };
        match result {
            Ok(true) => recovery.report.quarantined.push(kept_name(&name)),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, file = name, "a damaged segment cannot be quarantined");
            }
        }
        recovery.unused.retain(|unused| *unused != name);
        done.push(name);
    }
}

fn kept_name(name: &str) -> String {
    format!("{QUARANTINE}/{name}")
}

fn set_aside(storage: &dyn Storage, name: &str) -> io::Result<bool> {
    let kept = kept_name(name);
    storage.make_room_for(&kept)?;
    storage.rename(name, &kept)?;
    Ok(true)
}

/// Copies a file into the quarantine, as far as it can be read; false if it is there already.
pub(crate) fn keep(storage: &dyn Storage, name: &str) -> io::Result<bool> {
    const PIECE: usize = 1 << 16;
    let kept = kept_name(name);
    storage.make_room_for(&kept)?;
    let source = storage.open(name)?;
    let size = source.size()?;
    if storage.open(&kept).is_ok() {
        return Ok(false);
    }
    // Under its name only once all of it is there: a copy that a crash interrupted is made again.
    let begun = format!("{kept}.part");
    let _ = storage.remove(&begun);
    let target = storage.create(&begun)?;
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        let read = read_full_at(&*source, offset, &mut piece).unwrap_or(0);
        // What cannot be read stays a hole.
        let bytes = piece.get(..read).unwrap_or_default();
        write_all_at(&*target, offset, bytes)?;
        offset += PIECE as u64;
    }
    target.sync()?;
    storage.rename(&begun, &kept)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
