//! The dashboards and rules for PromQL, against a Prometheus that a run writes to and that scrapes
//! the run's broker.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use libtest_mimic::Failed;
use serde_json::Value;

use super::board::{Board, folder, is_absent_here, list};
use crate::Verdict;
use crate::broker::Broker;
use crate::operations::get;
use crate::process::{Peer, Running, free_port, wait_for_port, wait_until};
use crate::prometheus::{HISTOGRAMS, prometheus};

/// Metrics that are there only when something is wrong, or has happened.
const IN_TROUBLE: [&str; 3] = [
    "tacho_slow_client_bytes",
    "tacho_refused_connects_total",
    "tacho_disconnects_by_broker_total",
];

/// What promtool says about the rules, and that they are those of the documentation.
pub(super) fn rules() -> Verdict {
    let path = folder().join("alerts/prometheus-rules.yml");
    let mut command = Peer::Promtool.command()?;
    command.args(["check", "rules"]).arg(&path);
    Running::start(command)?.succeed()?;
    let text = fs::read_to_string(&path)?;
    let own: Vec<String> = expressions(&text);
    let plain = |text: &str| text.replace("{job=\"tacho\"}", "").replace(", job=\"tacho\"", "");
    let ours: Vec<String> = own.iter().map(|rule| plain(rule)).collect();
    let documented = documented()?;
    if ours != documented {
        return Err(format!("the rules {ours:#?}\nare not documented: {documented:#?}").into());
    }
    let grafana = fs::read_to_string(folder().join("provisioning/alerting/tacho.json"))?;
    let grafana: Value = serde_json::from_str(&grafana).map_err(|error| error.to_string())?;
    let rules = list(&grafana["groups"][0]["rules"]);
    let theirs: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule["data"][0]["model"]["expr"].as_str())
        .filter_map(|expr| Some(expr.strip_prefix("0 * (")?.strip_suffix(") + 1")?.to_owned()))
        .collect();
    if theirs != own {
        return Err(format!("Grafana's rules differ: {theirs:#?}").into());
    }
    Ok(())
}

/// The expressions of a file of rules.
fn expressions(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("expr: '"));
    lines.map(|line| line.trim_end_matches('\'').to_owned()).collect()
}

/// Those of the table of what to alert on.
fn documented() -> Result<Vec<String>, Failed> {
    let path = folder().join("../docs/operations.md");
    let text = fs::read_to_string(path)?;
    let (_, table) = text.split_once("## What to alert on").ok_or("no table")?;
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let when = rows.map(|row| row.split(" | ").next().unwrap_or_default());
    let expression = |cell: &str| {
        let parts: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        // A probe needs an exporter of its own.
        let parts = parts.into_iter().filter(|part| *part != "probe_success" && *part != "/livez");
        parts.collect::<Vec<_>>().join(" or ")
    };
    Ok(when.map(expression).collect())
}

/// A Prometheus with the rules, which scrapes a broker.
fn watching(folder_of_test: &Path, metrics: u16) -> Result<(Running, u16), Failed> {
    let rules = folder().join("alerts/prometheus-rules.yml").canonicalize()?;
    let config = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: ['{}']\n\
         scrape_configs:\n  - job_name: tacho\n    static_configs:\n      - targets: \
         ['127.0.0.1:{metrics}']\n",
        rules.display()
    );
    prometheus(folder_of_test, &config, &[HISTOGRAMS])
}

pub(super) fn all_have_series() -> Verdict {
    let place = tempfile::tempdir()?;
    let metrics = free_port()?;
    let listen = format!("127.0.0.1:{metrics}");
    let data = place.path().join("data");
    let data = data.to_str().ok_or("a name")?;
    let broker = Broker::tacho_with(&["--metrics", &listen, "--data-dir", data])?;
    wait_for_port(metrics)?;
    let (_running, port) = watching(place.path(), metrics)?;
    let service = Service { port, from_s: now_s() - 2.0 };
    let points = load(place.path(), &broker, port)?;
    // What is counted only since the clients went has two samples.
    wait_until("the broker's figures are not scraped", || {
        let ended = "rate(tacho_disconnects_by_clients_total{job=\"tacho\"}[4s])";
        service.ask(ended, false).is_ok_and(|found| found > 0)
    })?;
    let mut complaints = Vec::new();
    for board in Board::all_of("prometheus")? {
        let values = service.variables(&board)?;
        for asked in board.queries("expr")? {
            let query = service.filled(asked.query, &values);
            let found = service.ask(&query, asked.is_instant)?;
            let may_be_empty = IN_TROUBLE.iter().any(|name| query.contains(name))
                || is_absent_here(&query, &points);
            if found == 0 && !may_be_empty {
                complaints.push(format!("{}: no series for {query}", asked.place));
            }
        }
        for query in board.annotations("expr") {
            service.ask(&service.filled(query, &values), false)?;
        }
    }
    wait_until("the rules are not evaluated", || evaluated(port).is_some_and(|bad| bad.is_empty()))
        .map_err(|error| format!("{}: {:?}", error.message().unwrap_or(""), evaluated(port)))?;
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// The rules that failed; absent as long as some were not evaluated.
fn evaluated(port: u16) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_str(&get(port, "/api/v1/rules").ok()?).ok()?;
    let rules = list(&answer["data"]["groups"][0]["rules"]);
    let is_done = !rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown");
    let failed = rules.iter().filter(|rule| rule["health"] != "ok");
    is_done.then(|| failed.map(|rule| format!("{}: {}", rule["name"], rule["lastError"])).collect())
}

/// A load on the broker, sent to Prometheus and to a file; the text of the file.
fn load(folder: &Path, broker: &Broker, port: u16) -> Result<String, Failed> {
    let points = folder.join("points.jsonl");
    let mut command = Command::new(crate::TACHO);
    command.args(["run", "symmetric", "--quiet", "--warmup", "1s", "--hold", "5s"]);
    command.args(["--name", "Version 7", "--broker", &format!("mqtt://127.0.0.1:{}", broker.port)]);
    command.args(["--broker-pid", &broker.pid().to_string()]);
    command.args(["--tolerate", "steal=100%,others=100%,waiting=100%"]);
    let variables = ["publishers=10", "subscribers=10", "target_throughput=4000", "ramp_up=200ms"];
    command.args(variables.iter().flat_map(|variable| ["--var", variable]));
    command.args(["--out", &format!("prometheus=http://127.0.0.1:{port}")]);
    command.args(["--out", &format!("json={}", points.display())]);
    command.arg("--dir").arg(folder.join("run"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, said) = Running::start(command)?.finish()?;
    fs::read_to_string(points).map_err(|error| format!("{error}; {status}: {said:#?}").into())
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64())
}

/// Prometheus, and since when its figures count.
struct Service {
    port: u16,
    from_s: f64,
}

impl Service {
    /// How many series a query has that have a number.
    fn ask(&self, query: &str, is_instant: bool) -> Result<usize, Failed> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (from_s, to_s) = (self.from_s, now_s());
        let path = match is_instant {
            true => format!("/api/v1/query?query={encoded}&time={to_s:.3}"),
            false => format!(
                "/api/v1/query_range?query={encoded}&start={from_s:.3}&end={to_s:.3}&step=1"
            ),
        };
        let answer = get(self.port, &path)
            .map_err(|error| format!("{query}: {}", error.message().unwrap_or_default()))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let has_number = |series: &&Value| {
            let mut values = list(&series["values"]).iter().chain([&series["value"]]);
            values.any(|pair| pair[1].as_str().is_some_and(|value| value != "NaN"))
        };
        Ok(list(&answer["data"]["result"]).iter().filter(has_number).count())
    }

    /// What each variable stands for; each has a value.
    fn variables(&self, board: &Board) -> Result<BTreeMap<String, String>, Failed> {
        let mut values = BTreeMap::new();
        for (name, query, is_all) in board.variables() {
            let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (metric, label) =
                inner.and_then(|inner| inner.rsplit_once(", ")).ok_or_else(|| query.to_owned())?;
            let metric = self.filled(metric, &values);
            let query = format!("count by ({label}) (last_over_time({metric}[1h]))");
            if self.ask(&query, true)? == 0 {
                return Err(format!("{}: ${name} has no value: {query}", board.name).into());
            }
            let one = if name == "job" { "tacho" } else { "" };
            values.insert(name.to_owned(), if is_all { ".*" } else { one }.to_owned());
        }
        Ok(values)
    }

    /// The query with a value for each variable, as Grafana would fill it for a short time.
    fn filled(&self, query: &str, values: &BTreeMap<String, String>) -> String {
        let own = [("__rate_interval", "4s"), ("__interval", "5s"), ("__range", "5m")];
        let own = own.into_iter().chain([("interval", "5s")]);
        let filled = own.fold(query.to_owned(), |query, (name, value)| {
            query.replace(&format!("${name}]"), &format!("{value}]"))
        });
        values.iter().fold(filled, |query, (name, value)| {
            query.replace(&format!("\"${name}\""), &format!("\"{value}\""))
        })
    }
}
