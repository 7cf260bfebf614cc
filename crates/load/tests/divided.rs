//! Runs that are divided over several shares, as over processes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tacho_codec::QoS;
use tacho_load::division::{Assignment, Division, OnLoss, Share, ShareInput};
use tacho_load::{
    Action, ActionKind, End, Engine, Event, Phase, PhaseKind, Plan, Reconnect, ShareTotals, Totals,
};
use tacho_testkit::load::{Behaviour, Fault, FaultyBroker, Scene, collect, run, with_fault};

/// Shares by their position; `None` once they have been killed.
type Shares = Arc<Mutex<Vec<Option<Share>>>>;

/// Starts a run on shares with these threads; they are in this process, and their mail is encoded.
fn divided(plan: Plan, threads: &[usize]) -> (Engine, Shares, Vec<ShareInput>) {
    divided_until(plan, threads, OnLoss::End)
}

/// Kills the share at position 1, and says so.
fn kill_second(shares: &Shares, inputs: &[ShareInput]) {
    let killed = shares.lock().expect("no panic")[1].take();
    drop(killed);
    inputs[1].lost("the connection to it broke");
}

fn divided_until(
    plan: Plan,
    threads: &[usize],
    on_loss: OnLoss,
) -> (Engine, Shares, Vec<ShareInput>) {
    let processes: Vec<_> =
        threads.iter().enumerate().map(|(at, count)| (format!("load-{at}"), *count)).collect();
    let (division, inputs) = Division::new(plan, &processes).expect("can be divided");
    let shares: Shares = Arc::default();
    for (at, input) in inputs.iter().enumerate() {
        let bytes = division.assignment(at).expect("can be encoded");
        let assignment = Assignment::read(&bytes).expect("is sound");
        let input = input.clone();
        let report = move |bytes: Vec<u8>| input.take(&bytes).expect("reports fit the run");
        let share = assignment.start(Vec::new(), 0, report).expect("starts");
        shares.lock().expect("no panic").push(Some(share));
    }
    let send = (0..threads.len()).map(|at| {
        let shares = Arc::clone(&shares);
        Box::new(move |order: &[u8]| {
            let mut shares = shares.lock().expect("no panic");
            let Some(share) = &mut shares[at] else { return false };
            share.order(order).expect("orders fit the run");
            true
        }) as tacho_load::division::SendOrder
    });
    let send = send.collect();
    (division.start(send, on_loss).expect("starts"), shares, inputs)
}

#[test]
fn a_divided_run_counts_as_an_undivided_one() {
    let scene = Scene { threads: 3, ..Scene::pairs(30, QoS::AtLeastOnce) };
    let whole = FaultyBroker::start(Behaviour::default());
    let whole = run(scene.plan(whole.addr));
    let broker = FaultyBroker::start(Behaviour::default());
    let (engine, ..) = divided(scene.plan(broker.addr), &[1, 2]);
    let parts = collect(&engine);
    assert_eq!(parts.summary.end, End::Completed);
    assert_eq!(parts.phases, whole.phases);
    for outcome in [&whole, &parts] {
        let (totals, counted) = (outcome.only(), outcome.counted());
        assert_eq!(totals.delivery.sent, 3_000);
        assert_eq!(totals.delivery, whole.only().delivery);
        assert_eq!((counted.sent, counted.acked, counted.received), (3_600, 3_600, 3_600));
        assert_eq!((totals.e2e.len(), totals.ack.len()), (3_000, 3_000));
        assert_eq!((totals.violations.total(), totals.acknowledged_lost), (0, 0));
        assert_eq!((outcome.summary.connected, outcome.summary.subscribed), (60, 30));
        assert!(totals.drained);
        assert_eq!(totals.threads.len(), 3);
    }
    let totals = parts.only();
    assert!(whole.only().shares.is_empty());
    assert_eq!(totals.shares.len(), 2);
    let sum = |part: fn(&ShareTotals) -> u64| totals.shares.iter().map(part).sum::<u64>();
    assert_eq!(sum(|share| share.clients), 60);
    assert_eq!(sum(|share| share.counters.sent), totals.counters.sent);
    assert_eq!(sum(|share| share.bytes_out), totals.bytes_out);
    assert_eq!(sum(|share| share.send_delay.len()), totals.send_delay.len());
    assert_eq!(sum(|share| share.threads.len() as u64), 3);
}

#[test]
fn loss_and_duplicates_are_found_across_shares() {
    // One subscriber hears all publishers, so that most of them are on another share.
    let scene = || Scene {
        threads: 4,
        filters: (0..8).map(|_| "t/+".to_owned()).collect(),
        drain_ms: 2_000,
        ..Scene::pairs(8, QoS::AtLeastOnce)
    };
    let fault = |header: &tacho_load::payload::Header| match header.seq {
        _ if header.probe => Fault::None,
        30 => Fault::Drop,
        50 => Fault::Double,
        _ => Fault::None,
    };
    let broker = FaultyBroker::start(with_fault(fault));
    let whole = run(scene().plan(broker.addr));
    let broker = FaultyBroker::start(with_fault(fault));
    let (engine, ..) = divided(scene().plan(broker.addr), &[1, 1, 2]);
    let parts = collect(&engine);
    let (whole, parts) = (whole.only(), parts.only());
    assert_eq!(parts.delivery.expected, 8 * 8 * 100);
    assert_eq!(parts.delivery, whole.delivery);
    assert_eq!(parts.violations, whole.violations);
    assert_eq!(parts.acknowledged_lost, whole.acknowledged_lost);
    assert!(parts.acknowledged_lost >= 64, "{parts:?}");
    assert_eq!(parts.gaps.len(), whole.gaps.len());
}

#[test]
fn members_of_a_shared_group_on_several_shares_are_one_receiver() {
    let scene = Scene {
        threads: 3,
        filters: (0..6).map(|_| "$share/g/t/+".to_owned()).collect(),
        ..Scene::pairs(6, QoS::AtLeastOnce)
    };
    let broker = FaultyBroker::start(Behaviour::default());
    let (engine, ..) = divided(scene.plan(broker.addr), &[1, 1, 1]);
    let outcome = collect(&engine);
    let totals = outcome.only();
    assert_eq!((totals.delivery.expected, totals.delivery.lost), (600, 0));
    assert_eq!(totals.shared[0].members.len(), 6);
    assert_eq!(totals.shared[0].members.iter().map(|(_, count)| count).sum::<u64>(), 600);
}

#[test]
fn actions_and_reconnects_go_over_all_shares() {
    let scene = Scene { threads: 2, measure_ms: 2_000, ..Scene::pairs(10, QoS::AtLeastOnce) };
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = scene.plan(broker.addr);
    for group in &mut plan.groups {
        group.reconnect =
            Some(Reconnect { attempts_max: 10, first_ns: 1_000_000, longest_ns: 10_000_000 });
        group.session_expiry_s = 60;
    }
    plan.actions = vec![Action {
        after_ns: 300_000_000,
        over_ns: 0,
        group: 0,
        clients: 10,
        turn: 0,
        kind: ActionKind::Disconnect { clean: true },
    }];
    let (engine, ..) = divided(plan, &[1, 1]);
    let outcome = collect(&engine);
    assert_eq!(outcome.acted, [(0, 10)]);
    assert_eq!(outcome.only().actions[0].connected.len(), 10);
    assert_eq!(outcome.summary.end, End::Completed);
}

/// Runs until `phase` begins, kills a share there, and returns why the run ended.
fn killed_in(phase: PhaseKind) -> (End, Shares) {
    let scene = Scene { threads: 3, measure_ms: 60_000, ..Scene::pairs(9, QoS::AtLeastOnce) };
    // It never answers in the phases in which the share is to be killed.
    let behaviour = match phase {
        PhaseKind::Connect => Behaviour { connack: |_| None, ..Behaviour::default() },
        PhaseKind::Drain => Behaviour { mute: true, ..Behaviour::default() },
        _ => Behaviour::default(),
    };
    let broker = FaultyBroker::start(behaviour);
    let mut plan = scene.plan(broker.addr);
    if phase == PhaseKind::Drain {
        plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
        for phase in &mut plan.phases {
            if let Phase::Measure { duration_ns, .. } = phase {
                *duration_ns = 200_000_000;
            }
        }
    }
    let (engine, shares, inputs) = divided(plan, &[1, 1, 1]);
    for event in engine.events() {
        match event {
            Event::Phase { kind, .. } if kind == phase => {
                kill_second(&shares, &inputs);
            }
            Event::Finished(summary) => return (summary.end, shares),
            _ => {}
        }
    }
    panic!("the last event is the end");
}

#[test]
fn a_share_that_is_lost_in_any_phase_ends_the_run_and_all_others() {
    for phase in [
        PhaseKind::Connect,
        PhaseKind::Subscribe,
        PhaseKind::Probe,
        PhaseKind::WarmUp,
        PhaseKind::Measure,
        PhaseKind::Drain,
    ] {
        let (end, shares) = killed_in(phase);
        let End::ShareLost { name, threads, of, why } = &end else { panic!("{phase:?}: {end:?}") };
        assert_eq!((name.as_str(), *threads, *of), ("load-1", 1, 3));
        assert!(why.contains("broke"), "{why}");
        let shares = shares.lock().expect("no panic");
        let begun = Instant::now();
        while !shares.iter().flatten().all(Share::has_ended) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{phase:?}: the others go on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs to the end; the share at position 1 is killed when `phase` begins. Returns the totals.
fn goes_on_after(phase: PhaseKind, plan: Plan) -> Totals {
    let (engine, shares, inputs) = divided_until(plan, &[1, 1, 1], OnLoss::Continue);
    let (mut totals, mut lost) = (None, None);
    for event in engine.events() {
        match event {
            Event::Phase { kind, .. } if kind == phase => {
                kill_second(&shares, &inputs);
            }
            Event::ShareLost(part) => lost = Some(part),
            Event::Measured(measured) => totals = Some(*measured),
            Event::Finished(summary) => assert_eq!(summary.end, End::Completed, "{phase:?}"),
            _ => {}
        }
    }
    let lost = lost.expect("the loss is reported");
    assert_eq!((lost.share, lost.clients * 3, lost.why.contains("broke")), (1, lost.of, true));
    totals.expect("was measured")
}

#[test]
fn a_run_goes_on_without_a_share_that_is_lost_under_load() {
    for phase in [PhaseKind::WarmUp, PhaseKind::Measure] {
        let scene = Scene { threads: 3, warm_up_ms: 300, ..Scene::pairs(9, QoS::AtLeastOnce) };
        let broker = FaultyBroker::start(Behaviour::default());
        let totals = goes_on_after(phase, scene.plan(broker.addr));
        // Six pairs are left, and their books are whole; nothing is said about the others.
        assert_eq!((totals.delivery.sent, totals.delivery.expected), (600, 600), "{phase:?}");
        assert_eq!((totals.delivery.received, totals.delivery.lost), (600, 0), "{phase:?}");
        assert_eq!(totals.violations.total(), 0, "{phase:?}: {totals:?}");
        assert_eq!(totals.acknowledged_lost, 0, "{phase:?}");
        assert_eq!(totals.connected, 12, "{phase:?}");
    }
}

#[test]
fn streams_to_and_from_a_lost_share_break_no_promise() {
    // Every subscriber hears all publishers, those of the lost share included.
    let filters = |filter: &str| (0..9).map(|_| filter.to_owned()).collect();
    for filter in ["t/+", "$share/g/t/+"] {
        let scene =
            Scene { threads: 3, filters: filters(filter), ..Scene::pairs(9, QoS::AtLeastOnce) };
        let broker = FaultyBroker::start(Behaviour::default());
        let totals = goes_on_after(PhaseKind::Measure, scene.plan(broker.addr));
        let publishers = if filter.starts_with('$') { 0 } else { 6 };
        assert_eq!(totals.delivery.expected % (publishers * 100).max(1), 0, "{totals:?}");
        assert_eq!((totals.delivery.lost, totals.violations.total()), (0, 0), "{filter}");
        assert!(totals.counters.received > 300, "{filter}: {:?}", totals.counters);
    }
}

#[test]
fn an_order_or_a_report_that_does_not_fit_is_refused() {
    let broker = FaultyBroker::start(Behaviour::default());
    let plan = Scene { threads: 2, ..Scene::pairs(2, QoS::AtLeastOnce) }.plan(broker.addr);
    let processes = [("one".to_owned(), 1), ("other".to_owned(), 1)];
    let (division, inputs) = Division::new(plan, &processes).expect("can be divided");
    let assignment = division.assignment(0).expect("encodes");
    assert!(Assignment::read(&assignment[1..]).is_err());
    let share = Assignment::read(&assignment).expect("is sound");
    let mut share = share.start(Vec::new(), 0, |_| {}).expect("starts");
    for bytes in [&b""[..], &[9; 40], &[0, 200, 200, 200]] {
        assert!(share.order(bytes).is_err());
        assert!(inputs[0].take(bytes).is_err() || bytes.is_empty());
    }
}
