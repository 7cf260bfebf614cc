//! Debian's Prometheus takes what a run sends, and its answers are those of the run's record.

use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::operations::get;
use crate::process::{Peer, Running, free_port, wait_for_port, wait_until};
use crate::sending::{Sent, run};
use crate::{Verdict, trial};

/// A bucket of a native histogram is so much wider than its lower bound, by its schema 8.
const BUCKET_WIDTH: f64 = 0.002_712;

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "prometheus_answers_as_the_record_does".to_owned();
    trials.push(trial(name, &[Peer::Prometheus], answers));
    let name = "prometheus_without_native_histograms_is_understood".to_owned();
    trials.push(trial(name, &[Peer::Prometheus], without_histograms));
}

/// Without this it refuses native histograms.
pub(crate) const HISTOGRAMS: &str = "--enable-feature=native-histograms";

/// A Prometheus with that configuration, which takes remote writes.
pub(crate) fn prometheus(
    folder: &Path,
    text: &str,
    more: &[&str],
) -> Result<(Running, u16), Failed> {
    let port = free_port()?;
    let config = folder.join("prometheus.yml");
    fs::write(&config, text)?;
    let mut command = Peer::Prometheus.command()?;
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.arg("--web.enable-remote-write-receiver").args(more);
    let running = Running::start(command)?;
    wait_for_port(port)?;
    wait_until("Prometheus is not ready", || get(port, "/-/ready").is_ok())?;
    Ok((running, port))
}

/// The values that a query has at a time.
fn ask(port: u16, query: &str, at_s: f64) -> Result<Vec<f64>, Failed> {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = get(port, &format!("/api/v1/query?query={encoded}&time={at_s:.3}"))?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let result = answer["data"]["result"].as_array().ok_or_else(|| format!("{query}: {answer}"))?;
    Ok(result.iter().filter_map(|one| one["value"][1].as_str()?.parse().ok()).collect())
}

fn one(port: u16, query: &str, at_s: f64) -> Result<f64, Failed> {
    match ask(port, query, at_s)?[..] {
        [value] => Ok(value),
        ref others => Err(format!("{query} at {at_s} has {others:?}").into()),
    }
}

fn answers() -> Verdict {
    let folder = tempfile::tempdir()?;
    let (_running, port) = prometheus(folder.path(), "global: {}\n", &[HISTOGRAMS])?;
    let out = format!("prometheus=http://127.0.0.1:{port}/api/v1/write");
    let Sent { record, objects } = run(folder.path(), &[&out])?;
    if record["findings"].to_string().contains("output_lost") {
        return Err(format!("it did not take everything: {}", record["findings"]).into());
    }
    let loads = || objects.iter().filter(|object| object["series"] == "mqtt_load");
    let end_ms = loads().filter_map(|object| object["end_ms"].as_u64()).max().ok_or("no points")?;
    let at_s = end_ms as f64 / 1e3;
    let step = &record["steps"][0];
    let expect = |what: &str, got: f64, wanted: Option<f64>, tolerance: f64| {
        let wanted = wanted.ok_or_else(|| format!("the record has no {what}"))?;
        match (got - wanted).abs() <= tolerance * wanted.abs() {
            true => Ok(()),
            false => Err(Failed::from(format!("{what} is {got}, the record has {wanted}"))),
        }
    };
    for (metric, stats) in [
        ("mqtt_load_e2e_latency", &step["latency_us"]),
        ("mqtt_load_service_latency", &step["service_us"]),
        ("mqtt_load_ack_latency", &step["ack_us"]),
    ] {
        let histogram = format!("{metric}_seconds{{measured=\"true\"}}");
        let count = one(port, &format!("histogram_count({histogram})"), at_s)?;
        expect(&format!("the count of {metric}"), count, stats["count"].as_f64(), 0.0)?;
        let step = metric.replace("mqtt_load_", "mqtt_load_step_");
        for (quantile, name) in [("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99")] {
            let wanted = stats[name].as_f64().map(|us| us / 1e6);
            let query = format!("histogram_quantile({quantile}, {histogram})");
            let got = one(port, &query, at_s)?;
            expect(&format!("{name} of {metric}"), got, wanted, BUCKET_WIDTH)?;
            let gauge = format!("{step}_{name}_seconds{{window=\"measured\"}}");
            expect(&gauge, one(port, &gauge, at_s)?, wanted, 1e-9)?;
        }
        // Of any seconds: the buckets add up.
        let query = format!("histogram_quantile(0.5, rate({histogram}[3s]))");
        one(port, &query, at_s - 1.0)?;
    }
    for count in ["published", "received", "connects"] {
        let counted: f64 = loads().filter_map(|object| object["values"][count].as_f64()).sum();
        let query = format!("sum(mqtt_load_{count}_total)");
        expect(count, one(port, &query, at_s)?, Some(counted), 0.0)?;
        // The first sample of each series is 0, so that nothing is missing from an increase.
        let query = format!("min_over_time(mqtt_load_{count}_total[1h])");
        if ask(port, &query, at_s)?.iter().any(|least| *least != 0.0) {
            return Err(format!("{count} does not begin with 0").into());
        }
    }
    // Without markers, lines would go on for minutes.
    for metric in ["mqtt_load_connected", "mqtt_load_published_total", "tacho_host_load_1m"] {
        if ask(port, metric, at_s)?.is_empty() {
            return Err(format!("{metric} is not there").into());
        }
        let after = ask(port, metric, at_s + 5.0)?;
        if !after.is_empty() {
            return Err(format!("{metric} goes on after the end: {after:?}").into());
        }
    }
    Ok(())
}

/// Without its feature it refuses native histograms; it says so, and takes the rest on request.
fn without_histograms() -> Verdict {
    let folder = tempfile::tempdir()?;
    let (_running, port) = prometheus(folder.path(), "global: {}\n", &[])?;
    let out = format!("prometheus=http://127.0.0.1:{port}");
    let Sent { record, .. } = run(folder.path(), &[&out])?;
    let findings = record["findings"].to_string();
    if !findings.contains("histograms=off") {
        return Err(format!("the remedy is not told: {findings}").into());
    }
    let again = folder.path().join("again");
    fs::create_dir(&again)?;
    let Sent { record, objects } = run(&again, &[&format!("{out}?histograms=off")])?;
    let findings = record["findings"].to_string();
    if findings.contains("output_lost") {
        return Err(format!("it did not take the rest: {findings}").into());
    }
    let loads = objects.iter().filter(|object| object["series"] == "mqtt_load");
    let end_ms = loads.filter_map(|object| object["end_ms"].as_u64()).max().ok_or("no points")?;
    let run = record["name"].as_str().ok_or("no name")?;
    let gauge = format!("mqtt_load_step_e2e_latency_p50_seconds{{run=\"{run}\"}}");
    one(port, &gauge, end_ms as f64 / 1e3).map(drop)
}
