//! The other end of an agent.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::line::{Lines, Received, parse};
use super::protocol::{AGENT_LINE_BYTES_MAX, FromAgent, Hello, Ping, Request, VERSION, Wanted};
use super::token::{Side, Token, nonce};
use crate::{ClockMap, Exchange, HostRow, WatchedProcess, now_ns};

/// How long connecting and each line of the handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Exchanges of times before the first row is used.
const FIRST_EXCHANGES: usize = 8;

/// Exchanges of times afterwards come at this rhythm.
const PING_EVERY_NS: u64 = 500_000_000;

/// A connection to an agent that has admitted us.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: Lines,
    clock: ClockMap,
    /// A ping under way, by its time.
    pinged_ns: Option<u64>,
    next_ping_ns: u64,
    /// What the agent could not see while its clock was learnt.
    troubles: Vec<String>,
    /// When the agent said anything last.
    pub(crate) heard_ns: u64,
}

/// News from an agent.
#[derive(Debug)]
pub(crate) enum News {
    /// A row on our clock.
    Row(Box<HostRow>),
    /// Something it cannot see.
    Trouble(String),
}

impl Connection {
    /// Connects, proves that we know the token, lets the agent prove it, and learns its clock.
    ///
    /// # Errors
    /// A sentence that says what went wrong.
    pub(crate) fn open(
        address: &str,
        token: &Token,
        interval: Duration,
        processes: &[WatchedProcess],
    ) -> Result<Self, String> {
        let stream = connect(address)?;
        let broken = |error: io::Error| format!("the connection to the agent broke: {error}");
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
        let mut lines = Lines::new(stream, AGENT_LINE_BYTES_MAX);
        let silent = |error: io::Error| format!("it does not speak like an agent: {error}");
        let (line, _) = lines.expect::<serde_json::Value>(PATIENCE).map_err(silent)?;
        if let Some(error) = line.get("error").and_then(serde_json::Value::as_str) {
            return Err(format!("the agent refuses: {error}"));
        }
        let hello: Hello =
            serde_json::from_value(line).map_err(|error| silent(io::Error::other(error)))?;
        if hello.tacho_monitor != VERSION {
            return Err(format!(
                "the agent speaks version {} of the protocol, this program {VERSION}",
                hello.tacho_monitor
            ));
        }
        let own = nonce().ok_or("the system has no random numbers")?;
        let nonces = [hello.nonce.as_str(), own.as_str()];
        let request = Request {
            proof: token.proof(Side::Client, nonces),
            nonce: own.clone(),
            interval_ms: interval.as_millis() as u64,
            processes: processes.iter().map(Wanted::of).collect(),
        };
        lines.send(&request).map_err(broken)?;
        match lines.expect(PATIENCE).map_err(broken)?.0 {
            FromAgent::Welcome { proof, .. } if token.holds(Side::Agent, nonces, &proof) => {}
            FromAgent::Error { error } => return Err(format!("the agent refuses: {error}")),
            _ => return Err("it does not know the token itself: another program?".to_owned()),
        }
        let now_ns = now_ns();
        let mut connection = Self {
            lines,
            clock: ClockMap::default(),
            pinged_ns: None,
            next_ping_ns: now_ns,
            troubles: Vec::new(),
            heard_ns: now_ns,
        };
        connection.learn_clock().map_err(broken)?;
        Ok(connection)
    }

    /// A few exchanges at once. Rows that come meanwhile have no place in time and are left out.
    fn learn_clock(&mut self) -> io::Result<()> {
        let deadline_ns = now_ns() + PATIENCE.as_nanos() as u64;
        while self.clock.exchanges() < FIRST_EXCHANGES {
            if now_ns() > deadline_ns {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer to a ping"));
            }
            self.next_ping_ns = 0;
            if let Some(News::Trouble(trouble)) = self.wait(Duration::from_millis(100))? {
                self.troubles.push(trouble);
            }
        }
        Ok(())
    }

    /// Waits at most `wait` for news; keeps exchanging times.
    ///
    /// # Errors
    /// When the connection broke, or the agent says something else.
    pub(crate) fn next(&mut self, wait: Duration) -> io::Result<Option<News>> {
        match self.troubles.pop() {
            Some(trouble) => Ok(Some(News::Trouble(trouble))),
            None => self.wait(wait),
        }
    }

    fn wait(&mut self, wait: Duration) -> io::Result<Option<News>> {
        if self.pinged_ns.is_none() && now_ns() >= self.next_ping_ns {
            let asked_ns = now_ns();
            self.lines.send(&Ping { ping: asked_ns })?;
            self.pinged_ns = Some(asked_ns);
            self.next_ping_ns = asked_ns + PING_EVERY_NS;
        }
        let Received::Line(line, done_ns) = self.lines.next(wait)? else { return Ok(None) };
        self.heard_ns = done_ns;
        match parse(&line)? {
            FromAgent::Pong { pong, received_ns, answered_ns } => {
                if self.pinged_ns == Some(pong) {
                    self.pinged_ns = None;
                    self.clock.add(Exchange { asked_ns: pong, received_ns, answered_ns, done_ns });
                }
                Ok(None)
            }
            FromAgent::Row { mut row } => Ok(self.clock.map(row.at_ns).map(|mapped| {
                row.at_ns = mapped.at_ns;
                row.clock_error_ns = Some(mapped.error_ns);
                News::Row(row)
            })),
            FromAgent::Trouble { trouble } => Ok(Some(News::Trouble(trouble))),
            FromAgent::Error { error } => Err(io::Error::other(error)),
            FromAgent::Welcome { .. } => Err(io::Error::other("a second welcome")),
        }
    }
}

/// The first address that answers.
fn connect(address: &str) -> Result<TcpStream, String> {
    let addresses =
        address.to_socket_addrs().map_err(|error| format!("cannot find the host: {error}"))?;
    let mut last = "the host has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{error}; does 'tacho monitor --listen' run there?"),
        }
    }
    Err(last)
}
