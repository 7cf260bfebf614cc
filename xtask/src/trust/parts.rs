//! The measurements: each shows the program something whose truth is known.

use std::time::Instant;

use anyhow::Result;

use super::judge::{FaultRun, LatencyRun, Percentile, SearchRun};
use super::responder::{Fault, ResponderOptions, Testimony};
use super::runs::{Ended, Laboratory};
use crate::bench::machine::{Steal, wait_until_idle};

pub(super) const DELAYS_MS: [u64; 3] = [1, 5, 50];
const STALL_MS: u64 = 300;
const STALL_EVERY_MS: u64 = 5_000;
/// Each fault with the quality of service at which it is one.
pub(super) const FAULTS: [(Fault, u8); 3] =
    [(Fault::Lose, 1), (Fault::Double, 2), (Fault::Reorder, 1)];

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Seconds of a window with held messages.
    pub(super) delay_s: u64,
    /// Seconds of a window with stalls; a third of it is a whole number of their periods, since
    /// the thirds of a window are compared.
    pub(super) stall_s: u64,
    pub(super) fault_s: u64,
    /// Searches that must be decided, and the most that are made.
    pub(super) searches: usize,
    pub(super) searches_max: usize,
    pub(super) noisy_searches: usize,
    /// Measured seconds of a search's trials of full length.
    hold_s: u64,
    pub(super) search_seconds_max: u64,
    /// Seconds to wait before a measurement until the machine is idle.
    pub(super) idle_wait_s: u64,
}

impl Extent {
    pub(super) const FULL: Self = Self {
        delay_s: 15,
        stall_s: 30,
        fault_s: 30,
        searches: 20,
        searches_max: 40,
        noisy_searches: 10,
        hold_s: 6,
        search_seconds_max: 900,
        idle_wait_s: 20,
    };

    pub(super) const QUICK: Self = Self {
        delay_s: 4,
        stall_s: 15,
        fault_s: 4,
        searches: 3,
        searches_max: 3,
        noisy_searches: 3,
        hold_s: 3,
        search_seconds_max: 300,
        idle_wait_s: 2,
    };
}

/// The name of a delay in the record.
pub(super) fn held(ms: u64) -> String {
    format!("{ms} ms held")
}

/// The name of the stall in the record.
pub(super) fn stopped() -> String {
    format!("{STALL_MS} ms of every {} s stopped", STALL_EVERY_MS / 1_000)
}

/// 20K TPS against a responder that holds every message.
pub(super) fn delay(lab: &Laboratory, extent: Extent, ms: u64) -> Result<LatencyRun> {
    let hold = ResponderOptions { hold_us: Some(ms * 1_000), ..ResponderOptions::default() };
    let read = |ended: &Ended, record: &Testimony| {
        Ok(vec![
            percentile(ended, "p50", record.hold_us_p50)?,
            percentile(ended, "p99", record.hold_us_p99)?,
        ])
    };
    let load =
        LatencyLoad { responder: hold, shown: held(ms), warmup_s: 2, hold_s: extent.delay_s };
    latency_run(lab, extent, load, read)
}

/// The same against one that stops periodically: the tail is what the stalls make of it.
pub(super) fn stall(lab: &Laboratory, extent: Extent) -> Result<LatencyRun> {
    let stall = ResponderOptions {
        stall_ms: Some(STALL_MS),
        stall_every_ms: STALL_EVERY_MS,
        ..ResponderOptions::default()
    };
    let read = |ended: &Ended, record: &Testimony| {
        Ok(vec![
            percentile(ended, "p99", record.hold_us_p99)?,
            percentile(ended, "p999", record.hold_us_p999)?,
            percentile(ended, "max", record.hold_us_max)?,
        ])
    };
    let load =
        LatencyLoad { responder: stall, shown: stopped(), warmup_s: 5, hold_s: extent.stall_s };
    latency_run(lab, extent, load, read)
}

fn percentile(ended: &Ended, name: &str, recorded_us: f64) -> Result<Percentile> {
    let reported_us = ended.figure(&format!("/steps/0/latency_us/{name}"))?;
    let reported_us_min = match is_within_tolerance(ended) {
        true => ended.figure_if_any(&format!("/steps/0/disturbance/{name}_us_min")),
        false => None,
    };
    Ok(Percentile { name: name.to_owned(), reported_us, reported_us_min, recorded_us })
}

/// Disturbed seconds count in the figures, which then are intervals.
fn is_within_tolerance(ended: &Ended) -> bool {
    ended.text("/steps/0/disturbance/handling") == "within_tolerance"
}

/// What is shown to the program.
struct LatencyLoad {
    responder: ResponderOptions,
    shown: String,
    warmup_s: u64,
    hold_s: u64,
}

fn latency_run(
    lab: &Laboratory,
    extent: Extent,
    load: LatencyLoad,
    read: impl Fn(&Ended, &Testimony) -> Result<Vec<Percentile>>,
) -> Result<LatencyRun> {
    wait_until_idle(extent.idle_wait_s);
    let LatencyLoad { responder, shown, warmup_s, hold_s } = load;
    let is_uniform = responder.stall_ms.is_none();
    let options = ResponderOptions { spin: true, skip: warmup_s, ..responder };
    let process = lab.responder(&options)?;
    let mut command = lab.command("run", &process);
    command.args(["--var=target_throughput=10000", "--ramp-up=1s"]);
    command.arg(format!("--warmup={warmup_s}s")).arg(format!("--hold={hold_s}s"));
    let before = Steal::look()?;
    let ended = lab.run(command, hold_s + 60)?;
    let steal_percent = before.percent_since()?;
    let record = process.finish()?;
    let run = LatencyRun {
        shown,
        is_uniform,
        verdict: ended.text("/verdict"),
        steal_percent,
        is_left_out: ended.text("/steps/0/disturbance/handling") == "left_out",
        is_within_tolerance: is_within_tolerance(&ended),
        percentiles: read(&ended, &record)?,
    };
    println!("{run:?}: {:?}", run.judge());
    Ok(run)
}

/// A search while another program burns cores in bursts.
pub(super) fn noisy_search(lab: &Laboratory, extent: Extent, number: usize) -> Result<SearchRun> {
    let burned = ["the broker's", "the generator's", "both"][number % 3];
    let cpus = match burned {
        "the broker's" => vec![lab.broker_cpu],
        "the generator's" => vec![lab.generator_cpu],
        _ => vec![lab.broker_cpu, lab.generator_cpu],
    };
    let _noise = lab.burn(&cpus, extent.search_seconds_max, number as u64)?;
    search(lab, extent, number, burned)
}

pub(super) fn search(
    lab: &Laboratory,
    extent: Extent,
    number: usize,
    burned: &str,
) -> Result<SearchRun> {
    // Limits at many places of the grid of doubled values.
    let limit = 3_000 + (number as u64 * 1_237) % 5_000;
    let options = ResponderOptions { limit: Some(limit), ..ResponderOptions::default() };
    let process = lab.responder(&options)?;
    let mut command = lab.command("capacity", &process);
    command.args(["--objective=achieved>=99%", "--objective=loss==0"]);
    command.args(["--var=publishers=100", "--var=subscribers=100", "--ramp-up=500ms"]);
    command.args(["--from=1000", "--to=40000", "--warmup=1s", "--trial=2s", "--no-profile"]);
    command.arg(format!("--hold={}s", extent.hold_s));
    let (before, started) = (Steal::look()?, Instant::now());
    let ended = lab.run(command, extent.search_seconds_max)?;
    let trials = ended.summary.pointer("/capacity/trials").and_then(|trials| trials.as_array());
    let run = SearchRun {
        limit: limit as f64,
        burned: burned.to_owned(),
        hold_s: extent.hold_s,
        exit_code: ended.exit_code,
        highest_pass: ended.figure_if_any("/capacity/highest_pass"),
        lowest_fail: ended.figure_if_any("/capacity/lowest_fail"),
        trials: trials.map_or(0, |trials| trials.len() as u64),
        seconds: started.elapsed().as_secs(),
        steal_percent: before.percent_since()?,
    };
    println!("{run:?}: {:?}", run.judge());
    Ok(run)
}

/// A responder that loses, doubles or reorders one of 10,000 messages.
pub(super) fn fault_run(
    lab: &Laboratory,
    extent: Extent,
    fault: Fault,
    qos: u8,
) -> Result<FaultRun> {
    wait_until_idle(extent.idle_wait_s);
    let wrong =
        ResponderOptions { fault: Some(fault), fault_every: 10_000, ..ResponderOptions::default() };
    let process = lab.responder(&wrong)?;
    let mut command = lab.command("run", &process);
    command.args(["--var=target_throughput=10000", "--ramp-up=500ms"]);
    command.args(["--var=publishers=100", "--var=subscribers=100"]);
    // Without a warm-up all messages are in the window whose deliveries are counted.
    command.arg(format!("--var=qos={qos}")).arg("--warmup=0s");
    command.arg(format!("--hold={}s", extent.fault_s));
    let ended = lab.run(command, extent.fault_s + 60)?;
    let step = |name: &str| ended.count(&format!("/steps/0/{name}"));
    let run = FaultRun {
        fault,
        verdict: ended.text("/verdict"),
        exit_code: ended.exit_code,
        lost: step("lost"),
        duplicates: step("duplicates"),
        out_of_order: step("out_of_order"),
        others: step("unexpected") + step("corrupted"),
        record: process.finish()?,
    };
    println!("{run:?}: {:?}", run.judge());
    Ok(run)
}
