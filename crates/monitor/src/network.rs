//! Network counters since boot: interfaces and TCP.

use crate::ProcRoot;
use crate::row::{InterfaceRates, TcpRates};

/// Limit on tracked interfaces; container hosts have hundreds.
const INTERFACES_MAX: usize = 64;

/// Counters of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceCounters {
    pub(crate) name: String,
    pub(crate) rx_bytes: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) rx_packets: Option<u64>,
    pub(crate) tx_packets: Option<u64>,
    pub(crate) rx_drops: Option<u64>,
    pub(crate) tx_drops: Option<u64>,
    pub(crate) rx_errors: Option<u64>,
    pub(crate) tx_errors: Option<u64>,
    /// Link speed in each direction, in bytes per second.
    pub(crate) speed: Option<u64>,
}

/// TCP counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounters {
    pub(crate) retransmits: Option<u64>,
    pub(crate) listen_overflows: Option<u64>,
    pub(crate) listen_drops: Option<u64>,
    pub(crate) established: Option<u64>,
}

/// `net/dev`; empty where it cannot be read.
pub(crate) fn interfaces(root: &ProcRoot) -> Vec<InterfaceCounters> {
    let text = root.text("net/dev").unwrap_or_default();
    text.lines()
        .filter_map(interface)
        .take(INTERFACES_MAX)
        .map(|counters| InterfaceCounters { speed: speed(root, &counters.name), ..counters })
        .collect()
}

/// Link speed from `class/net/NAME/speed` below `/sys`, in Mbit/s; many virtual interfaces have
/// none, or -1.
fn speed(root: &ProcRoot, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(root.sys(format!("class/net/{name}/speed"))).ok()?;
    let megabits: u64 = text.trim().parse().ok()?;
    (megabits > 0).then(|| megabits * 1_000_000 / 8)
}

/// Parses a line of `net/dev`; `None` for its two header lines and for unused interfaces.
fn interface(line: &str) -> Option<InterfaceCounters> {
    let (name, counters) = line.split_once(':')?;
    let counters: Vec<u64> =
        counters.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // Eight per direction: bytes packets errs drop fifo frame compressed multicast, then
    // bytes packets errs drop fifo colls carrier compressed.
    let at = |index: usize| counters.get(index).copied();
    let (rx_packets, tx_packets) = (at(1)?, at(9)?);
    (rx_packets + tx_packets > 0).then(|| InterfaceCounters {
        name: name.trim().to_owned(),
        rx_bytes: at(0).unwrap_or(0),
        tx_bytes: at(8).unwrap_or(0),
        rx_packets: Some(rx_packets),
        tx_packets: Some(tx_packets),
        rx_drops: at(3),
        tx_drops: at(11),
        rx_errors: at(2),
        tx_errors: at(10),
        speed: None,
    })
}

/// `net/snmp` and `net/netstat`.
pub(crate) fn tcp(root: &ProcRoot) -> TcpCounters {
    let snmp = root.text("net/snmp").unwrap_or_default();
    let netstat = root.text("net/netstat").unwrap_or_default();
    TcpCounters {
        retransmits: named(&snmp, "Tcp:", "RetransSegs"),
        listen_overflows: named(&netstat, "TcpExt:", "ListenOverflows"),
        listen_drops: named(&netstat, "TcpExt:", "ListenDrops"),
        established: named(&snmp, "Tcp:", "CurrEstab"),
    }
}

/// TCP segments that the machine has sent again since boot; `None` where it does not tell.
pub fn retransmitted_segments(root: &ProcRoot) -> Option<u64> {
    named(&root.text("net/snmp").ok()?, "Tcp:", "RetransSegs")
}

/// A value of a file whose lines come in pairs: names, then values, both after `prefix`.
fn named(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let index = lines.next()?.split_whitespace().position(|known| known == name)?;
    lines.next()?.split_whitespace().nth(index)?.parse().ok()
}

/// Increase of a counter per second; `None` without both values. A counter that decreased was
/// reset to zero in between.
pub(crate) fn rate(now: Option<u64>, before: Option<u64>, seconds: f64) -> Option<f64> {
    let (now, before) = (now?, before?);
    (seconds > 0.0).then(|| now.checked_sub(before).unwrap_or(now) as f64 / seconds)
}

/// Rates of the interfaces present in both.
pub(crate) fn interface_rates(
    now: &[InterfaceCounters],
    before: &[InterfaceCounters],
    seconds: f64,
) -> Vec<InterfaceRates> {
    let pairs = now
        .iter()
        .filter_map(|now| Some((now, before.iter().find(|before| before.name == now.name)?)));
    pairs
        .map(|(now, before)| InterfaceRates {
            name: now.name.clone(),
            rx_bytes_per_s: rate(Some(now.rx_bytes), Some(before.rx_bytes), seconds).unwrap_or(0.0),
            tx_bytes_per_s: rate(Some(now.tx_bytes), Some(before.tx_bytes), seconds).unwrap_or(0.0),
            rx_packets_per_s: rate(now.rx_packets, before.rx_packets, seconds),
            tx_packets_per_s: rate(now.tx_packets, before.tx_packets, seconds),
            rx_drops_per_s: rate(now.rx_drops, before.rx_drops, seconds),
            tx_drops_per_s: rate(now.tx_drops, before.tx_drops, seconds),
            rx_errors_per_s: rate(now.rx_errors, before.rx_errors, seconds),
            tx_errors_per_s: rate(now.tx_errors, before.tx_errors, seconds),
            speed_bytes_per_s: now.speed.map(|speed| speed as f64),
        })
        .collect()
}

/// Rates of the TCP counters.
pub(crate) fn tcp_rates(now: &TcpCounters, before: &TcpCounters, seconds: f64) -> TcpRates {
    TcpRates {
        retransmits_per_s: rate(now.retransmits, before.retransmits, seconds),
        listen_overflows_per_s: rate(now.listen_overflows, before.listen_overflows, seconds),
        listen_drops_per_s: rate(now.listen_drops, before.listen_drops, seconds),
        established: now.established,
    }
}
