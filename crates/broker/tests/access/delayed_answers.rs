//! Answers to the failed logins of an address come later and later, in virtual time.

use std::fs;

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{Connect, Direction, Packet, ReasonCode, Version, split_frame};
use tacho_net::sim::{Faults, Peer};
use tacho_testkit::packets::encode;

use super::tokens::{SECRET, by_method, token_with};
use super::{Files, login};

const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
const MS: u64 = 1_000_000;
/// A timer may be late by so much.
const SLACK_MS: u64 = 3;

/// A broker on simulated loops, behind a proxy that tells the addresses of clients.
struct Slowing {
    cluster: Cluster,
    _files: Files,
}

impl Slowing {
    /// `keys` are further ones of `[access]`, and tables behind it; KEYS is a file of keys.
    fn new(keys: &str) -> Self {
        let files = Files::new(&[("ann", "ann")], None);
        fs::write(files.path("keys"), SECRET).unwrap();
        let text = format!(
            "shards = 1\n{}{keys}\n[[listeners]]\naddress = '127.0.0.1:1883'\n\
             proxy_protocol = true\n[limits]\nconnect_timeout_s = 1\n",
            files.section()
        );
        let text = text.replace("'KEYS'", &format!("{:?}", files.path("keys")));
        let config = toml::from_str::<RawConfig>(&text).unwrap().resolve().unwrap();
        let cluster = Cluster::new(&config, |bounds| bounds, 1, Faults::default(), 1).unwrap();
        Self { cluster, _files: files }
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.cluster.loops().step() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn pass_ms(&mut self, ms: u64) {
        self.cluster.loops().advance(ms * MS);
        self.settle();
    }

    /// A client at this address of 192.0.2.0/24.
    fn connecting(&mut self, host: u8, connect: &Connect<'_>) -> Peer {
        let client = self.cluster.connect(0);
        client.send(format!("PROXY TCP4 192.0.2.{host} 10.0.0.1 40000 1883\r\n").as_bytes());
        client.send(&encode(&Packet::Connect(connect.clone()), connect.version));
        client.arrive(usize::MAX);
        self.settle();
        client
    }

    /// The answer to a login that is answered at once.
    fn answer(&mut self, host: u8, connect: &Connect<'_>) -> ReasonCode {
        let client = self.connecting(host, connect);
        reason(&client, connect.version).expect("an answer at once")
    }

    fn counter(&self, name: &str) -> u64 {
        self.cluster.counter(name)
    }
}

/// The reason of the CONNACK, if it has come.
fn reason(client: &Peer, version: Version) -> Option<ReasonCode> {
    let bytes = client.receive(usize::MAX);
    let frame = split_frame(&bytes, u32::MAX).unwrap()?;
    assert_eq!(frame.total_len, bytes.len(), "one packet");
    match Packet::decode(&frame, version, Direction::ToClient).unwrap() {
        Packet::ConnAck(connack) => Some(connack.reason),
        other => panic!("unexpected {other:?}"),
    }
}

fn guess(version: Version) -> Connect<'static> {
    login("guess", version, "ann", "wrong")
}

const V5: Version = Version::V5;

#[test]
fn each_failure_of_an_address_is_answered_later_and_a_right_login_at_once() {
    let mut slow = Slowing::new("login_delay_ms = 250\nlogin_delay_max_ms = 1500\n");
    assert_eq!(slow.answer(1, &guess(V5)), WRONG);
    for delay_ms in [250, 500, 1_000, 1_500, 1_500] {
        let guessing = slow.connecting(1, &guess(V5));
        slow.pass_ms(delay_ms - SLACK_MS);
        assert_eq!(reason(&guessing, V5), None, "{delay_ms}");
        assert_eq!(slow.counter("login_answers_waiting"), 1);
        // Meanwhile others are answered, and the same address if it is right.
        let id = format!("right{delay_ms}");
        assert_eq!(slow.answer(1, &login(&id, V5, "ann", "ann")), ReasonCode::SUCCESS);
        slow.pass_ms(2 * SLACK_MS);
        assert_eq!(reason(&guessing, V5), Some(WRONG), "{delay_ms}");
        assert!(guessing.is_closing());
    }
    assert_eq!(slow.answer(2, &guess(V5)), WRONG);
    assert_eq!(slow.counter("delayed_login_answers_total"), 5);
    assert_eq!(slow.counter("login_answers_waiting"), 0);
    assert_eq!(slow.counter("refused_logins_wrong_total"), 7);
    // Longer than a client may take to connect, which is over by then.
    assert_eq!(slow.counter("connect_timeouts_total"), 0);
    // What was long ago does not count.
    slow.pass_ms(120_000);
    assert_eq!(slow.answer(1, &guess(V5)), WRONG);
}

#[test]
fn so_many_answers_wait_and_none_of_them_in_the_queue_of_verifications() {
    let mut slow = Slowing::new("login_delay_ms = 250\nlogin_delays_max = 2\n");
    assert_eq!(slow.answer(1, &guess(V5)), WRONG);
    let waiting = [slow.connecting(1, &guess(V5)), slow.connecting(1, &guess(V5))];
    assert_eq!(slow.answer(1, &guess(V5)), ReasonCode::QUOTA_EXCEEDED);
    assert_eq!(slow.answer(1, &guess(Version::V311)), ReasonCode::SERVER_UNAVAILABLE);
    assert_eq!(slow.counter("undelayed_login_answers_total"), 2);
    assert_eq!(slow.counter("login_answers_waiting"), 2);
    slow.cluster.hold_logins(true);
    let right = slow.connecting(1, &login("right", V5, "ann", "ann"));
    assert_eq!(slow.cluster.logins_waiting(), 1, "the others have been verified");
    slow.cluster.answer_login(0, 1);
    slow.settle();
    assert_eq!(reason(&right, V5), Some(ReasonCode::SUCCESS));
    slow.cluster.hold_logins(false);
    slow.pass_ms(500 + SLACK_MS);
    assert_eq!(waiting.map(|client| reason(&client, V5)), [Some(WRONG); 2]);
    let guessing = slow.connecting(1, &guess(V5));
    assert_eq!(slow.counter("login_answers_waiting"), 1, "there is room again");
    // One that does not wait for its answer is forgotten with it.
    guessing.reset();
    slow.pass_ms(4_000 + SLACK_MS);
    assert_eq!(slow.counter("login_answers_waiting"), 0);
    assert_eq!(slow.counter("handshakes"), 0);
}

#[test]
fn failures_count_for_the_ban_when_they_are_verified_and_not_when_they_are_told() {
    let mut slow = Slowing::new("login_delay_ms = 1000\nlogin_failures_max = 3\n");
    assert_eq!(slow.answer(1, &guess(V5)), WRONG);
    let waiting = [slow.connecting(1, &guess(V5)), slow.connecting(1, &guess(V5))];
    assert_eq!(slow.answer(1, &guess(V5)), ReasonCode::BANNED);
    assert_eq!(slow.answer(1, &login("right", V5, "ann", "ann")), ReasonCode::BANNED);
    slow.pass_ms(2_000 + SLACK_MS);
    assert_eq!(waiting.map(|client| reason(&client, V5)), [Some(WRONG); 2]);
}

#[test]
fn an_enhanced_authentication_that_fails_is_answered_late_as_well() {
    let mut slow = Slowing::new("login_delay_ms = 250\n[access.jwt]\nkey_file = 'KEYS'\n");
    let token = token_with("another secret that is long", "ann", 600, "");
    let connect = by_method("c", &token);
    assert_eq!(slow.answer(1, &connect), WRONG);
    let late = slow.connecting(1, &connect);
    slow.pass_ms(250 - SLACK_MS);
    assert_eq!(reason(&late, V5), None);
    slow.pass_ms(2 * SLACK_MS);
    assert_eq!(reason(&late, V5), Some(WRONG));
    assert_eq!(slow.counter("failed_authentications_total"), 2);
    assert_eq!(slow.counter("authentications_total"), 0);
}
