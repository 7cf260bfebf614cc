//! What the listeners of a broker ask of the kernel, and whether it gives that much.

use tacho_scenario::format::thousands;

use super::Row;
use crate::files::Files;

/// What one listener asks for; absent where it asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerSockets {
    /// Its address.
    pub name: String,
    /// Connections that wait to be accepted.
    pub backlog: Option<u64>,
    /// Bytes of a connection that wait to be sent.
    pub send_buffer_bytes: Option<u64>,
    /// Bytes of a connection that wait to be read.
    pub receive_buffer_bytes: Option<u64>,
}

/// A setting that caps what listeners ask for.
struct Cap {
    name: &'static str,
    key: &'static str,
    asked: fn(&ListenerSockets) -> Option<u64>,
}

const CAPS: [Cap; 3] = [
    Cap { name: "net.core.somaxconn", key: "backlog", asked: |one| one.backlog },
    Cap { name: "net.core.wmem_max", key: "send_buffer_bytes", asked: |one| one.send_buffer_bytes },
    Cap {
        name: "net.core.rmem_max",
        key: "receive_buffer_bytes",
        asked: |one| one.receive_buffer_bytes,
    },
];

/// A row for each setting that caps something that a listener asks for.
pub(super) fn examine(files: &Files<'_>, listeners: &[ListenerSockets]) -> Vec<Row> {
    CAPS.iter().filter_map(|cap| row(files, cap, listeners)).collect()
}

fn row(files: &Files<'_>, cap: &Cap, listeners: &[ListenerSockets]) -> Option<Row> {
    let asked = listeners.iter().filter_map(|one| Some(((cap.asked)(one)?, one)));
    let (wanted, listener) = asked.max_by_key(|(wanted, _)| *wanted)?;
    let current = files.sysctl(cap.name);
    let has = current.as_deref().and_then(|text| text.trim().parse::<u64>().ok());
    let (key, shown, address) = (cap.key, thousands(wanted), &listener.name);
    let limits = has.is_some_and(|has| has < wanted);
    let (why, why_zh) = match has {
        None => ("this system does not have it".to_owned(), String::new()),
        Some(_) if !limits => (format!("allows the {key} of {shown} of {address}"), String::new()),
        Some(has) => {
            let has = thousands(has);
            (
                format!("the listener {address} asks for a {key} of {shown}, and gets {has}"),
                format!("监听器 {address} 要求 {key} 为 {shown}，实际得到 {has}"),
            )
        }
    };
    Some(Row {
        host: None,
        name: cap.name,
        current,
        guide: None,
        bifromq: None,
        limits,
        why,
        why_zh,
        command: limits.then(|| format!("sysctl -w {}='{wanted}'", cap.name)),
        sysctl: limits.then(|| wanted.to_string()),
    })
}
