//! Wills and retained messages keep the user that made them, and the rules in force when a will is
//! due decide.

use std::fs;

use tacho_access::{Scheme, StoredPassword, set_user};
use tacho_broker::{KeptRecord, SessionTakeover, visit_records};
use tacho_codec::{Connect, Publish, QoS, Version, Will, WillProperties};
use tacho_journal::Inspection;
use tempfile::TempDir;

use super::durable_broker::{Client, Death, DurableBroker, Seen};

const RULES: &str = "user ann\ntopic w/#\nuser bob\ntopic w/bob\nuser root\ntopic #\n";

/// A broker with users whose password is their name, and with rules in a folder.
fn broker_with(folder: &TempDir, rules: &str) -> DurableBroker {
    let path = |name: &str| folder.path().join(name);
    let users = ["ann", "bob", "root"].into_iter().fold(String::new(), |text, name| {
        let stored = StoredPassword::make(name.as_bytes(), Scheme::Sha512).unwrap();
        set_user(&text, name, &stored)
    });
    fs::write(path("users"), users).unwrap();
    fs::write(path("acl"), rules).unwrap();
    DurableBroker::configured(1, |raw| {
        raw.access.password_file = Some(path("users"));
        raw.access.acl_file = Some(path("acl"));
        raw.access.session_takeover = SessionTakeover::AnyUser;
    })
}

fn log_in(connect: &mut Connect<'static>, user: &'static str) {
    connect.username = Some(user);
    connect.password = Some(user.as_bytes());
}

/// A client whose will is due five seconds after it is gone.
fn with_will(
    broker: &mut DurableBroker,
    client_id: &str,
    user: &'static str,
    topic: &'static str,
) -> Client {
    let client = broker.connecting(client_id, Version::V5, |connect| {
        log_in(connect, user);
        let properties = WillProperties { delay_s: Some(5), ..Default::default() };
        let (payload, qos) = (&b"gone"[..], QoS::AtMostOnce);
        connect.will = Some(Will { topic, payload, qos, retain: false, properties });
    });
    broker.commit();
    client
}

/// A client that sees all wills.
fn watcher(broker: &mut DurableBroker) -> Client {
    let mut root = broker.connecting("root", Version::V5, |connect| log_in(connect, "root"));
    broker.commit();
    assert!(matches!(root.next(), Seen::Connected { .. }));
    broker.subscribe(&mut root, "w/#", QoS::AtMostOnce);
    root
}

fn topics(client: &mut Client) -> Vec<String> {
    let topic = |seen| match seen {
        Seen::Message { topic, .. } => topic,
        other => panic!("no message: {other:?}"),
    };
    client.all().into_iter().map(topic).collect()
}

/// Rights are revoked while the broker does not run.
#[test]
fn a_will_from_the_journal_is_judged_by_the_rights_of_its_user() {
    let folder = TempDir::new().unwrap();
    let mut broker = broker_with(&folder, RULES);
    let _ann = with_will(&mut broker, "c-ann", "ann", "w/ann");
    let _bob = with_will(&mut broker, "c-bob", "bob", "w/bob");
    fs::write(folder.path().join("acl"), RULES.replace("ann\ntopic w/#", "ann\ntopic v/#"))
        .unwrap();
    broker.restart(Death::Killed);
    let mut root = watcher(&mut broker);
    broker.sleep(6);
    assert_eq!(topics(&mut root), ["w/bob"]);
    assert_eq!(broker.cluster.counter("denied_wills_total"), 1);
}

/// Another user has the session, and its client waits for the commit, when the will is due.
#[test]
fn a_will_is_its_makers_also_in_a_session_that_another_user_has() {
    let folder = TempDir::new().unwrap();
    let mut broker = broker_with(&folder, RULES);
    let mut root = watcher(&mut broker);
    let ann = with_will(&mut broker, "shared", "ann", "w/ann");
    ann.peer.reset();
    broker.commit();
    let mut bob = broker.connecting("shared", Version::V5, |connect| log_in(connect, "bob"));
    broker.settle();
    bob.expect_nothing();
    broker.sleep(6);
    assert_eq!(topics(&mut root), ["w/ann"], "what bob may do has nothing to do with it");
    broker.commit();
    assert_eq!(bob.next(), Seen::Connected { session_present: true });
}

#[test]
fn the_journal_says_who_made_what_is_retained() {
    let folder = TempDir::new().unwrap();
    let mut broker = broker_with(&folder, RULES);
    let ann = broker.connecting("c", Version::V5, |connect| log_in(connect, "ann"));
    broker.commit();
    ann.publish_with("w/kept", "kept", QoS::AtLeastOnce, 1, |publish| Publish {
        retain: true,
        ..publish
    });
    broker.commit();
    let mut users = Vec::new();
    let inspection = Inspection::open_on(&broker.disk.kill()).unwrap();
    visit_records(&inspection, true, &mut |record| {
        if let KeptRecord::Retained { message } = record {
            users.push(message.user);
        }
    })
    .unwrap();
    assert_eq!(users, [Some("ann".to_owned())]);
}
