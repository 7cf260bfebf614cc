//! Figures of groups, brokers, shared groups, attempts and round trips.

use tacho_codec::{QoS, ReasonCode};
use tacho_load::{Phase, PhaseKind, Target};
use tacho_testkit::load::{Behaviour, FaultyBroker, Scene, open, run};

#[test]
fn groups_and_brokers_have_their_own_figures() {
    let (one, other) =
        (FaultyBroker::start(Behaviour::default()), FaultyBroker::start(Behaviour::default()));
    let scene = Scene { threads: 2, ..Scene::pairs(4, QoS::AtLeastOnce) };
    let mut plan = scene.plan(one.addr);
    // A second pair of groups at the other broker, at twice the rate.
    let mut more = plan.groups.clone();
    plan.targets = vec![Target::tcp(one.addr, "one")];
    for group in &mut more {
        group.name = format!("more {}", group.name);
        group.targets = vec![Target::tcp(other.addr, "other")];
        for client in &mut group.clients {
            client.id = format!("more-{}", client.id);
            client.streams.iter_mut().for_each(|stream| stream.topic.insert_str(0, "more/"));
            client.subscriptions.iter_mut().for_each(|s| s.filter.insert_str(0, "more/"));
        }
        group.publish.iter_mut().for_each(|block| block.pace = open(200));
    }
    plan.groups.extend(more);
    plan.routes = plan.derive_routes();
    plan.rtt_every_ns = Some(20_000_000);
    let outcome = run(plan);
    let totals = outcome.only();
    let groups: Vec<_> = totals
        .groups
        .iter()
        .map(|group| {
            let (counters, delivery) = (group.counters, group.delivery);
            assert_eq!(group.clients, 4);
            assert_eq!(delivery.received + delivery.lost, delivery.expected);
            assert_eq!(group.e2e.len(), delivery.received);
            (&*group.name, &*group.targets[0], counters.offered, delivery.sent, delivery.received)
        })
        .collect();
    assert_eq!(
        groups,
        [
            ("publishers", "one", 400, 400, 0),
            ("subscribers", "one", 0, 0, 400),
            ("more publishers", "other", 800, 800, 0),
            ("more subscribers", "other", 0, 0, 800),
        ]
    );
    let targets: Vec<_> = totals
        .targets
        .iter()
        .map(|target| (&*target.name, target.delivery.sent, target.delivery.received))
        .collect();
    assert_eq!(targets, [("one", 400, 400), ("other", 800, 800)]);
    assert!(totals.targets.iter().all(|target| !target.rtt.is_empty()), "{targets:?}");
    assert_eq!(totals.rtt.len(), totals.targets.iter().map(|target| target.rtt.len()).sum::<u64>());
    assert_eq!(outcome.summary.rtt_failure, None);
    assert_eq!((totals.connected, totals.violations.total()), (16, 0));
    let measured =
        || outcome.intervals.iter().filter(|interval| interval.phase == PhaseKind::Measure);
    let offered: u64 = measured().map(|interval| interval.groups[2].counters.offered).sum();
    assert!((799..=801).contains(&offered), "{offered}");
    assert!(measured().all(|interval| interval.targets[1].connected == 8));
    assert!(measured().all(|interval| interval.bytes_in > 0 && interval.bytes_out > 0));
}

#[test]
fn members_of_a_shared_group_are_counted_separately() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut scene = Scene { threads: 2, ..Scene::pairs(2, QoS::AtLeastOnce) };
    scene.filters = (0..5).map(|_| "$share/workers/t/#".to_owned()).collect();
    scene.filters.push("t/0".into());
    let outcome = run(scene.plan(broker.addr));
    let totals = outcome.only();
    let [shared] = &totals.shared[..] else { panic!("one group, not {:?}", totals.shared) };
    assert_eq!((&*shared.name, &*shared.filter), ("workers", "t/#"));
    let clients: Vec<u32> = shared.members.iter().map(|(client, _)| client.number()).collect();
    assert_eq!(clients, [2, 3, 4, 5, 6]);
    // The test broker distributes round-robin, so the warm-up determines the first member.
    assert_eq!(shared.members.iter().map(|(_, count)| count).sum::<u64>(), 200);
    let (min, max) = shared.min_max();
    assert!(max - min <= 1 && shared.gini() < 0.02, "{shared:?}");
    assert_eq!(totals.violations.total(), 0);
}

#[test]
fn attempts_are_counted_with_their_outcome_and_time() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| match connect.client_id {
            "pub-1" => Some(ReasonCode::NOT_AUTHORIZED),
            _ => Some(ReasonCode::SUCCESS),
        },
        suback: Some(ReasonCode::NOT_AUTHORIZED),
        puback: ReasonCode::QUOTA_EXCEEDED,
        ..Behaviour::default()
    });
    let scene = Scene { warm_up_ms: 0, ..Scene::pairs(3, QoS::AtLeastOnce) };
    let mut plan = scene.plan(broker.addr);
    plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
    let outcome = run(plan);
    let sum = |part: fn(&tacho_load::IntervalSnapshot) -> u64| -> u64 {
        outcome.intervals.iter().map(part).sum()
    };
    assert_eq!((sum(|i| i.connect.ok), sum(|i| i.connect.failed)), (5, 1));
    assert_eq!((sum(|i| i.subscribe.ok), sum(|i| i.subscribe.failed)), (0, 3));
    assert_eq!((sum(|i| i.connect.ok_us.len()), sum(|i| i.connect.failed_us.len())), (5, 1));
    assert_eq!(sum(|i| i.subscribe.failed_us.len()), 3);
    let totals = outcome.only();
    assert_eq!((outcome.counted().refused, totals.ack_failed.len()), (200, 200));
    assert_eq!((totals.connect.ok, totals.connected), (0, 5));
    assert!(outcome.summary.connect_span_ns > 0);
}

#[test]
fn without_a_broker_there_are_no_round_trips() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| match connect.client_id.starts_with("tacho-rtt") {
            true => Some(ReasonCode::NOT_AUTHORIZED),
            false => Some(ReasonCode::SUCCESS),
        },
        ..Behaviour::default()
    });
    let mut plan = Scene::pairs(1, QoS::AtMostOnce).plan(broker.addr);
    plan.rtt_every_ns = Some(10_000_000);
    let outcome = run(plan);
    assert_eq!((outcome.only().rtt.len(), outcome.failures.len()), (0, 0));
    let why = outcome.summary.rtt_failure.expect("has a reason");
    assert!(why.contains("refused the connection"), "{why}");
}
