//! Connections that wait for their peer, over real sockets.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use tacho_http::{Counters, Limits, serve};
use tacho_testkit::{PATIENCE, wait_until};
use tokio::sync::oneshot;

const PLACES: usize = 4;
/// More than the buffers of two sockets hold.
const LARGE: usize = 64 << 20;

struct Server {
    address: SocketAddr,
    counters: Arc<Counters>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let counters = Arc::<Counters>::default();
        let (end, ended) = oneshot::channel::<()>();
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/ignores", post(async || "done"))
            .route("/large", get(async || vec![b'x'; LARGE]));
        let counted = Arc::clone(&counters);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let end = async move { drop(ended.await) };
            runtime.unwrap().block_on(serve(listener, router, limits, counted, end)).unwrap();
        });
        Self { address, counters, end: Some(end), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn sends(&self, text: &str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    fn ask(&self) -> String {
        let mut answer = String::new();
        self.sends("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .read_to_string(&mut answer)
            .unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end = None;
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Has the server closed it, in whatever way?
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok_and(|_| rest.is_empty())
}

/// Reads an answer that says hello, and leaves the connection open.
fn is_answered(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    let mut text = String::new();
    while !text.ends_with("hello") {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return false,
            Ok(len) => text.push_str(&String::from_utf8_lossy(&bytes[..len])),
        }
    }
    true
}

#[test]
fn requests_are_answered_while_any_number_of_connections_stay_idle() {
    let server = Server::start(Limits::with_places(PLACES));
    let mut idle = Vec::new();
    for _ in 0..3 * PLACES {
        idle.push(server.connect());
        idle.push(server.sends("GET / HTTP/1.1\r\nHost: x\r\n"));
        idle.push(server.sends("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(server.ask().ends_with("hello"));
    }
    assert!(server.counters.gave_way() > 0);
    drop(idle);
}

#[test]
fn connection_that_asked_last_keeps_its_place() {
    let server = Server::start(Limits::with_places(PLACES));
    let mut first = server.sends("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(is_answered(&mut first));
    let mut idle: Vec<TcpStream> = (1..PLACES).map(|_| server.connect()).collect();
    // Its second answer is younger than the idle connections.
    first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(is_answered(&mut first));
    assert!(server.ask().ends_with("hello"));
    assert!(is_closed(&mut idle[0]), "the oldest idle connection gave way");
    first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(is_answered(&mut first));
}

#[test]
fn connections_end_at_their_deadlines() {
    let short = Duration::from_millis(20);
    let limits = Limits {
        request_time: short,
        idle_time: short,
        unread_time: short,
        ..Limits::with_places(PLACES)
    };
    let server = Server::start(limits);
    assert!(is_closed(&mut server.connect()));
    assert!(is_closed(&mut server.sends("GET / HTTP/1.1\r\nHost:")));
    let mut answered = server.sends("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(is_answered(&mut answered));
    assert!(is_closed(&mut answered));
    let _unread = server.sends("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until("all have ended", || server.counters.timed_out() == 4);
}

#[test]
fn requests_that_are_too_long_are_cut_off() {
    let limits = Limits { request_bytes_max: 1000, ..Limits::with_places(PLACES) };
    let server = Server::start(limits);
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n", "x".repeat(2000));
    assert!(!is_answered(&mut server.sends(&long)));
    // Each request has the whole limit.
    let mut stream = server.connect();
    for _ in 0..3 {
        let text = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(500));
        stream.write_all(text.as_bytes()).unwrap();
        assert!(is_answered(&mut stream));
    }
}

#[test]
fn a_connection_goes_on_after_a_body_that_was_left_unread() {
    let server = Server::start(Limits::with_places(PLACES));
    // Longer than what arrives with the head, and left unread in two ways: by a handler, and
    // because there is none.
    let body = "x".repeat(40_000);
    for path in ["/ignores", "/"] {
        let mut stream = server.sends(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}\
             GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            body.len()
        ));
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        assert!(answers.ends_with("hello"), "{path}: {answers}");
    }
}

#[test]
fn the_connection_of_a_long_body_that_is_left_unread_ends_with_its_answer() {
    let server = Server::start(Limits::with_places(PLACES));
    let head = "POST /ignores HTTP/1.1\r\nHost: x\r\n";
    for unread in [
        "Content-Length: 10000000\r\n\r\n".to_owned(),
        // It would come once it is asked for.
        "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n".to_owned(),
        // The length of it is not known, and it has no end.
        format!("Transfer-Encoding: chunked\r\n\r\n1000\r\n{}\r\n", "x".repeat(0x1000)),
    ] {
        let mut stream = server.sends(&format!("{head}{unread}"));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{unread}: {answer}");
        assert!(answer.contains("connection: close") && answer.ends_with("done"), "{answer}");
    }
}
