//! The live page and the page of past runs, as any HTTP client sees them.

mod agents;
mod idle;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use tacho_testkit::PATIENCE;
use tacho_testkit::runs::assert_code;

/// A run that goes on until it is stopped.
const LONG: [&str; 12] = [
    "--var",
    "publishers=4",
    "--var",
    "subscribers=4",
    "--var",
    "target_throughput=40",
    "--var",
    "ramp_up=100ms",
    "--var",
    "warmup=200ms",
    "--var",
    "duration=10m",
];

/// Tacho with a page.
struct Program {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: SocketAddr,
    /// Of the console.
    access: Option<String>,
}

impl Program {
    /// Starts it and waits until it says where its page is.
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tacho"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let stderr = BufReader::new(child.stderr.take().expect("is piped"));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut program = Self { child, stderr, address, access: None };
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let read = program.stderr.read_line(&mut line).expect("reads");
            assert!(read > 0, "no address in {said}");
            said.push_str(&line);
            if let Some((_, rest)) = line.split_once("http://") {
                let address = rest.split('/').next().unwrap_or_default();
                program.address = address.parse().expect("a numeric address");
                program.access =
                    rest.trim().split_once("?token=").map(|(_, token)| token.to_owned());
                return program;
            }
        }
    }

    fn run(directory: &Path, more: &[&str]) -> Self {
        let directory = directory.to_str().expect("UTF-8");
        let mut arguments = vec!["run", "symmetric", "--ui", "0", "--dir", directory];
        arguments.extend(LONG);
        arguments.extend(more);
        Self::start(&arguments)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("sets");
        stream
    }

    /// The head and the body of the answer to `request`, which gets a line that ends connections.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        let (line, headers) = request.split_once('\n').unwrap_or((request, ""));
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.to_ascii_lowercase().contains("host:") {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        if let Some(token) = &self.access {
            text.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        text.extend(headers.lines().flat_map(|line| [line, "\r\n"]));
        text.push_str("\r\n");
        stream.write_all(text.as_bytes()).expect("sends");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    fn status(&self, request: &str) -> u16 {
        let (head, _) = self.ask(request);
        head.split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("{head}"))
    }

    /// The token that the page carries.
    fn token(&self) -> String {
        let (_, page) = self.ask("GET /");
        let (_, rest) = page.split_once("name=\"tacho-token\" content=\"").expect("has a token");
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    fn events(&self) -> Events {
        let mut stream = self.connect();
        let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("sends");
        Events(BufReader::new(stream))
    }

    /// Ctrl-C; without effect when it has ended.
    fn interrupt(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
    }

    /// The exit code and what was said on standard error since the address.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("reads");
        let code = self.child.wait().expect("ends").code();
        (code, said)
    }
}

impl Drop for Program {
    /// Ends it as Ctrl-C does, so that it takes the broker that it started with it.
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        self.interrupt();
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event of one of these kinds; `None` when the stream has ended.
    fn next_of(&mut self, kinds: &[&str]) -> Option<(String, serde_json::Value)> {
        let deadline = Instant::now() + PATIENCE;
        let mut kind = String::new();
        while Instant::now() < deadline {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("reads") == 0 {
                return None;
            }
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ")
                && kinds.contains(&kind.as_str())
            {
                return Some((kind, serde_json::from_str(data).expect("JSON")));
            }
        }
        panic!("none of {kinds:?} came");
    }

    /// What is told about the run; where it was told before the events were asked for, they begin
    /// with it.
    fn run(&mut self) -> serde_json::Value {
        match self.wait_for("hello")["run"].take() {
            serde_json::Value::Null => self.wait_for("run"),
            run => run,
        }
    }

    fn wait_for(&mut self, kind: &str) -> serde_json::Value {
        self.next_of(&[kind]).unwrap_or_else(|| panic!("the stream ended before {kind}")).1
    }
}

#[test]
fn the_page_shows_the_run_and_stops_it() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let program = Program::run(&directory, &[]);
    let mut events = program.events();
    let hello = events.wait_for("hello");
    assert_eq!(hello["kind"], "run");
    assert!(hello["name"].as_str().is_some_and(|name| name.ends_with("-symmetric")), "{hello}");

    let mut measured = 0.0;
    let mut last_s = -1.0;
    while measured == 0.0 {
        let second = events.wait_for("second");
        let start_s = second["start_s"].as_f64().expect("a number");
        assert!(start_s > last_s, "{second}");
        last_s = start_s;
        assert_eq!(second["clients"], 8);
        if second["phase"] == "measure" {
            measured = second["received_per_s"].as_f64().expect("a number");
        }
    }
    let host = events.wait_for("host");
    assert!(host["host"]["cpu"]["user"].is_number(), "{host}");

    // A browser that connects later gets the earlier events.
    let mut late = program.events();
    let hello = late.wait_for("hello");
    assert_eq!(hello["run"]["scenario"], "symmetric", "{hello}");
    assert_eq!(hello["phase"]["name"], "measure", "{hello}");
    assert_eq!(hello["phase"]["planned_s"], 600.0, "{hello}");
    let (kind, first) = late.next_of(&["second", "ready"]).expect("events");
    assert_eq!(kind, "second");
    assert!(first["start_s"].as_f64().expect("a number") < last_s, "{first}");
    late.wait_for("ready");

    // Only the page's own button works.
    assert_eq!(program.status("GET /stop"), 405);
    assert_eq!(program.status("POST /stop"), 403);
    assert_eq!(program.status("POST /stop\nX-Tacho-Token: 0123456789abcdef"), 403);
    let token = program.token();
    assert!(token.len() >= 32, "{token}");
    let foreign = format!("POST /stop\nX-Tacho-Token: {token}\nOrigin: https://evil.example");
    assert_eq!(program.status(&foreign), 403);
    let renamed = format!("POST /stop\nX-Tacho-Token: {token}\nHost: evil.example");
    assert_eq!(program.status(&renamed), 403);
    assert_eq!(program.status(&format!("POST /stop\nX-Tacho-Token: {token}")), 202);

    let step = events.wait_for("step");
    assert_eq!((step["number"].clone(), step["verdict"].clone()), (1.into(), "aborted".into()));
    let end = events.wait_for("end");
    assert_eq!((end["verdict"].clone(), end["stays"].clone()), ("aborted".into(), false.into()));
    assert_eq!(end["files"][0], "report.html");
    assert!(events.next_of(&["second"]).is_none());
    let (code, said) = program.end();
    assert_eq!(code, Some(105), "{said}");
    let summary = fs::read_to_string(directory.join("summary.json")).expect("a partial report");
    assert!(summary.contains("\"aborted\""), "{summary}");
    assert!(directory.join("report.html").is_file());
}

const STORM: [&str; 14] = [
    "--var",
    "clients=6",
    "--var",
    "bystanders=2",
    "--var",
    "first_storm=1s",
    "--var",
    "between=2s",
    "--var",
    "storms=2",
    "--var",
    "ramp_up=100ms",
    "--var",
    "warmup=200ms",
];

#[test]
fn actions_are_shown_live_and_to_browsers_that_connect_later() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let path = directory.to_str().expect("UTF-8");
    let mut arguments = vec!["run", "reconnect-storm", "--ui", "0", "--hold", "10m", "--dir", path];
    arguments.extend(STORM);
    let mut program = Program::start(&arguments);
    let mut events = program.events();
    let hello = events.wait_for("hello");
    assert_eq!(hello["actions"], serde_json::json!([]), "{hello}");
    let mut begun = f64::MAX;
    let mut last = serde_json::Value::Null;
    while last["number"] != 1 || !last["followed"].as_str().is_some_and(|so| so.starts_with("6 of"))
    {
        let (kind, told) = events.next_of(&["action", "phase"]).expect("an event");
        if kind == "phase" && told["name"] == "measure" {
            begun = told["at_s"].as_f64().expect("a time");
        }
        if kind == "action" {
            assert_eq!((&told["run"], &told["kind"]), (&1.into(), &"disconnect".into()), "{told}");
            assert_eq!(
                (&told["what"], &told["clients"]),
                (&"all of storm break off".into(), &6.into())
            );
            last = told;
        }
    }
    // On the page's axis, three seconds after the measured phase began; a busy machine may tell of
    // either late.
    let at_s = last["at_s"].as_f64().expect("a time");
    assert!((1.0..begun + PATIENCE.as_secs_f64()).contains(&at_s), "{last} {begun}");
    let hello = program.events().wait_for("hello");
    let known = hello["actions"].as_array().expect("actions");
    assert_eq!(known.len(), 2, "{hello}");
    assert_eq!((known[0]["number"].clone(), &known[1]), (0.into(), &last), "{hello}");
    program.interrupt();
    events.wait_for("end");
}

#[test]
fn names_that_are_not_ours_are_refused_and_pages_are_fenced() {
    let place = tempfile::tempdir().expect("temporary directory");
    let program = Program::run(&place.path().join("run"), &[]);
    let port = program.address.port();
    let (head, page) = program.ask("GET /");
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    assert!(head.contains("frame-ancestors 'none'"), "{head}");
    assert!(!page.contains("{token}"), "{page}");
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(program.status(&format!("GET /\nHost: {host}")), 200, "{host}");
    }
    for path in ["/", "/events", "/run/summary.json", "/uplot.js", "/live.js", "/nothing"] {
        for host in ["evil.example", "evil.example:9740", "127.0.0.1.nip.io", "192.0.2.1", ""] {
            assert_eq!(program.status(&format!("GET {path}\nHost: {host}")), 403, "{path} {host}");
        }
        let foreign = format!("GET {path}\nOrigin: http://evil.example");
        assert_eq!(program.status(&foreign), 403, "{path}");
    }
    assert_eq!(program.status("GET /run/../run/summary.json"), 404);
    assert_eq!(program.status("GET /run/%2e%2e/secret"), 404);
    // Files come to be as the run goes on.
    program.events().wait_for("second");
    assert_eq!(program.status("GET /run/scenario.toml"), 200);
    assert_eq!(program.status("GET /live.css"), 200);
    let (_, library) = program.ask("GET /uplot.js");
    assert!(library.contains("Leon Sorokin"), "the licence of uPlot goes with it");
}

#[test]
fn a_page_that_stays_serves_the_report_until_its_button_ends_it() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let program = Program::run(&directory, &["--ui-wait", "--var", "duration=1s"]);
    let mut events = program.events();
    let end = events.wait_for("end");
    assert_eq!(end["stays"], true, "{end}");
    assert_eq!(end["files"][0], "report.html", "{end}");
    let (head, report) = program.ask("GET /run/report.html");
    assert!(head.contains("text/html") && head.contains("sandbox"), "{head}");
    assert!(report.contains("symmetric"));
    assert_eq!(program.status("GET /run/summary.json"), 200);
    // A browser that connects only now sees the whole run.
    let mut late = program.events();
    assert_eq!(late.wait_for("hello")["end"]["stays"], true);
    late.wait_for("second");
    let token = program.token();
    assert_eq!(program.status(&format!("POST /stop\nX-Tacho-Token: {token}")), 202);
    let (code, said) = program.end();
    let record = fs::read_to_string(directory.join("summary.json")).expect(&said);
    let record = serde_json::from_str(&record).expect("is JSON");
    assert_code(code, &record, &[]);
}

#[test]
fn a_signal_ends_the_run_and_the_page_that_would_stay() {
    let place = tempfile::tempdir().expect("temporary directory");
    let mut program = Program::run(&place.path().join("run"), &["--ui-wait"]);
    let mut events = program.events();
    events.wait_for("second");
    program.interrupt();
    let end = events.wait_for("end");
    assert_eq!((end["verdict"].clone(), end["stays"].clone()), ("aborted".into(), false.into()));
    let (code, said) = program.end();
    assert_eq!(code, Some(105), "{said}");
}

#[test]
fn a_run_that_ends_before_it_began_says_so() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let directory = directory.to_str().expect("UTF-8");
    // This broker never listens: it sleeps for so many seconds and as many as its port.
    let broker = ["--broker-cmd", "sleep 600 {port}"];
    let mut arguments = vec!["run", "symmetric", "--ui", "0", "--dir", directory];
    arguments.extend(broker);
    let program = Program::start(&arguments);
    let mut events = program.events();
    assert!(events.wait_for("hello")["run"].is_null());
    let token = program.token();
    assert_eq!(program.status(&format!("POST /stop\nX-Tacho-Token: {token}")), 202);
    assert!(events.wait_for("end")["verdict"].is_null());
    let (code, said) = program.end();
    assert_eq!(code, Some(105), "{said}");
}

#[test]
fn a_comparison_that_fails_says_so() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = place.path().join("run");
    let directory = directory.to_str().expect("UTF-8");
    let small =
        ["--scale", "0.01", "--scale-clients", "0.01", "--hold", "300ms", "--ramp-up", "50ms"];
    let fails = ["--before-b", "echo there is no such setting; exit 3", "--make-up", "0"];
    let page = ["--ui", "0", "--ui-wait", "--dir", directory];
    let program = Program::start(&[&["compare", "symmetric"][..], &small, &fails, &page].concat());
    let mut events = program.events();
    assert_eq!(events.wait_for("hello")["kind"], "comparison");
    let end = events.wait_for("end");
    assert_eq!((&end["verdict"], &end["stays"]), (&"aborted".into(), &true.into()), "{end}");
    assert!(end.to_string().contains("the command before repeat 1 of b failed"), "{end}");
    let token = program.token();
    assert_eq!(program.status(&format!("POST /stop\nX-Tacho-Token: {token}")), 202);
    let (code, said) = program.end();
    assert_eq!(code, Some(1), "{said}");
}

/// No other browser could watch while one client held all places.
#[test]
fn one_browser_too_many_displaces_the_oldest_and_the_run_goes_on() {
    let place = tempfile::tempdir().expect("temporary directory");
    let program = Program::run(&place.path().join("run"), &[]);
    let mut streams: Vec<Events> = (0..16).map(|_| program.events()).collect();
    for stream in &mut streams {
        stream.wait_for("ready");
    }
    let mut browser = program.events();
    browser.wait_for("second");
    streams[0].wait_for("displaced");
    streams[15].wait_for("second");
    assert_eq!(program.status("GET /"), 200);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let place = tempfile::tempdir().expect("temporary directory");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let taken = listener.local_addr().expect("has one").to_string();
    let directory = place.path().join("run");
    let directory = directory.to_str().expect("UTF-8");
    for arguments in [
        &["run", "symmetric", "--dir", directory, "--ui", &taken][..],
        &["serve", "--dir", place.path().to_str().expect("UTF-8"), "--listen", &taken],
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_tacho")).args(arguments).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{said}");
        assert!(said.contains(&taken), "{said}");
    }
    assert!(!Path::new(directory).exists(), "nothing was created");
}

#[test]
fn the_pages_of_the_console_are_fenced_and_serve_only_files_of_runs() {
    let place = tempfile::tempdir().expect("temporary directory");
    let runs = place.path().join("runs");
    let write = |path: &str, text: &str| {
        let path = runs.join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("creates");
        fs::write(path, text).expect("writes");
    };
    write("20260102-first/summary.json", "{\"verdict\": \"ok\"}");
    write("20260102-first/report.html", "<title>a report</title>");
    write("20260102-first/steps/01-a b/report.html", "<title>a step</title>");
    write("20260102-first/id_rsa", "secret");
    fs::write(place.path().join("report.html"), "secret").expect("writes");

    let program =
        Program::start(&["serve", "--dir", runs.to_str().expect("UTF-8"), "--listen", "0"]);
    for path in ["/", "/new", "/runs", "/runs/20260102-first", "/compare?ids=a,b", "/trends"] {
        let (head, page) = program.ask(&format!("GET {path}"));
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200") && page.contains("id=\"root\""), "{path}: {head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert!(head.contains("frame-src 'self'") && head.contains("frame-ancestors 'none'"));
    }
    for path in ["/assets/console.js", "/assets/console.css", "/assets/uplot.js"] {
        let (head, text) = program.ask(&format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 200") && text.len() > 1000, "{path}: {head}");
    }
    for (path, title) in [
        ("/runs/20260102-first/report.html", "a report"),
        ("/runs/20260102-first/steps/01-a%20b/report.html", "a step"),
    ] {
        let (head, body) = program.ask(&format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 200") && body.contains(title), "{path}: {head} {body}");
        // The page of the run frames it, in a sandbox.
        assert!(head.contains("frame-ancestors 'self'; sandbox allow-scripts"), "{head}");
    }
    for path in [
        "/runs/../report.html",
        "/runs/%2e%2e/report.html",
        "/runs/..%2freport.html",
        "/runs/%2e%2e%2freport.html",
        "/runs/20260102-first/..%2f..%2freport.html",
        "/runs/20260102-first/../../report.html",
        "/runs/20260102-first/id_rsa",
        "/runs//etc/passwd",
        "/runs/%2fetc%2fpasswd",
        "/runs/20260102-first/report.html%00",
        "/runs/20260102-first%5c..%5creport.html",
        "/runs/20260102-first/report.html/..",
        "/report.html",
        "/run/report.html",
    ] {
        let (head, body) = program.ask(&format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 4"), "{path}: {head}");
        assert!(!body.contains("secret"), "{path}");
    }
    assert_eq!(program.status("GET /\nHost: evil.example"), 403);
    assert_eq!(program.status("POST /stop\nContent-Type: application/json"), 404);
}

#[test]
fn a_folder_that_is_none_is_named() {
    let place = tempfile::tempdir().expect("temporary directory");
    let missing = place.path().join("missing");
    let output = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["serve", "--listen", "0", "--dir", missing.to_str().expect("UTF-8")])
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("missing") && said.contains("--dir"), "{said}");
}

#[test]
fn a_run_of_a_terminal_is_listed_while_it_goes_on_and_broken_once_it_is_killed() {
    let place = tempfile::tempdir().expect("temporary directory");
    let runs = place.path().to_str().expect("UTF-8");
    let serve = Program::start(&["serve", "--dir", runs, "--listen", "0"]);
    let mut run = Program::run(&place.path().join("20260102-symmetric"), &[]);
    run.events().wait_for("second");
    let of_run = || {
        let (_, run) = serve.ask("GET /api/v1/runs/20260102-symmetric");
        serde_json::from_str::<serde_json::Value>(&run).expect("is JSON")
    };
    assert_eq!(
        (of_run()["state"].clone(), of_run()["kind"].clone()),
        ("running".into(), "run".into())
    );
    // A run that is killed leaves its file, which says nothing any more.
    run.child.kill().expect("is killed");
    run.child.wait().expect("is gone");
    assert!(place.path().join("20260102-symmetric/running.json").exists());
    let broken = of_run();
    assert_eq!(broken["state"], "broken", "{broken}");
    assert!(broken["problems"].to_string().contains("was killed"), "{broken}");
}

#[test]
fn suites_and_plans_have_a_page_too() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let common = ["--hold", "1s", "--warmup", "200ms", "--ramp-up", "100ms", "--ui", "0"];
    let suite = ["run", "guide", "--only", "qos2/10K*"];
    let small = ["--scale", "0.01", "--scale-clients", "0.01", "--ui-wait"];
    let folder = directory("suite");
    let program = Program::start(&[&suite[..], &small, &common, &["--dir", &folder]].concat());
    let mut events = program.events();
    assert_eq!(events.wait_for("hello")["kind"], "suite");
    let end = events.wait_for("end");
    assert!(end["verdict"].is_string() && end["files"][0] == "report.html", "{end}");
    let steps = program.events().wait_for("hello")["steps"].clone();
    assert_eq!(steps[0]["label"], "row 1 of 1: QoS 2, 10K", "{steps}");
    assert_eq!(program.status("GET /run/summary.json"), 200);
    drop(program);

    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/fixtures/pairs.jmx");
    let plan = ["run", plan.to_str().expect("UTF-8"), "--broker", "builtin", "--ui-wait"];
    let folder = directory("plan");
    let program = Program::start(&[&plan[..], &common, &["--dir", &folder]].concat());
    let mut events = program.events();
    assert_eq!(events.run()["scenario"], "pairs");
    let second = events.wait_for("second");
    assert_eq!((&second["clients"], &second["parts"][1]["name"]), (&20.into(), &"Senders".into()));
    assert_eq!(second["parts"].as_array().map(Vec::len), Some(2), "two groups, one broker");
    let end = events.wait_for("end");
    assert!(end["verdict"].is_string() && end["files"][0] == "report.html", "{end}");
}
