//! Timed actions: clients that are disconnected, paused, taken over, and subscribe later.

use tacho_codec::QoS;
use tacho_load::{Action, ActionKind, Phase, Plan, PlanError, Reconnect, Subscription, Will};
use tacho_testkit::load::{Behaviour, Fault, FaultyBroker, Outcome, Scene, run, with_fault};

const MS: u64 = 1_000_000;

/// Applies an action of this kind to the subscribers of pairs after 300 ms.
fn acting(
    broker: &FaultyBroker,
    scene: &Scene,
    kind: ActionKind,
    change: impl FnOnce(&mut Plan),
) -> Outcome {
    let mut plan = scene.plan(broker.addr);
    let clients = plan.groups[1].clients.len() as u32;
    plan.actions =
        vec![Action { after_ns: 300 * MS, over_ns: 0, group: 1, clients, turn: 0, kind }];
    plan.groups[1].reconnect =
        Some(Reconnect { attempts_max: 1000, first_ns: 100 * MS, longest_ns: 100 * MS });
    plan.phases[5] = Phase::Drain { timeout_ns: 1_500 * MS };
    change(&mut plan);
    run(plan)
}

#[test]
fn dropped_clients_reconnect_and_losses_of_ended_sessions_are_no_violation() {
    for (clean, qos) in [(false, QoS::AtLeastOnce), (true, QoS::ExactlyOnce)] {
        let broker = FaultyBroker::start(Behaviour::default());
        let scene = Scene { threads: 2, ..Scene::pairs(4, qos) };
        let outcome = acting(&broker, &scene, ActionKind::Disconnect { clean }, |_| {});
        let totals = outcome.only();
        let action = &totals.actions[0];
        assert_eq!((action.clients, action.connected.len(), action.ready.len()), (4, 4, 4));
        // They pause for 100 ms; histograms keep three digits.
        assert!(action.connected.min() >= 99_000, "{} us", action.connected.min());
        assert!(action.ready.min() >= action.connected.min());
        assert_eq!((action.retried, action.given_up), (0, 0));
        assert_eq!(outcome.acted, [(0, 4)]);
        assert_eq!(totals.counters.reconnects, 4);
        let delivery = totals.delivery;
        assert!(delivery.lost > 0 && delivery.lost == delivery.declared_lost, "{delivery:?}");
        assert_eq!((totals.violations.total(), totals.acknowledged_lost), (0, 0), "{qos}");
        assert!(outcome.failures.is_empty() && outcome.interruptions.is_empty());
    }
}

#[test]
fn a_loss_after_the_reconnect_is_a_violation() {
    let behaviour = with_fault(|header| match header.seq {
        // The warm-up ends with number 19, the window has numbers 20 to 119.
        110 => Fault::Drop,
        _ => Fault::None,
    });
    let broker = FaultyBroker::start(behaviour);
    let scene = Scene { measure_ms: 1_500, ..Scene::pairs(2, QoS::AtLeastOnce) };
    let outcome = acting(&broker, &scene, ActionKind::Disconnect { clean: false }, |plan| {
        plan.groups[1].reconnect =
            Some(Reconnect { attempts_max: 1000, first_ns: 0, longest_ns: 100 * MS });
    });
    let totals = outcome.only();
    assert_eq!((totals.violations.lost, totals.acknowledged_lost), (2, 2), "{:?}", totals.gaps);
}

#[test]
fn a_persistent_session_is_complete_after_the_reconnect() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene::pairs(2, QoS::AtLeastOnce);
    let outcome = acting(&broker, &scene, ActionKind::Disconnect { clean: false }, |plan| {
        plan.groups[1].session_expiry_s = 60;
        plan.phases[5] = Phase::Drain { timeout_ns: 60_000 * MS };
    });
    let totals = outcome.only();
    assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0), "{:?}", totals.delivery);
    assert_eq!((totals.actions[0].ready.len(), totals.drained), (2, true));
}

#[test]
fn without_a_reconnect_policy_clients_stay_away_and_their_wills_are_published() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene::pairs(4, QoS::AtLeastOnce);
    let outcome = acting(&broker, &scene, ActionKind::Disconnect { clean: false }, |plan| {
        plan.groups[1].reconnect = None;
        plan.groups[1].will = Some(Will {
            qos: QoS::AtLeastOnce,
            retain: false,
            payload: b"gone".to_vec(),
            delay_s: 0,
        });
        for (i, client) in plan.groups[1].clients.iter_mut().enumerate() {
            client.will_topic = Some(format!("gone/{i}"));
        }
        plan.actions[0].clients = 3;
        for client in &mut plan.groups[0].clients[..2] {
            client.subscriptions.push(Subscription::new("gone/#", QoS::AtLeastOnce));
        }
    });
    let totals = outcome.only();
    let action = &totals.actions[0];
    assert_eq!((action.clients, action.connected.len()), (3, 0));
    assert_eq!((action.wills_expected, action.wills.len(), totals.delivery.wills), (6, 6, 6));
    assert_eq!((totals.connected, totals.violations.total()), (5, 0));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}

#[test]
fn paused_consumers_receive_everything_later() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene::pairs(2, QoS::AtMostOnce);
    let outcome = acting(&broker, &scene, ActionKind::Pause { for_ns: 400 * MS }, |plan| {
        plan.actions[0].clients = 1;
        plan.phases[5] = Phase::Drain { timeout_ns: 60_000 * MS };
    });
    let totals = outcome.only();
    assert_eq!((totals.delivery.received, totals.delivery.lost), (200, 0));
    assert_eq!((totals.actions[0].clients, totals.counters.reconnects), (1, 0));
    // Messages during the pause were late by up to its length; the other consumer was not affected.
    assert!(totals.e2e.max() >= 350_000, "{} us", totals.e2e.max());
    assert!(totals.violations.total() == 0 && totals.drained);
}

#[test]
fn a_second_connection_takes_over_and_the_first_one_is_notified() {
    for threads in [1, 2] {
        let broker = FaultyBroker::start(Behaviour::default());
        let scene = Scene { threads, ..Scene::pairs(3, QoS::AtLeastOnce) };
        let outcome = acting(&broker, &scene, ActionKind::TakeOver, |plan| {
            plan.groups[1].session_expiry_s = 60;
            plan.actions[0].over_ns = 200 * MS;
            plan.phases[5] = Phase::Drain { timeout_ns: 60_000 * MS };
        });
        let totals = outcome.only();
        let action = &totals.actions[0];
        assert_eq!((action.clients, action.connected.len(), action.taken_over), (3, 3, 3));
        assert_eq!(action.displaced.len(), 3);
        assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0));
        assert_eq!((totals.connected, totals.counters.disconnects), (6, 0));
        assert!(outcome.failures.is_empty() && outcome.interruptions.is_empty());
    }
}

#[test]
fn a_group_that_subscribes_later_receives_messages_from_then_on() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene::pairs(2, QoS::AtLeastOnce);
    let outcome = acting(&broker, &scene, ActionKind::Subscribe, |_| {});
    let totals = outcome.only();
    let delivery = totals.delivery;
    assert_eq!((totals.actions[0].clients, totals.actions[0].ready.len()), (2, 2));
    // 140 of 200; fewer where a busy machine made it late, but never all.
    assert!((1..200).contains(&delivery.received), "{delivery:?}");
    assert_eq!((delivery.lost, totals.violations.total()), (delivery.declared_lost, 0));
    assert_eq!(outcome.summary.subscribed, 2);
}

#[test]
fn actions_without_valid_clients_are_refused() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(1, QoS::AtMostOnce).plan(broker.addr);
    let action = Action {
        after_ns: 0,
        over_ns: 0,
        group: 1,
        clients: 2,
        turn: 0,
        kind: ActionKind::TakeOver,
    };
    plan.actions = vec![action];
    assert!(matches!(plan.check(), Err(PlanError::Action { number: 1, .. })));
    plan.actions[0].group = 7;
    assert!(matches!(plan.check(), Err(PlanError::Action { number: 1, .. })));
}

#[test]
fn reconnects_after_the_window_do_not_affect_it() {
    let broker = FaultyBroker::start(Behaviour::default());
    let outcome = acting(
        &broker,
        &Scene::pairs(0, QoS::AtMostOnce),
        ActionKind::Disconnect { clean: true },
        |plan| {
            let idle = |i| tacho_load::Client { id: format!("idle-{i}"), ..Default::default() };
            plan.groups[1].clients = (0..20).map(idle).collect();
            plan.groups[1].disconnects_per_s = Some(20.0);
            plan.actions[0].clients = 20;
            plan.actions[0].after_ns = 950 * MS;
            plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
        },
    );
    assert_eq!(outcome.summary.end, tacho_load::End::Completed);
    assert_eq!(outcome.only().actions[0].clients, 20);
}
