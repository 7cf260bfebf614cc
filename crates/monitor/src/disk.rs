//! Block devices and the file systems on them.

use std::path::Path;

use crate::ProcRoot;
use crate::mount::{Mount, mounts};
use crate::network::rate;
use crate::row::{DiskRates, FileSystemBytes};

/// Limit on tracked devices, and on file systems.
const DISKS_MAX: usize = 64;

/// Bytes of a sector in `diskstats`, whatever the device's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// Beginnings of names of devices that no program's data is on.
const PSEUDO_DEVICES: [&str; 5] = ["loop", "ram", "zram", "fd", "sr"];

/// File systems of images, which are full by construction.
const IMAGES: [&str; 4] = ["squashfs", "iso9660", "erofs", "udf"];

/// Counters of one device since boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DiskCounters {
    pub(crate) name: String,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Time that all reads together took, in milliseconds.
    pub(crate) read_ms: Option<u64>,
    /// The same of writes.
    pub(crate) write_ms: Option<u64>,
    /// Time in which at least one request was under way.
    pub(crate) busy_ms: Option<u64>,
}

/// `diskstats`, without devices that were never used; empty where it cannot be read.
pub(crate) fn disks(root: &ProcRoot) -> Vec<DiskCounters> {
    let text = root.text("diskstats").unwrap_or_default();
    text.lines().filter_map(disk).take(DISKS_MAX).collect()
}

/// Parses a line: `major minor name`, then reads, merged, sectors and milliseconds, the same of
/// writes, requests under way, milliseconds with a request, and more.
fn disk(line: &str) -> Option<DiskCounters> {
    let mut fields = line.split_whitespace().skip(2);
    let name = fields.next()?;
    let counters: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let at = |index: usize| counters.get(index).copied();
    let disk = DiskCounters {
        name: name.to_owned(),
        reads: at(0)?,
        writes: at(4)?,
        read_bytes: at(2)?.saturating_mul(SECTOR_BYTES),
        written_bytes: at(6)?.saturating_mul(SECTOR_BYTES),
        read_ms: at(3),
        write_ms: at(7),
        busy_ms: at(9),
    };
    disk.is_used().then_some(disk)
}

impl DiskCounters {
    /// Was it ever read or written, and does it hold data?
    pub(crate) fn is_used(&self) -> bool {
        self.reads.saturating_add(self.writes) > 0 && !is_pseudo(&self.name)
    }
}

fn is_pseudo(name: &str) -> bool {
    PSEUDO_DEVICES.iter().any(|start| {
        name.strip_prefix(start).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Is `name` a partition of `disk`, by how Linux names them: `sda1` of `sda`, `nvme0n1p1` of
/// `nvme0n1`?
pub(crate) fn is_partition(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let number = match disk.ends_with(|last: char| last.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or_default(),
        false => rest,
    };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The disks without partitions of others, which would count everything twice.
pub(crate) fn without_partitions(mut disks: Vec<DiskRates>) -> Vec<DiskRates> {
    let names: Vec<String> = disks.iter().map(|disk| disk.name.clone()).collect();
    disks.retain(|disk| !names.iter().any(|whole| is_partition(&disk.name, whole)));
    disks
}

/// Rates of the devices present in both, without partitions.
pub(crate) fn disk_rates(
    now: &[DiskCounters],
    before: &[DiskCounters],
    seconds: f64,
) -> Vec<DiskRates> {
    let pairs = now
        .iter()
        .filter_map(|now| Some((now, before.iter().find(|before| before.name == now.name)?)));
    let of_pair = |(now, before): (&DiskCounters, &DiskCounters)| {
        let rate = |now, before| rate(Some(now), Some(before), seconds).unwrap_or(0.0);
        let busy = now.busy_ms.zip(before.busy_ms);
        let busy = busy.map(|(now, before)| (rate(now, before) / 10.0).min(100.0));
        let wait = |ms: fn(&DiskCounters) -> Option<u64>, operations: fn(&DiskCounters) -> u64| {
            let taken_ms = ms(now)?.checked_sub(ms(before)?)?;
            let done = operations(now).checked_sub(operations(before)).filter(|done| *done > 0)?;
            Some(taken_ms as f64 * 1e3 / done as f64)
        };
        DiskRates {
            name: now.name.clone(),
            read_bytes_per_s: rate(now.read_bytes, before.read_bytes),
            written_bytes_per_s: rate(now.written_bytes, before.written_bytes),
            reads_per_s: rate(now.reads, before.reads),
            writes_per_s: rate(now.writes, before.writes),
            busy_percent: busy,
            read_wait_us: wait(|disk| disk.read_ms, |disk| disk.reads),
            write_wait_us: wait(|disk| disk.write_ms, |disk| disk.writes),
        }
    };
    without_partitions(pairs.map(of_pair).collect())
}

/// Space of the file systems that are on a device of their own, and of the root; each once.
pub(crate) fn file_systems(root: &ProcRoot) -> Vec<FileSystemBytes> {
    let Ok(text) = root.text("self/mountinfo") else { return Vec::new() };
    let mut all = mounts(&text);
    all.retain(is_of_interest);
    // Of several at one point the last one covers the others; of several points of one device the
    // shortest stands for all.
    all.reverse();
    all.sort_by_key(|mount| mount.point.as_os_str().len());
    let mut chosen: Vec<Mount> = Vec::new();
    for mount in all {
        let is_new = |known: &Mount| known.number != mount.number && known.point != mount.point;
        if chosen.len() < DISKS_MAX && chosen.iter().all(is_new) {
            chosen.push(mount);
        }
    }
    chosen.iter().filter_map(|mount| space(&mount.point)).collect()
}

fn is_of_interest(mount: &Mount) -> bool {
    let is_image = IMAGES.contains(&mount.file_system.as_str());
    // A file system of the network may not answer for minutes.
    !is_image && (mount.device.starts_with("/dev/") || mount.point == Path::new("/"))
}

/// What the file system at `point` holds.
fn space(point: &Path) -> Option<FileSystemBytes> {
    let system = rustix::fs::statvfs(point).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
    (system.f_blocks > 0).then(|| FileSystemBytes {
        mount_point: point.to_string_lossy().into_owned(),
        total: bytes(system.f_blocks),
        used: bytes(system.f_blocks.saturating_sub(system.f_bfree)),
        available: bytes(system.f_bavail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_from_disks_with_similar_names() {
        for (name, disk, is) in [
            ("sda1", "sda", true),
            ("sdaa", "sda", false),
            ("sda", "sda", false),
            ("nvme0n1p2", "nvme0n1", true),
            ("nvme0n12", "nvme0n1", false),
            ("dm-10", "dm-1", false),
            ("mmcblk0boot0", "mmcblk0", false),
        ] {
            assert_eq!(is_partition(name, disk), is, "{name} of {disk}");
        }
    }

    #[test]
    fn lines_of_old_and_new_kernels_are_read_and_odd_ones_are_not() {
        let line = "   8 0 sda 100 5 2000 300 200 7 4000 500 0 600 800 1 2 3 4 5 6";
        let sda = disk(line).expect("a disk");
        assert_eq!((sda.reads, sda.read_bytes, sda.read_ms), (100, 1_024_000, Some(300)));
        assert_eq!((sda.writes, sda.written_bytes, sda.write_ms), (200, 2_048_000, Some(500)));
        assert_eq!(sda.busy_ms, Some(600));
        let unused = "7 0 sdb 0 0 0 0 0 0 0 0 0 0 0";
        for line in
            ["", "8 0 sda", "8 0 sda 1 2 3", "8 0 sda x", "7 0 loop3 1 1 1 1 1 1 1 1", unused]
        {
            assert_eq!(disk(line), None, "{line}");
        }
    }

    #[test]
    fn a_wait_needs_an_operation_and_time_that_went_forward() {
        let counters = |reads, read_ms, busy_ms| DiskCounters {
            name: "sda".to_owned(),
            reads,
            read_ms: Some(read_ms),
            busy_ms: Some(busy_ms),
            ..DiskCounters::default()
        };
        let since =
            |now: DiskCounters, before: DiskCounters| disk_rates(&[now], &[before], 2.0).remove(0);
        let rates = since(counters(30, 50, 900), counters(10, 10, 100));
        assert_eq!((rates.reads_per_s, rates.read_wait_us), (10.0, Some(2000.0)));
        assert_eq!((rates.busy_percent, rates.write_wait_us), (Some(40.0), None));
        let rates = since(counters(10, 10, 9000), counters(10, 10, 0));
        assert_eq!((rates.read_wait_us, rates.busy_percent), (None, Some(100.0)));
        assert_eq!(since(counters(1, 0, 0), counters(10, 10, 10)).read_wait_us, None);
    }
}
