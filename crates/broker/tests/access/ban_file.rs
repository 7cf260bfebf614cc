//! Bans of a file: refused at CONNECT, and ended when they are new.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect as connect_socket, socket};
use tacho_broker::{AccessReloaded, self_signed};
use tacho_codec::{Connect, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, VERSIONS, connect, wait_until};

use super::{Files, answer, logged_in, login};

const BANNED: ReasonCode = ReasonCode::BANNED;
const OTHERS: &str = "[[bans]]\nuser = 'other'\n";

/// What CONNACK says of a ban: before 5.0 there is no code for it.
fn refusal(version: Version) -> ReasonCode {
    match version {
        Version::V5 => BANNED,
        _ => ReasonCode::NOT_AUTHORIZED,
    }
}

/// A connection from another address of this machine.
fn stream_from(address: [u8; 4], broker: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((address, 0))).unwrap();
    connect_socket(&socket, &broker).unwrap();
    TcpStream::from(socket)
}

fn client_from(address: [u8; 4], broker: SocketAddr, version: Version) -> Client {
    Client::over(stream_from(address, broker), version)
}

fn set_bans(files: &Files, text: &str) {
    fs::write(files.path("bans"), text).unwrap();
}

/// Until all shards have what the files say now.
fn ban(broker: &TestBroker, files: &Files, shards: u64, text: &str) {
    let before = broker.counter("access_reloads_total");
    set_bans(files, text);
    assert_eq!(broker.reload_access(), AccessReloaded::New);
    wait_until("a reload", || broker.counter("access_reloads_total") == before + shards);
}

/// A broker that all may use, but for these bans.
fn open_broker(files: &Files, shards: usize, bans: &str) -> TestBroker {
    set_bans(files, bans);
    let path = files.path("bans");
    TestBroker::configured(&format!("shards = {shards}\n[access]\nban_file = {path:?}\n"))
}

#[test]
fn what_is_banned_may_not_connect() {
    let files = Files::new(&[], None);
    let text = "[[bans]]\naddress = '127.0.0.2'\n[[bans]]\naddress = '127.1.0.0/16'\n\
                [[bans]]\nclient_id = 'c'\nreason = 'broken'\n[[bans]]\nuser = 'eve'\n";
    for shards in [1, 3] {
        let broker = open_broker(&files, shards, text);
        for version in VERSIONS {
            for (address, id, user, is_banned) in [
                ([127, 0, 0, 1], "a", "ann", false),
                ([127, 0, 0, 2], "a", "ann", true),
                ([127, 0, 0, 3], "a", "ann", false),
                ([127, 1, 2, 3], "a", "ann", true),
                ([127, 0, 0, 1], "c", "ann", true),
                ([127, 0, 0, 1], "a", "eve", true),
            ] {
                let mut client = client_from(address, broker.address, version);
                let (_, reason) = client.connect(&login(id, version, user, "x"));
                let expected = if is_banned { refusal(version) } else { ReasonCode::SUCCESS };
                assert_eq!(reason, expected, "{address:?} {id} {user} {version}");
                if is_banned {
                    client.expect_closed();
                }
            }
        }
        assert_eq!(broker.counter("refused_banned_total"), 4 * VERSIONS.len() as u64);
    }
}

#[test]
fn a_banned_user_is_refused_whatever_the_password() {
    let files = Files::new(&[("ann", "ann"), ("eve", "eve")], None);
    set_bans(&files, "[[bans]]\nuser = 'eve'\n");
    let broker = files.broker(1, &format!("ban_file = {:?}\n", files.path("bans")));
    for password in ["eve", "wrong"] {
        assert_eq!(answer(&broker, &login("c", Version::V5, "eve", password)), BANNED);
    }
    // No password was looked at.
    assert_eq!(broker.counter("refused_logins_wrong_total"), 0);
    assert_eq!(broker.counter("logins_verified_total"), 0);
    logged_in(&broker, "c", Version::V5, "ann");
}

#[test]
fn new_bans_end_connections_and_others_do_not_notice() {
    let files = Files::new(&[("ann", "ann"), ("eve", "eve")], None);
    for shards in [1, 3] {
        set_bans(&files, OTHERS);
        let broker = files.broker(shards, &format!("ban_file = {:?}\n", files.path("bans")));
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        ann.subscribe("a", QoS::AtMostOnce);
        let mut by_user = logged_in(&broker, "1", Version::V5, "eve");
        let mut by_id = logged_in(&broker, "2", Version::V5, "ann");
        let mut by_address = client_from([127, 0, 0, 2], broker.address, Version::V5);
        assert!(!by_address.connect(&login("3", Version::V5, "ann", "ann")).1.is_error());
        let mut old = client_from([127, 0, 0, 2], broker.address, Version::V311);
        assert!(!old.connect(&login("4", Version::V311, "ann", "ann")).1.is_error());
        let text = "[[bans]]\nuser = 'eve'\n[[bans]]\nclient_id = '2'\n\
                    [[bans]]\naddress = '127.0.0.2'\n";
        ban(&broker, &files, shards as u64, text);
        for client in [&mut by_user, &mut by_id, &mut by_address] {
            assert_eq!(client.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
        }
        old.expect_closed();
        ann.publish("a", b"x", QoS::AtMostOnce, false);
        assert_eq!(ann.receive().payload, b"x");
        assert_eq!(broker.counter("ended_by_bans_total"), 4);
        assert_eq!(broker.counter("ended_by_rules_total"), 0);
        assert_eq!(answer(&broker, &login("2", Version::V5, "ann", "ann")), BANNED);
        ban(&broker, &files, shards as u64, OTHERS);
        logged_in(&broker, "2", Version::V5, "ann");
    }
}

#[test]
fn a_ban_that_is_over_has_no_effect() {
    let files = Files::new(&[], None);
    let text = "[[bans]]\nclient_id = 'past'\nuntil = 2020-01-01T00:00:00Z\n\
                [[bans]]\nclient_id = 'future'\nuntil = '2999-01-01T00:00:00+02:00'\n";
    let broker = open_broker(&files, 1, text);
    assert_eq!(answer(&broker, &connect("past", Version::V5)), ReasonCode::SUCCESS);
    assert_eq!(answer(&broker, &connect("future", Version::V5)), BANNED);
}

/// The TLS handshake is not made.
#[test]
fn a_banned_address_gets_no_tls_handshake() {
    let files = Files::new(&[], None);
    let folder = tempfile::tempdir().unwrap();
    let made = self_signed(folder.path(), []).unwrap();
    set_bans(&files, "[[bans]]\naddress = '127.0.0.2'\n");
    let text = format!(
        "shards = 1\n[access]\nban_file = {:?}\n[[listeners]]\naddress = '127.0.0.1:0'\n\
         transport = 'tls'\ncert = {:?}\nkey = {:?}\n",
        files.path("bans"),
        made.cert,
        made.key
    );
    let broker = TestBroker::configured(&text);
    let tls = broker.addresses()[1];
    let mut banned = stream_from([127, 0, 0, 2], tls);
    banned.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    match banned.read(&mut [0; 1]) {
        Ok(0) => {}
        Ok(_) => panic!("the broker speaks"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert_eq!(broker.counter("refused_banned_total"), 1);
    let mut other = stream_from([127, 0, 0, 3], tls);
    other.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let error = other.read(&mut [0; 1]).expect_err("it is waited for");
    assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()), "{error}");
}

#[test]
fn a_file_that_cannot_be_used_keeps_the_bans_in_force() {
    let files = Files::new(&[], None);
    let broker = open_broker(&files, 1, "[[bans]]\nclient_id = 'c'\n");
    for text in ["[[bans]]\nclient = 'd'\n", "[[bans]]\naddress = '127.0.0'\n"] {
        set_bans(&files, text);
        assert_eq!(broker.reload_access(), AccessReloaded::Unusable);
        assert_eq!(answer(&broker, &connect("c", Version::V5)), BANNED);
    }
    let named = Connect { username: Some("c"), ..connect("d", Version::V5) };
    assert_eq!(answer(&broker, &named), ReasonCode::SUCCESS);
}
