//! Rows as points.

use tacho_load::GroupInterval;
use tacho_load::events::histogram;
use tacho_monitor::{CpuPercent, HostRow};
use tacho_output::{FigureKind, NamedPercentile};
use tacho_record::{ActionRecord, Given, LatencyStats, Step, Verdict, percentile};

use super::*;

const STARTED: &str = "2026-11-21T01:17:45.250Z";
const STARTED_MS: u64 = 1_795_223_865_250;

fn points(name: &str, directory: &str) -> RunPoints {
    let started = Timestamp::parse(STARTED).expect("a time");
    RunPoints::new(name, Path::new(directory), "symmetric", started)
}

fn point(item: &OutputItem) -> &OutputPoint {
    match item {
        OutputItem::Point(point) => point,
        other => panic!("{other:?}"),
    }
}

fn figure(point: &OutputPoint, name: &str) -> (FigureKind, f64) {
    let found = point.figures.iter().find(|figure| figure.name == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {point:#?}"));
    (found.kind, found.value)
}

fn row(start_s: f64, length_s: f64, phase: PhaseKind) -> SeriesRow {
    SeriesRow {
        start_s,
        length_s,
        phase: phase.into(),
        connected: 3,
        // 7 messages in less than a second are no whole number per second.
        sent_per_s: 7.0 / length_s,
        overrun: 2,
        broker_cpu_percent: Some(12.5),
        ..SeriesRow::default()
    }
}

#[test]
fn runs_and_steps_of_campaigns_are_told_apart() {
    let tags = |points: RunPoints| {
        let tags: Vec<String> =
            points.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        tags.join(" ")
    };
    assert_eq!(tags(points("r", "/tmp/x")), "run=r scenario=symmetric");
    let step = points("ladder/02", "runs/ladder/steps/02-10K");
    assert_eq!(tags(step), "run=ladder scenario=symmetric step=02-10K");
}

#[test]
fn a_second_has_the_counts_of_its_row_and_its_window() {
    let mut points = points("r", "r");
    let parts = [
        PartRow {
            by: PartBy::Group,
            name: "pub".to_owned(),
            sent_per_s: 7.0,
            ..PartRow::default()
        },
        PartRow { by: PartBy::Broker, connected: 2, ..PartRow::default() },
    ];
    let latencies = IntervalLatencies {
        all: vec![("e2e_latency", Buckets::default())],
        groups: vec![Buckets::default()],
    };
    let items = points.second(&row(1.0004, 0.3336, PhaseKind::Drain), latencies, &parts);
    let load = point(&items[0]);
    assert_eq!(load.series, PointSeries::Load);
    assert_eq!(figure(load, "published"), (FigureKind::Count, 7.0));
    assert_eq!(figure(load, "publish_overrun"), (FigureKind::Count, 2.0));
    assert_eq!(figure(load, "connected"), (FigureKind::Gauge, 3.0));
    assert_eq!(figure(load, "broker_cpu_percent"), (FigureKind::Gauge, 12.5));
    assert!(load.figures.iter().all(|figure| figure.name != "host_cpu_percent"), "unknown");
    let window = &load.window;
    assert_eq!((window.start_ms, window.end_ms), (STARTED_MS + 1_000, STARTED_MS + 1_334));
    assert_eq!((window.phase.as_str(), window.measured), ("drain", Some(true)));
    let table = load.row.as_ref().expect("a row");
    assert_eq!((table.columns[0], table.cells[0].as_str()), ("start_s", "1.000"));
    let (group, broker) = (point(&items[1]), point(&items[2]));
    assert_eq!(group.tags.get(PointTag::Group), Some("pub"));
    assert_eq!(group.latencies.len(), 1);
    assert_eq!(broker.tags.get(PointTag::Broker), Some("default"));
    assert_eq!(figure(broker, "connected").1, 2.0);
    let warm = points.second(&row(0.0, 1.0, PhaseKind::WarmUp), IntervalLatencies::default(), &[]);
    assert_eq!(point(&warm[0]).window.measured, Some(false));
}

#[test]
fn a_row_of_less_than_a_millisecond_ends_after_the_one_before() {
    let mut points = points("r", "r");
    let mut end_of = |start_s, length_s| {
        let row = row(start_s, length_s, PhaseKind::Drain);
        let items = points.second(&row, IntervalLatencies::default(), &[]);
        point(&items[0]).window.end_ms - STARTED_MS
    };
    let ends = [end_of(0.4972, 0.1612), end_of(0.6574, 0.0006), end_of(0.658, 0.0)];
    assert_eq!(ends, [658, 659, 660]);
}

#[test]
fn a_host_is_measured_where_the_middle_of_its_row_is() {
    let mut points = points("r", "r");
    points.phase(0.0, PhaseKind::WarmUp.into());
    points.phase(2.0, PhaseKind::Measure.into());
    let row = |at_s| ResourceRow {
        at_s,
        host: HostRow {
            host: "h".to_owned(),
            target: Some("b".to_owned()),
            length_ns: 1_000_000_000,
            cpu: Some(CpuPercent { user: 25.0, idle: 75.0, ..CpuPercent::default() }),
            ..HostRow::default()
        },
    };
    let measured = |at_s| point(&points.host(&row(at_s))).window.measured;
    assert_eq!(
        (measured(-0.4), measured(2.4), measured(2.6)),
        (Some(false), Some(false), Some(true))
    );
    let item = points.host(&row(-0.4));
    let host = point(&item);
    assert_eq!(host.window.end_ms, STARTED_MS - 400);
    assert_eq!(host.window.start_ms, STARTED_MS - 1_400);
    assert_eq!(host.tags.get(PointTag::Host), Some("h"));
    assert_eq!(host.tags.get(PointTag::Broker), Some("b"));
    assert_eq!(figure(host, "cpu_user_percent"), (FigureKind::Gauge, 25.0));
}

#[test]
fn steps_have_the_figures_and_percentiles_of_the_record() {
    let mut points = points("r", "r");
    points.phase(0.0, PhaseKind::WarmUp.into());
    points.phase(2.5, PhaseKind::Measure.into());
    let latency_us = LatencyStats {
        count: 1000,
        mean: Some(12.5),
        p50: Some(10),
        p99: Some(99),
        max: Some(120),
        ..LatencyStats::default()
    };
    let record = RunRecord {
        elapsed_s: 9.0,
        verdict: Verdict::ThresholdFailed,
        given: Given { name: "MyBroker 2.1".to_owned(), ..Given::default() },
        actions: vec![ActionRecord {
            at_s: 3.5,
            what: "kill -9 of the broker".to_owned(),
            ..ActionRecord::default()
        }],
        steps: vec![Step { window_s: 5.0, sent: 7, lost: 1, latency_us, ..Step::default() }],
        ..RunRecord::default()
    };
    let items = points.ended(&record);
    assert_eq!(items.len(), 3);
    let step = point(&items[0]);
    assert_eq!(step.tags.get(PointTag::Name), Some("MyBroker 2.1"));
    let OutputItem::Note(note) = &items[1] else { panic!("{items:?}") };
    assert_eq!((note.kind, note.text.as_str()), ("action", "kill -9 of the broker"));
    assert_eq!(note.at_ms, STARTED_MS + 3_500);
    assert_eq!(
        (step.window.start_ms, step.window.end_ms),
        (STARTED_MS + 2_500, STARTED_MS + 7_500)
    );
    assert_eq!((figure(step, "lost").1, figure(step, "ok").1), (1.0, 1.0));
    let all = step.all_statistics();
    let [("e2e_latency", statistics)] = &all[..] else { panic!("{all:?}") };
    let named: Vec<_> =
        statistics.percentiles.iter().map(|(one, value)| (one.name, *value)).collect();
    assert_eq!(named, [("p50", 10), ("p99", 99)]);
    let OutputItem::Note(note) = &items[2] else { panic!("{items:?}") };
    assert_eq!((note.kind, note.text.as_str()), ("ended", "threshold_failed"));
    assert_eq!(note.at_ms, STARTED_MS + 9_000);
}

#[test]
fn percentiles_are_those_of_the_record_and_need_as_many_samples() {
    for samples in [19, 20, 999, 1_000, 12_345] {
        let mut all = histogram();
        (1..=samples).for_each(|value| all.record(value * 7).expect("grows"));
        let buckets = Buckets::of(&all);
        for one in NamedPercentile::ALL {
            let of_record = percentile(&all, one.quantile());
            assert_eq!(buckets.percentile(one), of_record, "{} of {samples}", one.name);
        }
    }
}

#[test]
fn an_interval_gives_all_latencies_and_those_of_its_groups() {
    let mut e2e = histogram();
    e2e.record(5).expect("grows");
    let group = GroupInterval { e2e: e2e.clone(), ..GroupInterval::default() };
    let interval = IntervalSnapshot {
        phase: PhaseKind::Measure,
        phase_index: 0,
        start_ns: 0,
        len_ns: 1,
        connected: 0,
        counters: tacho_load::Counters::default(),
        service: histogram(),
        send_delay: histogram(),
        ack: histogram(),
        ack_failed: histogram(),
        connect: tacho_load::Outcomes::default(),
        subscribe: tacho_load::Outcomes::default(),
        logins: None,
        bytes_in: 0,
        bytes_out: 0,
        rtt: e2e.clone(),
        groups: vec![group],
        targets: Vec::new(),
        threads: Vec::new(),
        shares: Vec::new(),
        actions: Vec::new(),
        e2e,
    };
    let latencies = IntervalLatencies::of(&interval);
    let counts: Vec<_> =
        latencies.all.iter().map(|(name, buckets)| (*name, buckets.count())).collect();
    assert_eq!(counts.first(), Some(&("e2e_latency", 1)));
    assert_eq!(counts.last(), Some(&("round_trip", 1)));
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 2);
    let logs_in = IntervalSnapshot { logins: Some(Box::default()), ..interval };
    assert_eq!(
        IntervalLatencies::of(&logs_in).all.last().map(|(name, _)| *name),
        Some("login_latency")
    );
    assert_eq!(latencies.groups.len(), 1);
}
