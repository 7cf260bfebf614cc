//! Points on their way to services: a stub takes them apart again.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;

use hdrhistogram::Histogram;
use tacho_output::{
    Buckets, OutputAccount, OutputItem, OutputNote, OutputPoint, OutputSetting, OutputTarget,
    Outputs, PointFigure, PointSeries, PointTag, PointTags, PointWindow, TableRow,
};
use tacho_testkit::http::{StubAnswer, StubRequest, StubService};
use tacho_testkit::{PATIENCE, wait_until};

fn outputs(targets: &[String]) -> Outputs {
    let targets = targets.iter().map(|text| OutputTarget::parse(text).expect("a target"));
    let setting = OutputSetting { targets: targets.collect(), cpus: Vec::new() };
    Outputs::start(&setting).expect("starts")
}

fn second(number: u64) -> OutputItem {
    let mut histogram = Histogram::new(3).expect("three digits");
    (1..=20).for_each(|value| histogram.record(value * 10).expect("grows"));
    OutputItem::Point(Box::new(OutputPoint {
        series: PointSeries::Load,
        tags: PointTags::default().with(PointTag::Run, "r"),
        window: PointWindow {
            start_ms: number * 1_000,
            end_ms: (number + 1) * 1_000,
            phase: "measure".to_owned(),
            measured: Some(true),
        },
        figures: vec![PointFigure::count("published", 7)],
        latencies: vec![("e2e_latency", Buckets::of(&histogram))],
        statistics: Vec::new(),
        row: Some(TableRow { columns: &["start_s"], cells: vec![number.to_string()] }),
    }))
}

/// Waits until the stub has so many requests.
fn wait_for(stub: &StubService, count: usize) -> Vec<StubRequest> {
    wait_until("requests", || stub.requests().len() >= count);
    stub.requests()
}

fn gunzipped(request: &StubRequest) -> String {
    assert_eq!(request.header("content-encoding"), "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&request.body[..]).read_to_string(&mut text).expect("gzip");
    text
}

fn account(outputs: &Outputs) -> OutputAccount {
    let accounts = outputs.end_series(PATIENCE);
    let [account] = &accounts[..] else { panic!("{accounts:?}") };
    account.clone()
}

#[test]
fn influxdb_gets_lines_with_its_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "sesame\n").expect("writes");
    let stub = StubService::start([]);
    let target =
        format!("influxdb=http://{}?org=o&bucket=b&token-file={}", stub.address(), token.display());
    let outputs = outputs(&[target]);
    outputs.send(vec![second(0), second(1)]);
    let account = account(&outputs);
    assert_eq!((account.taken, account.lost(), account.last_error), (4, 0, None));
    assert_eq!(account.target, format!("influxdb=http://{}", stub.address()));
    let requests = stub.requests();
    let text: String = requests.iter().map(gunzipped).collect();
    assert_eq!(requests[0].path, "/api/v2/write?org=o&bucket=b&precision=ms");
    assert_eq!(requests[0].header("authorization"), "Token sesame");
    assert!(requests[0].header("user-agent").starts_with("tacho/"));
    let loads: Vec<&str> = text.lines().filter(|line| line.contains("published=7i")).collect();
    assert_eq!(loads.len(), 2, "{text}");
    assert!(loads[1].ends_with(" 2000"), "{text}");
}

#[test]
fn prometheus_gets_snappy_blocks_and_stale_markers() {
    let stub = StubService::start([]);
    let outputs = outputs(&[format!("prometheus=http://{}", stub.address())]);
    outputs.send(vec![second(0)]);
    let account = account(&outputs);
    // A counter and a histogram with their zeros, a percentile; then the end of each.
    assert_eq!((account.taken, account.lost()), (2 + 2 + 1 + 3, 0));
    let requests = stub.requests();
    assert_eq!(requests[0].path, "/api/v1/write");
    assert_eq!(requests[0].header("content-encoding"), "snappy");
    assert_eq!(requests[0].header("content-type"), "application/x-protobuf");
    assert_eq!(requests[0].header("x-prometheus-remote-write-version"), "0.1.0");
    let bytes = snap::raw::Decoder::new().decompress_vec(&requests[0].body).expect("snappy");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("mqtt_load_published_total"), "{text}");
    let stale = 0x7ff0_0000_0000_0002_u64.to_le_bytes();
    assert!(bytes.windows(8).any(|window| window == stale), "the series end");
}

#[test]
fn opentelemetry_gets_what_its_own_messages_read() {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    let stub = StubService::start([]);
    let outputs = outputs(&[format!("otlp=http://{}?gzip=off", stub.address())]);
    outputs.send(vec![second(0)]);
    assert_eq!(account(&outputs).taken, 3);
    let requests = stub.requests();
    assert_eq!(requests[0].path, "/v1/metrics");
    assert_eq!(requests[0].header("content-type"), "application/x-protobuf");
    let request = <ExportMetricsServiceRequest as prost::Message>::decode(&requests[0].body[..]);
    let request = request.expect("decodes");
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(
        names,
        ["mqtt_load_e2e_latency", "mqtt_load_e2e_latency_p50", "mqtt_load_published"]
    );
}

#[test]
fn a_service_that_is_busy_gets_the_same_points_later() {
    let busy = |status| StubAnswer {
        headers: vec!["Retry-After: 0".to_owned()],
        ..StubAnswer::new(status, "busy")
    };
    let stub = StubService::start([busy(503), busy(429)]);
    let outputs = outputs(&[format!("influxdb=http://{}/d", stub.address())]);
    outputs.send(vec![second(0)]);
    let requests = wait_for(&stub, 3);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
    let account = account(&outputs);
    assert_eq!((account.taken, account.lost(), account.repeated), (2, 0, 2));
    assert!(account.last_error.is_some_and(|why| why == "it answered 429: busy"));
    let troubles = outputs.take_troubles();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].1.contains("503"), "the first error is told: {troubles:?}");
    assert!(outputs.take_troubles().is_empty(), "once");
}

#[test]
fn refused_points_are_named_and_not_sent_again() {
    let partial = r#"{"error":"partial write: points beyond retention policy dropped=1"}"#;
    let stub = StubService::start([StubAnswer::new(400, partial), StubAnswer::new(401, "login")]);
    let outputs = outputs(&[format!("influxdb=http://{}/d", stub.address())]);
    outputs.send(vec![second(0)]);
    wait_for(&stub, 1);
    outputs.send(vec![second(1)]);
    let account = account(&outputs);
    assert_eq!((account.taken, account.refused, account.unsent), (1, 1 + 2, 0));
    assert_eq!(account.last_error.as_deref(), Some("it answered 401: login"));
    assert_eq!(stub.requests().len(), 2);
    // The next run has an account of its own.
    outputs.send(vec![second(2)]);
    let accounts = outputs.end_series(PATIENCE);
    assert_eq!((accounts[0].taken, accounts[0].lost()), (2, 0));
}

#[test]
fn of_opentelemetry_a_partial_success_counts_as_refused() {
    // ExportMetricsServiceResponse { partial_success { rejected_data_points: 2, error: "old" } }
    let answer = StubAnswer {
        body: vec![0x0a, 7, 0x08, 2, 0x12, 3, b'o', b'l', b'd'],
        ..StubAnswer::new(200, "")
    };
    let stub = StubService::start([answer]);
    let outputs = outputs(&[format!("otlp=http://{}", stub.address())]);
    outputs.send(vec![second(0)]);
    let account = account(&outputs);
    assert_eq!((account.taken, account.refused), (1, 2));
    assert_eq!(account.last_error.as_deref(), Some("it refused 2: old"));
}

#[test]
fn a_dead_service_loses_points_and_ends_nothing() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let outputs = outputs(&[format!("influxdb=http://{address}/d")]);
    outputs.send(vec![second(0), second(1)]);
    let account = account(&outputs);
    assert_eq!((account.taken, account.refused, account.unsent), (0, 0, 4));
    assert!(account.last_error.is_some(), "it says why");
    assert!(outputs.failure().is_none(), "the run goes on");
}

#[test]
fn a_service_that_comes_back_gets_what_waited() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let outputs = outputs(&[format!("influxdb=http://{address}/d")]);
    outputs.send(vec![second(0)]);
    wait_until("an attempt", || !outputs.take_troubles().is_empty());
    let stub = StubService::on(TcpListener::bind(address).expect("free again"), []);
    outputs.send(vec![second(1)]);
    let text: String = wait_for(&stub, 1).iter().map(gunzipped).collect();
    assert!(text.lines().any(|line| line.ends_with(" 1000")), "{text}");
    let account = account(&outputs);
    assert_eq!((account.taken, account.lost()), (4, 0));
}

#[test]
fn a_failure_ends_the_run_where_the_target_says_so() {
    let stub = StubService::start([StubAnswer::new(404, "database not found: \"d\"")]);
    let target = format!("influxdb=http://{}/d?on-failure=end", stub.address());
    let outputs = outputs(&[target]);
    assert!(outputs.failure().is_none());
    outputs.send(vec![second(0)]);
    account(&outputs);
    let (target, why) = outputs.failure().expect("the run is to end");
    assert!(target.starts_with("influxdb=") && why.contains("database not found"), "{why}");
}

#[test]
fn a_silent_service_is_waited_for_no_longer_than_its_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let outputs = outputs(&[format!("influxdb=http://{address}/d?timeout=200ms")]);
    outputs.send(vec![second(0)]);
    let account = account(&outputs);
    assert_eq!((account.taken, account.unsent), (0, 2));
    assert!(account.last_error.is_some_and(|why| why.contains("timeout")), "it says why");
}

#[test]
fn files_grow_while_the_run_goes_on_and_compressed_ones_end_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let outputs = outputs(&[
        format!("json={}", path("a.jsonl").display()),
        format!("csv={}", path("a.csv").display()),
        format!("json={}", path("a.jsonl.gz").display()),
    ]);
    outputs.send(vec![second(0)]);
    let accounts = outputs.end_series(PATIENCE);
    assert!(accounts.iter().all(|account| account.taken == 1 && account.is_clean()));
    let lines = |path: &Path| fs::read_to_string(path).expect("reads").lines().count();
    assert_eq!((lines(&path("a.jsonl")), lines(&path("a.csv"))), (1, 2));
    outputs.send(vec![
        second(1),
        OutputItem::Note(OutputNote {
            at_ms: 9,
            tags: PointTags::default(),
            kind: "ended",
            text: "ok".to_owned(),
        }),
    ]);
    outputs.end_series(PATIENCE);
    assert_eq!((lines(&path("a.jsonl")), lines(&path("a.csv"))), (3, 3));
    drop(outputs);
    let file = fs::File::open(path("a.jsonl.gz")).expect("opens");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("whole");
    assert_eq!(text, fs::read_to_string(path("a.jsonl")).expect("reads"));
}

#[test]
fn what_cannot_be_opened_is_an_error_before_anything_starts() {
    let error = |text: &str| {
        let targets = vec![OutputTarget::parse(text).expect("a target")];
        let started = Outputs::start(&OutputSetting { targets, cpus: Vec::new() });
        started.expect_err("cannot start").to_string()
    };
    assert!(error("json=/no/such/folder/a.jsonl").contains("/no/such/folder/a.jsonl"));
    assert!(error("influxdb=http://h/d?token-file=/no/token").contains("/no/token"));
    assert!(error("otlp=https://h?ca-file=/no/ca.pem").contains("/no/ca.pem"));
    let many = vec![OutputTarget::parse("json=x").expect("a target"); 17];
    let error = Outputs::start(&OutputSetting { targets: many, cpus: Vec::new() });
    assert!(error.expect_err("too many").to_string().contains("17 outputs"));
}
