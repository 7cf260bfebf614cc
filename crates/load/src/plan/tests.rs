use std::net::SocketAddr;

use super::*;

/// A client with one stream.
pub(crate) fn publisher(topic: &str, qos: QoS) -> (QoS, Client) {
    let streams = vec![Stream { topic: topic.into(), block: 0 }];
    (qos, Client { streams, ..Client::default() })
}

/// A client with one subscription.
pub(crate) fn subscriber(filter: &str, qos: QoS) -> (QoS, Client) {
    let subscriptions = vec![Subscription { filter: filter.into(), qos }];
    (qos, Client { subscriptions, ..Client::default() })
}

/// A plan with a group per client, 128-byte messages, 100 of them per second, and its routes.
pub(crate) fn plan_of(clients: Vec<(QoS, Client)>) -> Plan {
    let pace = Pace::Open {
        rate: Rate::every_ns(10_000_000),
        phase: PhasePolicy::Uniform,
        catch_up: CatchUp::CatchUp,
    };
    let groups = clients
        .into_iter()
        .map(|(qos, client)| Group {
            name: "group".into(),
            targets: Vec::new(),
            version: Version::V5,
            clean_start: true,
            session_expiry_s: 0,
            keep_alive_s: 60,
            connects_per_s: None,
            inflight_max: 100,
            waiting_max: 1_000,
            publish: vec![PublishBlock { qos, retain: false, payload_bytes: 128, pace }],
            clients: vec![client],
        })
        .collect();
    let mut plan = Plan {
        run_id: 1,
        seed: 2,
        threads: 1,
        cpus: Vec::new(),
        timing: Timing::Sleep,
        targets: vec![SocketAddr::from(([127, 0, 0, 1], 1883)).into()],
        sources: Vec::new(),
        groups,
        routes: Vec::new(),
        phases: Vec::new(),
        overrun_after_ns: Plan::OVERRUN_AFTER_NS,
    };
    plan.routes = plan.derive_routes();
    plan
}

fn route(stream: StreamIndex, receiver: Receiver, qos: QoS) -> Route {
    Route { stream, receiver, qos, overlapping: false }
}

#[test]
fn routes_follow_filters() {
    let plan = plan_of(vec![
        publisher("a/b", QoS::AtLeastOnce),
        publisher("a/c", QoS::AtMostOnce),
        publisher("$a/b", QoS::ExactlyOnce),
        subscriber("a/b", QoS::ExactlyOnce),
        subscriber("a/+", QoS::AtMostOnce),
        subscriber("#", QoS::ExactlyOnce),
    ]);
    let client = Receiver::Client;
    assert_eq!(
        plan.routes,
        [
            route(0, client(3), QoS::AtLeastOnce),
            route(0, client(4), QoS::AtMostOnce),
            route(0, client(5), QoS::AtLeastOnce),
            route(1, client(4), QoS::AtMostOnce),
            route(1, client(5), QoS::AtMostOnce),
        ]
    );
}

#[test]
fn shared_group_is_one_receiver() {
    let plan = plan_of(vec![
        publisher("t", QoS::ExactlyOnce),
        subscriber("$share/g/t", QoS::ExactlyOnce),
        subscriber("$share/h/t", QoS::AtLeastOnce),
        subscriber("$share/g/t", QoS::AtMostOnce),
    ]);
    assert_eq!(plan.shared_groups().len(), 2);
    assert_eq!(
        plan.routes,
        [
            route(0, Receiver::Shared(0), QoS::AtMostOnce),
            route(0, Receiver::Shared(1), QoS::AtLeastOnce),
        ]
    );
}

#[test]
fn overlapping_filters_are_marked() {
    let mut both = subscriber("t/#", QoS::AtMostOnce);
    both.1.subscriptions.extend(subscriber("t/1", QoS::ExactlyOnce).1.subscriptions);
    let plan = plan_of(vec![publisher("t/1", QoS::AtLeastOnce), both]);
    let expected = Route { overlapping: true, ..route(0, Receiver::Client(1), QoS::AtLeastOnce) };
    assert_eq!(plan.routes, [expected]);
}

#[test]
fn offered_rates_add_up() {
    let plan = plan_of(vec![
        publisher("t", QoS::AtMostOnce),
        publisher("t", QoS::AtMostOnce),
        subscriber("t", QoS::AtMostOnce),
        subscriber("#", QoS::AtMostOnce),
    ]);
    assert!((plan.offered_in_per_s() - 200.0).abs() < 1e-9);
    assert!((plan.offered_out_per_s() - 400.0).abs() < 1e-9);
}

#[test]
fn impossible_plans_are_refused_with_a_sentence() {
    let good = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
    assert_eq!(good.check(), Ok(()));
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        plan.check().expect_err("refused").to_string()
    };
    type Case = (&'static dyn Fn(&mut Plan), &'static str);
    let cases: [Case; 10] = [
        (&|plan| plan.threads = 0, "at least one generator thread"),
        (&|plan| plan.targets.clear(), "no target address"),
        (&|plan| plan.groups.clear(), "at least one client"),
        (&|plan| plan.groups[0].publish[0].payload_bytes = 23, "23 bytes is too small"),
        (&|plan| plan.groups[0].publish.clear(), "names publish block 0"),
        (&|plan| plan.groups[0].connects_per_s = Some(0.0), "connect rate"),
        (&|plan| plan.groups[0].clients[0].streams[0].topic = "t/+".into(), "topic \"t/+\""),
        (&|plan| plan.routes[0].stream = 9, "route 0"),
        (&|plan| plan.routes.push(plan.routes[0]), "route 1"),
        (
            &|plan| {
                plan.groups[0].publish[0].pace = Pace::Closed { window: 1 };
                plan.routes.clear();
            },
            "no subscription matches",
        ),
    ];
    for (change, part) in cases {
        let message = refused(change);
        assert!(message.contains(part), "{message:?} has no {part:?}");
    }
}
