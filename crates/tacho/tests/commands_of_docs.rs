//! Every command in the documents works: it is run with a small load and a short hold, or, where a
//! table below says why it cannot be, its subcommand, flags and values are parsed.
//!
//! Commands are the lines of `sh` blocks in README.md, README.zh.md, docs/*.md and
//! docs/results/*/README.md, and what stands in backticks in their sentences and begins with
//! `tacho`.
//! What runs until it is stopped is started, asked for a connection, and stopped. `cargo xtask` has
//! its own test of chores in documents.

mod documents;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tacho_testkit::runs::code_of;
use tacho_testkit::runtime_folder;

use documents::{Document, commands, documents, inline, toml_called, words};

/// Other programs, with why a test of the documents does not run them. A command that begins with
/// none of these and is not ours is a mistake.
const FOREIGN: [(&str, &str); 19] = [
    ("PROGRAM", "another broker, as the reports of results start it"),
    ("cargo install", "it installs what the tests have built"),
    ("cargo xtask", "chores have tests of their own; their names are checked"),
    ("apt-get", "it changes the system"),
    ("cat", "it shows or writes a file"),
    ("echo -19", "it changes the priority of what the test belongs to"),
    ("chmod", "it changes who may read a file"),
    ("curl", "a client of HTTP: the endpoints have tests of their own"),
    ("exec mosquitto", "tests against mosquitto are named after it"),
    ("grep", "it reads a file"),
    ("kill", "it ends a process"),
    ("source", "it is for a shell that stays; shell_help.rs completes in bash"),
    ("mosquitto", "tests against mosquitto are named after it"),
    ("nats-server", "tests with a bus are named after it"),
    ("openssl", "it makes certificates and secrets, as tests do with a library"),
    ("printf", "it writes a file"),
    ("sh", "it runs a file of the reader"),
    ("sudo", "it changes the system"),
    ("sysctl", "it changes the system"),
];

/// Our commands that are parsed, and why they are not run here.
const PARSED: [(&str, &str); 22] = [
    ("broker.toml", "it names files and brokers of the reader; bridges have tests of their own"),
    ("tacho pub", "the broker is the reader's; quick.rs publishes"),
    ("tacho sub", "the broker is the reader's; quick.rs subscribes"),
    ("tacho bench", "the broker is the reader's; bench.rs has small loads"),
    ("tacho passwd", "it asks for a password; access.rs answers it"),
    ("--manage", "the broker is the reader's; console/broker.rs has one"),
    ("tacho journal", "it needs the directory of a broker; its own tests make one"),
    ("tacho bridge", "it needs a bridge and its remote broker; its own tests have them"),
    ("tacho monitor --port", "what listens there is the reader's; monitor.rs watches processes"),
    ("tacho monitor collectd", "collectd's port is the system's; tests with collectd use another"),
    ("tacho compare connect --before", "it changes the system; compare.rs has such commands"),
    ("tacho run bifromq", "rows of 100 clients and more; campaigns.rs runs rows of suites"),
    ("plan.jmx --var", "variables are those of the reader's plan; jmx.rs sets those of a plan"),
    ("tacho run bridge", "it needs two bridged brokers; its own tests have them"),
    ("tacho capacity connect", "clients in thousands; campaigns.rs has small searches"),
    ("mosquitto.sh", "mosquitto keeps sessions by a file of the reader"),
    ("tls.conf", "mosquitto has certificates by a file of the reader"),
    ("://broker.example", "the reader's broker"),
    ("nats://control", "the bus of the reader; tests named after nats-server have one"),
    ("://10.0.0.", "the reader's broker"),
    ("--ui-wait", "it waits for Ctrl-C"),
    ("--broker-pid", "the process is the reader's"),
];

/// Scenarios that can be made small. What else comes with the program has tests of its own, at
/// small size: here it is parsed.
const SHORT: [&str; 10] = [
    "symmetric",
    "fan-in",
    "fan-out",
    "guide",
    "persistent",
    "reconnect-storm",
    "mine.toml",
    "meters.toml",
    "plan.jmx",
    "connect",
];

/// A password file with the user `ann`.
const USERS: &str = "ann:$6$AAECAwQFBgcICQoL$JqsxEv/ucyxjA5DKsQ+Y8CDWaQDNQI9FpAkmfwAqWfwZLk/JEGgM0\
                     EpylrJHAZKKyFQjJeZ3nFaHjPzOzPPmPw==\n";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a command of ours is checked.
enum How {
    Run(Vec<String>),
    /// Until it is stopped.
    Serve(Vec<String>),
    Parse(Vec<String>),
}

#[test]
fn every_command_in_a_block_works() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let all = documents();
    prepare(folder, &all);
    let (mut to_run, mut to_serve) = (BTreeSet::new(), BTreeSet::new());
    let mut to_parse = BTreeSet::new();
    for document in &all {
        // operators_guide.rs runs them, in their order and with folders for their places.
        if document.name == "operators-guide.md" {
            continue;
        }
        for command in commands(&document.text) {
            if let Some((file, content)) = &command.file {
                std::fs::write(folder.join(file), content).expect("writes");
                continue;
            }
            match how(&document.name, &command.line) {
                Some(How::Run(arguments)) => to_run.insert(arguments),
                Some(How::Serve(arguments)) => to_serve.insert(arguments),
                Some(How::Parse(arguments)) => to_parse.insert(arguments),
                None => false,
            };
        }
    }
    let counts = (to_run.len(), to_serve.len(), to_parse.len());
    assert!(counts.0 > 40 && counts.1 > 4, "{to_run:#?} {to_serve:#?} {to_parse:#?}");
    // Most commands run; only exceptions are merely parsed.
    assert!(counts.2 < 60 && counts.2 < counts.0, "{to_parse:#?}");
    for arguments in &to_parse {
        parse(folder, arguments);
    }
    // First: they leave certificates that others use.
    for arguments in &to_serve {
        serve(folder, arguments);
    }
    // Mostly they wait: for the schedule, and for a second to be over. Those of many runs come
    // first.
    let is_greedy = |arguments: &&Vec<String>| arguments[0] == "calibrate";
    let (greedy, others): (Vec<_>, Vec<_>) = to_run.iter().partition(is_greedy);
    let mut in_order: Vec<_> = others.into_iter().enumerate().collect();
    let is_one = |(_, arguments): &(usize, &Vec<String>)| {
        !matches!(arguments[0].as_str(), "capacity" | "compare")
    };
    in_order.sort_by_key(is_one);
    let queue = Mutex::new(in_order.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("not poisoned").next();
                    let Some((number, arguments)) = next else { break };
                    run(folder, number, arguments);
                }
            });
        }
    });
    // It takes all that the machine has.
    for (number, arguments) in greedy.into_iter().enumerate() {
        run(folder, number, arguments);
    }
}

/// What stands in sentences has flags that exist, too.
#[test]
fn every_command_in_a_sentence_is_one() {
    let mut found = BTreeSet::new();
    for document in documents() {
        found.extend(inline(&document.text));
    }
    assert!(found.len() > 20, "{found:#?}");
    for line in &found {
        let mut words = words(line);
        let is_name = |word: &String| word.chars().all(|c| c.is_ascii_uppercase());
        if words.len() > 2 && words[words.len() - 2].starts_with("--") {
            // A name that stands for a value.
            words.pop_if(|word| is_name(word));
        }
        match words.split_last() {
            // A flag without its value: it must exist.
            Some((flag, command)) if flag.starts_with("--") && command.len() > 1 => {
                let help = parse(Path::new("."), &command[1..]);
                assert!(help.contains(flag), "{line}: {help}");
            }
            _ => drop(parse(Path::new("."), &words[1..])),
        }
    }
}

#[test]
fn chinese_documents_have_the_same_commands() {
    let all = documents();
    let named = |name: &str| {
        let document = all.iter().find(|document| document.name == name);
        &document.unwrap_or_else(|| panic!("{name} is there")).text
    };
    for (english, chinese) in [
        ("README.md", "README.zh.md"),
        ("tutorial.md", "tutorial.zh.md"),
        ("guide-setup.md", "guide-setup.zh.md"),
    ] {
        let lines = |name: &str| -> Vec<String> {
            let all = commands(named(name)).into_iter();
            all.map(|one| one.file.map_or(one.line, |(name, text)| format!("{name}: {text}")))
                .collect()
        };
        assert_eq!(lines(english), lines(chinese), "{english} and {chinese}");
        assert!(named(english).contains(&format!("({chinese})")), "{english} leads to {chinese}");
        assert!(named(chinese).contains(&format!("({english})")), "{chinese} leads to {english}");
    }
}

/// How a line is checked; `None` for another program that may stand there.
fn how(document: &str, line: &str) -> Option<How> {
    let ours = [("cargo run --release -- ", ""), ("tacho ", ""), ("PROGRAM broker", "broker")];
    let ours = ours
        .into_iter()
        .find_map(|(start, verb)| Some(format!("tacho {verb}{}", line.strip_prefix(start)?)));
    let Some(line) = ours else {
        let is_known = FOREIGN.iter().any(|(start, _)| {
            line.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        assert!(is_known, "{document}: '{line}' is unknown: say in FOREIGN why it is not run");
        if let Some(rest) = line.strip_prefix("cargo xtask ") {
            let chore = rest.split(' ').next().unwrap_or_default();
            assert!(chores().contains(chore), "{document}: there is no chore '{chore}'");
        }
        return None;
    };
    let arguments = words(&line)[1..].to_vec();
    let verb = arguments[0].as_str();
    // They need a broker and their order: ctl_of_docs.rs has both.
    if verb == "ctl" && document == "management.md" {
        return None;
    }
    let is_long = matches!(verb, "run" | "ladder" | "capacity")
        && !arguments.get(1).is_some_and(|name| SHORT.contains(&name.as_str()));
    // All rows of it.
    let is_whole = arguments == ["run", "guide"];
    if is_long || is_whole || PARSED.iter().any(|(part, _)| line.contains(part)) {
        return Some(How::Parse(arguments));
    }
    let serves = matches!(verb, "broker" | "serve")
        || verb == "monitor" && arguments.iter().any(|word| word == "--listen");
    Some(if serves { How::Serve(arguments) } else { How::Run(small(arguments)) })
}

/// The same command with little load that ends soon.
fn small(mut arguments: Vec<String>) -> Vec<String> {
    let verb = arguments[0].clone();
    let scenario = arguments.get(1).cloned().unwrap_or_default();
    // Whatever broker the reader has: one that is always there stands for it.
    let ours = format!("'{}' broker --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_tacho"));
    for theirs in ["mosquitto -p {port}", "./old {port}", "./new {port}"] {
        arguments.iter_mut().for_each(|word| *word = word.replace(theirs, &ours));
    }
    match verb.as_str() {
        "run" | "ladder" | "capacity" => {}
        "compare" if !scenario.starts_with("runs/") => {
            set(&mut arguments, "--repeats", "1");
            set(&mut arguments, "--make-up", "0");
        }
        "monitor" => {
            set(&mut arguments, "--count", "2");
            return arguments;
        }
        "calibrate" => {
            let is_of_disk = arguments.iter().any(|word| word == "--disk");
            arguments.push("--quick".to_owned());
            arguments.extend((!is_of_disk).then(|| "--no-store".to_owned()));
            return arguments;
        }
        _ => return arguments,
    }
    unset(&mut arguments, "--duration");
    // Five minutes a row are too long for a test.
    arguments.retain(|word| word != "--as-published");
    if arguments.iter().any(|word| word == "--repeat") {
        set(&mut arguments, "--repeat", "2");
    }
    let hold = if matches!(verb.as_str(), "capacity" | "compare") { "500ms" } else { "1s" };
    for (flag, value) in [("--hold", hold), ("--warmup", "0s")] {
        set(&mut arguments, flag, value);
    }
    match verb.as_str() {
        // A search has bounds of its own.
        "capacity" => {
            for (flag, value) in [("--from", "40"), ("--to", "80"), ("--trial", "500ms")] {
                set(&mut arguments, flag, value);
            }
            for (flag, value) in [("--confirm", "1"), ("--pause", "0s")] {
                set(&mut arguments, flag, value);
            }
            arguments.push("--no-profile".to_owned());
            set(&mut arguments, "--scale-clients", "0.05");
        }
        _ => set(&mut arguments, "--scale", "0.02"),
    }
    match scenario.as_str() {
        "symmetric" | "fan-in" | "fan-out" => {
            set(&mut arguments, "--scale-clients", "0.05");
            arguments.extend(["--var", "ramp_up=100ms"].map(str::to_owned));
        }
        "guide" => {
            // A row stands for its figure.
            unset(&mut arguments, "--only");
            set(&mut arguments, "--only", "qos1/10K");
            set(&mut arguments, "--scale-clients", "0.01");
        }
        "reconnect-storm" => {
            let vars = ["first_storm=200ms", "storms=1", "ramp_up=100ms"];
            arguments.extend(vars.iter().flat_map(|var| ["--var", var]).map(str::to_owned));
            set(&mut arguments, "--scale-clients", "0.01");
        }
        "plan.jmx" if !arguments.iter().any(|word| word == "--broker") => {
            // The plan names a broker that is the reader's.
            set(&mut arguments, "--broker", "builtin");
        }
        "persistent" => arguments.extend(["--var", "rate=50"].map(str::to_owned)),
        _ => {}
    }
    if verb == "ladder" {
        set(&mut arguments, "--pause", "0s");
        // A step is as good as many.
        let (name, _) = arguments[2].split_once('=').expect("NAME=VALUES");
        let value = if name == "payload_size" { "128" } else { "20" };
        arguments[2] = format!("{name}={value}");
        unset(&mut arguments, "--repeat");
    }
    arguments
}

/// Gives a flag a value, whether it has one or not.
fn set(arguments: &mut Vec<String>, flag: &str, value: &str) {
    match arguments.iter().position(|word| word == flag) {
        Some(at) => value.clone_into(&mut arguments[at + 1]),
        None => arguments.extend([flag.to_owned(), value.to_owned()]),
    }
}

/// Takes a flag away, each time with its value.
fn unset(arguments: &mut Vec<String>, flag: &str) {
    while let Some(at) = arguments.iter().position(|word| word == flag) {
        arguments.drain(at..at + 2);
    }
}

fn tacho() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.stdin(Stdio::null());
    command
}

fn run(folder: &Path, number: usize, arguments: &[String]) {
    let reader_has = ["127.0.0.1:1883", "127.0.0.1:1884", "127.0.0.1:8883"];
    let is_theirs = |word: &String| reader_has.iter().any(|place| word.contains(place));
    // One each: two runs at the same broker would take over each other's clients.
    let broker = arguments.iter().find(|word| is_theirs(word)).map(|url| {
        let scheme = if url.starts_with("mqtts") { "tls" } else { "tcp" };
        Broker::start(folder, scheme)
    });
    let here =
        broker.as_ref().map_or_else(String::new, |broker| format!("127.0.0.1:{}", broker.port));
    let to_us = |word: &String| reader_has.iter().fold(word.clone(), |w, at| w.replace(at, &here));
    let mut command = tacho();
    command.current_dir(folder).args(arguments.iter().map(to_us));
    let result = format!("result-{number}");
    let verb = arguments[0].as_str();
    if matches!(verb, "run" | "ladder" | "capacity" | "compare") {
        command.args(["--dir", &result]);
    }
    let output = command.output().expect("starts");
    let directory = folder.join(result);
    let expected = match verb {
        "run" | "ladder" | "capacity" | "compare" => {
            record(&directory, "summary.json").and_then(|r| code_of(&r))
        }
        "doctor" => Some(code_of_settings(&String::from_utf8_lossy(&output.stdout))),
        _ => Some(0),
    };
    let code = output.status.code();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        code.is_some() && code == expected,
        "{arguments:?}: {code:?}, not {expected:?}: {said}"
    );
}

fn record(directory: &Path, name: &str) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(directory.join(name)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether a setting of this machine limits the scenario, by the table or by the JSON.
fn code_of_settings(said: &str) -> i32 {
    if said.contains("LIMITS: ") || said.contains("\"limits\": true") { 99 } else { 0 }
}

/// Starts it at a free port, waits until it listens there, and stops it as Ctrl-C does.
fn serve(folder: &Path, arguments: &[String]) {
    let mut arguments = arguments.to_vec();
    if arguments.iter().all(|word| word != "--listen") {
        arguments.extend(["--listen", "127.0.0.1:0"].map(str::to_owned));
    }
    let listen = arguments.iter().position(|word| word == "--listen").expect("is there") + 1;
    let (place, _) = arguments[listen].rsplit_once(':').expect("ADDRESS:PORT");
    let place = place.replace("0.0.0.0", "127.0.0.1");
    // Another process may take the port in between: then this one ends at once; try another port.
    for _ in 0..5 {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a free port");
        arguments[listen] = format!("{place}:{}", address.port());
        let here = folder.join("data").display().to_string();
        let words = arguments.iter().map(|word| word.replace("{dir}", &here));
        let mut command = tacho();
        command.current_dir(folder).args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Kept(command.spawn().expect("starts"));
        let deadline = Instant::now() + PATIENCE;
        while child.0.try_wait().expect("is ours").is_none() {
            assert!(Instant::now() < deadline, "{arguments:?} does not listen");
            if TcpStream::connect(address).is_ok() {
                let pid = rustix::process::Pid::from_child(&child.0);
                rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is ours");
                let status = child.0.wait().expect("ends");
                assert_eq!(status.code(), Some(0), "{arguments:?}");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    panic!("{arguments:?} does not stay");
}

/// A process that does not outlive the test.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Flags exist and values are of their kinds: whatever stands before `--help` is parsed.
fn parse(folder: &Path, arguments: &[String]) -> String {
    // `tacho help` is no command that has help.
    let asks = (arguments != ["help"]).then_some("--help");
    let mut command = tacho();
    command.current_dir(folder).args(arguments).args(asks);
    let output = command.output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    // Help of the subcommand, not of the program: a word that is no subcommand would end there.
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let verb = arguments.first().filter(|word| !word.starts_with('-'));
    assert!(verb.is_none_or(|verb| verb == "help" || help.contains(&format!("tacho {verb}"))));
    help
}

/// Files that commands name.
fn prepare(folder: &Path, all: &[Document]) {
    let scenarios = all.iter().find(|document| document.name == "scenarios.md");
    let mine = toml_called(&scenarios.expect("is there").text, "mine").expect("has the example");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/fixtures/pairs.jmx");
    let plan = std::fs::read_to_string(plan).expect("reads the plan");
    for (name, text) in [
        ("mine.toml", mine.as_str()),
        ("my-scenario.toml", &mine),
        ("plan.jmx", &plan),
        ("password", "open sesame\n"),
        ("token", "0123456789abcdef0123\n"),
        ("token.key", "a secret for the tests of documents\n"),
        ("users", USERS),
    ] {
        std::fs::write(folder.join(name), text).expect("writes");
    }
    // Runs that readers have made.
    let days = ["monday", "tuesday"].map(str::to_owned);
    let numbered = (1..=5).flat_map(|number| [format!("old{number}"), format!("new{number}")]);
    for name in days.into_iter().chain(numbered) {
        made_run(&folder.join("runs").join(name), "run");
    }
    for name in ["ladder-of-one", "ladder-of-another"] {
        made_run(&folder.join("runs").join(name), "ladder");
    }
    for name in ["last-week", "this-week"] {
        let folder = folder.join("runs").join(name);
        made_run(&folder.join("steps/1"), "run");
        let repeat = serde_json::json!([{ "directory": "steps/1" }]);
        let sides = ["a", "b"].map(|name| serde_json::json!({ "name": name, "repeats": repeat }));
        let comparison = serde_json::json!({ "sides": sides }).to_string();
        std::fs::write(folder.join("comparison.json"), comparison).expect("writes");
    }
}

/// The directory of a run that the reader has made.
fn made_run(folder: &Path, kind: &str) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compare");
    let summary = std::fs::read_to_string(fixture.join("summary.json")).expect("reads");
    let mut summary: serde_json::Value = serde_json::from_str(&summary).expect("is JSON");
    summary["kind"] = kind.into();
    std::fs::create_dir_all(folder).expect("creates");
    std::fs::write(folder.join("summary.json"), summary.to_string()).expect("writes");
    for file in ["environment.json", "scenario.toml", "e2e.hgrm"] {
        std::fs::copy(fixture.join(file), folder.join(file)).expect("copies");
    }
    // Without rows: these tests do not depend on their contents.
    for table in ["timeseries.csv", "resources.csv", "latency.hlog"] {
        std::fs::write(folder.join(table), "").expect("writes");
    }
}

/// The chores of the repository, by name.
fn chores() -> BTreeSet<String> {
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/src/main.rs");
    let text = std::fs::read_to_string(main).expect("reads");
    let (_, list) = text.split_once("enum Chore {").expect("has the chores");
    let (list, _) = list.split_once("\n}").expect("ends");
    let names = list.lines().map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    names.map(|line| line.split(['(', ',']).next().unwrap_or_default().to_lowercase()).collect()
}

/// A broker that readers have running.
struct Broker {
    _child: Kept,
    port: u16,
}

impl Broker {
    fn start(folder: &Path, scheme: &str) -> Self {
        let mut command = tacho();
        command.args(["broker", "--listen", &format!("{scheme}://127.0.0.1:0")]);
        if scheme == "tls" {
            command.args(["--self-signed", "certificates"]);
        }
        command.current_dir(folder).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
        let port = lines.find_map(|line| {
            let (_, behind) =
                line.ok()?.split_once("127.0.0.1:").map(|(a, b)| (a.len(), b.to_owned()))?;
            behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        });
        // Whatever else it says goes nowhere, but must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { _child: Kept(child), port: port.expect("it says where it listens") }
    }
}
