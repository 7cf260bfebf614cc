//! A console, and a client of its API.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_testkit::PATIENCE;

/// `tacho serve` with its token.
pub(crate) struct Console {
    pub(crate) child: Child,
    _stderr: BufReader<ChildStderr>,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Console {
    /// Serves a folder.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[], None)
    }

    /// The same with further arguments and a lock of the machine.
    pub(crate) fn start_with(folder: &Path, more: &[&str], lock: Option<&Path>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
        command.args(["serve", "--listen", "0", "--dir"]).arg(folder).args(more);
        if let Some(lock) = lock {
            command.env("TACHO_MACHINE_LOCK", lock);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("is piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("reads");
        let (_, link) = line.split_once("http://").unwrap_or_else(|| panic!("no link in {line}"));
        let (address, token) = link.trim().split_once("/?token=").expect("has a token");
        let address = address.parse().expect("a numeric address");
        Self { child, _stderr: stderr, address, token: token.to_owned() }
    }

    /// Asks with headers, one per line, as they are.
    pub(crate) fn raw(&self, line: &str, headers: &str, body: &[u8]) -> Answer {
        ask(self.address, line, headers, body)
    }

    pub(crate) fn with_token(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.raw(&format!("GET /api/v1{path}"), &self.with_token(), b"")
    }

    /// The JSON of an answer that must be right.
    pub(crate) fn read(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = format!("{}\nContent-Type: application/json", self.with_token());
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(&format!("{method} /api/v1{path}"), &headers, body.as_bytes())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, body)
    }

    pub(crate) fn upload(&self, name: &str, bytes: &[u8]) -> Answer {
        let headers = format!("{}\nContent-Type: application/octet-stream", self.with_token());
        self.raw(&format!("POST /api/v1/uploads?name={name}"), &headers, bytes)
    }

    /// Starts a run; its id.
    pub(crate) fn begin(&self, request: &Value) -> String {
        let answer = self.post("/runs", request);
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.json()["id"].as_str().expect("has an id").to_owned()
    }

    /// The run, once it is in that state.
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let run = self.read(&format!("/runs/{id}"));
            if run["state"] == state {
                return run;
            }
            assert!(Instant::now() < deadline, "{id} never is {state}: {run}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The events of a path.
    pub(crate) fn events(&self, path: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("sets");
        let (address, token) = (self.address, self.with_token());
        let request = format!("GET /api/v1{path} HTTP/1.1\r\nHost: {address}\r\n{token}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sends");
        BufReader::new(stream)
    }

    /// It ends as when its machine loses power: nothing is tidied up.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("is killed");
        self.child.wait().expect("is gone");
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a server with headers, one per line, as they are.
pub(crate) fn ask(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("sets");
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.to_ascii_lowercase().contains("host:") {
        text.push_str(&format!("Host: {address}\r\n"));
    }
    text.extend(headers.lines().flat_map(|line| [line, "\r\n"]));
    text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(text.as_bytes()).expect("sends");
    // A body that is too large is refused before it has all been read.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("{line}: {answer}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// What `look` finds, as soon as it does.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The data of the next event that contains `words`, of a run or of lists.
pub(crate) fn next_event(events: &mut BufReader<TcpStream>, words: &str) -> String {
    let mut seen = String::new();
    let mut event = String::new();
    loop {
        let mut line = String::new();
        let read = events.read_line(&mut line).expect("reads");
        assert!(read > 0, "the events ended before {words}: {seen}");
        // Chunks of the transfer have lines of their own.
        event.push_str(&line);
        if line.trim().is_empty() {
            if event.contains(words) {
                return event;
            }
            seen.push_str(&std::mem::take(&mut event));
        }
    }
}

/// A small load of so many seconds.
pub(crate) fn small(duration_s: f64) -> Value {
    json!({
        "scenario": "symmetric",
        "variables": {"publishers": 2, "subscribers": 2, "target_throughput": "20"},
        "ramp_up_s": 0.05, "warmup_s": 0.1, "duration_s": duration_s,
    })
}

/// One that goes on until it is stopped.
pub(crate) fn long() -> Value {
    small(300.0)
}
