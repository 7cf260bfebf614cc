//! A service behind HTTP that keeps what it is sent and answers as it is told.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

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

#[derive(Debug, Default)]
struct StubState {
    answers: VecDeque<StubAnswer>,
    requests: Vec<StubRequest>,
}

/// The service. It answers with the answers that it was given, one after the other, then with 204.
///
/// Its threads end with the process; without requests they sleep.
#[derive(Debug)]
pub struct StubService {
    address: SocketAddr,
    state: Arc<Mutex<StubState>>,
}

impl StubService {
    /// Listens on a free port of the loopback interface.
    pub fn start(answers: impl IntoIterator<Item = StubAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::on(listener, answers)
    }

    /// Serves on a listener that is there.
    pub fn on(listener: TcpListener, answers: impl IntoIterator<Item = StubAnswer>) -> Self {
        let address = listener.local_addr().expect("has an address");
        let answers = answers.into_iter().collect();
        let state = Arc::new(Mutex::new(StubState { answers, requests: Vec::new() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<StubRequest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<StubState>) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    while let Some(request) = read(&mut input) {
        let answer = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.requests.push(request);
            state.answers.pop_front().unwrap_or_else(|| StubAnswer::new(204, ""))
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
