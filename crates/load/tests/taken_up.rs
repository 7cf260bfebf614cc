//! Runs whose controller is gone under load, and that another one takes up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tacho_codec::QoS;
use tacho_load::division::{
    Assignment, Division, LostThen, OnLoss, PastRun, SendOrder, Share, ShareInput,
};
use tacho_load::{End, Engine, Event, LoadBegun, PhaseKind, Plan};
use tacho_testkit::load::{Behaviour, FaultyBroker, Scene, collect};

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
    let (shares, division) = Shares::start(plan, 2);
    let lives = Arc::new(AtomicBool::new(true));
    let engine = division.start(shares.send(&lives), OnLoss::Continue).expect("starts");
    let (mut begun, mut measured) = (None, 0);
    for event in engine.events() {
        match event {
            Event::Loading(loading) => begun = Some(*loading),
            Event::Interval(interval) if interval.phase == PhaseKind::Measure => measured += 1,
            Event::Finished(summary) => panic!("it ended: {summary:?}"),
            _ => {}
        }
        if measured >= seconds && begun.is_some() && shares.are_loading() {
            break;
        }
    }
    // It is killed: nothing of its end reaches the shares.
    lives.store(false, Ordering::Relaxed);
    std::mem::forget(engine);
    (shares, begun.expect("the load is announced"))
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
