//! `tacho run` and `tacho scenario` as a user meets them: files, sentences, exit codes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tacho_testkit::runs::assert_code;

fn tacho(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(arguments: &[&str]) -> Output {
    tacho(arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs, and checks the exit code and that standard error has all `words`.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let output = output(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

fn summary(directory: &Path) -> serde_json::Value {
    let text = fs::read_to_string(directory.join("summary.json")).expect("a summary");
    serde_json::from_str(&text).expect("is JSON")
}

const SMALL: [&str; 12] = [
    "--var",
    "publishers=10",
    "--var",
    "subscribers=10",
    "--var",
    "target_throughput=200",
    "--var",
    "ramp_up=200ms",
    "--var",
    "warmup=500ms",
    "--var",
    "duration=2s",
];

#[test]
fn wrong_usage_exits_with_1() {
    fails(&["run"], 1, &["<SCENARIO>"]);
    fails(&["walk"], 1, &["walk"]);
    fails(&["run", "symmetric", "--var", "qos"], 1, &["name=value"]);
    fails(&["run", "symmetric", "--threshold", "e2e_p98<1ms"], 1, &["no figure 'e2e_p98'"]);
    fails(&["run", "symmetric", "--threshold", "e2e_p99<1"], 1, &["for example 10ms"]);
    fails(&["run", "symmetric", "--closed-window", "0"], 1, &["closed-window"]);
    fails(&["run", "symmetric", "--timing", "doze"], 1, &["sleep", "spin", "batch"]);
    fails(&["run", "symmetric", "--broker", "http://x:1"], 1, &["write mqtt://host:port"]);
    fails(&["run", "symmetric", "--broker", "mqtt://x:99999"], 1, &["not a port"]);
    fails(
        &["run", "symmetric", "--broker", "mqtt://127.0.0.1:1", "--broker-cmd", "x {port}"],
        1,
        &["cannot be used with"],
    );
    fails(&["run", "--ui", "symmetric"], 1, &["write a port", "put --ui last"]);
    fails(&["run", "symmetric", "--ui-wait"], 1, &["--ui"]);
    fails(&["serve", "--listen", "example.org:80"], 1, &["numeric address"]);
    fails(&["broker", "--psk-file", "f"], 1, &["(TLS-PSK) are not supported", "`client_ca`"]);
    fails(&["broker", "--psk-hint", "h"], 1, &["(TLS-PSK) are not supported", "`client_ca`"]);
    let help = output(&["run", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Exit codes:"));
}

#[test]
fn a_scenario_that_makes_no_sense_exits_with_104() {
    fails(&["run", "symetric"], 104, &["did you mean 'symmetric'?"]);
    fails(&["run", "elephants"], 104, &["neither a built-in scenario nor a file", "symmetric"]);
    fails(&["run", "missing.toml"], 104, &["cannot read the scenario 'missing.toml'"]);
    for (variable, words) in [
        ("qos=3", &["there is no QoS 3", "set with --var"][..]),
        ("target_throughput=0", &["a rate of 0"]),
        ("publishers=100000000", &["descriptors", "ulimit -Hn", "fits: --scale-clients 0.0"]),
        ("payload_size=10", &["10 bytes is too small", "at least 24"]),
        ("publisher=1", &["did you mean 'publishers'?"]),
        ("duration=tomorrow", &["not a length of time"]),
    ] {
        fails(&["run", "symmetric", "--var", variable], 104, words);
    }
    fails(&["run", "symmetric", "--broker-cmd", "mosquitto"], 104, &["where {port} goes"]);
    fails(&["run", "symmetric", "--broker-cores", "9999"], 104, &["core 9999 is not available"]);
}

#[test]
fn an_error_in_a_file_points_at_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let mut text = String::from("name = 'mine'\n[groups.pub]\nclients = 1\n");
    text.push_str("[[groups.pub.publish]]\ntopic = 'a'\nqoss = 1\nrate = { total = 1 }\n");
    fs::File::create(&file).and_then(|mut file| file.write_all(text.as_bytes())).expect("writes");
    let name = file.to_str().expect("a name");
    fails(&["run", name], 104, &["mine.toml:6:1", "did you mean 'qos'?", "qoss = 1"]);
    fails(&["scenario", "check", name], 104, &["mine.toml:6:1"]);
}

#[test]
fn a_broker_that_is_not_there_exits_with_112() {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).expect("a port");
    let broker = format!("mqtt://{port}");
    fails(&["run", "symmetric", "--broker", &broker], 112, &["cannot connect to mqtt://127.0.0.1"]);
    fails(
        &["run", "symmetric", "--broker", "mqtt://no.such.host.invalid:1883"],
        112,
        &["cannot find"],
    );
}

#[test]
fn a_broker_command_that_fails_is_quoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let dir = dir.to_str().expect("a name");
    let command = "sh -c 'echo cannot bind >&2; exit 3' {port}";
    fails(
        &["run", "symmetric", "--dir", dir, "--broker-cmd", command],
        112,
        &["ended before it listened", "exit status: 3", "cannot bind"],
    );
}

#[test]
fn a_run_leaves_its_files_and_verifies_every_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let mut command = tacho(&["run", "symmetric", "--json", "--seed", "7", "--dir"]);
    let output = command.arg(&dir).args(SMALL).output().expect("starts");
    let said = text(&output.stderr);
    let summary = summary(&dir);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!(printed, summary);
    assert_eq!(
        (&summary["schema_version"], &summary["scenario"]),
        (&2.into(), &"symmetric".into())
    );
    let step = &summary["steps"][0];
    for (name, value) in [("sent", 400), ("received", 400), ("lost", 0), ("duplicates", 0)] {
        assert_eq!(step[name], value, "{name}: {said}\n{summary:#}");
    }
    assert!(step["broker_cpu_percent"].is_number() || !Path::new("/proc/self/task").exists());
    assert!(step["generator_cpu_percent"].is_number() && step["latency_us"]["p50"].is_number());
    // Four hundred samples are too few for a 99.9th percentile.
    assert!(step["latency_us"]["p999"].is_null());
    // On a shared machine the generator may have been late; nothing else may be wrong.
    assert_code(output.status.code(), &summary, &[]);
    for (file, words) in [
        ("timeseries.csv", "start_s,length_s,phase"),
        ("latency.hlog", "#[Histogram log format version 1.3]"),
        ("environment.json", "\"net.core.somaxconn\""),
        ("scenario.toml", "seed = 7"),
        ("report.html", "<svg"),
        ("broker.log", "listening"),
    ] {
        let content = fs::read_to_string(dir.join(file)).expect(file);
        assert!(content.contains(words), "{file}: {content}");
    }
    // The resolved scenario is a scenario.
    let resolved = dir.join("scenario.toml");
    let checked = tacho(&["scenario", "check"]).arg(&resolved).output().expect("starts");
    assert_eq!(text(&checked.stdout), fs::read_to_string(resolved).expect("reads"));
}

#[test]
fn a_threshold_that_does_not_hold_fails_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let mut command = tacho(&["run", "symmetric", "--threshold", "e2e_max<1us", "--dir"]);
    let output = command.arg(&dir).args(SMALL).output().expect("starts");
    let shown = text(&output.stdout);
    assert!(shown.contains("threshold e2e_max<1us: does not hold"), "{shown}");
    // The generator's health comes first on a busy machine.
    let summary = summary(&dir);
    assert_code(output.status.code(), &summary, &["threshold_failed"]);
    assert_ne!(summary["verdict"], "ok", "{shown}");
    assert!(shown.contains("TPS (in + out)") && shown.contains("report: "), "{shown}");
}

#[test]
fn closed_mode_needs_no_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let mut command =
        tacho(&["run", "symmetric", "--quiet", "--lang", "zh", "--closed-window", "4", "--dir"]);
    let output = command.arg(&dir).args(SMALL).output().expect("starts");
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
    let summary = summary(&dir);
    let step = &summary["steps"][0];
    // More than one window of each publisher.
    assert!(step["sent"].as_u64() > Some(40), "{summary:#}");
    assert_eq!(step["lost"], 0);
    let report = fs::read_to_string(dir.join("report.html")).expect("reads");
    assert!(report.contains("<html lang=\"zh\">") && report.contains("消息/秒"));
    fails(&["run", "symmetric", "--lang", "de"], 1, &["languages are en and zh"]);
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_the_run_with_a_partial_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let mut command = tacho(&["run", "symmetric", "--dir"]);
    command.arg(&dir).args(SMALL).args(["--var", "duration=60s"]);
    let mut child = command.spawn().expect("starts");
    let mut said = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let measures =
        |line: &std::io::Result<String>| line.as_ref().expect("is text").contains("measure (");
    assert!(said.any(|line| measures(&line)), "it never measured");
    let passed = |line: &std::io::Result<String>| line.as_ref().expect("is text").contains("/60 s");
    assert!(said.any(|line| passed(&line)), "no time passed in the measured window");
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is alive");
    let status = child.wait().expect("ends");
    assert_eq!(status.code(), Some(105));
    let summary = summary(&dir);
    assert_eq!(summary["verdict"], "aborted", "{summary:#}");
    assert!(summary["steps"][0]["received"].as_u64() > Some(0), "{summary:#}");
    assert!(dir.join("report.html").exists());
    // The broker was stopped too.
    let broker = summary["target"]["pid"].as_u64().expect("a broker of its own");
    assert!(!Path::new(&format!("/proc/{broker}")).exists());
}

#[test]
fn scenarios_are_listed_and_shown() {
    let list = text(&output(&["scenario", "list"]).stdout);
    let names = ["symmetric  ", "fan-in  ", "fan-out  ", "bridge  ", "connect  "];
    for word in names.into_iter().chain(["guide  ", "bifromq  ", "<publishers>_<subscribers>_qos"])
    {
        assert!(list.contains(word), "no {word} in {list}");
    }
    let suite = text(&output(&["scenario", "show", "bifromq"]).stdout);
    assert!(suite.contains("tacho run false_share_5k_50_qos2_p1024_1mps\n"), "{suite}");
    let suite = text(&output(&["scenario", "show", "guide"]).stdout);
    assert!(suite.contains("tacho run symmetric --var qos=1 --var target_throughput=20000 "));
    let shown = output(&["scenario", "show", "symmetric"]);
    assert!(text(&shown.stdout).contains("[vars]"));
    let checked = output(&["scenario", "check", "symmetric", "--var", "qos=2"]);
    assert!(text(&checked.stdout).contains("qos = 2"), "{}", text(&checked.stdout));
}

#[test]
fn a_scenario_check_states_the_requirements() {
    let name = "share_10_2_qos1_p64_5mps";
    let checked = output(&["scenario", "check", name, "--scale", "2"]);
    let (checked, told) = (text(&checked.stdout), text(&checked.stderr));
    for line in [
        "12 clients, 2 subscriptions, 12 connections; 76 descriptors are needed\n",
        "in 100/s, out 100/s; 10 pairs",
    ] {
        assert!(told.contains(line), "no {line:?} in {told}");
    }
    let line = "filter = \"$share/group/share_10_2_qos1_p64_5mps/+\"";
    assert!(checked.contains(line), "no {line:?} in {checked}");
    let shown = text(&output(&["scenario", "show", name]).stdout);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shown.toml");
    fs::write(&file, &shown).expect("writes");
    let again = output(&["scenario", "check", file.to_str().expect("a name"), "--scale", "2"]);
    assert_eq!(text(&again.stdout), checked, "a shown scenario checks like its original");
    let many = output(&["scenario", "check", "10_10_qos0_p64_100kmps"]);
    assert!(text(&many.stderr).contains("needs about 7 generator cores"), "{many:?}");
    fails(&["scenario", "check", "guide"], 104, &["is a suite", "tacho scenario show guide"]);
    fails(&["scenario", "check", "guid"], 104, &["did you mean 'guide'?"]);
    fails(&["run", "10_10_qos7_p64_1mps"], 104, &["there is no QoS '7'", "names are"]);
    fails(&["run", "10_10_qos1_p64_1mps", "--scale", "0"], 1, &["not a factor"]);
    fails(&["run", "symmetric", "--hold", "5ms"], 1, &["too short"]);
}

#[test]
fn a_load_beyond_the_generator_is_refused_before_anything_starts() {
    // 200 receivers each: 4 billion messages a second out.
    let rate = "target_throughput=20000000";
    let words = [
        "20,000,000 messages/s in and 4,000,000,000 out",
        "estimated; 'tacho calibrate'",
        "the largest that fits: --scale 0.0",
        "--beyond-calibration",
    ];
    fails(&["run", "fan-out", "--var", rate], 104, &words);
    let ladder = ["ladder", "fan-out", "target_throughput=20000000,30000000"];
    fails(&ladder, 104, &["can run none of the steps: needs about", "--beyond-calibration"]);
    let only = ["run", "guide", "--only", "fan-out/10K", "--scale", "500000"];
    fails(&only, 104, &["can run none of the rows: needs about", "--beyond-calibration"]);
    let compared = ["compare", "fan-out", "--var", rate];
    fails(&compared, 104, &["cannot run 'fan-out' as it is", "--beyond-calibration"]);
    // With the flag it goes on, here to a broker that is not there.
    let broker = ["--broker", "mqtt://127.0.0.1:1"];
    let mut beyond = vec!["run", "fan-out", "--var", rate, "--beyond-calibration"];
    beyond.extend(broker);
    fails(&beyond, 112, &["cannot connect to"]);
    // A search finds the limit of a generator that is not calibrated by itself.
    let search = ["capacity", "fan-out", "--from", "20000000", broker[0], broker[1]];
    fails(&search, 112, &["cannot connect to"]);
}

#[test]
fn a_suite_is_held_as_its_report_held_it() {
    let words = "the report of 'bifromq' does not say how long";
    fails(&["run", "bifromq", "--as-published"], 104, &[words, "--hold"]);
    for flag in [["--hold", "5s"], ["--ramp-up", "5s"]] {
        let arguments = ["run", "guide", "--as-published", flag[0], flag[1]];
        fails(&arguments, 1, &["cannot be used with"]);
    }
    let words = "--as-published applies to suites only";
    fails(&["run", "symmetric", "--as-published"], 1, &[words]);
}

#[test]
fn a_name_that_a_report_misprints_is_explained() {
    let printed = "1.2k_1.2k_qos2_p32_50mps";
    let why = "prints 1.2k_1.2k_qos2_p32_100mps as 1.2k_1.2k_qos2_p32_50mps; its columns say 100 \
               messages/s of each publisher and 120,000 in all";
    let rows = ["run", "bifromq", "--only", printed, "--beyond-calibration"];
    let rows = [&rows[..], &["--broker", "mqtt://127.0.0.1:1"]].concat();
    // The row is found: what is missing is the broker.
    fails(&rows, 112, &[why, "cannot connect to"]);
    let checked = output(&["scenario", "check", printed]);
    let told = text(&checked.stderr);
    assert!(
        told.contains(why) && told.contains("that row is '1.2k_1.2k_qos2_p32_100mps'"),
        "{told}"
    );
    assert!(text(&checked.stdout).contains("rate = 50"), "the load is that of the name");
}

#[test]
fn a_bridge_needs_brokers_that_have_one() {
    // One of them alone: the other, which the run would start, is not known to it.
    fails(
        &["run", "bridge", "--broker-cmd", "node1=never started {port}"],
        104,
        &["needs brokers that are bridged to each other: --broker node1=URL --broker node2=URL"],
    );
}

#[test]
fn bridges_that_cannot_be_asked_or_tried_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("is written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let rule = "[[bridges.egress]]\nfilter = 'a/#'\n";
    let nowhere = format!("[[bridges]]\nname = 'n'\naddress = 'mqtt://127.0.0.1:1'\n{rule}");
    let (none, nowhere) = (file("none.toml", "shards = 1\n"), file("nowhere.toml", &nowhere));
    fails(&["bridge", "status"], 1, &["--url"]);
    fails(&["bridge", "status", "--url", "http://127.0.0.1:1"], 112, &["does not answer"]);
    fails(&["bridge", "status", "-c", &none], 104, &["`metrics`", "--url"]);
    fails(&["bridge", "test", &none], 104, &["has no bridges"]);
    fails(&["bridge", "test", &nowhere, "m"], 104, &["no bridge 'm'", "n"]);
    let output = output(&["bridge", "test", &nowhere]);
    assert_eq!(output.status.code(), Some(112));
    assert!(text(&output.stdout).contains("FAILED   cannot connect"), "{output:?}");
    let rest = "address = 'mqtts://127.0.0.1:1'\n[bridges.tls]\nca = 'not-there.pem'\n";
    let secure = file("secure.toml", &format!("[[bridges]]\nname = 's'\n{rest}{rule}"));
    fails(&["bridge", "test", &secure], 104, &["bridge `s`", "not-there.pem"]);
}

#[test]
fn bridges_of_emqx_are_translated_and_what_is_not_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (conf, out) = (path("emqx.conf"), path("bridges.toml"));
    let block = |more: &str| {
        format!(
            "bridges.mqtt.north {{ server = \"10.0.0.2:1883\", proto_ver = v5\n{more}\n\
             egress {{ local.topic = \"a/#\", remote.topic = \"b/${{topic}}\" }} }}\n"
        )
    };
    fs::write(&conf, block("")).expect("is written");
    let whole = output(&["bridge", "import", &conf]);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    assert!(text(&whole.stdout).starts_with("[[bridges]]\nname = \"north\"\n"), "{whole:?}");
    fs::write(&conf, block("mode = cluster_shareload\nkeepalive = soon")).expect("is written");
    let partly = output(&["bridge", "import", &conf, "--out", &out]);
    assert_eq!((partly.status.code(), text(&partly.stdout)), (Some(99), String::new()));
    let said = text(&partly.stderr);
    assert!(said.contains("emqx.conf: line 2: no counterpart: north: `mode`"), "{said}");
    assert!(said.contains("line 3: malformed: north: `keepalive = soon`: write a time"), "{said}");
    // It is a broker's configuration.
    let listed = output(&["broker", "--config", &out, "--check-config"]);
    assert!(text(&listed.stdout).contains("topic = \"b/${topic}\""), "{listed:?}");
    fails(&["bridge", "import", &conf, "--out", &out], 104, &["bridges.toml cannot be written"]);
    fs::write(&conf, "a = 1\n").expect("is written");
    fails(&["bridge", "import", &conf], 104, &["emqx.conf: there is no `bridges.mqtt` in it"]);
    fs::write(&conf, block("}")).expect("is written");
    fails(&["bridge", "import", &conf], 104, &["emqx.conf: "]);
    fails(&["bridge", "import", &path("none.conf")], 104, &["none.conf: "]);
}

#[test]
fn a_broker_without_a_name_is_none_of_several() {
    // 'builtin' starts one for each name.
    for arguments in [["--broker", "mqtt://127.0.0.1:1"], ["--broker-cmd", "never started {port}"]]
    {
        let arguments = [&["run", "bridge"][..], &arguments].concat();
        fails(&arguments, 104, &["needs the name of one", "NAME=", "node1, node2"]);
    }
}

#[test]
fn named_targets_must_exist() {
    fails(&["run", "symmetric", "--broker", "node7=mqtt://127.0.0.1:1"], 104, &["named targets"]);
    fails(
        &["run", "symmetric", "--shards", "2", "--broker-cmd", "x {port}"],
        1,
        &["--shards cannot be used here"],
    );
}

#[test]
fn doctor_shows_every_setting_and_names_the_limiting_ones() {
    let all = output(&["doctor", "1k_1k_qos1_p128_10mps"]);
    let table = text(&all.stdout);
    for name in ["nofile", "fs.file-max", "net.core.somaxconn", "nf_conntrack hashsize"] {
        assert!(table.contains(name), "{table}");
    }
    let limits = table.contains("LIMITS");
    assert_eq!(all.status.code(), Some(if limits { 99 } else { 0 }), "{table}");
    assert_eq!(limits, table.contains("Commands that lift these limits"), "{table}");

    // More clients than one address has ports for, of a broker elsewhere.
    let vars = ["--var", "connections=100000", "--remote-broker", "--json"];
    let json = output(&[&["doctor", "connect"][..], &vars].concat());
    assert_eq!(json.status.code(), Some(99), "{}", text(&json.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).expect("is JSON");
    let rows = rows.as_array().expect("a list");
    let ports = rows.iter().find(|row| row["name"] == "net.ipv4.ip_local_port_range");
    let ports = ports.expect("is there");
    // Where there is no such setting there is nothing that could limit.
    assert_eq!(ports["limits"], !ports["current"].is_null(), "{ports}");
    assert_eq!(ports["command"].is_string(), ports["limits"], "{ports}");

    fails(&["doctor", "nowhere"], 104, &["nowhere"]);
}

#[test]
fn doctor_judges_listeners_and_writes_what_lifts_limits_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("is text").to_owned();
    let (config, fragment) = (path("broker.toml"), path("90-tacho.conf"));
    let listener = "[[listeners]]\naddress = '127.0.0.1:1883'\nbacklog = 1000000\n";
    std::fs::write(&config, listener).expect("is written");
    let arguments = ["doctor", "symmetric", "--config", &config, "--sysctl", &fragment];
    let judged = output(&arguments);
    let table = text(&judged.stdout);
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    let Ok(allowed) = allowed.trim().parse::<u32>() else { return };
    assert_eq!(table.contains("asks for a backlog of 1,000,000"), allowed < 1_000_000, "{table}");
    if allowed < 1_000_000 {
        assert_eq!(judged.status.code(), Some(99), "{table}");
        let written = std::fs::read_to_string(&fragment).expect("is written");
        let lines =
            format!("\n# was: net.core.somaxconn = {allowed}\nnet.core.somaxconn = 1000000\n");
        assert!(written.contains(&lines), "{written}");
        // What is there is not written over.
        fails(&arguments, 104, &["90-tacho.conf cannot be written"]);
    }
    std::fs::write(&config, "[[listeners]]\naddress = 1\nsend_buffer_bytes = 7\n").expect("writes");
    fails(&["doctor", "--config", &config], 104, &["`send_buffer_bytes` is 7"]);
    fails(&["doctor", "--config", &path("none.toml")], 104, &["none.toml"]);
}

#[test]
fn a_suite_as_json_states_the_requirements_of_each_run() {
    let output = output(&["scenario", "show", "guide", "--json"]);
    assert!(output.status.success());
    let suite: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let point = &suite["series"][1]["points"][3];
    assert_eq!(
        (suite["series"][1]["name"].as_str(), point["label"].as_str()),
        (Some("qos1"), Some("40K"))
    );
    assert_eq!(point["needs"]["clients"], 2000);
    let rate = point["needs"]["in_per_s"].as_f64().expect("a rate");
    assert!((rate - 20_000.0).abs() < 1.0, "{rate}");
    assert!(point["lacks"].is_null() || point["lacks"].is_string());
    fails(&["scenario", "show", "symmetric", "--json"], 104, &["is not a suite", "guide"]);
}

/// The second run replaced the first one without a word.
#[test]
fn a_directory_with_a_run_is_not_replaced_unless_forced() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let run = |more: &[&str]| {
        let mut command = tacho(&["run", "symmetric", "--quiet", "--dir"]);
        command.arg(&dir).args(SMALL).args(more).output().expect("starts")
    };
    run(&["--seed", "1"]);
    let first = summary(&dir);
    let refused = run(&["--seed", "2"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(104), "{said}");
    assert!(said.contains("holds an earlier run") && said.contains("--force"), "{said}");
    assert_eq!(summary(&dir), first, "the first run is as it was");
    run(&["--seed", "2", "--force"]);
    assert_ne!(summary(&dir)["started_at"], first["started_at"]);
    fails(&["run", "symmetric", "--force"], 1, &["--dir"]);
}

/// Nothing reads standard output and standard error any more, as after `| head -1`.
fn unread(arguments: &[&str]) -> Command {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = tacho(arguments);
    command.stdout(writer.try_clone().expect("another end")).stderr(writer);
    command
}

/// They panicked: exit code 101.
#[test]
fn commands_end_quietly_when_their_reader_is_gone() {
    for arguments in [
        &["scenario", "list"][..],
        &["scenario", "reference"],
        &["scenario", "show", "guide", "--json"],
        &["scenario", "check", "symmetric"],
        &["doctor"],
        &["--help"],
    ] {
        let with = output(arguments).status.code();
        let without = unread(arguments).status().expect("starts").code();
        assert_eq!(without, with, "{arguments:?}");
    }
}

#[test]
fn a_run_goes_on_without_its_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let mut command = unread(&["run", "symmetric", "--dir"]);
    let status = command.arg(&dir).args(SMALL).status().expect("starts");
    let summary = summary(&dir);
    assert_eq!(summary["steps"][0]["received"], 400, "{summary:#}");
    assert_code(status.code(), &summary, &[]);
    assert!(dir.join("report.html").exists());
}
