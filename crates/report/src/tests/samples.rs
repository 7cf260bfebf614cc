//! Records that exercise every chart and table of the report.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use tacho_record::{
    ActionEffect, ActionKind, ActionRecord, BrokerRow, BrokerSpent, Capacity, Cause, Check,
    CutShort, DeclaredLost, Estimator, Finding, Gate, HostUse, LatencyStats, LoginKind,
    LoginsOfKind, LostRange, Observation, PartBy, PartRow, PhaseKind, PhaseRecord, Placement,
    Position, Purpose, Recommendation, Remark, ResourceRow, Restart, RunKind, RunRecord,
    SCHEMA_VERSION, SearchEnd, Series, SeriesRow, Severity, SharedFairness, Skipped, Step,
    StepLogins, StepTarget, TargetRecord, ThresholdResult, Timing, Trial, TrialOutcome, Verdict,
    ViolationCounts, WhoseCpu, curve,
};
use tacho_record::{Environment, StepCurves};
use tacho_scenario::{Shortage, VarValue};

use super::host_samples::host;

/// Everything that a page shows.
pub(super) struct Sample {
    pub(super) record: RunRecord,
    pub(super) rows: Vec<SeriesRow>,
    pub(super) curves: Vec<StepCurves>,
    pub(super) hosts: Vec<ResourceRow>,
    pub(super) brokers: Vec<BrokerRow>,
    pub(super) environment: Environment,
}

/// Always the same sequence between 0 and 1.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

fn latency(median: f64, noise: &mut Noise) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits");
    for _ in 0..20_000 {
        let tail = 1.0 / (1.0 - noise.next()).max(1e-5);
        histogram.record((median * (0.7 + 0.3 * tail.sqrt())) as u64 + 1).expect("grows");
    }
    histogram
}

fn vars(qos: i64, payload: i64, throughput: i64) -> BTreeMap<String, VarValue> {
    [
        ("publishers", 1000),
        ("subscribers", 1000),
        ("qos", qos),
        ("payload_size", payload),
        ("target_throughput", throughput),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), VarValue::Integer(value)))
    .collect()
}

/// A step of `rate` messages in and out each; `median` microseconds.
pub(super) fn step(rate: f64, median: f64, cpu: f64, noise: &mut Noise) -> (Step, StepCurves) {
    let histogram = latency(median, noise);
    let (service, delay) = (latency(median * 0.8, noise), latency(20.0, noise));
    let step = Step {
        window_s: 30.0,
        offered_in_per_s: rate,
        offered_out_per_s: rate,
        attempted_in_per_s: rate,
        achieved_in_per_s: rate,
        achieved_out_per_s: rate,
        tps: rate * 2.0,
        latency_us: LatencyStats::of(&histogram),
        service_us: LatencyStats::of(&service),
        send_delay_us: LatencyStats::of(&delay),
        ack_us: LatencyStats::of(&service),
        sent: (rate * 30.0) as u64,
        expected: (rate * 30.0) as u64,
        received: (rate * 30.0) as u64,
        drained: true,
        cpu_percent: Some(cpu),
        whose_cpu: Some("broker cores".to_owned()),
        broker_cpu_percent: Some(cpu),
        broker_cores_busy_percent: Some(cpu),
        broker_rss_bytes: Some(48 << 20),
        broker_threads: Some(3),
        host_memory_percent: Some(6.5),
        generator_cpu_percent: cpu * 0.8,
        generator_thread_busy_max_percent: cpu * 0.8,
        gates: vec![Gate {
            name: Check::ThreadBusy.into(),
            unit: "percent".to_owned(),
            value: cpu * 0.8,
            limit: 80.0,
            passed: true,
            agent: None,
        }],
        ..Step::default()
    };
    let curves = StepCurves {
        latency: curve(&histogram),
        service: curve(&service),
        send_delay: curve(&delay),
        seconds: Vec::new(),
    };
    (step, curves)
}

pub(super) fn record(kind: RunKind, scenario: &str, description: &str) -> RunRecord {
    let target = TargetRecord {
        broker: "mqtt://127.0.0.1:41883".to_owned(),
        version: "5.0".to_owned(),
        command: Some("tacho broker --listen 127.0.0.1:41883".to_owned()),
        ..TargetRecord::default()
    };
    RunRecord {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".to_owned(),
        kind,
        scenario: scenario.to_owned(),
        name: format!("20261121-120000-{scenario}"),
        description: description.to_owned(),
        started_at: "2026-11-21T12:00:00.000Z".to_owned(),
        elapsed_s: 47.3,
        targets: vec![target.clone()],
        target,
        vars: vars(1, 128, 10_000),
        seed: 1,
        remarks: vec![Remark::OneMachine],
        ..RunRecord::default()
    }
}

pub(super) fn environment() -> Environment {
    let placement = Placement {
        one_machine: true,
        broker_cores: vec![0],
        generator_cores: vec![1],
        generator_threads: 1,
        timing: Timing::Auto,
        spin_budget_percent: Some(95),
        no_own_core: None,
        background_cores: vec![0],
        batched_writes: Some(true),
    };
    let mut environment = tacho_lab::environment::read(placement, "");
    let words = ["tacho", "run", "symmetric", "--var", "qos=1", "--broker-cmd", "broker -p {port}"];
    environment.command_line = words.map(str::to_owned).to_vec();
    environment
}

fn seconds(count: u64, noise: &mut Noise) -> Vec<SeriesRow> {
    (0..count)
        .map(|second| {
            let connecting = second < 3;
            let steady = !connecting;
            let p50 = 180.0 + noise.next() * 20.0;
            let us = |factor: f64| steady.then_some((p50 * factor) as u64);
            let rate = if steady { 10_000.0 } else { 0.0 };
            SeriesRow {
                start_s: second as f64,
                length_s: 1.0,
                phase: match second {
                    0..3 => PhaseKind::Connect,
                    3..8 => PhaseKind::WarmUp,
                    at if at + 2 < count => PhaseKind::Measure,
                    _ => PhaseKind::Drain,
                }
                .into(),
                connected: (second * 700).min(2000),
                offered_in_per_s: rate,
                sent_per_s: rate,
                acked_per_s: rate - noise.next() * 30.0 * f64::from(u8::from(steady)),
                received_per_s: rate - noise.next() * 30.0 * f64::from(u8::from(steady)),
                e2e_p50_us: us(1.0),
                e2e_p95_us: us(3.0),
                e2e_p99_us: us(5.0 + noise.next() * 4.0),
                e2e_max_us: us(20.0 + noise.next() * 60.0),
                e2e_mean_us: steady.then_some(p50 * 1.3),
                service_p99_us: us(4.5),
                send_delay_p99_us: us(0.4 + noise.next() * 0.2),
                ack_p99_us: us(4.0),
                ack_mean_us: steady.then_some(p50 * 0.9),
                broker_cpu_percent: Some(if steady { 30.0 + noise.next() * 4.0 } else { 4.0 }),
                broker_rss_bytes: Some((40 << 20) + second * 60_000),
                broker_cores_busy_percent: Some(if steady { 33.0 } else { 5.0 }),
                generator_cpu_percent: if steady { 25.0 } else { 3.0 },
                connect_ok_per_s: if connecting { 690.0 } else { 0.0 },
                connect_failed_per_s: if second == 2 { 4.0 } else { 0.0 },
                connect_mean_us: connecting.then_some(850.0),
                connect_p99_us: connecting.then_some(2300),
                connect_failed_mean_us: (second == 2).then_some(9000.0),
                subscribe_ok_per_s: if connecting { 340.0 } else { 0.0 },
                subscribe_mean_us: connecting.then_some(510.0),
                subscribe_p99_us: connecting.then_some(1400),
                publish_failed_per_s: if second == 20 { 12.0 } else { 0.0 },
                publish_failed_mean_us: (second == 20).then_some(30_000.0),
                bytes_in_per_s: rate * 152.0,
                bytes_out_per_s: rate * 156.0,
                rtt_p50_us: steady.then_some(60),
                rtt_p99_us: steady.then_some(120),
                rtt_max_us: steady.then_some(150 + (noise.next() * 400.0) as u64),
                overrun: u64::from(second == 15) * 25,
                ..SeriesRow::default()
            }
        })
        .collect()
}

/// The seconds of two bridged brokers, of which the second is away for a while.
fn brokers(count: u64, noise: &mut Noise) -> Vec<BrokerRow> {
    let seconds = (0..count).flat_map(|second| [(second, "node1"), (second, "node2")]);
    let row = |(second, name): (u64, &str)| {
        let away = (20..22).contains(&second);
        let here = !(away && name == "node2");
        let rate = if second < 3 || !here { 0.0 } else { 5000.0 - noise.next() * 30.0 };
        let spent = BrokerSpent {
            cpu_percent: here.then(|| 25.0 + noise.next() * 4.0),
            cores_busy_percent: Some(30.0),
            rss_bytes: here.then_some((40 << 20) + second * 60_000),
            bridged_in_per_s: (!away).then_some(rate),
            bridged_out_per_s: (!away).then_some(rate),
            bridge_waiting: here.then_some(if away { 5000 } else { 40 }),
            bridge_waiting_bytes: Some(0),
            bridge_connections_up: here.then_some(if away { 0 } else { 64 }),
        };
        let part = PartRow {
            by: PartBy::Broker,
            name: name.to_owned(),
            connected: if here { 1000 } else { 0 },
            sent_per_s: rate,
            received_per_s: rate,
            rtt_p50_us: here.then_some(60 + (noise.next() * 20.0) as u64),
            spent,
        };
        BrokerRow { start_s: second as f64, length_s: 1.0, phase: PhaseKind::Measure.into(), part }
    };
    seconds.map(row).collect()
}

/// Logins of all kinds, some of them decided wrongly.
fn logins(noise: &mut Noise) -> StepLogins {
    let stats = LatencyStats::of(&latency(900.0, noise));
    let of = |kind, due, accepted, refused, reason: &str| LoginsOfKind {
        due,
        accepted,
        refused,
        accepted_us: if accepted > 0 { stats } else { LatencyStats::default() },
        refused_us: if refused > 0 { stats } else { LatencyStats::default() },
        reasons: BTreeMap::from([(reason.to_owned(), refused)]),
        ..LoginsOfKind::new(kind)
    };
    StepLogins {
        offered_per_s: 100.0,
        decided_per_s: 99.9,
        kinds: vec![
            of(LoginKind::Right, 2700, 2698, 2, "banned (0x8A)"),
            of(LoginKind::WrongPassword, 200, 1, 199, "not authorized (0x87)"),
            of(LoginKind::UnknownUser, 100, 0, 100, "not authorized (0x87)"),
        ],
        misjudged: 3,
        first_misjudged: "login_7, with right credentials: refused, banned (0x8A)".to_owned(),
        first_undecided: String::new(),
    }
}

/// A run of `count` seconds with two watched hosts and everything that can go wrong a little.
pub(super) fn single(count: u64) -> Sample {
    let mut noise = Noise(7);
    let description = "Each publisher sends to one subscriber through a topic of their own.";
    let mut record = record(RunKind::Run, "symmetric", description);
    let (mut step, curves) = step(10_000.0, 190.0, 33.0, &mut noise);
    step.vars = record.vars.clone();
    step.scenario = "symmetric".to_owned();
    let hosts = [
        host("broker-1", Some("node1"), count, &mut noise),
        host("broker-2", Some("node2"), count, &mut noise),
    ]
    .concat();
    step.hosts = HostUse::of_rows(&hosts, 8.0, count as f64 - 2.0);
    step.targets = ["node1", "node2"]
        .map(|name| StepTarget {
            name: name.to_owned(),
            achieved_in_per_s: 5000.0,
            achieved_out_per_s: 5000.0,
            tps: 10_000.0,
            cpu_percent: Some(33.0),
            whose_cpu: Some("host".to_owned()),
            ..StepTarget::default()
        })
        .to_vec();
    step.logins = Some(Box::new(logins(&mut noise)));
    step.shared = vec![SharedFairness {
        filter: "$share/g/test/#".to_owned(),
        members: 5,
        received: 300_000,
        received_min: 59_000,
        received_max: 61_000,
        gini: 0.012,
    }];
    step.lost = 3;
    step.received -= step.lost + 4;
    step.violations = ViolationCounts { lost: 3, ..ViolationCounts::default() };
    step.lost_ranges = vec![LostRange {
        publisher: "pub_7".to_owned(),
        topic: "test/7".to_owned(),
        receiver: "sub_7".to_owned(),
        first_seq: 12,
        count: 3,
        span: 3,
        acknowledged: 2,
    }];
    step.acknowledged_lost = 2;
    step.sessions_lost = 1;
    step.kills = 1;
    record.phases = vec![PhaseRecord {
        name: PhaseKind::Measure.into(),
        start_s: 8.0,
        length_s: count as f64 - 10.0,
        sent: 500_000,
        acknowledged: 499_990,
        received: 499_990,
    }];
    record.restarts = vec![Restart {
        target: "node2".to_owned(),
        phase: PhaseKind::Measure.into(),
        at_s: 20.0,
        serving_ms: 52.0,
        waiting_max: Some(5040),
        drained_ms: Some(2345.0),
    }];
    record.actions = vec![
        ActionRecord {
            kind: ActionKind::Disconnect,
            effect: Some(ActionEffect::BreakOff { group: "sub".to_owned(), share: 0.5 }),
            phase: PhaseKind::Measure.into(),
            at_s: 18.0,
            clients: 500,
            connected: 499,
            wills_expected: 500,
            retried: 12,
            refused: 3,
            given_up: 1,
            ..ActionRecord::default()
        },
        ActionRecord {
            kind: ActionKind::Run,
            effect: Some(ActionEffect::RunCommand { command: "date".to_owned() }),
            phase: PhaseKind::Measure.into(),
            at_s: 22.0,
            length_s: Some(30.0),
            output: "command-1.log".to_owned(),
            cut_short: Some(CutShort::TimedOut),
            ..ActionRecord::default()
        },
    ];
    step.declared_lost = DeclaredLost { count: 4, by: BTreeMap::from([("offline".to_owned(), 4)]) };
    record.verdict = Verdict::QosViolation;
    let (lost, duplicated, out_of_order, damaged) = (3, 0, 0, 0);
    record.causes = vec![Cause::QosBroken { lost, duplicated, out_of_order, damaged }];
    record.clients = 2000;
    record.clients_connected = 2000;
    record.client_failures = 4;
    record.first_failures = vec!["sub_3: the connection ended".to_owned()];
    record.connect_us = step.service_us;
    record.suback_us = step.service_us;
    record.thresholds = vec![
        ThresholdResult { condition: "e2e_p99<10ms".to_owned(), value: Some(900.0), passed: true },
        ThresholdResult { condition: "lost==0".to_owned(), value: Some(3.0), passed: false },
    ];
    record.findings = vec![
        Finding {
            code: "steal".to_owned(),
            severity: Severity::Warning,
            sentence: String::new(),
            step: Some(0),
            observation: Some(Observation::Steal { percent: 2.3 }),
            place: String::new(),
        },
        Finding {
            code: "first_interval".to_owned(),
            severity: Severity::Info,
            sentence: String::new(),
            step: None,
            observation: Some(Observation::ColdStart { first_us: 9000, others_us: 900 }),
            place: String::new(),
        },
    ];
    record.steps = vec![step];
    Sample {
        rows: seconds(count, &mut noise),
        curves: vec![curves],
        hosts,
        brokers: brokers(count, &mut noise),
        environment: environment(),
        record,
    }
}

fn ladder(sample: &mut Sample, name: &str, label: &str, qos: i64, slope: f64, noise: &mut Noise) {
    let first = sample.record.steps.len();
    for rung in 1..=6_u32 {
        let rate = f64::from(rung) * 5000.0;
        let cpu = (12.0 + f64::from(rung) * slope).min(99.0);
        let median = 150.0 / (1.05 - cpu / 100.0);
        let (mut step, curves) = step(rate, median, cpu, noise);
        step.label = format!("{} msg/s", tacho_scenario::format::rate(rate));
        step.scenario = "symmetric".to_owned();
        step.series = name.to_owned();
        step.x = Some(rate);
        step.vars = vars(qos, 128, rate as i64);
        step.directory = format!("steps/{name}-{rung:02}");
        if cpu > 95.0 {
            step.verdict = Verdict::GeneratorBound;
            step.gates[0].passed = false;
        }
        sample.record.steps.push(step);
        sample.curves.push(curves);
    }
    sample.record.series.push(Series {
        name: name.to_owned(),
        label: label.to_owned(),
        figure: "QoS".to_owned(),
        scenario: "symmetric".to_owned(),
        variable: Some("target_throughput".to_owned()),
        unit: "msg/s".to_owned(),
        steps: (first..sample.record.steps.len()).collect(),
        published: Some(format!("symmetric-qos{qos}")),
    });
    let tps = (75.0 - 12.0) / slope * 10_000.0;
    let within = tps < 60_000.0;
    sample.record.recommendations.push(Recommendation {
        series: name.to_owned(),
        objective: "cpu<=75%".to_owned(),
        whose_cpu: "broker cores".to_owned(),
        position: if within { Position::Within } else { Position::AboveLadder },
        tps: within.then_some(tps),
        low: Some(if within { tps * 0.97 } else { 60_000.0 }),
        high: within.then_some(tps * 1.03),
        method: String::new(),
        estimator: Some(Estimator::Interpolation { whose_cpu: WhoseCpu::BrokerCores }),
        nearest_step: Some(first + 3),
    });
}

/// A suite: three overlaid ladders, a payload ladder, single rows, something skipped.
pub(super) fn suite() -> Sample {
    let mut noise = Noise(11);
    let mut sample = Sample {
        record: record(RunKind::Suite, "guide", "The tests of the guide, scaled to this machine."),
        rows: Vec::new(),
        curves: Vec::new(),
        hosts: Vec::new(),
        brokers: Vec::new(),
        environment: environment(),
    };
    ladder(&mut sample, "symmetric-qos0", "QoS 0", 0, 9.0, &mut noise);
    ladder(&mut sample, "symmetric-qos1", "QoS 1", 1, 12.5, &mut noise);
    ladder(&mut sample, "symmetric-qos2", "QoS 2", 2, 16.0, &mut noise);
    let first = sample.record.steps.len();
    for payload in [128, 1024, 2048, 4096, 6144, 8192_i64] {
        let cpu = 40.0 + payload as f64 / 300.0;
        let (mut step, curves) = step(10_000.0, 150.0 + payload as f64 / 20.0, cpu, &mut noise);
        step.label = format!("{payload} B");
        step.x = Some(payload as f64);
        step.series = "payload".to_owned();
        step.vars = vars(1, payload, 10_000);
        step.directory = format!("steps/payload-{payload}");
        sample.record.steps.push(step);
        sample.curves.push(curves);
    }
    sample.record.series.push(Series {
        name: "payload".to_owned(),
        label: "Payload at 10,000 messages per second, QoS 1".to_owned(),
        figure: "payload".to_owned(),
        scenario: "symmetric".to_owned(),
        variable: Some("payload_size".to_owned()),
        unit: "bytes".to_owned(),
        steps: (first..sample.record.steps.len()).collect(),
        published: Some("symmetric-payload".to_owned()),
    });
    for name in ["100_100_qos1_p1024_50mps", "1k_1k_qos0_p1024_50mps"] {
        let position = sample.record.steps.len();
        let (mut step, mut curves) = step(5000.0, 170.0, 20.0, &mut noise);
        curves.seconds = super::row_seconds::seconds_of_row(5000.0, &mut noise);
        step.label = name.to_owned();
        step.scenario = name.to_owned();
        step.series = name.to_owned();
        step.vars = vars(1, 1024, 5000);
        sample.record.steps.push(step);
        sample.curves.push(curves);
        sample.record.series.push(Series {
            name: name.to_owned(),
            label: name.to_owned(),
            figure: "clean sessions".to_owned(),
            scenario: name.to_owned(),
            steps: vec![position],
            published: Some(format!("true_{name}")),
            ..Series::default()
        });
    }
    sample.record.skipped = vec![Skipped {
        series: "100k_100k_qos0_p1024_1mps".to_owned(),
        label: "100k_100k_qos0_p1024_1mps".to_owned(),
        reason: String::new(),
        obstacle: Some(Shortage::Descriptors { needed: 200_100, available: 20_000 }.into()),
    }];
    sample
}

/// A capacity search.
pub(super) fn capacity() -> Sample {
    let mut noise = Noise(5);
    let description = "The highest load that meets the objectives.";
    let mut record = record(RunKind::Capacity, "symmetric", description);
    let (mut curves, mut trials) = (Vec::new(), Vec::new());
    let tried = [
        (5000.0, TrialOutcome::Pass, Purpose::Bracket),
        (10_000.0, TrialOutcome::Pass, Purpose::Bracket),
        (20_000.0, TrialOutcome::Pass, Purpose::Bracket),
        (40_000.0, TrialOutcome::GeneratorBound, Purpose::Bracket),
        (28_000.0, TrialOutcome::Fail, Purpose::Bisect),
        (24_000.0, TrialOutcome::Pass, Purpose::Bisect),
        (26_000.0, TrialOutcome::Fail, Purpose::Bisect),
        (24_000.0, TrialOutcome::Pass, Purpose::Confirm),
        (24_000.0, TrialOutcome::Pass, Purpose::Confirm),
    ];
    for (index, (value, outcome, purpose)) in tried.into_iter().enumerate() {
        let cpu = (value / 330.0_f64).min(99.0);
        let (mut step, curve) = step(value, 200.0, cpu, &mut noise);
        step.label = format!("{} msg/s", tacho_scenario::format::rate(value));
        step.directory = format!("steps/{index:02}");
        record.steps.push(step);
        curves.push(curve);
        let causes = match outcome {
            TrialOutcome::Pass => Vec::new(),
            TrialOutcome::Fail => {
                vec![Cause::ObjectiveMissed { objective: "cpu<=75%".to_owned(), value: Some(cpu) }]
            }
            TrialOutcome::GeneratorBound | TrialOutcome::Disturbed => {
                vec![Cause::GeneratorBoundEverywhere]
            }
        };
        let reasons = Vec::new();
        let step = Some(index);
        trials.push(Trial { value, hold_s: 5.0, purpose, outcome, reasons, causes, step });
    }
    record.capacity = Some(Capacity {
        variable: "target_throughput".to_owned(),
        unit: "msg/s".to_owned(),
        objectives: vec!["cpu<=75%".to_owned(), "loss==0".to_owned()],
        whose_cpu: "broker cores".to_owned(),
        highest_pass: Some(24_000.0),
        lowest_fail: Some(26_000.0),
        lowest_generator_bound: None,
        tps: Some(48_000.0),
        confirmed: 2,
        confirm: 2,
        disturbed: 0,
        precision: 0.1,
        ending: String::new(),
        end: Some(SearchEnd::Found),
        trials,
    });
    Sample {
        record,
        rows: Vec::new(),
        curves,
        hosts: Vec::new(),
        brokers: Vec::new(),
        environment: environment(),
    }
}
