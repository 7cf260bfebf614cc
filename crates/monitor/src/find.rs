//! Finding processes by id, by name, or by listening port.

use std::collections::HashSet;

use crate::{ProcRoot, ProcessSelector};

/// Limit on the processes that one selector matches; a name such as `nginx` has many.
const MATCHES_MAX: usize = 16;

/// Length to which the kernel truncates process names.
const COMM_MAX: usize = 15;

/// The ids of the running processes that `selector` matches.
pub fn find_processes(root: &ProcRoot, selector: &ProcessSelector) -> Vec<u32> {
    let mut found = match selector {
        ProcessSelector::Pid(pid) => {
            if root.path(format!("{pid}/stat")).exists() {
                vec![*pid]
            } else {
                Vec::new()
            }
        }
        ProcessSelector::Name(name) => {
            processes(root).into_iter().filter(|pid| is_named(root, *pid, name)).collect()
        }
        ProcessSelector::Port(port) => listening(root, *port),
    };
    found.sort_unstable();
    found.truncate(MATCHES_MAX);
    found
}

/// All process ids.
fn processes(root: &ProcRoot) -> Vec<u32> {
    let entries = std::fs::read_dir(root.path("")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Matches the kernel's name, or the file name in the command line, which is not truncated and
/// which threads cannot change. The calling process never matches.
fn is_named(root: &ProcRoot, pid: u32, name: &str) -> bool {
    if pid == std::process::id() {
        return false;
    }
    let comm = root.text(format!("{pid}/comm")).unwrap_or_default();
    let comm = comm.trim_end();
    if comm == name || (comm.len() == COMM_MAX && name.starts_with(comm)) {
        return true;
    }
    let command = std::fs::read(root.path(format!("{pid}/cmdline"))).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    program.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
}

/// Processes with a socket listening on `port`, on any address.
fn listening(root: &ProcRoot, port: u16) -> Vec<u32> {
    let mut inodes = HashSet::new();
    for table in ["net/tcp", "net/tcp6"] {
        let text = root.text(table).unwrap_or_default();
        inodes.extend(text.lines().filter_map(|line| listener(line, port)));
    }
    if inodes.is_empty() {
        return Vec::new();
    }
    let links: HashSet<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    processes(root).into_iter().filter(|pid| holds(root, *pid, &links)).collect()
}

/// The socket inode in a line of `net/tcp`, if it is a listener on `port`.
fn listener(line: &str, port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let (_, local_port) = local.rsplit_once(':')?;
    if state != LISTEN || u16::from_str_radix(local_port, 16).ok()? != port {
        return None;
    }
    // tx:rx, timer, retransmits, uid, timeout, inode.
    fields.nth(5)?.parse().ok()
}

/// Whether the process has one of these sockets open; false where its descriptors are unreadable
/// (other users' processes).
fn holds(root: &ProcRoot, pid: u32, links: &HashSet<String>) -> bool {
    let descriptors = std::fs::read_dir(root.path(format!("{pid}/fd"))).into_iter().flatten();
    descriptors.flatten().any(|entry| {
        let target = std::fs::read_link(entry.path()).ok();
        target.and_then(|target| target.to_str().map(|link| links.contains(link))).unwrap_or(false)
    })
}
