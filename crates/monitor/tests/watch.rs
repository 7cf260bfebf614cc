//! Sources other than agents, end to end: the local machine, an HTTP endpoint, UDP packets.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use tacho_monitor::{HostRow, MonitorSpec, Watch};
use tacho_testkit::wait_until;

fn spec(text: &str) -> MonitorSpec {
    MonitorSpec::parse(text).expect(text)
}

fn rows(watch: &mut Watch, enough: impl Fn(&[HostRow]) -> bool) -> Vec<HostRow> {
    let mut rows = Vec::new();
    wait_until("enough rows arrive", || {
        rows.extend(watch.rows());
        enough(&rows)
    });
    rows
}

/// Answers each request with the next text, and stops after the last one.
fn http(answers: Vec<String>) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let thread = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            let length = stream.read(&mut request).expect("a request");
            assert!(request[..length].starts_with(b"GET /metrics HTTP/1.1"));
            let length = answer.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
            )
            .expect("answers");
        }
    });
    (port, thread)
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine() {
    let mut spec = spec("local");
    spec.interval = Duration::from_millis(100);
    let mut watch = Watch::start(&[spec]).expect("watches");
    let rows = rows(&mut watch, |rows| rows.len() >= 2);
    assert_eq!((rows[0].source.as_str(), rows[0].clock_error_ns), ("local", Some(0)));
    assert!(rows[1].at_ns > rows[0].at_ns);
    assert_eq!(watch.stop()[0].errors, 0);
}

#[test]
fn a_prometheus_endpoint() {
    let answer = |second: u32| {
        format!(
            "node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {second}\n\
             node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {second}\n"
        )
    };
    let mut answers: Vec<String> = (0..4).map(answer).collect();
    answers.insert(2, "something else".to_owned());
    let (port, server) = http(answers);
    let text = format!("b=prometheus+http://127.0.0.1:{port}/metrics#interval=100ms");
    let mut watch = Watch::start(&[spec(&text)]).expect("watches");
    let rows = rows(&mut watch, |rows| rows.len() >= 3);
    assert!((rows[0].cpu.expect("cpu").user - 50.0).abs() < 1e-6);
    assert_eq!(rows[0].host, format!("127.0.0.1:{port}"));
    assert_eq!(rows[0].target.as_deref(), Some("b"));
    assert!(rows[0].clock_error_ns > Some(0));
    server.join().expect("the server ends");
    let report = watch.stop().remove(0);
    assert!(report.errors >= 1, "{report:?}");
}

#[test]
fn an_unreachable_endpoint_or_one_without_metrics_is_named() {
    let port =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let text = format!("prometheus+http://127.0.0.1:{port}/metrics");
    let error = Watch::start(&[spec(&text)]).expect_err("refused").to_string();
    assert!(error.contains(&text), "{error}");
    let (port, server) = http(vec!["up 1\n".to_owned()]);
    let text = format!("prometheus+http://127.0.0.1:{port}/metrics");
    let error = Watch::start(&[spec(&text)]).expect_err("no metrics").to_string();
    assert!(error.contains("node_exporter"), "{error}");
    server.join().expect("the server ends");
}

/// A packet with the load average of a host at a given second.
fn load(host: &str, second: u64) -> Vec<u8> {
    let mut packet = Vec::new();
    let mut part = |kind: u16, body: &[u8]| {
        packet.extend(kind.to_be_bytes());
        packet.extend((body.len() as u16 + 4).to_be_bytes());
        packet.extend(body);
    };
    part(0, format!("{host}\0").as_bytes());
    part(8, &(second << 30).to_be_bytes());
    part(9, &(1_u64 << 30).to_be_bytes());
    part(2, b"load\0");
    part(4, b"load\0");
    let mut values = vec![0, 3, 1, 1, 1];
    for value in [second as f64, 2.0, 3.0] {
        values.extend(value.to_le_bytes());
    }
    part(6, &values);
    packet
}

#[test]
fn collectd_hosts_on_one_address_are_separated() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("bound").port();
    drop(socket);
    let one = format!("node1=collectd://127.0.0.1:{port}?host=b1");
    let two = format!("node2=collectd://127.0.0.1:{port}?host=b2");
    let mut watch = Watch::start(&[spec(&one), spec(&two)]).expect("listens");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sender.connect(("127.0.0.1", port)).expect("connects");
    sender.send(b"nonsense").expect("sends");
    sender.send(&[2, 0x10, 0, 4]).expect("sends");
    for second in 100..103 {
        for host in ["b1", "b2", "b3"] {
            sender.send(&load(host, second)).expect("sends");
        }
    }
    let rows = rows(&mut watch, |rows| rows.len() >= 4);
    let of = |target: &str| {
        let own = rows.iter().filter(|row| row.target.as_deref() == Some(target));
        own.map(|row| (row.host.clone(), row.load.map(|load| load[0]))).collect::<Vec<_>>()
    };
    let expected = |host: &str| [(host.to_owned(), Some(100.0)), (host.to_owned(), Some(101.0))];
    assert_eq!(of("node1")[..2], expected("b1"));
    assert_eq!(of("node2")[..2], expected("b2"));
    let reports = watch.stop();
    assert_eq!(reports[0].errors, 2, "{reports:?}");
    assert!(reports[0].last_error.as_ref().is_some_and(|e| e.contains("encrypted")), "{reports:?}");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let text = format!("collectd://{}", taken.local_addr().expect("bound"));
    let error = Watch::start(&[spec(&text)]).expect_err("taken").to_string();
    assert!(error.contains(&text), "{error}");
}
