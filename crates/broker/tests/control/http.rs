//! A client of HTTP as simple as can be, and how the server keeps its bounds.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use tacho_testkit::{PATIENCE, TestBroker};

/// One answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks on a connection of its own.
pub(crate) fn get(address: SocketAddr, target: &str) -> Answer {
    request(
        address,
        &format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"),
    )
}

pub(crate) fn request(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    assert!(!head.contains("transfer-encoding"), "these answers have a length: {head}");
    Answer { status, head, body: body.to_owned() }
}

#[test]
fn only_what_is_meant_is_answered() {
    let broker = TestBroker::with_metrics("shards = 2");
    let address = broker.metrics_address();
    let index = get(address, "/");
    assert_eq!(index.status, 200);
    for path in ["/metrics", "/healthz", "/livez", "/clients", "/clients/slowest"] {
        assert!(index.body.contains(&format!("\n{path} ")), "{}", index.body);
        assert_eq!(get(address, path).status, 200, "{path}");
    }
    assert_eq!(get(address, "/healthz").body, "ok\n");
    assert_eq!(get(address, "/nothing").status, 404);
    assert_eq!(get(address, "/clients?limit=x").status, 400);
    assert_eq!(get(address, "/clients?after=x").status, 400);
    assert_eq!(get(address, "/clients/slowest?limit=1").status, 400, "it is called n there");
    let with = |method: &str, host: &str, more: &str| {
        let text = format!(
            "{method} /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        );
        request(address, &text).status
    };
    assert_eq!(with("POST", "127.0.0.1", "Content-Length: 0\r\n"), 405);
    assert_eq!(with("GET", "localhost:1", ""), 200);
    assert_eq!(with("GET", "evil.example", ""), 403);
    assert_eq!(with("GET", "127.0.0.1", "Origin: http://evil.example\r\n"), 403);
}

#[test]
fn long_requests_are_cut_off() {
    let broker = TestBroker::with_metrics("shards = 1");
    let mut stream = TcpStream::connect(broker.metrics_address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap();
    // 100 KB in all: the server that we use would take them.
    let line = format!("X-Long: {}\r\n", "x".repeat(2000));
    let _ = (0..50).all(|_| stream.write_all(line.as_bytes()).is_ok());
    let _ = stream.write_all(b"\r\n");
    let mut answer = Vec::new();
    // It may be reset, as not everything was read.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(get(broker.metrics_address(), "/healthz").status, 200);
}

/// Connections that are served at a time.
const PLACES: usize = 16;

#[test]
fn answers_come_while_idle_connections_take_all_places() {
    let broker = TestBroker::with_metrics("shards = 1");
    let address = broker.metrics_address();
    let half = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n");
    let mut idle = Vec::new();
    for _ in 0..2 * PLACES {
        idle.push(TcpStream::connect(address).unwrap());
        let mut asking = TcpStream::connect(address).unwrap();
        asking.write_all(half.as_bytes()).unwrap();
        idle.push(asking);
    }
    assert_eq!(get(address, "/healthz").status, 200);
    let metrics = get(address, "/metrics").body;
    let gave_way = metrics.lines().find_map(|line| line.strip_prefix("tacho_http_gave_way_total "));
    let gave_way: usize = gave_way.unwrap().parse().unwrap();
    assert!(gave_way >= 3 * PLACES, "{gave_way}");
    assert!(metrics.contains("\ntacho_http_timed_out_total 0"), "{metrics}");
    drop(idle);
}

#[test]
fn connections_are_bounded() {
    let broker = TestBroker::with_metrics("shards = 1");
    let address = broker.metrics_address();
    let mut streams: Vec<TcpStream> = (0..2 * PLACES)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            let text = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(text.as_bytes()).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream
        })
        .collect();
    // The older half has given way: to the end of the data, or with a reset.
    for stream in &mut streams[..PLACES] {
        let ended = stream.read(&mut [0; 4096]);
        assert!(
            ended
                .as_ref()
                .map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |len| *len == 0),
            "{ended:?}"
        );
    }
}
