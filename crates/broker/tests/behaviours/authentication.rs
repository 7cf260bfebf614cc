//! Enhanced authentication: AUTH packets between clients and methods made for these tests.

use std::sync::mpsc;

use tacho_broker::{
    AuthClient, AuthExchange, AuthFailure, AuthMethod, AuthMethods, AuthReply, AuthStep,
};
use tacho_codec::{
    Auth, Connect, ConnectProperties, Packet, QoS, ReasonCode, UserProperties, Version,
};

use tacho_testkit::{Client, PATIENCE, TestBroker, connect, packet, wait_until, will};

/// Asks `what?` unless it hears `that` at once, and is content with nothing else. When a client
/// authenticates again it wants `that again`.
struct Riddle;

struct RiddleExchange {
    wanted: &'static [u8],
    asked: bool,
}

impl AuthMethod for Riddle {
    fn begin(&self, client: &AuthClient<'_>) -> Box<dyn AuthExchange> {
        let wanted: &[u8] = if client.again { b"that again" } else { b"that" };
        Box::new(RiddleExchange { wanted, asked: false })
    }
}

impl AuthExchange for RiddleExchange {
    fn step(&mut self, data: Option<&[u8]>, reply: AuthReply) {
        reply.send(if data == Some(self.wanted) {
            AuthStep::Success(Some(b"well".to_vec()))
        } else if std::mem::replace(&mut self.asked, true) {
            AuthStep::Failure(AuthFailure::BadCredentials)
        } else {
            AuthStep::Continue(Some(b"what?".to_vec()))
        });
    }
}

/// Lets the test answer, from its own thread, whenever it likes.
struct Elsewhere(mpsc::Sender<(String, AuthReply)>);

struct Asking(String, mpsc::Sender<(String, AuthReply)>);

impl AuthMethod for Elsewhere {
    fn begin(&self, client: &AuthClient<'_>) -> Box<dyn AuthExchange> {
        let who = format!(
            "{} {:?} {:?}",
            client.client_id,
            client.username.unwrap_or("-"),
            client.password.unwrap_or_default()
        );
        Box::new(Asking(who, self.0.clone()))
    }
}

impl AuthExchange for Asking {
    fn step(&mut self, _data: Option<&[u8]>, reply: AuthReply) {
        let _ = self.1.send((self.0.clone(), reply));
    }
}

fn riddles(toml: &str) -> TestBroker {
    TestBroker::with_methods(toml, AuthMethods::default().with("riddle", Riddle))
}

/// A broker with one shard, and one with three.
fn each_riddle(test: impl Fn(&TestBroker)) {
    for shards in [1, 3] {
        test(&riddles(&format!("shards = {shards}")));
    }
}

fn auth<'a>(reason: ReasonCode, method: &'a str, data: &'a [u8]) -> Packet<'a> {
    let user_properties = UserProperties::EMPTY;
    let (method, data) = (Some(method), Some(data));
    Packet::Auth(Auth { reason, method, data, reason_string: None, user_properties })
}

fn with_method<'a>(client_id: &'a str, method: &'a str, data: Option<&'a [u8]>) -> Connect<'a> {
    let properties = ConnectProperties {
        authentication_method: Some(method),
        authentication_data: data,
        ..Default::default()
    };
    Connect { properties, ..connect(client_id, Version::V5) }
}

/// Waits for an AUTH of the method `riddle`; its reason and data.
fn expect_auth(client: &mut Client) -> (ReasonCode, Vec<u8>) {
    client.expect(|packet| match packet {
        Packet::Auth(auth) => {
            assert_eq!(auth.method, Some("riddle"));
            (auth.reason, auth.data.unwrap_or_default().to_vec())
        }
        other => panic!("expected AUTH, got {other:?}"),
    })
}

/// Waits for CONNACK: session present, reason, method and data.
fn expect_connack(client: &mut Client) -> (bool, ReasonCode, Option<String>, Vec<u8>) {
    client.expect(|packet| match packet {
        Packet::ConnAck(connack) => {
            let p = &connack.properties;
            let data = p.authentication_data.unwrap_or_default().to_vec();
            let method = p.authentication_method.map(str::to_owned);
            (connack.session_present, connack.reason, method, data)
        }
        other => panic!("expected CONNACK, got {other:?}"),
    })
}

fn accepted(session_present: bool) -> (bool, ReasonCode, Option<String>, Vec<u8>) {
    (session_present, ReasonCode::SUCCESS, Some("riddle".to_owned()), b"well".to_vec())
}

const CONTINUE: ReasonCode = ReasonCode::CONTINUE_AUTHENTICATION;

/// Connects by answering the riddle.
fn authenticated(broker: &TestBroker, connect: &Connect<'_>) -> Client {
    let mut client = broker.client(Version::V5);
    client.send(&Packet::Connect(connect.clone()));
    assert_eq!(expect_auth(&mut client), (CONTINUE, b"what?".to_vec()));
    client.send(&auth(CONTINUE, "riddle", b"that"));
    assert_eq!(expect_connack(&mut client), accepted(false));
    client
}

fn refused(client: &mut Client) -> ReasonCode {
    let (session_present, reason, ..) = expect_connack(client);
    assert!(!session_present);
    client.expect_closed();
    reason
}

// 52
// [MQTT-4.12.0-2] [MQTT-4.12.0-3] [MQTT-4.12.0-5] [MQTT-3.15.2-1] [MQTT-3.2.0-1] [MQTT-3.2.0-2]
#[test]
fn a_client_answers_its_method_and_is_accepted() {
    each_riddle(|broker| {
        // Clients of all shards, and one that is given its identifier.
        for client_id in ["a", "b", "c", "d", ""] {
            let mut client = authenticated(broker, &with_method(client_id, "riddle", None));
            client.subscribe("t", QoS::AtLeastOnce);
            client.publish("t", b"x", QoS::AtMostOnce, false);
            assert_eq!(client.receive().payload, b"x");
            client.ping();
            // Or it knows the answer beforehand.
            let mut client = broker.client(Version::V5);
            client.send(&Packet::Connect(with_method(client_id, "riddle", Some(b"that"))));
            assert_eq!(expect_connack(&mut client), accepted(false));
            client.ping();
        }
        assert_eq!(broker.counter("authentications_total"), 10);
        assert_eq!(broker.counter("failed_authentications_total"), 0);
    });
}

// 52
#[test]
fn connect_options_apply_after_authentication() {
    each_riddle(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        let mut first = with_method("c", "riddle", Some(b"that"));
        first.properties.session_expiry_s = Some(100);
        first.will = Some(will("w", b"gone"));
        first.clean_start = false;
        let mut client = broker.client(Version::V5);
        client.send(&Packet::Connect(first.clone()));
        assert_eq!(expect_connack(&mut client), accepted(false));
        drop(client);
        assert_eq!(watcher.receive().payload, b"gone");
        let mut client = broker.client(Version::V5);
        client.send(&Packet::Connect(first));
        assert_eq!(expect_connack(&mut client), accepted(true));
    });
}

// 52
// [MQTT-4.12.0-1]
#[test]
fn other_methods_are_refused_even_if_there_is_one() {
    let broker = riddles("shards = 1");
    let mut client = broker.client(Version::V5);
    client.send(&Packet::Connect(with_method("c", "SCRAM", None)));
    assert_eq!(refused(&mut client), ReasonCode::BAD_AUTHENTICATION_METHOD);
}

// 8, 52
// [MQTT-4.12.0-4] [MQTT-3.2.2-7]
#[test]
fn a_failed_authentication_gets_a_code_and_takes_no_session_over() {
    each_riddle(|broker| {
        let mut there = broker.connected("c", Version::V5);
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("#", QoS::AtMostOnce);
        let mut client = broker.client(Version::V5);
        let will = Some(will("w", b"never"));
        client.send(&Packet::Connect(Connect { will, ..with_method("c", "riddle", None) }));
        expect_auth(&mut client);
        client.send(&auth(CONTINUE, "riddle", b"something else"));
        assert_eq!(refused(&mut client), ReasonCode::BAD_USER_NAME_OR_PASSWORD);
        there.ping();
        watcher.ping();
        assert_eq!(broker.counter("failed_authentications_total"), 1);
        assert_eq!(broker.counter("takeovers_total"), 0);
        assert_eq!(broker.counter("sessions"), 2);
    });
}

// 52
// [MQTT-3.1.2-30] [MQTT-3.14.0-1]
#[test]
fn before_connack_only_the_right_auth_and_disconnect_may_come() {
    each_riddle(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("#", QoS::AtMostOnce);
        for notation in [
            "30 | <t> [] 'x'",
            "82 | 0001 [] <t> 00",
            "c000",
            "10 | <MQTT> 05 02 0000 [15 <riddle>] <c>",
            "f0 | 18 [15 <other> 16 <that>]",
            "f0 | 19 [15 <riddle> 16 <that>]",
            "f0 | 18 [16 <that>]",
            "f0 | 00 [15 <riddle>]",
            "f1 | 18 [15 <riddle> 16 <that>]",
        ] {
            let mut client = broker.client(Version::V5);
            client.send(&Packet::Connect(with_method("c", "riddle", None)));
            expect_auth(&mut client);
            client.send_notation(notation);
            let reason = refused(&mut client);
            let either = [ReasonCode::PROTOCOL_ERROR, ReasonCode::MALFORMED_PACKET];
            assert!(either.contains(&reason), "{notation}: {reason}");
        }
        // An answer before the first step.
        let mut client = broker.client(Version::V5);
        let connect = packet("10 | <MQTT> 05 02 0000 [15 <riddle>] <c>");
        let answer = packet("f0 | 18 [15 <riddle> 16 <that>]");
        client.send_raw(&[connect, answer].concat());
        assert_eq!(refused(&mut client), ReasonCode::PROTOCOL_ERROR);
        let mut client = broker.client(Version::V5);
        let will = Some(will("w", b"never"));
        client.send(&Packet::Connect(Connect { will, ..with_method("c", "riddle", None) }));
        expect_auth(&mut client);
        client.send_notation("e0 | 04");
        client.expect_closed();
        watcher.ping();
        assert_eq!(broker.counter("sessions"), 1);
    });
}

// 52
#[test]
fn methods_may_answer_later_and_from_elsewhere() {
    for shards in [1, 3] {
        let (sender, asked) = mpsc::channel();
        let methods = AuthMethods::default().with("elsewhere", Elsewhere(sender));
        let broker = TestBroker::with_methods(&format!("shards = {shards}"), methods);
        let mut client = broker.client(Version::V5);
        let named = Connect {
            username: Some("me"),
            password: Some(b"\x01"),
            ..with_method("c", "elsewhere", None)
        };
        client.send(&Packet::Connect(named));
        let (who, reply) = asked.recv_timeout(PATIENCE).unwrap();
        assert_eq!(who, "c \"me\" [1]");
        // No exchange waits for it.
        broker.connected("other", Version::V5).ping();
        client.expect_nothing();
        reply.send(AuthStep::Success(None));
        let (_, reason, method, data) = expect_connack(&mut client);
        assert_eq!((reason, method.as_deref()), (ReasonCode::SUCCESS, Some("elsewhere")));
        assert_eq!(data, b"");
        client.ping();
        for (step, code) in [
            (Some(AuthStep::Failure(AuthFailure::NotAuthorized)), 0x87),
            (Some(AuthStep::Failure(AuthFailure::Unavailable)), 0x88),
            // Dropped without an answer.
            (None, 0x88),
            // More than fits into any AUTH.
            (Some(AuthStep::Continue(Some(vec![0; 70_000]))), 0x95),
        ] {
            let mut client = broker.client(Version::V5);
            client.send(&Packet::Connect(with_method("d", "elsewhere", None)));
            let (_, reply) = asked.recv_timeout(PATIENCE).unwrap();
            match step {
                Some(step) => reply.send(step),
                None => drop(reply),
            }
            assert_eq!(refused(&mut client).value(), code);
        }
        // The client has gone, and others may have its place.
        let mut gone = broker.client(Version::V5);
        gone.send(&Packet::Connect(with_method("e", "elsewhere", None)));
        let (_, reply) = asked.recv_timeout(PATIENCE).unwrap();
        let before = broker.counter("connections");
        drop(gone);
        wait_until("it has gone", || broker.counter("connections") < before);
        let mut waiting = broker.client(Version::V5);
        waiting.send(&Packet::Connect(with_method("f", "elsewhere", None)));
        let (_, second) = asked.recv_timeout(PATIENCE).unwrap();
        reply.send(AuthStep::Success(None));
        waiting.expect_nothing();
        second.send(AuthStep::Success(None));
        assert_eq!(expect_connack(&mut waiting).1, ReasonCode::SUCCESS);
    }
}

// 13, 52
#[test]
fn an_authentication_that_takes_too_long_is_cut_off() {
    let (sender, asked) = mpsc::channel();
    let methods =
        AuthMethods::default().with("elsewhere", Elsewhere(sender)).with("riddle", Riddle);
    let toml = "shards = 3\n[limits]\nconnect_timeout_s = 1";
    let broker = TestBroker::with_methods(toml, methods);
    let mut unanswered = broker.client(Version::V5);
    unanswered.send(&Packet::Connect(with_method("c", "elsewhere", None)));
    let mut silent = broker.client(Version::V5);
    silent.send(&Packet::Connect(with_method("d", "riddle", None)));
    expect_auth(&mut silent);
    assert_eq!(refused(&mut unanswered), ReasonCode::SERVER_UNAVAILABLE);
    silent.expect_closed();
    assert_eq!(broker.counter("connect_timeouts_total"), 2);
    // Too late.
    for (_, reply) in asked.try_iter() {
        reply.send(AuthStep::Success(None));
    }
    broker.connected("good", Version::V5).ping();
}

// 52
// [MQTT-4.12.1-1]
#[test]
fn a_client_may_authenticate_again_and_is_served_meanwhile() {
    each_riddle(|broker| {
        for client_id in ["a", "b", "c"] {
            let mut client = authenticated(broker, &with_method(client_id, "riddle", None));
            client.subscribe("t", QoS::AtMostOnce);
            for _ in 0..3 {
                client.send(&auth(ReasonCode::REAUTHENTICATE, "riddle", b"hello"));
                assert_eq!(expect_auth(&mut client), (CONTINUE, b"what?".to_vec()));
                client.publish("t", b"x", QoS::AtMostOnce, false);
                assert_eq!(client.receive().payload, b"x");
                client.send(&auth(CONTINUE, "riddle", b"that again"));
                let done = (ReasonCode::SUCCESS, b"well".to_vec());
                assert_eq!(expect_auth(&mut client), done);
            }
            client.ping();
        }
    });
}

// 52
// [MQTT-4.12.1-1] [MQTT-4.12.1-2] [MQTT-4.12.0-5]
#[test]
fn authenticating_again_in_a_wrong_way_ends_the_connection() {
    each_riddle(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        let protocol_error = ReasonCode::PROTOCOL_ERROR;
        let again = ReasonCode::REAUTHENTICATE;
        // Another method; an answer to no question; the riddle's wrong answer twice; a new
        // beginning in the middle.
        let cases: [(&[(ReasonCode, &str)], ReasonCode); 4] = [
            (&[(again, "other")], protocol_error),
            (&[(CONTINUE, "riddle")], protocol_error),
            (&[(again, "riddle"), (CONTINUE, "riddle")], ReasonCode::NOT_AUTHORIZED),
            (&[(again, "riddle"), (again, "riddle")], protocol_error),
        ];
        for (packets, expected) in cases {
            let will = Some(will("w", b"gone"));
            let connect = Connect { will, ..with_method("c", "riddle", None) };
            let mut client = authenticated(broker, &connect);
            for (i, (reason, method)) in packets.iter().enumerate() {
                if i > 0 {
                    expect_auth(&mut client);
                }
                client.send(&auth(*reason, method, b"wrong"));
            }
            assert_eq!(client.expect_disconnect(), expected, "{packets:?}");
            assert_eq!(watcher.receive().payload, b"gone");
        }
    });
}

// 52
// [MQTT-4.12.0-6] [MQTT-4.12.0-7]
#[test]
fn clients_without_a_method_get_none_and_may_not_send_auth() {
    let broker = riddles("shards = 1");
    let mut client = broker.client(Version::V5);
    client.send(&Packet::Connect(connect("c", Version::V5)));
    let (_, reason, method, data) = expect_connack(&mut client);
    assert_eq!((reason, method, data), (ReasonCode::SUCCESS, None, Vec::new()));
    client.send(&auth(ReasonCode::REAUTHENTICATE, "riddle", b"that again"));
    assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
    for version in [Version::V31, Version::V311] {
        let mut old = broker.connected("old", version);
        old.send_notation("f0 | 19 [15 <riddle>]");
        old.expect_closed();
    }
}

// 52
// [MQTT-3.1.2-24]
#[test]
fn an_auth_larger_than_the_client_takes_is_not_sent() {
    let broker = riddles("shards = 1");
    let mut client = broker.client(Version::V5);
    let mut connect = with_method("c", "riddle", None);
    connect.properties.packet_size_max = Some(12);
    client.send(&Packet::Connect(connect));
    assert_eq!(refused(&mut client), ReasonCode::PACKET_TOO_LARGE);
}
