//! Limits on the sums over all clients.

use tacho_codec::{Packet, Publish, PublishProperties, QoS, ReasonCode, Version};
use tacho_testkit::{Client, TestBroker, connect, wait_until, will};

const QOS: QoS = QoS::AtLeastOnce;

#[test]
fn all_subscriptions_together_are_bounded_and_room_comes_back() {
    let broker = TestBroker::configured("shards = 3\n[limits]\nsubscriptions_max = 10");
    let mut clients: Vec<Client> =
        (0..4).map(|i| broker.connected(&format!("client-{i}"), Version::V5)).collect();
    let mut refused = 0;
    for (i, client) in clients.iter_mut().enumerate() {
        for filter in 0..4 {
            let reason = client.subscribe(&format!("{i}/{filter}"), QOS);
            refused += u64::from(reason == ReasonCode::QUOTA_EXCEEDED);
        }
    }
    assert_eq!((refused, broker.counter("refused_subscriptions_total")), (6, 6));
    assert_eq!(broker.counter("subscriptions"), 10);
    // Again is not one more; one less is room for one.
    assert_eq!(clients[0].subscribe("0/0", QOS), ReasonCode::granted(QOS));
    assert_eq!(clients[0].unsubscribe("0/0"), Some(ReasonCode::SUCCESS));
    assert_eq!(clients[3].subscribe("$share/g/x", QOS), ReasonCode::granted(QOS));
    assert_eq!(clients[3].subscribe("y", QOS), ReasonCode::QUOTA_EXCEEDED);
    // Sessions that end give theirs back.
    drop(clients);
    wait_until("all subscriptions are gone", || broker.counter("subscriptions") == 0);
    assert_eq!(broker.counter("subscriptions_bytes"), 0);
    let mut client = broker.connected("late", Version::V311);
    for filter in 0..10 {
        assert_eq!(client.subscribe(&filter.to_string(), QOS), ReasonCode::granted(QOS));
    }
    assert_eq!(client.subscribe("one more", QOS), ReasonCode::UNSPECIFIED_ERROR);
}

#[test]
fn the_bytes_of_all_filters_are_bounded() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nsubscriptions_bytes_max = 1000");
    let mut client = broker.connected("a", Version::V5);
    assert_eq!(client.subscribe(&"x".repeat(900), QOS), ReasonCode::granted(QOS));
    assert_eq!(client.subscribe(&"y".repeat(101), QOS), ReasonCode::QUOTA_EXCEEDED);
    assert_eq!(client.subscribe(&"y".repeat(100), QOS), ReasonCode::granted(QOS));
}

#[test]
fn sessions_are_bounded_and_those_that_exist_stay_welcome() {
    let broker = TestBroker::configured("shards = 1\n[limits]\nsessions_max = 2");
    let mut kept = broker.client(Version::V311);
    let mut request = connect("kept", Version::V311);
    request.clean_start = false;
    assert_eq!(kept.connect(&request), (false, ReasonCode::SUCCESS));
    kept.disconnect();
    let _other = broker.connected("other", Version::V5);
    let refused = broker.client(Version::V5).connect(&connect("third", Version::V5));
    assert_eq!(refused, (false, ReasonCode::QUOTA_EXCEEDED));
    assert_eq!(broker.counter("refused_sessions_total"), 1);
    assert_eq!(broker.client(Version::V311).connect(&request), (true, ReasonCode::SUCCESS));
}

#[test]
fn a_client_takes_its_own_place_when_all_are_taken() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nconnections_max = 3");
    let mut clients: Vec<Client> =
        (0..3).map(|i| broker.connected(&format!("client-{i}"), Version::V5)).collect();
    // A connection without CONNECT does not count.
    let _silent: Vec<Client> = (0..20).map(|_| broker.client(Version::V5)).collect();
    let refused = broker.client(Version::V5).connect(&connect("one more", Version::V5));
    assert_eq!(refused, (false, ReasonCode::QUOTA_EXCEEDED));
    for _ in 0..5 {
        let mut again = broker.connected("client-1", Version::V5);
        again.ping();
        assert_eq!(clients[1].expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
        clients[1] = again;
    }
    drop(clients.pop());
    wait_until("another client is accepted", || {
        let answer = broker.client(Version::V5).connect(&connect("one more", Version::V5));
        answer.1 == ReasonCode::SUCCESS
    });
}

#[test]
fn long_client_identifiers_are_refused() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nclient_id_bytes_max = 100");
    for version in [Version::V5, Version::V311] {
        let (fits, long) = ("x".repeat(100), "x".repeat(101));
        assert_eq!(broker.client(version).connect(&connect(&fits, version)).1, ReasonCode::SUCCESS);
        let reason = broker.client(version).connect(&connect(&long, version)).1;
        assert_eq!(reason, ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
    }
}

#[test]
fn topics_behind_aliases_are_bounded() {
    let broker = TestBroker::configured("shards = 1\n[limits]\ntopic_alias_bytes_max = 1000");
    let mut client = broker.connected("a", Version::V5);
    let mut publish = |alias: u16, len: usize| {
        let topic = alias.to_string().repeat(len);
        let properties = PublishProperties {
            topic_alias: alias.try_into().ok(),
            ..PublishProperties::default()
        };
        client.send(&Packet::Publish(Publish { topic: &topic, properties, ..Publish::default() }));
    };
    publish(1, 600);
    publish(2, 400);
    // In the place of a longer one.
    publish(1, 500);
    publish(3, 100);
    publish(4, 1);
    assert_eq!(client.expect_disconnect(), ReasonCode::QUOTA_EXCEEDED);
}

#[test]
fn wills_count_among_what_waits() {
    let broker = TestBroker::configured("shards = 2\n[limits]\nqueues_bytes_max = 100000");
    let payload = vec![0; 50_000];
    let mut inside = Vec::new();
    for i in 0.. {
        let name = format!("client-{i}");
        let mut request = connect(&name, Version::V5);
        request.will = Some(will("gone", &payload));
        let mut client = broker.client(Version::V5);
        match client.connect(&request).1 {
            ReasonCode::SUCCESS => inside.push(client),
            reason => {
                assert_eq!(reason, ReasonCode::QUOTA_EXCEEDED);
                break;
            }
        }
    }
    assert!((2..=4).contains(&inside.len()), "{} wills", inside.len());
    // Without a will there is room.
    let _without = broker.connected("without", Version::V5);
    inside.drain(..).for_each(Client::disconnect);
    wait_until("their room is free", || broker.counter("queues_bytes") < 100_000);
    let mut request = connect("late", Version::V5);
    request.will = Some(will("gone", &payload));
    assert_eq!(broker.client(Version::V5).connect(&request).1, ReasonCode::SUCCESS);
}
