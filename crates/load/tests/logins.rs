//! Clients that log in by a schedule.

use std::sync::atomic::{AtomicU64, Ordering};

use tacho_codec::{Connect, ReasonCode, Version};
use tacho_load::{Client, Failure, Group, Login, LoginKind, LoginTotals, Phase, Plan};
use tacho_testkit::load::{Behaviour, FaultyBroker, Outcome, Scene, run};

const MS: u64 = 1_000_000;
const LOGIN: Login = Login { per_s: 200.0, stay_ns: 0, wrong_share: 0.25, unknown_share: 0.125 };

/// Four users with the password `secret`, and no other client.
fn plan(broker: &FaultyBroker, login: Login, change: impl FnOnce(&mut Plan)) -> Plan {
    let client = |number: usize| Client {
        id: format!("user-{number}"),
        username: Some(format!("u{number}")),
        password: Some(b"secret".to_vec()),
        ..Client::default()
    };
    let mut plan = Scene::pairs(0, tacho_codec::QoS::AtMostOnce).plan(broker.addr);
    plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
    plan.groups = vec![Group {
        name: "users".into(),
        login: Some(login),
        clients: (0..4).map(client).collect(),
        ..Group::default()
    }];
    change(&mut plan);
    plan
}

fn is_right(connect: &Connect<'_>) -> bool {
    let known = |name: &str| ["u0", "u1", "u2", "u3"].contains(&name);
    connect.username.is_some_and(known) && connect.password == Some(b"secret")
}

fn logins(outcome: &Outcome) -> &LoginTotals {
    outcome.only().logins.as_deref().expect("there are logins")
}

#[test]
fn every_login_of_the_window_is_counted_by_what_it_presented() {
    for (version, threads) in [(Version::V5, 1), (Version::V311, 3)] {
        let broker = FaultyBroker::start(Behaviour {
            connack: |connect| match is_right(connect) {
                true => Some(ReasonCode::SUCCESS),
                false => Some(ReasonCode::BAD_USER_NAME_OR_PASSWORD),
            },
            ..Behaviour::default()
        });
        let outcome = run(plan(&broker, LOGIN, |plan| {
            plan.groups[0].version = version;
            plan.threads = threads;
        }));
        let logins = logins(&outcome);
        let [right, wrong, unknown] = &logins.kinds;
        let due = right.due() + wrong.due() + unknown.due();
        assert_eq!((due, logins.misjudged(), &logins.first_undecided), (200, 0, &None));
        assert_eq!((right.accepted, right.refused), (right.due(), 0));
        assert!(right.due().abs_diff(125) <= 3 && wrong.due().abs_diff(50) <= 3);
        for of in [wrong, unknown] {
            assert_eq!((of.accepted, of.refused, of.refused_us.len()), (0, of.due(), of.due()));
            let reason = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
            assert_eq!(of.reasons.iter().collect::<Vec<_>>(), [(&reason, &of.due())]);
        }
        assert!(logins.ended.decided() > 0);
        assert_eq!(outcome.failures, [], "an expected refusal is no failure");
        assert_eq!(outcome.summary.connected, 4);
    }
}

#[test]
fn decisions_that_are_wrong_are_found() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| match (connect.client_id, is_right(connect)) {
            ("user-2", true) => Some(ReasonCode::BANNED),
            ("user-3", _) => Some(ReasonCode::SERVER_BUSY),
            _ => Some(ReasonCode::SUCCESS),
        },
        ..Behaviour::default()
    });
    let outcome = run(plan(&broker, LOGIN, |_| {}));
    let logins = logins(&outcome);
    let right = logins.of(LoginKind::Right);
    assert_eq!(right.refused, right.reasons[&ReasonCode::BANNED]);
    assert_eq!(right.turned_away, right.reasons[&ReasonCode::SERVER_BUSY]);
    let accepted: u64 = logins.kinds[1..].iter().map(|of| of.accepted).sum();
    assert!(right.refused > 0 && right.turned_away > 0 && accepted > 0);
    assert_eq!(logins.misjudged(), right.refused + accepted);
    let busy = logins.first_undecided.as_ref().and_then(|login| login.why.clone());
    assert_eq!(busy, Some(Failure::Refused(ReasonCode::SERVER_BUSY)));
    assert!(logins.first_misjudged.is_some());
}

#[test]
fn a_user_that_gets_no_answer_holds_up_no_other() {
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| (connect.client_id != "user-1").then_some(ReasonCode::SUCCESS),
        ..Behaviour::default()
    });
    let login = Login { wrong_share: 0.0, unknown_share: 0.0, ..LOGIN };
    let outcome = run(plan(&broker, login, |plan| {
        plan.phases[0] = Phase::Connect { timeout_ns: 300 * MS };
        plan.phases[4] = Phase::Drain { timeout_ns: 500 * MS };
        plan.phases.remove(2);
    }));
    let logins = logins(&outcome);
    let right = logins.of(LoginKind::Right);
    assert_eq!((right.due(), right.accepted, right.refused), (200, 150, 0));
    assert!(right.failed > 0 && right.unfinished > 0, "{} {}", right.failed, right.unfinished);
    let first = logins.first_undecided.clone().expect("one timed out");
    assert!(matches!(first.why, Some(Failure::ConnectTimeout { .. })), "{first:?}");
    assert_eq!(first.client.index(), 1);
}

/// A user that stays is late for its next login, and that is part of the latency.
#[test]
fn users_stay_and_latency_counts_from_the_time_when_a_login_is_due() {
    static CONNECTS: AtomicU64 = AtomicU64::new(0);
    let broker = FaultyBroker::start(Behaviour {
        connack: |connect| {
            let is_round_trip = connect.client_id.starts_with("tacho-rtt");
            CONNECTS.fetch_add(u64::from(!is_round_trip), Ordering::Relaxed);
            Some(ReasonCode::SUCCESS)
        },
        ..Behaviour::default()
    });
    let stay_ns = 200 * MS;
    let login = Login { per_s: 40.0, stay_ns, wrong_share: 0.0, unknown_share: 0.0 };
    let outcome = run(plan(&broker, login, |plan| {
        plan.phases[3] = Phase::Measure { duration_ns: 2_000 * MS, scale: tacho_load::Scale::ONE };
    }));
    let totals = outcome.only();
    let right = logins(&outcome).of(LoginKind::Right);
    // Each of four has a login every 100 ms and takes 200 ms for one: the drain does the rest.
    assert_eq!((right.due(), right.accepted), (80, 80));
    assert!(right.accepted_us.max() >= 1_000_000, "{} us", right.accepted_us.max());
    assert!(totals.connected > 0 && totals.drained);
    let warm_up = 8;
    assert_eq!(CONNECTS.load(Ordering::Relaxed), right.due() + warm_up);
    assert!(outcome.interruptions.is_empty());
}
