//! Durability runs: bytes written, and messages recovered after a kill.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Runner, read_summary, running_broker};
use crate::bench::case::{Load, Subject};
use crate::bench::durable::{MESSAGES, SESSIONS};
use crate::bench::figures::Sample;
use crate::bench::machine::free_port;
use crate::mqtt::{connect, packet, push_text};

/// Sessions that receive every message of the fan-out, number of messages, and their size.
const RECEIVERS: u64 = 1000;
const FANNED_OUT: u16 = 100;
const FANNED_OUT_BYTES: usize = 1024;
/// Messages per second for each offline session.
const OFFLINE_RATE: u64 = 40;

/// Bytes written so far.
#[derive(Clone, Copy)]
struct Written {
    /// To the disk by the process, as counted by the kernel.
    disk: f64,
    /// By the journal's own counters, where the broker exports them.
    journal: Option<Journal>,
}

#[derive(Clone, Copy)]
struct Journal {
    /// To the log: records, headers, padding to whole blocks.
    log: f64,
    /// Zeroes, to prepare segments.
    zeros: f64,
    /// Bodies of messages.
    bodies: f64,
}

impl Runner {
    /// Bytes that the journal writes for each byte of payload.
    pub(super) fn written_bytes(&self, sample: Sample, dir: &Path, load: &Load) -> Result<Sample> {
        self.with_journal(dir, |pid, port, metrics| {
            let (before, taken) = (written(pid, metrics)?, messages_in(metrics)?);
            let broker = running_broker(pid, port);
            let summary = self.tacho_run(load, &dir.join("run"), &broker, || {})?;
            let after = written(pid, metrics)?;
            let bytes = load.vars.iter().find(|(name, _)| *name == "payload_size");
            let bytes: f64 = bytes.context("no payload size")?.1.parse().context("odd size")?;
            let payload = (messages_in(metrics)? - taken) * bytes;
            ensure!(payload > 0.0, "nothing was published");
            let mut sample = read_summary(sample, &summary)?;
            sample.set("disk_bytes_per_payload_byte", Some((after.disk - before.disk) / payload));
            let per_byte = |of: fn(&Journal) -> f64| Some(after.since(&before, of)? / payload);
            sample.set("written_per_payload_byte", per_byte(|journal| journal.log));
            sample.set("zeroed_per_payload_byte", per_byte(|journal| journal.zeros));
            Ok(sample)
        })
    }

    /// Bytes that the journal writes for a message to a thousand sessions.
    pub(super) fn fan_out_bytes(&self, mut sample: Sample, dir: &Path) -> Result<Sample> {
        self.with_journal(dir, |pid, port, metrics| {
            let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            (0..RECEIVERS).try_for_each(|number| leave_a_session(broker, number))?;
            let before = written(pid, metrics)?;
            let mut publisher = connect(broker, "publisher")?;
            for id in 1..=FANNED_OUT {
                let mut body = Vec::with_capacity(FANNED_OUT_BYTES + 16);
                push_text(&mut body, "fan/out");
                body.extend_from_slice(&id.to_be_bytes());
                body.resize(body.len() + FANNED_OUT_BYTES, b'x');
                publisher.write_all(&packet(0x32, &body)).context("cannot publish")?;
                let mut puback = [0; 4];
                publisher.read_exact(&mut puback).context("no PUBACK")?;
                ensure!(puback[0] == 0x40, "expected PUBACK, got {puback:02x?}");
            }
            let after = written(pid, metrics)?;
            let messages = f64::from(FANNED_OUT);
            sample.set("disk_bytes_per_message", Some((after.disk - before.disk) / messages));
            let each = |of: fn(&Journal) -> f64| Some(after.since(&before, of)? / messages);
            sample.set("written_bytes_per_message", each(|journal| journal.log));
            sample.set("body_bytes_per_message", each(|journal| journal.bodies));
            Ok(sample)
        })
    }

    /// Sessions full of messages, a kill, and how fast they are delivered after it.
    pub(super) fn offline(&self, sample: Sample, dir: &Path) -> Result<Sample> {
        let messages = if self.options.quick { MESSAGES / 20 } else { MESSAGES };
        let vars = [
            ("sessions", SESSIONS.to_string()),
            ("messages", messages.to_string()),
            ("rate", OFFLINE_RATE.to_string()),
            ("payload_size", "256".to_owned()),
            ("inflight", "1000".to_owned()),
            ("ramp_up", "500ms".to_owned()),
            ("drain", "60s".to_owned()),
            ("kills", "1".to_owned()),
        ];
        let load = Load { scenario: "persistent", vars: vars.to_vec() };
        let broker = [
            format!("--broker-cmd={}", self.broker_command(Subject::Durable)?),
            format!("--broker-cores={}", self.options.broker_cpu),
        ];
        let summary = self.tacho_run(&load, dir, &broker, || {})?;
        let mut sample = read_summary(sample, &summary)?;
        let serving_ms = summary.pointer("/restarts/0/serving_ms").and_then(Value::as_f64);
        sample.set("restart_ms", serving_ms);
        let phases = summary.get("phases").and_then(Value::as_array).context("no phases")?;
        let sum = |key: &str| -> f64 {
            let back =
                phases.iter().filter(|phase| phase["name"] == "resume" || phase["name"] == "drain");
            back.filter_map(|phase| phase[key].as_f64()).sum()
        };
        // No deliveries while the broker recovers.
        let seconds = sum("length_s") - serving_ms.unwrap_or(0.0) / 1e3;
        sample.set("drained_per_s", Some(sum("received") / seconds.max(1e-3)));
        let lost = summary.pointer("/steps/0/acknowledged_lost").and_then(Value::as_f64);
        sample.set("acknowledged_lost", lost);
        let full = summary.pointer("/steps/0/broker_rss_bytes").and_then(Value::as_f64);
        sample.set("rss_bytes_full", full);
        sample.set("rss_bytes_restarted", rss_of_phases(dir, &["resume", "drain"])?);
        Ok(sample)
    }

    /// Runs `work` with a broker that has a data directory below `dir` and exports metrics.
    fn with_journal(
        &self,
        dir: &Path,
        work: impl FnOnce(u32, u16, u16) -> Result<Sample>,
    ) -> Result<Sample> {
        let data = dir.join("data");
        fs::create_dir_all(&data).with_context(|| format!("cannot create {data:?}"))?;
        let metrics = free_port()?;
        let arguments = [
            "--data-dir".to_owned(),
            data.display().to_string(),
            format!("--metrics=127.0.0.1:{metrics}"),
        ];
        let result = self.with_broker_and(&arguments, |pid, port| work(pid, port, metrics));
        // Segments are large and no longer needed.
        let _ = fs::remove_dir_all(&data);
        result
    }
}

/// An offline persistent session with a subscription to everything below `fan`.
fn leave_a_session(broker: SocketAddr, number: u64) -> Result<()> {
    let mut stream = TcpStream::connect(broker).context("cannot connect")?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).context("cannot set a timeout")?;
    // MQTT 3.1.1 without clean session and keep-alive.
    let mut body = b"\x00\x04MQTT\x04\x00\x00\x00".to_vec();
    push_text(&mut body, &format!("away{number}"));
    let mut packets = packet(0x10, &body);
    let mut body = vec![0, 1];
    push_text(&mut body, "fan/#");
    body.push(1);
    packets.extend(packet(0x82, &body));
    stream.write_all(&packets).context("cannot subscribe")?;
    let mut answers = [0; 4 + 5];
    stream.read_exact(&mut answers).context("no SUBACK")?;
    ensure!(answers == [0x20, 2, 0, 0, 0x90, 3, 0, 1, 1], "refused: {answers:02x?}");
    stream.write_all(&[0xe0, 0]).context("cannot disconnect")
}

impl Written {
    /// How much one of the journal's counters has grown since `before`.
    fn since(&self, before: &Self, of: fn(&Journal) -> f64) -> Option<f64> {
        Some(of(self.journal.as_ref()?) - of(before.journal.as_ref()?))
    }
}

fn written(pid: u32, metrics: u16) -> Result<Written> {
    let text = figures(metrics)?;
    let told = |name: &str| sum_of(&text, &format!("tacho_journal_{name}_total")).ok();
    let journal = || {
        let (log, zeros) = (told("written_bytes")?, told("zeroed_bytes")?);
        Some(Journal { log, zeros, bodies: told("body_bytes")? })
    };
    Ok(Written { disk: disk_bytes(pid)?, journal: journal() })
}

fn messages_in(metrics: u16) -> Result<f64> {
    sum_of(&figures(metrics)?, "tacho_publishes_in_total")
}

/// Bytes that a process has written to the disk.
fn disk_bytes(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.trim().parse().ok()).context("no write_bytes")
}

/// The broker's `/metrics`.
fn figures(port: u16) -> Result<String> {
    let mut stream =
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("cannot request metrics")?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).context("cannot set a timeout")?;
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).context("cannot request metrics")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("no metrics")?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "unexpected metrics response: {answer}");
    Ok(answer)
}

/// The sum of a metric over its labels.
fn sum_of(text: &str, name: &str) -> Result<f64> {
    let of = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.strip_prefix('{') {
            Some(labelled) => labelled.split_once("} ")?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.trim().parse::<f64>().ok()
    };
    let mut values = text.lines().filter_map(of).peekable();
    if values.peek().is_none() {
        bail!("the broker does not export {name}");
    }
    Ok(values.sum())
}

/// The broker's peak memory in these phases, from the time series of the run.
fn rss_of_phases(dir: &Path, phases: &[&str]) -> Result<Option<f64>> {
    let path = dir.join("timeseries.csv");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().context("an empty time series")?;
    let column = |name: &str| heads.iter().position(|head| *head == name);
    let (phase, rss) = column("phase").zip(column("broker_rss_bytes")).context("no column")?;
    let rows = lines.filter(|row| row.get(phase).is_some_and(|name| phases.contains(name)));
    Ok(rows.filter_map(|row| row.get(rss)?.parse().ok()).reduce(f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_added_over_their_labels() {
        let text = "# HELP a_total Some.\na_total{qos=\"0\"} 1\na_total{qos=\"1\"} 2\nab_total 7\n\
            b_total 5\n";
        assert_eq!(sum_of(text, "a_total").expect("is there"), 3.0);
        assert_eq!(sum_of(text, "b_total").expect("is there"), 5.0);
        let error = sum_of(text, "c_total").expect_err("is not there").to_string();
        assert_eq!(error, "the broker does not export c_total");
    }

    #[test]
    fn memory_is_that_of_the_phases_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "start_s,phase,broker_rss_bytes\n0,measure,9\n1,resume,3\n2,drain,5\n3,drain,\n";
        fs::write(folder.path().join("timeseries.csv"), text).expect("is written");
        let most = rss_of_phases(folder.path(), &["resume", "drain"]).expect("is read");
        assert_eq!(most, Some(5.0));
    }
}
