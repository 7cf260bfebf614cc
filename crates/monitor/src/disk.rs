//! Block devices and the file systems on them.

use std::path::{Path, PathBuf};

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

/// File systems that another machine or program answers for: asking for their space may take
/// minutes, or for ever.
const FOREIGN: [&str; 7] = ["cifs", "smb3", "9p", "ceph", "glusterfs", "afs", "autofs"];

/// Beginnings of names of such file systems: `fuse.sshfs`, `fuseblk`, `nfs4`.
const FOREIGN_STARTS: [&str; 2] = ["fuse", "nfs"];

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
    of_interest(&text).iter().filter_map(|mount| space(&mount.point)).collect()
}

/// The mounts of a `mountinfo` whose space is asked for.
fn of_interest(text: &str) -> Vec<Mount> {
    let mut all = mounts(text);
    // Of several at one point the last one covers the others, also one that is left out: who asks
    // at this point asks it. Of several points of one device the shortest stands for all.
    all.reverse();
    all.sort_by(|one, other| {
        let (one, other) = (one.point.as_os_str(), other.point.as_os_str());
        one.len().cmp(&other.len()).then_with(|| one.cmp(other))
    });
    all.dedup_by(|covered, on_top| covered.point == on_top.point);
    // On the way to what is mounted below them they have to answer, too.
    let is_in_the_way = |mount: &&Mount| is_foreign(mount) && mount.point != Path::new("/");
    let foreign: Vec<PathBuf> =
        all.iter().filter(is_in_the_way).map(|mount| mount.point.clone()).collect();
    all.retain(|mount| {
        is_of_interest(mount) && !foreign.iter().any(|point| mount.point.starts_with(point))
    });
    let mut chosen: Vec<Mount> = Vec::new();
    for mount in all {
        let is_new = |known: &Mount| known.number != mount.number;
        if chosen.len() < DISKS_MAX && chosen.iter().all(is_new) {
            chosen.push(mount);
        }
    }
    chosen
}

/// The root is, whatever it is: a program whose root does not answer stands still anyway.
fn is_of_interest(mount: &Mount) -> bool {
    let is_on_device = mount.device.starts_with("/dev/") && !is_foreign(mount);
    !IMAGES.contains(&mount.file_system.as_str()) && (is_on_device || mount.point == Path::new("/"))
}

/// Whether another machine or program answers for a file system.
fn is_foreign(mount: &Mount) -> bool {
    let kind = mount.file_system.as_str();
    FOREIGN.contains(&kind) || FOREIGN_STARTS.iter().any(|start| kind.starts_with(start))
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

    /// The points of interest of mounts given as `(device number, point, kind, device)`.
    fn points(mounted: &[(u32, &str, &str, &str)]) -> Vec<String> {
        let line = |(number, point, kind, device): &(u32, &str, &str, &str)| {
            format!("36 35 0:{number} / {point} rw - {kind} {device} rw\n")
        };
        let text: String = mounted.iter().map(line).collect();
        of_interest(&text).iter().map(|mount| mount.point.display().to_string()).collect()
    }

    #[test]
    fn file_systems_of_the_network_and_of_programs_are_not_asked() {
        for kind in [
            "fuse",
            "fuseblk",
            "fuse.sshfs",
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "9p",
            "ceph",
            "glusterfs",
            "afs",
            "autofs",
        ] {
            let mounted = [(1, "/", "ext4", "/dev/vda1"), (2, "/mnt", kind, "/dev/fuse")];
            assert_eq!(points(&mounted), ["/"], "{kind}");
        }
        let mounted = [(1, "/", "overlay", "overlay"), (2, "/data", "xfs", "/dev/vdb")];
        assert_eq!(points(&mounted), ["/", "/data"]);
        assert_eq!(points(&[(1, "/", "fuse.fuse-overlayfs", "fuse-overlayfs")]), ["/"]);
    }

    #[test]
    fn what_lies_on_top_of_a_mount_is_what_would_be_asked() {
        let disk = (2, "/mnt", "ext4", "/dev/vdb");
        let remote = (3, "/mnt", "fuse.sshfs", "/dev/fuse");
        let waiting = (3, "/mnt", "autofs", "systemd-1");
        assert!(points(&[disk, remote]).is_empty());
        assert_eq!(points(&[waiting, disk]), ["/mnt"]);
        let elsewhere = (2, "/srv/disk", "ext4", "/dev/vdb");
        assert_eq!(points(&[disk, remote, elsewhere]), ["/srv/disk"]);
    }

    #[test]
    fn a_disk_below_a_mount_that_may_hang_is_not_asked() {
        let root = (1, "/", "ext4", "/dev/vda1");
        let below = (2, "/mnt/share/disk", "ext4", "/dev/vdb");
        let beside = (3, "/mnt/shared", "xfs", "/dev/vdc");
        for kind in ["nfs4", "fuse.sshfs", "autofs"] {
            let remote = (4, "/mnt/share", kind, "elsewhere");
            // In whatever order they were mounted: the way leads through it.
            for mounted in [[root, remote, below, beside], [root, below, remote, beside]] {
                assert_eq!(points(&mounted), ["/", "/mnt/shared"], "{kind}");
            }
            // Another way to the same disk is asked instead.
            let elsewhere = (2, "/srv/the-same-disk", "ext4", "/dev/vdb");
            assert_eq!(points(&[root, remote, below, elsewhere]), ["/", "/srv/the-same-disk"]);
            // What covers the mount covers the way through it.
            let cover = (5, "/mnt/share", "ext4", "/dev/vdd");
            assert_eq!(
                points(&[root, remote, cover, below]),
                ["/", "/mnt/share", "/mnt/share/disk"]
            );
        }
        let remote_root = (1, "/", "nfs4", "server:/root");
        assert_eq!(points(&[remote_root, beside]), ["/", "/mnt/shared"]);
    }

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
