//! Plans of publishers and subscribers, and what came of running them.

use std::net::SocketAddr;

use tacho_codec::{QoS, Version};
use tacho_load::{
    CatchUp, Client, Counters, Engine, Event, Failure, Group, IntervalSnapshot, LostPart, Pace,
    Payload, Phase, PhaseKind, PhasePolicy, Plan, PublishBlock, Rate, Scale, Stream, Subscription,
    Summary, Totals,
};

use crate::wait::PATIENCE;

/// A plan of one publish block: `publishers` streams to topics `t/0..`, paced by `pace`.
pub struct Scene {
    pub publishers: usize,
    pub filters: Vec<String>,
    pub publish_qos: QoS,
    pub subscribe_qos: QoS,
    pub pace: Pace,
    pub version: Version,
    pub threads: usize,
    pub payload: Payload,
    pub inflight_max: u16,
    pub warm_up_ms: u64,
    pub measure_ms: u64,
    pub drain_ms: u64,
}

pub const fn open(per_second: u64) -> Pace {
    Pace::Open {
        rate: Rate { messages: per_second, per_ns: 1_000_000_000 },
        phase: PhasePolicy::Uniform,
        catch_up: CatchUp::CatchUp,
    }
}

impl Scene {
    /// `pairs` publishers at 100 messages per second with a subscriber each.
    pub fn pairs(pairs: usize, qos: QoS) -> Self {
        Self {
            publishers: pairs,
            filters: (0..pairs).map(|i| format!("t/{i}")).collect(),
            publish_qos: qos,
            subscribe_qos: QoS::ExactlyOnce,
            pace: open(100),
            version: Version::V5,
            threads: 1,
            payload: Payload::Random { bytes: 128 },
            inflight_max: 100,
            warm_up_ms: 200,
            measure_ms: 1_000,
            // The drain ends as soon as everything has arrived; busy machines need time.
            drain_ms: 60_000,
        }
    }

    pub fn plan(&self, target: SocketAddr) -> Plan {
        let stream = |i: usize| Stream::new(format!("t/{i}"), 0);
        let publishers = (0..self.publishers)
            .map(|i| Client {
                id: format!("pub-{i}"),
                streams: vec![stream(i)],
                ..Client::default()
            })
            .collect();
        let subscribers = (0..)
            .zip(&self.filters)
            .map(|(i, filter): (usize, _)| Client {
                id: format!("sub-{i}"),
                subscriptions: vec![Subscription::new(filter, self.subscribe_qos)],
                ..Client::default()
            })
            .collect();
        let group = |name: &str, publish: Vec<PublishBlock>, clients: Vec<Client>| Group {
            name: name.into(),
            version: self.version,
            inflight_max: self.inflight_max,
            publish,
            clients,
            ..Group::default()
        };
        let block = PublishBlock {
            qos: self.publish_qos,
            retain: false,
            payload: self.payload.clone(),
            pace: self.pace.clone(),
        };
        let ms = 1_000_000;
        let mut plan = Plan {
            run_id: 0x00AB_CDEF,
            seed: 42,
            threads: self.threads,
            targets: vec![target.into()],
            groups: vec![
                group("publishers", vec![block], publishers),
                group("subscribers", Vec::new(), subscribers),
            ],
            phases: vec![
                Phase::Connect { timeout_ns: 60_000 * ms },
                Phase::Subscribe { timeout_ns: 60_000 * ms },
                Phase::Probe { timeout_ns: 60_000 * ms },
                Phase::WarmUp { duration_ns: self.warm_up_ms * ms, scale: Scale::ONE },
                Phase::Measure { duration_ns: self.measure_ms * ms, scale: Scale::ONE },
                Phase::Drain { timeout_ns: self.drain_ms * ms },
                Phase::Disconnect,
            ],
            ..Plan::default()
        };
        plan.routes = plan.derive_routes();
        plan
    }
}

/// The reports of a run.
#[derive(Debug)]
pub struct Outcome {
    pub phases: Vec<&'static str>,
    pub intervals: Vec<IntervalSnapshot>,
    /// By the number of the client.
    pub failures: Vec<(u32, Failure)>,
    pub interruptions: Vec<(u32, Failure)>,
    /// Started actions, with their affected clients.
    pub acted: Vec<(usize, u64)>,
    /// Lost parts of a divided run.
    pub lost: Vec<LostPart>,
    pub totals: Vec<Totals>,
    pub summary: Summary,
}

impl Outcome {
    pub fn only(&self) -> &Totals {
        assert_eq!(self.totals.len(), 1, "{self:?}");
        &self.totals[0]
    }

    /// Sum of all counters of a run without warm-up. Counters go by the time of the event: on a
    /// busy machine the last messages of the window are sent, or acknowledged, only during the
    /// drain.
    pub fn counted(&self) -> Counters {
        let (mut window, mut all) = (Counters::default(), Counters::default());
        for interval in &self.intervals {
            all.add(&interval.counters);
            if interval.phase == PhaseKind::Measure {
                window.add(&interval.counters);
            }
        }
        assert_eq!(self.only().counters, window, "the totals are what the window's intervals say");
        all
    }
}

/// Runs a plan to its end.
pub fn run(plan: Plan) -> Outcome {
    collect(&Engine::start(plan).expect("the plan is good"))
}

pub fn collect(engine: &Engine) -> Outcome {
    let (mut phases, mut intervals) = (Vec::new(), Vec::new());
    let (mut failures, mut totals) = (Vec::new(), Vec::new());
    let (mut interruptions, mut acted, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match engine.next_event(2 * PATIENCE).expect("events until the end") {
            Event::Phase { kind, .. } => phases.push(kind.name()),
            Event::Interval(interval) => intervals.push(*interval),
            Event::Failed { client, why } => failures.push((client.number(), why)),
            Event::Interrupted { client, why } => interruptions.push((client.number(), why)),
            Event::ActionStarted { action, clients, .. } => acted.push((action, clients)),
            Event::ShareLost(part) => lost.push(*part),
            Event::Loading(_) | Event::TakenUp { .. } => {}
            Event::Measured(measured) => totals.push(*measured),
            Event::Finished(summary) => {
                return Outcome {
                    phases,
                    intervals,
                    failures,
                    interruptions,
                    acted,
                    lost,
                    totals,
                    summary: *summary,
                };
            }
        }
    }
}
