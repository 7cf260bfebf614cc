use super::*;
use crate::ws::{OriginError, WsOrigins};

fn client() -> WsFilter {
    WsClient { host: "a:1".into(), path: "/mqtt".into(), protocol: "mqtt".into() }.filter()
}

fn server() -> WsFilter {
    WsServer {
        path: "/mqtt".into(),
        protocols: vec!["mqtt".into(), "mqttv3.1".into()],
        origins: None,
    }
    .filter()
}

fn said(filter: &mut WsFilter) -> Vec<u8> {
    let mut wire = Vec::new();
    filter.outbound(&[], &mut wire).unwrap();
    wire
}

fn heard(filter: &mut WsFilter, wire: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    filter.inbound(wire, &mut plain).map(|()| plain)
}

/// Both ends after the handshake.
fn pair() -> (WsFilter, WsFilter) {
    let (mut client, mut server) = (client(), server());
    assert_eq!(heard(&mut server, &said(&mut client)).unwrap(), b"");
    assert!(server.is_ready() && server.wants_write() && !client.is_ready());
    assert_eq!(heard(&mut client, &said(&mut server)).unwrap(), b"");
    assert!(client.is_ready());
    (client, server)
}

fn request(lines: &[&str]) -> Vec<u8> {
    let mut text = lines.join("\r\n");
    text.push_str("\r\n\r\n");
    text.into_bytes()
}

const GOOD: [&str; 7] = [
    "GET /mqtt?token=1 HTTP/1.1",
    "Host: a",
    "Connection: keep-alive, Upgrade",
    "Upgrade: WebSocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: chat, MQTT",
];

// [MQTT-6.0.0-3] [MQTT-6.0.0-4]
// [MQTT-3.1.1: 6.0.0-3] [MQTT-3.1.1: 6.0.0-4]
#[test]
fn a_handshake_may_arrive_in_any_pieces_followed_by_data() {
    let head = request(&GOOD);
    let mut frames = Vec::new();
    frame::write_data(Role::Client, b"first", &mut frames);
    let wire = [head.clone(), frames].concat();
    for piece in [1, 3, head.len(), head.len() + 1, wire.len()] {
        let mut server = server();
        let mut plain = Vec::new();
        for part in wire.chunks(piece) {
            server.inbound(part, &mut plain).unwrap();
        }
        assert_eq!(plain, b"first", "pieces of {piece}");
        let answer = String::from_utf8(said(&mut server)).unwrap().to_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        // The example of RFC 6455, section 1.3.
        assert!(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
        assert!(answer.contains("sec-websocket-protocol: mqtt"), "{answer}");
    }
}

#[test]
fn bad_requests_are_answered_and_refused() {
    let without = |word: &str| {
        let kept: Vec<&str> = GOOD.into_iter().filter(|line| !line.starts_with(word)).collect();
        request(&kept)
    };
    let with =
        |from: &str, to: &str| request(&GOOD.map(|line| if line == from { to } else { line }));
    for (wire, status) in [
        (with(GOOD[0], "GET / HTTP/1.1"), "404"),
        (with(GOOD[0], "GET /mqtt HTTP/1.0"), ""),
        (without("Connection"), "426"),
        (without("Upgrade"), "426"),
        (without("Sec-WebSocket-Version"), "426"),
        (with(GOOD[4], "Sec-WebSocket-Version: 8"), "426"),
        (without("Sec-WebSocket-Key"), "400"),
        (with(GOOD[5], "Sec-WebSocket-Key: short"), "400"),
        (without("Sec-WebSocket-Protocol"), "400"),
        (with(GOOD[6], "Sec-WebSocket-Protocol: chat"), "400"),
        (with(GOOD[1], "no colon"), "400"),
        ([b"GET /".to_vec(), vec![b'a'; 20_000]].concat(), "431"),
        (b"POST /mqtt HTTP/1.1\r\n\r\n".to_vec(), ""),
        (b"\x10\x0e\0\x04MQTT".to_vec(), ""),
    ] {
        let shown = String::from_utf8_lossy(&wire[..wire.len().min(60)]).into_owned();
        let mut server = server();
        let error = heard(&mut server, &wire).expect_err(&shown).to_string();
        assert!(error.starts_with("WebSocket: "), "{error}");
        let answer = String::from_utf8(said(&mut server)).unwrap();
        match status {
            "" => assert!(!answer.contains(" 101 "), "{shown}: {answer}"),
            status => {
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
            }
        }
        // No further output, and further input is ignored.
        let mut wire = Vec::new();
        server.finish(&mut wire);
        server.outbound(b"late", &mut wire).unwrap();
        assert!(wire.is_empty() && !server.is_ready());
        assert_eq!(heard(&mut server, &request(&GOOD)).unwrap(), b"");
    }
}

#[test]
fn only_listed_pages_open_a_web_socket_and_other_programs_are_no_pages() {
    let headers = |origins: &[&str]| -> Vec<String> {
        origins.iter().map(|origin| format!("Origin: {origin}")).collect()
    };
    let long = "x".repeat(10_000);
    let ours = "https://app.example";
    for (allowed, is_required, sent, is_open) in [
        (&[ours][..], false, &[ours][..], true),
        (&["http://localhost:8080", ours], false, &[ours], true),
        (&[ours], false, &[], true),
        (&[], false, &[], true),
        (&[], false, &[ours], false),
        (&[ours], true, &[], false),
        (&[ours], true, &[ours], true),
        (&[ours], false, &["http://app.example"], false),
        (&[ours], false, &["https://app.example:8443"], false),
        (&[ours], false, &["https://app.example.evil.example"], false),
        (&[ours], false, &["https://app.example/"], false),
        (&[ours], false, &["https://APP.example"], false),
        (&[ours], false, &["null"], false),
        (&[ours], false, &[""], false),
        (&[ours], false, &["https://app.example, https://evil.example"], false),
        (&[ours], false, &[ours, "https://evil.example"], false),
        (&[ours], false, &[ours, ours], false),
        // One that is longer than any buffer is not taken for none.
        (&[ours], false, &[&long], false),
    ] {
        let allowed = allowed.iter().map(|&origin| origin.to_owned()).collect();
        let origins = Some(WsOrigins { allowed, is_required });
        let protocols = vec!["mqtt".to_owned()];
        let mut server = WsServer { path: "/mqtt".into(), protocols, origins }.filter();
        let headers = headers(sent);
        let lines: Vec<&str> = GOOD.into_iter().chain(headers.iter().map(String::as_str)).collect();
        let result = heard(&mut server, &request(&lines));
        let answer = String::from_utf8(said(&mut server)).unwrap();
        let status = if is_open { "101" } else { "403" };
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{sent:?}: {answer}");
        assert!(answer.len() < 400, "{answer}");
        assert_eq!(server.is_ready(), is_open);
        if let Err(error) = result {
            assert!(error.get_ref().unwrap().is::<OriginError>() && !is_open, "{error}");
            assert!(error.to_string().len() < 300, "{error}");
        }
    }
}

#[test]
fn a_client_accepts_only_a_valid_response() {
    let answer = |edit: &dyn Fn(String) -> String| {
        let (mut client, mut server) = (client(), server());
        heard(&mut server, &said(&mut client)).unwrap();
        let answer = edit(String::from_utf8(said(&mut server)).unwrap());
        heard(&mut client, answer.as_bytes()).map(|_| client.is_ready())
    };
    assert!(answer(&|text| text).unwrap());
    assert!(answer(&|text| text.replace("sec-websocket-protocol: mqtt\r\n", "")).unwrap());
    for (from, to, words) in [
        ("101 Switching Protocols", "404 Not Found", "404 Not Found"),
        ("upgrade: websocket", "upgrade: h2c", "does not upgrade"),
        ("connection: Upgrade", "connection: close", "does not upgrade"),
        ("sec-websocket-accept: ", "sec-websocket-accept: x", "does not belong"),
        ("sec-websocket-protocol: mqtt", "sec-websocket-protocol: chat", "subprotocol chat"),
        (
            "upgrade: websocket",
            "upgrade: websocket\r\nsec-websocket-extensions: permessage-deflate",
            "extension",
        ),
        ("HTTP/1.1 101", "MQTT", "does not speak WebSocket"),
    ] {
        let error = answer(&|text| text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
}

#[test]
fn data_written_early_leaves_after_the_handshake() {
    let (mut client, mut server) = (client(), server());
    let mut wire = Vec::new();
    client.outbound(b"early ", &mut wire).unwrap();
    client.outbound(b"bird", &mut wire).unwrap();
    heard(&mut server, &wire).unwrap();
    heard(&mut client, &said(&mut server)).unwrap();
    assert!(client.wants_write());
    assert_eq!(heard(&mut server, &said(&mut client)).unwrap(), b"early bird");
    let mut hasty = WsServer { path: "/".into(), protocols: Vec::new(), origins: None }.filter();
    assert!(hasty.outbound(&vec![0; EARLY_BYTES_MAX + 1], &mut wire).is_err());
}

#[test]
fn only_the_last_ping_is_answered() {
    let (mut client, mut server) = pair();
    let mut wire = Vec::new();
    for payload in [b"one", b"two"] {
        let start = wire.len();
        frame::write_pong(Role::Client, payload, &mut wire);
        wire[start] = 0x89;
    }
    assert_eq!(heard(&mut server, &wire).unwrap(), b"");
    assert!(server.wants_write());
    let mut answer = Vec::new();
    server.outbound(b"data", &mut answer).unwrap();
    assert_eq!(answer[..5], *b"\x8a\x03two");
    assert!(!server.wants_write());
    assert_eq!(heard(&mut client, &answer).unwrap(), b"data");
}

#[test]
fn a_close_is_answered_with_its_code_after_the_last_data() {
    let (mut client, mut server) = pair();
    let mut wire = Vec::new();
    client.outbound(b"bye", &mut wire).unwrap();
    frame::write_close(Role::Client, 1001, &mut wire);
    frame::write_data(Role::Client, b"never", &mut wire);
    assert_eq!(heard(&mut server, &wire).unwrap(), b"bye");
    assert!(server.peer_closed());
    let mut answer = Vec::new();
    server.outbound(b"last", &mut answer).unwrap();
    server.finish(&mut answer);
    server.finish(&mut answer);
    server.outbound(b"too late", &mut answer).unwrap();
    assert_eq!(answer, b"\x82\x04last\x88\x02\x03\xe9");
    assert_eq!(heard(&mut client, &answer).unwrap(), b"last");
    assert!(client.peer_closed());
}

// [MQTT-6.0.0-1]
// [MQTT-3.1.1: 6.0.0-1]
#[test]
fn a_violation_is_answered_with_its_close_code() {
    for (wire, code) in [
        (&b"\x81\x82\0\0\0\0hi"[..], 1003_u16),
        (b"\x82\x02hi", 1002),
        (b"\x88\x81\0\0\0\0\x03", 1002),
        (b"\x88\x82\0\0\0\0\x03\xed", 1002),
        (b"\x88\x83\0\0\0\0\x03\xe8\xff", 1007),
    ] {
        let (_, mut server) = pair();
        let error = heard(&mut server, wire).expect_err("a violation");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut answer = Vec::new();
        server.finish(&mut answer);
        assert_eq!(answer, [&[0x88, 2][..], &code.to_be_bytes()].concat(), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_safe(
        wire in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        opened in proptest::prelude::any::<bool>(),
    ) {
        let (mut client, mut server) = if opened { pair() } else { (client(), server()) };
        for filter in [&mut client, &mut server] {
            for piece in wire.chunks(7) {
                let _ = heard(filter, piece);
                let _ = said(filter);
            }
            filter.finish(&mut Vec::new());
        }
    }
}
