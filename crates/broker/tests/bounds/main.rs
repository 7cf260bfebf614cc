//! Limits and fairness: what happens at every limit, and that other clients are not affected.
#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

mod budget;
mod handshakes;
mod incomplete;
mod overload;
mod slow;
mod storm;
mod totals;

/// The slowest clients as the control plane has them, the slowest first.
fn slowest(broker: &tacho_testkit::TestBroker, count: usize) -> Vec<Value> {
    let mut stream = TcpStream::connect(broker.metrics_address()).unwrap();
    let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    write!(stream, "GET /clients/slowest?n={count} {head}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").expect("an answer").1;
    let answer: Value = serde_json::from_str(body).unwrap();
    answer["clients"].as_array().unwrap().clone()
}
