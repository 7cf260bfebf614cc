//! Reading the log when it is opened.
//!
//! The rules are documented with the format of [frames](crate::frame). Reading changes nothing;
//! [`recover`] quarantines damaged files afterwards.

mod report;
mod segments;
mod superseded;
mod visit;

use std::io;

use crate::error::OpenError;
use crate::id::SegmentId;
use crate::index::Index;
use crate::salt::Salt;
use crate::segment::{Segment, file_name};
use crate::stats::Stats;
use crate::storage::{Storage, read_full_at, write_all_at};

pub use report::{Damage, Foreign, Report, Torn};
pub use visit::Visitor;
pub(crate) use visit::{Places, visit};

/// The folder of damaged files.
const QUARANTINE: &str = "quarantine";

/// The content of the log when it is opened.
pub(crate) struct Recovery {
    pub(crate) index: Index,
    /// The segments that are the log, in order.
    pub(crate) segments: Vec<(SegmentId, Segment)>,
    /// Files of segments without valid frames.
    pub(crate) unused: Vec<String>,
    /// The newest frame, 0 if there is none.
    pub(crate) last_frame: u64,
    /// Greater than the number of any segment file.
    pub(crate) next_segment: u64,
    /// The salt of frames.
    pub(crate) salt: Option<Salt>,
    /// The greatest message id assigned so far.
    pub(crate) message_ids: u64,
    /// The greatest queue id assigned so far.
    pub(crate) queue_ids: u64,
    /// The result of reading the log.
    pub(crate) report: Report,
}

/// Reads all segments and quarantines damaged ones.
pub(crate) fn recover(storage: &dyn Storage, stats: &Stats) -> Result<Recovery, OpenError> {
    let mut recovery = read(storage)?;
    if recovery.salt.is_none() {
        recovery.salt = Salt::make(storage, SegmentId::new(recovery.next_segment));
    }
    if !recovery.report.damage.is_empty() || !recovery.report.foreign.is_empty() {
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

/// Copies each segment with damage or foreign commits to the quarantine for later analysis; the
/// rest of the segment stays in use. A file without valid frames is moved there.
fn quarantine(storage: &dyn Storage, recovery: &mut Recovery) {
    let mut done: Vec<String> = Vec::new();
    let report = &recovery.report;
    let damaged = report.damage.iter().map(|damage| &damage.file);
    let foreign = report.foreign.iter().map(|foreign| &foreign.file);
    let names: Vec<String> = damaged.chain(foreign).cloned().collect();
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
    // Renamed once it is complete: a copy that a crash interrupted is made again.
    let begun = format!("{kept}.part");
    let _ = storage.remove(&begun);
    let target = storage.create(&begun)?;
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        let read = read_full_at(&*source, offset, &mut piece).unwrap_or(0);
        // An unreadable part stays a hole.
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
