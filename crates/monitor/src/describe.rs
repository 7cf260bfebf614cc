//! Describes this machine, from the files in which its system tells about it.

use std::path::Path;

use crate::description::{
    CONNTRACK_HASH, DataDisk, HostDescription, KERNEL_SETTINGS, OPEN_FILES, OPEN_FILES_ELSE,
};
use crate::mount::mounts;
use crate::{ProcRoot, parse_cpu_list};

/// Bytes of a sector in `/sys/dev/block/*/size`, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// Firmware fields that are together the instance type.
const INSTANCE: [&str; 3] = ["sys_vendor", "product_name", "product_version"];

/// What firmware says where its vendor has filled in nothing.
const EMPTY_FIELDS: [&str; 5] =
    ["none", "not specified", "not applicable", "to be filled by o.e.m.", "default string"];

/// Describes the machine below `root`; `data` is the directory that the broker writes to, and
/// `brokers` are the processes of brokers, as far as they are known.
pub fn describe_host(root: &ProcRoot, data: Option<&Path>, brokers: &[u32]) -> HostDescription {
    let cpu = root.text("cpuinfo").unwrap_or_default();
    let flags = value(&cpu, "flags", ':');
    let settings = KERNEL_SETTINGS.iter().filter_map(|name| {
        let path = root.path(format!("sys/{}", name.replace('.', "/")));
        Some(((*name).to_owned(), line(&path)?))
    });
    let conntrack = line(&root.sys("module/nf_conntrack/parameters/hashsize"));
    let conntrack = conntrack.map(|value| (CONNTRACK_HASH.to_owned(), value));
    let others = [conntrack, open_files(root, brokers)].into_iter().flatten();
    let description = HostDescription {
        host: line(&root.path("sys/kernel/hostname")).unwrap_or_default(),
        distribution: std::fs::read_to_string(root.etc("os-release"))
            .ok()
            .and_then(|text| value(&text, "PRETTY_NAME", '=')),
        kernel: line(&root.path("sys/kernel/osrelease")),
        // Arm has no name of a model; the part number is what there is.
        cpu_model: value(&cpu, "model name", ':').or_else(|| value(&cpu, "CPU part", ':')),
        cores: line(&root.sys("devices/system/cpu/online"))
            .and_then(|list| parse_cpu_list(&list))
            .map(|cores| cores.len() as u64),
        memory_bytes: memory(root),
        instance: instance(root),
        virtualised: flags.map(|all| all.split_whitespace().any(|flag| flag == "hypervisor")),
        data_disk: data.and_then(|path| data_disk(root, path)),
        settings: settings.chain(others).collect(),
    };
    description.bounded()
}

fn memory(root: &ProcRoot) -> Option<u64> {
    let size = value(&root.text("meminfo").ok()?, "MemTotal", ':')?;
    size.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The hard limit of open files of the brokers' processes, or of this one, with its name. Several
/// brokers with different limits have all of them.
fn open_files(root: &ProcRoot, brokers: &[u32]) -> Option<(String, String)> {
    let limit = |process: &str| {
        let text = root.text(format!("{process}/limits")).ok()?;
        let limits = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        limits.split_whitespace().nth(1).map(str::to_owned)
    };
    let mut theirs: Vec<String> =
        brokers.iter().filter_map(|pid| limit(&pid.to_string())).collect();
    theirs.sort_unstable();
    theirs.dedup();
    match theirs.is_empty() {
        true => Some((OPEN_FILES_ELSE.to_owned(), limit("self")?)),
        false => Some((OPEN_FILES.to_owned(), theirs.join(", "))),
    }
}

/// Vendor, product and version, each once.
fn instance(root: &ProcRoot) -> Option<String> {
    let mut fields: Vec<String> = Vec::new();
    for name in INSTANCE {
        let Some(field) = line(&root.sys(format!("class/dmi/id/{name}"))) else { continue };
        let is_empty = EMPTY_FIELDS.contains(&field.to_ascii_lowercase().as_str());
        if !is_empty && !fields.contains(&field) {
            fields.push(field);
        }
    }
    (!fields.is_empty()).then(|| fields.join(" "))
}

/// The file system that holds `path`, by the longest mount point that leads to it.
fn data_disk(root: &ProcRoot, path: &Path) -> Option<DataDisk> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let text = root.text("self/mountinfo").ok()?;
    // Of several at one point the last one covers the others.
    let mount = mounts(&text)
        .into_iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.as_os_str().len())?;
    let block = root.sys(format!("dev/block/{}", mount.number));
    // A partition's folder is inside its disk's.
    let of_disk = |file: &str| {
        line(&block.join(file)).or_else(|| line(&block.canonicalize().ok()?.parent()?.join(file)))
    };
    Some(DataDisk {
        size_bytes: line(&block.join("size"))
            .and_then(|sectors| sectors.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)),
        model: of_disk("device/model"),
        rotational: of_disk("queue/rotational").map(|flag| flag == "1"),
        file_system: mount.file_system,
        mount_point: mount.point.to_string_lossy().into_owned(),
        device: mount.device,
    })
}

/// The first line of a file, its words one blank apart.
fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// The value of `key<separator>value` among lines of such.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })?;
    (!value.is_empty()).then_some(value)
}
