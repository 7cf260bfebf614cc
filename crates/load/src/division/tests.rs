use proptest::prelude::*;
use tacho_codec::QoS;

use super::*;
use crate::plan::tests::{plan_of, publisher, subscriber};
use crate::plan::{Pace, Phase, Scale};

/// Pairs, and publishers that one subscriber hears.
fn plan(pairs: usize, heard_by_one: usize) -> Plan {
    let mut clients: Vec<_> =
        (0..pairs).map(|i| publisher(&format!("t/{i}"), QoS::AtMostOnce)).collect();
    clients.extend((0..pairs).map(|i| subscriber(&format!("t/{i}"), QoS::AtLeastOnce)));
    clients.extend((0..heard_by_one).map(|i| publisher(&format!("u/{i}"), QoS::AtLeastOnce)));
    clients.push(subscriber("u/+", QoS::AtLeastOnce));
    let measure = Phase::Measure { duration_ns: 1_000_000_000, scale: Scale::ONE };
    Plan { phases: vec![measure], ..plan_of(clients) }
}

fn processes(threads: &[usize]) -> Vec<(String, usize)> {
    threads.iter().enumerate().map(|(at, threads)| (format!("load-{at}"), *threads)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_shares_are_the_whole(
        pairs in 1_usize..60,
        heard_by_one in 0_usize..60,
        threads in proptest::collection::vec(1_usize..5, 1..7),
    ) {
        let whole = plan(pairs, heard_by_one);
        let (clients, per_second) = (whole.client_count(), whole.offered_in_per_s());
        let (division, inputs) =
            Division::new(whole, &processes(&threads)).expect("can be divided");
        prop_assert_eq!(inputs.len(), threads.len());
        let mut sum = (0, 0.0);
        let mut placed = vec![0; clients];
        for (at, expected) in division.clients().into_iter().enumerate() {
            let bytes = division.assignment(at).expect("can be encoded");
            let assignment = Assignment::read(&bytes).expect("is sound");
            prop_assert_eq!(assignment.identity(), division.identity(at).expect("encodes"));
            let figures = assignment.figures();
            prop_assert_eq!(figures.clients, expected);
            sum = (sum.0 + figures.clients, sum.1 + figures.per_second);
            // The other process places every client on the same thread.
            let context = assignment.context(assignment.plan.clone());
            prop_assert_eq!(&context.placement, &division.context.placement);
            prop_assert_eq!(&context.plan.routes, &division.context.plan.routes);
            for thread in assignment.threads.clone() {
                for client in context.placement.clients_of(thread) {
                    placed[client.index()] += 1;
                }
            }
        }
        prop_assert_eq!(sum.0, clients);
        prop_assert!((sum.1 - per_second).abs() < 1e-6, "{} of {per_second}", sum.1);
        prop_assert!(placed.iter().all(|times| *times == 1));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
    ) {
        let _ = Assignment::read(&bytes);
        let (_, inputs) = Division::new(plan(2, 1), &processes(&[1, 1])).expect("divided");
        let _ = inputs[0].take(&bytes);
    }
}

#[test]
fn an_assignment_that_was_changed_on_its_way_is_refused_or_sound() {
    let (division, _) = Division::new(plan(3, 2), &processes(&[1, 2])).expect("divided");
    let bytes = division.assignment(1).expect("encodes");
    for at in 0..bytes.len().min(2_000) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x15;
        if let Ok(assignment) = Assignment::read(&changed) {
            assert!(assignment.threads.end <= assignment.plan.threads);
        }
    }
}

#[test]
fn secrets_and_shared_state_are_not_divided() {
    let divide = |change: fn(&mut Plan), threads: &[usize]| {
        let mut plan = plan(4, 4);
        change(&mut plan);
        Division::new(plan, &processes(threads)).map(|_| ()).map_err(|error| error.to_string())
    };
    let nothing: fn(&mut Plan) = |_| {};
    let error = |change, threads| divide(change, threads).expect_err("not divided");
    assert!(error(nothing, &[]).contains("1 to 4096"));
    assert!(error(nothing, &[1, 0]).contains("not 1"));
    let answers: fn(&mut Plan) = |plan| {
        plan.groups[1].answers = true;
    };
    assert!(error(answers, &[1, 1]).contains("answer requests"));
    // One process has all threads that share it.
    assert_eq!(divide(answers, &[2]), Ok(()));
    let closed: fn(&mut Plan) = |plan| {
        // Those that one subscriber hears: together they are too heavy for one thread.
        for block in plan.groups[8..12].iter_mut().flat_map(|group| &mut group.publish) {
            (block.pace, block.qos) = (Pace::Closed { window: 1 }, QoS::AtMostOnce);
        }
    };
    assert!(error(closed, &[1, 1]).contains("waits for deliveries"));
    assert_eq!(divide(closed, &[3]), Ok(()));
}
