//! A client of the management API over its Unix socket, made by hand.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Api {
    socket: PathBuf,
}

impl Api {
    pub(super) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// The body of an answer of 200.
    pub(super) fn text(&self, path: &str) -> Result<String> {
        let mut stream = UnixStream::connect(&self.socket).context("cannot reach the API")?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        // Of HTTP 1.0, so that the answer is no sequence of chunks.
        write!(stream, "GET /api/v1{path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).with_context(|| format!("no answer to {path}"))?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
        ensure!(head.split(' ').nth(1) == Some("200"), "{path}: {answer}");
        Ok(body.to_owned())
    }

    pub(super) fn json(&self, path: &str) -> Result<Value> {
        serde_json::from_str(&self.text(path)?).with_context(|| format!("{path}: no JSON"))
    }
}
