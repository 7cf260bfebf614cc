use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_bus::{Bus, LocalBus};
use tacho_load::division::{OnLoss, PairPlacement};
use tacho_load::null_broker::serve_null_broker;
use tacho_load::{End, Event};
use tacho_scenario::{Limits, Scenario, SourceText};

use super::*;
use crate::plan::{PlanOptions, plan};

/// An agent on a thread of this process, which ends when it is dropped.
struct WaitingAgent {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), AgentError>>>,
}

impl WaitingAgent {
    fn start(bus: &Arc<dyn Bus>, name: &str, change: impl FnOnce(&mut AgentSettings)) -> Self {
        let card = AgentCard::of_this_machine(name, Labels::new(), 1);
        let limits = AgentLimits {
            targets: vec!["loopback".parse().expect("a target")],
            time_max: Duration::from_secs(3_600),
            ..AgentLimits::default()
        };
        let mut settings = AgentSettings { card, limits };
        change(&mut settings);
        let agent = Agent::register(Arc::clone(bus), settings).expect("registers");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || agent.serve(&stopped, &|_| {}));
        Self { stop, thread: Some(thread) }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic").expect("the bus is there");
        }
    }
}

impl Drop for WaitingAgent {
    fn drop(&mut self) {
        self.end();
    }
}

fn bus() -> Arc<dyn Bus> {
    Arc::new(LocalBus::default())
}

/// Four pairs at 200 messages per second each, for `measure`.
fn pairs(measure: &str) -> tacho_load::Plan {
    let text = format!(
        "name = 'pairs'\n[phases]\nwarmup = '0s'\nmeasure = '{measure}'\ndrain = '5s'\n\
         [groups.pub]\nclients = 4\n[[groups.pub.publish]]\ntopic = 't/{{{{i}}}}'\nqos = 1\n\
         rate = {{ per_client = 200 }}\npayload = {{ size = 64 }}\n\
         [groups.sub]\nclients = 4\n[[groups.sub.subscribe]]\nfilter = 't/{{{{i}}}}'\nqos = 1\n"
    );
    planned(&text)
}

/// The plan of a scenario for a broker of its own.
fn planned(text: &str) -> tacho_load::Plan {
    let scenario = Scenario::parse(&SourceText::new("pairs", text), &[], Limits::NONE);
    let scenario = scenario.expect("a scenario");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("bound");
    drop(free);
    std::thread::spawn(move || serve_null_broker(address, None));
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let options = PlanOptions {
        targets: vec![address.into()],
        threads: 1,
        cpus: vec![],
        own_cores: false,
        run_id: 7,
    };
    plan(&scenario, &options).expect("a plan")
}

fn gather(bus: &Arc<dyn Bus>, wanted: &str) -> Result<Fleet, FleetError> {
    let wanted = [wanted.parse().expect("a number of agents")];
    Fleet::gather(Arc::clone(bus), &wanted, Duration::ZERO, &AtomicBool::new(false))
}

fn start(fleet: &Fleet, measure: &str) -> Result<DividedRun, FleetError> {
    fleet.start(pairs(measure), &AtomicBool::new(false))
}

fn refused(error: Result<DividedRun, FleetError>) -> String {
    error.map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn a_run_on_two_agents_is_a_run() {
    let bus = bus();
    let _agents = ["one", "two"].map(|name| WaitingAgent::start(&bus, name, |_| {}));
    let fleet = gather(&bus, "2").expect("are there");
    assert_eq!(fleet.threads(), 2);
    // Two runs: agents are free again after the first.
    for _ in 0..2 {
        let run = start(&fleet, "1s").expect("starts");
        let mut sent = 0;
        for event in run.engine().events() {
            match event {
                Event::Measured(totals) => {
                    sent += totals.delivery.sent;
                    assert_eq!((totals.delivery.received, totals.delivery.lost), (800, 0));
                    assert_eq!(totals.threads.len(), 2);
                }
                Event::Finished(summary) => assert_eq!(summary.end, End::Completed),
                _ => {}
            }
        }
        assert_eq!(sent, 800);
        let records = fleet.records(&run);
        assert!(records.iter().all(|of| of.clock.same && of.clock.error_us == 0), "{records:?}");
        let of: Vec<_> = records.iter().map(|of| (&*of.name, of.threads, of.clients)).collect();
        assert_eq!(of, [("one", 1, 4), ("two", 1, 4)]);
        let (out, back) = run.bytes();
        assert!(out > 1_000 && back > 1_000, "{out} {back}");
        drop(run);
        wait_free(&bus);
    }
}

/// Waits until no agent says that it works.
fn wait_free(bus: &Arc<dyn Bus>) {
    for _ in 0..500 {
        let cards = agents(&**bus).expect("the bus works");
        if cards.iter().all(|card| card.run.is_none()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("an agent is still at work");
}

#[test]
fn an_agent_does_only_what_its_operator_allows() {
    let bus = bus();
    type Change = fn(&mut AgentSettings);
    let cases: [(&str, Change, &str); 4] = [
        ("target", |settings| settings.limits.targets.clear(), "--allow-target"),
        ("rate", |settings| settings.limits.per_second_max = Some(100.0), "--rate-max"),
        ("clients", |settings| settings.limits.clients_max = Some(3), "--clients-max"),
        ("time", |settings| settings.limits.time_max = Duration::from_secs(1), "--time-max"),
    ];
    for (name, change, why) in cases {
        let _agent = WaitingAgent::start(&bus, name, change);
        let fleet = gather(&bus, "1").expect("is there");
        let error = refused(start(&fleet, "1s"));
        assert!(error.contains(&format!("agent {name} refuses")) && error.contains(why), "{error}");
    }
}

#[test]
fn an_agent_works_for_one_run_and_for_its_own_version() {
    let bus = bus();
    let _agent = WaitingAgent::start(&bus, "one", |_| {});
    let fleet = gather(&bus, "1").expect("is there");
    let other = gather(&bus, "1").expect("is still free");
    let run = start(&fleet, "60s").expect("starts");
    let error = refused(start(&other, "1s"));
    assert!(error.contains("works for run"), "{error}");
    drop(run);
    wait_free(&bus);
    let _old =
        WaitingAgent::start(&bus, "old", |settings| settings.card.version = "0.0.1".to_owned());
    let error = gather(&bus, "2").map(|_| ()).expect_err("too few").to_string();
    assert!(error.contains("has 1 free agents for a run that wants 2"), "{error}");
    assert!(error.contains("old has version 0.0.1"), "{error}");
}

#[test]
fn agents_are_chosen_by_their_labels() {
    let bus = bus();
    let label = |value: &'static str| {
        move |settings: &mut AgentSettings| {
            settings.card.labels.insert("region".to_owned(), value.to_owned());
        }
    };
    let _eu = WaitingAgent::start(&bus, "a", label("eu"));
    let _us = WaitingAgent::start(&bus, "b", label("us"));
    let names = |fleet: &Fleet| fleet.cards().map(|card| card.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&gather(&bus, "region=us:1").expect("is there")), ["b"]);
    let both = [
        Wanted { label: None, count: 1 },
        Wanted { label: Some(("region".to_owned(), "eu".to_owned())), count: 1 },
    ];
    let never = AtomicBool::new(false);
    let fleet = Fleet::gather(Arc::clone(&bus), &both, Duration::ZERO, &never);
    assert_eq!(names(&fleet.expect("are there")), ["a", "b"]);
    assert!(gather(&bus, "region=asia:1").is_err());
    for bad in ["", "0", "x", "eu:1", "a=b:0", "1001"] {
        assert!(bad.parse::<Wanted>().is_err(), "{bad}");
    }
}

#[test]
fn a_name_is_taken_once() {
    let bus = bus();
    let _agent = WaitingAgent::start(&bus, "one", |_| {});
    let card = AgentCard::of_this_machine("one", Labels::new(), 1);
    let settings = AgentSettings { card, limits: AgentLimits::default() };
    let error = Agent::register(Arc::clone(&bus), settings).map(|_| ()).expect_err("is taken");
    assert!(matches!(error, AgentError::NameTaken { .. }), "{error}");
}

#[test]
fn an_agent_that_stops_ends_the_run_and_says_why() {
    let bus = bus();
    let mut leaving = WaitingAgent::start(&bus, "leaving", |_| {});
    let _staying = WaitingAgent::start(&bus, "staying", |_| {});
    let fleet = gather(&bus, "2").expect("are there").on_loss(OnLoss::End);
    let run = start(&fleet, "60s").expect("starts");
    let mut end = None;
    for event in run.engine().events() {
        match event {
            Event::Phase { kind: tacho_load::PhaseKind::Measure, .. } => leaving.end(),
            Event::Finished(summary) => end = Some(summary.end),
            _ => {}
        }
    }
    let end = end.expect("an end").to_string();
    assert!(end.contains("agent leaving, which ran 1 of 2 generator threads"), "{end}");
    assert!(end.contains("was stopped"), "{end}");
    drop(run);
    // The other one is free again: it makes no load.
    wait_free(&bus);
}

#[test]
fn an_agent_whose_controller_is_gone_stops_its_load() {
    let bus = bus();
    let _agent = WaitingAgent::start(&bus, "one", |_| {});
    let fleet = gather(&bus, "1").expect("is there");
    let run = start(&fleet, "60s").expect("starts");
    for event in run.engine().events() {
        if matches!(event, Event::Phase { kind: tacho_load::PhaseKind::Measure, .. }) {
            break;
        }
    }
    drop(run);
    wait_free(&bus);
}

#[test]
fn clients_are_spread_as_asked_and_pairs_work_across_agents() {
    let bus = bus();
    let _agents = ["one", "two"].map(|name| WaitingAgent::start(&bus, name, |_| {}));
    let fleet = gather(&bus, "2").expect("are there");
    let fleet = fleet.spread(PairPlacement::Split, Weights::Equal);
    let run = start(&fleet, "1s").expect("starts");
    for event in run.engine().events() {
        if let Event::Measured(totals) = event {
            assert_eq!((totals.delivery.received, totals.delivery.lost), (800, 0));
            // What one sends the other receives, if not always before the window ends.
            let of = |share: usize| totals.shares[share].counters;
            assert_eq!(of(0).sent + of(1).sent, totals.counters.sent);
            for (from, to) in [(0, 1), (1, 0)] {
                let (sent, received) = (of(from).sent, of(to).received);
                assert!(sent.abs_diff(received) <= sent / 10, "{sent} sent, {received} received");
            }
        }
    }
    drop(run);
    wait_free(&bus);
    let fleet =
        gather(&bus, "2").expect("are there").spread(PairPlacement::Same, Weights::Calibrated);
    let error = refused(start(&fleet, "1s"));
    assert!(error.contains("agent one has no calibration: run 'tacho calibrate'"), "{error}");
}

#[test]
fn an_agent_that_has_gone_between_two_runs_is_named() {
    let bus = bus();
    let mut gone = WaitingAgent::start(&bus, "gone", |_| {});
    let fleet = gather(&bus, "1").expect("is there");
    gone.end();
    let error = refused(start(&fleet, "1s"));
    assert_eq!(error, "agent gone does not answer any more");
}

/// The protocol of many agents, not their load: run it with `--ignored --nocapture`.
#[test]
#[ignore = "300 agents have 2,000 threads"]
fn three_hundred_agents_make_one_run() {
    const AGENTS: usize = 300;
    let bus = bus();
    let names: Vec<String> = (0..AGENTS).map(|at| format!("a-{at:03}")).collect();
    let start = |name: &String| WaitingAgent::start(&bus, name, |_| {});
    let _agents: Vec<_> = names.iter().map(start).collect();
    let fleet = gather(&bus, "300").expect("are there");
    let text = "name = 'many'\n[phases]\nwarmup = '0s'\nmeasure = '5s'\ndrain = '10s'\n\
                [groups.pub]\nclients = 300\n[[groups.pub.publish]]\ntopic = 't/{{i}}'\nqos = 1\n\
                rate = { per_client = 2 }\npayload = { size = 64 }\n\
                [groups.sub]\nclients = 300\n[[groups.sub.subscribe]]\nfilter = 't/{{i}}'\n\
                qos = 1\n";
    let began = std::time::Instant::now();
    let run = fleet.start(planned(text), &AtomicBool::new(false)).expect("starts");
    let started = began.elapsed();
    for event in run.engine().events() {
        match event {
            Event::Measured(totals) => {
                assert_eq!((totals.delivery.received, totals.delivery.lost), (3_000, 0));
                assert_eq!(totals.shares.len(), AGENTS);
                let latest = totals.shares.iter().map(|share| share.send_delay.max()).max();
                println!("the latest message left {latest:?} us after it was due");
            }
            Event::Finished(summary) => assert_eq!(summary.end, End::Completed),
            _ => {}
        }
    }
    let (down, up) = run.bytes();
    let (seconds, agents) = (began.elapsed().as_secs_f64(), AGENTS as f64);
    println!("hired and prepared within {started:?}");
    let rate = |bytes: u64| bytes as f64 / agents / seconds;
    println!("{:.0} B/s down, {:.0} B/s up per agent", rate(down), rate(up));
}
