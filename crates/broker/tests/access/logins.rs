//! Who may connect.

use std::num::NonZeroU32;

use tacho_codec::{Connect, Packet, QoS, ReasonCode, Version};
use tacho_testkit::{TestBroker, VERSIONS, connect, wait_until};

use super::{Files, Scheme, StoredPassword, answer, logged_in, login};

const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;

#[test]
fn only_the_right_password_logs_in() {
    let files = Files::new(&[("ann", "secret"), ("bob", "")], None);
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        for version in VERSIONS {
            for (user, password, expected) in [
                ("ann", "secret", ReasonCode::SUCCESS),
                ("ann", "Secret", WRONG),
                ("ann", "", WRONG),
                ("bob", "", ReasonCode::SUCCESS),
                ("eve", "secret", WRONG),
                ("", "", WRONG),
            ] {
                let id = format!("client of {user}");
                let reason = answer(&broker, &login(&id, version, user, password));
                assert_eq!(reason, expected, "{user}:{password} {version}");
            }
            let bare = connect("c", version);
            assert_eq!(answer(&broker, &bare), ReasonCode::NOT_AUTHORIZED);
            let nameless = Connect { username: Some("ann"), ..bare };
            assert_eq!(answer(&broker, &nameless), WRONG, "no password");
        }
        assert_eq!(broker.counter("refused_logins_anonymous_total"), 3);
        assert_eq!(broker.counter("refused_logins_wrong_total"), 15);
        let verified = broker.counter("logins_verified_total");
        let remembered = broker.counter("logins_remembered_total");
        assert_eq!(verified + remembered, 6);
        // The same client comes to the same shard, which remembers it.
        assert_eq!(verified, 2);
    }
}

#[test]
fn password_without_user_name_is_anonymous() {
    let files = Files::new(&[("ann", "ann")], None);
    let broker = files.broker(1, "");
    let odd = Connect { password: Some(b"ann"), ..connect("c", Version::V5) };
    assert_eq!(answer(&broker, &odd), ReasonCode::NOT_AUTHORIZED);
}

/// A client may send more behind its CONNECT before it knows the answer.
#[test]
fn what_follows_the_connect_waits_for_the_login() {
    let files = Files::new(&[("ann", "ann")], None);
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        let mut client = broker.client(Version::V5);
        let connect = login("c", Version::V5, "ann", "ann");
        let mut bytes = Vec::new();
        Packet::Connect(connect.clone()).encode(Version::V5, &mut bytes).unwrap();
        Packet::PingReq.encode(Version::V5, &mut bytes).unwrap();
        client.send_raw(&bytes);
        let reason = client.expect(|packet| match packet {
            Packet::ConnAck(connack) => connack.reason,
            other => panic!("expected CONNACK, got {other:?}"),
        });
        assert_eq!(reason, ReasonCode::SUCCESS);
        client.expect(|packet| assert!(matches!(packet, Packet::PingResp), "{packet:?}"));
        client.subscribe("a", QoS::AtMostOnce);
        client.publish("a", b"x", QoS::AtMostOnce, false);
        assert_eq!(client.receive().payload, b"x");
    }
}

#[test]
fn nothing_behind_a_refused_connect_is_handled() {
    let files = Files::new(&[("ann", "ann")], None);
    let broker = files.broker(1, "");
    let mut bytes = Vec::new();
    let refused = login("c", Version::V311, "ann", "bob");
    Packet::Connect(refused).encode(Version::V311, &mut bytes).unwrap();
    Packet::PingReq.encode(Version::V311, &mut bytes).unwrap();
    let mut client = broker.client(Version::V311);
    client.send_raw(&bytes);
    // CONNACK with return code 4, then the close.
    assert_eq!(client.frame().unwrap(), [0x20, 2, 0, 4]);
    client.expect_closed();
}

#[test]
fn anonymous_clients_are_admitted_where_a_listener_says_so() {
    let files = Files::new(&[("ann", "ann")], Some("topic news\nuser ann\ntopic #\n"));
    let open = "[[listeners]]\naddress = '127.0.0.1:0'\nallow_anonymous = true\n";
    let broker = TestBroker::configured(&format!("shards = 1\n{}{open}", files.section()));
    let [closed, open] = broker.addresses() else { panic!("two listeners") };
    let mut client = tacho_testkit::Client::open(*closed, Version::V5);
    assert_eq!(client.connect(&connect("a", Version::V5)).1, ReasonCode::NOT_AUTHORIZED);
    let mut client = tacho_testkit::Client::open(*open, Version::V5);
    assert_eq!(client.connect(&connect("a", Version::V5)).1, ReasonCode::SUCCESS);
    assert_eq!(client.subscribe("news", QoS::AtMostOnce), ReasonCode::SUCCESS);
    assert_eq!(client.subscribe("#", QoS::AtMostOnce), ReasonCode::NOT_AUTHORIZED);
    // A wrong password is no reason to count as anonymous.
    let mut client = tacho_testkit::Client::open(*open, Version::V5);
    assert_eq!(client.connect(&login("b", Version::V5, "ann", "x")).1, WRONG);
}

#[test]
fn a_listener_may_have_users_of_its_own() {
    let (all, own) = (Files::new(&[("ann", "ann")], None), Files::new(&[("bob", "bob")], None));
    let listener = format!(
        "[[listeners]]\naddress = '127.0.0.1:0'\npassword_file = {:?}\n",
        own.path("users")
    );
    let broker = TestBroker::configured(&format!("shards = 1\n{}{listener}", all.section()));
    for (address, user, expected) in [
        (broker.addresses()[0], "ann", ReasonCode::SUCCESS),
        (broker.addresses()[0], "bob", WRONG),
        (broker.addresses()[1], "ann", WRONG),
        (broker.addresses()[1], "bob", ReasonCode::SUCCESS),
    ] {
        let mut client = tacho_testkit::Client::open(address, Version::V5);
        assert_eq!(client.connect(&login(user, Version::V5, user, user)).1, expected);
    }
}

/// Without a password file a user name is only a claim.
#[test]
fn a_name_that_is_not_verified_gives_no_rights() {
    let files = Files::new(&[], Some("user ann\ntopic #\npattern home/%u\n"));
    let text = format!("shards = 1\n[access]\nacl_file = {:?}\n", files.path("acl"));
    let broker = TestBroker::configured(&text);
    let mut client = broker.client(Version::V5);
    assert_eq!(client.connect(&login("c", Version::V5, "ann", "ann")).1, ReasonCode::SUCCESS);
    for filter in ["a", "home/ann"] {
        let reason = client.subscribe(filter, QoS::AtMostOnce);
        assert_eq!(reason, ReasonCode::NOT_AUTHORIZED, "{filter}");
    }
}

/// However many passwords wait: every client is answered, and others are served meanwhile.
#[test]
fn a_flood_of_logins_is_refused_and_harms_no_client() {
    let files = Files::new(&[("ann", "ann")], None);
    let iterations = NonZeroU32::new(200_000).unwrap();
    let slow = StoredPassword::make(b"slow", Scheme::Pbkdf2 { iterations }).unwrap();
    let text = std::fs::read_to_string(files.path("users")).unwrap();
    std::fs::write(files.path("users"), tacho_access::set_user(&text, "slow", &slow)).unwrap();
    let broker = files.broker(1, "login_threads = 1\nlogins_waiting_max = 1\n");
    let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
    let mut flood: Vec<_> = (0..20).map(|_| broker.client(Version::V5)).collect();
    for (number, client) in flood.iter_mut().enumerate() {
        let id = format!("flood-{number}");
        client.send(&Packet::Connect(login(&id, Version::V5, "slow", "wrong")));
    }
    ann.ping();
    for client in &mut flood {
        let reason = client.expect(|packet| match packet {
            Packet::ConnAck(connack) => connack.reason,
            other => panic!("expected CONNACK, got {other:?}"),
        });
        assert!([WRONG, ReasonCode::SERVER_BUSY].contains(&reason), "{reason}");
    }
    ann.ping();
    let refused =
        broker.counter("refused_logins_busy_total") + broker.counter("refused_logins_wrong_total");
    assert_eq!(refused, 20);
}

/// The password of a client that has left is not verified any more, and nothing is left of it.
#[test]
fn clients_that_leave_before_the_answer_leave_nothing() {
    let files = Files::new(&[("ann", "ann")], None);
    let broker = files.broker(1, "");
    for _ in 0..20 {
        let mut client = broker.client(Version::V311);
        client.send(&Packet::Connect(login("gone", Version::V311, "ann", "wrong")));
        drop(client);
    }
    wait_until("no handshakes", || broker.counter("handshakes") == 0);
    wait_until("no connections", || broker.counter("connections") == 0);
    logged_in(&broker, "gone", Version::V311, "ann");
}
