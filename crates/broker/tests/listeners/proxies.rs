//! The PROXY protocol: the address that a trusted proxy tells is the client's everywhere.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use tacho_access::{Scheme, StoredPassword, set_user};
use tacho_broker::{RawConfig, self_signed};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_net::Filter;
use tacho_net::tls::{TlsClient, TlsClientSettings};
use tacho_testkit::{Client, TestBroker, connect, wait_until};
use tempfile::TempDir;

use super::{broker_with, bytes_of, client_on, connack, entry, open, tested};

const PROXY: &str = "proxy_protocol = true";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 1 for a client at this address.
fn line(client: &str) -> Vec<u8> {
    let family = if client.contains(':') { "TCP6" } else { "TCP4" };
    let proxy = if client.contains(':') { "::1" } else { "10.0.0.1" };
    format!("PROXY {family} {client} {proxy} 40000 1883\r\n").into_bytes()
}

/// One of version 2, with something behind the addresses.
fn binary(client: [u8; 4]) -> Vec<u8> {
    let behind = [0x05, 0, 2, b'i', b'd'];
    let ports = [0x9c, 0x40, 0x07, 0x5b];
    let body = [&client[..], &[10, 0, 0, 1], &ports, &behind].concat();
    [SIGNATURE, &[0x21, 0x11, 0, body.len() as u8], &body].concat()
}

/// A broker that writes an audit log, refuses 192.0.2.0/24 by its ban file and bans who guesses;
/// its second listener is for proxies.
struct Fortress {
    broker: TestBroker,
    folder: TempDir,
}

impl Fortress {
    fn start(more: &str, keys: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let stored = StoredPassword::make(b"ann", Scheme::Sha512).unwrap();
        fs::write(path("users"), set_user("", "ann", &stored)).unwrap();
        let bans = "[[bans]]\naddress = '192.0.2.0/24'\n[[bans]]\naddress = '2001:db8::/32'\n";
        fs::write(path("bans"), bans).unwrap();
        let section = format!(
            "[access]\npassword_file = {:?}\nban_file = {:?}\naudit_file = {:?}\n\
             login_failures_max = 2\n{more}",
            path("users"),
            path("bans"),
            path("audit")
        );
        Self { broker: broker_with(2, &section, &format!("{PROXY}\n{keys}")), folder }
    }

    /// The answer to a CONNECT behind a header.
    fn answer(&self, header: &[u8], connect: &Connect<'_>) -> ReasonCode {
        let mut client = client_on(open(tested(&self.broker)));
        client.send_raw(&[header, &bytes_of(connect)].concat());
        connack(&mut client)
    }

    fn audit(&self) -> String {
        fs::read_to_string(self.folder.path().join("audit")).unwrap_or_default()
    }
}

fn user<'a>(id: &'a str, password: &'a str) -> Connect<'a> {
    let credentials = (Some("ann"), Some(password.as_bytes()));
    Connect { username: credentials.0, password: credentials.1, ..connect(id, Version::V5) }
}

#[test]
fn a_client_has_the_address_of_its_header_in_bans_failed_logins_and_the_audit_log() {
    let fortress = Fortress::start("", "");
    let anonymous = connect("c", Version::V5);
    for (header, expected) in [
        (line("192.0.2.7"), ReasonCode::BANNED),
        (binary([192, 0, 2, 7]), ReasonCode::BANNED),
        (line("2001:db8::7"), ReasonCode::BANNED),
        (line("::ffff:192.0.2.7"), ReasonCode::BANNED),
        (line("198.51.100.7"), ReasonCode::SUCCESS),
        (binary([198, 51, 100, 7]), ReasonCode::SUCCESS),
        (line("2001:db9::7"), ReasonCode::SUCCESS),
        (b"PROXY UNKNOWN\r\n".to_vec(), ReasonCode::SUCCESS),
    ] {
        assert_eq!(fortress.answer(&header, &anonymous), expected, "{}", header.escape_ascii());
    }
    wait_until("a line", || fortress.audit().contains("\"address\":\"192.0.2.7:40000\""));

    let (one, other) = (line("198.51.100.1"), binary([198, 51, 100, 2]));
    for id in ["g1", "g2"] {
        let guess = fortress.answer(&one, &user(id, "wrong"));
        assert_eq!(guess, ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    }
    assert_eq!(fortress.answer(&one, &user("g3", "ann")), ReasonCode::BANNED);
    assert_eq!(fortress.answer(&other, &user("g3", "ann")), ReasonCode::SUCCESS);
    let unknown = b"PROXY UNKNOWN\r\n";
    assert_eq!(fortress.answer(unknown, &user("g4", "ann")), ReasonCode::SUCCESS);
    wait_until("a line", || {
        let audit = fortress.audit();
        audit.lines().any(|line| line.contains("banned for") && line.contains("198.51.100.1:40000"))
    });
}

#[test]
fn a_header_may_arrive_byte_by_byte_and_its_connection_moves_to_its_shard() {
    let broker = broker_with(3, "", PROXY);
    for (number, header) in [line("198.51.100.7"), binary([198, 51, 100, 7])].iter().enumerate() {
        // Identifiers of all shards.
        for id in 0..6 {
            let id = format!("c{number}{id}");
            let mut stream = open(tested(&broker));
            for byte in [&header[..], &bytes_of(&connect(&id, Version::V5))].concat() {
                stream.write_all(&[byte]).unwrap();
            }
            let mut client = client_on(stream);
            assert_eq!(connack(&mut client), ReasonCode::SUCCESS);
            client.subscribe("a", QoS::AtMostOnce);
            client.publish("a", b"x", QoS::AtMostOnce, false);
            assert_eq!(client.receive().payload, b"x");
            client.disconnect();
        }
    }
    assert_eq!(broker.counter("refused_proxy_headers_total"), 0);
}

/// Completes a TLS handshake behind what was sent already, and sends `plain`; whether anything
/// comes back.
fn tls_answers(mut stream: TcpStream, ca: &Path, plain: &[u8]) -> bool {
    let settings = TlsClientSettings {
        ca: Some(ca.to_owned()),
        server_name: "localhost".to_owned(),
        ..TlsClientSettings::default()
    };
    let mut tls = TlsClient::new(&settings).unwrap().filter().unwrap();
    let (mut answer, mut chunk, mut to_send) = (Vec::new(), [0; 4096], plain);
    while answer.is_empty() {
        let mut wire = Vec::new();
        let now = if tls.is_ready() { std::mem::take(&mut to_send) } else { &[] };
        tls.outbound(now, &mut wire).unwrap();
        if stream.write_all(&wire).is_err() {
            return false;
        }
        if now.is_empty() || !wire.is_empty() {
            match stream.read(&mut chunk) {
                Ok(len @ 1..) => tls.inbound(&chunk[..len], &mut answer).unwrap(),
                _ => return false,
            }
        }
    }
    true
}

#[test]
fn the_header_comes_before_tls_and_a_banned_client_gets_no_handshake() {
    let folder = TempDir::new().unwrap();
    let files = self_signed(folder.path(), []).unwrap();
    let keys = format!("transport = 'tls'\ncert = {:?}\nkey = {:?}\n", files.cert, files.key);
    let fortress = Fortress::start("", &keys);
    let hello = bytes_of(&connect("c", Version::V5));
    for (header, is_served) in [
        (line("198.51.100.7"), true),
        (binary([198, 51, 100, 7]), true),
        (line("192.0.2.7"), false),
    ] {
        let mut stream = open(tested(&fortress.broker));
        stream.write_all(&header).unwrap();
        assert_eq!(tls_answers(stream, &files.ca, &hello), is_served);
    }
    // Within TLS it is no header.
    let mut stream = open(tested(&fortress.broker));
    stream.write_all(&line("198.51.100.7")).unwrap();
    assert!(!tls_answers(stream, &files.ca, &line("198.51.100.7")));
    let counter = |name| fortress.broker.counter(name);
    assert_eq!((counter("refused_banned_total"), counter("protocol_errors_total")), (1, 1));
    // Without one, there is no handshake.
    assert!(!tls_answers(open(tested(&fortress.broker)), &files.ca, &hello));
    wait_until("counted", || counter("refused_proxy_headers_total") == 1);
}

#[test]
fn what_is_no_header_closes_the_connection_and_is_counted() {
    let broker = broker_with(1, "limits = { connect_timeout_s = 1 }", PROXY);
    let hello = bytes_of(&connect("c", Version::V5));
    let expect_closed = |bytes: &[u8]| {
        let mut client = client_on(open(tested(&broker)));
        client.send_carelessly(bytes);
        client.expect_closed();
    };
    let mut cut = binary([198, 51, 100, 7]);
    cut[15] -= 1;
    let malformed = [&hello[..], b"PROXY TCP4 1.2.3.4\r\n", &[b'P'; 200], &cut];
    for bytes in malformed {
        expect_closed(bytes);
    }
    let count = malformed.len() as u64;
    wait_until("counted", || broker.counter("refused_proxy_headers_total") == count);
    // Once only, and only where it is expected.
    for second in [line("192.0.2.7"), binary([192, 0, 2, 7])] {
        expect_closed(&[line("198.51.100.7"), second, hello.clone()].concat());
    }
    let mut plain = client_on(open(broker.address));
    plain.send_carelessly(&[line("198.51.100.7"), hello].concat());
    plain.expect_closed();
    assert_eq!(broker.counter("protocol_errors_total"), 3);
    // A part of one has the time of a handshake; a proxy that only looks is no fault.
    let mut late = client_on(open(tested(&broker)));
    late.send_raw(&binary([198, 51, 100, 7])[..20]);
    drop(open(tested(&broker)));
    late.expect_closed();
    assert_eq!(broker.counter("connect_timeouts_total"), 1);
    assert_eq!(broker.counter("refused_proxy_headers_total"), count);
    assert_eq!(broker.counter("failed_handshakes_total"), 0);
}

#[test]
fn other_addresses_than_the_proxies_are_refused_at_once() {
    let keys = format!("{PROXY}\nproxy_trusted = ['127.0.0.2', '10.0.0.0/8']");
    let broker = broker_with(1, "", &keys);
    let mut stranger = client_on(open(tested(&broker)));
    stranger.expect_closed();
    assert_eq!(broker.counter("refused_proxies_total"), 1);
    let mut other = Client::open(broker.address, Version::V5);
    assert_eq!(other.connect(&connect("c", Version::V5)).1, ReasonCode::SUCCESS);
}

/// A header of version 2 with what the proxy says of TLS: flags, the result of verifying the
/// client's certificate, and its common name.
fn with_name(flags: u8, verified: u32, name: &[u8]) -> Vec<u8> {
    let addresses = [198, 51, 100, 7, 10, 0, 0, 1, 0x9c, 0x40, 0x07, 0x5b];
    let value = |kind: u8, value: &[u8]| [&[kind, 0, value.len() as u8][..], value].concat();
    let tls = [&[flags][..], &verified.to_be_bytes(), &value(0x22, name)].concat();
    let body = [&addresses[..], &value(0x20, &tls)].concat();
    [SIGNATURE, &[0x21, 0x11, 0, body.len() as u8], &body].concat()
}

const NAMED: &str =
    "proxy_protocol = true\ncertificate_user = 'cn'\ncertificate_from_proxy = true\n";

#[test]
fn the_name_that_a_proxy_has_verified_is_the_user_and_no_other_one_is() {
    let folder = TempDir::new().unwrap();
    let acl = folder.path().join("acl");
    fs::write(&acl, "user pump-7\ntopic own\n").unwrap();
    let broker = TestBroker::configured(&format!(
        "shards = 3\n[access]\nacl_file = {acl:?}\n[[listeners]]\naddress = '127.0.0.1:0'\n\
         {NAMED}certificate_client_id = 'equal'\n"
    ));
    let connecting = |header: &[u8], id: &str| {
        let mut client = client_on(open(tested(&broker)));
        client.send_raw(&[header, &bytes_of(&connect(id, Version::V5))].concat());
        let reason = connack(&mut client);
        (client, reason)
    };
    let good = with_name(3, 0, b"pump-7");
    // The client identifier may lead it to another shard.
    let (mut client, reason) = connecting(&good, "pump-7");
    assert_eq!(reason, ReasonCode::SUCCESS);
    assert!(!client.subscribe("own", QoS::AtMostOnce).is_error());
    assert!(client.subscribe("other", QoS::AtMostOnce).is_error());
    assert_eq!(connecting(&good, "pump-8").1, ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
    for header in [
        with_name(3, 10, b"pump-7"),
        with_name(1, 0, b"pump-7"),
        with_name(5, 0, b"pump-7"),
        with_name(3, 0, b""),
        with_name(3, 0, b"pump-7\0"),
        with_name(3, 0, b"pump\xff7"),
        binary([198, 51, 100, 7]),
        line("198.51.100.7"),
    ] {
        let (_, reason) = connecting(&header, "pump-7");
        assert_eq!(reason, ReasonCode::NOT_AUTHORIZED, "{}", header.escape_ascii());
    }
    assert_eq!(broker.counter("logins_certificate_total"), 1);
    assert_eq!(broker.counter("refused_logins_certificate_total"), 9);
    // Twice the same name is malformed.
    let mut twice = with_name(3, 0, b"pump-7");
    let value = twice[28..].to_vec();
    twice[15] += value.len() as u8;
    twice.extend(value);
    let mut client = client_on(open(tested(&broker)));
    client.send_carelessly(&twice);
    client.expect_closed();
    wait_until("counted", || broker.counter("refused_proxy_headers_total") == 1);
}

#[test]
fn a_name_of_a_proxy_has_no_effect_unless_the_listener_says_so() {
    let fortress = Fortress::start("", "");
    let named = with_name(3, 0, b"ann");
    let anonymous = connect("c", Version::V5);
    assert_eq!(fortress.answer(&named, &anonymous), ReasonCode::SUCCESS);
    assert_eq!(fortress.answer(&named, &user("d", "wrong")), ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    assert_eq!(fortress.broker.counter("logins_certificate_total"), 0);
    // Beside a password the name must be the same.
    let keys =
        "certificate_user = 'cn'\ncertificate_from_proxy = true\ncertificate_password = true\n";
    let both = Fortress::start("", keys);
    let right = user("c", "ann");
    assert_eq!(both.answer(&named, &right), ReasonCode::SUCCESS);
    assert_eq!(both.answer(&with_name(3, 0, b"eve"), &right), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(both.answer(&binary([198, 51, 100, 7]), &right), ReasonCode::NOT_AUTHORIZED);
}

#[test]
fn keys_of_proxies_that_do_not_fit_are_refused_with_the_remedy() {
    let resolve = |text: &str| {
        let raw: RawConfig = toml::from_str(text).unwrap();
        raw.resolve().map_err(|error| error.to_string())
    };
    for (keys, words) in [
        ("proxy_trusted = ['10.0.0.0/8']", "`proxy_protocol = true`"),
        ("certificate_user = 'cn'\ncertificate_from_proxy = true", "`proxy_protocol = true`"),
        (
            "proxy_protocol = true\ncertificate_user = 'subject'\ncertificate_from_proxy = true",
            "`certificate_user = \"cn\"`",
        ),
        ("proxy_protocol = true\ncertificate_from_proxy = true", "`certificate_user = \"cn\"`"),
        ("proxy_protocol = false\nproxy_trusted = ['10.0.0.0/8']", "`proxy_protocol = true`"),
        ("proxy_protocol = true\nproxy_trusted = []", "is empty"),
        ("proxy_protocol = true\nproxy_trusted = ['10.0.0.1/8']", "bits behind its prefix"),
        (
            "proxy_protocol = true\nproxy_trusted = ['proxy.example']",
            "`proxy.example` is no address",
        ),
    ] {
        let refused = resolve(&entry(keys)).unwrap_err();
        assert!(refused.contains(words) && refused.contains("127.0.0.1:0"), "{keys}: {refused}");
    }
    let remote = "[[listeners]]\naddress = '0.0.0.0:1883'\nallow_anonymous = true\n\
                  proxy_protocol = true\n";
    let refused = resolve(remote).unwrap_err();
    assert!(refused.contains("`proxy_trusted`"), "{refused}");
    // Other machines reach it by the proxy.
    let open = resolve("[[listeners]]\naddress = '127.0.0.1:1883'\nproxy_protocol = true\n");
    assert!(open.unwrap_err().contains("allow_anonymous"));

    let config = resolve(&entry("proxy_protocol = true\nproxy_trusted = ['10.0.0.0/8', '::1']"));
    let config = config.unwrap();
    assert_eq!(resolve(&config.describe()).unwrap().listeners, config.listeners);
    let named = resolve(&entry(NAMED)).unwrap();
    assert!(named.listeners[0].certificates.is_some_and(|login| login.from_proxy));
    assert_eq!(resolve(&named.describe()).unwrap().listeners, named.listeners);
    let default = resolve(&entry(PROXY)).unwrap().describe();
    assert!(default.contains("proxy_trusted = [\"127.0.0.0/8\", \"::1/128\"]"), "{default}");
}
