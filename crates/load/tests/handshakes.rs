//! Reports of connections that fail after TCP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tacho_codec::QoS;
use tacho_load::{End, Failure, Phase, Target, TlsClient, TlsClientSettings, Transport, WsClient};
use tacho_testkit::load::{Scene, run};

/// A server that responds to any input with `answer` and closes; without one it never responds.
fn server(answer: Option<&'static [u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            match answer {
                None => kept.push(stream),
                Some(answer) => {
                    // Both may fail: the client may have closed the connection.
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(answer);
                }
            }
        }
    });
    addr
}

fn web_socket() -> Transport {
    Transport::Ws(WsClient {
        host: "a".into(),
        path: "/mqtt".into(),
        protocol: Transport::SUBPROTOCOL.into(),
    })
}

fn tls() -> Transport {
    let settings = TlsClientSettings {
        insecure: true,
        server_name: "localhost".into(),
        ..TlsClientSettings::default()
    };
    Transport::Tls(Arc::new(TlsClient::new(&settings).expect("usable")))
}

/// The failures of two clients, and the end of their run.
fn attempt(addr: SocketAddr, transport: Transport, timeout_ms: u64) -> (Vec<Failure>, End) {
    let mut plan = Scene::pairs(1, QoS::AtMostOnce).plan(addr);
    plan.targets = vec![Target { addr, transport, name: String::new() }];
    plan.phases[0] = Phase::Connect { timeout_ns: timeout_ms * 1_000_000 };
    let outcome = run(plan);
    assert_eq!(outcome.summary.connected, 0);
    assert_eq!(outcome.summary.handshake.len(), 0);
    (outcome.failures.into_iter().map(|(_, why)| why).collect(), outcome.summary.end)
}

#[test]
fn an_endless_handshake_times_out() {
    for transport in [web_socket(), tls()] {
        let (failures, end) = attempt(server(None), transport, 300);
        assert_eq!(failures.len(), 2);
        for failure in failures {
            assert!(matches!(failure, Failure::ConnectTimeout { waited_ms: 300.. }), "{failure}");
        }
        assert!(matches!(end, End::Unreachable(_)), "{end}");
    }
}

#[test]
fn wrong_protocols_are_named() {
    const MQTT: &[u8] = b"\x20\x03\0\0\0";
    const HTTP: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    for (answer, transport, words) in [
        (MQTT, web_socket(), "does not speak WebSocket"),
        (HTTP, web_socket(), "403 Forbidden"),
        (b"", web_socket(), "during the handshake"),
        (HTTP, tls(), "does not speak TLS"),
        (b"", tls(), "during the handshake"),
    ] {
        let (failures, end) = attempt(server(Some(answer)), transport, 30_000);
        for failure in &failures {
            assert!(
                matches!(failure, Failure::Connect(why) if why.message.contains(words)),
                "{failure}"
            );
        }
        assert_eq!(failures.len(), 2);
        assert!(end.to_string().contains(words), "{end}");
    }
}
