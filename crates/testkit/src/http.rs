//! A service behind HTTP that keeps what it is sent and answers as it is told.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A request that came.
#[derive(Clone, Debug, Default)]
pub struct StubRequest {
    /// Its path with the query.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, as it was sent.
    pub body: Vec<u8>,
}

impl StubRequest {
    /// The value of a header; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct StubAnswer {
    /// The status.
    pub status: u16,
    /// Headers, a line each.
    pub headers: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl StubAnswer {
    /// An answer without headers.
    pub fn new(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }
}

/// What is done with a request.
#[derive(Clone, Debug)]
pub enum StubReply {
    /// It is answered.
    Answer(StubAnswer),
    /// Its connection stays open, and nothing comes.
    Silence,
    /// Its connection is closed.
    Close,
}

type Answering = Box<dyn FnMut(&StubRequest) -> StubReply + Send>;

struct StubState {
    answering: Answering,
    requests: Vec<StubRequest>,
    /// Those that were accepted.
    connections: Vec<TcpStream>,
    is_stopped: bool,
}

/// The service. It answers with the answers that it was given, one after the other, then with 204,
/// or as a function says.
///
/// Its threads end with the process, or when it is stopped; without requests they sleep.
pub struct StubService {
    address: SocketAddr,
    state: Arc<Mutex<StubState>>,
    accepting: JoinHandle<()>,
}

impl fmt::Debug for StubService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StubService").field("address", &self.address).finish_non_exhaustive()
    }
}

impl StubService {
    /// Listens on a free port of the loopback interface.
    pub fn start(answers: impl IntoIterator<Item = StubAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::on(listener, answers)
    }

    /// Serves on a listener that is there.
    pub fn on(listener: TcpListener, answers: impl IntoIterator<Item = StubAnswer>) -> Self {
        let mut answers: VecDeque<StubAnswer> = answers.into_iter().collect();
        Self::answering(listener, move |_| {
            StubReply::Answer(answers.pop_front().unwrap_or_else(|| StubAnswer::new(204, "")))
        })
    }

    /// Serves on a listener as a function says.
    pub fn answering(
        listener: TcpListener,
        answering: impl FnMut(&StubRequest) -> StubReply + Send + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("has an address");
        let state = StubState {
            answering: Box::new(answering),
            requests: Vec::new(),
            connections: Vec::new(),
            is_stopped: false,
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut state = lock(&shared);
                if state.is_stopped {
                    return;
                }
                state.connections.extend(stream.try_clone());
                drop(state);
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<StubRequest> {
        lock(&self.state).requests.clone()
    }

    /// How many connections it has accepted so far.
    pub fn connections(&self) -> usize {
        lock(&self.state).connections.len()
    }

    /// Closes its connections, also idle ones, and goes on.
    pub fn close_connections(&self) {
        for stream in &lock(&self.state).connections {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Ends: nothing listens at its address any more.
    pub fn stop(self) {
        lock(&self.state).is_stopped = true;
        self.close_connections();
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.join();
    }
}

fn lock(state: &Mutex<StubState>) -> MutexGuard<'_, StubState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, state: &Mutex<StubState>) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    while let Some(request) = read(&mut input) {
        let reply = {
            let mut state = lock(state);
            let reply = (state.answering)(&request);
            state.requests.push(request);
            reply
        };
        let answer = match reply {
            StubReply::Answer(answer) => answer,
            StubReply::Close => {
                let _ = out.shutdown(Shutdown::Both);
                return;
            }
            StubReply::Silence => {
                // Until the other side has had enough.
                let _ = std::io::copy(&mut input, &mut std::io::sink());
                return;
            }
        };
        let mut head = format!("HTTP/1.1 {} Stub\r\n", answer.status);
        for header in &answer.headers {
            head.push_str(&format!("{header}\r\n"));
        }
        if answer.status != 204 {
            head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
        }
        head.push_str("\r\n");
        let written = out.write_all(head.as_bytes()).and_then(|()| match answer.status {
            204 => Ok(()),
            _ => out.write_all(&answer.body),
        });
        if written.is_err() {
            return;
        }
    }
}

/// The next request of a connection.
fn read(input: &mut BufReader<TcpStream>) -> Option<StubRequest> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut request =
        StubRequest { path: line.split(' ').nth(1)?.to_owned(), ..StubRequest::default() };
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    input.read_exact(&mut request.body).ok()?;
    Some(request)
}
