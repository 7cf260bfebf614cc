//! The agent: serves one host's metrics to clients that hold the token.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::line::{Lines, Received, parse};
use super::protocol::{
    CLIENT_LINE_BYTES_MAX, DESCRIPTION_VERSION, FromAgent, Hello, PROCESSES_MAX, Ping, Request,
    VERSION, Wanted,
};
use super::token::TOKEN_VARIABLE;
use super::token::{Side, Token, nonce};
use crate::clock::next_tick_ns;
use crate::{MachineSampler, ProcRoot, WatchedProcess, describe_host, now_ns};

/// Limit on concurrent clients; each has a thread and a sampler.
const CLIENTS_MAX: u64 = 8;

/// Timeout for a client's authentication.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// How long sending a row may block on a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the stop flag is checked.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);

/// The shortest interval that a client may request.
const INTERVAL_MS_MIN: u64 = 100;

/// A listening agent; dropping it stops it.
#[derive(Debug)]
pub struct AgentServer {
    address: SocketAddr,
    shared: Arc<AgentState>,
    acceptor: Option<JoinHandle<()>>,
}

/// An agent's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounts {
    /// Clients connected now.
    pub clients: u64,
    /// Clients that authenticated.
    pub admitted: u64,
    /// Clients with a wrong token, a malformed request, or no request in time.
    pub refused: u64,
    /// Clients rejected because of the limit on concurrent clients.
    pub too_many: u64,
    /// Clients disconnected because they did not read.
    pub slow: u64,
    /// Rows sent.
    pub rows: u64,
}

/// An agent that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The address is not loopback and the token was generated.
    #[error(
        "{0} is reachable from other machines: set a token with --token-file or {variable}",
        variable = TOKEN_VARIABLE
    )]
    NoToken(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Debug)]
struct AgentState {
    token: Token,
    root: ProcRoot,
    processes: Vec<WatchedProcess>,
    stop: AtomicBool,
    clients: AtomicU64,
    admitted: AtomicU64,
    refused: AtomicU64,
    too_many: AtomicU64,
    slow: AtomicU64,
    rows: AtomicU64,
}

impl AgentServer {
    /// Listens on `address`. Every client receives the metrics of the machine, of `processes`, and
    /// of the processes that it selects. `token_given`: the user set the token; it was not
    /// generated.
    ///
    /// # Errors
    /// The address is not loopback and the token was generated, or the address cannot be bound.
    pub fn start(
        address: SocketAddr,
        token: Token,
        token_given: bool,
        root: ProcRoot,
        processes: Vec<WatchedProcess>,
    ) -> Result<Self, AgentError> {
        if !token_given && !is_loopback(address.ip()) {
            return Err(AgentError::NoToken(address));
        }
        let failed = |source| AgentError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let zero = || AtomicU64::new(0);
        let shared = Arc::new(AgentState {
            token,
            root,
            processes,
            stop: AtomicBool::new(false),
            clients: zero(),
            admitted: zero(),
            refused: zero(),
            too_many: zero(),
            slow: zero(),
            rows: zero(),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("monitor-accept".to_owned())
                .spawn(move || accept(&listener, &shared))
                .map_err(failed)?
        };
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counters.
    pub fn counts(&self) -> AgentCounts {
        let shared = &self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AgentCounts {
            clients: count(&shared.clients),
            admitted: count(&shared.admitted),
            refused: count(&shared.refused),
            too_many: count(&shared.too_many),
            slow: count(&shared.slow),
            rows: count(&shared.rows),
        }
    }
}

impl Drop for AgentServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(acceptor) = self.acceptor.take() {
            // The acceptor joins the client threads; a panic has already been printed.
            let _ = acceptor.join();
        }
    }
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
    }
}

impl AgentState {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn accept(listener: &TcpListener, shared: &Arc<AgentState>) {
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    while !shared.stopping() {
        clients.retain(|client| !client.is_finished());
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(STOP_CHECK_EVERY);
            continue;
        };
        if shared.clients.load(Ordering::Relaxed) >= CLIENTS_MAX {
            add(&shared.too_many);
            let error = format!("the limit of {CLIENTS_MAX} clients is reached");
            let _ = prepare(&stream)
                .and_then(|()| Lines::new(stream, 0).send(&FromAgent::Error { error }));
            continue;
        }
        add(&shared.clients);
        let of_client = Arc::clone(shared);
        let thread =
            std::thread::Builder::new().name("monitor-client".to_owned()).spawn(move || {
                serve(stream, &of_client);
                of_client.clients.fetch_sub(1, Ordering::Relaxed);
            });
        match thread {
            Ok(thread) => clients.push(thread),
            Err(_) => {
                shared.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
    for client in clients {
        let _ = client.join();
    }
}

/// On some systems accepted sockets inherit non-blocking mode.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))
}

fn serve(stream: TcpStream, shared: &AgentState) {
    if prepare(&stream).is_err() {
        return;
    }
    let mut lines = Lines::new(stream, CLIENT_LINE_BYTES_MAX);
    let request = match admit(&mut lines, shared) {
        Ok(request) => request,
        Err(error) => {
            add(&shared.refused);
            let _ = lines.send(&FromAgent::Error { error });
            return;
        }
    };
    add(&shared.admitted);
    if let Err(error) = stream_rows(&mut lines, shared, request)
        && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
    {
        add(&shared.slow);
    }
}

/// Authenticates a client; returns its request and a sampler for it.
fn admit(lines: &mut Lines, shared: &AgentState) -> Result<(Request, MachineSampler), String> {
    let own = nonce().ok_or("the agent's random number generator failed")?;
    let hello = Hello { tacho_monitor: VERSION, nonce: own.clone() };
    lines.send(&hello).map_err(|error| error.to_string())?;
    let (mut request, _): (Request, u64) =
        lines.expect(HANDSHAKE).map_err(|error| format!("no request: {error}"))?;
    let nonces = [own.as_str(), request.nonce.as_str()];
    if !shared.token.verify(Side::Client, nonces, &request.proof) {
        return Err("the token does not match".to_owned());
    }
    if request.processes.len() > PROCESSES_MAX {
        return Err(format!("more than {PROCESSES_MAX} processes are selected"));
    }
    let asked: Option<Vec<WatchedProcess>> =
        std::mem::take(&mut request.processes).into_iter().map(Wanted::into_process).collect();
    let mut processes =
        asked.ok_or("a process is selected by exactly one of pid, name and port")?;
    for process in &shared.processes {
        if !processes.iter().any(|known| known.selector == process.selector) {
            processes.push(process.clone());
        }
    }
    let sampler = MachineSampler::new(shared.root.clone(), processes);
    let proof = shared.token.proof(Side::Agent, nonces);
    let welcome = FromAgent::Welcome { host: sampler.host_name().to_owned(), proof };
    lines.send(&welcome).map_err(|error| error.to_string())?;
    Ok((request, sampler))
}

/// Sends rows and answers pings until the client disconnects or the agent stops.
fn stream_rows(
    lines: &mut Lines,
    shared: &AgentState,
    (request, mut sampler): (Request, MachineSampler),
) -> io::Result<()> {
    let interval = Duration::from_millis(request.interval_ms.clamp(INTERVAL_MS_MIN, 3_600_000));
    if request.describe >= DESCRIPTION_VERSION {
        let (data, brokers) = (request.data_dir.as_deref(), sampler.selected());
        let description = Box::new(describe_host(&shared.root, data, &brokers));
        lines.send(&FromAgent::Description { description })?;
    }
    let mut due_ns = now_ns();
    let mut trouble = Vec::new();
    while !shared.stopping() {
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            match sampler.sample(now_ns()) {
                Ok(Some(row)) => {
                    lines.send(&FromAgent::Row { row: Box::new(row) })?;
                    add(&shared.rows);
                }
                Ok(None) => {}
                Err(error) => lines.send(&FromAgent::Trouble { trouble: error.to_string() })?,
            }
            let missing = sampler.missing();
            for what in missing.iter().filter(|what| !trouble.contains(*what)) {
                lines.send(&FromAgent::Trouble {
                    trouble: format!("no such process yet: {what}"),
                })?;
            }
            trouble = missing;
            due_ns = next_tick_ns(due_ns, interval, now_ns());
            continue;
        }
        if let Received::Line(line, received_ns) =
            lines.next(STOP_CHECK_EVERY.min(Duration::from_nanos(left_ns)))?
        {
            let Ping { ping } = parse(&line)?;
            let answered_ns = now_ns();
            lines.send(&FromAgent::Pong { pong: ping, received_ns, answered_ns })?;
        }
    }
    Ok(())
}
