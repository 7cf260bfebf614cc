//! Sessions: present or not, taken over, expired, with bounded queues.

use tacho_codec::{Connect, ConnectProperties, Packet, QoS, ReasonCode, Version};

use tacho_testkit::{TestBroker, VERSIONS, connect, each_broker, wait_until, will};

const KEPT: (bool, ReasonCode) = (true, ReasonCode::SUCCESS);
const NEW: (bool, ReasonCode) = (false, ReasonCode::SUCCESS);

fn keeping(client_id: &str, session_expiry_s: Option<u32>) -> Connect<'_> {
    let properties = ConnectProperties { session_expiry_s, ..Default::default() };
    Connect { clean_start: false, properties, ..connect(client_id, Version::V5) }
}

// 7
// [MQTT-3.1.2-4] [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.1.2-23] [MQTT-3.1.4-4] [MQTT-3.1.4-5]
// [MQTT-3.2.2-2] [MQTT-3.2.2-3]
// [MQTT-3.1.1: 3.1.2-4] [MQTT-3.1.1: 3.1.2-6] [MQTT-3.1.1: 3.1.4-3] [MQTT-3.1.1: 3.1.4-4]
// [MQTT-3.1.1: 3.2.2-1] [MQTT-3.1.1: 3.2.2-2] [MQTT-3.1.1: 3.2.2-3]
#[test]
fn session_present_only_if_there_is_state() {
    each_broker(|broker| {
        for version in VERSIONS {
            let expiry = (version == Version::V5).then_some(60);
            let keep = Connect { version, ..keeping("c", expiry) };
            for (connect, expected) in [
                (&keep, NEW),
                (&keep, KEPT),
                (&connect("c", version), NEW),
                (&keep, NEW),
                (&keep, KEPT),
            ] {
                let mut client = broker.client(version);
                let mut got = client.connect(connect);
                if version == Version::V31 {
                    got.0 = expected.0; // 3.1 has no such flag.
                }
                assert_eq!(got, expected);
                client.disconnect();
            }
            broker.connected("c", version).disconnect();
        }
    });
}

// 8
// [MQTT-3.1.4-3]
// [MQTT-3.1.1: 3.1.4-2]
#[test]
fn takeover_tells_the_old_connection_why() {
    each_broker(|broker| {
        for version in [Version::V311, Version::V5] {
            for clean_start in [true, false] {
                let mut old = broker.connected("same", version);
                let mut new = broker.client(version);
                new.connect(&Connect { clean_start, ..connect("same", version) });
                if version == Version::V5 {
                    assert_eq!(old.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
                } else {
                    old.expect_closed();
                }
                new.ping();
            }
        }
    });
}

// 8, 54
// [MQTT-3.1.2-8] [MQTT-3.1.3-9]
#[test]
fn takeover_publishes_the_old_will_unless_it_is_delayed_and_the_session_goes_on() {
    each_broker(|broker| {
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        for (delay_s, clean_start, published) in
            [(0, false, true), (60, false, false), (0, true, true), (60, true, true)]
        {
            let mut will = will("w", b"gone");
            will.properties.delay_s = Some(delay_s);
            let mut old = broker.client(Version::V5);
            old.connect(&Connect { will: Some(will), ..keeping("same", Some(100)) });
            let mut new = broker.client(Version::V5);
            new.connect(&Connect { clean_start, ..keeping("same", Some(100)) });
            if published {
                assert_eq!(watcher.receive().payload, b"gone", "{delay_s} {clean_start}");
            } else {
                watcher.expect_nothing();
            }
            new.disconnect();
        }
    });
}

// 9
// [MQTT-3.1.2-23] [MQTT-4.1.0-2]
// [MQTT-3.1.1: 3.1.2-4]
#[test]
fn sessions_expire_when_and_only_when_they_should() {
    each_broker(|broker| {
        for expiry in [Some(u32::MAX), Some(u32::MAX - 1), Some(1)] {
            // Coming back within a second is more than a slow machine can promise.
            let visits = if expiry == Some(1) { &[NEW][..] } else { &[NEW, KEPT, KEPT] };
            for &expected in visits {
                let mut client = broker.client(Version::V5);
                assert_eq!(client.connect(&keeping("c", expiry)), expected, "{expiry:?}");
                client.disconnect();
            }
            if expiry == Some(1) {
                wait_until("it expires", || broker.counter("sessions") == 0);
            } else {
                broker.connected("c", Version::V5).disconnect();
                wait_until("it is gone", || broker.counter("sessions") == 0);
            }
        }
        for expected in [NEW, NEW] {
            let mut client = broker.client(Version::V5);
            assert_eq!(client.connect(&keeping("c", None)), expected);
            client.disconnect();
        }
        for expected in [NEW, KEPT] {
            let mut client = broker.client(Version::V311);
            let keep = Connect { clean_start: false, ..connect("old", Version::V311) };
            assert_eq!(client.connect(&keep), expected);
        }
    });
}

// 10
#[test]
fn disconnect_may_change_the_expiry_but_not_invent_one() {
    each_broker(|broker| {
        let mut client = broker.client(Version::V5);
        client.connect(&keeping("c", Some(100)));
        client.send_notation("e0 | 00 [11 00000000]");
        client.expect_closed();
        let mut client = broker.client(Version::V5);
        assert_eq!(client.connect(&keeping("c", Some(1))), NEW);
        client.send_notation("e0 | 00 [11 00000064]");
        client.expect_closed();
        // Past the interval of one second, which has been replaced: nothing may end.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let mut client = broker.client(Version::V5);
        let will = Some(will("w", b"broke the rules"));
        let broken = Connect { will, ..keeping("c", None) };
        assert_eq!(client.connect(&broken), KEPT);
        let mut watcher = broker.connected("watcher", Version::V5);
        watcher.subscribe("w", QoS::AtMostOnce);
        client.send_notation("e0 | 00 [11 00000001]");
        assert_eq!(client.expect_disconnect(), ReasonCode::PROTOCOL_ERROR);
        watcher.receive();
        assert_eq!(broker.client(Version::V5).connect(&keeping("c", None)), NEW);
    });
}

// 38, 58
// [MQTT-3.3.2-5] [MQTT-3.3.2-6] [MQTT-4.5.0-1]
#[test]
fn offline_queue_keeps_the_oldest_counts_the_rest_and_lets_expired_ones_go() {
    for shards in [1, 3] {
        let broker = TestBroker::configured(&format!(
            "shards = {shards}\n[limits]\nsession_queue_len_max = 10\n\
             persistent_queue_full = \"drop_newest\""
        ));
        let mut sleeper = broker.client(Version::V5);
        sleeper.connect(&keeping("sleeper", Some(100)));
        sleeper.subscribe("t", QoS::AtLeastOnce);
        sleeper.disconnect();
        let mut publisher = broker.connected("pub", Version::V5);
        // Expires in the queue and makes room again.
        publisher.send_notation("32 | <t> 00ff [02 00000001] ff");
        publisher.expect_ack(0x40);
        publisher.send_notation("32 | <t> 00fe [02 00000064] 00");
        publisher.expect_ack(0x40);
        publisher.publish("t", b"never kept", QoS::AtMostOnce, false);
        // Past its expiry interval. It is dropped when its place is needed.
        std::thread::sleep(std::time::Duration::from_millis(1050));
        for i in 1..15 {
            publisher.publish("t", &[i], QoS::ExactlyOnce, false);
        }
        wait_until("five do not fit", || broker.counter("dropped_queue_full_total") == 5);
        wait_until("QoS 0 is not queued", || broker.counter("dropped_offline_total") == 1);
        let mut sleeper = broker.client(Version::V5);
        sleeper.connect(&keeping("sleeper", Some(100)));
        for i in 0..10 {
            let message = sleeper.receive_and_ack();
            assert_eq!(message.payload, [i]);
            let left_s = message.message_expiry_s;
            assert!(if i == 0 { left_s.is_some_and(|s| s < 100) } else { left_s.is_none() });
        }
        sleeper.ping();
    }
}

// 58
#[test]
fn offline_queue_is_bounded_by_bytes_too() {
    let broker = TestBroker::configured(
        "shards = 1\n[limits]\nsession_queue_bytes_max = 100000\n\
         persistent_queue_full = \"drop_newest\"",
    );
    let mut sleeper = broker.client(Version::V5);
    sleeper.connect(&keeping("sleeper", Some(100)));
    sleeper.subscribe("t", QoS::AtLeastOnce);
    sleeper.disconnect();
    let mut publisher = broker.connected("pub", Version::V5);
    for _ in 0..30 {
        publisher.publish("t", &[0; 9_999], QoS::AtLeastOnce, false);
    }
    assert_eq!(broker.counter("dropped_queue_full_total"), 20);
}

// 58
#[test]
fn sessions_are_bounded() {
    let broker = TestBroker::configured("shards = 1\n[limits]\nsessions_max = 2");
    let mut kept: Vec<_> = ["a", "b"].map(|id| broker.connected(id, Version::V5)).into();
    for (version, code) in [(Version::V5, 0x97), (Version::V311, 3)] {
        let mut third = broker.client(version);
        third.send(&Packet::Connect(connect("c", version)));
        assert_eq!(third.frame().unwrap()[3], code);
        third.expect_closed();
    }
    kept.pop().unwrap().disconnect();
    broker.connected("c", Version::V5).ping();
    kept[0].ping();
}

// 9, 35
// [MQTT-3.1.1: 3.1.2-7]
#[test]
fn retained_messages_stay_when_their_publishers_session_ends() {
    each_broker(|broker| {
        for version in VERSIONS {
            let mut publisher = broker.connected("pub", version);
            publisher.publish("r", b"kept", QoS::AtLeastOnce, true);
            publisher.disconnect();
            wait_until("its session ends", || broker.counter("sessions") == 0);
            let mut late = broker.connected("late", version);
            late.subscribe("r", QoS::AtMostOnce);
            assert_eq!(late.receive().payload, b"kept");
            late.unsubscribe("r");
            late.publish("r", b"", QoS::AtLeastOnce, true);
            late.disconnect();
            wait_until("all is gone", || broker.counter("sessions") == 0);
        }
    });
}

// 10, 11
#[test]
fn disconnect_cannot_make_a_session_outlive_the_longest_expiry() {
    let broker = TestBroker::configured("shards = 1\n[limits]\nsession_expiry_max_s = 1");
    let mut client = broker.client(Version::V5);
    client.connect(&keeping("c", Some(1)));
    client.send_notation("e0 | 00 [11 ffffffff]");
    client.expect_closed();
    wait_until("it expires", || broker.counter("sessions") == 0);
    // Where nothing may be kept, what CONNECT asked for was no zero: asking again is no offence.
    let broker = TestBroker::configured("shards = 1\n[limits]\nsession_expiry_max_s = 0");
    let mut client = broker.client(Version::V5);
    client.connect(&keeping("c", Some(100)));
    client.send_notation("e0 | 00 [11 00000064]");
    client.expect_closed();
    assert_eq!(broker.counter("protocol_errors_total"), 0);
}

// 7, 8, 10
// [MQTT-3.1.4-3]
// [MQTT-3.1.1: 3.1.4-2]
#[test]
fn a_session_is_taken_over_again_and_again_and_keeps_its_subscriptions() {
    each_broker(|broker| {
        let keep = keeping("same", Some(100));
        let mut client = broker.client(Version::V5);
        client.connect(&keep);
        client.subscribe("t", QoS::AtLeastOnce);
        let mut publisher = broker.connected("pub", Version::V5);
        for i in 0..20_u8 {
            let mut next = broker.client(Version::V5);
            assert_eq!(next.connect(&keep), KEPT);
            assert_eq!(client.expect_disconnect(), ReasonCode::SESSION_TAKEN_OVER);
            client = next;
            publisher.publish("t", &[i], QoS::AtLeastOnce, false);
            assert_eq!(client.receive_and_ack().payload, [i]);
        }
        client.ping();
        assert_eq!(broker.counter("takeovers_total"), 20);
        assert_eq!(broker.counter("sessions"), 2);
    });
}
