//! What a broker sends to InfluxDB and Prometheus is what its metrics page has.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::broker::Broker;
use crate::influxdb::InfluxDb;
use crate::operations::get;
use crate::process::{PATIENCE, Peer, Running, free_port, wait_for_port};
use crate::prometheus::prometheus;
use crate::{TACHO, Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "influxdb_has_what_the_metrics_page_has".to_owned();
    trials.push(trial(name, &[Peer::InfluxDb], in_influxdb));
    let name = "prometheus_has_what_the_metrics_page_has".to_owned();
    trials.push(trial(name, &[Peer::Prometheus], in_prometheus));
}

/// Gauges that stay as they are while no client comes.
const STEADY: [&str; 4] =
    ["tacho_shards", "tacho_connections_max", "tacho_connections", "tacho_sessions"];

/// More than the time between two pushes: when the newest one is so much later than the page, the
/// one before it is, too, and has been stored as a whole.
const PUSH_S: f64 = 1.5;

/// Names and labels of the page, with the values that it has.
type Samples = BTreeMap<(String, String), f64>;

/// The metrics page at a time.
struct Page {
    /// Counters, and sums and counts of histograms: what only grows.
    growing: Samples,
    steady: Samples,
    uptime_s: f64,
}

impl Page {
    fn read(port: u16) -> Result<Self, Failed> {
        let text = get(port, "/metrics")?;
        let kind = |of: &'static str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
            lines.filter_map(|line| line.strip_suffix(of)).map(str::trim).collect::<Vec<_>>()
        };
        let (counters, histograms) = (kind(" counter"), kind(" histogram"));
        let (mut growing, mut steady, mut uptime_s) = (Samples::new(), Samples::new(), 0.0);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
            let value: f64 = value.parse()?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let key = (name.to_owned(), labels.trim_end_matches('}').replace('"', ""));
            let is_of_histogram = ["_sum", "_count"].into_iter().any(|ending| {
                name.strip_suffix(ending).is_some_and(|family| histograms.contains(&family))
            });
            if counters.contains(&name) || is_of_histogram {
                growing.insert(key, value);
            } else if STEADY.contains(&name) {
                steady.insert(key, value);
            } else if name == "tacho_uptime_seconds" {
                uptime_s = value;
            }
        }
        Ok(Self { growing, steady, uptime_s })
    }
}

/// The labels of a series of a service, as the page has them.
fn labels_of_page(shard: &str, part: &str) -> String {
    let shard = (!shard.is_empty()).then(|| format!("shard={shard}"));
    let part = (!part.is_empty()).then(|| part.to_owned());
    shard.into_iter().chain(part).collect::<Vec<_>>().join(",")
}

/// A load on a broker that sends its metrics; then `ask` says what the service has, and its uptime.
/// It must lie between the page before and the page after the question.
fn compare(out: &str, ask: impl Fn() -> Result<(Samples, f64), Failed>) -> Verdict {
    let metrics = free_port()?;
    let listen = format!("127.0.0.1:{metrics}");
    let broker = Broker::tacho_with(&["--metrics", &listen, "--out", out])?;
    wait_for_port(metrics)?;
    load(&broker)?;
    let before = Page::read(metrics)?;
    let mut tries = PATIENCE.as_millis() / 100;
    let found = loop {
        // A service may not have a point yet.
        match ask() {
            Ok((found, uptime_s)) if uptime_s >= before.uptime_s + PUSH_S => break found,
            Err(error) if tries == 0 => return Err(error),
            _ if tries == 0 => return Err("nothing newer than the page arrives".into()),
            _ => thread::sleep(Duration::from_millis(100)),
        }
        tries -= 1;
    };
    let after = Page::read(metrics)?;
    let mut complaints = Vec::new();
    for (key, least) in &before.growing {
        let most = after.growing.get(key).ok_or_else(|| format!("{key:?} is gone"))?;
        // Sums of parts of seconds are rounded.
        let slack = 1e-9 * most.abs();
        match found.get(key) {
            Some(value) if (least - slack..=most + slack).contains(value) => {}
            value => complaints.push(format!("{key:?} is {value:?}, not {least} to {most}")),
        }
    }
    for (key, value) in &before.steady {
        if found.get(key) != Some(value) {
            complaints.push(format!("{key:?} is {:?}, not {value}", found.get(key)));
        }
    }
    let published = |page: &Page| -> f64 {
        let of = page.growing.iter().filter(|((name, _), _)| name == "tacho_publishes_in_total");
        of.map(|(_, value)| value).sum()
    };
    if published(&before) < 500.0 || before.steady.len() < 6 || before.growing.len() < 100 {
        complaints.push(format!("little to compare: {:#?}", before.growing));
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// Clients that come, send and go.
pub(crate) fn load(broker: &Broker) -> Verdict {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(TACHO);
    command.args(["run", "symmetric", "--quiet", "--warmup", "500ms", "--hold", "2s"]);
    command.args(["--broker", &format!("mqtt://127.0.0.1:{}", broker.port)]);
    let variables = ["publishers=5", "subscribers=5", "target_throughput=500", "ramp_up=100ms"];
    command.args(variables.iter().flat_map(|variable| ["--var", variable]));
    command.arg("--dir").arg(folder.path().join("run"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Whether the machine was calm does not matter.
    Running::start(command)?.finish().map(drop)
}

/// There each window has what it added.
fn in_influxdb() -> Verdict {
    let folder = tempfile::tempdir()?;
    let influx = InfluxDb::start(folder.path(), "broker", "")?;
    let out = format!("influxdb=http://127.0.0.1:{}/broker", influx.port);
    let columns = |query: &str, prefix: &str| -> Result<Vec<(String, String, f64)>, Failed> {
        let mut found = Vec::new();
        for series in influx.series("broker", query)? {
            let tag = |name: &str| series["tags"][name].as_str().unwrap_or_default().to_owned();
            let labels = labels_of_page(&tag("shard"), &tag("part"));
            let names = series["columns"].as_array().into_iter().flatten();
            let cells = series["values"][0].as_array().into_iter().flatten();
            found.extend(names.zip(cells).filter_map(|(name, cell)| {
                let name = name.as_str()?.strip_prefix(prefix)?.to_owned();
                Some((name, labels.clone(), cell.as_f64()?))
            }));
        }
        Ok(found)
    };
    compare(&out, || {
        // Before the sums, which then are not older.
        let last = columns("SELECT last(*) FROM \"tacho\" GROUP BY \"shard\", \"part\"", "last_")?;
        let sums = columns("SELECT sum(*) FROM \"tacho\" GROUP BY \"shard\", \"part\"", "sum_")?;
        let mut samples = Samples::new();
        // Neither the end of a name nor what begins with the process is told from a field.
        for (name, labels, value) in sums {
            for page in [format!("tacho_{name}_total"), format!("{name}_total")] {
                samples.insert((page, labels.clone()), value);
            }
            samples.insert((format!("tacho_{name}"), labels), value);
        }
        let mut uptime_s = 0.0;
        for (name, labels, value) in last {
            let name = format!("tacho_{name}");
            if name == "tacho_uptime_seconds" {
                uptime_s = value;
            }
            if STEADY.contains(&name.as_str()) {
                samples.insert((name, labels), value);
            }
        }
        Ok((samples, uptime_s))
    })
}

/// There a counter is what it is on the page.
fn in_prometheus() -> Verdict {
    let folder = tempfile::tempdir()?;
    let (_running, port) = prometheus(folder.path(), "global: {}\n", &[])?;
    let out = format!("prometheus=http://127.0.0.1:{port}/api/v1/write?histograms=off");
    compare(&out, || {
        let query = "%7B__name__%3D~%22tacho_.%2B%22%7D";
        let answer = get(port, &format!("/api/v1/query?query={query}"))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let (mut samples, mut uptime_s) = (Samples::new(), 0.0);
        for one in answer["data"]["result"].as_array().ok_or("no answer")? {
            let label = |name: &str| one["metric"][name].as_str().unwrap_or_default();
            let value: f64 = one["value"][1].as_str().unwrap_or_default().parse()?;
            let labels = labels_of_page(label("shard"), label("part"));
            let name = label("__name__").to_owned();
            if name == "tacho_uptime_seconds" {
                uptime_s = value;
            }
            // The page has the process without the prefix.
            if let Some(of_process) = name.strip_prefix("tacho_process_") {
                samples.insert((format!("process_{of_process}"), labels.clone()), value);
            }
            samples.insert((name, labels), value);
        }
        Ok((samples, uptime_s))
    })
}
