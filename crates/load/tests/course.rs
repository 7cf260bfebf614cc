//! The course of a run: steps, intervals, abort, keep-alive, early ends.

use std::time::{Duration, Instant};

use tacho_codec::{QoS, ReasonCode};
use tacho_load::{
    CatchUp, End, Engine, Event, Pace, Phase, PhaseKind, PhasePolicy, Rate, Scale, Timing,
};
use tacho_testkit::load::{
    Behaviour, Fault, FaultyBroker, Outcome, Scene, collect, open, run, with_fault,
};

const MS: u64 = 1_000_000;

#[test]
fn steps_are_measured_one_by_one() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(10, QoS::AtLeastOnce).plan(broker.addr);
    let step = |num| {
        let scale = Scale { num, den: 2 };
        [
            Phase::WarmUp { duration_ns: 100 * MS, scale },
            Phase::Measure { duration_ns: 500 * MS, scale },
            Phase::Drain { timeout_ns: 60_000 * MS },
        ]
    };
    plan.phases.truncate(3);
    plan.phases.extend(step(1).into_iter().chain(step(4)));
    plan.phases.push(Phase::Disconnect);
    let outcome = run(plan);
    let sent: Vec<u64> = outcome.totals.iter().map(|totals| totals.delivery.sent).collect();
    // 10 streams x 100 per second x 0.5 s, at half and at double the rate.
    assert_eq!(sent, [250, 1_000]);
    assert!(outcome.totals.iter().all(|totals| totals.delivery.lost == 0 && totals.drained));
    assert_eq!(outcome.totals.iter().map(|totals| totals.phase_index).collect::<Vec<_>>(), [4, 7]);
    assert!(outcome.totals.iter().all(|totals| totals.outside.late == 0));
}

#[test]
fn measure_without_drain_gets_one() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(2, QoS::AtMostOnce).plan(broker.addr);
    plan.phases.remove(5);
    let outcome = run(plan);
    assert_eq!(outcome.only().delivery.sent, 200);
    assert_eq!(outcome.summary.end, End::Completed);
}

#[test]
fn intervals_cover_the_phases_second_by_second() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene {
        threads: 2,
        warm_up_ms: 500,
        measure_ms: 2_500,
        ..Scene::pairs(10, QoS::AtLeastOnce)
    };
    let outcome = run(scene.plan(broker.addr));
    let measured: Vec<_> =
        outcome.intervals.iter().filter(|interval| interval.phase == PhaseKind::Measure).collect();
    let lengths: Vec<u64> = measured.iter().map(|interval| interval.len_ns / MS).collect();
    assert_eq!(lengths, [1_000, 1_000, 500]);
    assert!(measured.windows(2).all(|pair| pair[0].start_ns + pair[0].len_ns == pair[1].start_ns));
    assert!(measured.iter().all(|interval| interval.connected == 20));
    let offered: Vec<u64> = measured.iter().map(|interval| interval.counters.offered).collect();
    assert_eq!(offered.iter().sum::<u64>(), 2_500);
    assert!(offered.iter().zip([1_000u64, 1_000, 500]).all(|(a, b)| a.abs_diff(b) <= 2));
    // The totals are the sum of the intervals.
    let recorded: u64 = outcome
        .intervals
        .iter()
        .filter(|interval| matches!(interval.phase, PhaseKind::Measure | PhaseKind::Drain))
        .map(|interval| interval.e2e.len())
        .sum();
    assert_eq!((recorded, outcome.only().e2e.len()), (2_500, 2_500));
}

#[test]
fn an_aborted_run_reports_its_partial_window() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene { measure_ms: 600_000, ..Scene::pairs(10, QoS::AtLeastOnce) };
    let engine = Engine::start(scene.plan(broker.addr)).expect("the plan is good");
    let abort = engine.abort_handle();
    let sent = loop {
        match engine.next_event(Duration::from_secs(60)).expect("a second passes") {
            Event::Interval(interval) if interval.phase == PhaseKind::Measure => {
                break interval.counters.sent;
            }
            _ => {}
        }
    };
    abort.abort();
    let outcome = collect(&engine);
    assert_eq!(outcome.summary.end, End::Aborted);
    let totals = outcome.only();
    assert!((1_000 * MS..600_000 * MS).contains(&totals.len_ns));
    assert!(sent > 0 && totals.delivery.sent >= sent);
    assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0), "{totals:?}");
    assert_eq!(outcome.phases.last(), Some(&"disconnect"));
}

#[test]
fn dropping_the_engine_ends_its_threads() {
    let broker = FaultyBroker::start(Behaviour::default());
    // Much longer than the limit below on any machine.
    let scene = Scene { measure_ms: 600_000, ..Scene::pairs(2, QoS::AtMostOnce) };
    let begun = Instant::now();
    drop(Engine::start(scene.plan(broker.addr)).expect("the plan is good"));
    assert!(begun.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_missing_probe_ends_the_run() {
    let behaviour = Behaviour {
        fault: Box::new(
            |header| if header.stream.number() == 1 { Fault::Drop } else { Fault::None },
        ),
        ..Behaviour::default()
    };
    let broker = FaultyBroker::start(behaviour);
    let mut plan = Scene::pairs(3, QoS::AtMostOnce).plan(broker.addr);
    plan.phases[2] = Phase::Probe { timeout_ns: 2_000 * MS };
    let outcome = run(plan);
    let expected =
        End::ProbeFailed { missing: 1, expected: 3, waited_ms: 2_000, first_topic: "t/1".into() };
    assert_eq!(outcome.summary.end, expected);
    assert!(outcome.totals.is_empty());
}

#[test]
fn losing_all_clients_ends_the_run_early() {
    let broker =
        FaultyBroker::start(with_fault(
            |header| {
                if header.seq == 30 { Fault::Close } else { Fault::None }
            },
        ));
    let mut scene = Scene { measure_ms: 60_000, ..Scene::pairs(1, QoS::AtMostOnce) };
    scene.filters.clear();
    let mut plan = scene.plan(broker.addr);
    // The publisher is the receiver, so that closing the receiver closes all connections.
    plan.groups[0].clients[0]
        .subscriptions
        .push(tacho_load::Subscription::new("t/0", QoS::AtMostOnce));
    plan.routes = plan.derive_routes();
    let outcome = run(plan);
    assert!(matches!(outcome.summary.end, End::AllLost(_)), "{outcome:?}");
    assert!(outcome.only().delivery.sent >= 10);
}

#[test]
fn idle_clients_are_kept_alive() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene { warm_up_ms: 0, measure_ms: 6_500, ..Scene::pairs(1, QoS::AtMostOnce) }
        .plan(broker.addr);
    for group in &mut plan.groups {
        group.keep_alive_s = 2;
    }
    // Without PINGRESP, the idle subscriber would be given up after 4 s.
    let outcome = run(plan);
    assert_eq!((outcome.failures.len(), outcome.only().delivery.lost), (0, 0), "{outcome:?}");
}

#[test]
fn spinning_is_precise_and_does_not_count_as_busy() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(2, QoS::AtMostOnce).plan(broker.addr);
    plan.timing = Timing::Spin;
    let outcome = run(plan);
    let totals = outcome.only();
    assert_eq!(totals.delivery.sent, 200);
    let usage = totals.threads[0];
    assert!(usage.spin_ns > 0);
    assert!(usage.busy() < 0.6, "{usage:?}");
}

#[test]
fn a_thread_that_sleeps_and_spins_delivers_everything_within_its_budget() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene::pairs(2, QoS::AtLeastOnce).plan(broker.addr);
    plan.timing = Timing::SleepAndSpin;
    let outcome = run(plan);
    let totals = outcome.only();
    assert_eq!((totals.delivery.sent, totals.delivery.lost), (200, 0));
    let usage = totals.threads[0];
    assert!(usage.spin_ns > 0, "{usage:?}");
    let percent = usage.spin_ns as f64 * 100.0 / usage.wall_ns as f64;
    // A window may have a part of one more period than it has whole ones.
    assert!(percent <= f64::from(Timing::SPIN_BUDGET_PERCENT) + 5.0, "{percent}");
}

#[test]
fn batch_timing_sends_everything_late() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut scene = Scene { measure_ms: 500, ..Scene::pairs(1, QoS::AtLeastOnce) };
    scene.pace = Pace::Open {
        rate: Rate { messages: 5_000, per_ns: 1_000 * MS },
        phase: PhasePolicy::Aligned,
        catch_up: CatchUp::CatchUp,
    };
    let mut plan = scene.plan(broker.addr);
    plan.timing = Timing::Batch;
    let outcome = run(plan);
    let totals = outcome.only();
    let delivery = totals.delivery;
    assert_eq!((delivery.sent, delivery.received, delivery.lost), (2_500, 2_500, 0));
    // Messages are due every 200 us and written every 500 us: half of them are at least 100 us
    // late, which the send delay shows.
    let delay_us = totals.send_delay.value_at_quantile(0.5);
    assert!(delay_us >= 100, "half of the messages left within {delay_us} us");
}

/// A broker that never acknowledges, so that the inflight window stays full.
fn stalled(catch_up: CatchUp) -> Outcome {
    let broker = FaultyBroker::start(Behaviour { mute: true, ..Behaviour::default() });
    let mut scene = Scene {
        inflight_max: 1,
        warm_up_ms: 0,
        drain_ms: 100,
        ..Scene::pairs(1, QoS::AtLeastOnce)
    };
    scene.pace = Pace::Open {
        rate: Rate { messages: 100, per_ns: 1_000 * MS },
        phase: PhasePolicy::Aligned,
        catch_up,
    };
    let mut plan = scene.plan(broker.addr);
    plan.phases.remove(2);
    run(plan)
}

#[test]
fn messages_blocked_by_a_full_window_are_counted_with_every_catch_up_policy() {
    for catch_up in [CatchUp::CatchUp, CatchUp::Skip] {
        let outcome = stalled(catch_up);
        let counters = outcome.only().counters;
        assert_eq!((counters.offered, counters.sent, counters.dropped), (100, 1, 99));
    }
}

#[test]
fn refused_messages_are_counted_and_named_once() {
    let broker = FaultyBroker::start(Behaviour {
        puback: ReasonCode::QUOTA_EXCEEDED,
        ..Behaviour::default()
    });
    let scene = Scene { pace: open(50), warm_up_ms: 0, ..Scene::pairs(2, QoS::AtLeastOnce) };
    let outcome = run(scene.plan(broker.addr));
    let counters = outcome.counted();
    assert_eq!((counters.sent, counters.refused, counters.acked), (100, 100, 0));
    assert_eq!(outcome.failures.len(), 2);
    assert_eq!(outcome.summary.end, End::Completed);
}

/// A restarted broker may have completed an exchange before its PUBREL is repeated: no refusal.
#[test]
fn an_unknown_packet_identifier_in_pubcomp_is_no_refusal() {
    let pubcomp = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
    let broker = FaultyBroker::start(Behaviour { pubcomp, ..Behaviour::default() });
    let scene = Scene { pace: open(50), warm_up_ms: 0, ..Scene::pairs(2, QoS::ExactlyOnce) };
    let outcome = run(scene.plan(broker.addr));
    let (totals, counters) = (outcome.only(), outcome.counted());
    assert_eq!((counters.sent, counters.refused), (100, 0));
    assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0));
    assert!(totals.drained && outcome.failures.is_empty(), "{:?}", outcome.failures);
}

#[test]
fn clients_without_a_connack_are_given_up() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| (connect.client_id != "pub-1").then_some(ReasonCode::SUCCESS),
        ..Behaviour::default()
    });
    let mut plan = Scene::pairs(2, QoS::AtMostOnce).plan(broker.addr);
    plan.phases[0] = Phase::Connect { timeout_ns: 2_000 * MS };
    let outcome = run(plan);
    assert!(
        matches!(
            outcome.failures[..],
            [(1, tacho_load::Failure::ConnectTimeout { waited_ms: 2_000.. })]
        ),
        "{outcome:?}"
    );
    assert_eq!((outcome.summary.connected, outcome.only().delivery.sent), (3, 100));
}
