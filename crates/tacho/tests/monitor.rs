//! `tacho monitor` and `tacho run --monitor` as a user meets them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tacho_testkit::http::StubService;
use tacho_testkit::runs::{GUIDE_MEASUREMENTS, assert_code};
use tacho_testkit::{runtime_folder, wait_until};

const TOKEN: &str = "a token of the tests";

fn tacho(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.args(arguments).env_remove("TACHO_MONITOR_TOKEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(mut command: Command) -> Output {
    command.output().expect("starts")
}

/// `tacho monitor --listen` on a free port, stopped when dropped.
struct Agent {
    child: Child,
    address: String,
    said: String,
}

impl Agent {
    fn start(mut command: Command, made_up: bool) -> Self {
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        lines.read_line(&mut said).expect("a line");
        let address = said
            .strip_prefix("listening on ")
            .and_then(|rest| rest.split(';').next())
            .unwrap_or_else(|| panic!("no address in {said:?}"))
            .to_owned();
        if made_up {
            lines.read_line(&mut said).expect("a line");
        }
        child.stderr = Some(lines.into_inner());
        Self { child, address, said }
    }

    fn of_token() -> Self {
        let mut command = tacho(&["monitor", "--listen", "127.0.0.1:0"]);
        command.env("TACHO_MONITOR_TOKEN", TOKEN);
        Self::start(command, false)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json_lines(output: &Output) -> Vec<serde_json::Value> {
    let said = text(&output.stdout);
    said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_is_shown_as_table_and_as_json() {
    let table = output(tacho(&["monitor", "--interval", "100ms", "--count", "2"]));
    let said = text(&table.stdout);
    assert!(table.status.success(), "{said} {}", text(&table.stderr));
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.contains("busy%"), "{said}");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port().to_string();
    let arguments =
        ["monitor", "--json", "--interval", "100ms", "--count", "2", "--port", port.as_str()];
    let json = output(tacho(&arguments));
    let rows = json_lines(&json);
    assert_eq!(rows.len(), 2, "{}", text(&json.stderr));
    assert!(rows[0]["cpu"]["idle"].is_number());
    assert_eq!(rows[1]["processes"][0]["pid"], std::process::id());
}

#[test]
#[cfg(target_os = "linux")]
fn the_doctor_examines_the_brokers_host_by_its_agent() {
    let agent = Agent::of_token();
    let source = format!("agent://{}", agent.address);
    let doctor = |arguments: &[&str]| {
        let mut command =
            tacho(&[&["doctor", "symmetric", "--monitor", &source], arguments].concat());
        command.env("TACHO_MONITOR_TOKEN", TOKEN);
        output(command)
    };
    let shown = doctor(&[]);
    let said = text(&shown.stdout);
    assert!(matches!(shown.status.code(), Some(0 | 99)), "{said} {}", text(&shown.stderr));
    assert!(said.contains("\nThe broker's host, "), "{said}");
    let lines = said.lines().filter(|line| line.starts_with("net.core.somaxconn "));
    assert_eq!(lines.count(), 2, "{said}");
    let json = doctor(&["--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).expect("is JSON");
    let rows = rows.as_array().expect("rows");
    let there = rows.iter().filter(|row| row["host"].is_string()).count();
    assert_eq!(there * 2, rows.len(), "as many as here");
    // It is the same machine: what both know is the same.
    let value = |there: bool| {
        let row = rows
            .iter()
            .find(|row| row["name"] == "fs.file-max" && row["host"].is_string() == there);
        row.expect("a row")["current"].clone()
    };
    assert_eq!(value(true), value(false));

    let refused = output(tacho(&["doctor", "--monitor", "local"]));
    assert_eq!(refused.status.code(), Some(104));
    assert!(text(&refused.stderr).contains("tacho monitor --listen"), "{}", text(&refused.stderr));
}

/// What `/metrics` of a process has, as soon as it has figures of a host.
#[cfg(target_os = "linux")]
fn scraped(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let said = lines.next().expect("a line").expect("reads");
    let url = said.strip_prefix("metrics at ").unwrap_or_else(|| panic!("no address in {said:?}"));
    let address = url.trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
    let mut text = String::new();
    wait_until("there are figures", || {
        let mut stream = TcpStream::connect(&address).expect("listens");
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("takes it");
        text.clear();
        stream.read_to_string(&mut text).expect("answers");
        text.contains("tacho_host_cpu_")
    });
    text
}

#[test]
#[cfg(target_os = "linux")]
fn figures_are_scraped_with_and_without_an_agent() {
    let shown = ["monitor", "--metrics", "127.0.0.1:0", "--interval", "100ms", "--quiet"];
    let agent = ["monitor", "--metrics", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    for arguments in [&shown[..], &agent] {
        let mut command = tacho(arguments);
        command.env("TACHO_MONITOR_TOKEN", TOKEN);
        let mut child = command.spawn().expect("starts");
        let text = scraped(&mut child);
        let _ = child.kill();
        let _ = child.wait();
        assert!(text.contains("\ntacho_monitor_hosts 1\n"), "{text}");
        for line in text.lines().filter(|line| line.starts_with("tacho_host_")) {
            let (series, value) = line.rsplit_once(' ').expect("two words");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(series.contains("{host=\""), "{line}");
            let name = series.split('{').next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} gauge\n")), "{line}");
        }
    }
    let remote = output(tacho(&["monitor", "--metrics", "0.0.0.0:0"]));
    assert_eq!(remote.status.code(), Some(104));
    assert!(text(&remote.stderr).contains("--metrics-allow-remote"), "{}", text(&remote.stderr));
}

#[test]
fn nonsense_is_named_with_exit_codes() {
    // A run that fails here leaves its directory where it was started.
    let folder = tempfile::tempdir().expect("temporary directory");
    let fails = |arguments: &[&str], code: i32, words: &[&str]| {
        let mut command = tacho(arguments);
        command.current_dir(folder.path());
        let output = output(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
        }
    };
    fails(&["monitor", "ftp://a"], 1, &["ftp", "agent"]);
    fails(&["monitor", "--interval", "1ms"], 1, &["100ms"]);
    fails(&["monitor", "--listen", "127.0.0.1:0", "--json"], 1, &["--json"]);
    fails(&["monitor", "--listen", "0.0.0.0:0"], 104, &["TACHO_MONITOR_TOKEN"]);
    fails(&["monitor", "--listen", "127.0.0.1:0", "--token-file", "/no/file"], 104, &["/no/file"]);
    fails(&["monitor", "agent://127.0.0.1:1"], 104, &["TACHO_MONITOR_TOKEN"]);
    let limited = ["run", "symmetric", "--network-limit"];
    fails(&[&limited[..], &["8GB"]].concat(), 1, &["'8GB'", "8Gbit/s"]);
    let unknown = [&limited[..], &["node1=1kpps"]].concat();
    fails(&unknown, 104, &["--network-limit node1=..."]);
    fails(&["monitor", "collectd://127.0.0.1:0", "--pid", "1"], 104, &["its own processes"]);
    let port =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let silent = format!("agent://127.0.0.1:{port}?token=0123456789abcdef");
    fails(&["run", "symmetric", "--monitor", &silent], 104, &["tacho monitor --listen"]);
    fails(&["run", "symmetric", "--monitor", "a=local"], 104, &["no named targets"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_token_is_made_up_on_loopback_and_lets_in() {
    let agent = Agent::start(tacho(&["monitor", "--listen", "127.0.0.1:0"]), true);
    let (_, token) = agent.said.rsplit_once(": ").expect("a token is shown");
    let source = format!("agent://{}", agent.address);
    let mut command = tacho(&["monitor", &source, "--json", "--count", "1"]);
    command.env("TACHO_MONITOR_TOKEN", token.trim());
    let output = output(command);
    let rows = json_lines(&output);
    assert_eq!(rows.len(), 1, "{}", text(&output.stderr));
    assert!(rows[0]["clock_error_ns"].as_u64() > Some(0));
}

/// The broker's own endpoint is a source like any other.
#[test]
#[cfg(target_os = "linux")]
fn the_broker_tells_about_its_process() {
    let mut broker = tacho(&["broker", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(broker.stderr.take().expect("piped")).lines();
    let url = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("metrics at ").map(|(_, url)| url.trim().to_owned()));
    let source = format!("prometheus+{}", url.expect("the broker says where"));
    let shown = output(tacho(&["monitor", &source, "--json", "--count", "1"]));
    let _ = broker.kill();
    let _ = broker.wait();
    let rows = json_lines(&shown);
    let process = &rows[0]["processes"][0];
    for figure in ["rss_bytes", "threads", "descriptors"] {
        assert!(process[figure].as_u64() > Some(0), "{figure}: {rows:?} {}", text(&shown.stderr));
    }
    assert!(process["cpu_percent"].is_number(), "{process}");
}

fn run(arguments: &[&str], directory: &Path) -> Command {
    let mut command = tacho(&["run", "symmetric", "--quiet"]);
    let vars =
        ["publishers=5", "subscribers=5", "target_throughput=50", "ramp_up=100ms", "warmup=200ms"];
    for var in vars {
        command.args(["--var", var]);
    }
    command.args(arguments).arg("--dir").arg(directory).env("TACHO_MONITOR_TOKEN", TOKEN);
    command
}

fn summary(directory: &Path) -> serde_json::Value {
    let text = fs::read_to_string(directory.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("is JSON")
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_records_the_resource_use_of_its_hosts() {
    let agent = Agent::of_token();
    let folder = tempfile::tempdir().expect("temporary directory");
    let directory = folder.path().join("run");
    let source = format!("agent://{}", agent.address);
    let source_with_data = format!("{source}?data-dir={}", folder.path().display());
    let limit = ["--network-limit", "8Gbit/s,800kpps"];
    let ran = ["--monitor", &source_with_data, "--var", "duration=4s"];
    let ran = output(run(&[&ran[..], &limit].concat(), &directory));
    let summary = summary(&directory);
    assert_code(ran.status.code(), &summary, &[]);
    let hosts = summary["steps"][0]["hosts"].as_array().expect("hosts");
    let of = |source: &str| {
        hosts.iter().find(|host| host["source"] == source).unwrap_or_else(|| panic!("{hosts:?}"))
    };
    for host in [of("local"), of(&source)] {
        let metrics = host["metrics"].as_array().expect("metrics");
        let cpu = metrics.iter().find(|m| m["metric"] == "cpu_not_idle_percent").expect("CPU");
        let figure = |name: &str| cpu[name].as_f64().expect("a number");
        assert!(figure("min") <= figure("mean") && figure("mean") <= figure("max"), "{cpu}");
        assert!((0.0..=100.0).contains(&figure("mean")), "{cpu}");
    }
    let target = &summary["targets"][0];
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    assert_eq!(target["host"]["kernel"], kernel.trim(), "as the agent describes it: {target}");
    assert!(target["host"]["data_disk"]["file_system"].is_string(), "{target}");
    let limit = serde_json::json!({ "bits_per_s": 8_000_000_000_u64, "packets_per_s": 800_000 });
    assert_eq!(target["network_limit"], limit);
    let page = fs::read_to_string(directory.join("report.html")).expect("a report");
    assert!(page.contains("Host of the broker") && page.contains("8000 Mbit/s"));
    let broker = of("local")["metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .find(|metric| metric["metric"] == "process_cpu_percent");
    assert!(broker.is_some(), "the built-in broker's process: {hosts:?}");
    assert_ne!(of("local")["host"], of(&source)["host"], "two sources of one host are told apart");
    let monitors = summary["monitors"].as_array().expect("monitors");
    assert_eq!(monitors.len(), 2);
    assert!(!summary.to_string().contains(TOKEN));
    let csv = fs::read_to_string(directory.join("resources.csv")).expect("resources");
    assert!(csv.starts_with("at_s,length_s,host,target,source,metric,instance,value\n"), "{csv}");
    let seconds: Vec<f64> = csv
        .lines()
        .filter(|line| line.contains(&source) && line.contains(",load_1m,"))
        .filter_map(|line| line.split(',').next()?.parse().ok())
        .collect();
    let elapsed = summary["elapsed_s"].as_f64().expect("a number") + 2.0;
    assert!(seconds.len() >= 3, "{csv}");
    assert!(seconds.iter().all(|at_s| (-2.0..elapsed).contains(at_s)), "{seconds:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_dies_is_told_and_the_run_goes_on() {
    let mut agent = Agent::of_token();
    let folder = tempfile::tempdir().expect("temporary directory");
    let directory = folder.path().join("run");
    let source = format!("agent://{}", agent.address);
    let mut command = run(&["--monitor", &source, "--var", "duration=6s"], &directory);
    let mut running = command.spawn().expect("starts");
    let resources = directory.join("resources.csv");
    wait_until("the run begins", || fs::read_to_string(&resources).is_ok());
    agent.child.kill().expect("is killed");
    let status = running.wait().expect("ends");
    let summary = summary(&directory);
    assert_code(status.code(), &summary, &[]);
    let codes: Vec<&str> = summary["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert!(codes.contains(&"monitor_gap") && codes.contains(&"monitor_error"), "{summary}");
    let findings = summary["findings"].to_string();
    assert!(findings.contains(&source), "{findings}");
}

const TWO_BROKERS: &str = r#"
name = "two"
[targets.node1]
[targets.node2]

[groups.pub1]
target = "node1"
clients = 2
client_id = "p1_{{i}}"
[[groups.pub1.publish]]
topic = "one/{{i}}"
qos = 1
rate = { total = 20 }
payload = { size = 64 }
[groups.sub1]
target = "node1"
clients = 2
client_id = "s1_{{i}}"
[[groups.sub1.subscribe]]
filter = "one/{{i}}"
qos = 1

[groups.pub2]
target = "node2"
clients = 2
client_id = "p2_{{i}}"
[[groups.pub2.publish]]
topic = "two/{{i}}"
qos = 1
rate = { total = 20 }
payload = { size = 64 }
[groups.sub2]
target = "node2"
clients = 2
client_id = "s2_{{i}}"
[[groups.sub2.subscribe]]
filter = "two/{{i}}"
qos = 1

[phases]
warmup = "200ms"
measure = "4s"
"#;

#[test]
#[cfg(target_os = "linux")]
fn two_brokers_have_rows_of_their_own() {
    let agents = [Agent::of_token(), Agent::of_token()];
    let folder = tempfile::tempdir().expect("temporary directory");
    let directory = folder.path().join("run");
    let scenario = folder.path().join("two.toml");
    fs::write(&scenario, TWO_BROKERS).expect("a scenario");
    let mut command = tacho(&["run", &scenario.to_string_lossy(), "--quiet"]);
    for (agent, name) in agents.iter().zip(["node1", "node2"]) {
        command.arg("--monitor").arg(format!("{name}=agent://{}", agent.address));
    }
    command.arg("--dir").arg(&directory).env("TACHO_MONITOR_TOKEN", TOKEN);
    let ran = output(command);
    let summary = summary(&directory);
    assert_code(ran.status.code(), &summary, &[]);
    let hosts = summary["steps"][0]["hosts"].as_array().expect("hosts");
    for (agent, name) in agents.iter().zip(["node1", "node2"]) {
        let host = hosts.iter().find(|host| host["target"] == name).expect("its host");
        assert_eq!(host["source"], format!("agent://{}", agent.address));
        assert!(host["samples"].as_u64() >= Some(2), "{host}");
    }
    // Both brokers run here, and their processes are named after them.
    let csv = fs::read_to_string(directory.join("resources.csv")).expect("resources");
    let processes: std::collections::BTreeSet<&str> = csv
        .lines()
        .filter(|line| line.contains(",local,process_cpu_percent,"))
        .filter_map(|line| line.split(',').nth(6))
        .collect();
    let mut names: Vec<&str> =
        processes.iter().filter_map(|process| process.split(' ').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["node1", "node2"], "{processes:?}");
    for target in summary["steps"][0]["targets"].as_array().expect("targets") {
        assert!(target["broker_cpu_percent"].is_number(), "{target}");
        assert!(target["host_cpu_percent"].is_number(), "{target}");
        assert!(target["cpu_percent"].is_number(), "{target}");
    }
}

/// A packet of collectd's network protocol, built part by part.
#[derive(Default)]
struct CollectdPacket(Vec<u8>);

/// A value of it: a gauge, or a counter that grows.
enum CollectdValue {
    Gauge(f64),
    Derive(i64),
}

impl CollectdPacket {
    fn part(&mut self, kind: u16, body: &[u8]) {
        let length = u16::try_from(body.len() + 4).expect("a short body");
        self.0.extend(kind.to_be_bytes());
        self.0.extend(length.to_be_bytes());
        self.0.extend(body);
    }

    fn text(&mut self, kind: u16, text: &str) {
        self.part(kind, &[text.as_bytes(), b"\0"].concat());
    }

    /// The values of `plugin`, `instance`, `type` and `type instance`.
    fn values(&mut self, names: [&str; 4], values: &[CollectdValue]) {
        for (kind, name) in [2, 3, 4, 5].into_iter().zip(names) {
            self.text(kind, name);
        }
        let mut body = u16::try_from(values.len()).expect("few").to_be_bytes().to_vec();
        body.extend(values.iter().map(|value| match value {
            CollectdValue::Gauge(_) => 1,
            CollectdValue::Derive(_) => 2,
        }));
        body.extend(values.iter().flat_map(|value| match value {
            CollectdValue::Gauge(value) => value.to_le_bytes(),
            CollectdValue::Derive(value) => value.to_be_bytes(),
        }));
        self.part(6, &body);
    }

    /// What the guide's collectd sends in the second of that number.
    fn of_the_guide(second: u32) -> Self {
        use CollectdValue::{Derive, Gauge};
        let mut packet = Self::default();
        packet.text(0, "broker-9");
        let time = (1_700_000_000 + u64::from(second)) << 30;
        packet.part(8, &time.to_be_bytes());
        packet.part(9, &(1_u64 << 30).to_be_bytes());
        let states = ["user", "system", "wait", "nice", "interrupt", "softirq", "steal", "idle"];
        for (state, percent) in states.into_iter().zip([5.5, 2.0, 1.0, 0.5, 0.25, 0.25, 0.5, 90.0])
        {
            packet.values(["cpu", "", "percent", state], &[Gauge(percent)]);
        }
        let kinds = ["used", "buffered", "cached", "free", "slab_recl", "slab_unrecl"];
        for (kind, bytes) in kinds.into_iter().zip([4e9, 1e8, 2e9, 9e9, 3e7, 2e7]) {
            packet.values(["memory", "", "memory", kind], &[Gauge(bytes)]);
        }
        packet.values(["load", "", "load", ""], &[Gauge(1.25), Gauge(0.75), Gauge(0.5)]);
        let grown = |per_s: i64| Derive(7_000_000 + per_s * i64::from(second));
        packet.values(["interface", "eth0", "if_octets", ""], &[grown(1_000), grown(500)]);
        packet.values(["interface", "eth0", "if_packets", ""], &[grown(10), grown(5)]);
        packet
    }
}

/// The lines that a service got, of all writes.
fn lines_of(stub: &StubService) -> Vec<String> {
    let bodies = stub.requests().into_iter().map(|request| text(&request.body));
    bodies.flat_map(|body| body.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// It stands in for Telegraf and collectd's type database, by both kinds of writes.
#[test]
fn what_collectd_sends_is_passed_on_by_the_names_of_the_guide() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "sesame\n").expect("writes");
    let (first, second) = (StubService::start([]), StubService::start([]));
    let outs = [
        format!("influxdb=http://{}/collectd?schema=collectd&gzip=off", first.address()),
        format!(
            "influxdb=http://{}?org=lab&bucket=collectd&token-file={}&schema=collectd&gzip=off",
            second.address(),
            token.display()
        ),
    ];
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let mut command = tacho(&["monitor", &format!("collectd://{free}"), "--quiet"]);
    command.args(["--count", "3", "--out", &outs[0], "--out", &outs[1]]).env_remove("TACHO_OUT");
    let mut child = command.spawn().expect("starts");
    // Packets from before it listens are lost: it gets as many as it wants.
    let mut seconds = 0..;
    wait_until("it has its rows", || {
        let packet = CollectdPacket::of_the_guide(seconds.next().expect("endless"));
        let _ = socket.send_to(&packet.0, free);
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.try_wait().expect("is asked").is_some()
    });
    let output = child.wait_with_output().expect("has ended");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));

    let (lines, by_token) = (lines_of(&first), lines_of(&second));
    // Time stamps are those of the arrival, and alike, too.
    assert_eq!(lines, by_token);
    let measurements: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.split([',', ' ']).next()).collect();
    assert_eq!(measurements, GUIDE_MEASUREMENTS.into());
    for request in second.requests() {
        assert_eq!(request.path, "/api/v2/write?org=lab&bucket=collectd&precision=ms");
        assert_eq!(request.header("authorization"), "Token sesame");
    }
    assert!(first.requests().iter().all(|one| one.path.starts_with("/write?db=collectd&")));
    let values = |series: &str| -> Vec<f64> {
        let starts = format!("{series} value=");
        let found = lines.iter().filter_map(|line| line.strip_prefix(&starts));
        found.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    for (series, value) in [
        ("cpu_value,host=broker-9,type=percent,type_instance=idle", 90.0),
        ("cpu_value,host=broker-9,type=percent,type_instance=user", 5.5),
        ("memory_value,host=broker-9,type=memory,type_instance=used", 4e9),
        ("memory_value,host=broker-9,type=memory,type_instance=slab_unrecl", 2e7),
        ("load_shortterm,host=broker-9,type=load", 1.25),
        ("load_longterm,host=broker-9,type=load", 0.5),
    ] {
        let found = values(series);
        assert_eq!(found.len(), 3, "{series}: {lines:#?}");
        assert!(found.iter().all(|one| *one == value), "{series}: {found:?}");
    }
    for (series, per_s) in [
        ("interface_rx,host=broker-9,instance=eth0,type=if_octets", 1_000.0),
        ("interface_tx,host=broker-9,instance=eth0,type=if_octets", 500.0),
        ("interface_rx,host=broker-9,instance=eth0,type=if_packets", 10.0),
    ] {
        let found = values(series);
        assert!(found.len() >= 2, "{series}: {lines:#?}");
        let grown = found.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(grown.clone().all(|grown| (grown - per_s).abs() < 1e-6), "{series}: {found:?}");
    }
}
