//! Runs whose controller is gone under load, and that another one takes up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tacho_codec::QoS;
use tacho_load::division::{
    Assignment, Division, LostThen, OnLoss, PastRun, SendOrder, Share, ShareInput,
};
use tacho_load::{End, Engine, Event, LoadBegun, Phase, PhaseKind, Plan};
use tacho_testkit::load::{Behaviour, FaultyBroker, Outcome, Scene, collect};

/// What shares have reported, and the controller that hears them now.
#[derive(Default)]
struct Reported {
    batches: Vec<VecDeque<Vec<u8>>>,
    inputs: Vec<ShareInput>,
}

/// Shares in this process, whose controllers may change.
struct Shares {
    plan: Plan,
    shares: Arc<Mutex<Vec<Share>>>,
    reported: Arc<Mutex<Reported>>,
}

impl Shares {
    fn start(plan: &Plan, count: usize) -> (Self, Division) {
        let (division, inputs) = divide(plan, count);
        let batches = vec![VecDeque::new(); count];
        let reported = Arc::new(Mutex::new(Reported { batches, inputs }));
        let shares: Arc<Mutex<Vec<Share>>> = Arc::default();
        for at in 0..count {
            let bytes = division.assignment(at).expect("encodes");
            let assignment = Assignment::read(&bytes).expect("is sound");
            let reported = Arc::clone(&reported);
            let report = move |bytes: Vec<u8>| {
                let mut reported = reported.lock().expect("no panic");
                reported.inputs[at].take(&bytes).expect("reports fit the run");
                reported.batches[at].push_back(bytes);
            };
            let share = assignment.start(Vec::new(), 0, report).expect("starts");
            shares.lock().expect("no panic").push(share);
        }
        (Self { plan: plan.clone(), shares, reported }, division)
    }

    /// Sends to all shares as long as the controller lives.
    fn send(&self, lives: &Arc<AtomicBool>) -> Vec<SendOrder> {
        let count = self.shares.lock().expect("no panic").len();
        let send = (0..count).map(|at| {
            let (shares, lives) = (Arc::clone(&self.shares), Arc::clone(lives));
            Box::new(move |order: &[u8]| {
                lives.load(Ordering::Relaxed)
                    && shares.lock().expect("no panic")[at].order(order).is_ok()
            }) as SendOrder
        });
        send.collect()
    }

    /// Another controller takes the run up.
    fn take_up(&self, begun: LoadBegun, lost: Vec<LostThen>) -> Engine {
        let mut reported = self.reported.lock().expect("no panic");
        let (division, inputs) = divide(&self.plan, reported.inputs.len());
        reported.inputs = inputs;
        let past = PastRun { begun, reports: reported.batches.clone(), lost };
        let send = self.send(&Arc::new(AtomicBool::new(true)));
        division.take_up(send, OnLoss::Continue, past).expect("fits")
    }

    fn are_loading(&self) -> bool {
        self.shares.lock().expect("no panic").iter().all(Share::is_loading)
    }
}

fn divide(plan: &Plan, count: usize) -> (Division, Vec<ShareInput>) {
    let processes: Vec<_> = (0..count).map(|at| (format!("load-{at}"), 1)).collect();
    Division::new(plan.clone(), &processes).expect("can be divided")
}

/// A run whose controller is gone after so many measured seconds.
fn abandoned(plan: &Plan, seconds: usize) -> (Shares, LoadBegun) {
    let mut measured = 0;
    abandoned_at(plan, |event, shares| {
        let is_second =
            |event: &Event| matches!(event, Event::Interval(of) if of.phase == PhaseKind::Measure);
        measured += usize::from(is_second(event));
        measured >= seconds && shares.are_loading()
    })
}

/// A run whose controller is gone once its load has begun and this holds of an event.
fn abandoned_at(plan: &Plan, mut ends: impl FnMut(&Event, &Shares) -> bool) -> (Shares, LoadBegun) {
    let (shares, division) = Shares::start(plan, 2);
    let lives = Arc::new(AtomicBool::new(true));
    let engine = division.start(shares.send(&lives), OnLoss::Continue).expect("starts");
    let mut begun = None;
    for event in engine.events() {
        let is_over = ends(&event, &shares);
        match event {
            Event::Loading(loading) => begun = Some(*loading),
            Event::Finished(summary) => panic!("it ended: {:?}", summary.end),
            _ => {}
        }
        if is_over && begun.is_some() {
            break;
        }
    }
    // It is killed: nothing of its end reaches the shares.
    lives.store(false, Ordering::Relaxed);
    std::mem::forget(engine);
    (shares, begun.expect("the load is announced"))
}

/// All of 200 measured messages are counted once, and so is every second.
#[track_caller]
fn assert_counted(outcome: &Outcome) {
    let totals = outcome.only();
    assert_eq!(outcome.summary.end, End::Completed);
    let delivery = totals.delivery;
    assert_eq!((delivery.sent, delivery.received, delivery.lost), (200, 200, 0), "{delivery:?}");
    assert_eq!((totals.e2e.len(), totals.violations.total()), (200, 0));
    assert!(totals.drained);
    let seconds = outcome.intervals.iter().map(|of| (of.phase_index, of.start_ns));
    let seconds: Vec<_> = seconds.collect();
    assert!(seconds.is_sorted_by(|one, next| one < next), "{seconds:?}");
}

fn plan(broker: &FaultyBroker, seconds: u64) -> Plan {
    let scene = Scene { threads: 2, warm_up_ms: 300, ..Scene::pairs(8, QoS::AtLeastOnce) };
    Scene { measure_ms: seconds * 1_000, ..scene }.plan(broker.addr)
}

#[test]
fn a_run_that_is_taken_up_counts_everything_once() {
    let broker = FaultyBroker::start(Behaviour::default());
    let (shares, begun) = abandoned(&plan(&broker, 4), 2);
    let outcome = collect(&shares.take_up(begun, Vec::new()));
    assert_eq!(outcome.summary.end, End::Completed);
    assert_eq!((outcome.summary.connected, outcome.summary.subscribed), (16, 8));
    assert_eq!(
        outcome.phases,
        ["connect", "subscribe", "probe", "warm-up", "measure", "drain", "disconnect"]
    );
    let totals = outcome.only();
    let rate = totals.delivery.sent / 4;
    assert!(rate > 0 && totals.delivery.sent == 4 * rate, "{:?}", totals.delivery);
    assert_eq!((totals.delivery.received, totals.delivery.lost), (4 * rate, 0));
    assert_eq!((totals.e2e.len(), totals.ack.len()), (4 * rate, 4 * rate));
    assert!(totals.drained && totals.violations.total() == 0);
    // Each second once, with both threads.
    let seconds = outcome.intervals.iter().filter(|of| of.phase == PhaseKind::Measure);
    let sent: Vec<u64> = seconds.map(|of| of.counters.sent).collect();
    assert_eq!((sent.len(), sent.iter().sum::<u64>()), (4, 4 * rate));
}

#[test]
fn a_run_can_be_taken_up_after_its_load_has_ended() {
    let broker = FaultyBroker::start(Behaviour::default());
    let (shares, begun) = abandoned(&plan(&broker, 1), 0);
    std::thread::sleep(Duration::from_millis(2_000));
    let outcome = collect(&shares.take_up(begun, Vec::new()));
    let totals = outcome.only();
    assert_eq!(outcome.summary.end, End::Completed);
    assert_eq!(totals.delivery.received, totals.delivery.sent);
    assert_eq!((totals.len_ns, totals.delivery.lost), (1_000_000_000, 0));
    assert_eq!(totals.delivery.sent, totals.e2e.len());
}

/// The broker stands still twice while the last messages are on their way.
fn late_broker() -> FaultyBroker {
    let mut heard = 0;
    let hears = Box::new(move |_: &str, _: QoS| {
        heard += 1;
        match heard {
            240 => std::thread::sleep(Duration::from_millis(600)),
            250 => std::thread::sleep(Duration::from_millis(2_500)),
            _ => {}
        }
    });
    FaultyBroker::start(Behaviour { hears, ..Behaviour::default() })
}

#[test]
fn a_run_that_is_taken_up_in_its_drain_keeps_what_came_late() {
    let broker = late_broker();
    let scene = Scene { threads: 2, warm_up_ms: 300, ..Scene::pairs(2, QoS::AtLeastOnce) };
    let (shares, begun) = abandoned_at(
        &scene.plan(broker.addr),
        |event, _| matches!(event, Event::Interval(of) if of.phase == PhaseKind::Drain),
    );
    let outcome = collect(&shares.take_up(begun, Vec::new()));
    assert_counted(&outcome);
    assert_eq!(
        outcome.phases,
        ["connect", "subscribe", "probe", "warm-up", "measure", "drain", "disconnect"]
    );
    let late = outcome.intervals.iter().filter(|of| of.phase == PhaseKind::Drain);
    let late: Vec<u64> = late.map(|of| of.e2e.len()).collect();
    assert!(late.len() >= 3 && late[0] > 0 && late[1..].iter().sum::<u64>() > 0, "{late:?}");
}

#[test]
fn books_that_were_closed_are_used_by_the_next_controller() {
    let broker = FaultyBroker::start(Behaviour::default());
    let scene = Scene { threads: 2, warm_up_ms: 300, ..Scene::pairs(2, QoS::AtLeastOnce) };
    let mut plan = scene.plan(broker.addr);
    plan.groups[0].disconnects_per_s = Some(0.4);
    let (shares, begun) = abandoned_at(&plan, |event, _| {
        matches!(event, Event::Phase { kind: PhaseKind::Disconnect, .. })
    });
    assert_counted(&collect(&shares.take_up(begun, Vec::new())));
}

#[test]
fn a_run_can_be_taken_up_while_absent_clients_return() {
    let broker = FaultyBroker::start(Behaviour::default());
    let mut plan = Scene { threads: 2, ..Scene::pairs(2, QoS::AtLeastOnce) }.plan(broker.addr);
    for group in &mut plan.groups {
        group.session_expiry_s = 60;
    }
    plan.groups[1].absent = true;
    plan.groups[1].connects_per_s = Some(0.4);
    plan.phases.retain(|phase| !matches!(phase, Phase::WarmUp { .. }));
    plan.phases.insert(3, Phase::Offline);
    plan.phases.insert(5, Phase::Resume { timeout_ns: 30_000_000_000 });
    let (shares, begun) = abandoned_at(
        &plan,
        |event, _| matches!(event, Event::Interval(of) if of.phase == PhaseKind::Resume),
    );
    let outcome = collect(&shares.take_up(begun, Vec::new()));
    assert_counted(&outcome);
    assert_eq!(outcome.phases[5..], ["resume", "drain", "disconnect"]);
    let back = outcome.intervals.iter().filter(|of| of.phase == PhaseKind::Resume);
    assert!(back.map(|of| of.e2e.len()).sum::<u64>() >= 100, "{:?}", outcome.intervals);
}

#[test]
fn a_share_that_was_lost_before_stays_lost() {
    let broker = FaultyBroker::start(Behaviour::default());
    let (shares, begun) = abandoned(&plan(&broker, 2), 1);
    let at_ns = begun.phases.last().expect("has phases").at_ns + 500_000_000;
    let lost = LostThen { share: 1, at_ns, why: "it was gone".to_owned() };
    let outcome = collect(&shares.take_up(begun, vec![lost]));
    assert_eq!(outcome.summary.end, End::Completed);
    let [lost] = &outcome.lost[..] else { panic!("{:?}", outcome.lost) };
    assert_eq!((lost.share, lost.at_ns, &*lost.why), (1, at_ns, "it was gone"));
    let totals = outcome.only();
    assert_eq!((totals.delivery.received, totals.connected), (totals.delivery.sent, 8));
}

#[test]
fn what_does_not_fit_the_plan_is_refused() {
    let broker = FaultyBroker::start(Behaviour::default());
    let plan = plan(&broker, 1);
    let (shares, begun) = abandoned(&plan, 0);
    let refuse = |change: fn(&mut PastRun)| {
        let (division, _) = divide(&plan, 2);
        let reports = vec![VecDeque::new(); 2];
        let mut past = PastRun { begun: begun.clone(), reports, lost: Vec::new() };
        change(&mut past);
        let send = shares.send(&Arc::new(AtomicBool::new(false)));
        division.take_up(send, OnLoss::End, past).map(|_| ()).expect_err("does not fit")
    };
    refuse(|past| past.reports.truncate(1));
    refuse(|past| past.begun.phases.truncate(1));
    refuse(|past| past.begun.phases[0].kind = PhaseKind::Drain);
    let mut twice = plan.clone();
    twice.phases.insert(5, plan.phases[4]);
    let (division, _) = divide(&twice, 2);
    let reports = vec![VecDeque::new(); 2];
    let past = PastRun { begun: begun.clone(), reports, lost: Vec::new() };
    let send = shares.send(&Arc::new(AtomicBool::new(false)));
    assert!(division.take_up(send, OnLoss::End, past).is_err(), "it has two loads");
    refuse(|past| past.lost.push(LostThen { share: 2, at_ns: 0, why: String::new() }));
    // What is damaged ends the run as a failure of its own.
    let (division, _) = divide(&plan, 2);
    let reports = vec![VecDeque::from([vec![9; 40]]), VecDeque::new()];
    let send = shares.send(&Arc::new(AtomicBool::new(false)));
    let past = PastRun { begun, reports, lost: Vec::new() };
    let engine = division.take_up(send, OnLoss::End, past).expect("is read as the run begins");
    let ended = engine.events().find_map(|event| match event {
        Event::Finished(summary) => Some(summary.end),
        _ => None,
    });
    assert!(matches!(ended, Some(End::Thread(_))), "{ended:?}");
}
