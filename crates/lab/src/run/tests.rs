//! The collector against made-up event streams, and the files that come out of it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use tacho_load::{
    ClientIndex, ConnectCause, ConnectError, Counters, Delivery, End, Event, Failure, Gap,
    IntervalSnapshot, Outcomes, PhaseKind, Receiver, SharedTotals, StreamIndex, Summary,
    TargetTotals, ThreadUsage, Totals, Violations,
};
use tacho_monitor::{CpuSource, ProcessSample};

use super::collector::Collector;
use super::course::Again;
use super::facts::RunFacts;
use super::names::Names;
use super::planned_actions::PlannedActions;
use crate::probe::Samples;
use tacho_record::{
    Cause, Check, DisturbanceLimits, LostRange, NoOwnCore, Placement, Remark, RunRecord,
    TargetKind, TargetRecord, Verdict,
};
use tacho_report::{Lang, ReportData, html, summary_text};
use tacho_scenario::threshold::{Threshold, Thresholds};

const SECOND_NS: u64 = 1_000_000_000;
const RATE: u64 = 10_000;
const SECONDS: u64 = 9;

fn facts() -> RunFacts {
    RunFacts {
        scenario: "symmetric <b>".to_owned(),
        name: "20260101-000000-symmetric".to_owned(),
        description: "One & one.".to_owned(),
        description_zh: String::new(),
        started_at: "2026-01-01T00:00:00.000Z".to_owned(),
        targets: vec![TargetRecord {
            name: String::new(),
            kind: TargetKind::BuiltIn,
            broker: "mqtt://127.0.0.1:1883".to_owned(),
            version: "5".to_owned(),
            command: Some("tacho broker".to_owned()),
            pid: Some(7),
            ..TargetRecord::default()
        }],
        placement: Placement {
            one_machine: true,
            broker_cores: vec![0],
            generator_cores: vec![1],
            generator_threads: 1,
            timing: tacho_record::Timing::Auto,
            spin_budget_percent: Some(95),
            no_own_core: None,
            background_cores: vec![],
            batched_writes: None,
        },
        vars: BTreeMap::new(),
        seed: 1,
        notes: vec![],
        thresholds: Thresholds::default(),
        clients: 2000,
        offered_out_per_s: RATE as f64,
        offered_in_per_s: RATE as f64,
        names: Names::default(),
        actions: PlannedActions::default(),
        concerned: vec![],
        asking: vec![],
        headlines: vec![],
        closed: false,
        acknowledged: true,
    }
}

fn histogram(value_us: u64, count: u64) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits");
    histogram.record_n(value_us, count).expect("grows");
    histogram
}

/// The broker after `seconds`, with a quarter of a core used.
fn samples(seconds: u64) -> Samples {
    Samples {
        broker: Some(ProcessSample {
            at_ns: seconds * SECOND_NS,
            cpu_ns: seconds * SECOND_NS / 4,
            cpu_source: CpuSource::Schedstat,
            rss_bytes: 10 << 20,
            rss_max_bytes: 10 << 20,
            threads: Vec::new(),
            open_fds: None,
            cores_allowed: vec![0],
        }),
        ..Samples::default()
    }
}

fn interval(second: u64, latency_us: u64, received: u64) -> Event {
    Event::Interval(Box::new(snapshot(second, latency_us, received)))
}

/// A second of the measured window in which `received` messages arrive.
pub(super) fn snapshot(second: u64, latency_us: u64, received: u64) -> IntervalSnapshot {
    IntervalSnapshot {
        phase: PhaseKind::Measure,
        phase_index: 4,
        start_ns: second * SECOND_NS,
        len_ns: SECOND_NS,
        connected: 2000,
        counters: Counters {
            offered: RATE,
            attempted: RATE,
            sent: RATE,
            acked: RATE,
            received,
            ..Counters::default()
        },
        e2e: histogram(latency_us, received),
        service: histogram(latency_us / 2, received),
        send_delay: histogram(50, RATE),
        ack: histogram(300, RATE),
        ack_failed: histogram(0, 0),
        connect: Outcomes { ok: 7, ok_us: histogram(900, 7), ..Outcomes::default() },
        subscribe: Outcomes::default(),
        logins: None,
        bytes_in: 1_000,
        bytes_out: 2_000,
        rtt: histogram(80, 10),
        groups: Vec::new(),
        targets: Vec::new(),
        shares: Vec::new(),
        threads: vec![a_thread(1)],
        actions: Vec::new(),
    }
}

/// A generator thread that was busy for a fifth of so many seconds.
fn a_thread(seconds: u64) -> ThreadUsage {
    let wall_ns = seconds * SECOND_NS;
    ThreadUsage { cpu: Some(1), wall_ns, cpu_ns: wall_ns / 5, ..ThreadUsage::default() }
}

fn totals() -> Totals {
    let messages = RATE * SECONDS;
    Totals {
        phase_index: 4,
        start_ns: 0,
        len_ns: SECONDS * SECOND_NS,
        counters: Counters {
            offered: messages,
            attempted: messages,
            sent: messages,
            acked: messages,
            received: messages,
            ..Counters::default()
        },
        delivery: Delivery {
            sent: messages,
            expected: messages,
            received: messages,
            ..Delivery::default()
        },
        outside: Delivery::default(),
        violations: Violations::default(),
        acknowledged_lost: 0,
        acknowledged_pending: 0,
        gaps: Vec::new(),
        gaps_cut: 0,
        e2e: histogram(400, messages),
        service: histogram(350, messages),
        send_delay: histogram(50, messages),
        ack: histogram(300, messages),
        ack_failed: histogram(0, 0),
        connect: Outcomes::default(),
        subscribe: Outcomes::default(),
        logins: None,
        connected: 2000,
        bytes_in: 0,
        bytes_out: 0,
        rtt: histogram(80, 10 * SECONDS),
        groups: Vec::new(),
        targets: ["one", "other"].into_iter().map(half).collect(),
        shared: vec![SharedTotals {
            name: "g".into(),
            filter: "t".into(),
            members: ClientIndex::all().zip([3, 1]).collect(),
        }],
        received_min_max: Some((90, 90)),
        actions: Vec::new(),
        drained: true,
        shares: Vec::new(),
        threads: vec![a_thread(SECONDS)],
    }
}

/// A broker that carried half of it.
fn half(name: &str) -> TargetTotals {
    let counters =
        Counters { acked: RATE * SECONDS / 2, received: RATE * SECONDS / 2, ..Counters::default() };
    TargetTotals {
        name: name.into(),
        clients: 1000,
        counters,
        delivery: Delivery::default(),
        e2e: histogram(0, 0),
        rtt: histogram(0, 0),
    }
}

fn finished(end: End) -> Event {
    Event::Finished(Box::new(Summary {
        end,
        connected: 2000,
        connect_span_ns: 4 * SECOND_NS,
        rtt_failure: None,
        subscribed: 1000,
        failures: 0,
        connect: histogram(900, 2000),
        handshake: histogram(0, 0),
        suback: histogram(500, 1000),
    }))
}

fn phase(kind: PhaseKind, index: usize) -> Event {
    Event::Phase { kind, index, at_ns: 0 }
}

/// Plays a run; `latency` and `received` by second, then `totals`.
fn play(
    facts: RunFacts,
    latency: impl Fn(u64) -> u64,
    received: impl Fn(u64) -> u64,
    totals: Option<Totals>,
    failures: Vec<Failure>,
    aborted: Option<&str>,
) -> (RunRecord, String) {
    let mut collector = Collector::new(facts, 0, samples(0), DisturbanceLimits::default());
    for why in failures {
        assert!(
            collector
                .handle(Event::Failed { client: ClientIndex::new(3), why }, samples(0))
                .is_none()
        );
    }
    collector.handle(phase(PhaseKind::Measure, 4), samples(0));
    for second in 0..SECONDS {
        let event = interval(second, latency(second), received(second));
        assert!(Collector::wants_samples(&event));
        let row = collector.handle(event, samples(second + 1)).expect("completes a row");
        assert_eq!((row.broker_cpu_percent, row.generator_cpu_percent), (Some(25.0), 20.0));
        assert_eq!((row.connect_ok_per_s, row.connect_mean_us), (7.0, Some(900.0)));
        assert_eq!((row.connect_p99_us, row.subscribe_mean_us), (None, None));
        assert_eq!((row.bytes_in_per_s, row.bytes_out_per_s), (1_000.0, 2_000.0));
        assert_eq!((row.rtt_p50_us, row.rtt_p99_us, row.rtt_max_us), (Some(80), None, Some(80)));
    }
    collector.handle(phase(PhaseKind::Drain, 5), samples(SECONDS));
    if let Some(totals) = totals {
        collector.handle(Event::Measured(Box::new(totals)), samples(SECONDS + 1));
    }
    collector.handle(finished(End::Completed), Samples::default());
    let aborted = aborted.map(|why| Cause::Message(why.to_owned()));
    let (mut record, rows, curves, _) = collector.finish(12.5, aborted);
    tacho_report::tell(&mut record);
    let environment = crate::environment::read(record.placement.clone(), "");
    let page = html(&ReportData {
        record: &record,
        rows: &rows,
        curves: &curves,
        hosts: &[],
        brokers: &[],
        environment: &environment,
        lang: Lang::En,
    });
    (record, page)
}

fn verdict_of(totals: Totals) -> (Verdict, String) {
    let (record, _) = play(facts(), |_| 400, |_| RATE, Some(totals), vec![], None);
    (record.verdict, record.reasons.join("; "))
}

#[test]
fn a_good_run() {
    let (record, page) = play(facts(), |_| 400, |_| RATE, Some(totals()), vec![], None);
    assert_eq!((record.verdict, record.reasons.as_slice()), (Verdict::Ok, &[][..]));
    let step = &record.steps[0];
    assert_eq!(step.tps, 20_000.0);
    assert_eq!(step.offered_in_per_s, 10_000.0);
    assert_eq!(step.latency_us.p99, Some(400));
    assert_eq!(step.broker_cpu_percent, Some(25.0));
    // 9 s x 25 % over 180,000 messages.
    assert_eq!(step.broker_cpu_us_per_message, Some(12.5));
    assert_eq!(step.generator_cpu_percent, 20.0);
    assert_eq!(step.host_cpu_percent, None);
    assert_eq!(step.broker_rss_bytes, Some(10 << 20));
    assert_eq!((record.clients_connected, record.connect_us.p50), (2000, Some(900)));
    assert_eq!(record.connect_per_s, Some(500.0));
    assert_eq!((step.connect_per_s, step.connect_s), (Some(500.0), Some(4.0)));
    let step = &record.steps[0];
    assert_eq!((step.rtt_us.p50, step.shared[0].gini), (Some(80), 0.25));
    assert_eq!((&*step.shared[0].filter, step.shared[0].received_max), ("$share/g/t", 3));
    let parts: Vec<_> = step.targets.iter().map(|part| (&*part.name, part.tps)).collect();
    assert_eq!(parts, [("one", RATE as f64), ("other", RATE as f64)]);
    assert!(record.notes[0].contains("One-machine run"));

    let text = summary_text(&record);
    for words in [
        "TPS (in + out)",
        "20,000 msg/s",
        "400 µs",
        "verdict: ok",
        "One-machine",
        "25.0 %",
        "10.0 MiB",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    for words in
        ["symmetric &lt;b&gt;", "One &amp; one.", "<svg", "Latency by percentile", "99.9 %"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("symmetric <b>"));
}

#[test]
fn the_summary_has_the_documented_form() {
    let (record, _) = play(facts(), |_| 400, |_| RATE, Some(totals()), vec![], None);
    let json: serde_json::Value = serde_json::to_value(&record).expect("serialises");
    for name in ["schema_version", "scenario", "name", "description", "verdict", "steps"] {
        assert!(!json[name].is_null(), "{name}");
    }
    assert_eq!(json["verdict"], "ok");
    let step = &json["steps"][0];
    for name in [
        "offered_in_per_s",
        "achieved_in_per_s",
        "achieved_out_per_s",
        "tps",
        "sent",
        "received",
        "lost",
        "duplicates",
        "out_of_order",
        "broker_cpu_percent",
        "broker_rss_bytes",
        "generator_cpu_percent",
    ] {
        assert!(step[name].is_number(), "{name}");
    }
    for name in ["broker_cores_busy_percent", "host_cpu_percent", "host_memory_percent"] {
        assert!(step.get(name).is_some(), "{name}");
    }
    for latency in ["latency_us", "service_us", "send_delay_us"] {
        for name in ["mean", "p50", "p90", "p95", "p99", "p999", "max"] {
            assert!(step[latency][name].is_number(), "{latency}.{name}");
        }
    }
    let back: RunRecord = serde_json::from_value(json).expect("reads back");
    assert_eq!(back, record);
}

#[test]
fn a_broken_contract_outranks_everything_but_an_abort() {
    let mut broken = totals();
    broken.violations.lost = 2;
    broken.delivery.lost = 2;
    broken.gaps = vec![
        Gap {
            stream: StreamIndex::new(7),
            receiver: Receiver::Client(ClientIndex::new(9)),
            first_seq: 40,
            count: 2,
            span: 2,
            declared: false,
            acknowledged: 2,
        };
        LostRange::MAX + 1
    ];
    broken.threads[0].cpu_ns = broken.threads[0].wall_ns;
    let (verdict, reasons) = verdict_of(broken.clone());
    assert_eq!(verdict, Verdict::QosViolation);
    assert!(
        reasons.contains("2 lost") && reasons.contains("busiest generator thread"),
        "{reasons}"
    );
    let (record, _) = play(facts(), |_| 400, |_| RATE, Some(broken), vec![], Some("stopped"));
    assert_eq!(record.verdict, Verdict::Aborted);
}

#[test]
fn acknowledged_and_lost_is_a_breach_and_acknowledged_and_late_is_not() {
    let mut lost = totals();
    (lost.acknowledged_lost, lost.violations.lost) = (3, 3);
    let (verdict, reasons) = verdict_of(lost);
    assert_eq!(verdict, Verdict::QosViolation);
    assert!(
        reasons.contains("3 deliveries of messages that the broker had acknowledged never came"),
        "{reasons}"
    );
    let mut late = totals();
    late.acknowledged_pending = 3;
    let (verdict, reasons) = verdict_of(late);
    assert_eq!(verdict, Verdict::NotSustained);
    assert!(reasons.contains("3 deliveries of acknowledged messages had not come"), "{reasons}");
}

#[test]
fn a_broker_that_is_killed_is_not_judged_by_its_rates() {
    let mut halved = totals();
    halved.counters.acked /= 2;
    halved.counters.received /= 2;
    halved.send_delay = histogram(90_000, RATE);
    let mut collector = Collector::new(facts(), 0, samples(0), DisturbanceLimits::default());
    collector.handle(phase(PhaseKind::Measure, 4), samples(0));
    collector.handle(interval(0, 400, RATE), samples(1));
    collector.handle(Event::Measured(Box::new(halved.clone())), samples(2));
    let why = Failure::SessionLost;
    collector.handle(Event::Failed { client: ClientIndex::new(3), why }, samples(2));
    collector.restarted(
        "",
        &[Again { at_ns: SECOND_NS / 2, serving_ns: 12_340_000, ..Again::default() }],
    );
    let (record, ..) = collector.finish(3.0, None);
    let step = &record.steps[0];
    assert_eq!((step.kills, step.sessions_lost), (1, 1));
    // A lost session is a failure of the broker's, rates are not.
    assert_eq!(step.verdict, Verdict::Ok, "{:?}", record.reasons);
    assert_eq!(record.verdict, Verdict::NotSustained);
    let restart = &record.restarts[0];
    assert_eq!((restart.phase.as_str(), restart.at_s, restart.serving_ms), ("measure", 0.5, 12.3));
    let phase = &record.phases[0];
    assert_eq!((phase.name.as_str(), phase.length_s, phase.received), ("measure", 3.0, RATE));
    assert!(record.remarks.contains(&Remark::BrokerKilled));
    assert_eq!(verdict_of(halved).0, Verdict::GeneratorBound);
}

#[test]
fn losses_within_the_contract_are_no_violation() {
    let mut qos0 = totals();
    qos0.delivery.lost = 5;
    assert_eq!(verdict_of(qos0).0, Verdict::Ok);
}

#[test]
fn a_generator_at_its_limit_makes_the_run_invalid() {
    let mut busy = totals();
    busy.threads[0].cpu_ns = busy.threads[0].wall_ns * 85 / 100;
    assert_eq!(verdict_of(busy).0, Verdict::GeneratorBound);

    let mut late = totals();
    late.send_delay = histogram(1500, RATE);
    let (verdict, reasons) = verdict_of(late);
    assert_eq!(verdict, Verdict::GeneratorBound);
    assert!(reasons.contains("send delay p99"), "{reasons}");

    let mut spinning = totals();
    spinning.threads[0].cpu_ns = spinning.threads[0].wall_ns;
    spinning.threads[0].spin_ns = spinning.threads[0].wall_ns * 9 / 10;
    assert_eq!(verdict_of(spinning).0, Verdict::Ok);
}

#[test]
fn a_saturated_broker_explains_a_busy_generator_in_a_closed_run() {
    let mut busy = totals();
    busy.threads[0].cpu_ns = busy.threads[0].wall_ns;
    let closed = RunFacts { closed: true, ..facts() };
    let (record, _) = play(closed.clone(), |_| 400, |_| RATE, Some(busy.clone()), vec![], None);
    // The broker used a quarter of its core: the generator was the limit.
    assert_eq!(record.verdict, Verdict::GeneratorBound);
    let mut saturated = record.steps[0].clone();
    saturated.broker_cpu_percent = Some(99.0);
    assert!(crate::verdict::gates(&saturated, true, 1).iter().all(|gate| gate.passed));
}

#[test]
fn less_than_offered_is_not_sustained() {
    let mut short = totals();
    short.counters.acked = short.counters.acked * 98 / 100;
    let (verdict, reasons) = verdict_of(short);
    assert_eq!(verdict, Verdict::NotSustained);
    assert!(reasons.contains("9800 of 10000 messages per second in (98.00 %)"), "{reasons}");
    let mut short = totals();
    short.counters.received = short.counters.received * 98 / 100;
    assert_eq!(verdict_of(short).0, Verdict::NotSustained);
}

#[test]
fn a_trend_in_the_window_is_not_steady() {
    let (record, _) = play(facts(), |second| 400 << second, |_| RATE, Some(totals()), vec![], None);
    assert_eq!(record.verdict, Verdict::NotSteady, "{:?}", record.reasons);
    let (record, _) =
        play(facts(), |_| 400, |second| RATE - 200 * second, Some(totals()), vec![], None);
    assert_eq!(record.verdict, Verdict::NotSteady, "{:?}", record.reasons);
    // A small latency may double: that is noise.
    let slow_start = |second| if second < 3 { 100 } else { 400 };
    let (record, _) = play(facts(), slow_start, |_| RATE, Some(totals()), vec![], None);
    assert_eq!(record.verdict, Verdict::Ok, "{:?}", record.reasons);
}

#[test]
fn thresholds_are_judged() {
    let with = |text: &str| RunFacts {
        thresholds: Thresholds(vec![Threshold::parse(text).expect(text)]),
        ..facts()
    };
    let judge = |text: &str| play(with(text), |_| 400, |_| RATE, Some(totals()), vec![], None).0;
    assert_eq!(judge("e2e_p99<1ms").verdict, Verdict::Ok);
    let failed = judge("e2e_p99<100us");
    assert_eq!(failed.verdict, Verdict::ThresholdFailed);
    assert!(
        failed.reasons[0].contains("e2e_p99<100us does not hold: 400 µs"),
        "{:?}",
        failed.reasons
    );
    // What was not observed cannot be judged.
    assert_eq!(judge("host_cpu<75%").verdict, Verdict::ThresholdFailed);
}

#[test]
fn failed_clients_are_told() {
    let refused = vec![Failure::Closed; 12];
    let (record, page) = play(facts(), |_| 400, |_| RATE, Some(totals()), refused, None);
    assert_eq!((record.verdict, record.client_failures), (Verdict::NotSustained, 12));
    assert_eq!(record.first_failures.len(), 10);
    assert!(record.reasons[0].contains("client 3: the broker closed the connection"));
    assert!(page.contains("First failures of clients"));
    let cause = ConnectCause::PortsExhausted;
    let message = "Cannot assign requested address (os error 99)".to_owned();
    let ports = vec![Failure::Connect(ConnectError { cause, message })];
    let (record, _) = play(facts(), |_| 400, |_| RATE, Some(totals()), ports, None);
    assert_eq!(record.verdict, Verdict::GeneratorBound);
}

#[test]
fn a_run_without_a_window_is_aborted() {
    let (record, page) = play(facts(), |_| 400, |_| RATE, None, vec![], None);
    assert_eq!((record.verdict, record.steps.len()), (Verdict::Aborted, 0));
    assert!(page.contains("aborted") && summary_text(&record).contains("verdict: aborted"));
    let (record, _) = play(facts(), |_| 400, |_| RATE, None, vec![], Some("no broker"));
    assert_eq!(record.reasons, ["no broker"]);
}

#[test]
fn spinning_and_resting_are_figures_and_notes() {
    let mut spinning = totals();
    let wall_ns = spinning.threads[0].wall_ns;
    spinning.threads[0].cpu_ns = wall_ns;
    spinning.threads[0].spin_ns = wall_ns * 69 / 100;
    let placement = Placement {
        timing: tacho_record::Timing::Spin,
        spin_budget_percent: Some(100),
        ..facts().placement
    };
    let spin = RunFacts { placement, ..facts() };
    let (record, text) = play(spin, |_| 400, |_| RATE, Some(spinning.clone()), vec![], None);
    let step = &record.steps[0];
    assert_eq!((step.generator_cpu_percent, step.generator_spin_percent), (31.0, 69.0));
    assert!(record.remarks.contains(&Remark::GeneratorNeverSlept { threads: 1 }));
    assert!(text.contains("never slept") && text.contains("spinning, which is no work"), "{text}");
    assert!(!record.remarks.contains(&Remark::GeneratorRested));

    spinning.threads[0].rests = 1;
    let (record, _) = play(facts(), |_| 400, |_| RATE, Some(spinning), vec![], None);
    let spun = Remark::GeneratorSpun { threads: 1, budget_percent: 95 };
    assert!(record.remarks.contains(&spun) && record.remarks.contains(&Remark::GeneratorRested));

    let why = Some(NoOwnCore::NotPinned);
    let placement = Placement { spin_budget_percent: None, no_own_core: why, ..facts().placement };
    let shared = RunFacts { placement, ..facts() };
    let (record, _) = play(shared, |_| 400, |_| RATE, Some(totals()), vec![], None);
    assert!(record.remarks.contains(&Remark::GeneratorSlept { why }));
    assert_eq!(record.steps[0].generator_spin_percent, 0.0);
}

/// A run whose samples at both ends of the window are taken this many seconds late.
fn with_late_samples(seconds: u64) -> RunRecord {
    let mut collector = Collector::new(facts(), 0, samples(0), DisturbanceLimits::default());
    collector.handle(phase(PhaseKind::Measure, 4), samples(seconds));
    for second in 0..SECONDS {
        collector.handle(interval(second, 400, RATE), samples(second + seconds + 1));
    }
    collector.handle(phase(PhaseKind::Drain, 5), samples(SECONDS + seconds));
    collector.handle(Event::Measured(Box::new(totals())), samples(SECONDS + seconds));
    collector.handle(finished(End::Completed), Samples::default());
    collector.finish(12.5, None).0
}

#[test]
fn cpu_of_another_time_than_the_window_does_not_count() {
    let record = with_late_samples(0);
    assert_eq!(record.verdict, Verdict::Ok, "{:?}", record.causes);
    assert_eq!(record.steps[0].gates.len(), 2, "{:?}", record.steps[0].gates);
    // A broker that is idle after the load would look like one that needs no CPU.
    let record = with_late_samples(SECONDS);
    assert_eq!(record.verdict, Verdict::GeneratorBound);
    let cause =
        Cause::GeneratorCheck { check: Check::LateSamples, value: 100.0, limit: 5.0, agent: None };
    assert!(record.causes.contains(&cause), "{:?}", record.causes);
}
