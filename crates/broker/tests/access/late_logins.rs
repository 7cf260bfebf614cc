//! Credentials whose verification is answered late: meanwhile users and keys have changed.

use std::fs;

use tacho_broker::RawConfig;
use tacho_broker::sim::Cluster;
use tacho_codec::{Auth, Direction, Packet, ReasonCode, UserProperties, Version, split_frame};
use tacho_net::sim::{Faults, Peer};
use tacho_testkit::packets::encode;
use tempfile::TempDir;

use super::tokens::{SECRET, by_method, token_with};

const OTHER: &str = "another secret that is long";
const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;

/// A broker whose clients log in with tokens, on simulated loops.
struct Late {
    cluster: Cluster,
    folder: TempDir,
}

impl Late {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (keys, acl) = (folder.path().join("keys"), folder.path().join("acl"));
        fs::write(&keys, SECRET).unwrap();
        fs::write(&acl, "user ann\ntopic a\n").unwrap();
        let text = format!(
            "shards = 1\n[access]\nacl_file = {acl:?}\n[access.jwt]\nkey_file = {keys:?}\n"
        );
        let raw: RawConfig = toml::from_str(&text).unwrap();
        let config = raw.resolve().unwrap();
        let cluster = Cluster::new(&config, |bounds| bounds, 1, Faults::default(), 1).unwrap();
        cluster.hold_logins(true);
        Self { cluster, folder }
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.cluster.loops().step() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Answers all logins that wait at this time.
    fn answer(&mut self, expected: usize) {
        assert_eq!(self.cluster.logins_waiting(), expected);
        for _ in 0..expected {
            self.cluster.answer_login(0, 1);
        }
        self.settle();
    }

    fn write(&mut self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
        self.cluster.access().reload();
        self.settle();
    }

    fn send(&mut self, client: &Peer, packet: &Packet<'_>) {
        client.send(&encode(packet, Version::V5));
        client.arrive(usize::MAX);
        self.settle();
    }

    /// A client whose CONNECT names the method and this token.
    fn connecting(&mut self, token: &str) -> Peer {
        let client = self.cluster.connect(0);
        self.send(&client, &Packet::Connect(by_method("c", token)));
        client
    }

    fn bring(&mut self, client: &Peer, token: &str) {
        self.send(
            client,
            &Packet::Auth(Auth {
                reason: ReasonCode::REAUTHENTICATE,
                method: Some("JWT"),
                data: Some(token.as_bytes()),
                reason_string: None,
                user_properties: UserProperties::EMPTY,
            }),
        );
    }
}

/// The reasons in the packets that have come.
fn reasons(client: &Peer) -> Vec<ReasonCode> {
    let bytes = client.receive(usize::MAX);
    let (mut used, mut reasons) = (0, Vec::new());
    while let Some(frame) = split_frame(&bytes[used..], u32::MAX).unwrap() {
        reasons.push(match Packet::decode(&frame, Version::V5, Direction::ToClient).unwrap() {
            Packet::ConnAck(connack) => connack.reason,
            Packet::Auth(auth) => auth.reason,
            Packet::Disconnect(disconnect) => disconnect.reason,
            other => panic!("unexpected {other:?}"),
        });
        used += frame.total_len;
    }
    reasons
}

fn of(secret: &str) -> String {
    token_with(secret, "ann", 600, "")
}

/// The answer says what the keys of that time said.
#[test]
fn a_token_that_was_verified_by_keys_that_are_gone_is_verified_again() {
    let mut late = Late::new();
    let early = late.connecting(&of(SECRET));
    late.write("keys", OTHER);
    late.answer(1);
    assert!(reasons(&early).is_empty());
    late.answer(1);
    assert_eq!(reasons(&early), [WRONG]);
    // The same of a client that is connected.
    let client = late.connecting(&of(OTHER));
    late.answer(1);
    assert_eq!(reasons(&client), [ReasonCode::SUCCESS]);
    late.bring(&client, &of(OTHER));
    late.write("keys", SECRET);
    late.answer(1);
    assert!(reasons(&client).is_empty());
    late.answer(1);
    assert_eq!(reasons(&client), [ReasonCode::NOT_AUTHORIZED]);
}

#[test]
fn a_token_that_is_right_still_lets_its_client_in_after_a_reload() {
    let mut late = Late::new();
    let client = late.connecting(&of(SECRET));
    late.write("acl", "user ann\ntopic b\n");
    late.answer(1);
    late.answer(1);
    assert_eq!(reasons(&client), [ReasonCode::SUCCESS]);
    late.bring(&client, &of(SECRET));
    late.write("acl", "user ann\ntopic c\n");
    late.answer(1);
    late.answer(1);
    assert_eq!(reasons(&client), [ReasonCode::SUCCESS]);
    assert_eq!(late.cluster.counter("authentications_total"), 2);
}
