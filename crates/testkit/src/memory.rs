//! The memory of the test's own process.

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
