//! Between generator and broker.

use super::{Evidence, Found, NETWORK_BOUND};
use tacho_monitor::SourceSpec;
use tacho_record::{Direction, HostUse, MetricUse, Observation, Severity, TargetRecord};

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

/// The traffic of an interface, by direction.
const WAYS: [(&str, Direction); 2] =
    [("net_rx_bytes_per_s", Direction::In), ("net_tx_bytes_per_s", Direction::Out)];

/// Its packets, by direction.
const PACKETS: [(&str, Direction); 2] =
    [("net_rx_packets_per_s", Direction::In), ("net_tx_packets_per_s", Direction::Out)];

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
            for (metric, direction) in WAYS {
                let Some(used) = host.of(metric, instance) else { continue };
                if used.mean < BUSY_SHARE * speed.mean {
                    continue;
                }
                let observation = Observation::NetworkBusy {
                    interface: speed.instance.clone(),
                    host: host.host.clone(),
                    bytes_per_s: used.mean,
                    direction,
                    percent: used.mean * 100.0 / speed.mean,
                };
                return Some((NETWORK_BOUND, Severity::Error, observation));
            }
        }
    }
    at_stated_limit(evidence).or_else(|| narrow(evidence))
}

/// An interface of a broker's host carried what its owner states as the limit of its network:
/// virtual interfaces do not tell their speed.
fn at_stated_limit(evidence: &Evidence<'_>) -> Found {
    for target in evidence.targets {
        let Some(limit) = target.network_limit else { continue };
        let (bits, packets) = (limit.bits_per_s, limit.packets_per_s);
        for host in evidence.step.hosts.iter().filter(|host| is_of(evidence, target, host)) {
            let at = bits.and_then(|bits| busiest(host, &WAYS, bits as f64 / 8.0));
            if let Some((interface, bytes_per_s, direction, percent)) = at {
                let host = host.host.clone();
                let observation = Observation::NetworkLimitReached {
                    interface,
                    host,
                    bytes_per_s,
                    direction,
                    percent,
                };
                return Some((NETWORK_BOUND, Severity::Error, observation));
            }
            let at = packets.and_then(|packets| busiest(host, &PACKETS, packets as f64));
            if let Some((interface, packets_per_s, direction, percent)) = at {
                let host = host.host.clone();
                let observation = Observation::PacketLimitReached {
                    interface,
                    host,
                    packets_per_s,
                    direction,
                    percent,
                };
                return Some((NETWORK_BOUND, Severity::Error, observation));
            }
        }
    }
    None
}

/// Are these the figures of the broker's host? Without a bound source they are all but the
/// generator's.
fn is_of(evidence: &Evidence<'_>, target: &TargetRecord, host: &HostUse) -> bool {
    match &host.target {
        Some(name) => *name == target.name,
        None => evidence.one_machine || host.source != SourceSpec::Local.to_string(),
    }
}

/// The first interface and direction at the limit: name, rate, direction, percent of the limit.
fn busiest(
    host: &HostUse,
    ways: &[(&str, Direction); 2],
    limit: f64,
) -> Option<(Option<String>, f64, Direction, f64)> {
    ways.iter().find_map(|(metric, direction)| {
        let used = interfaces(host, metric).find(|used| used.mean >= BUSY_SHARE * limit)?;
        Some((used.instance.clone(), used.mean, *direction, used.mean * 100.0 / limit))
    })
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
            let observation = Observation::NetworkNarrow {
                interface: sent.instance.clone(),
                host: host.host.clone(),
                bytes_per_s: sent.mean,
                retransmits_per_s: repeated.mean,
            };
            return Some((NETWORK_BOUND, Severity::Error, observation));
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
            let observation = Observation::NetworkDrops {
                interface: drops.instance.clone(),
                host: host.host.clone(),
                packets_per_s: drops.mean,
            };
            return Some(("network_drops", Severity::Warning, observation));
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
    let observation = Observation::Retransmits {
        host: host.clone(),
        segments_per_s: rate,
        one_machine: evidence.one_machine,
    };
    Some(("retransmits", Severity::Warning, observation))
}

/// Connections did not fit into the listen queue.
pub(super) fn listen_overflows(evidence: &Evidence<'_>) -> Found {
    let host = evidence.step.hosts.iter().find_map(|host| {
        let overflows = host.get("tcp_listen_overflows_per_s")?;
        (overflows.max > 0.0).then_some(&host.host)
    })?;
    let observation = Observation::ListenOverflow { host: host.clone() };
    Some(("listen_overflow", Severity::Warning, observation))
}

/// Most of the latency is the way to the broker. On one machine that way is the broker's own loop.
pub(super) fn round_trip(evidence: &Evidence<'_>) -> Found {
    if evidence.one_machine {
        return None;
    }
    let round_trip_us = evidence.step.rtt_us.p50?;
    let latency_us = evidence.step.latency_us.p50?;
    if latency_us == 0 || (round_trip_us as f64) < ROUND_TRIP_SHARE * latency_us as f64 {
        return None;
    }
    let observation = Observation::RoundTrip { round_trip_us, latency_us };
    Some(("round_trip", Severity::Info, observation))
}
