//! The client side of the agent protocol.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::line::{Lines, Received, parse};
use super::protocol::{
    AGENT_LINE_BYTES_MAX, DESCRIPTION_VERSION, FromAgent, Hello, Ping, Request, VERSION, Wanted,
};
use super::token::{Side, Token, nonce};
use crate::{ClockMap, Exchange, HostDescription, HostRow, MonitorSpec, now_ns};

/// Timeout for connecting and for each line of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Clock exchanges before the first row is used.
const FIRST_EXCHANGES: usize = 8;

/// Period of clock exchanges after that.
const PING_EVERY_NS: u64 = 500_000_000;

/// An authenticated connection to an agent.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: Lines,
    clock: ClockMap,
    /// Send time of the ping in flight.
    pinged_ns: Option<u64>,
    next_ping_ns: u64,
    /// Problems that the agent reported during the first clock exchanges.
    troubles: Vec<String>,
    /// The first description that the agent sent, until it is taken.
    description: Option<Box<HostDescription>>,
    described: bool,
    /// When the last line was received.
    pub(crate) heard_ns: u64,
}

/// A message from an agent.
#[derive(Debug)]
pub(crate) enum AgentUpdate {
    /// A row, its time mapped to the local clock.
    Row(Box<HostRow>),
    /// What the agent's host is.
    Description(Box<HostDescription>),
    /// Data that the agent cannot collect, and why.
    Trouble(String),
}

impl Connection {
    /// Connects, authenticates both sides, and synchronises with the agent's clock.
    ///
    /// # Errors
    /// A sentence that says what failed.
    pub(crate) fn open(address: &str, token: &Token, spec: &MonitorSpec) -> Result<Self, String> {
        let stream = connect(address)?;
        let broken = |error: io::Error| format!("the connection to the agent broke: {error}");
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_write_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(broken)?;
        let mut lines = Lines::new(stream, AGENT_LINE_BYTES_MAX);
        let silent = |error: io::Error| format!("not a monitoring agent: {error}");
        let (line, _) = lines.expect::<serde_json::Value>(HANDSHAKE_TIMEOUT).map_err(silent)?;
        if let Some(error) = line.get("error").and_then(serde_json::Value::as_str) {
            return Err(format!("the agent refused the connection: {error}"));
        }
        let hello: Hello =
            serde_json::from_value(line).map_err(|error| silent(io::Error::other(error)))?;
        if hello.tacho_monitor != VERSION {
            return Err(format!(
                "the agent uses version {} of the protocol, this program version {VERSION}",
                hello.tacho_monitor
            ));
        }
        let own = nonce().ok_or("the system's random number generator failed")?;
        let nonces = [hello.nonce.as_str(), own.as_str()];
        let request = Request {
            proof: token.proof(Side::Client, nonces),
            nonce: own.clone(),
            interval_ms: spec.interval.as_millis() as u64,
            processes: spec.processes.iter().map(Wanted::from_process).collect(),
            describe: DESCRIPTION_VERSION,
            data_dir: spec.data_dir.clone(),
        };
        lines.send(&request).map_err(broken)?;
        match lines.expect(HANDSHAKE_TIMEOUT).map_err(broken)?.0 {
            FromAgent::Welcome { proof, .. } if token.verify(Side::Agent, nonces, &proof) => {}
            FromAgent::Error { error } => {
                return Err(format!("the agent refused the connection: {error}"));
            }
            _ => {
                return Err(
                    "the peer does not know the token; is it a monitoring agent?".to_owned()
                );
            }
        }
        let now_ns = now_ns();
        let mut connection = Self {
            lines,
            clock: ClockMap::default(),
            pinged_ns: None,
            next_ping_ns: now_ns,
            troubles: Vec::new(),
            description: None,
            described: false,
            heard_ns: now_ns,
        };
        connection.synchronise_clock().map_err(broken)?;
        Ok(connection)
    }

    /// Runs the first clock exchanges. Rows received meanwhile cannot be mapped and are discarded.
    fn synchronise_clock(&mut self) -> io::Result<()> {
        let deadline_ns = now_ns() + HANDSHAKE_TIMEOUT.as_nanos() as u64;
        while self.clock.exchanges() < FIRST_EXCHANGES {
            if now_ns() > deadline_ns {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the agent did not answer a ping",
                ));
            }
            self.next_ping_ns = 0;
            if let Some(AgentUpdate::Trouble(trouble)) = self.wait(Duration::from_millis(100))? {
                self.troubles.push(trouble);
            }
        }
        Ok(())
    }

    /// Waits at most `wait` for an update, and keeps the clock synchronised.
    ///
    /// # Errors
    /// The connection broke, or the agent violated the protocol.
    pub(crate) fn next(&mut self, wait: Duration) -> io::Result<Option<AgentUpdate>> {
        if let Some(description) = self.description.take() {
            return Ok(Some(AgentUpdate::Description(description)));
        }
        match self.troubles.pop() {
            Some(trouble) => Ok(Some(AgentUpdate::Trouble(trouble))),
            None => self.wait(wait),
        }
    }

    fn wait(&mut self, wait: Duration) -> io::Result<Option<AgentUpdate>> {
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
                AgentUpdate::Row(row)
            })),
            FromAgent::Description { description } => {
                // One per connection: what else an agent sends is not kept.
                if !self.described {
                    self.described = true;
                    self.description = Some(Box::new(description.bounded()));
                }
                Ok(None)
            }
            FromAgent::Trouble { trouble } => Ok(Some(AgentUpdate::Trouble(trouble))),
            FromAgent::Error { error } => Err(io::Error::other(error)),
            FromAgent::Welcome { .. } => Err(io::Error::other("unexpected second welcome")),
        }
    }
}

/// Connects to the first address that accepts.
fn connect(address: &str) -> Result<TcpStream, String> {
    let addresses = address
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve the host name: {error}"))?;
    let mut last = "the host name resolves to no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, HANDSHAKE_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{error}; does 'tacho monitor --listen' run there?"),
        }
    }
    Err(last)
}
