//! The management API from outside: its answers, its doors, and its effects.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

mod acts;
mod alarms;
mod bridges;
mod clients;
mod description;
mod doors;
mod drain;
mod events;
mod explain;
mod listeners;
mod top;
mod topics;
mod trace;
mod whole;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::Value;
use tacho_testkit::{PATIENCE, TestBroker};
use tempfile::TempDir;

/// A broker with a management socket in a folder of its own.
struct Managed {
    broker: TestBroker,
    folder: TempDir,
}

/// One answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The JSON of an answer that says yes.
    fn json(self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    /// The field and the sentence of an answer that says no.
    fn error(self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{}", self.body);
        let error: Value = serde_json::from_str(&self.body).unwrap();
        let text = |key: &str| error["error"][key].as_str().unwrap_or_default().to_owned();
        (text("field"), text("message"))
    }
}

/// Asks on a connection of its own and reads the whole answer.
fn exchange(mut stream: impl Read + Write, head: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{head}Host: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // A request that is too long is answered before it is read, and its connection ends.
    let _ = stream.write_all(request.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

impl Managed {
    /// With `toml` before its own section, which `more` is the end of.
    fn start_with(toml: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("m.sock");
        let text = format!("{toml}\n[management]\nsocket = {socket:?}\n{more}\n");
        Self { broker: TestBroker::configured(&text), folder }
    }

    fn start(toml: &str) -> Self {
        Self::start_with(toml, "")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("m.sock")
    }

    fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        exchange(self.stream(), &format!("{method} /api/v1{target} HTTP/1.1\r\n"), body)
    }

    fn get(&self, target: &str) -> Value {
        self.ask("GET", target, "").json()
    }

    fn refused(&self, target: &str, status: u16) -> (String, String) {
        self.ask("GET", target, "").error(status)
    }

    /// The same by HTTP, with a key.
    fn ask_by_http(&self, method: &str, target: &str, key: &str) -> Answer {
        let address = self.broker.management_address();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("{method} /api/v1{target} HTTP/1.1\r\nAuthorization: Bearer {key}\r\n");
        exchange(stream, &head, "")
    }
}

/// A field of each row.
fn column<'a>(answer: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
    let rows = answer[list].as_array().unwrap().iter();
    let mut texts: Vec<&str> = rows.map(|row| row[key].as_str().unwrap()).collect();
    texts.sort_unstable();
    texts
}
