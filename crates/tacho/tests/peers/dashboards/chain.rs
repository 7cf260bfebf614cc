//! The chain of EMQX's guide as it is: Debian's collectd, InfluxDB's listener for it, the queries
//! of the guide's dashboard and of ours; and Tacho in the places of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;
use tacho_testkit::runs::GUIDE_MEASUREMENTS;

use super::board::{Board, folder, list};
use super::in_influxdb::{Service, now_ms};
use crate::Verdict;
use crate::influxdb::InfluxDb;
use crate::process::{Peer, Running, free_port, wait_until};

/// What the guide's dashboard asks: measurement, what of it, and conditions besides the host.
fn of_the_guide() -> Vec<(String, &'static str, String)> {
    let mean = "mean(\"value\")";
    let rate = "non_negative_derivative(mean(\"value\"), 10s) / 10";
    let states = ["nice", "user", "system", "idle", "steal", "interrupt", "softirq", "wait"];
    let kinds = ["used", "buffered", "cached", "free", "slab_recl", "slab_unrecl"];
    let instance = |name: &str| format!("\"type_instance\"::tag = '{name}'");
    let mut all = Vec::new();
    all.extend(states.map(|state| ("cpu_value".to_owned(), mean, instance(state))));
    all.extend(kinds.map(|kind| ("memory_value".to_owned(), mean, instance(kind))));
    all.extend(["rx", "tx"].map(|way| {
        let conditions = "\"type\"::tag = 'if_octets' AND \"instance\"::tag = 'lo'";
        (format!("interface_{way}"), rate, conditions.to_owned())
    }));
    all.extend(
        ["short", "mid", "long"]
            .map(|term| (format!("load_{term}term"), mean, "\"type\"::tag = 'load'".to_owned())),
    );
    all
}

/// The chain, set up by its script and removed with it.
struct Chain {
    folder: PathBuf,
    /// Of InfluxDB, of its listener, and of Tacho's.
    ports: [u16; 3],
}

impl Chain {
    fn up(folder: &Path) -> Result<Self, Failed> {
        let ports = [free_port()?, free_port()?, free_port()?];
        let chain = Self { folder: folder.join("chain"), ports };
        chain.script("up")?;
        Ok(chain)
    }

    fn script(&self, verb: &str) -> Result<Vec<String>, Failed> {
        let mut command = Command::new("sh");
        command.arg(folder().join("collectd/chain.sh")).arg(verb).arg(&self.folder);
        let [influx, listener, tacho] = self.ports.map(|port| port.to_string());
        command.env("INFLUXDB_PORT", influx).env("COLLECTD_PORT", listener);
        command.env("TACHO_PORT", tacho).env("INTERVAL", "1").env("HOST_NAME", "broker-9");
        command.env("INFLUXD", Peer::InfluxDb.find().ok_or("no influxd")?);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)?.succeed()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if self.folder.exists() {
            let _ = self.script("down");
        }
    }
}

pub(super) fn works() -> Verdict {
    let place = tempfile::tempdir()?;
    let chain = Chain::up(place.path())?;
    let influx = InfluxDb::at(chain.ports[0]);
    influx.command("CREATE DATABASE telegraf")?;
    let start_ms = now_ms();
    let record = load(place.path(), &chain)?;
    // What arrives in batches arrives a little later.
    wait_until("collectd's figures do not arrive", || {
        let newest = influx.series("collectd", "SELECT last(value) FROM load_shortterm");
        newest.is_ok_and(|found| {
            found.first().and_then(|one| one["values"][0][0].as_u64()) > Some(now_ms() - 5_000)
        })
    })?;
    for database in ["collectd", "telegraf"] {
        let service = Service { influx: &influx, database, window_ms: start_ms..now_ms() };
        all_are_there(&service)?;
    }
    agree(&influx, &record)?;
    stands_in(&chain, &influx)?;
    chain.script("status")?;
    chain.script("down")?;
    match chain.folder.exists() {
        true => Err("the chain left files".into()),
        false => Ok(()),
    }
}

/// `tacho monitor` stands in for Telegraf and the type database, by both kinds of writes.
fn stands_in(chain: &Chain, influx: &InfluxDb) -> Verdict {
    influx.command("CREATE DATABASE monitored")?;
    let at = format!("influxdb=http://127.0.0.1:{}", chain.ports[0]);
    let mut outs = vec![("monitored", format!("{at}/monitored?schema=collectd"))];
    if influx.knows_version_2()? {
        influx.command("CREATE DATABASE bucket")?;
        outs.push(("bucket", format!("{at}?org=lab&bucket=bucket/autogen&schema=collectd")));
    }
    let start_ms = now_ms();
    let mut command = Command::new(crate::TACHO);
    command.args(["monitor", &format!("collectd://127.0.0.1:{}", chain.ports[2])]);
    command.args(["--quiet", "--count", "6"]);
    command.args(outs.iter().flat_map(|(_, out)| ["--out", out]));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)?.succeed()?;
    for (database, _) in outs {
        all_are_there(&Service { influx, database, window_ms: start_ms..now_ms() })?;
    }
    Ok(())
}

/// A load that is watched by collectd and by Tacho's own monitor. The run also writes what collectd
/// sends as the listener's measurements.
fn load(folder: &Path, chain: &Chain) -> Result<Value, Failed> {
    let directory = folder.join("run");
    let source = format!("collectd://127.0.0.1:{}?host=broker-9", chain.ports[2]);
    let out = format!("influxdb=http://127.0.0.1:{}/telegraf?schema=collectd", chain.ports[0]);
    let mut command = Command::new(crate::TACHO);
    command.args(["run", "symmetric", "--quiet", "--warmup", "2s", "--hold", "12s"]);
    command.args(["--monitor", "local", "--monitor", &source, "--out", &out]);
    command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
    let variables = ["publishers=10", "subscribers=10", "target_throughput=2000", "ramp_up=200ms"];
    command.args(variables.iter().flat_map(|variable| ["--var", variable]));
    command.arg("--dir").arg(&directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    let text = fs::read_to_string(directory.join("summary.json"))
        .map_err(|error| format!("{error}; {status}: {said:#?}"))?;
    serde_json::from_str(&text).map_err(|error| error.to_string().into())
}

/// The guide's measurements, its dashboard's queries, and those of ours.
fn all_are_there(service: &Service<'_>) -> Verdict {
    let database = service.database;
    let found = service.influx.series(database, "SHOW MEASUREMENTS")?;
    let names = found.first().map_or_else(String::new, |one| one["values"].to_string());
    if let Some(missing) =
        GUIDE_MEASUREMENTS.iter().find(|name| !names.contains(&format!("\"{name}\"")))
    {
        return Err(format!("{database}: no {missing} in {names}").into());
    }
    for (measurement, what, conditions) in of_the_guide() {
        let query = format!(
            "SELECT {what} FROM \"autogen\".\"{measurement}\" WHERE ({conditions} AND \
             \"host\"::tag = 'broker-9') AND $timeFilter GROUP BY time($__interval) fill(null)"
        );
        if service.with_numbers(&query)? == 0 {
            return Err(format!("{database}: nothing for {query}").into());
        }
    }
    let board = Board::all_of("influxdb")?.into_iter().find(|one| one.name.contains("collectd"));
    // Sandboxes have no disks.
    let may_be_empty = |query: &str| query.contains("\"disk_") || query.contains("\"df_value\"");
    let complaints =
        service.complaints(&board.ok_or("no dashboard")?, |asked| may_be_empty(asked.query))?;
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(format!("{database}: {}", complaints.join("\n")).into()),
    }
}

/// collectd in InfluxDB against our monitor, over the measured window. They sample at other
/// moments: a second at either end of twelve may differ.
fn agree(influx: &InfluxDb, record: &Value) -> Verdict {
    let hosts = list(&record["steps"][0]["hosts"]);
    let local = hosts.iter().find(|host| host["source"] == "local").ok_or("no local host")?;
    let mean = |metric: &str, instance: Option<&str>| {
        let found = list(&local["metrics"])
            .iter()
            .find(|one| one["metric"] == metric && one["instance"].as_str() == instance);
        found
            .and_then(|one| one["mean"].as_f64())
            .ok_or_else(|| format!("no {metric} in {:#}", local["metrics"]))
    };
    let between = window(record)?;
    let one = |what: &str, from: &str| -> Result<f64, Failed> {
        influx.number("collectd", &format!("SELECT {what} FROM {from} AND {between}"))
    };
    let idle = one("mean(value)", "cpu_value WHERE type_instance = 'idle'")?;
    let used = one("mean(value)", "memory_value WHERE type_instance = 'used'")?;
    let short = one("mean(value)", "load_shortterm WHERE type = 'load'")?;
    let received = "interface_rx WHERE type = 'if_octets' AND instance = 'lo'";
    let query = format!("SELECT value FROM {received} AND {between}");
    let bytes_per_s = growth_per_s(&influx.series("collectd", &query)?)?;
    let total = mean("memory_total_bytes", None)?;
    let rate = mean("net_rx_bytes_per_s", Some("lo"))?;
    let compared = [
        ("CPU, 1 - idle, percent", 100.0 - idle, mean("cpu_not_idle_percent", None)?, 20.0),
        ("memory used, bytes", used, mean("memory_used_bytes", None)?, total * 0.05),
        ("load, 1 minute", short, mean("load_1m", None)?, 2.0),
        ("loopback, bytes per second", bytes_per_s, rate, rate * 0.35 + 50_000.0),
    ];
    let mut complaints = Vec::new();
    for (what, theirs, ours, tolerance) in compared {
        println!("{what}: collectd {theirs:.1}, ours {ours:.1}");
        if (theirs - ours).abs() > tolerance {
            complaints.push(format!("{what}: collectd {theirs}, ours {ours}"));
        }
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// How fast a counter grows between its first and its last sample: by their times, since collectd
/// may leave out a sample.
fn growth_per_s(series: &[Value]) -> Result<f64, Failed> {
    let rows = series.first().map(|one| list(&one["values"])).unwrap_or_default();
    let at = |row: Option<&Value>| {
        let row = row?;
        Some((row[0].as_f64()? / 1e3, row[1].as_f64()?))
    };
    match (at(rows.first()), at(rows.last())) {
        (Some((from_s, first)), Some((to_s, last))) if to_s > from_s => {
            Ok((last - first) / (to_s - from_s))
        }
        _ => Err(format!("no growth in {series:?}").into()),
    }
}

/// The measured window as a condition.
fn window(record: &Value) -> Result<String, Failed> {
    let phases = list(&record["phases"]);
    let measure = phases.iter().find(|phase| phase["name"] == "measure").ok_or("no window")?;
    let started = record["started_at"].as_str().ok_or("no start")?;
    let start_s = measure["start_s"].as_f64().ok_or("no start of the window")?;
    let end_s = start_s + record["steps"][0]["window_s"].as_f64().ok_or("no length")?;
    let at = |seconds: f64| format!("'{started}' + {}ms", (seconds * 1e3).round());
    Ok(format!("time >= {} AND time <= {}", at(start_s), at(end_s)))
}

/// Where the guide's own dashboard is at hand, its queries are those above.
pub(super) fn guides_queries(path: &Path) -> Verdict {
    let text = fs::read_to_string(path)?;
    let board: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let targets = list(&board["panels"]).iter().flat_map(|panel| list(&panel["targets"]));
    let of_data = targets.filter(|target| target["measurement"].is_string());
    let theirs: Vec<(String, String)> = of_data
        .map(|target| {
            let tags = list(&target["tags"]).iter();
            let others =
                tags.filter(|tag| tag["key"] != "host::tag" && tag["key"] != "instance::tag");
            let values = others.filter_map(|tag| tag["value"].as_str());
            let value = values.collect::<Vec<_>>().join(" ");
            (target["measurement"].as_str().unwrap_or_default().to_owned(), value)
        })
        .collect();
    let ours: Vec<(String, String)> = of_the_guide()
        .into_iter()
        .map(|(measurement, _, conditions)| {
            let value = conditions.split('\'').nth(1).unwrap_or_default().to_owned();
            (measurement, value)
        })
        .collect();
    match theirs == ours {
        true => Ok(()),
        false => Err(format!("the guide asks {theirs:#?}").into()),
    }
}
