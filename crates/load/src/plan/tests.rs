use std::net::SocketAddr;
use std::sync::Arc;

use super::*;

#[test]
fn answers_are_routed_to_requesters() {
    let mut plan = plan_of(vec![publisher("ask/0", QoS::AtLeastOnce)]);
    plan.groups[0].clients[0].streams[0].response_topic = Some("answer/0".into());
    let hears = |filter: &str| Client {
        subscriptions: vec![Subscription::new(filter, QoS::ExactlyOnce)],
        ..Client::default()
    };
    plan.groups[0].clients[0].subscriptions = hears("answer/0").subscriptions;
    let group = |filter| Group { clients: vec![hears(filter)], ..Group::default() };
    plan.groups.push(group("$share/all/ask/+"));
    let receivers = |plan: &Plan| -> Vec<(Receiver, QoS)> {
        plan.derive_routes().iter().map(|route| (route.receiver, route.qos)).collect()
    };
    let shared = (Receiver::Shared(0), QoS::AtLeastOnce);
    assert_eq!(receivers(&plan), [shared]);
    plan.groups[1].answers = true;
    // Answers have the QoS of the received requests.
    assert_eq!(receivers(&plan), [(client(0), QoS::AtLeastOnce), shared]);
    plan.groups[1].clients[0].subscriptions[0].qos = QoS::AtMostOnce;
    let lower = [client(0), Receiver::Shared(0)].map(|to| (to, QoS::AtMostOnce));
    assert_eq!(receivers(&plan), lower);
    plan.groups[1].clients = vec![hears("other/+")];
    assert_eq!(receivers(&plan), []);
}

#[test]
fn logins_by_a_schedule_exclude_everything_else() {
    let login = Login { per_s: 10.0, stay_ns: 0, wrong_share: 0.5, unknown_share: 0.0 };
    let mut plan = plan_of(vec![(QoS::AtMostOnce, Client::default())]);
    plan.groups[0].login = Some(login);
    assert_eq!(plan.check(), Ok(()));
    let refused = |change: fn(&mut Group)| {
        let mut plan = plan.clone();
        change(&mut plan.groups[0]);
        plan.check().expect_err("refused").to_string()
    };
    for (change, words) in [
        (
            (|group| {
                group.clients[0].subscriptions = subscriber("a", QoS::AtMostOnce).1.subscriptions
            }) as fn(&mut Group),
            "neither publish nor subscribe",
        ),
        (|group| group.absent = true, "'absent'"),
        (|group| group.login = group.login.map(|of| Login { per_s: 0.0, ..of }), "positive"),
        (|group| group.login = group.login.map(|of| Login { wrong_share: 2.0, ..of }), "between"),
    ] {
        let said = refused(change);
        assert!(said.contains(words), "{said}");
    }
}

/// A client with one stream.
pub(crate) fn publisher(topic: &str, qos: QoS) -> (QoS, Client) {
    let streams = vec![Stream::new(topic, 0)];
    (qos, Client { streams, ..Client::default() })
}

/// A client with one subscription.
pub(crate) fn subscriber(filter: &str, qos: QoS) -> (QoS, Client) {
    let subscriptions = vec![Subscription::new(filter, qos)];
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
            waiting_max: 1_000,
            publish: vec![PublishBlock {
                qos,
                retain: false,
                payload: Payload::Random { bytes: 128 },
                pace: pace.clone(),
            }],
            clients: vec![client],
            ..Group::default()
        })
        .collect();
    let mut plan = Plan {
        run_id: 1,
        seed: 2,
        targets: vec![SocketAddr::from(([127, 0, 0, 1], 1883)).into()],
        groups,
        ..Plan::default()
    };
    plan.routes = plan.derive_routes();
    plan
}

/// The client at this position as a receiver.
pub(crate) fn client(number: u32) -> Receiver {
    Receiver::Client(ClientIndex::new(number))
}

fn route(stream: u32, receiver: Receiver, qos: QoS) -> Route {
    Route { stream: StreamIndex::new(stream), receiver, qos, overlapping: false }
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
fn brokers_are_separate_unless_bridged() {
    let mut plan = plan_of(vec![
        publisher("bridge/a", QoS::AtLeastOnce),
        subscriber("bridge/a", QoS::ExactlyOnce),
        subscriber("remote/+/a", QoS::ExactlyOnce),
        subscriber("remote/bridge/a", QoS::ExactlyOnce),
    ]);
    for (group, broker) in [(0, "one"), (1, "one"), (2, "two")] {
        plan.groups[group].targets =
            vec![Target::tcp(SocketAddr::from(([127, 0, 0, 1], 1)), broker)];
    }
    let local = route(0, client(1), QoS::AtLeastOnce);
    assert_eq!(plan.derive_routes(), [local]);
    let bridge = Bridge {
        from: "one".into(),
        to: "two".into(),
        filter: "bridge/#".into(),
        strip: String::new(),
        prefix: "remote/".into(),
    };
    let passed_on = route(0, client(2), QoS::AtLeastOnce);
    plan.bridges = vec![bridge.clone()];
    assert_eq!(plan.derive_routes(), [local, passed_on]);
    plan.bridges = vec![Bridge { from: "two".into(), to: "one".into(), ..bridge.clone() }];
    assert_eq!(plan.derive_routes(), [local]);
    let stripped = Bridge { strip: "bridge/".into(), ..bridge.clone() };
    assert_eq!(stripped.arrives_as("bridge/a").as_deref(), Some("remote/a"));
    assert_eq!(bridge.arrives_as("elsewhere/a"), None);
}

#[test]
fn no_local_messages_are_not_expected() {
    let mut plan = plan_of(vec![publisher("a", QoS::AtMostOnce)]);
    let own = |no_local| Subscription { no_local, ..Subscription::new("#", QoS::AtMostOnce) };
    plan.groups[0].clients[0].subscriptions = vec![own(false)];
    assert_eq!(plan.derive_routes(), [route(0, client(0), QoS::AtMostOnce)]);
    plan.groups[0].clients[0].subscriptions = vec![own(true)];
    assert_eq!(plan.derive_routes(), []);
}

#[test]
fn a_shared_group_of_two_brokers_is_refused() {
    let mut plan = plan_of(vec![
        publisher("a", QoS::AtMostOnce),
        subscriber("$share/g/a", QoS::AtMostOnce),
        subscriber("$share/g/a", QoS::AtMostOnce),
    ]);
    assert_eq!(plan.check(), Ok(()));
    plan.groups[2].targets = vec![Target::tcp(SocketAddr::from(([127, 0, 0, 1], 1)), "two")];
    plan.routes = plan.derive_routes();
    let error = plan.check().expect_err("one name for two groups").to_string();
    assert!(error.contains("$share/g/a"), "{error}");
}

#[test]
fn overlapping_filters_are_marked() {
    let mut both = subscriber("t/#", QoS::AtMostOnce);
    both.1.subscriptions.extend(subscriber("t/1", QoS::ExactlyOnce).1.subscriptions);
    let plan = plan_of(vec![publisher("t/1", QoS::AtLeastOnce), both]);
    let expected = Route { overlapping: true, ..route(0, client(1), QoS::AtLeastOnce) };
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
fn invalid_plans_are_refused_with_a_message() {
    let good = plan_of(vec![publisher("t", QoS::AtMostOnce), subscriber("t", QoS::AtMostOnce)]);
    assert_eq!(good.check(), Ok(()));
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        plan.check().expect_err("refused").to_string()
    };
    type Case = (&'static dyn Fn(&mut Plan), &'static str);
    fn bursts(messages: u32, period_ns: u64) -> Pace {
        let (phase, catch_up) = (PhasePolicy::Uniform, CatchUp::CatchUp);
        Pace::Bursts { messages, period_ns, phase, catch_up }
    }
    fn payload(plan: &mut Plan) -> &mut Payload {
        &mut plan.groups[0].publish[0].payload
    }
    fn pace(plan: &mut Plan) -> &mut Pace {
        &mut plan.groups[0].publish[0].pace
    }
    let cases: [Case; 22] = [
        (&|plan| plan.threads = 0, "at least one generator thread"),
        (&|plan| plan.targets.clear(), "no target address"),
        (&|plan| plan.groups.clear(), "at least one client"),
        (&|plan| *payload(plan) = Payload::Random { bytes: 23 }, "23 bytes is too small"),
        (
            &|plan| *payload(plan) = Payload::Jmeter { bytes: 43, timestamp: true },
            "43 bytes is too small, the header that verification needs takes 44",
        ),
        (&|plan| *payload(plan) = Payload::Zeros { bytes: u32::MAX }, "does not fit"),
        (&|plan| *pace(plan) = bursts(0, 1), "size of a burst"),
        (&|plan| *pace(plan) = bursts(1, 0), "time between bursts"),
        (
            &|plan| {
                let trace = Trace {
                    arrivals: Arrivals::Offsets(vec![2, 1]),
                    repeat_ns: None,
                    shared_by: 1,
                };
                *pace(plan) = Pace::Trace { trace: Arc::new(trace), catch_up: CatchUp::CatchUp };
            },
            "its times must ascend",
        ),
        (
            &|plan| {
                *pace(plan) = Pace::Jmeter { per_minute: 0.0, threads: 1, ramp_ns: 0, wait: false };
            },
            "JMeter's pacing needs a positive rate",
        ),
        (
            &|plan| {
                let (after_ns, for_ns) = (1, 2_000_000_001);
                plan.groups[0].session_expiry_s = 2;
                plan.groups[0].offline =
                    Some(Offline { after_ns, for_ns, clean: true, queues_qos0: false });
            },
            "more than the 3 s they stay away",
        ),
        (
            &|plan| {
                plan.groups[0].session_expiry_s = 2;
                plan.groups[0].absent = true;
                let (duration_ns, scale) = (2_000_000_001, Scale::ONE);
                plan.phases = vec![Phase::Offline, Phase::Measure { duration_ns, scale }];
            },
            "more than the 3 s they stay away",
        ),
        (&|plan| plan.groups[0].disconnects_per_s = Some(f64::NAN), "disconnect rate"),
        (
            &|plan| {
                let (qos, retain, delay_s) = (QoS::AtMostOnce, false, 0);
                plan.groups[0].will = Some(Will { qos, retain, payload: Vec::new(), delay_s });
                plan.groups[0].clients[0].will_topic = Some("a/#".into());
            },
            "will topic \"a/#\"",
        ),
        (&|plan| plan.groups[0].clients[0].id = "a\0".into(), "a client id cannot be sent"),
        (
            &|plan| plan.groups[0].clients[0].username = Some("x".repeat(65_536)),
            "a user name cannot be sent: it has more than 65,535 bytes",
        ),
        (&|plan| plan.groups[0].publish.clear(), "names publish block 0"),
        (&|plan| plan.groups[0].connects_per_s = Some(0.0), "connect rate"),
        (&|plan| plan.groups[0].clients[0].streams[0].topic = "t/+".into(), "topic \"t/+\""),
        (&|plan| plan.routes[0].stream = StreamIndex::new(9), "route 0"),
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
