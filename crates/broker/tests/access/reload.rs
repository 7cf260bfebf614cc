//! New users and rules apply to clients that are connected, and to sessions that are away.

use tacho_broker::AccessReloaded;
use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, wait_until, will};
use tempfile::TempDir;

use super::{Files, answer, logged_in, login};

const DENIED: ReasonCode = ReasonCode::NOT_AUTHORIZED;
const USERS: [(&str, &str); 2] = [("ann", "ann"), ("bob", "bob")];
const BEFORE: &str = "user ann\ntopic #\nuser bob\ntopic #\n";
/// Ann may not have `a` any more.
const AFTER: &str = "user ann\ntopic #\ntopic deny a/#\nuser bob\ntopic #\n";

pub(super) fn lasting(broker: &TestBroker, id: &str, user: &str) -> (Client, bool) {
    let properties = ConnectProperties { session_expiry_s: Some(600), ..Default::default() };
    let connect = Connect { clean_start: false, properties, ..login(id, Version::V5, user, user) };
    let mut client = broker.client(Version::V5);
    let (is_present, reason) = client.connect(&connect);
    assert_eq!(reason, ReasonCode::SUCCESS);
    (client, is_present)
}

/// Until all shards have what the files say now.
pub(super) fn reload(broker: &TestBroker, shards: u64) {
    let before = broker.counter("access_reloads_total");
    assert_eq!(broker.reload_access(), AccessReloaded::New);
    wait_until("a reload", || broker.counter("access_reloads_total") == before + shards);
}

#[test]
fn subscriptions_that_are_not_allowed_any_more_end_and_others_go_on() {
    let files = Files::new(&USERS, Some(BEFORE));
    for shards in [1, 3] {
        files.set_acl(BEFORE);
        let broker = files.broker(shards, "");
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        ann.subscribe("a/x", QoS::AtLeastOnce);
        let mut other = logged_in(&broker, "ann-b", Version::V5, "ann");
        other.subscribe("b", QoS::AtLeastOnce);
        let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
        bob.subscribe("#", QoS::AtLeastOnce);
        assert_eq!(broker.reload_access(), AccessReloaded::Unchanged);
        files.set_acl(AFTER);
        reload(&broker, shards as u64);
        assert_eq!(ann.expect_disconnect(), DENIED);
        assert_eq!(other.try_publish("a/x", b"no", QoS::AtLeastOnce), DENIED);
        other.publish("b", b"yes", QoS::AtMostOnce, false);
        assert_eq!(other.receive().payload, b"yes");
        assert_eq!(bob.receive().payload, b"yes");
        bob.expect_nothing();
        assert_eq!(broker.counter("ended_subscriptions_total"), 1);
        assert_eq!(broker.counter("ended_by_rules_total"), 1);
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        assert_eq!(ann.subscribe("a/x", QoS::AtLeastOnce), DENIED);
    }
}

#[test]
fn subscriptions_end_without_a_word_where_that_is_configured() {
    let files = Files::new(&USERS, Some(BEFORE));
    for shards in [1, 3] {
        files.set_acl(BEFORE);
        let broker = files.broker(shards, "on_revoked = 'silent'\n");
        let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
        ann.subscribe("a/x", QoS::AtLeastOnce);
        ann.subscribe("b", QoS::AtLeastOnce);
        let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
        files.set_acl(AFTER);
        reload(&broker, shards as u64);
        wait_until("a subscription's end", || broker.counter("ended_subscriptions_total") == 1);
        bob.publish("a/x", b"no", QoS::AtLeastOnce, false);
        bob.publish("b", b"yes", QoS::AtLeastOnce, false);
        assert_eq!(ann.receive_and_ack().payload, b"yes");
        assert_eq!(ann.subscribe("a/x", QoS::AtLeastOnce), DENIED);
        assert_eq!(broker.counter("ended_by_rules_total"), 0);
        // A user that is gone is disconnected all the same.
        files.set_users(&[("bob", "bob")]);
        reload(&broker, shards as u64);
        assert_eq!(ann.expect_disconnect(), DENIED);
        files.set_users(&USERS);
        reload(&broker, shards as u64);
    }
}

#[test]
fn the_queue_of_a_session_that_loses_a_subscription_is_kept_or_dropped() {
    for (queue, data) in [("keep", false), ("drop", false), ("drop", true)] {
        let files = Files::new(&USERS, Some(BEFORE));
        let data = data.then(|| TempDir::new().unwrap());
        let dir = data.as_ref().map(|dir| format!("data_dir = {:?}\n", dir.path()));
        let text = format!(
            "shards = 1\n{}{}revoked_queue = '{queue}'\n",
            dir.unwrap_or_default(),
            files.section()
        );
        let mut broker = TestBroker::configured(&text);
        let (mut ann, _) = lasting(&broker, "ann", "ann");
        ann.subscribe("+/x", QoS::AtLeastOnce);
        ann.disconnect();
        let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
        bob.publish("a/x", b"no", QoS::AtLeastOnce, false);
        bob.publish("b/x", b"perhaps", QoS::AtLeastOnce, false);
        files.set_acl(AFTER);
        reload(&broker, 1);
        wait_until("a subscription's end", || broker.counter("ended_subscriptions_total") == 1);
        if data.is_some() {
            broker.stop();
            broker = TestBroker::configured(&text);
        }
        let (mut ann, is_present) = lasting(&broker, "ann", "ann");
        assert!(is_present);
        if queue == "keep" {
            assert_eq!(ann.receive_and_ack().payload, b"perhaps");
        }
        ann.expect_nothing();
    }
}

/// It was sent, and not acknowledged: its member must not have it again, and the others never had
/// it.
#[test]
fn a_message_in_flight_to_a_member_without_rights_goes_to_another() {
    let files = Files::new(&USERS, Some(BEFORE));
    let broker = files.broker(1, "");
    let (mut ann, _) = lasting(&broker, "ann", "ann");
    ann.subscribe("$share/g/a/#", QoS::AtLeastOnce);
    let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
    bob.publish("a/x", b"job", QoS::AtLeastOnce, false);
    assert_eq!(ann.receive().payload, b"job");
    ann.disconnect();
    bob.subscribe("$share/g/a/#", QoS::AtLeastOnce);
    files.set_acl(AFTER);
    reload(&broker, 1);
    wait_until("a subscription's end", || broker.counter("ended_subscriptions_total") == 1);
    let (mut ann, is_present) = lasting(&broker, "ann", "ann");
    assert!(is_present);
    assert_eq!(bob.receive_and_ack().payload, b"job");
    ann.expect_nothing();
}

#[test]
fn users_that_are_gone_are_disconnected() {
    let files = Files::new(&USERS, None);
    let broker = files.broker(3, "");
    let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
    let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
    files.set_users(&[("bob", "new"), ("eve", "eve")]);
    reload(&broker, 3);
    assert_eq!(ann.expect_disconnect(), DENIED);
    bob.ping();
    let wrong = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
    assert_eq!(answer(&broker, &login("ann", Version::V5, "ann", "ann")), wrong);
    // What was verified before does not open the door for the old password.
    assert_eq!(answer(&broker, &login("bob", Version::V5, "bob", "bob")), wrong);
    assert_eq!(answer(&broker, &login("bob2", Version::V5, "bob", "new")), ReasonCode::SUCCESS);
    logged_in(&broker, "eve", Version::V5, "eve");
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing() {
    let files = Files::new(&USERS, Some(AFTER));
    let broker = files.broker(1, "");
    let mut ann = logged_in(&broker, "ann", Version::V5, "ann");
    files.set_acl("user ann\ntopic #\ntopc deny a\n");
    assert_eq!(broker.reload_access(), AccessReloaded::Unusable);
    assert_eq!(ann.try_publish("a/x", b"no", QoS::AtLeastOnce), DENIED);
    assert!(!ann.try_publish("b", b"yes", QoS::AtLeastOnce).is_error());
    std::fs::remove_file(files.path("acl")).unwrap();
    assert_eq!(broker.reload_access(), AccessReloaded::Unusable);
    std::fs::write(files.path("users"), "ann:plain\n").unwrap();
    files.set_acl(BEFORE);
    assert_eq!(broker.reload_access(), AccessReloaded::Unusable);
    assert_eq!(ann.try_publish("a/x", b"no", QoS::AtLeastOnce), DENIED);
    logged_in(&broker, "bob", Version::V5, "bob");
}

/// Rights were revoked while the session was away: it kept its subscription (CVE-2021-34434), and
/// what had been queued for it.
#[test]
fn sessions_that_are_away_lose_what_they_may_not_have() {
    let files = Files::new(&USERS, Some(BEFORE));
    for data in [None, Some(TempDir::new().unwrap())] {
        files.set_acl(BEFORE);
        let dir = data.as_ref().map(|dir| format!("data_dir = {:?}\n", dir.path()));
        let text = format!("shards = 1\n{}{}", dir.clone().unwrap_or_default(), files.section());
        let mut broker = TestBroker::configured(&text);
        let (mut ann, _) = lasting(&broker, "ann", "ann");
        ann.subscribe("a/x", QoS::AtLeastOnce);
        ann.subscribe("b", QoS::ExactlyOnce);
        ann.disconnect();
        let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
        for topic in ["a/x", "b", "a/x"] {
            bob.publish(topic, b"queued", QoS::ExactlyOnce, false);
        }
        files.set_acl(AFTER);
        if data.is_some() {
            // The rules change while the broker does not run.
            broker.stop();
            broker = TestBroker::configured(&text);
            bob = logged_in(&broker, "bob", Version::V5, "bob");
        } else {
            reload(&broker, 1);
        }
        wait_until("a subscription's end", || broker.counter("ended_subscriptions_total") == 1);
        let (mut ann, is_present) = lasting(&broker, "ann", "ann");
        assert!(is_present);
        assert_eq!(ann.receive_and_ack().topic, "b");
        bob.publish("a/x", b"live", QoS::AtLeastOnce, false);
        bob.publish("b", b"live", QoS::AtLeastOnce, false);
        let message = ann.receive_and_ack();
        assert_eq!((&*message.topic, &*message.payload), ("b", &b"live"[..]));
        assert_eq!(broker.counter("denied_deliveries_total"), 2);
    }
}

#[test]
fn a_will_that_is_not_allowed_any_more_is_not_published() {
    let files = Files::new(&USERS, Some(BEFORE));
    let broker = files.broker(1, "");
    let mut bob = logged_in(&broker, "bob", Version::V5, "bob");
    bob.subscribe("#", QoS::AtMostOnce);
    for (id, topic) in [("ann-1", "a/gone"), ("ann-2", "b/gone")] {
        let mut ann = broker.client(Version::V5);
        let connect =
            Connect { will: Some(will(topic, b"gone")), ..login(id, Version::V5, "ann", "ann") };
        assert_eq!(ann.connect(&connect).1, ReasonCode::SUCCESS);
        if id == "ann-1" {
            files.set_acl(AFTER);
            reload(&broker, 1);
            ann.ping();
        }
        drop(ann);
    }
    assert_eq!(bob.receive().topic, "b/gone");
    bob.expect_nothing();
    assert_eq!(broker.counter("denied_wills_total"), 1);
}
