//! Publishers and subscribers in pairs against any broker, from the command line: the smallest
//! complete use of the engine, and the measure of the generator's own cost.
//!
//! ```text
//! cargo run --release -p tacho-load --example pairs -- 127.0.0.1:1883 qos=1 rate=30000 cpu=1
//! cargo run --release -p tacho-load --example pairs -- 127.0.0.1:1883 pairs=100 window=16
//! ```
//! `timing=spin`, `timing=batch` and `timing=both` (sleep and spin) select how threads wait;
//! `subscribers=0` publishes only; `fan=10` has ten subscribers per publisher. `pid=` names the
//! broker's process, whose CPU time is printed with the generator's.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;

use tacho_codec::QoS;
use tacho_load::{
    CatchUp, Client, Engine, Event, Group, Histogram, Pace, Payload, Phase, PhaseKind, PhasePolicy,
    Plan, PublishBlock, Rate, Scale, Stream, Subscription, Timing,
};

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let target: SocketAddr =
        args.next().ok_or("usage: pairs HOST:PORT [name=value ..]")?.parse()?;
    let options = Options(
        args.filter_map(|arg| arg.split_once('=').map(|(k, v)| (k.into(), v.into()))).collect(),
    );
    let broker = options.number("pid", 0)?;
    let mut broker_cpu_ns = 0;
    let engine = Engine::start(plan(target, &options)?)?;
    for event in engine.events() {
        match event {
            Event::Phase { kind: PhaseKind::Measure, .. } => broker_cpu_ns = cpu_ns(broker),
            Event::Phase { kind: PhaseKind::Drain, .. } => {
                broker_cpu_ns = cpu_ns(broker) - broker_cpu_ns;
            }
            Event::Failed { client, why } | Event::Interrupted { client, why } => {
                println!("client {client}: {why}")
            }
            Event::Measured(totals) => print(&totals, broker_cpu_ns),
            Event::Finished(summary) => println!("{}", summary.end),
            Event::Phase { .. }
            | Event::Interval(_)
            | Event::ActionStarted { .. }
            | Event::ShareLost(_)
            | Event::Loading(_)
            | Event::TakenUp { .. } => {}
        }
    }
    Ok(())
}

/// The `name=value` arguments.
struct Options(HashMap<String, String>);

impl Options {
    fn number(&self, name: &str, default: u64) -> Result<u64, Failed> {
        self.0.get(name).map_or(Ok(default), |text| Ok(text.parse()?))
    }
}

fn plan(target: SocketAddr, options: &Options) -> Result<Plan, Failed> {
    let second = 1_000_000_000;
    let mut plan = Plan {
        run_id: std::process::id(),
        threads: options.number("threads", 1)? as usize,
        cpus: options.0.get("cpu").map(|cpu| cpu.parse()).transpose()?.into_iter().collect(),
        timing: match options.0.get("timing").map(String::as_str) {
            None | Some("sleep") => Timing::Sleep,
            Some("spin") => Timing::Spin,
            Some("batch") => Timing::Batch,
            Some("both") => Timing::SleepAndSpin,
            Some(other) => return Err(format!("timing is not {other}").into()),
        },
        targets: vec![target.into()],
        groups: groups(options)?,
        phases: vec![
            Phase::Connect { timeout_ns: 10 * second },
            Phase::Subscribe { timeout_ns: 10 * second },
            Phase::Probe { timeout_ns: 10 * second },
            Phase::WarmUp { duration_ns: second, scale: Scale::ONE },
            Phase::Measure {
                duration_ns: options.number("seconds", 3)? * second,
                scale: Scale::ONE,
            },
            Phase::Drain { timeout_ns: 2 * second },
            Phase::Disconnect,
        ],
        ..Plan::default()
    };
    plan.routes = plan.derive_routes();
    Ok(plan)
}

/// A group of publishers and a group of subscribers.
fn groups(options: &Options) -> Result<Vec<Group>, Failed> {
    let pairs = options.number("pairs", 1_000)?;
    let pace = match options.number("window", 0)? as u32 {
        0 => Pace::Open {
            rate: Rate::per_second_shared(options.number("rate", 10_000)?, pairs),
            phase: PhasePolicy::Uniform,
            catch_up: CatchUp::CatchUp,
        },
        window => Pace::Closed { window },
    };
    let group = |name: &str, publish, clients| Group {
        name: name.into(),
        connects_per_s: Some(5_000.0),
        inflight_max: 1_000,
        publish,
        clients,
        ..Group::default()
    };
    let publishers = (0..pairs).map(|i| Client {
        id: format!("pub-{i}"),
        streams: vec![Stream::new(format!("test/{i}"), 0)],
        ..Client::default()
    });
    // Zero subscribers make it a publish-only load.
    let subscribers = options.number("subscribers", pairs * options.number("fan", 1)?)?;
    let subscribers = (0..subscribers).map(|i| Client {
        id: format!("sub-{i}"),
        subscriptions: vec![Subscription::new(format!("test/{}", i % pairs), QoS::ExactlyOnce)],
        ..Client::default()
    });
    let qos = QoS::try_from(options.number("qos", 1)? as u8)?;
    let payload = Payload::Random { bytes: options.number("payload", 128)? as u32 };
    let block = PublishBlock { qos, retain: false, payload, pace };
    Ok(vec![
        group("publishers", vec![block], publishers.collect()),
        group("subscribers", Vec::new(), subscribers.collect()),
    ])
}

/// CPU time of all threads of a process; 0 if there is none.
fn cpu_ns(pid: u64) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    stats.sum()
}

fn print(totals: &tacho_load::Totals, broker_cpu_ns: u64) {
    let per_s = 1e9 / totals.len_ns as f64;
    let (sent, received) = (totals.counters.sent, totals.counters.received);
    println!(
        "offered {:.0}/s  in {:.0}/s  out {:.0}/s  TPS {:.0}  overrun {}  dropped {}",
        totals.counters.offered as f64 * per_s,
        sent as f64 * per_s,
        received as f64 * per_s,
        (sent + received) as f64 * per_s,
        totals.counters.overrun,
        totals.counters.dropped,
    );
    let delivery = totals.delivery;
    println!(
        "sent {}  received {}  lost {}  duplicates {}  out of order {}  violations {}  drained {}",
        delivery.sent,
        delivery.received,
        delivery.lost,
        delivery.duplicates,
        delivery.out_of_order,
        totals.violations.total(),
        totals.drained,
    );
    let line = |name: &str, h: &Histogram| {
        let q = |q| h.value_at_quantile(q);
        println!(
            "{name:>10} us: mean {:.0}  p50 {}  p99 {}  p99.9 {}  max {}",
            h.mean(),
            q(0.5),
            q(0.99),
            q(0.999),
            h.max()
        );
    };
    line("e2e", &totals.e2e);
    line("service", &totals.service);
    line("send delay", &totals.send_delay);
    line("ack", &totals.ack);
    let cpu_ns: u64 = totals.threads.iter().map(|usage| usage.cpu_ns).sum();
    println!(
        "generator: {:.1} % busy, {:.3} us CPU per message (in + out)",
        totals.threads.iter().map(tacho_load::ThreadUsage::busy).sum::<f64>() * 100.0,
        cpu_ns as f64 / 1e3 / (sent + received).max(1) as f64,
    );
    if broker_cpu_ns > 0 {
        println!(
            "broker: {:.3} us CPU per message; the generator takes {:.2} x as much",
            broker_cpu_ns as f64 / 1e3 / (sent + received).max(1) as f64,
            cpu_ns as f64 / broker_cpu_ns as f64,
        );
    }
}
