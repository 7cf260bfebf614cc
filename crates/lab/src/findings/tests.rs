//! Each finding appears where it should, and only there.

use super::*;
use tacho_record::{
    Disturbance, Handling, HostUse, LatencyStats, LoginKind, LoginsOfKind, MetricUse, NetworkLimit,
    SharedFairness, StepLogins, TargetKind,
};

/// A step with nothing to say about it.
fn quiet() -> Step {
    Step {
        latency_us: LatencyStats {
            count: 10_000,
            p50: Some(500),
            p99: Some(2000),
            max: Some(9000),
            ..LatencyStats::default()
        },
        connect_us: LatencyStats { p50: Some(800), max: Some(5000), ..LatencyStats::default() },
        rtt_us: LatencyStats { p50: Some(50), ..LatencyStats::default() },
        ..Step::default()
    }
}

/// The evidence of a step alone.
fn of(step: &Step) -> Evidence<'_> {
    Evidence { step, rows: &[], curve: &[], one_machine: true, monitors: &[], targets: &[] }
}

fn codes(step: &Step) -> Vec<String> {
    codes_of(step, &[], &[], &[])
}

fn codes_of(
    step: &Step,
    rows: &[&SeriesRow],
    curve: &[CurvePoint],
    monitors: &[MonitorRecord],
) -> Vec<String> {
    let evidence = Evidence { rows, curve, monitors, ..of(step) };
    let found = of_step(&evidence, 3);
    for finding in &found {
        assert_eq!(finding.step, Some(3));
        let sentence = tacho_report::Lang::En.finding(finding);
        assert!(sentence.ends_with('.') && sentence.len() > 40, "{finding:?}");
    }
    found.into_iter().map(|finding| finding.code).collect()
}

fn with_host(metrics: &[(&str, Option<&str>, f64)]) -> Step {
    let metric = |(metric, instance, mean): &(&str, Option<&str>, f64)| MetricUse {
        metric: (*metric).to_owned(),
        instance: instance.map(str::to_owned),
        min: *mean,
        mean: *mean,
        max: *mean,
    };
    let metrics = metrics.iter().map(metric).collect();
    let host = HostUse { host: "b1".to_owned(), samples: 10, metrics, ..HostUse::default() };
    Step { hosts: vec![host], ..quiet() }
}

#[test]
fn a_quiet_step_has_none() {
    assert!(codes(&quiet()).is_empty());
    assert!(codes(&Step::default()).is_empty());
}

#[test]
fn the_network() {
    let at = |share: f64| {
        with_host(&[
            ("net_speed_bytes_per_s", Some("eth0"), 125e6),
            ("net_rx_bytes_per_s", Some("eth0"), 10e6),
            ("net_tx_bytes_per_s", Some("eth0"), 125e6 * share),
        ])
    };
    assert!(codes(&at(0.5)).is_empty());
    assert_eq!(codes(&at(0.9)), [NETWORK_BOUND]);
    let loopback = with_host(&[
        ("net_speed_bytes_per_s", Some("lo"), 125e6),
        ("net_tx_bytes_per_s", Some("lo"), 125e6),
        ("net_rx_drops_per_s", Some("lo"), 50.0),
    ]);
    assert!(codes(&loopback).is_empty());
    let drops = with_host(&[("net_rx_drops_per_s", Some("eth0"), 5.0)]);
    assert_eq!(codes(&drops), ["network_drops"]);
    assert_eq!(codes(&with_host(&[("tcp_retransmits_per_s", None, 20.0)])), ["retransmits"]);
    let overflows = with_host(&[("tcp_listen_overflows_per_s", None, 2.0)]);
    assert_eq!(codes(&overflows), ["listen_overflow"]);
    let mut far = quiet();
    far.rtt_us.p50 = Some(400);
    let evidence = |one_machine| Evidence { one_machine, ..of(&far) };
    assert_eq!(of_step(&evidence(false), 0)[0].code, "round_trip");
    assert!(of_step(&evidence(true), 0).is_empty());
}

#[test]
fn a_stated_limit_stands_for_the_speed_that_an_interface_does_not_tell() {
    let found = |limit: &str, name: &str, change: fn(&mut Step)| {
        let mut step = with_host(&[
            ("net_rx_bytes_per_s", Some("eth0"), 10e6),
            ("net_tx_bytes_per_s", Some("eth0"), 900e6),
            ("net_rx_packets_per_s", Some("eth0"), 700e3),
            ("net_tx_packets_per_s", Some("eth0"), 100e3),
        ]);
        change(&mut step);
        let network_limit = Some(NetworkLimit::parse(limit).expect(limit));
        let name = name.to_owned();
        let targets = [TargetRecord { name, network_limit, ..TargetRecord::default() }];
        let evidence = Evidence { one_machine: false, targets: &targets, ..of(&step) };
        of_step(&evidence, 0).into_iter().find(|found| found.code == NETWORK_BOUND)
    };
    let share = |limit: &str| match found(limit, "", |_| {})?.observation? {
        Observation::NetworkLimitReached { percent, .. } => Some(("bits", percent)),
        Observation::PacketLimitReached { percent, .. } => Some(("packets", percent)),
        _ => None,
    };
    assert_eq!(share("8Gbit/s"), Some(("bits", 90.0)));
    assert_eq!(share("80Gbit/s,800kpps"), Some(("packets", 87.5)));
    assert_eq!(found("80Gbit/s,8Mpps", "", |_| {}), None);
    // Traffic of the generator's own host, and of another broker's, is not the broker's.
    assert_eq!(found("8Gbit/s", "", |step| step.hosts[0].source = "local".to_owned()), None);
    let bound = |step: &mut Step| step.hosts[0].target = Some("node1".to_owned());
    assert_eq!(found("8Gbit/s", "node2", bound), None);
    assert!(found("8Gbit/s", "node1", bound).is_some());
    let loopback = |step: &mut Step| {
        for metric in &mut step.hosts[0].metrics {
            metric.instance = Some("lo".to_owned());
        }
    };
    assert_eq!(found("8Gbit/s", "", loopback), None);
}

#[test]
fn a_way_that_is_narrower_than_the_interface() {
    let found = |achieved_out, one_machine, change: fn(&mut MetricUse)| {
        let mut step = with_host(&[
            ("net_speed_bytes_per_s", Some("eth0"), 1.25e9),
            ("net_tx_bytes_per_s", Some("eth0"), 244e3),
            ("net_tx_packets_per_s", Some("eth0"), 502.0),
            ("tcp_retransmits_per_s", None, 585.0),
        ]);
        step.offered_in_per_s = 500.0;
        step.achieved_in_per_s = 500.0;
        step.offered_out_per_s = 500.0;
        step.achieved_out_per_s = achieved_out;
        step.hosts[0].metrics.iter_mut().for_each(change);
        let evidence = Evidence { one_machine, ..of(&step) };
        of_step(&evidence, 0).iter().any(|found| found.code == NETWORK_BOUND)
    };
    assert!(found(191.0, false, |_| {}));
    assert!(!found(499.0, false, |_| {}), "the load is carried");
    assert!(!found(191.0, true, |_| {}), "there is no network");
    assert!(!found(191.0, false, |metric| metric.max *= 1.2), "the rate varies");
    assert!(!found(191.0, false, |metric| {
        metric.mean = if metric.metric.starts_with("tcp") { 2.0 } else { metric.mean };
    }));
}

/// A curve with `share` of the samples between `from` and `to`, at quantile `at`.
fn plateau(at: f64, share: f64, from: u64, to: u64) -> Vec<CurvePoint> {
    (0..=100)
        .map(|step| {
            let quantile = f64::from(step) / 100.0;
            let value_us = match quantile {
                q if q < at => 300 + (q * 700.0) as u64,
                q if q < at + share => from + ((q - at) / share * (to - from) as f64) as u64,
                q => to + ((q - at) * 1e6) as u64,
            };
            CurvePoint { quantile, value_us }
        })
        .collect()
}

#[test]
fn plateaus() {
    let found = |curve: &[CurvePoint]| codes_of(&quiet(), &[], curve, &[]);
    assert_eq!(found(&plateau(0.9, 0.08, 40_000, 41_500)), ["delayed_ack"]);
    // No network, no retransmission.
    let late = plateau(0.95, 0.04, 200_000, 208_000);
    assert!(found(&late).is_empty());
    let step = quiet();
    let far = of_step(&Evidence { curve: &late, one_machine: false, ..of(&step) }, 0);
    assert_eq!(far[0].code, "retransmission_timeout");
    // A smooth tail that crosses 40 ms is none, nor is a broker that takes 40 ms for all.
    assert!(found(&plateau(0.9, 0.1, 1000, 90_000)).is_empty());
    assert!(found(&plateau(0.0, 1.0, 38_000, 44_000)).is_empty());
    assert!(found(&plateau(0.9, 0.08, 25_000, 26_000)).is_empty());
}

fn row(p99: u64) -> SeriesRow {
    SeriesRow { e2e_p99_us: Some(p99), length_s: 1.0, ..SeriesRow::default() }
}

#[test]
fn the_first_second() {
    let rows: Vec<SeriesRow> = [90_000, 2000, 2100, 1900, 2500].map(row).into();
    let rows: Vec<&SeriesRow> = rows.iter().collect();
    assert_eq!(codes_of(&quiet(), &rows, &[], &[]), ["first_interval"]);
    assert!(codes_of(&quiet(), &rows[1..], &[], &[]).is_empty());
}

#[test]
fn connections_and_clocks() {
    for (max, found) in [(900_000, false), (1_030_000, true), (3_060_000, true), (2_200_000, false)]
    {
        let mut step = quiet();
        step.connect_us.max = Some(max);
        assert_eq!(codes(&step) == ["syn_retry"], found, "{max}");
    }
    let monitor = |error| MonitorRecord {
        source: "agent://b1".to_owned(),
        clock_error_us_max: Some(error),
        ..MonitorRecord::default()
    };
    assert!(codes_of(&quiet(), &[], &[], &[monitor(900.0)]).is_empty());
    assert_eq!(codes_of(&quiet(), &[], &[], &[monitor(2e5)]), ["clock_error"]);
}

#[test]
fn the_machine() {
    let step = Step { disturbance: Some(Disturbance::default()), ..quiet() };
    assert_eq!(codes(&step), ["disturbed"]);
    let step = Step { other_cpu_percent: Some(50.0), ..quiet() };
    assert_eq!(codes(&step), ["other_programs"]);
}

#[test]
fn shared_groups() {
    let group = |gini, received| SharedFairness {
        filter: "$share/g/a".to_owned(),
        members: 5,
        received,
        received_min: 1,
        received_max: 900,
        gini,
    };
    let step = |shared| Step { shared: vec![shared], ..quiet() };
    assert_eq!(codes(&step(group(0.6, 5000))), ["unfair_group"]);
    assert!(codes(&step(group(0.05, 5000))).is_empty());
    assert!(codes(&step(group(0.6, 20))).is_empty(), "too few messages to tell");
}

/// What a finding depends on.
struct Case {
    step: Step,
    rows: Vec<SeriesRow>,
    curve: Vec<CurvePoint>,
    one_machine: bool,
    monitors: Vec<MonitorRecord>,
    targets: Vec<TargetRecord>,
}

impl Case {
    fn new(step: Step) -> Self {
        let (rows, curve, monitors, targets) = Default::default();
        Self { step, rows, curve, one_machine: true, monitors, targets }
    }

    fn far(self) -> Self {
        Self { one_machine: false, ..self }
    }

    fn curve(from: u64, to: u64) -> Self {
        Self { curve: plateau(0.9, 0.08, from, to), ..Self::new(quiet()) }
    }

    fn disturbed(mut self, handling: Handling) -> Self {
        self.step.disturbance = Some(Disturbance { handling, ..Disturbance::default() });
        self
    }

    fn broker(self, kind: TargetKind, command: Option<&str>) -> Self {
        let command = command.map(str::to_owned);
        Self { targets: vec![TargetRecord { kind, command, ..TargetRecord::default() }], ..self }
    }

    fn found(&self) -> Vec<Finding> {
        let rows: Vec<&SeriesRow> = self.rows.iter().collect();
        let evidence = Evidence {
            step: &self.step,
            rows: &rows,
            curve: &self.curve,
            one_machine: self.one_machine,
            monitors: &self.monitors,
            targets: &self.targets,
        };
        of_step(&evidence, 0)
    }
}

fn host(metric: &str, instance: Option<&str>, mean: f64) -> Case {
    Case::new(with_host(&[(metric, instance, mean)]))
}

fn first_second(p99: u64) -> Case {
    Case { rows: [p99, 2000, 2100, 1900, 2500].map(row).into(), ..Case::new(quiet()) }
}

fn connects(max: u64) -> Case {
    let mut step = quiet();
    step.connect_us.max = Some(max);
    Case::new(step)
}

fn round_trips(p50: u64) -> Case {
    let mut step = quiet();
    step.rtt_us.p50 = Some(p50);
    Case::new(step).far()
}

fn busy_interface(bytes_per_s: f64) -> Case {
    Case::new(with_host(&[
        ("net_speed_bytes_per_s", Some("eth0"), 125e6),
        ("net_tx_bytes_per_s", Some("eth0"), bytes_per_s),
    ]))
}

fn clock(error: f64) -> Case {
    let clock_error_us_max = Some(error);
    let monitor = MonitorRecord { clock_error_us_max, ..MonitorRecord::default() };
    Case { monitors: vec![monitor], ..Case::new(quiet()) }
}

fn shared_group(gini: f64) -> Case {
    let (members, received) = (5, 5000);
    let group = SharedFairness { members, received, gini, ..SharedFairness::default() };
    Case::new(Step { shared: vec![group], ..quiet() })
}

/// For each finding cases in which it appears, and near ones in which it does not.
fn both_sides() -> Vec<(&'static str, Vec<Case>, Vec<Case>)> {
    let others = |percent| Case::new(Step { other_cpu_percent: Some(percent), ..quiet() });
    let acknowledgements = || Case::curve(40_000, 41_500);
    let timeouts = || Case::curve(200_000, 208_000);
    let own = acknowledgements().broker(TargetKind::BuiltIn, None);
    vec![
        (NETWORK_BOUND, vec![busy_interface(115e6)], vec![busy_interface(90e6)]),
        (
            "network_drops",
            vec![host("net_rx_drops_per_s", Some("eth0"), 5.0)],
            vec![host("net_rx_drops_per_s", Some("lo"), 5.0)],
        ),
        (
            "retransmits",
            vec![host("tcp_retransmits_per_s", None, 6.0)],
            vec![host("tcp_retransmits_per_s", None, 4.0)],
        ),
        (
            "listen_overflow",
            vec![host("tcp_listen_overflows_per_s", None, 1.0)],
            vec![host("tcp_listen_overflows_per_s", None, 0.0)],
        ),
        ("round_trip", vec![round_trips(400)], vec![round_trips(100)]),
        (
            "delayed_ack",
            vec![
                acknowledgements(),
                acknowledgements().broker(TargetKind::Url, None),
                acknowledgements().disturbed(Handling::LeftOut),
            ],
            vec![
                own,
                acknowledgements().disturbed(Handling::WithinTolerance),
                Case::curve(25_000, 26_000),
            ],
        ),
        (
            "retransmission_timeout",
            vec![timeouts().far()],
            vec![
                timeouts(),
                timeouts().far().disturbed(Handling::Invalid),
                Case::curve(40_000, 41_500).far(),
            ],
        ),
        (
            "first_interval",
            vec![first_second(90_000)],
            vec![first_second(2000), first_second(90_000).disturbed(Handling::LeftOut)],
        ),
        ("syn_retry", vec![connects(1_030_000)], vec![connects(900_000)]),
        ("clock_error", vec![clock(2e5)], vec![clock(900.0)]),
        (
            "disturbed",
            vec![Case::new(quiet()).disturbed(Handling::LeftOut)],
            vec![Case::new(quiet()), others(50.0)],
        ),
        ("other_programs", vec![others(20.0)], vec![others(19.0)]),
        ("unfair_group", vec![shared_group(0.3)], vec![shared_group(0.1)]),
        (
            "logins_misjudged",
            vec![logins(1, "not authorized (0x87)")],
            vec![logins(0, "banned (0x8A)"), Case::new(quiet())],
        ),
        (
            "logins_banned",
            vec![logins(1, "banned (0x8A)")],
            vec![logins(1, "not authorized (0x87)"), Case::new(quiet())],
        ),
    ]
}

/// A right login that was refused for a reason.
fn logins(misjudged: u64, reason: &str) -> Case {
    let right = LoginsOfKind {
        due: 10,
        refused: misjudged,
        reasons: (0..misjudged).map(|_| (reason.to_owned(), 1)).collect(),
        ..LoginsOfKind::new(LoginKind::Right)
    };
    let logins = StepLogins { kinds: vec![right], misjudged, ..StepLogins::default() };
    Case::new(Step { logins: Some(Box::new(logins)), ..quiet() })
}

#[test]
fn every_finding_appears_under_its_conditions_and_only_there() {
    let all = both_sides();
    let is_among = |found: Vec<Finding>, code| found.iter().any(|one| one.code == code);
    for (code, with, without) in &all {
        assert!(with.iter().all(|case| is_among(case.found(), *code)), "{code}");
        assert!(!without.iter().any(|case| is_among(case.found(), *code)), "{code}");
    }
    let known: std::collections::BTreeSet<_> = all.iter().map(|(code, ..)| code).collect();
    assert_eq!(known.len(), DETECTORS.len(), "each detector has its cases");
}

#[test]
fn advice_names_a_broker_only_where_that_broker_runs() {
    let advice = |command: Option<&str>| {
        let case = Case::curve(40_000, 41_500).broker(TargetKind::Command, command);
        let found = case.found().pop().expect("a finding");
        tacho_report::Lang::ALL.map(|lang| lang.finding(&found))
    };
    for command in ["mosquitto -p 1883", "taskset -c 0 /usr/sbin/mosquitto -c a.conf"] {
        assert!(advice(Some(command)).iter().all(|words| words.contains("set_tcp_nodelay true")));
    }
    for command in [Some("nanomq start"), Some("./not-mosquitto -p 1"), None] {
        let told = advice(command);
        assert!(told.iter().all(|words| words.contains("TCP_NODELAY")), "{told:?}");
        assert!(!told.iter().any(|words| words.contains("mosquitto")), "{told:?}");
    }
}
