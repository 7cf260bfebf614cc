//! A session belongs to the user that made it.

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_testkit::{TestBroker, connect, wait_until};
use tempfile::TempDir;

use super::{Files, answer, logged_in, login};

const USERS: [(&str, &str); 2] = [("ann", "ann"), ("bob", "bob")];
const DENIED: ReasonCode = ReasonCode::NOT_AUTHORIZED;

fn lasting<'a>(id: &'a str, user: &'a str) -> Connect<'a> {
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    Connect { clean_start: false, properties, ..login(id, Version::V5, user, user) }
}

#[test]
fn a_connected_client_keeps_its_place_against_other_users() {
    let files = Files::new(&USERS, None);
    for shards in [1, 3] {
        let broker = files.broker(shards, "");
        let mut ann = logged_in(&broker, "c", Version::V5, "ann");
        for clean_start in [true, false] {
            let stranger = Connect { clean_start, ..lasting("c", "bob") };
            assert_eq!(answer(&broker, &stranger), DENIED);
        }
        ann.ping();
        assert_eq!(broker.counter("refused_strangers_total"), 2);
        // Its own user takes it over.
        logged_in(&broker, "c", Version::V5, "ann");
        assert_eq!(ann.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
    }
}

#[test]
fn a_session_waits_for_its_own_user() {
    let files = Files::new(&USERS, None);
    let broker = files.broker(3, "");
    let mut ann = broker.client(Version::V5);
    ann.connect(&lasting("c", "ann"));
    ann.subscribe("a", QoS::AtLeastOnce);
    ann.disconnect();
    assert_eq!(answer(&broker, &lasting("c", "bob")), DENIED);
    assert_eq!(answer(&broker, &login("c", Version::V311, "bob", "bob")), DENIED);
    let mut bob = logged_in(&broker, "other", Version::V5, "bob");
    bob.publish("a", b"for ann", QoS::AtLeastOnce, false);
    let mut ann = broker.client(Version::V5);
    assert_eq!(ann.connect(&lasting("c", "ann")), (true, ReasonCode::SUCCESS));
    assert_eq!(ann.receive_and_ack().payload, b"for ann");
}

/// An identifier whose session is over is free for all.
#[test]
fn an_identifier_is_free_after_the_end_of_its_session() {
    let files = Files::new(&USERS, None);
    let broker = files.broker(1, "");
    logged_in(&broker, "c", Version::V5, "ann").disconnect();
    wait_until("the session's end", || broker.counter("sessions") == 0);
    logged_in(&broker, "c", Version::V5, "bob");
}

#[test]
fn settings_let_other_users_take_over() {
    let files = Files::new(&USERS, None);
    let broker = files.broker(1, "session_takeover = 'any_user'\n");
    let mut ann = logged_in(&broker, "c", Version::V5, "ann");
    logged_in(&broker, "c", Version::V5, "bob");
    assert_eq!(ann.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
}

#[test]
fn owners_survive_the_end_of_the_process() {
    let (files, data) = (Files::new(&USERS, None), TempDir::new().unwrap());
    let dir = format!("data_dir = {:?}\n", data.path());
    let open = |access: &str| TestBroker::configured(&format!("shards = 1\n{dir}{access}"));
    // From the time before there were users.
    let broker = open("");
    let mut old = broker.client(Version::V5);
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    old.connect(&Connect { properties, ..connect("old", Version::V5) });
    old.disconnect();
    drop(broker);

    let broker = open(&files.section());
    let mut ann = broker.client(Version::V5);
    assert_eq!(ann.connect(&lasting("c", "ann")).1, ReasonCode::SUCCESS);
    ann.disconnect();
    assert_eq!(answer(&broker, &lasting("old", "ann")), DENIED);
    drop(broker);

    let broker = open(&format!("{}session_takeover = 'from_anonymous'\n", files.section()));
    assert_eq!(answer(&broker, &lasting("c", "bob")), DENIED);
    let mut ann = broker.client(Version::V5);
    assert_eq!(ann.connect(&lasting("c", "ann")), (true, ReasonCode::SUCCESS));
    let mut bob = broker.client(Version::V5);
    assert_eq!(bob.connect(&lasting("old", "bob")), (true, ReasonCode::SUCCESS));
    bob.disconnect();
    // It is his now.
    assert_eq!(answer(&broker, &lasting("old", "ann")), DENIED);
}
