//! The wall clock is set while the broker is down: what was to end then ends earlier or later by
//! that much, and nothing else changes. While the broker runs it does not read that clock.

use tacho_codec::{AckKind, QoS, Version, Will, WillProperties};

use crate::durable_broker::{Client, Death, DurableBroker, Seen};

const QOS1: QoS = QoS::AtLeastOnce;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// Far enough for any battery that was empty: to 1970, and half a century ahead.
const STEPS_S: [i64; 6] =
    [3_600, -3_600, 86_400 * 365, -86_400 * 365, -1_900_000_000, 50 * 365 * 86_400];

/// A session that outlives its connection by so many seconds and subscribes to `filter`; it is
/// disconnected then.
fn leave(broker: &mut DurableBroker, client_id: &str, filter: &str, expiry_s: u64) {
    let mut client = broker.connecting(client_id, Version::V5, |connect| {
        connect.clean_start = true;
        connect.properties.session_expiry_s = u32::try_from(expiry_s).ok();
    });
    client.subscribe(filter, QOS1);
    broker.commit();
    assert!(matches!(client.all()[..], [Seen::Connected { .. }, Seen::SubAck]), "{client_id}");
    client.peer.reset();
    broker.commit();
}

/// Publishes at QoS 1, and waits for the acknowledgement.
fn publish(broker: &mut DurableBroker, client: &mut Client, payload: &str, expiry_s: Option<u64>) {
    client.publish_with("t", payload, QOS1, 1, |mut publish| {
        publish.properties.message_expiry_s = expiry_s.and_then(|s| u32::try_from(s).ok());
        publish
    });
    broker.commit();
    client.expect_ack(AckKind::PubAck, 1);
}

/// What a session gets, in order; `None` when there is no session any more.
fn taken(broker: &mut DurableBroker, client_id: &str) -> Option<Vec<String>> {
    let mut client = broker.resuming(client_id);
    broker.commit();
    let mut payloads = Vec::new();
    for seen in client.all() {
        match seen {
            Seen::Connected { session_present: false } => return None,
            Seen::Message { payload, id, .. } => {
                client.acknowledge(AckKind::PubAck, id);
                payloads.push(payload);
            }
            _ => {}
        }
    }
    broker.commit();
    client.peer.reset();
    broker.commit();
    Some(payloads)
}

/// A broker with sessions of half an hour, three hours and for ever, all of them with messages of
/// the same lives.
fn prepared() -> DurableBroker {
    let mut broker = DurableBroker::new(2);
    for (client_id, expiry_s) in
        [("short", 30 * MINUTE), ("long", 3 * HOUR), ("lasting", u64::from(u32::MAX))]
    {
        leave(&mut broker, client_id, "t", expiry_s);
    }
    let mut publisher = broker.passing("publisher");
    for (payload, expiry_s) in
        [("m-lasting", None), ("m-short", Some(30 * MINUTE)), ("m-long", Some(3 * HOUR))]
    {
        publish(&mut broker, &mut publisher, payload, expiry_s);
    }
    broker
}

#[test]
fn an_hour_forward_ends_what_had_less_than_an_hour() {
    for death in [Death::Killed, Death::PowerCut] {
        let mut broker = prepared();
        broker.restart_after_step(death, 3_600);
        assert_eq!(taken(&mut broker, "short"), None);
        let left = ["m-lasting", "m-long"].map(str::to_owned);
        assert_eq!(taken(&mut broker, "long").as_deref(), Some(&left[..]));
        assert_eq!(taken(&mut broker, "lasting").as_deref(), Some(&left[..]));
    }
}

#[test]
fn an_hour_back_ends_everything_an_hour_later() {
    // A minute of the half hour passed before the restart.
    for (minutes, has_ended) in [(80, false), (95, true)] {
        let mut broker = prepared();
        broker.restart_after_step(Death::PowerCut, -3_600);
        broker.sleep(minutes * MINUTE);
        broker.commit();
        let short = Some("m-short").filter(|_| !has_ended);
        let left: Vec<String> =
            ["m-lasting"].into_iter().chain(short).chain(["m-long"]).map(str::to_owned).collect();
        let of_short = Some(left.clone()).filter(|_| !has_ended);
        assert_eq!(taken(&mut broker, "short"), of_short, "{minutes} min");
        assert_eq!(taken(&mut broker, "long"), Some(left.clone()), "{minutes} min");
        assert_eq!(taken(&mut broker, "lasting"), Some(left), "{minutes} min");
    }
}

#[test]
fn waiting_wills_are_published_earlier_or_later_and_once() {
    for (step_s, sleeps) in [(3_600, [0, 5 * MINUTE]), (-3_600, [80 * MINUTE, 15 * MINUTE])] {
        let mut broker = DurableBroker::new(2);
        leave(&mut broker, "heir", "will/#", u64::from(u32::MAX));
        let properties = WillProperties { delay_s: Some(30 * 60), ..WillProperties::default() };
        let will = Will { topic: "will/a", payload: b"gone", qos: QOS1, retain: false, properties };
        let dies = broker.with_will("dies", will);
        dies.peer.reset();
        broker.commit();
        broker.restart_after_step(Death::PowerCut, step_s);
        broker.sleep(sleeps[0]);
        broker.commit();
        let early: Vec<String> = if step_s > 0 { vec!["gone".to_owned()] } else { Vec::new() };
        assert_eq!(taken(&mut broker, "heir"), Some(early.clone()), "{step_s}");
        broker.sleep(sleeps[1]);
        broker.commit();
        let late = if step_s > 0 { Vec::new() } else { vec!["gone".to_owned()] };
        assert_eq!(taken(&mut broker, "heir"), Some(late), "{step_s}");
    }
}

#[test]
fn acknowledged_messages_without_expiry_survive_any_step() {
    for step_s in STEPS_S {
        for death in [Death::Killed, Death::PowerCut] {
            let mut broker = prepared();
            let mut publisher = broker.passing("publisher");
            publisher.publish_with("r", "retained", QOS1, 2, |mut publish| {
                publish.retain = true;
                publish
            });
            broker.commit();
            publisher.expect_ack(AckKind::PubAck, 2);
            broker.restart_after_step(death, step_s);
            // New records go behind the old ones, whatever the clock says, and are found again.
            let mut publisher = broker.passing("publisher");
            publish(&mut broker, &mut publisher, "m-new", None);
            broker.restart_after_step(death, -step_s);
            let got = taken(&mut broker, "lasting").expect("a session for ever");
            let lasting: Vec<&str> = got
                .iter()
                .map(String::as_str)
                .filter(|payload| ["m-lasting", "m-new"].contains(payload))
                .collect();
            assert_eq!(lasting, ["m-lasting", "m-new"], "{step_s} {death:?}: {got:?}");
            let mut looks = broker.passing("looks");
            looks.subscribe("r", QOS1);
            broker.commit();
            let seen = looks.all();
            assert!(
                seen.iter().any(
                    |seen| matches!(seen, Seen::Message { payload, .. } if payload == "retained")
                ),
                "{step_s} {death:?}: {seen:?}"
            );
        }
    }
}
