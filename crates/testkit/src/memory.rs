//! The memory of the test's own process.

use std::sync::{Mutex, MutexGuard, PoisonError};

const MIB: u64 = 1024 * 1024;

/// Tests that measure their process run one after the other: each holds this meanwhile.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fails if more than `limit_bytes` have become resident since there were `before_bytes`.
#[track_caller]
pub fn assert_grew_less_than(before_bytes: u64, limit_bytes: u64) {
    let grown = resident_bytes().saturating_sub(before_bytes);
    assert!(grown < limit_bytes, "memory grew by {} MiB", grown / MIB);
}

/// Resident bytes; 0 where there is no `/proc`.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most bytes that were ever resident; 0 where there is no `/proc`.
pub fn resident_bytes_max() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
