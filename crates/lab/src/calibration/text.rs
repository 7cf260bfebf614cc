//! A calibration in a table, with what it means for planning.

use std::fmt::Write as _;

use super::{Calibration, RateCell};
use tacho_scenario::format::{latency, percent, rate, thousands};

/// Payload of the sentences, in bytes.
const TOLD_PAYLOAD_BYTES: u64 = 32;
/// A generator that was less busy than this was kept waiting by the responder.
const BUSY_PERCENT: f64 = 70.0;
/// The median lateness beyond which latencies of a fast broker are mostly the generator's.
const LATE_P99_US: u64 = 1000;

/// The table and the sentences.
pub fn calibration_text(calibration: &Calibration) -> String {
    let mut out = String::new();
    let (machine, given) = (&calibration.machine, &calibration.given);
    let said: Vec<&str> =
        [&*given.name, &*given.note].into_iter().filter(|text| !text.is_empty()).collect();
    if !said.is_empty() {
        let _ = writeln!(out, "{}", said.join(": "));
    }
    let _ = writeln!(
        out,
        "generator threads: {}; CPU: {}; measured {}{}",
        calibration.generator_threads,
        machine.cpu_model.as_deref().unwrap_or("unknown"),
        calibration.measured_at,
        if calibration.quick { " (quick)" } else { "" }
    );
    rates(&mut out, "AS FAST AS IT GOES", &calibration.rates);
    if !calibration.scheduled.is_empty() {
        rates(&mut out, "SCHEDULED", &calibration.scheduled);
    }
    lateness(&mut out, calibration);
    connections(&mut out, calibration);
    let _ = writeln!(out, "\nWHAT IT MEANS");
    for sentence in sentences(calibration) {
        let _ = writeln!(out, "  - {sentence}");
    }
    out
}

fn rates(out: &mut String, title: &str, cells: &[RateCell]) {
    let _ = writeln!(
        out,
        "\n{title:<18}{:>16}{:>16}{:>16}{:>18}",
        "in + out per s", "generator CPU", "busiest thread", "per core and s"
    );
    for cell in cells {
        let name = format!("QoS {}, {} B", cell.qos, cell.payload_bytes);
        let _ = writeln!(
            out,
            "  {name:<16}{:>16}{:>16}{:>16}{:>18}",
            rate(cell.messages_per_s),
            percent(cell.generator_cpu_percent),
            percent(cell.thread_busy_percent),
            rate(cell.per_core)
        );
    }
}

fn lateness(out: &mut String, calibration: &Calibration) {
    let _ = writeln!(
        out,
        "\n{:<18}{:>12}{:>12}{:>12}{:>12}{:>16}",
        "LATENESS", "p50", "p99", "p99.9", "max", "> 1 ms late"
    );
    let us = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |us| latency(us as f64));
    for cell in &calibration.lateness {
        let name = format!("{} msg/s", rate(cell.rate_per_s));
        let late = format!("{} of {}", thousands(cell.overrun), thousands(cell.count));
        let _ = writeln!(
            out,
            "  {name:<16}{:>12}{:>12}{:>12}{:>12}{late:>16}",
            us(cell.p50_us),
            us(cell.p99_us),
            us(cell.p999_us),
            us(cell.max_us)
        );
    }
}

fn connections(out: &mut String, calibration: &Calibration) {
    let Some(found) = &calibration.connections else { return };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let _ = writeln!(out, "\nCONNECTIONS       ({} clients)", thousands(found.clients));
    let lines = [
        ("opened per second", found.connects_per_s.map(rate)),
        ("time to CONNACK, p99", found.connect_p99_us.map(|us| latency(us as f64))),
        ("bytes per client", found.bytes_per_client.map(rate)),
        ("clients per GiB", found.clients_per_gib().map(rate)),
    ];
    for (name, value) in lines {
        let _ = writeln!(out, "  {name:<30}{:>16}", or_dash(value));
    }
}

fn sentences(calibration: &Calibration) -> Vec<String> {
    let mut sentences = Vec::new();
    for qos in 0..=2 {
        let planned = calibration.planned_per_core(qos, TOLD_PAYLOAD_BYTES);
        if let Some(planned) = planned {
            sentences.push(format!(
                "About {} messages per second at QoS {qos}, sent and received together, can be \
                 planned per generator core (80 % of what it reaches). A scenario that wants more \
                 than this times the cores needs more cores or more machines.",
                thousands(rounded(planned))
            ));
        }
    }
    if !calibration.scheduled.is_empty() {
        sentences.push(
            "That is for many clients that send each message at its own time. A few clients with \
             many messages under way share system calls, and reach what stands above under 'as \
             fast as it goes'."
                .to_owned(),
        );
    }
    let waiting = |cell: &&RateCell| cell.thread_busy_percent < BUSY_PERCENT;
    if calibration.rates.iter().any(|cell| waiting(&cell)) {
        sentences.push(
            "Where the busiest thread is far from 100 %, the responder was slower than the \
             generator: the figure per core is computed from the CPU that was used."
                .to_owned(),
        );
    }
    let worst = calibration.lateness.iter().filter_map(|cell| cell.p99_us).max();
    if let Some(p99) = worst {
        let shown = latency(p99 as f64);
        sentences.push(match p99 <= LATE_P99_US {
            true => format!(
                "99 % of the messages are sent within {shown} of their time: latencies well above \
                 that are the broker's and the network's."
            ),
            false => format!(
                "1 % of the messages are sent more than {shown} late, at a rate that the generator \
                 carries: the machine is busy with something else, and latencies measured on it \
                 are its own."
            ),
        });
    }
    if let Some(found) = &calibration.connections {
        if let Some(clients) = found.clients_per_gib() {
            sentences.push(format!(
                "About {} clients fit into a GiB of the generator's memory; the kernel's sockets \
                 come on top, and so does the broker where it shares the machine.",
                thousands(clients as u64)
            ));
        }
        if let Some(connects) = found.connects_per_s {
            sentences.push(format!(
                "About {} connections per second can be opened and acknowledged.",
                thousands(rounded(connects))
            ));
        }
    }
    sentences
}

/// Two digits are what such a figure is good for.
fn rounded(value: f64) -> u64 {
    if value < 100.0 {
        return value.round().max(0.0) as u64;
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    ((value / unit).round() * unit) as u64
}
