//! Requests and answers: the QoS of answers, and the judgement of missing ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tacho_codec::QoS;
use tacho_load::payload::Header;
use tacho_load::{Action, ActionKind, Phase, Plan, Reconnect, StreamIndex, Subscription};
use tacho_testkit::load::{Behaviour, Fault, FaultyBroker, Scene, run, with_fault};

const MS: u64 = 1_000_000;
const ALL: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

/// Three clients send 100 requests per second each; two responders share the requests.
fn plan(broker: &FaultyBroker, qos: QoS) -> Plan {
    let scene = Scene { threads: 2, measure_ms: 700, ..Scene::pairs(3, qos) };
    let mut plan = scene.plan(broker.addr);
    for (number, client) in plan.groups[0].clients.iter_mut().enumerate() {
        let topic = format!("answers/{number}");
        client.subscriptions = vec![Subscription::new(&topic, QoS::ExactlyOnce)];
        client.streams[0].response_topic = Some(topic);
    }
    let responders = &mut plan.groups[1];
    responders.answers = true;
    responders.clients.truncate(2);
    for client in &mut responders.clients {
        client.subscriptions = vec![Subscription::new("$share/all/t/+", QoS::ExactlyOnce)];
    }
    plan.routes = plan.derive_routes();
    plan
}

#[test]
fn answers_have_the_qos_of_their_requests_even_with_an_inflight_window_of_one() {
    for qos in ALL {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        let hears = move |topic: &str, qos| {
            if topic.starts_with("answers/") {
                ears.lock().expect("no panic under the lock").push(qos);
            }
        };
        let broker =
            FaultyBroker::start(Behaviour { hears: Box::new(hears), ..Behaviour::default() });
        let mut plan = plan(&broker, qos);
        plan.groups[1].inflight_max = 1;
        let outcome = run(plan);
        let totals = outcome.only();
        // A request and its answer.
        let delivery = totals.delivery;
        assert_eq!((delivery.expected, delivery.received), (420, 420), "{qos} {delivery:?}");
        assert_eq!((totals.violations.total(), delivery.duplicates), (0, 0), "{qos}");
        assert!(totals.drained && outcome.failures.is_empty(), "{qos} {:?}", outcome.failures);
        let heard = heard.lock().expect("no panic under the lock");
        assert!(heard.len() >= 210 && heard.iter().all(|of| *of == qos), "{qos} {heard:?}");
    }
}

/// Drops the answer to one request of each client.
fn without_an_answer() -> Behaviour {
    let mut seen: HashMap<StreamIndex, u32> = HashMap::new();
    with_fault(move |header: &Header| {
        // The warm-up has numbers 0 to 19.
        if header.seq != 50 {
            return Fault::None;
        }
        let times = seen.entry(header.stream).or_default();
        *times += 1;
        if *times == 2 { Fault::Drop } else { Fault::None }
    })
}

#[test]
fn an_answer_lost_by_the_broker_is_a_violation() {
    for (qos, broken) in ALL.into_iter().zip([0, 3, 3]) {
        let broker = FaultyBroker::start(without_an_answer());
        let mut plan = plan(&broker, qos);
        plan.phases[5] = Phase::Drain { timeout_ns: 1_000 * MS };
        let outcome = run(plan);
        let totals = outcome.only();
        assert_eq!(totals.delivery.lost, 3, "{qos} {:?}", totals.gaps);
        assert_eq!(totals.violations.lost, broken, "{qos} {:?}", totals.gaps);
    }
}

#[test]
fn answers_missing_because_responders_left_are_no_violation() {
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        // Some answers are missing in any case.
        let broker = FaultyBroker::start(without_an_answer());
        let mut plan = plan(&broker, qos);
        let kind = ActionKind::Disconnect { clean: false };
        let (after_ns, over_ns, turn) = (400 * MS, 0, 0);
        plan.actions = vec![Action { after_ns, over_ns, group: 1, clients: 2, turn, kind }];
        let again = Reconnect { attempts_max: 100, first_ns: 50 * MS, longest_ns: 50 * MS };
        plan.groups[1].reconnect = Some(again);
        plan.phases[5] = Phase::Drain { timeout_ns: 1_000 * MS };
        let outcome = run(plan);
        let totals = outcome.only();
        assert_eq!(totals.actions[0].ready.len(), 2, "{qos}");
        assert!(totals.delivery.lost >= 3, "{qos} {:?}", totals.delivery);
        assert_eq!(totals.violations.total(), 0, "{qos} {:?}", totals.gaps);
        assert!(outcome.failures.is_empty(), "{qos} {:?}", outcome.failures);
    }
}
