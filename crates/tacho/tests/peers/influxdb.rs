//! InfluxDB takes what a run sends, and its answers are those of the run's record.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::process::{PATIENCE, Peer, Running, free_port, wait_for_port, wait_until};
use crate::sending::{Sent, run};
use crate::{Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let peers = [Peer::InfluxDb];
    trials.push(trial("influxdb_answers_as_the_record_does".to_owned(), &peers, answers));
    trials.push(trial("influxdb_takes_writes_of_version_2".to_owned(), &peers, version_2));
    trials.push(trial("influxdb_has_jmeters_schema".to_owned(), &peers, jmeter));
}

/// A server of its own; ends when dropped.
pub(crate) struct InfluxDb {
    _running: Option<Running>,
    pub(crate) port: u16,
}

impl InfluxDb {
    /// Starts it with its data in `folder` and an empty database; `more` are further sections of
    /// its configuration.
    pub(crate) fn start(folder: &Path, database: &str, more: &str) -> Result<Self, Failed> {
        let (port, backups) = (free_port()?, free_port()?);
        let base = folder.join("influxdb");
        fs::create_dir_all(&base)?;
        let base = base.display();
        let config = folder.join("influxdb.conf");
        let text = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:{backups}\"\n\
             [meta]\ndir = \"{base}/meta\"\n[data]\ndir = \"{base}/data\"\n\
             wal-dir = \"{base}/wal\"\n[monitor]\nstore-enabled = false\n\
             [http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n{more}"
        );
        fs::write(&config, text)?;
        let mut command = Peer::InfluxDb.command()?;
        command.arg("run").arg("-config").arg(&config);
        let server = Self { _running: Some(Running::start(command)?), port };
        wait_for_port(port)?;
        wait_until("InfluxDB is not ready", || server.ask("GET", "/ping").is_ok())?;
        server.command(&format!("CREATE DATABASE {database}"))?;
        Ok(server)
    }

    /// One that a script has started and will end.
    pub(crate) fn at(port: u16) -> Self {
        Self { _running: None, port }
    }

    /// Runs a statement that changes something.
    pub(crate) fn command(&self, statement: &str) -> Verdict {
        let (_, answer) = self.ask("POST", &format!("/query?q={}", encoded(statement)))?;
        match answer.contains("error") {
            true => Err(format!("{statement}: {answer}").into()),
            false => Ok(()),
        }
    }

    /// The series that a query yields: objects with `name`, `tags`, `columns` and `values`.
    pub(crate) fn series(&self, database: &str, query: &str) -> Result<Vec<Value>, Failed> {
        let path = format!("/query?db={database}&epoch=ms&q={}", encoded(query));
        let (_, answer) = self.ask("GET", &path)?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let result = &answer["results"][0];
        match (answer["error"].as_str(), result["error"].as_str()) {
            (None, None) => Ok(result["series"].as_array().cloned().unwrap_or_default()),
            _ => Err(format!("{query}: {answer}").into()),
        }
    }

    /// The columns behind the time of the only row that a query yields.
    pub(crate) fn row(&self, database: &str, query: &str) -> Result<Vec<f64>, Failed> {
        let series = self.series(database, query)?;
        match series.first().map(|one| (one["values"].as_array(), series.len())) {
            Some((Some(rows), 1)) if rows.len() == 1 => {
                let cells = rows[0].as_array().into_iter().flatten().skip(1);
                Ok(cells.map(|cell| cell.as_f64().unwrap_or(f64::NAN)).collect())
            }
            _ => Err(format!("{query} has {series:#?}").into()),
        }
    }

    /// The only number that a query yields.
    pub(crate) fn number(&self, database: &str, query: &str) -> Result<f64, Failed> {
        match self.row(database, query)?[..] {
            [number] => Ok(number),
            ref others => Err(format!("{query} has {others:?}").into()),
        }
    }

    /// Is it of version 1.8, with the writes of version 2?
    pub(crate) fn knows_version_2(&self) -> Result<bool, Failed> {
        let (head, _) = self.ask("GET", "/ping")?;
        let head = head.to_ascii_lowercase();
        Ok(head.contains("x-influxdb-version: 1.8") || head.contains("x-influxdb-version: v1.8"))
    }

    /// Head and body of an answer, which must say that all is well.
    fn ask(&self, method: &str, path: &str) -> Result<(String, String), Failed> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // Of HTTP 1.0, so that the answer is no sequence of chunks.
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        match status.starts_with('2') {
            true => Ok((head.to_owned(), body.trim().to_owned())),
            false => Err(answer.into()),
        }
    }
}

fn encoded(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Insists that a number is that of the record.
fn expect(what: &str, got: f64, wanted: Option<f64>) -> Verdict {
    match wanted {
        Some(wanted) if (got - wanted).abs() <= 1e-9 * wanted.abs() => Ok(()),
        _ => Err(format!("{what} is {got}, the record has {wanted:?}").into()),
    }
}

/// Counts and percentiles of the measured window are those of the record.
fn compare(influx: &InfluxDb, database: &str, sent: &Sent) -> Verdict {
    sent.all_arrived()?;
    let step = &sent.record["steps"][0];
    let run = sent.record["name"].as_str().ok_or("no name")?;
    for (latency, stats) in [
        ("e2e_latency", &step["latency_us"]),
        ("service_latency", &step["service_us"]),
        ("send_delay", &step["send_delay_us"]),
        ("ack_latency", &step["ack_us"]),
    ] {
        let of = format!("WHERE run = '{run}' AND latency = '{latency}'");
        let seconds = format!(
            "SELECT sum(\"count\") FROM mqtt_load_latency {of} AND measured = 'true' \
             AND \"window\" = '1s'"
        );
        let count = influx.number(database, &seconds)?;
        expect(&format!("the count of {latency}"), count, stats["count"].as_f64())?;
        let whole = format!(
            "SELECT p50_us, p90_us, p99_us, max_us FROM mqtt_load_step_latency {of} \
             AND \"window\" = 'measured'"
        );
        let figures = influx.row(database, &whole)?;
        for (name, got) in ["p50", "p90", "p99", "max"].into_iter().zip(figures) {
            expect(&format!("{name} of {latency}"), got, stats[name].as_f64())?;
        }
    }
    for count in ["published", "received", "connects"] {
        let query = format!("SELECT sum({count}) FROM mqtt_load WHERE run = '{run}'");
        expect(count, influx.number(database, &query)?, Some(sent.counted(count)))?;
    }
    Ok(())
}

fn answers() -> Verdict {
    let folder = tempfile::tempdir()?;
    let influx = InfluxDb::start(folder.path(), "load", "")?;
    let sent = run(folder.path(), &[&format!("influxdb=http://127.0.0.1:{}/load", influx.port)])?;
    compare(&influx, "load", &sent)?;
    // Groups, hosts and marks have measurements of their own; no tag has a value per client.
    for measurement in ["mqtt_load_group", "tacho_host", "mqtt_load_events"] {
        if influx.series("load", &format!("SELECT * FROM {measurement} LIMIT 1"))?.is_empty() {
            return Err(format!("{measurement} has nothing").into());
        }
    }
    let groups =
        influx.series("load", "SHOW TAG VALUES FROM mqtt_load_group WITH KEY = \"group\"")?;
    let groups = groups.first().and_then(|one| one["values"].as_array()).map_or(0, Vec::len);
    if groups != 2 {
        return Err(format!("{groups} groups, not publishers and subscribers").into());
    }
    // What is sent again is the same: no point is doubled.
    let run = folder.path().join("run").display().to_string();
    let points = "SELECT count(published) FROM mqtt_load";
    let before = influx.number("load", points)?;
    let mut command = std::process::Command::new(crate::TACHO);
    command.args(["report", &run, "--out"]);
    command.arg(format!("influxdb=http://127.0.0.1:{}/load", influx.port));
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Running::start(command)?.succeed()?;
    expect("points after a second sending", influx.number("load", points)?, Some(before))?;
    compare(&influx, "load", &sent)
}

/// With organisation and bucket, into a database with a retention policy.
fn version_2() -> Verdict {
    let folder = tempfile::tempdir()?;
    let influx = InfluxDb::start(folder.path(), "load", "")?;
    let at = format!("influxdb=http://127.0.0.1:{}", influx.port);
    influx.command("CREATE RETENTION POLICY short ON load DURATION 1d REPLICATION 1")?;
    let rp = format!("{at}/load?rp=short&gzip=off");
    if !influx.knows_version_2()? {
        let sent = run(folder.path(), &[&rp])?;
        influx.command("ALTER RETENTION POLICY short ON load DEFAULT")?;
        return compare(&influx, "load", &sent);
    }
    influx.command("CREATE DATABASE second")?;
    let bucket = format!("{at}?org=lab&bucket=second/autogen");
    let sent = run(folder.path(), &[&bucket, &rp])?;
    compare(&influx, "second", &sent)?;
    if !influx.series("load", "SELECT * FROM mqtt_load LIMIT 1")?.is_empty() {
        return Err("it is in the default retention policy".into());
    }
    influx.command("ALTER RETENTION POLICY short ON load DEFAULT")?;
    compare(&influx, "load", &sent)
}

/// Transactions of JMeter's dashboards add up to the counts of the run.
fn jmeter() -> Verdict {
    let folder = tempfile::tempdir()?;
    let influx = InfluxDb::start(folder.path(), "jmeter", "")?;
    let out = format!("influxdb=http://127.0.0.1:{}/jmeter?schema=jmeter", influx.port);
    let sent = run(folder.path(), &[&out])?;
    sent.all_arrived()?;
    let samplers = ["MQTT Connect", "MQTT Pub Sampler", "MQTT Sub Sampler"];
    let mut all = 0.0;
    // A message of QoS 1 is a sample when it is acknowledged.
    for (sampler, count) in samplers.into_iter().zip(["connects", "publish_acked", "received"]) {
        let query = format!(
            "SELECT sum(\"count\") FROM jmeter WHERE \"transaction\" = '{sampler}' \
             AND statut = 'all'"
        );
        let got = influx.number("jmeter", &query)?;
        expect(sampler, got, Some(sent.counted(count)))?;
        all += got;
    }
    let query = "SELECT sum(\"count\") FROM jmeter WHERE \"transaction\" = 'all'";
    expect("all transactions", influx.number("jmeter", query)?, Some(all))?;
    let started = influx.series("jmeter", "SELECT * FROM events")?;
    let marks = started.first().and_then(|one| one["values"].as_array()).map_or(0, Vec::len);
    expect("marks of start and end", marks as f64, Some(2.0))
}
