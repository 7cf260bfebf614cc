//! Web pages that may open WebSockets.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use tacho_broker::{RawConfig, self_signed};
use tacho_testkit::wait_until;
use tempfile::TempDir;

use super::{broker_with, entry, open, tested};

/// The status that a request with these headers is answered with.
fn status(address: SocketAddr, headers: &str) -> u16 {
    let mut stream = open(address);
    let request = format!(
        "GET /mqtt HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: mqtt\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

#[test]
fn pages_that_are_not_listed_are_answered_with_403_and_counted() {
    let listed = "transport = 'ws'\norigins = ['https://app.example', 'http://localhost:8080']";
    for (keys, headers, expected) in [
        (listed, "Origin: https://app.example\r\n", 101),
        (listed, "origin: http://localhost:8080\r\n", 101),
        (listed, "", 101),
        (listed, "Origin: https://evil.example\r\n", 403),
        (listed, "Origin: null\r\n", 403),
        (&format!("{listed}\norigin_required = true"), "", 403),
        ("transport = 'ws'\norigins = []", "Origin: https://app.example\r\n", 403),
        // Without the key all pages may.
        ("transport = 'ws'", "Origin: https://evil.example\r\n", 101),
    ] {
        let broker = broker_with(1, "", keys);
        assert_eq!(status(tested(&broker), headers), expected, "{keys}: {headers}");
        let count = u64::from(expected == 403);
        wait_until("counted", || broker.counter("refused_origins_total") == count);
        // One that is opened is lost before its CONNECT.
        let is_failed = expected == 403 && broker.counter("failed_handshakes_total") > 0;
        assert!(!is_failed, "counted twice");
    }
}

#[test]
fn keys_of_origins_that_do_not_fit_are_refused_and_others_are_described() {
    let folder = TempDir::new().unwrap();
    let files = self_signed(folder.path(), []).unwrap();
    let resolve = |text: &str| {
        let raw: RawConfig = toml::from_str(text).unwrap();
        raw.resolve().map_err(|error| error.to_string())
    };
    for (keys, words) in [
        ("origins = ['https://app.example']", "use ws or wss"),
        ("transport = 'ws'\norigins = ['https://app.example/mqtt']", "without a path"),
        ("transport = 'ws'\norigin_required = true", "needs `origins`"),
    ] {
        let refused = resolve(&entry(keys)).unwrap_err();
        assert!(refused.contains(words) && refused.contains("127.0.0.1:0"), "{keys}: {refused}");
    }
    let tls = format!("cert = {:?}\nkey = {:?}\n", files.cert, files.key);
    let keys = format!("transport = 'wss'\n{tls}origins = ['https://app.example']");
    let config = resolve(&entry(&keys)).unwrap();
    assert_eq!(resolve(&config.describe()).unwrap().listeners, config.listeners);
}
