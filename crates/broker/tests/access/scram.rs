//! Clients log in by SCRAM, and again while they are connected.

use std::fs;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, pbkdf2};
use tacho_access::{SCRAM_ITERATIONS, Scheme, ScramHash, StoredPassword, set_user};
use tacho_codec::{Auth, Packet, QoS, ReasonCode, UserProperties, Version};
use tacho_testkit::{Client, TestBroker, wait_until};

use super::{Files, answer, login};

const CONTINUE: ReasonCode = ReasonCode::CONTINUE_AUTHENTICATION;
const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
const NOT_AUTHORIZED: ReasonCode = ReasonCode::NOT_AUTHORIZED;

/// The client's side of an exchange (RFC 5802, 3), apart from the broker's code.
struct Exchange {
    hash: ScramHash,
    password: &'static str,
    bare: String,
}

impl Exchange {
    fn new(hash: ScramHash, user: &str, password: &'static str) -> Self {
        Self { hash, password, bare: format!("n={user},r=clientnonce") }
    }

    fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.bare).into_bytes()
    }

    /// The last message, and what the server has to answer.
    fn last(&self, server_first: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let server_first = std::str::from_utf8(server_first).unwrap();
        let value = |letter: &str| {
            let mut parts = server_first.split(',');
            parts.find_map(|part| part.strip_prefix(letter)?.strip_prefix('=')).unwrap()
        };
        let (nonce, iterations) = (value("r"), value("i").parse::<NonZeroU32>().unwrap());
        assert!(nonce.starts_with("clientnonce") && nonce.len() > 30);
        let salt = BASE64_STANDARD.decode(value("s")).unwrap();
        let (derived, hashed, signed) = match self.hash {
            ScramHash::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, &digest::SHA256, hmac::HMAC_SHA256),
            ScramHash::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, &digest::SHA512, hmac::HMAC_SHA512),
        };
        let mac = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(signed, key), text).as_ref().to_vec()
        };
        let mut salted = vec![0; hashed.output_len()];
        pbkdf2::derive(derived, iterations, &salt, self.password.as_bytes(), &mut salted);
        let client_key = mac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{server_first},{without_proof}", self.bare);
        let stored = digest::digest(hashed, &client_key);
        let signature = mac(stored.as_ref(), message.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        let last = format!("{without_proof},p={}", BASE64_STANDARD.encode(proof));
        let server = mac(&mac(&salted, b"Server Key"), message.as_bytes());
        (last.into_bytes(), format!("v={}", BASE64_STANDARD.encode(server)).into_bytes())
    }
}

fn auth(client: &mut Client, reason: ReasonCode, method: &str, data: &[u8]) {
    let user_properties = UserProperties::EMPTY;
    let (method, data) = (Some(method), Some(data));
    client.send(&Packet::Auth(Auth { reason, method, data, reason_string: None, user_properties }));
}

fn expect_auth(client: &mut Client) -> (ReasonCode, Vec<u8>) {
    client.expect(|packet| match packet {
        Packet::Auth(auth) => (auth.reason, auth.data.unwrap_or_default().to_vec()),
        other => panic!("expected AUTH, got {other:?}"),
    })
}

fn expect_connack(client: &mut Client) -> (ReasonCode, Vec<u8>) {
    client.expect(|packet| match packet {
        Packet::ConnAck(connack) => {
            let data = connack.properties.authentication_data.unwrap_or_default();
            (connack.reason, data.to_vec())
        }
        other => panic!("expected CONNACK, got {other:?}"),
    })
}

/// A CONNECT that begins an exchange.
fn begin(broker: &TestBroker, client_id: &str, method: &str, data: Option<&[u8]>) -> Client {
    let mut connect = tacho_testkit::connect(client_id, Version::V5);
    connect.properties.authentication_method = Some(method);
    connect.properties.authentication_data = data;
    let mut client = broker.client(Version::V5);
    client.send(&Packet::Connect(connect));
    client
}

/// The whole exchange, up to the reason of CONNACK.
fn attempt(
    broker: &TestBroker,
    client_id: &str,
    hash: ScramHash,
    (user, password): (&str, &'static str),
) -> (Client, ReasonCode) {
    let exchange = Exchange::new(hash, user, password);
    let mut client = begin(broker, client_id, hash.method(), Some(&exchange.first()));
    let (reason, server_first) = expect_auth(&mut client);
    assert_eq!(reason, CONTINUE);
    let (last, expected) = exchange.last(&server_first);
    auth(&mut client, CONTINUE, hash.method(), &last);
    let (reason, server_final) = expect_connack(&mut client);
    if reason == ReasonCode::SUCCESS {
        assert_eq!(server_final, expected, "the server proves that it knows the user");
    }
    (client, reason)
}

/// Users of both hashes, and one who has another.
fn scram_users(files: &Files, users: &[(&str, &str, ScramHash)]) {
    let path = files.path("users");
    let mut text = fs::read_to_string(&path).unwrap();
    for (name, password, hash) in users {
        let scheme = Scheme::Scram { hash: *hash, iterations: SCRAM_ITERATIONS };
        text = set_user(&text, name, &StoredPassword::make(password.as_bytes(), scheme).unwrap());
    }
    fs::write(path, text).unwrap();
}

const BOTH: [(&str, &str, ScramHash); 2] =
    [("ann", "word", ScramHash::Sha256), ("bob", "word", ScramHash::Sha512)];

#[test]
fn both_hashes_log_in_and_the_user_counts_for_rules() {
    let acl = "user ann\ntopic own/ann\nuser bob\ntopic own/bob\n";
    let files = Files::new(&[("eve", "word")], Some(acl));
    scram_users(&files, &BOTH);
    let broker = files.broker(3, "");
    for (user, _, hash) in BOTH {
        let (mut client, reason) = attempt(&broker, user, hash, (user, "word"));
        assert_eq!(reason, ReasonCode::SUCCESS);
        let own = format!("own/{user}");
        assert!(!client.subscribe(&own, QoS::AtMostOnce).is_error());
        assert!(client.subscribe("own/+", QoS::AtMostOnce).is_error());
        client.publish(&own, b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().payload, b"x");
        // The same password, sent, is that user's, too.
        assert_eq!(answer(&broker, &login("p", Version::V311, user, "word")), ReasonCode::SUCCESS);
        assert_eq!(answer(&broker, &login("p", Version::V311, user, "x")), WRONG);
    }
    for (user, password, hash) in [
        ("ann", "other", ScramHash::Sha256),
        ("unknown", "word", ScramHash::Sha256),
        // They have no keys for this hash.
        ("ann", "word", ScramHash::Sha512),
        ("eve", "word", ScramHash::Sha256),
    ] {
        let (mut client, reason) = attempt(&broker, "c", hash, (user, password));
        assert_eq!(reason, WRONG, "{user}");
        client.expect_closed();
    }
    assert_eq!(broker.counter("authentications_total"), 2);
    assert_eq!(broker.counter("failed_authentications_total"), 4);
}

#[test]
fn what_is_malformed_or_not_offered_is_refused() {
    let files = Files::new(&[("eve", "word")], None);
    scram_users(&files, &BOTH[..1]);
    let broker = files.broker(2, "");
    let refused = |method: &str, data: Option<&[u8]>| {
        let mut client = begin(&broker, "c", method, data);
        let reason = expect_connack(&mut client).0;
        client.expect_closed();
        reason
    };
    let method = "SCRAM-SHA-256";
    for data in [None, Some(&b""[..]), Some(b"n,,n=ann"), Some(b"p=tls-exporter,,n=ann,r=x")] {
        assert_eq!(refused(method, data), NOT_AUTHORIZED, "{data:?}");
    }
    // No user has keys for this one, and that one needs TLS.
    for other in ["SCRAM-SHA-512", "SCRAM-SHA-256-PLUS", "JWT", "scram-sha-256"] {
        let reason = refused(other, Some(b"n,,n=ann,r=x"));
        assert_eq!(reason, ReasonCode::BAD_AUTHENTICATION_METHOD, "{other}");
    }
    let mut client = begin(&broker, "c", method, Some(b"n,,n=ann,r=x"));
    expect_auth(&mut client);
    auth(&mut client, CONTINUE, method, b"c=biws,r=x,p=AAAA");
    assert_eq!(expect_connack(&mut client).0, NOT_AUTHORIZED);
}

#[test]
fn a_connected_client_authenticates_again_as_itself_only() {
    let files = Files::new(&[], None);
    let more = [BOTH[0], ("eve", "word", ScramHash::Sha256)];
    scram_users(&files, &more);
    let broker = files.broker(2, "");
    let method = ScramHash::Sha256.method();
    let again = |client: &mut Client, exchange: &Exchange| {
        auth(client, ReasonCode::REAUTHENTICATE, method, &exchange.first());
        let (reason, server_first) = expect_auth(client);
        assert_eq!(reason, CONTINUE);
        let (last, expected) = exchange.last(&server_first);
        auth(client, CONTINUE, method, &last);
        expected
    };
    let log_in = || attempt(&broker, "c", ScramHash::Sha256, ("ann", "word")).0;
    let mut client = log_in();
    for _ in 0..2 {
        let expected = again(&mut client, &Exchange::new(ScramHash::Sha256, "ann", "word"));
        assert_eq!(expect_auth(&mut client), (ReasonCode::SUCCESS, expected));
    }
    again(&mut client, &Exchange::new(ScramHash::Sha256, "eve", "word"));
    assert_eq!(client.expect_disconnect(), NOT_AUTHORIZED);
    let mut client = log_in();
    again(&mut client, &Exchange::new(ScramHash::Sha256, "ann", "other"));
    assert_eq!(client.expect_disconnect(), NOT_AUTHORIZED);
    // A password that was changed counts for the next exchange.
    let mut client = log_in();
    scram_users(&files, &[("ann", "new", ScramHash::Sha256)]);
    broker.reload_access();
    wait_until("a reload", || broker.counter("access_reloads_total") == 2);
    let expected = again(&mut client, &Exchange::new(ScramHash::Sha256, "ann", "new"));
    assert_eq!(expect_auth(&mut client), (ReasonCode::SUCCESS, expected));
    // A user that is gone is disconnected.
    files.set_users(&[("other", "word")]);
    broker.reload_access();
    assert_eq!(client.expect_disconnect(), NOT_AUTHORIZED);
}

#[test]
fn failed_exchanges_are_guesses() {
    let files = Files::new(&[], None);
    scram_users(&files, &BOTH);
    let audit = files.path("audit");
    let broker = files.broker(1, &format!("login_failures_max = 3\naudit_file = {audit:?}\n"));
    // One that was begun before the ban gets no answer after it.
    let exchange = Exchange::new(ScramHash::Sha256, "ann", "word");
    let mut early = begin(&broker, "d", "SCRAM-SHA-256", Some(&exchange.first()));
    let (_, server_first) = expect_auth(&mut early);
    for _ in 0..3 {
        assert_eq!(attempt(&broker, "c", ScramHash::Sha256, ("ann", "x")).1, WRONG);
    }
    let mut client = begin(&broker, "c", "SCRAM-SHA-256", Some(b"n,,n=ann,r=x"));
    assert_eq!(expect_connack(&mut client).0, ReasonCode::BANNED);
    auth(&mut early, CONTINUE, "SCRAM-SHA-256", &exchange.last(&server_first).0);
    assert_eq!(expect_connack(&mut early).0, ReasonCode::BANNED);
    // The audit log has the user, although CONNECT names none.
    wait_until("events", || {
        let text = fs::read_to_string(&audit).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"user\":\"ann\"")).count() == 3
    });
}

/// A user that is deleted between the two messages is not let in.
#[test]
fn a_user_that_goes_during_the_exchange_is_refused() {
    let files = Files::new(&[], None);
    scram_users(&files, &BOTH);
    let broker = files.broker(1, "");
    let exchange = Exchange::new(ScramHash::Sha256, "ann", "word");
    let mut client = begin(&broker, "c", "SCRAM-SHA-256", Some(&exchange.first()));
    let (_, server_first) = expect_auth(&mut client);
    files.set_users(&[("other", "word")]);
    broker.reload_access();
    wait_until("a reload", || broker.counter("access_reloads_total") == 1);
    auth(&mut client, CONTINUE, "SCRAM-SHA-256", &exchange.last(&server_first).0);
    assert_eq!(expect_connack(&mut client).0, WRONG);
}

/// A password that is changed between the two messages counts, and not the one before. What has
/// nothing to do with the user does not matter.
#[test]
fn a_password_that_changes_during_the_exchange_is_asked_for_anew() {
    let files = Files::new(&[], None);
    scram_users(&files, &BOTH);
    let broker = files.broker(1, "");
    let method = "SCRAM-SHA-256";
    for (change, expected) in [
        (("bob", "new", ScramHash::Sha512), ReasonCode::SUCCESS),
        (("ann", "new", ScramHash::Sha256), WRONG),
    ] {
        let exchange = Exchange::new(ScramHash::Sha256, "ann", "word");
        let mut client = begin(&broker, "c", method, Some(&exchange.first()));
        let (_, server_first) = expect_auth(&mut client);
        let before = broker.counter("access_reloads_total");
        scram_users(&files, &[change]);
        broker.reload_access();
        wait_until("a reload", || broker.counter("access_reloads_total") == before + 1);
        auth(&mut client, CONTINUE, method, &exchange.last(&server_first).0);
        assert_eq!(expect_connack(&mut client).0, expected);
    }
}
