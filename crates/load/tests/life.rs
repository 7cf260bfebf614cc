//! Absences, reconnects, wills and sessions of clients.

use tacho_codec::{QoS, ReasonCode, Version};
use tacho_load::{DeclaredLoss, End, Failure, Offline, Phase, Plan, Reconnect, Will};
use tacho_testkit::load::{Behaviour, Fault, FaultyBroker, Outcome, Scene, run, with_fault};

const MS: u64 = 1_000_000;

/// 2 pairs for a second; the subscribers are away from 0.2 s to 0.6 s.
fn away(
    broker: &FaultyBroker,
    qos: QoS,
    version: Version,
    change: impl FnOnce(&mut Plan),
) -> Outcome {
    let scene = Scene { version, ..Scene::pairs(2, qos) };
    let mut plan = scene.plan(broker.addr);
    let subscribers = &mut plan.groups[1];
    subscribers.session_expiry_s = 60;
    subscribers.offline =
        Some(Offline { after_ns: 200 * MS, for_ns: 400 * MS, clean: true, queues_qos0: false });
    change(&mut plan);
    run(plan)
}

#[test]
fn messages_published_during_an_absence_follow_complete_and_in_order() {
    for (qos, version, clean) in [
        (QoS::AtLeastOnce, Version::V5, true),
        (QoS::ExactlyOnce, Version::V5, false),
        (QoS::ExactlyOnce, Version::V311, true),
        (QoS::AtLeastOnce, Version::V311, false),
    ] {
        let broker = FaultyBroker::start(Behaviour::default());
        let outcome = away(&broker, qos, version, |plan| {
            if let Some(offline) = &mut plan.groups[1].offline {
                offline.clean = clean;
            }
        });
        let totals = outcome.only();
        let delivery = totals.delivery;
        assert_eq!((delivery.sent, delivery.received, delivery.lost), (200, 200, 0), "{qos}");
        assert_eq!(totals.violations.total(), 0, "{qos} {version:?} {:?}", totals.violations);
        assert_eq!(totals.counters.reconnects, 2);
        assert_eq!((totals.counters.disconnects, outcome.failures.len()), (0, 0));
        assert!(totals.drained);
        // Some waited for the return of their receiver.
        assert!(totals.e2e.max() >= 300_000, "{} us", totals.e2e.max());
        assert_eq!(outcome.summary.connected, 4);
    }
}

#[test]
fn losses_of_an_absence_are_declared_and_others_are_not() {
    let full = || Behaviour { queue_max: 10, ..Behaviour::default() };
    let lost = |outcome: &Outcome| {
        let totals = outcome.only();
        let declared = totals.gaps.iter().filter(|gap| gap.declared).count() as u64;
        assert_eq!(declared > 0, totals.delivery.declared_lost > 0);
        (totals.delivery.lost, totals.delivery.declared_lost, totals.violations.lost)
    };
    let drain = |plan: &mut Plan| {
        plan.phases[5] = Phase::Drain { timeout_ns: 1_500 * MS };
    };
    // A full queue: declared, or a violation of QoS 1.
    let outcome = away(&FaultyBroker::start(full()), QoS::AtLeastOnce, Version::V5, |plan| {
        plan.groups[1].expect_losses = Some(DeclaredLoss::OfflineQueueFull);
        drain(plan);
    });
    let (all, declared, violations) = lost(&outcome);
    assert!(all >= 40 && declared == all && violations == 0, "{all} {declared} {violations}");
    let outcome = away(&FaultyBroker::start(full()), QoS::AtLeastOnce, Version::V5, drain);
    let (all, declared, violations) = lost(&outcome);
    assert!(all >= 40 && declared == 0 && violations == all, "{all} {declared} {violations}");
    // QoS 0 is not queued, unless the plan declares it.
    let broker = FaultyBroker::start(Behaviour::default());
    let outcome = away(&broker, QoS::AtMostOnce, Version::V5, drain);
    let (all, declared, violations) = lost(&outcome);
    assert!(all >= 60 && declared == all && violations == 0, "{all} {declared} {violations}");
    let outcome = away(&broker, QoS::AtMostOnce, Version::V5, |plan| {
        if let Some(offline) = &mut plan.groups[1].offline {
            offline.queues_qos0 = true;
        }
        drain(plan);
    });
    let (all, declared, violations) = lost(&outcome);
    assert!(all >= 60 && declared == 0 && violations == all, "{all} {declared} {violations}");
    // A loss while all clients are present is never declared.
    let behaviour = with_fault(|header| match header.seq {
        25 => Fault::Drop,
        _ => Fault::None,
    });
    let outcome = away(&FaultyBroker::start(behaviour), QoS::AtLeastOnce, Version::V5, |plan| {
        plan.groups[1].expect_losses = Some(DeclaredLoss::OfflineQueueFull);
        drain(plan);
    });
    assert_eq!(lost(&outcome), (2, 0, 2));
}

#[test]
fn a_lost_session_is_a_failure() {
    let broker = FaultyBroker::start(Behaviour { forgets: true, ..Behaviour::default() });
    let outcome = away(&broker, QoS::AtLeastOnce, Version::V5, |plan| {
        plan.phases[5] = Phase::Drain { timeout_ns: 1_500 * MS };
    });
    let reasons: Vec<_> = outcome.failures.iter().map(|(_, why)| why).collect();
    assert_eq!(reasons, [&Failure::SessionLost, &Failure::SessionLost]);
    let totals = outcome.only();
    // The clients subscribe again and receive the rest.
    assert!(totals.violations.lost >= 40, "{:?}", totals.violations);
    assert!(totals.delivery.received >= 40, "{:?}", totals.delivery);
    assert_eq!((outcome.summary.end, outcome.summary.subscribed), (End::Completed, 4));
}

/// The subscribers of 2 pairs disconnect, messages are published for a second, they reconnect.
fn absent(broker: &FaultyBroker, qos: QoS, change: impl FnOnce(&mut Plan)) -> Outcome {
    let mut plan = Scene::pairs(2, qos).plan(broker.addr);
    for group in &mut plan.groups {
        group.session_expiry_s = 60;
    }
    plan.groups[1].absent = true;
    plan.phases.retain(|phase| !matches!(phase, Phase::WarmUp { .. }));
    let at = |plan: &Plan, wanted: fn(&Phase) -> bool| {
        plan.phases.iter().position(wanted).expect("every scene has it")
    };
    let measure = at(&plan, |phase| matches!(phase, Phase::Measure { .. }));
    plan.phases.insert(measure, Phase::Offline);
    let drain = at(&plan, |phase| matches!(phase, Phase::Drain { .. }));
    plan.phases[drain] = Phase::Drain { timeout_ns: 1_500 * MS };
    plan.phases.insert(drain, Phase::Resume { timeout_ns: 30_000 * MS });
    change(&mut plan);
    run(plan)
}

#[test]
fn messages_for_absent_subscribers_arrive_when_they_resume() {
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let broker = FaultyBroker::start(Behaviour::default());
        let outcome = absent(&broker, qos, |_| {});
        let totals = outcome.only();
        let delivery = totals.delivery;
        assert_eq!((delivery.sent, delivery.received, delivery.lost), (200, 200, 0), "{qos}");
        assert_eq!((totals.violations.total(), totals.acknowledged_lost), (0, 0));
        assert!(totals.drained);
        // Two of four clients are connected during the load, and nothing arrives meanwhile.
        let measured = |kind: &str| {
            let of = outcome.intervals.iter().filter(|i| i.phase.name() == kind);
            of.map(|i| (i.connected, i.counters.received)).collect::<Vec<_>>()
        };
        assert!(measured("measure").iter().all(|found| *found == (2, 0)), "{qos}");
        let after = measured("resume").into_iter().chain(measured("drain"));
        assert_eq!(after.map(|(_, received)| received).sum::<u64>(), 200);
        assert_eq!(totals.counters.disconnects, 0);
        assert_eq!((outcome.failures.len(), outcome.interruptions.len()), (0, 0));
    }
}

#[test]
fn lost_acknowledged_messages_are_counted_separately() {
    // The broker forgets the sessions: all messages were acknowledged, none arrives.
    let broker = FaultyBroker::start(Behaviour { forgets: true, ..Behaviour::default() });
    let outcome = absent(&broker, QoS::AtLeastOnce, |_| {});
    let totals = outcome.only();
    assert_eq!((totals.acknowledged_lost, totals.violations.lost), (200, 200));
    let of_gaps: u64 = totals.gaps.iter().map(|gap| gap.acknowledged).sum();
    assert_eq!(of_gaps, 200);
    // The broker queues ten messages per session.
    let broker = FaultyBroker::start(Behaviour { queue_max: 10, ..Behaviour::default() });
    let outcome = absent(&broker, QoS::AtLeastOnce, |_| {});
    assert_eq!(outcome.only().acknowledged_lost, 180);
    // The broker never acknowledges: no acknowledged message can be lost.
    let broker =
        FaultyBroker::start(Behaviour { forgets: true, mute: true, ..Behaviour::default() });
    let outcome = absent(&broker, QoS::AtLeastOnce, |plan| {
        plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
    });
    let totals = outcome.only();
    assert_eq!((totals.counters.acked, totals.acknowledged_lost), (0, 0));
    assert_eq!(totals.delivery.lost, 200);
}

#[test]
fn returning_publishers_retransmit_unacknowledged_messages() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene::pairs(2, QoS::ExactlyOnce);
    let mut plan = scene.plan(broker.addr);
    plan.groups[0].session_expiry_s = 60;
    plan.groups[0].offline =
        Some(Offline { after_ns: 200 * MS, for_ns: 400 * MS, clean: false, queues_qos0: false });
    let outcome = run(plan);
    let totals = outcome.only();
    let (counters, delivery) = (totals.counters, totals.delivery);
    assert_eq!(counters.offered, 200);
    assert_eq!(counters.sent + counters.dropped, 200);
    assert!(counters.dropped >= 60 && counters.sent >= 60, "{counters:?}");
    assert_eq!((delivery.lost, totals.violations.total()), (0, 0), "{delivery:?}");
}

#[test]
fn clients_reconnect_by_policy() {
    let broker = FaultyBroker::start(with_fault(|header| match header.seq {
        30 | 31 => Fault::Close,
        _ => Fault::None,
    }));
    let scene = Scene { drain_ms: 3_000, ..Scene::pairs(2, QoS::AtLeastOnce) };
    let mut plan = scene.plan(broker.addr);
    let reconnect = Reconnect { attempts_max: 5, first_ns: 20 * MS, longest_ns: 100 * MS };
    for group in &mut plan.groups {
        group.reconnect = Some(reconnect);
        group.session_expiry_s = 60;
    }
    let outcome = run(plan);
    let totals = outcome.only();
    assert!(!outcome.interruptions.is_empty() && outcome.failures.is_empty(), "{outcome:.0?}");
    assert_eq!(totals.counters.disconnects as usize, outcome.interruptions.len());
    assert_eq!(totals.counters.reconnects, totals.counters.disconnects);
    assert_eq!(outcome.summary.end, End::Completed);
    // The test broker loses the message at which it closes the connection.
    assert!(totals.delivery.lost <= 4 && totals.delivery.received >= 196);
}

#[test]
fn attempts_are_bounded() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| (connect.client_id != "pub-1").then_some(ReasonCode::SUCCESS),
        ..Behaviour::default()
    });
    let mut plan = Scene::pairs(2, QoS::AtMostOnce).plan(broker.addr);
    // Long enough for the other three on a busy machine.
    plan.phases[0] = Phase::Connect { timeout_ns: 1_000 * MS };
    plan.groups[0].reconnect =
        Some(Reconnect { attempts_max: 2, first_ns: 10 * MS, longest_ns: 10 * MS });
    let outcome = run(plan);
    assert_eq!((outcome.interruptions.len(), outcome.failures.len()), (2, 1));
    assert!(matches!(outcome.failures[0], (1, Failure::ConnectTimeout { .. })));
    assert_eq!((outcome.summary.connected, outcome.only().delivery.sent), (3, 100));
}

#[test]
fn wills_of_broken_connections_are_recognised() {
    let broker = FaultyBroker::start(Behaviour::default());
    for (clean, wills) in [(false, 2), (true, 0)] {
        let scene = Scene::pairs(2, QoS::AtLeastOnce);
        let mut plan = scene.plan(broker.addr);
        plan.groups[0].will = Some(Will {
            qos: QoS::AtLeastOnce,
            retain: false,
            payload: b"gone".to_vec(),
            delay_s: 0,
        });
        plan.groups[0].session_expiry_s = 60;
        plan.groups[0].offline =
            Some(Offline { after_ns: 200 * MS, for_ns: 200 * MS, clean, queues_qos0: false });
        for (i, client) in plan.groups[0].clients.iter_mut().enumerate() {
            client.will_topic = Some(format!("wills/{i}"));
        }
        let filter = tacho_load::Subscription::new("wills/#", QoS::AtLeastOnce);
        plan.groups[1].clients[0].subscriptions.push(filter);
        let outcome = run(plan);
        let delivery = outcome.only().delivery;
        assert_eq!((delivery.wills, delivery.unexpected), (wills, 0));
        assert_eq!(outcome.only().violations.total(), 0);
    }
}

/// 3.1.1 has no clean start for a persistent session: the old one is discarded first.
#[test]
fn an_old_session_of_3_1_1_is_discarded_before_the_run() {
    let broker = FaultyBroker::start(Behaviour::default());
    for clean_start in [false, true, true] {
        let scene = Scene { version: Version::V311, ..Scene::pairs(1, QoS::AtLeastOnce) };
        let mut plan = scene.plan(broker.addr);
        for group in &mut plan.groups {
            group.session_expiry_s = 60;
            group.clean_start = clean_start;
        }
        let outcome = run(plan);
        assert_eq!(outcome.failures, [], "clean start {clean_start}");
        assert_eq!((outcome.only().delivery.lost, outcome.only().delivery.unexpected), (0, 0));
        assert_eq!(outcome.summary.connected, 2);
    }
}

/// No streams: connections are opened at a rate, held, and closed at a rate.
#[test]
fn a_plan_of_idle_connections_is_measured() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(0, QoS::AtMostOnce).plan(broker.addr);
    let clients = (0..40)
        .map(|i| tacho_load::Client { id: format!("idle-{i}"), ..tacho_load::Client::default() });
    plan.groups[0].clients = clients.collect();
    plan.groups[0].connects_per_s = Some(100.0);
    plan.groups[0].disconnects_per_s = Some(100.0);
    plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. } | Phase::WarmUp { .. }));
    let outcome = run(plan);
    let totals = outcome.only();
    assert_eq!((totals.connected, totals.groups[0].clients), (40, 40));
    assert_eq!((totals.counters.offered, totals.delivery.expected), (0, 0));
    assert!(totals.drained);
    let connected: u64 = outcome.intervals.iter().map(|interval| interval.connect.ok).sum();
    assert_eq!(connected, 40);
    // 40 connects at 100 per second: the last one is due after 390 ms.
    assert!(outcome.summary.connect_span_ns >= 390 * MS);
    let closing = outcome.intervals.iter().filter(|i| i.phase.name() == "disconnect");
    assert!(closing.map(|interval| interval.len_ns).sum::<u64>() >= 380 * MS);
}
