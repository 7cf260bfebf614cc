//! Runs against a test broker: everything is delivered, or reported as missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tacho_codec::{QoS, ReasonCode, Version};
use tacho_load::{
    Arrivals, CatchUp, ClientIndex, End, Failure, Histogram, Pace, Payload, Phase, PhasePolicy,
    Rate, RateFrom, Receiver, Stream, Subscription, Template, Trace,
};
use tacho_testkit::load::{Behaviour, Fault, FaultyBroker, Scene, open, run, with_fault};

#[test]
fn all_levels_and_versions_deliver_everything() {
    let broker = FaultyBroker::start(Behaviour::default());
    for (qos, version) in [
        (QoS::AtMostOnce, Version::V5),
        (QoS::AtLeastOnce, Version::V311),
        (QoS::ExactlyOnce, Version::V31),
        (QoS::ExactlyOnce, Version::V5),
    ] {
        let scene = Scene { version, ..Scene::pairs(20, qos) };
        let outcome = run(scene.plan(broker.addr));
        let totals = outcome.only();
        assert_eq!(outcome.summary.end, End::Completed);
        assert_eq!((outcome.summary.connected, outcome.summary.subscribed), (40, 20));
        let delivery = totals.delivery;
        // 20 streams x 100 per second x 1 s, exactly.
        assert_eq!((delivery.sent, delivery.received, delivery.lost), (2_000, 2_000, 0));
        assert_eq!(totals.violations.total(), 0, "{totals:?}");
        assert_eq!((delivery.unexpected, delivery.corrupted, delivery.negative), (0, 0, 0));
        assert!(totals.drained);
        assert_eq!(totals.e2e.len(), 2_000);
        assert_eq!(totals.service.len(), 2_000);
        assert_eq!(totals.send_delay.len(), 2_000);
        let acks = if qos == QoS::AtMostOnce { 0 } else { 2_000 };
        assert_eq!(totals.ack.len(), acks);
        assert_eq!(totals.counters.offered, 2_000);
        assert_eq!(totals.received_min_max, Some((100, 100)));
        assert_eq!(
            outcome.phases,
            ["connect", "subscribe", "probe", "warm-up", "measure", "drain", "disconnect"]
        );
    }
}

#[test]
fn losses_duplicates_and_reorderings_are_reported_exactly() {
    let counts: Arc<[AtomicU64; 4]> = Arc::default();
    let seen = Arc::clone(&counts);
    let behaviour = with_fault(move |header| {
        // The warm-up is 20 messages per stream, counted outside the window.
        if header.seq < 20 || header.seq >= 115 {
            return Fault::None;
        }
        let (fault, at) = match header.seq % 10 {
            3 => (Fault::Drop, 0),
            5 => (Fault::Double, 1),
            7 => (Fault::Swap, 2),
            9 => (Fault::Damage, 3),
            _ => return Fault::None,
        };
        seen[at].fetch_add(1, Ordering::Relaxed);
        fault
    });
    let broker = FaultyBroker::start(behaviour);
    let scene = Scene { drain_ms: 3_000, ..Scene::pairs(3, QoS::AtLeastOnce) };
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    let [dropped, doubled, swapped, damaged] =
        [0, 1, 2, 3].map(|at| counts[at].load(Ordering::Relaxed));
    assert!(dropped >= 27 && doubled >= 27 && swapped >= 27 && damaged >= 27, "{counts:?}");
    let delivery = totals.delivery;
    assert_eq!(delivery.sent, 300);
    assert_eq!(delivery.lost, dropped + damaged);
    assert_eq!(delivery.duplicates, doubled);
    assert_eq!(delivery.out_of_order, swapped);
    assert_eq!(delivery.corrupted, damaged);
    assert_eq!(delivery.received, 300 - delivery.lost);
    assert_eq!(totals.gaps.len() as u64, dropped + damaged);
    assert!(totals.gaps.iter().all(|gap| {
        gap.count == 1
            && matches!(gap.first_seq % 10, 3 | 9)
            && gap.receiver == Receiver::Client(ClientIndex::new(gap.stream.number() + 3))
    }));
    // At QoS 1 duplicates are allowed, losses are not.
    assert_eq!(totals.violations.lost, delivery.lost);
    assert_eq!(totals.violations.duplicates, 0);
    assert!(!totals.drained);
    assert_eq!((totals.outside.lost, totals.outside.duplicates), (0, 0));
}

#[test]
fn fan_out_and_shared_groups_on_two_threads() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut scene = Scene { threads: 2, ..Scene::pairs(4, QoS::AtLeastOnce) };
    scene.filters = vec!["t/+".into(), "#".into(), "t/0".into()];
    scene.filters.extend((0..5).map(|_| "$share/workers/t/#".to_owned()));
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    // The two wildcard subscribers and the group receive 400 each, the exact subscriber 100.
    assert_eq!((totals.delivery.sent, totals.delivery.expected), (400, 1_300));
    assert_eq!((totals.delivery.received, totals.delivery.duplicates), (1_300, 0));
    assert_eq!(totals.violations.total(), 0);
    assert!(totals.drained);
    assert_eq!(totals.threads.len(), 2);
    assert!(totals.threads.iter().all(|usage| usage.wall_ns > 900_000_000));
}

#[test]
fn losses_and_duplicates_in_a_shared_group_are_found() {
    let behaviour = with_fault(|header| match header.seq {
        30 => Fault::Drop,
        40 => Fault::Double,
        _ => Fault::None,
    });
    let broker = FaultyBroker::start(behaviour);
    let mut scene = Scene { threads: 2, drain_ms: 3_000, ..Scene::pairs(2, QoS::ExactlyOnce) };
    scene.filters = (0..4).map(|_| "$share/workers/t/#".to_owned()).collect();
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    assert_eq!((totals.delivery.lost, totals.delivery.duplicates), (2, 2));
    assert_eq!((totals.violations.lost, totals.violations.duplicates), (2, 2));
    assert!(totals.gaps.iter().all(|gap| gap.first_seq == 30));
}

#[test]
fn closed_mode_keeps_its_window_and_verifies() {
    for (qos, threads) in
        [(QoS::AtMostOnce, 1), (QoS::AtMostOnce, 2), (QoS::AtLeastOnce, 1), (QoS::ExactlyOnce, 2)]
    {
        let broker = FaultyBroker::start(Behaviour::default());
        let mut scene = Scene { threads, measure_ms: 300, ..Scene::pairs(4, qos) };
        scene.pace = Pace::Closed { window: 8 };
        // A subscriber on all topics binds all streams into one cluster.
        scene.filters.push("t/#".into());
        let outcome = run(scene.plan(broker.addr));
        let totals = outcome.only();
        // More than one window.
        assert!(totals.delivery.sent > 4 * 8, "{totals:?}");
        assert_eq!(totals.delivery.received, totals.delivery.sent * 2);
        assert_eq!(totals.violations.total(), 0);
        assert_eq!(totals.counters.offered, totals.counters.sent);
        assert!(totals.drained);
    }
}

#[test]
fn closed_mode_survives_loss() {
    let mut count = 0;
    let behaviour = with_fault(move |_| {
        count += 1;
        if count % 10 == 0 { Fault::Drop } else { Fault::None }
    });
    let broker = FaultyBroker::start(behaviour);
    let pace = Pace::Closed { window: 4 };
    let scene = Scene { pace, drain_ms: 3_000, ..Scene::pairs(2, QoS::AtMostOnce) };
    let outcome = run(scene.plan(broker.addr));
    let delivery = outcome.only().delivery;
    assert!(delivery.sent > 30);
    assert!(delivery.lost.abs_diff(delivery.sent / 10) <= 2, "{delivery:?}");
    // QoS 0 has no guarantee.
    assert_eq!(outcome.only().violations.total(), 0);
}

#[test]
fn a_full_inflight_window_delays_messages_and_loses_none() {
    let behaviour = Behaviour { mute: true, ..Behaviour::default() };
    let broker = FaultyBroker::start(behaviour);
    let mut scene = Scene { inflight_max: 5, drain_ms: 100, ..Scene::pairs(2, QoS::AtLeastOnce) };
    scene.warm_up_ms = 0;
    let mut plan = scene.plan(broker.addr);
    // Without acknowledgements the probe alone would fill the window.
    plan.phases.remove(2);
    let outcome = run(plan);
    let totals = outcome.only();
    assert_eq!((totals.counters.offered, totals.counters.attempted), (200, 200));
    assert_eq!((totals.counters.sent, totals.counters.acked), (10, 0));
    // Unsent messages count as dropped and not as lost.
    assert_eq!(totals.counters.dropped, 190);
    assert_eq!((totals.delivery.sent, totals.delivery.lost), (10, 0));
    assert!(!totals.drained);
}

#[test]
fn refused_and_disconnected_clients_are_reported() {
    let behaviour = Behaviour {
        connack: |connect| match connect.client_id {
            "pub-1" => Some(ReasonCode::NOT_AUTHORIZED),
            _ => Some(ReasonCode::SUCCESS),
        },
        ..with_fault(|header| {
            if header.stream.number() == 2 && header.seq == 50 { Fault::Close } else { Fault::None }
        })
    };
    let broker = FaultyBroker::start(behaviour);
    let scene = Scene { drain_ms: 3_000, ..Scene::pairs(3, QoS::AtLeastOnce) };
    let outcome = run(scene.plan(broker.addr));
    assert_eq!(outcome.summary.end, End::Completed);
    assert_eq!(outcome.summary.connected, 5);
    assert_eq!(outcome.failures.len(), 2);
    assert_eq!(outcome.failures[0], (1, Failure::Refused(ReasonCode::NOT_AUTHORIZED)));
    assert_eq!(outcome.failures[1].0, 5);
    let totals = outcome.only();
    // Stream 0 is complete; stream 1 never sent; stream 2 lost its receiver.
    assert_eq!(totals.delivery.sent, 200);
    assert_eq!(totals.counters.offered, 300);
    assert_eq!(totals.counters.dropped, 100);
    assert!(totals.delivery.lost >= 60, "{totals:?}");
    assert!(totals.gaps.iter().all(|gap| gap.stream.number() == 2));
    assert_eq!(totals.violations.total(), 0);
}

#[test]
fn a_refused_filter_is_reported_and_the_probe_fails() {
    let behaviour = Behaviour { suback: Some(ReasonCode::NOT_AUTHORIZED), ..Behaviour::default() };
    let broker = FaultyBroker::start(behaviour);
    let scene = Scene { version: Version::V311, ..Scene::pairs(1, QoS::AtMostOnce) };
    let mut plan = scene.plan(broker.addr);
    plan.phases[2] = Phase::Probe { timeout_ns: 1_000_000_000 };
    let outcome = run(plan);
    assert!(matches!(
        &outcome.failures[..],
        [(1, Failure::SubscribeRefused { filter, .. })] if filter == "t/0"
    ));
}

#[test]
fn a_run_without_a_broker_ends() {
    let addr =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("bind");
    let outcome = run(Scene::pairs(2, QoS::AtMostOnce).plan(addr));
    assert!(
        matches!(&outcome.summary.end, End::Unreachable(why) if why.contains("refused")),
        "{outcome:?}"
    );
    assert_eq!(outcome.failures.len(), 4);
}

#[test]
fn odd_rates_are_exact() {
    let broker = FaultyBroker::start(Behaviour::default());
    // 7 streams at 333 per second.
    let scene = Scene { pace: open(333), warm_up_ms: 100, ..Scene::pairs(7, QoS::AtMostOnce) };
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    assert!(totals.delivery.sent.abs_diff(7 * 333) <= 7, "{totals:?}");
    assert_eq!(totals.delivery.lost, 0);
}

#[test]
fn undelivered_messages_are_violations_only_after_silence() {
    // Stream 0 stops at message 60; stream 1 continues.
    let hole = || {
        with_fault(|header| {
            if header.stream.number() == 0 && header.seq >= 60 { Fault::Drop } else { Fault::None }
        })
    };
    for (drain_ms, violations) in [(0, 0), (3_000, 60)] {
        let broker = FaultyBroker::start(hole());
        let scene = Scene { drain_ms, ..Scene::pairs(2, QoS::AtLeastOnce) };
        let outcome = run(scene.plan(broker.addr));
        let totals = outcome.only();
        assert!(totals.delivery.lost > 0, "{totals:?}");
        assert_eq!(totals.delivery.undelivered, totals.delivery.lost);
        assert_eq!(totals.violations.lost, violations, "{totals:?}");
        assert!(!totals.drained);
    }
}

/// Every kind of payload arrives intact, and damage is found.
#[test]
fn every_kind_of_payload_is_verified() {
    let template = |text: &str| Template::parse(text).expect("parses");
    let row = |cells: &str| cells.split(',').map(str::to_owned).collect::<Vec<_>>();
    let rows = (0..7).map(|i| row(&format!("sensor-{i},{}", i * 11))).collect();
    let table = Template::with_rows(r#"{"{{name}}":{{value}}}"#, &row("name,value"), rows);
    let json = r#"{"id":"{{header}}","from":"{{client}}","n":{{seq}},"t":{{random 15 25}}}"#;
    for payload in [
        Payload::Zeros { bytes: 64 },
        Payload::Text(Template::literal("21.5").into()),
        Payload::Text(template(json).into()),
        Payload::Text(table.expect("is a table").into()),
        Payload::Jmeter { bytes: 128, timestamp: true },
    ] {
        let damage = |header: &tacho_load::payload::Header| match header.seq {
            40 => Fault::Damage,
            50 => Fault::Drop,
            _ => Fault::None,
        };
        let broker = FaultyBroker::start(with_fault(damage));
        let scene = Scene {
            payload: payload.clone(),
            measure_ms: 500,
            drain_ms: 1_200,
            ..Scene::pairs(2, QoS::AtMostOnce)
        };
        let outcome = run(scene.plan(broker.addr));
        let delivery = outcome.only().delivery;
        assert_eq!(outcome.summary.end, End::Completed, "{payload:?}");
        let expected = (100, 96, 4);
        assert_eq!((delivery.sent, delivery.received, delivery.lost), expected, "{payload:?}");
        assert_eq!((delivery.corrupted + delivery.unexpected, delivery.duplicates), (2, 0));
    }
}

#[test]
fn every_pace_has_its_rate() {
    let catch_up = CatchUp::CatchUp;
    let rate = Rate { messages: 256, per_ns: 1_000_000_000 };
    let trace = |arrivals, repeat_ns| Pace::Trace {
        trace: Arc::new(Trace { arrivals, repeat_ns, shared_by: 2 }),
        catch_up,
    };
    let rates = vec![
        RateFrom { from_ns: 0, per_second: 100.0 },
        RateFrom { from_ns: 500_000_000, per_second: 300.0 },
    ];
    for (pace, sent) in [
        (Pace::Poisson { rate, catch_up }, 512),
        (
            Pace::Bursts {
                messages: 20,
                period_ns: 250_000_000,
                phase: PhasePolicy::Aligned,
                catch_up,
            },
            160,
        ),
        (trace(Arrivals::Rates(rates), None), 200),
        (trace(Arrivals::Offsets(vec![0, 1_000, 2_000]), Some(10_000_000)), 300),
    ] {
        let broker = FaultyBroker::start(Behaviour::default());
        let scene = Scene { pace, warm_up_ms: 0, ..Scene::pairs(2, QoS::AtLeastOnce) };
        let outcome = run(scene.plan(broker.addr));
        let totals = outcome.only();
        assert_eq!((totals.delivery.sent, totals.delivery.lost), (sent, 0), "{:?}", scene.pace);
        assert_eq!(totals.counters.offered, sent, "{:?}", scene.pace);
        assert_eq!(totals.violations.total(), 0);
    }
}

/// JMeter's timer does not catch up: a stalling machine sends less, never more.
#[test]
fn jmeter_pacing_is_a_ceiling() {
    for (wait, mute) in [(false, false), (true, false), (true, true)] {
        let broker = FaultyBroker::start(Behaviour { mute, ..Behaviour::default() });
        let pace = Pace::Jmeter { per_minute: 12_000.0, threads: 2, ramp_ns: 0, wait };
        let scene = Scene { pace, warm_up_ms: 0, ..Scene::pairs(2, QoS::AtLeastOnce) };
        let drain_ms = if mute { 500 } else { scene.drain_ms };
        let mut plan = Scene { drain_ms, ..scene }.plan(broker.addr);
        if mute {
            // Neither a probe nor the first message is ever acknowledged.
            plan.phases.remove(2);
        }
        let outcome = run(plan);
        let sent = outcome.only().delivery.sent;
        if mute {
            assert_eq!(sent, 2);
        } else {
            // 2 threads with a gap of 10 ms each, for 1 s. A gap grows only by the delay of its own
            // message: late sending and, where the thread waits, the acknowledgement.
            let totals = outcome.only();
            let sum_us = |histogram: &Histogram| -> u64 {
                let upper = |value| histogram.highest_equivalent(value) + 1;
                let recorded = histogram.iter_recorded();
                recorded.map(|step| upper(step.value_iterated_to()) * step.count_at_value()).sum()
            };
            let acks_us = if wait { sum_us(&totals.ack) } else { 0 };
            let delays_us = sum_us(&totals.send_delay) + acks_us;
            assert_eq!((totals.send_delay.len(), totals.ack.len()), (sent, sent));
            assert!(sent <= 200, "{sent} messages");
            assert!(sent * 10_000 + delays_us >= 2_000_000, "{sent} messages, {delays_us} us late");
            assert_eq!(totals.violations.total(), 0);
        }
    }
}

/// Clients with two streams that subscribe to their own messages and to those of a neighbour.
#[test]
fn one_client_publishes_and_subscribes() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut scene = Scene::pairs(2, QoS::ExactlyOnce);
    scene.filters.clear();
    let mut plan = scene.plan(broker.addr);
    plan.groups.truncate(1);
    for (i, client) in plan.groups[0].clients.iter_mut().enumerate() {
        client.streams.push(Stream::new(format!("extra/{i}"), 0));
        for filter in ["t/+", "extra/0"] {
            let qos = QoS::ExactlyOnce;
            client.subscriptions.push(Subscription::new(filter, qos));
        }
    }
    plan.routes = plan.derive_routes();
    let outcome = run(plan);
    let totals = outcome.only();
    assert_eq!((totals.delivery.sent, totals.delivery.expected), (400, 600));
    assert_eq!((totals.delivery.received, totals.violations.total()), (600, 0), "{totals:?}");
    assert!(totals.drained);
}
