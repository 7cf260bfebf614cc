//! Credentials of clients: they reach the broker, and nothing else.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const SECRETS: [&str; 6] = [
    "inline-s3cret",
    "file-s3cret",
    "environment-s3cret",
    "url-s3cret",
    "table-s3cret",
    "output-s3cret",
];

fn tacho() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", tacho_testkit::runtime_folder());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("TACHO_PASSWORD").env_remove("TACHO_USERNAME");
    command
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// A group of a client that sends to itself; `more` are lines about it and its connection.
fn group(name: &str, more: &str) -> String {
    format!(
        "[groups.{name}]\nclients = 1\n{more}\n[[groups.{name}.publish]]\ntopic = '{name}'\n\
         rate = {{ per_client = 20 }}\n[[groups.{name}.subscribe]]\nfilter = '{name}'\n"
    )
}

const PHASES: &str = "[phases]\nconnect_timeout = '2s'\nwarmup = '100ms'\nmeasure = '1s'\n";

/// Kills its process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command, and returns the first line of standard error with `words`.
fn start(command: &mut Command, words: &str) -> (Running, String) {
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let mut seen = Vec::new();
    let line = lines.find_map(|line| {
        seen.extend(line);
        seen.last().filter(|line| line.contains(words)).cloned()
    });
    let running = Running(child);
    std::thread::spawn(move || lines.for_each(drop));
    (running, line.unwrap_or_else(|| panic!("no {words} in {seen:#?}")))
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("is").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn assert_no_secret(place: &str, bytes: &[u8]) {
    for secret in SECRETS {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret} is in {place}");
    }
}

/// The processes with a secret in their command line, while `until` is not set.
fn watch_processes(until: &AtomicBool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    while !until.load(Ordering::Relaxed) {
        for entry in fs::read_dir("/proc").expect("is mounted").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if SECRETS.iter().any(|secret| line.contains(secret)) {
                found.insert(line);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    found
}

/// What a page of `tacho serve` says.
/// Asks the console that serves `runs`.
fn get(runs: &Path, address: &str, path: &str) -> Vec<u8> {
    let token = fs::read_to_string(runs.join(".console-token")).expect("a token");
    let mut stream = TcpStream::connect(address).expect("connects");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Connection: close\r\n\r\n",
        token.trim()
    );
    stream.write_all(request.as_bytes()).expect("is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("is read");
    answer
}

/// A password in a scenario file was copied into the run directory, and served from there.
#[test]
fn secrets_are_in_no_file_page_or_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let scenario = format!(
        "name = 'secrets'\n{PHASES}[targets.a]\n[targets.b]\n[targets.c]\n[targets.d]\n{}{}{}{}{}",
        group("one", "target = 'a'\nconnect = { username = 'u1', password = 'inline-s3cret' }"),
        group("two", "target = 'b'"),
        group("three", "target = 'c'"),
        group("four", "target = 'a'"),
        group("five", "target = 'd'"),
    );
    fs::write(at("secrets.toml"), scenario).expect("is written");
    fs::write(at("password"), "file-s3cret\n").expect("is written");
    fs::write(at("users.csv"), "u5,table-s3cret,dev-5\n").expect("is written");
    let mut broker = tacho();
    broker.args(["broker", "--listen", "0", "--shards", "1", "-vv"]).stdout(Stdio::null());
    let (_broker, line) = start(&mut broker, "listening on ");
    let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next());
    let address = address.expect("an address");

    let environment = at("environment");
    let program = env!("CARGO_BIN_EXE_tacho");
    let child = format!(
        "a=sh -c 'env > {}; exec {program} broker --shards 1 -vv --listen 127.0.0.1:{{port}}'",
        environment.display()
    );
    let runs = at("runs");
    let mut run = tacho();
    run.args(["run"]).arg(at("secrets.toml")).arg("--dir").arg(runs.join("1"));
    run.args(["--broker-cmd", &child]);
    run.args([
        "--broker",
        &format!("b=builtin,user=u2,password-file={}", at("password").display()),
    ]);
    run.args(["--broker", &format!("c=mqtt://u3:url-s3cret@{address}"), "--insecure-url-password"]);
    run.args(["--credentials", &format!("d={}", at("users.csv").display())]);
    run.env("TACHO_USERNAME", "u4").env("TACHO_PASSWORD", "environment-s3cret");
    // It was in the environment of every broker that a command starts.
    run.env("TACHO_OUT_INFLUXDB_TOKEN", "output-s3cret");
    let done = AtomicBool::new(false);
    let (output, processes) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch_processes(&done));
        let output = run.output().expect("starts");
        done.store(true, Ordering::Relaxed);
        (output, watch.join().expect("watches"))
    });
    let words = said(&output);
    let summary = fs::read_to_string(runs.join("1/summary.json")).expect(&words);
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("is JSON");
    assert!(summary["steps"][0]["received"].as_u64() > Some(0), "{summary:#}\n{words}");

    assert_no_secret("the output", words.as_bytes());
    for file in files(&runs) {
        assert_no_secret(&file.display().to_string(), &fs::read(&file).expect("reads"));
    }
    assert_no_secret("a child's environment", &fs::read(&environment).expect("reads"));
    // The user has put one on the command line of the run itself, and allowed it.
    let others = processes.iter().filter(|line| !line.contains("--insecure-url-password"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());

    let resolved = fs::read_to_string(runs.join("1/scenario.toml")).expect("reads");
    for reference in [
        "password_env = \"TACHO_PASSWORD\"",
        "password_file = \"",
        "username = \"u2\"",
        "credentials = \"",
    ] {
        assert!(resolved.contains(reference), "no {reference} in {resolved}");
    }
    let mut again = tacho();
    let again = again.arg("run").arg(runs.join("1/scenario.toml")).output().expect("starts");
    assert_eq!(again.status.code(), Some(104));
    assert!(said(&again).contains("TACHO_PASSWORD, which is not set"), "{}", said(&again));

    let mut serve = tacho();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--dir"]).arg(&runs).stdout(Stdio::null());
    let (_serve, line) = start(&mut serve, "http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next());
    let address = address.expect("an address");
    for path in ["/api/v1/runs", "/api/v1/runs/1"] {
        let answer = get(&runs, address, path);
        assert!(String::from_utf8_lossy(&answer).contains("secrets"), "the run is listed");
        assert_no_secret(path, &answer);
    }
    for file in files(&runs.join("1")) {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let served = get(&runs, address, &format!("/runs/1/{name}"));
        let is_served = served.starts_with(b"HTTP/1.1 200");
        assert!(is_served || name != "summary.json", "{}", String::from_utf8_lossy(&served));
        assert_no_secret(&name, &served);
    }
}

/// The first CONNECT of a client of the scenario, as it stands on the wire.
fn sent(arguments: &[&str], environment: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("one.toml");
    let text = format!("name = 'one'\n{PHASES}{}", group("one", ""));
    fs::write(&scenario, text).expect("is written");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let mut run = tacho();
    run.arg("run").arg(&scenario).arg("--quiet").arg("--dir").arg(folder.path().join("run"));
    run.args(arguments.iter().map(|argument| argument.replace("ADDRESS", &address)));
    run.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    let _run = Running(run.spawn().expect("starts"));
    loop {
        let (mut stream, _) = listener.accept().expect("accepts");
        let mut bytes = vec![0; 1024];
        let count = stream.read(&mut bytes).expect("reads");
        bytes.truncate(count);
        let is_round_trip = bytes.windows(9).any(|window| window == b"tacho-rtt");
        if !bytes.is_empty() && !is_round_trip {
            return bytes;
        }
    }
}

#[test]
fn credentials_of_every_source_reach_the_broker() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    fs::write(&file, "pw\n").expect("is written");
    let file = file.to_str().expect("a name");
    let in_broker = format!("mqtt://ADDRESS,user=me,password-file={file}");
    let environment = [("TACHO_USERNAME", "me"), ("TACHO_PASSWORD", "pw")];
    for (arguments, environment) in [
        (&["--broker", "mqtt://ADDRESS", "--username", "me", "--password-file", file][..], &[][..]),
        (&["--broker", &in_broker], &[]),
        (&["--broker", "mqtt://me:pw@ADDRESS", "--insecure-url-password"], &[]),
        (&["--broker", "mqtt://ADDRESS"], &environment),
    ] {
        let connect = sent(arguments, environment);
        assert!(connect.ends_with(b"\0\x02me\0\x02pw"), "{arguments:?}: {connect:?}");
    }
}

#[test]
fn a_password_in_a_url_needs_consent() {
    let mut run = tacho();
    run.args(["run", "symmetric", "--broker", "mqtt://me:pw@127.0.0.1:1"]);
    let output = run.output().expect("starts");
    assert_eq!(output.status.code(), Some(104), "{}", said(&output));
    assert!(said(&output).contains("--insecure-url-password"), "{}", said(&output));
}

/// Starts `tacho run` of a small scenario with a group for each of `groups`, which fails.
fn refused(groups: &[&str], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, runs) = (folder.path().join("some.toml"), folder.path().join("run"));
    let groups: String = groups.iter().map(|name| group(name, "")).collect();
    fs::write(&scenario, format!("name = 'some'\n{PHASES}{groups}")).expect("is written");
    let mut run = tacho();
    run.arg("run").arg(&scenario).args(arguments).arg("--dir").arg(&runs);
    let output = run.output().expect("starts");
    assert_eq!(output.status.code(), Some(104), "{}", said(&output));
    assert!(!runs.exists(), "nothing is created: {}", said(&output));
    said(&output)
}

#[test]
fn identifiers_and_credentials_of_a_file_reach_the_broker() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.csv");
    fs::write(&file, "user,password,client_id\nme,pw,dev-1\n").expect("is written");
    let file = file.to_str().expect("a name");
    let connect = sent(&["--broker", "mqtt://ADDRESS", "--credentials", file], &[]);
    assert!(connect.ends_with(b"\0\x05dev-1\0\x02me\0\x02pw"), "{connect:?}");
    let template = ["--broker", "mqtt://ADDRESS", "--client-id", "x-{{group}}-{{client}}"];
    let connect = sent(&template, &[]);
    assert!(connect.ends_with(b"\0\x07x-one-0"), "{connect:?}");
}

#[test]
fn clients_without_a_row_or_an_identifier_of_their_own_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users.csv");
    fs::write(&file, "me,pw\n").expect("is written");
    let file = file.to_str().expect("a name");
    let said = refused(&["a", "b"], &["--credentials", file]);
    assert!(said.contains("2 clients (1 of 'a', 1 of 'b') need 2 rows"), "{said}");
    let said = refused(&["a", "b"], &["--client-id", "dev-{{client}}"]);
    assert!(said.contains("the same client id 'dev-0'") && said.contains("{{group}}"), "{said}");
}

#[test]
fn clients_connect_from_the_source_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("two.toml");
    let text = format!("name = 'two'\n{PHASES}{}{}", group("a", ""), group("b", ""));
    fs::write(&scenario, text).expect("is written");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let broker = format!("mqtt://{}", listener.local_addr().expect("an address"));
    let mut run = tacho();
    run.arg("run").arg(&scenario).args(["--quiet", "--broker", &broker]);
    run.args(["--source-address", "127.0.0.77-127.0.0.78", "--dir"]);
    run.arg(folder.path().join("run")).stdout(Stdio::null()).stderr(Stdio::null());
    let _run = Running(run.spawn().expect("starts"));
    let wanted = ["127.0.0.77", "127.0.0.78"].map(str::to_owned);
    let mut seen = BTreeSet::new();
    while !wanted.iter().all(|address| seen.contains(address)) {
        let (_, client) = listener.accept().expect("accepts");
        seen.insert(client.ip().to_string());
    }
}

#[test]
fn source_addresses_that_cannot_be_used_are_named() {
    // 192.0.2.0/24 is for documentation: no machine has it.
    let said = refused(&["a"], &["--source-address", "127.0.0.1,192.0.2.7"]);
    assert!(said.contains("cannot use the source address 192.0.2.7"), "{said}");
    let said = refused(&["a"], &["--source-address", "::1"]);
    assert!(said.contains("the source address ::1"), "{said}");
}
