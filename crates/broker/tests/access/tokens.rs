//! Clients log in with JSON Web Tokens.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use tacho_broker::AccessReloaded;
use tacho_codec::{
    Auth, Connect, ConnectProperties, Packet, QoS, ReasonCode, UserProperties, Version,
};
use tacho_testkit::http::{StubAnswer, StubService};
use tacho_testkit::{Client, TestBroker, connect, wait_until, will};

use super::{Files, answer, login, metric};

pub(super) const SECRET: &str = "a secret that is long enough";
const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;

/// A file of keys, and the section of the configuration that names it.
pub(super) fn keys(files: &Files, more: &str) -> (PathBuf, String) {
    let path = files.path("keys");
    fs::write(&path, SECRET).unwrap();
    let section = format!("[access.jwt]\nkey_file = {path:?}\nleeway_s = 0\n{more}");
    (path, section)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A token of a user that ends after so many seconds.
pub(super) fn token_with(secret: &str, user: &str, ends_in_s: u64, more: &str) -> String {
    let claims = format!(r#"{{"sub":"{user}","exp":{}{more}}}"#, now_s() + ends_in_s);
    let signed = format!(
        "{}.{}",
        BASE64_URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256"}"#),
        BASE64_URL_SAFE_NO_PAD.encode(claims)
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

fn token(user: &str) -> String {
    token_with(SECRET, user, 600, "")
}

fn configured(section: &str) -> TestBroker {
    TestBroker::configured(&format!("shards = 2\n{section}"))
}

#[test]
fn a_token_names_the_user_whatever_the_client_says() {
    let files = Files::new(&[("ann", "word")], Some("user ann\ntopic a\n"));
    let (_, jwt) = keys(&files, "");
    let broker = configured(&format!("{}{jwt}", files.section()));
    for version in [Version::V31, Version::V311, Version::V5] {
        let token = token("ann");
        let mut client = broker.client(version);
        let reason = client.connect(&login("c", version, "anything", &token)).1;
        assert_eq!(reason, ReasonCode::SUCCESS);
        assert!(!client.subscribe("a", QoS::AtMostOnce).is_error());
        assert!(client.subscribe("b", QoS::AtMostOnce).is_error());
        client.publish("a", b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().payload, b"x");
        client.disconnect();
    }
    // 5.0 needs no user name.
    let token = token("ann");
    let nameless = Connect { password: Some(token.as_bytes()), ..connect("d", Version::V5) };
    assert_eq!(answer(&broker, &nameless), ReasonCode::SUCCESS);
    // The session belongs to the user of the token.
    assert_eq!(answer(&broker, &login("e", Version::V5, "x", &token)), ReasonCode::SUCCESS);
    let mut ann = broker.client(Version::V5);
    ann.connect(&login("f", Version::V5, "x", &token));
    let other = token_with(SECRET, "bob", 600, "");
    let reason = answer(&broker, &login("f", Version::V5, "ann", &other));
    assert_eq!(reason, ReasonCode::NOT_AUTHORIZED);
    ann.ping();
    // What is no token is a password.
    assert_eq!(answer(&broker, &login("g", Version::V5, "ann", "word")), ReasonCode::SUCCESS);
    assert_eq!(answer(&broker, &login("g", Version::V5, "ann", "a.b.c")), WRONG);
    assert_eq!(broker.counter("logins_verified_total"), 8);
}

#[test]
fn refused_tokens_and_their_absence_are_told_apart_and_counted() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "[access.jwt.claims]\nclient_id = '%c'\n");
    let broker = configured(&jwt);
    let of =
        |client_id: &str| token_with(SECRET, "ann", 60, &format!(r#","client_id":"{client_id}""#));
    assert_eq!(answer(&broker, &login("c", Version::V5, "x", &of("c"))), ReasonCode::SUCCESS);
    for wrong in [
        of("d"),
        token("ann"),
        token_with("another secret that is long", "ann", 60, r#","client_id":"c""#),
        token_with(SECRET, "ann", 0, r#","client_id":"c""#),
        "no token".to_owned(),
    ] {
        assert_eq!(answer(&broker, &login("c", Version::V5, "x", &wrong)), WRONG, "{wrong}");
    }
    assert_eq!(broker.counter("refused_logins_wrong_total"), 5);
    let mut old = broker.client(Version::V311);
    assert_eq!(old.connect(&login("c", Version::V311, "x", "y")).1, WRONG);
    assert_eq!(answer(&broker, &connect("c", Version::V5)), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(broker.counter("refused_logins_anonymous_total"), 1);
}

#[test]
fn the_end_of_a_token_ends_its_connection() {
    let files = Files::new(&[], None);
    for (on_expiry, has_will) in [("disconnect", true), ("disconnect_without_will", false)] {
        let (_, jwt) = keys(&files, &format!("on_expiry = '{on_expiry}'\n"));
        let broker = configured(&jwt);
        let (long, short) = (token("ann"), token_with(SECRET, "bob", 2, ""));
        let mut watcher = broker.client(Version::V5);
        watcher.connect(&login("w", Version::V5, "x", &long));
        watcher.subscribe("wills", QoS::AtMostOnce);
        let mut client = broker.client(Version::V5);
        let connect =
            Connect { will: Some(will("wills", b"gone")), ..login("c", Version::V5, "x", &short) };
        assert_eq!(client.connect(&connect).1, ReasonCode::SUCCESS, "{on_expiry}");
        assert_eq!(client.expect_disconnect(), ReasonCode::NOT_AUTHORIZED, "{on_expiry}");
        client.expect_closed();
        if has_will {
            assert_eq!(watcher.receive().payload, b"gone");
        }
        watcher.publish("wills", b"own", QoS::AtMostOnce, false);
        assert_eq!(watcher.receive().payload, b"own");
        assert_eq!(broker.counter("ended_tokens_total"), 1);
    }
}

#[test]
fn a_token_that_ends_later_or_does_not_matter_any_more_ends_nothing() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "");
    let broker = configured(&jwt);
    let short = token_with(SECRET, "ann", 2, "");
    let mut gone = broker.client(Version::V5);
    gone.connect(&login("c", Version::V5, "x", &short));
    // It comes back with a longer one: the end of the first is forgotten.
    let mut back = broker.client(Version::V5);
    back.connect(&login("c", Version::V5, "x", &token("ann")));
    let (_, jwt) = keys(&files, "on_expiry = 'stay'\n");
    let lenient = configured(&jwt);
    let mut stays = lenient.client(Version::V5);
    stays.connect(&login("c", Version::V5, "x", &short));
    let end = now_s() + 3;
    wait_until("the end of the short token", || now_s() >= end);
    back.ping();
    stays.ping();
    assert_eq!(broker.counter("ended_tokens_total") + lenient.counter("ended_tokens_total"), 0);
}

#[test]
fn keys_are_changed_while_clients_are_connected() {
    let files = Files::new(&[], None);
    let (path, jwt) = keys(&files, "");
    let broker = configured(&jwt);
    let mut ann = broker.client(Version::V5);
    ann.connect(&login("c", Version::V5, "x", &token("ann")));
    fs::write(&path, "short").unwrap();
    assert_eq!(broker.reload_access(), AccessReloaded::Unusable);
    fs::write(&path, "another secret that is long").unwrap();
    assert_eq!(broker.reload_access(), AccessReloaded::New);
    wait_until("a reload", || broker.counter("access_reloads_total") == 2);
    ann.ping();
    assert_eq!(answer(&broker, &login("d", Version::V5, "x", &token("ann"))), WRONG);
    let new = token_with("another secret that is long", "ann", 60, "");
    assert_eq!(answer(&broker, &login("d", Version::V5, "x", &new)), ReasonCode::SUCCESS);
}

/// A token of `ann` with rules.
fn token_that_allows(acl: &str) -> String {
    token_with(SECRET, "ann", 600, &format!(r#","acl":{acl}"#))
}

#[test]
fn a_token_says_what_its_client_may_do() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "");
    let broker = configured(&jwt);
    let token = token_that_allows(r#"{"pub":["up/${clientid}"],"sub":["down/%c/#"]}"#);
    let mut client = broker.client(Version::V5);
    let connect = login("c", Version::V5, "x", &token);
    assert_eq!(client.connect(&connect).1, ReasonCode::SUCCESS);
    assert!(!client.subscribe("down/c/#", QoS::AtLeastOnce).is_error());
    for refused in ["down/#", "up/c", "#"] {
        let answer = client.subscribe(refused, QoS::AtLeastOnce);
        assert_eq!(answer, ReasonCode::NOT_AUTHORIZED, "{refused}");
    }
    let published = client.try_publish("up/c", b"x", QoS::AtLeastOnce);
    assert!(!published.is_error());
    let refused = client.try_publish("down/c/x", b"x", QoS::AtLeastOnce);
    assert_eq!(refused, ReasonCode::NOT_AUTHORIZED);
    // A will is asked about, too; without rules of its own a token allows everything.
    let will = Some(will("down/d", b"x"));
    let of_other = login("d", Version::V5, "x", &token);
    assert_eq!(answer(&broker, &Connect { will, ..of_other }), ReasonCode::NOT_AUTHORIZED);
    let free = token_with(SECRET, "ann", 600, "");
    let mut server = broker.client(Version::V5);
    let connect = Connect { will, ..login("e", Version::V5, "x", &free) };
    assert_eq!(server.connect(&connect).1, ReasonCode::SUCCESS);
    server.publish("down/c/1", b"order", QoS::AtLeastOnce, false);
    assert_eq!(client.receive_and_ack().payload, b"order");
    let odd = token_that_allows(r#"{"sub":[7]}"#);
    assert_eq!(answer(&broker, &login("f", Version::V5, "x", &odd)), WRONG);
}

/// A CONNECT of `c` for its lasting session.
fn lasting(token: &str) -> Connect<'_> {
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    Connect { clean_start: false, properties, ..login("c", Version::V5, "x", token) }
}

#[test]
fn rules_of_a_token_come_before_the_access_list_and_change_with_the_token() {
    let files = Files::new(&[], Some("user ann\ntopic all\n"));
    let (_, jwt) = keys(&files, "");
    let section = format!("[access]\nacl_file = {:?}\n{jwt}", files.path("acl"));
    let folder = tempfile::TempDir::new().unwrap();
    let config = format!("shards = 2\ndata_dir = {:?}\n{section}", folder.path());
    let mut broker = TestBroker::configured(&config);
    let allows = |filter: &str| {
        token_that_allows(&format!(r#"[{{"permission":"allow","topic":"{filter}"}}]"#))
    };
    let wide = allows("own/#");
    let mut client = broker.client(Version::V5);
    client.connect(&lasting(&wide));
    assert!(!client.subscribe("own/#", QoS::AtLeastOnce).is_error());
    assert!(!client.subscribe("all", QoS::AtLeastOnce).is_error());
    client.disconnect();
    // What the token allows outlives a restart: the access list alone would end it.
    broker.stop();
    let broker = TestBroker::configured(&config);
    let free = allows("#");
    let mut server = broker.client(Version::V5);
    server.connect(&login("s", Version::V5, "x", &free));
    server.publish("own/1", b"first", QoS::AtLeastOnce, false);
    let mut client = broker.client(Version::V5);
    assert_eq!(client.connect(&lasting(&wide)), (true, ReasonCode::SUCCESS));
    assert_eq!(client.receive_and_ack().payload, b"first");
    client.disconnect();
    // A narrower token: what it does not allow is not delivered, and the subscription ends.
    server.publish("own/2", b"second", QoS::AtLeastOnce, false);
    let narrow = allows("other");
    let mut client = broker.client(Version::V5);
    assert_eq!(client.connect(&lasting(&narrow)), (true, ReasonCode::SUCCESS));
    server.publish("own/3", b"third", QoS::AtLeastOnce, false);
    server.publish("all", b"fourth", QoS::AtLeastOnce, false);
    assert_eq!(client.receive_and_ack().payload, b"fourth");
    assert_eq!(client.subscribe("own/#", QoS::AtLeastOnce), ReasonCode::NOT_AUTHORIZED);
    client.expect_nothing();
    assert_eq!(broker.counter("ended_subscriptions_total"), 1);
}

#[test]
fn a_token_may_be_the_user_name_and_a_listener_may_admit_anonymous_clients() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "from = 'username'\n");
    let open = "[[listeners]]\naddress = '127.0.0.1:0'\nallow_anonymous = true\n";
    let broker = configured(&format!("{jwt}{open}"));
    let [closed, open] = broker.addresses() else { panic!("two listeners") };
    let token = token("ann");
    let connect_to =
        |address, connect: &Connect<'_>| Client::open(address, connect.version).connect(connect).1;
    let nameless = connect("c", Version::V5);
    assert_eq!(connect_to(*closed, &nameless), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(connect_to(*open, &nameless), ReasonCode::SUCCESS);
    for address in [*closed, *open] {
        assert_eq!(connect_to(address, &login("d", Version::V5, &token, "")), ReasonCode::SUCCESS);
        assert_eq!(connect_to(address, &login("d", Version::V5, "x", &token)), WRONG);
    }
}

/// A CONNECT by the method whose data is a token.
pub(super) fn by_method<'a>(client_id: &'a str, token: &'a str) -> Connect<'a> {
    let properties = ConnectProperties {
        authentication_method: Some("JWT"),
        authentication_data: Some(token.as_bytes()),
        ..Default::default()
    };
    Connect { properties, ..connect(client_id, Version::V5) }
}

/// A connected client brings another token.
fn bring(client: &mut Client, token: &str) {
    client.send(&Packet::Auth(Auth {
        reason: ReasonCode::REAUTHENTICATE,
        method: Some("JWT"),
        data: Some(token.as_bytes()),
        reason_string: None,
        user_properties: UserProperties::EMPTY,
    }));
}

fn expect_accepted(client: &mut Client) {
    client.expect(|packet| match packet {
        Packet::Auth(auth) => assert_eq!(auth.reason, ReasonCode::SUCCESS),
        other => panic!("expected AUTH, got {other:?}"),
    });
}

#[test]
fn a_new_token_moves_the_end_of_the_connection() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "");
    let broker = configured(&jwt);
    let (short, long) = (token_with(SECRET, "ann", 2, ""), token("ann"));
    let [mut stays, mut ends] = ["stays", "ends"].map(|client_id| {
        let mut client = broker.client(Version::V5);
        assert_eq!(client.connect(&by_method(client_id, &short)).1, ReasonCode::SUCCESS);
        client
    });
    bring(&mut stays, &long);
    expect_accepted(&mut stays);
    assert_eq!(ends.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    stays.ping();
    // Also towards an earlier one.
    bring(&mut stays, &token_with(SECRET, "ann", 1, ""));
    expect_accepted(&mut stays);
    assert_eq!(stays.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(broker.counter("ended_tokens_total"), 2);
    assert_eq!(broker.counter("authentications_total"), 4);
}

#[test]
fn the_rules_of_a_new_token_apply_at_once() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "");
    let broker = configured(&jwt);
    let allows = |acl: &str| token_that_allows(&format!(r#"{{"pub":{acl},"sub":{acl}}}"#));
    let mut client = broker.client(Version::V5);
    let narrow = allows(r#"["a"]"#);
    assert_eq!(client.connect(&by_method("c", &narrow)).1, ReasonCode::SUCCESS);
    assert!(!client.subscribe("a", QoS::AtLeastOnce).is_error());
    assert_eq!(client.subscribe("b", QoS::AtLeastOnce), ReasonCode::NOT_AUTHORIZED);
    client.publish("a", b"x", QoS::AtMostOnce, false);
    assert_eq!(client.receive().payload, b"x");
    bring(&mut client, &allows(r#"["a","b"]"#));
    expect_accepted(&mut client);
    assert!(!client.subscribe("b", QoS::AtLeastOnce).is_error());
    client.publish("b", b"y", QoS::AtMostOnce, false);
    assert_eq!(client.receive().payload, b"y");
    // What it loses ends, and it is told as after a reload.
    bring(&mut client, &allows(r#"["b"]"#));
    assert_eq!(client.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(broker.counter("ended_subscriptions_total"), 1);
    assert_eq!(broker.counter("ended_by_rules_total"), 1);
}

#[test]
fn tokens_of_others_and_bad_ones_end_the_connection_or_refuse_it() {
    let files = Files::new(&[], None);
    let (_, jwt) = keys(&files, "[access.jwt.claims]\nname = '%u'\nclient_id = '%c'\n");
    let broker = configured(&jwt);
    let of = |user: &str, name: &str| {
        token_with(SECRET, user, 60, &format!(r#","name":"{name}","client_id":"c""#))
    };
    let ann = of("ann", "unit");
    let named = Connect { username: Some("unit"), ..by_method("c", &ann) };
    let forged = token_with("another secret that is long", "ann", 60, "");
    for wrong in [&*of("bob", "unit"), &of("ann", "other"), &forged, "no token", ""] {
        let mut client = broker.client(Version::V5);
        assert_eq!(client.connect(&named).1, ReasonCode::SUCCESS);
        // The user name of CONNECT is asked for again.
        bring(&mut client, &ann);
        expect_accepted(&mut client);
        bring(&mut client, wrong);
        assert_eq!(client.expect_disconnect(), ReasonCode::NOT_AUTHORIZED, "{wrong}");
        client.expect_closed();
    }
    assert_eq!(broker.counter("failed_authentications_total"), 5);
    assert_eq!(answer(&broker, &by_method("c", &ann)), WRONG);
    assert_eq!(answer(&broker, &by_method("c", "x")), WRONG);
    // Who has not named the method in CONNECT has none.
    let mut client = broker.client(Version::V5);
    assert_eq!(client.connect(&login("c", Version::V5, "unit", &ann)).1, ReasonCode::SUCCESS);
    bring(&mut client, &ann);
    assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
}

/// A key that signs, and the set of JWK that has it.
fn signing_key(id: &str) -> (Ed25519KeyPair, String) {
    let random = SystemRandom::new();
    let pair = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let key = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"{id}","x":"{x}"}}"#);
    (pair, format!(r#"{{"keys":[{key},{{"kty":"unknown"}}]}}"#))
}

/// A token of `ann` that names its key.
fn signed_by(pair: &Ed25519KeyPair, id: &str) -> String {
    let header = format!(r#"{{"alg":"EdDSA","kid":"{id}"}}"#);
    let claims = format!(r#"{{"sub":"ann","exp":{}}}"#, now_s() + 600);
    let signed = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = pair.sign(signed.as_bytes());
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// A broker that fetches its keys from a service.
fn fetching(service: &StubService, more: &str) -> TestBroker {
    let url = format!("http://{}/keys", service.address());
    TestBroker::with_metrics(&format!("shards = 2\n{more}[access.jwt]\nkey_url = '{url}'\n"))
}

#[test]
fn keys_are_fetched_and_those_of_the_last_time_stay_while_that_fails() {
    let (pair, keys) = signing_key("first");
    let wrong = |status, body: &str| StubAnswer::new(status, body);
    // Nothing that could be taken for a key: no page, no secret, nothing large, no redirect.
    let mut elsewhere = wrong(302, "");
    elsewhere.headers.push("Location: /other".to_owned());
    let secret = r#"{"keys":[{"kty":"oct","k":"YSBzZWNyZXQgdGhhdCBpcyBsb25nIGVub3VnaA"}]}"#;
    let answers = [wrong(200, "<html>a secret that is long enough</html>"), elsewhere];
    let service = StubService::start(answers.into_iter().chain([StubAnswer::new(200, &keys)]));
    let broker = fetching(&service, "");
    let token = signed_by(&pair, "first");
    let log_in = || answer(&broker, &login("c", Version::V5, "x", &token));
    wait_until("keys", || metric(&broker, "tacho_token_keys_age_seconds").is_some());
    wait_until("a login", || log_in() == ReasonCode::SUCCESS);
    assert_eq!(metric(&broker, "tacho_token_key_fetch_failures_total"), Some(2));
    assert!(service.requests().iter().all(|request| request.path == "/keys"));

    let large = format!("{}{}", " ".repeat(300_000), keys);
    for (status, body) in [(200, secret), (200, &*large), (500, &*keys), (204, "")] {
        let service = StubService::start([StubAnswer::new(status, body)]);
        let broker = fetching(&service, "");
        wait_until("a failure", || {
            metric(&broker, "tacho_token_key_fetch_failures_total").is_some_and(|count| count > 0)
        });
        // There are no keys yet: the client may try again.
        let refused = answer(&broker, &login("c", Version::V5, "x", &token));
        assert_eq!(refused, ReasonCode::SERVER_UNAVAILABLE, "{status}");
        assert_eq!(metric(&broker, "tacho_token_keys_age_seconds"), None);
    }
    // Files that change leave the keys as they are.
    assert_eq!(broker.reload_access(), AccessReloaded::NotConfigured);
    assert_eq!(log_in(), ReasonCode::SUCCESS);
}

#[test]
fn a_key_that_is_not_known_is_fetched_early_and_not_too_often() {
    let ((old, first), (new, second)) = (signing_key("old"), signing_key("new"));
    let service = StubService::start([first, second].map(|keys| StubAnswer::new(200, &keys)));
    let files = Files::new(&[], Some("topic a\n"));
    let section = format!("[access]\nacl_file = {:?}\n", files.path("acl"));
    let broker = fetching(&service, &section);
    let (old, new) = (signed_by(&old, "old"), signed_by(&new, "new"));
    let log_in = |token: &str| answer(&broker, &login("c", Version::V5, "x", token));
    wait_until("the first keys", || log_in(&old) == ReasonCode::SUCCESS);
    // Other rules do not lose the keys.
    files.set_acl("topic b\n");
    assert_eq!(broker.reload_access(), AccessReloaded::New);
    wait_until("other rules", || broker.counter("access_reloads_total") == 4);
    assert_eq!(log_in(&old), ReasonCode::SUCCESS);
    let begun = Instant::now();
    assert_eq!(log_in(&new), WRONG);
    for _ in 0..20 {
        log_in(&new);
    }
    wait_until("the new key", || log_in(&new) == ReasonCode::SUCCESS);
    // The usual time would be five minutes. It was asked for twice: at the start, and once for all.
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(service.requests().len(), 2);
    assert_eq!(log_in(&old), WRONG);
}
