//! JMeter's dashboard generator and HdrHistogram's log processor read the files of a run.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::process::{Peer, Running, peers_dir};
use crate::small_load::{HOLD_S, MESSAGES, agree, number, run};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "jmeters_dashboard_says_what_the_record_says".to_owned();
    trials.push(trial(name, &[Peer::Jmeter], dashboard));
    let name = "hdrhistograms_processor_reads_the_log".to_owned();
    trials.push(trial(name, &[Peer::Jmeter], histogram_log));
}

/// Java with the libraries of both; what it wants to remember goes into a folder.
fn java(main: &str, folder: &Path) -> Result<Command, Failed> {
    let home = peers_dir().join("jmeter");
    let mut command = Peer::Jmeter.command()?;
    command.arg("-Djava.awt.headless=true");
    command.arg(format!("-Djava.util.prefs.userRoot={}", folder.display()));
    command.arg(format!("-Djmeter.home={}", home.display()));
    command.arg("-cp").arg(home.join("lib").join("*")).arg(main);
    Ok(command)
}

/// Number, mean, percentiles and throughput of each label.
fn dashboard() -> Verdict {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("run");
    let record = run(&directory)?;
    let statistics = generate(&directory.join("results.jtl"), folder.path())?;
    let step = &record["steps"][0];
    for (label, latency, is_message) in [
        ("MQTT Sub Sampler", &step["latency_us"], true),
        ("MQTT Pub Sampler", &step["ack_us"], true),
        ("MQTT Connect", &record["connect_us"], false),
    ] {
        compare(&statistics[label], latency, is_message)
            .map_err(|error| format!("{label}: {}", error.message().unwrap_or("")))?;
    }
    // Payloads only, in KB of 1,024 bytes.
    let rate = number(&statistics, "/MQTT Pub Sampler/throughput")?;
    let bytes = number(&record, "/vars/payload_size")?;
    let sent = number(&statistics, "/MQTT Pub Sampler/sentKBytesPerSec")?;
    agree("sent KB/s", sent, rate * bytes / 1024.0, 0.01 * sent)?;
    let received = number(&statistics, "/MQTT Sub Sampler/receivedKBytesPerSec")?;
    let rate = number(&statistics, "/MQTT Sub Sampler/throughput")?;
    agree("received KB/s", received, rate * bytes / 1024.0, 0.01 * received)
}

/// JMeter's statistics of the samples in a file.
fn generate(samples: &Path, folder: &Path) -> Result<Value, Failed> {
    let output = folder.join("dashboard");
    let mut command = java("org.apache.jmeter.NewDriver", folder)?;
    command.current_dir(folder).arg("-g").arg(samples).arg("-o").arg(&output);
    let said = Running::start(command)?.succeed()?;
    let text = fs::read_to_string(output.join("statistics.json"))
        .map_err(|error| format!("{error}: {said:#?}"))?;
    serde_json::from_str(&text).map_err(|error| error.to_string().into())
}

/// Compares JMeter's statistics, in milliseconds, with the record's, in microseconds.
fn compare(statistics: &Value, latency: &Value, is_message: bool) -> Verdict {
    let count = number(latency, "/count")?;
    agree("the number of samples", number(statistics, "/sampleCount")?, count, 0.0)?;
    agree("the number of errors", number(statistics, "/errorCount")?, 0.0, 0.0)?;
    let mean_ms = number(latency, "/mean")? / 1e3;
    // Each row is rounded up or down in proportion. Independent roundings of n rows would be off by
    // sqrt(n) / 2 ms in sum (one standard deviation); three of them bound the sequence in use,
    // which simulations of 20 to 8,000 rows of unequal times found off by 1.2 sqrt(n) at most.
    let apart = 1.5 * count.sqrt();
    let tolerance = 0.01 * mean_ms + apart / count;
    agree("the mean", number(statistics, "/meanResTime")?, mean_ms, tolerance)?;
    let ours = |name: &str| latency.pointer(name).and_then(Value::as_f64).map(|us| us / 1e3);
    // Few connects have few percentiles.
    for (theirs, name) in
        [("/medianResTime", "/p50"), ("/pct1ResTime", "/p90"), ("/maxResTime", "/max")]
    {
        let Some(ms) = ours(name).filter(|_| is_message) else { continue };
        agree(name, number(statistics, theirs)?, ms, 1.0 + 0.1 * ms)?;
    }
    // JMeter interpolates between the few samples of a tail.
    for (theirs, below, above) in
        [("/pct2ResTime", "/p90", "/p99"), ("/pct3ResTime", "/p95", "/max")]
    {
        let (Some(below), Some(above)) = (ours(below), ours(above)) else { continue };
        let found = number(statistics, theirs)?;
        if found < below - 1.0 || found > above + 1.0 {
            return Err(format!("{theirs} is {found}, not {below} to {above}").into());
        }
    }
    if is_message {
        agree("the number of messages", count, MESSAGES as f64, 0.0)?;
        // From the first sample's start to the last one's end, which may come in the drain.
        let span_s = count / number(statistics, "/throughput")?;
        let late_s = number(latency, "/max")? / 1e6;
        agree("the time that JMeter sees", span_s, HOLD_S + late_s / 2.0, 0.1 + late_s / 2.0)?;
    }
    Ok(())
}

/// HdrHistogram's own program sums up the measured phase and its drain, and writes percentiles as
/// `e2e.hgrm` has them.
fn histogram_log() -> Verdict {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("run");
    let record = run(&directory)?;
    let phases = record["phases"].as_array().ok_or("no phases")?;
    let measured = phases.iter().find(|phase| phase["name"] == "measure").ok_or("none measured")?;
    let from_s = number(measured, "/start_s")? - 0.01;
    for (tag, latency) in [("e2e", "latency_us"), ("ack", "ack_us"), ("service", "service_us")] {
        let mut command = java("org.HdrHistogram.HistogramLogProcessor", folder.path())?;
        command.args(["-tag", tag, "-start", &from_s.to_string()]);
        command.args(["-outputValueUnitRatio", "1000", "-i"]);
        let theirs = Running::start({
            command.arg(directory.join("latency.hlog"));
            command
        })?
        .succeed()?;
        let ours = fs::read_to_string(directory.join(format!("{tag}.hgrm")))?;
        let ours: Vec<String> = ours.lines().map(str::to_owned).collect();
        let step = &record["steps"][0][latency];
        let expected =
            [number(step, "/mean")? / 1e3, number(step, "/max")? / 1e3, number(step, "/count")?];
        for (whose, lines) in [("HdrHistogram's", &theirs), ("our", &ours)] {
            let found = closing_figures(lines).ok_or_else(|| format!("{whose}: {lines:#?}"))?;
            for ((found, expected), what) in
                found.into_iter().zip(expected).zip(["mean", "max", "count"])
            {
                agree(&format!("{whose} {tag} {what}"), found, expected, 0.002 * expected)?;
            }
        }
        one_distribution(&theirs, &ours).map_err(|why| format!("{tag}: {why}"))?;
    }
    Ok(())
}

/// Mean, largest and number, from the lines at the end of a percentile distribution.
fn closing_figures(lines: &[String]) -> Option<[f64; 3]> {
    let value = |name: &str| {
        let line = lines.iter().rev().find(|line| line.starts_with("#[") && line.contains(name))?;
        let (_, rest) = line.split_once(name)?;
        let rest = rest.trim_start_matches([' ', '=']);
        rest.split([',', ']']).next()?.trim().parse().ok()
    };
    Some([value("Mean")?, value("Max")?, value("Total count")?])
}

/// The lines of both are of one distribution: at each value one number of samples, at higher values
/// no fewer. (Where a percentile falls on a sample, one shows it and the other the next.)
fn one_distribution(theirs: &[String], ours: &[String]) -> Result<(), String> {
    let (theirs, ours) = (percentiles(theirs), percentiles(ours));
    if theirs.len() < 20 || ours.len() < 20 {
        return Err(format!("few percentiles: {theirs:?}, {ours:?}"));
    }
    let mut all = [theirs, ours].concat();
    all.sort_unstable();
    all.dedup();
    let is_one = |pair: &[(u64, u64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    match all.windows(2).find(|pair| !is_one(pair)) {
        None => Ok(()),
        Some(pair) => Err(format!("(us, samples): {pair:?}")),
    }
}

/// Values in microseconds and samples up to them, of a distribution's lines.
fn percentiles(lines: &[String]) -> Vec<(u64, u64)> {
    let head = lines.iter().position(|line| line.contains("1/(1-Percentile)"));
    let lines = lines.iter().skip(head.map_or(lines.len(), |head| head + 1));
    lines
        .filter(|line| !line.starts_with("#["))
        .filter_map(|line| {
            let mut cells = line.split_whitespace();
            let (value_ms, _, count): (f64, _, _) =
                (cells.next()?.parse().ok()?, cells.next()?, cells.next()?);
            Some(((value_ms * 1e3).round() as u64, count.parse().ok()?))
        })
        .collect()
}
