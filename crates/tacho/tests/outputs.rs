//! `--out`: what services and files get of runs, ladders and hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tacho_testkit::http::{StubAnswer, StubService};
use tacho_testkit::runs::GUIDE_MEASUREMENTS;
use tacho_testkit::{runtime_folder, wait_until};

/// A load that any machine carries, of which no second counts as disturbed.
const SMALL: [&str; 15] = [
    "--tolerate",
    "steal=100%,others=100%,waiting=100%",
    "--var",
    "publishers=5",
    "--var",
    "subscribers=5",
    "--var",
    "ramp_up=100ms",
    "--var",
    "target_throughput=1000",
    "--warmup",
    "500ms",
    "--hold",
    "2s",
    "--quiet",
];

fn tacho(arguments: &[&str], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(arguments).args(more).stdin(Stdio::null()).env_remove("TACHO_OUT");
    command.output().expect("starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn summary(directory: &Path) -> Value {
    let text = fs::read_to_string(directory.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("is JSON")
}

/// The codes of a record's findings.
fn findings(record: &Value) -> Vec<&str> {
    let findings = record["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["code"].as_str()).collect()
}

/// A line of InfluxDB's protocol, apart; no name or value here has a special character.
#[derive(Debug)]
struct Line {
    measurement: String,
    tags: BTreeMap<String, String>,
    fields: BTreeMap<String, f64>,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let (key, fields) = (parts.next()?, parts.next()?);
        let mut key = key.split(',');
        let pair = |text: &str| {
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let measurement = key.next()?.to_owned();
        let fields = fields
            .split(',')
            .filter_map(pair)
            .filter_map(|(name, value)| Some((name, value.trim_end_matches('i').parse().ok()?)));
        Some(Self { measurement, tags: key.filter_map(pair).collect(), fields: fields.collect() })
    }

    fn has(&self, tag: &str, value: &str) -> bool {
        self.tags.get(tag).is_some_and(|known| known == value)
    }
}

fn lines(stub: &StubService) -> Vec<Line> {
    let requests = stub.requests();
    let bodies = requests.iter().map(|request| String::from_utf8_lossy(&request.body).into_owned());
    bodies.collect::<String>().lines().filter_map(Line::parse).collect()
}

/// Sum of a field over lines.
fn sum<'l>(lines: impl IntoIterator<Item = &'l Line>, field: &str) -> f64 {
    lines.into_iter().filter_map(|line| line.fields.get(field)).sum()
}

#[test]
fn influxdb_gets_the_counts_and_percentiles_of_the_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let stub = StubService::start([]);
    let out = format!("influxdb=http://{}/load?gzip=off", stub.address());
    let place = directory.to_str().expect("UTF-8");
    let output = tacho(&["run", "symmetric", "--out", &out, "--dir", place], &SMALL);
    let record = summary(&directory);
    assert!(!findings(&record).contains(&"output_lost"), "{record:#}\n{}", said(&output));
    let lines = lines(&stub);
    let step = &record["steps"][0];
    assert_ne!(step["disturbance"]["handling"], "left_out", "all seconds count");
    let of = |measurement: &'static str| {
        lines.iter().filter(move |line| line.measurement == measurement)
    };
    let run = record["name"].as_str().expect("a name");
    assert!(of("mqtt_load").count() > 3, "{lines:#?}");
    assert!(of("mqtt_load").all(|line| line.has("run", run) && line.has("scenario", "symmetric")));

    for (latency, stats) in [
        ("e2e_latency", &step["latency_us"]),
        ("service_latency", &step["service_us"]),
        ("send_delay", &step["send_delay_us"]),
        ("ack_latency", &step["ack_us"]),
    ] {
        let seconds = of("mqtt_load_latency")
            .filter(|line| line.has("latency", latency) && line.has("measured", "true"));
        let count = sum(seconds, "count");
        assert_eq!(Some(count), stats["count"].as_f64(), "{latency}: {stats}");
        assert!(count > 100.0, "{latency}");
        let whole: Vec<_> = of("mqtt_load_step_latency")
            .filter(|line| line.has("latency", latency) && line.has("window", "measured"))
            .collect();
        let [whole] = &whole[..] else { panic!("{latency}: {whole:#?}") };
        for (field, name) in [("p50_us", "p50"), ("p99_us", "p99"), ("max_us", "max")] {
            assert_eq!(whole.fields.get(field).copied(), stats[name].as_f64(), "{latency} {field}");
        }
    }
    let window_s = step["window_s"].as_f64().expect("a window");
    for (figure, rate) in [("published", "attempted_in_per_s"), ("received", "achieved_out_per_s")]
    {
        let counted = sum(of("mqtt_load").filter(|line| line.has("phase", "measure")), figure);
        let expected = step[rate].as_f64().expect("a rate") * window_s;
        assert!((counted - expected).abs() < 1.0, "{figure}: {counted}, {rate}: {expected}");
    }
    let hosts: BTreeSet<_> = of("tacho_host").filter_map(|line| line.tags.get("host")).collect();
    assert_eq!(hosts.len(), 1, "the broker's host is watched: {hosts:?}");
    // No tag has many values.
    let values = |tag: &str| -> BTreeSet<&String> {
        lines.iter().filter_map(|line| line.tags.get(tag)).collect()
    };
    let tags: BTreeSet<&String> = lines.iter().flat_map(|line| line.tags.keys()).collect();
    for tag in tags {
        let limit = if tag == "part" { 1_000 } else { 10 };
        assert!(values(tag).len() <= limit, "{tag} has {} values", values(tag).len());
    }
}

/// The objects of a file of JSON lines, by series, start and tags.
fn objects(path: &Path) -> BTreeMap<(String, u64, String), Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    objects
        .map(|object| {
            let series = object["series"].as_str().expect("a series").to_owned();
            let end_ms = object["end_ms"].as_u64().expect("a time");
            ((series, end_ms, format!("{}{}", object["tags"], object["kind"])), object)
        })
        .collect()
}

#[test]
fn points_that_are_sent_again_are_those_that_were_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let live = format!("json={}", path("live.jsonl"));
    let table = format!("csv={}", path("live.csv"));
    let directory = path("run");
    let outs = ["--out", &live, "--out", &table, "--dir", &directory];
    let output = tacho(&[&["run", "symmetric"], &outs[..]].concat(), &SMALL);
    let again = format!("json={}", path("again.jsonl"));
    let sent = tacho(&["report", &directory, "--out", &again], &[]);
    assert_eq!(sent.status.code(), Some(0), "{}{}", said(&output), said(&sent));
    let told = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(told.contains("again.jsonl took ") && !told.contains("refused"), "{told}");

    let (live, again) =
        (objects(Path::new(&path("live.jsonl"))), objects(Path::new(&path("again.jsonl"))));
    assert!(live.keys().eq(again.keys()), "{:#?} {:#?}", live.keys(), again.keys());
    assert!(live.keys().any(|(series, _, _)| series == "mqtt_load_group"), "groups too");
    let mut compared = 0;
    for (key, first) in live.iter().filter(|(key, _)| key.0.starts_with("mqtt_load")) {
        let Some(second) = again.get(key) else { continue };
        for field in ["start_ms", "phase", "measured", "text"] {
            assert_eq!(first[field], second[field], "{key:?}: {field}");
        }
        for (name, latency) in first["latencies"].as_object().into_iter().flatten() {
            assert_eq!(*latency, second["latencies"][name], "{key:?}: {name}");
            compared += 1;
        }
        for count in ["published", "received", "connects"] {
            assert_eq!(first["values"][count], second["values"][count], "{key:?}: {count}");
        }
    }
    assert!(compared > 10, "{compared} latencies");

    // The table has the columns of the run's own, and its rows.
    let rows = |path: String| -> Vec<String> {
        let text = fs::read_to_string(path).expect("reads");
        text.lines().map(str::to_owned).collect()
    };
    let (own, table) = (rows(format!("{directory}/timeseries.csv")), rows(path("live.csv")));
    assert_eq!(own.len(), table.len());
    assert_eq!(table[0], format!("{},end_ms,run,scenario,step,measured", own[0]));
    assert!(own.iter().zip(&table).all(|(own, row)| row.starts_with(own.as_str())));
}

#[test]
fn a_dead_service_is_a_finding_and_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let out = format!("influxdb=http://{}/load?rp=week", address.expect("a free port"));
    let place = directory.to_str().expect("UTF-8");
    let mut arguments = SMALL.to_vec();
    arguments.retain(|argument| *argument != "--quiet");
    let output = tacho(&["run", "symmetric", "--out", &out, "--dir", place], &arguments);
    let record = summary(&directory);
    assert_ne!(record["verdict"], "aborted", "{}", said(&output));
    let last = record["phases"].as_array().and_then(|phases| phases.last());
    assert_eq!(last.expect("phases")["name"], "disconnect", "it came to its end");
    let finding = record["findings"]
        .as_array()
        .and_then(|findings| findings.iter().find(|finding| finding["code"] == "output_lost"));
    let observation = &finding.expect("it is told")["observation"];
    assert!(observation["lost"].as_u64() > Some(10), "{observation}");
    assert_eq!(observation["lost"], observation["of"], "nothing arrived");
    let shown = out.split('?').next();
    assert_eq!(observation["output"].as_str(), shown, "without options");
    let told = said(&output);
    assert_eq!(told.matches("output influxdb=").count(), 1, "the first error is told once: {told}");
}

#[test]
fn a_failure_ends_the_run_where_the_target_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let answer = StubAnswer::new(404, "database not found");
    let stub = StubService::start(vec![answer; 1_000]);
    let out = format!("influxdb=http://{}/load?on-failure=end", stub.address());
    let place = directory.to_str().expect("UTF-8");
    // Long enough for the failure to come first, however slow the machine.
    let long = SMALL.map(|argument| if argument == "2s" { "60s" } else { argument });
    let output = tacho(&["run", "symmetric", "--out", &out, "--dir", place], &long);
    assert_eq!(output.status.code(), Some(105), "{}", said(&output));
    let record = summary(&directory);
    assert_eq!(record["verdict"], "aborted");
    assert_eq!(record["causes"][0]["kind"], "output_failed", "{}", record["causes"]);
    assert!(record["reasons"][0].to_string().contains("database not found"), "{record:#}");
}

#[test]
fn steps_of_a_ladder_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let out = format!("json={}", path("points.jsonl"));
    let directory = path("ladder");
    let steps = ["ladder", "symmetric", "payload_size=32,64", "--pause", "0s"];
    let output = tacho(&[&steps[..], &["--out", &out, "--dir", &directory]].concat(), &SMALL);
    let points = objects(Path::new(&path("points.jsonl")));
    assert_eq!(tags(&points, "run").len(), 1, "{}", said(&output));
    // A busy machine makes rows again, as steps of their own.
    let steps = tags(&points, "step");
    for size in ["32", "64"] {
        let label = format!("payload_size-{size}");
        assert!(steps.iter().any(|step| step.contains(&label)), "{label}: {steps:?}");
    }
    for step in &steps {
        let own = Path::new(&directory).join("steps").join(step);
        assert!(own.join("summary.json").is_file(), "{step} is a directory");
    }
    // Again, all steps that the record has.
    let again = format!("json={}", path("again.jsonl"));
    let sent = tacho(&["report", &directory, "--out", &again], &[]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    let again = objects(Path::new(&path("again.jsonl")));
    let steps_again = tags(&again, "step");
    assert!(steps_again.len() >= 2 && steps_again.is_subset(&steps), "{steps_again:?}");
    for (key, point) in again.iter().filter(|(key, _)| key.0 == "mqtt_load_step") {
        assert_eq!(points.get(key), Some(point));
    }
}

/// The values of a tag of the loads among the points.
fn tags(points: &BTreeMap<(String, u64, String), Value>, name: &str) -> BTreeSet<String> {
    let of_load = points.values().filter(|point| point["series"] == "mqtt_load");
    of_load.map(|point| point["tags"][name].as_str().unwrap_or("none").to_owned()).collect()
}

#[test]
fn a_watched_host_has_the_names_of_collectd() {
    let stub = StubService::start([]);
    let out = format!("influxdb=http://{}/collectd?schema=collectd&gzip=off", stub.address());
    let arguments = ["monitor", "--count", "3", "--interval", "200ms", "--quiet", "--out", &out];
    let output = tacho(&arguments, &[]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    assert!(output.stdout.is_empty(), "--quiet prints no rows");
    let lines = lines(&stub);
    let names: BTreeSet<&str> = lines.iter().map(|line| line.measurement.as_str()).collect();
    let wanted = BTreeSet::from(GUIDE_MEASUREMENTS);
    // Which of these there are depends on the disks of the machine.
    let more = BTreeSet::from([
        "contextswitch_value",
        "df_value",
        "disk_io_time",
        "disk_read",
        "disk_write",
        "protocols_value",
    ]);
    assert!(names.is_superset(&wanted), "{names:?}");
    let others: Vec<&&str> = names.difference(&wanted).filter(|one| !more.contains(*one)).collect();
    assert!(others.is_empty(), "{others:?}");
    let states: BTreeSet<&str> = lines
        .iter()
        .filter(|line| line.measurement == "cpu_value" && line.has("type", "percent"))
        .filter_map(|line| line.tags.get("type_instance").map(String::as_str))
        .collect();
    let wanted = ["idle", "interrupt", "nice", "softirq", "steal", "system", "user", "wait"];
    assert_eq!(states, wanted.into());
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("run");
    let place = directory.to_str().expect("UTF-8");
    for (out, words) in [
        ("influx=http://h/d", "there is no output 'influx'"),
        ("influxdb=http://h/d?token=sesame", "TACHO_OUT_INFLUXDB_TOKEN"),
        ("@/no/such/file", "/no/such/file"),
        ("json=/no/such/folder/x.jsonl", "/no/such/folder/x.jsonl"),
        ("otlp=http://h?token-file=/no/such/token", "/no/such/token"),
    ] {
        let output = tacho(&["run", "symmetric", "--out", out, "--dir", place], &SMALL);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(104), "{out}: {said}");
        assert!(said.contains(words) && !said.contains("sesame"), "{out}: {said}");
        assert!(!directory.exists(), "{out} left a directory");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["run", "symmetric", "--dir", place]).args(SMALL).env("TACHO_OUT", "json");
    let output = command.stdin(Stdio::null()).output().expect("starts");
    assert_eq!(output.status.code(), Some(104), "{}", said(&output));
    assert!(said(&output).contains("TACHO_OUT: 'json' has no '='"), "{}", said(&output));
}

#[test]
fn outputs_in_the_environment_are_used_where_the_arguments_have_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |name: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["monitor", "--count", "1", "--interval", "200ms", "--quiet"]).args(more);
        let out = format!(" json={}\n", path(name));
        let output = command.env("TACHO_OUT", out).stdin(Stdio::null()).output();
        let output = output.expect("starts");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    };
    run("of-environment.jsonl", &[]);
    assert_eq!(objects(Path::new(&path("of-environment.jsonl"))).len(), 1);
    let own = format!("json={}", path("own.jsonl"));
    run("unused.jsonl", &["--out", &own]);
    assert_eq!(objects(Path::new(&path("own.jsonl"))).len(), 1);
    assert!(!Path::new(&path("unused.jsonl")).exists());
}

/// A broker; killed when dropped.
struct RunningBroker(Child);

impl Drop for RunningBroker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a broker; with its address.
fn broker(arguments: &[&str]) -> (RunningBroker, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(["broker", "--listen", "127.0.0.1:0", "--shards", "2"]).args(arguments);
    command.env_remove("TACHO_OUT").stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let port = lines.find_map(|line| {
        let (_, rest) =
            line.ok()?.split_once("127.0.0.1:").map(|(a, b)| (a.len(), b.to_owned()))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u16>().ok()
    });
    std::thread::spawn(move || lines.for_each(drop));
    (RunningBroker(child), format!("127.0.0.1:{}", port.expect("it says where it listens")))
}

#[cfg(unix)]
#[test]
fn a_broker_sends_the_figures_of_its_metrics_page() {
    let stub = StubService::start([]);
    let out = format!("influxdb=http://{}/broker?gzip=off", stub.address());
    let (mut broker, address) = broker(&["--out", &out]);
    let mut client = TcpStream::connect(&address).expect("connects");
    client.write_all(b"\x10\x0e\0\x04MQTT\x04\x02\0\0\0\x02ab").expect("sends");
    client.read_exact(&mut [0; 4]).expect("a CONNACK");
    // Three messages of QoS 0.
    (0..3).for_each(|_| client.write_all(b"\x30\x04\0\x01tx").expect("sends"));
    let published = || {
        let lines = lines(&stub);
        let of = lines.iter().filter(|line| line.measurement == "tacho");
        sum(of.filter(|line| line.has("part", "qos\\=0")), "publishes_in")
    };
    wait_until("the messages are told", || published() >= 3.0);
    let pid = rustix::process::Pid::from_child(&broker.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is alive");
    let status = broker.0.wait().expect("ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(published(), 3.0, "each window has its own");
    let lines = lines(&stub);
    assert!(lines.iter().all(|line| line.measurement == "tacho"), "{lines:#?}");
    let tag = |name: &str| -> BTreeSet<&str> {
        lines.iter().filter_map(|line| line.tags.get(name).map(String::as_str)).collect()
    };
    assert_eq!(tag("shard"), ["0", "1"].into());
    let brokers = tag("broker");
    let port = address.split(':').nth(1).expect("a port");
    assert!(brokers.len() == 1 && brokers.iter().all(|name| name.ends_with(port)), "{brokers:?}");
    assert_eq!((tag("host").len(), tag("client").len()), (1, 0));
    for figure in ["uptime_seconds", "process_cpu_seconds", "turn_seconds_count", "sessions"] {
        assert!(lines.iter().any(|line| line.fields.contains_key(figure)), "no {figure}");
    }
}

#[test]
fn outputs_of_brokers_are_checked_and_may_stand_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broker.toml");
    fs::write(&file, "outputs = ['json=metrics.jsonl', 'otlp=http://h']\n").expect("writes");
    let file = file.to_str().expect("UTF-8");
    let check = |arguments: &[&str], environment: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["broker", "--check-config"]).args(arguments).env("TACHO_OUT", environment);
        command.stdin(Stdio::null()).output().expect("starts")
    };
    let shown = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let own = check(&["--config", file], "json=unused");
    let wanted = "outputs = [\"json=metrics.jsonl\", \"otlp=http://h\"]\n";
    assert!(shown(&own).contains(wanted), "{}{}", shown(&own), said(&own));
    let given = check(&["--config", file, "--out", "json=given"], "");
    assert!(shown(&given).contains("outputs = [\"json=given\"]\n"), "{}", shown(&given));
    let environment = check(&[], " json=one\n json=two ");
    assert!(shown(&environment).contains("outputs = [\"json=one\", \"json=two\"]\n"));
    for (out, words) in [
        ("csv=x", "csv=x is for runs"),
        ("influxdb=http://h/d?schema=jmeter", "is for runs"),
        ("json=x?on-failure=end", "is for runs"),
        ("influxdb=http://h/d?token=sesame", "TACHO_OUT_INFLUXDB_TOKEN"),
    ] {
        let output = check(&["--out", out], "");
        assert_eq!(output.status.code(), Some(104), "{out}: {}", said(&output));
        assert!(said(&output).contains(words) && !said(&output).contains("sesame"), "{out}");
    }
    let output = tacho(&["broker", "--listen", "127.0.0.1:0", "--out", "json=/no/such/x"], &[]);
    assert_eq!(output.status.code(), Some(104), "{}", said(&output));
    assert!(said(&output).contains("/no/such/x"), "{}", said(&output));
}
