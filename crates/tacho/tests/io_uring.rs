//! Writes in batches: told in the start-up line, counted, and turned off by `io_uring = false`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use tacho_codec::QoS;
use tacho_testkit::{BrokerProgram, line_with, runtime_folder};

const SUBSCRIBERS: usize = 40;
const MESSAGES: usize = 20;

/// Starts a broker of one shard; returns the address of its metrics, too.
fn start(io_uring: bool) -> (BrokerProgram, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.env("XDG_RUNTIME_DIR", runtime_folder());
    command.env("TACHO_BROKER__IO_URING", io_uring.to_string());
    command.args(["broker", "--listen", "0", "--shards", "1", "--metrics", "127.0.0.1:0"]);
    let mut broker = BrokerProgram::start(&mut command);
    let line = line_with(&mut broker.log, "metrics at ");
    let url = line.rsplit("http://").next().and_then(|url| url.strip_suffix("/metrics"));
    let metrics = url.expect("a URL").to_owned();
    (broker, metrics)
}

/// System calls that made several writes.
fn write_batches(metrics: &str) -> f64 {
    let mut stream = TcpStream::connect(metrics).expect("connects");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("asks");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is text");
    let name = "tacho_write_batches_total{";
    let line = answer.lines().find(|line| line.starts_with(name)).expect("is counted");
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

/// Sends messages to all subscribers; each must get every one, in order.
fn fan_out(broker: &BrokerProgram) {
    let mut subscribers: Vec<_> =
        (0..SUBSCRIBERS).map(|i| broker.connected(&format!("s{i}"))).collect();
    for subscriber in &mut subscribers {
        subscriber.subscribe("t", QoS::AtLeastOnce);
    }
    let mut publisher = broker.connected("publisher");
    for message in 0..MESSAGES {
        publisher.publish("t", &[message as u8; 100], QoS::AtLeastOnce, false);
    }
    for subscriber in &mut subscribers {
        for message in 0..MESSAGES {
            assert_eq!(subscriber.receive_and_ack().payload, [message as u8; 100]);
        }
    }
}

#[test]
fn a_fan_out_uses_io_uring_where_the_start_up_line_says_so() {
    let (broker, metrics) = start(true);
    fan_out(&broker);
    let has_io_uring = broker.said.contains("(epoll, writes with io_uring)");
    assert_eq!(write_batches(&metrics) > 0.0, has_io_uring, "{}", broker.said);
    // A system without it says why.
    assert!(has_io_uring || broker.said.contains("no io_uring: "), "{}", broker.said);
}

#[test]
fn without_io_uring_each_write_is_a_call_of_its_own() {
    let (broker, metrics) = start(false);
    fan_out(&broker);
    assert_eq!(write_batches(&metrics), 0.0);
    assert!(!broker.said.contains("io_uring"), "{}", broker.said);
}
