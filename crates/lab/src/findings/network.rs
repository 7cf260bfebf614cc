//! Between generator and broker.

use super::{Evidence, Found, NETWORK_BOUND};
use tacho_record::{HostUse, MetricUse, Severity};
use tacho_scenario::format;

/// Share of an interface's speed from which on it is the bottleneck: frames have heads, and a mean
/// over seconds hides bursts.
const BUSY_SHARE: f64 = 0.85;
/// Share of the offered load below which it is not carried.
const ACHIEVED_PERCENT: f64 = 95.0;
/// How much a rate varies, as a share of its mean, that something holds down.
const EVEN_SHARE: f64 = 0.1;
/// Seconds from which on that can be told.
const SAMPLES_MIN: u64 = 5;
/// Share of repeated segments that no usual way has.
const REPEATED_SHARE: f64 = 0.02;
/// Retransmitted segments per second that are no accident.
const RETRANSMITS_PER_S: f64 = 5.0;
/// Share of the median latency from which on the round trip is most of it.
const ROUND_TRIP_SHARE: f64 = 0.5;

/// The figures called `metric` of real interfaces; what happens on loopback is no network.
fn interfaces<'a>(host: &'a HostUse, metric: &'a str) -> impl Iterator<Item = &'a MetricUse> {
    let is_real = |name: &str| name != "lo" && !name.starts_with("lo:");
    host.metrics.iter().filter(move |known| {
        known.metric == metric && known.instance.as_deref().is_some_and(is_real)
    })
}

/// An interface of the broker's host was as busy as it can be.
pub(super) fn bound(evidence: &Evidence<'_>) -> Found {
    for host in &evidence.step.hosts {
        for speed in interfaces(host, "net_speed_bytes_per_s").filter(|speed| speed.mean > 0.0) {
            let instance = speed.instance.as_deref();
            for (metric, way) in [("net_rx_bytes_per_s", "in"), ("net_tx_bytes_per_s", "out")] {
                let Some(used) = host.of(metric, instance) else { continue };
                if used.mean < BUSY_SHARE * speed.mean {
                    continue;
                }
                let sentence = format!(
                    "The network was the bottleneck: {} of {} carried {}/s {way}, {:.0} % of what it \
                     can; use a faster network, smaller payloads or less load.",
                    instance.unwrap_or("an interface"),
                    host.host,
                    format::bytes(used.mean as u64),
                    used.mean * 100.0 / speed.mean
                );
                return Some((NETWORK_BOUND, Severity::Error, sentence));
            }
        }
    }
    narrow(evidence)
}

/// Something on the way is narrower than the interface says, as shaped links of clouds are: the
/// load is not carried, what is sent does not vary, and what is too much is repeated.
fn narrow(evidence: &Evidence<'_>) -> Found {
    if evidence.one_machine || evidence.step.achieved_percent() >= ACHIEVED_PERCENT {
        return None;
    }
    for host in evidence.step.hosts.iter().filter(|host| host.samples >= SAMPLES_MIN) {
        let Some(repeated) = host.get("tcp_retransmits_per_s") else { continue };
        for sent in interfaces(host, "net_tx_bytes_per_s").filter(|sent| sent.mean > 0.0) {
            let instance = sent.instance.as_deref();
            let Some(packets) = host.of("net_tx_packets_per_s", instance) else { continue };
            let is_even = sent.max - sent.min <= EVEN_SHARE * sent.mean;
            let share = repeated.mean / packets.mean.max(1.0);
            if !is_even || repeated.mean < RETRANSMITS_PER_S || share < REPEATED_SHARE {
                continue;
            }
            let sentence = format!(
                "The network was the bottleneck: {} of {} sent {}/s all the time, while TCP \
                 repeated {:.0} segments per second and the load was not carried; something on \
                 the way is narrower than the interface, such as a shaped link.",
                instance.unwrap_or("an interface"),
                host.host,
                format::bytes(sent.mean as u64),
                repeated.mean
            );
            return Some((NETWORK_BOUND, Severity::Error, sentence));
        }
    }
    None
}

/// An interface dropped packets.
pub(super) fn drops(evidence: &Evidence<'_>) -> Found {
    for host in &evidence.step.hosts {
        for metric in ["net_rx_drops_per_s", "net_tx_drops_per_s"] {
            let Some(drops) = interfaces(host, metric).find(|drops| drops.mean >= 1.0) else {
                continue;
            };
            let sentence = format!(
                "{} of {} dropped {:.0} packets per second: its queues overflow; look at its ring \
                 size and at the CPU that serves its interrupts.",
                drops.instance.as_deref().unwrap_or("An interface"),
                host.host,
                drops.mean
            );
            return Some(("network_drops", Severity::Warning, sentence));
        }
    }
    None
}

/// TCP repeated segments.
pub(super) fn retransmits(evidence: &Evidence<'_>) -> Found {
    let host = evidence.step.hosts.iter().find_map(|host| {
        let used = host.get("tcp_retransmits_per_s")?;
        (used.mean >= RETRANSMITS_PER_S).then_some((&host.host, used.mean))
    });
    let (host, rate) = host?;
    let advice = match evidence.one_machine {
        false => {
            "packets are lost on the way, and latency has a tail from 200 ms on; check the \
                  network before blaming the broker"
        }
        true => {
            "on loopback that means sockets whose reader was kept from running, or whose \
                 buffers overflowed; look at steal and at the cores' load"
        }
    };
    let sentence = format!("TCP on {host} repeated {rate:.0} segments per second: {advice}.");
    Some(("retransmits", Severity::Warning, sentence))
}

/// Connections did not fit into the listen queue.
pub(super) fn listen_overflows(evidence: &Evidence<'_>) -> Found {
    let host = evidence.step.hosts.iter().find_map(|host| {
        let overflows = host.get("tcp_listen_overflows_per_s")?;
        (overflows.max > 0.0).then_some(&host.host)
    })?;
    let sentence = format!(
        "The listen queue of {host} overflowed: connections wait a second and more to be tried \
         again; raise net.core.somaxconn and the broker's backlog, or connect more slowly."
    );
    Some(("listen_overflow", Severity::Warning, sentence))
}

/// Most of the latency is the way to the broker. On one machine that way is the broker's own loop.
pub(super) fn round_trip(evidence: &Evidence<'_>) -> Found {
    if evidence.one_machine {
        return None;
    }
    let round_trip = evidence.step.rtt_us.p50? as f64;
    let latency = evidence.step.latency_us.p50? as f64;
    if latency <= 0.0 || round_trip < ROUND_TRIP_SHARE * latency {
        return None;
    }
    let sentence = format!(
        "The round trip to the broker's host takes {} of the median latency of {}: most of it is \
         the network's, not the broker's.",
        format::latency(round_trip),
        format::latency(latency)
    );
    Some(("round_trip", Severity::Info, sentence))
}
