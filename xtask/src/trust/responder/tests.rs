//! What a responder does to messages, seen through its sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::serve::Responder;
use super::wire::packet_length;
use super::*;
use crate::mqtt;

const TOPIC: &str = "test/1";

/// A responder on a thread, and a client that publishes to itself: all that one connection is told
/// arrives in the order in which it was told.
struct Shown {
    client: TcpStream,
    input: UnixStream,
    server: JoinHandle<Result<Testimony>>,
    unread: Vec<u8>,
    published: u16,
}

/// What the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Delivered(u16),
    Acknowledged(u16),
}

impl Shown {
    fn new(options: ResponderOptions) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a setting");
        let address = listener.local_addr().expect("has one");
        let (input, ends) = UnixStream::pair().expect("a pair of sockets");
        let server = thread::spawn(move || Responder::new(&options, listener, &ends)?.serve());
        let mut client = mqtt::connect(address, "itself").expect("is accepted");
        client.write_all(&mqtt::subscribe(1, &[TOPIC.to_owned()])).expect("is open");
        let mut suback = [0; 5];
        client.read_exact(&mut suback).expect("a SUBACK");
        assert_eq!(suback, [0x90, 3, 0, 1, 0]);
        Self { client, input, server, unread: Vec::new(), published: 0 }
    }

    /// Publishes the next message: QoS 1, its number as identifier and payload.
    fn publish(&mut self) {
        self.published += 1;
        let mut body = Vec::new();
        mqtt::push_text(&mut body, TOPIC);
        body.extend_from_slice(&self.published.to_be_bytes());
        body.extend_from_slice(&self.published.to_be_bytes());
        self.client.write_all(&mqtt::packet(0x32, &body)).expect("is open");
    }

    /// The next thing that it is told.
    fn told(&mut self) -> Told {
        loop {
            let length = packet_length(&self.unread).expect("is MQTT");
            if let Some(length) = length.filter(|length| self.unread.len() >= *length) {
                let packet: Vec<u8> = self.unread.drain(..length).collect();
                let number = u16::from_be_bytes(*packet.last_chunk().expect("a number"));
                return match packet[0] {
                    0x30 => Told::Delivered(number),
                    0x40 => Told::Acknowledged(number),
                    other => panic!("{other:x}"),
                };
            }
            let mut buffer = [0; 4_096];
            let count = self.client.read(&mut buffer).expect("an answer");
            assert!(count > 0, "the responder has closed the connection");
            self.unread.extend_from_slice(&buffer[..count]);
        }
    }

    /// All that it is told until the message with this number is acknowledged.
    fn told_until(&mut self, acknowledged: u16) -> Vec<Told> {
        let mut all = Vec::new();
        while all.last() != Some(&Told::Acknowledged(acknowledged)) {
            all.push(self.told());
        }
        all
    }

    fn end(self) -> Testimony {
        drop(self.input);
        self.server.join().expect("does not panic").expect("serves to the end")
    }
}

/// What is delivered of this many messages, of which every third is treated wrongly. All are
/// acknowledged.
fn delivered(fault: Fault, messages: u16) -> (Vec<u16>, Testimony) {
    let fault = Some(fault);
    let options = ResponderOptions { fault, fault_every: 3, ..ResponderOptions::default() };
    let mut shown = Shown::new(options);
    for _ in 0..messages {
        shown.publish();
    }
    let told = shown.told_until(messages);
    let number = |told: &Told| match told {
        Told::Delivered(number) => Some(*number),
        Told::Acknowledged(_) => None,
    };
    let delivered: Vec<u16> = told.iter().filter_map(number).collect();
    assert_eq!(told.len() - delivered.len(), usize::from(messages), "acknowledged");
    (delivered, shown.end())
}

#[test]
fn lost_messages_are_acknowledged_and_not_delivered() {
    let (numbers, record) = delivered(Fault::Lose, 30);
    let expected: Vec<u16> = (1..=30).filter(|number| number % 3 != 0).collect();
    assert_eq!(numbers, expected);
    assert_eq!((record.messages, record.lost, record.doubled, record.reordered), (30, 10, 0, 0));
}

#[test]
fn doubled_messages_arrive_twice() {
    let (numbers, record) = delivered(Fault::Double, 7);
    assert_eq!(numbers, [1, 2, 3, 3, 4, 5, 6, 6, 7]);
    assert_eq!((record.messages, record.lost, record.doubled, record.reordered), (7, 0, 2, 0));
}

#[test]
fn reordered_messages_arrive_after_their_successor() {
    let (numbers, record) = delivered(Fault::Reorder, 7);
    assert_eq!(numbers, [1, 2, 4, 3, 5, 7, 6]);
    assert_eq!((record.messages, record.lost, record.doubled, record.reordered), (7, 0, 0, 2));
}

#[test]
fn held_messages_arrive_no_sooner_and_the_record_says_how_long() {
    let options = ResponderOptions { hold_us: Some(30_000), ..ResponderOptions::default() };
    let mut shown = Shown::new(options);
    for number in 1..=5 {
        let sent = Instant::now();
        shown.publish();
        assert_eq!(shown.told(), Told::Delivered(number));
        assert!(sent.elapsed() >= Duration::from_millis(30), "{:?}", sent.elapsed());
        assert_eq!(shown.told(), Told::Acknowledged(number));
    }
    let record = shown.end();
    assert_eq!((record.messages, record.held, record.lost), (5, 5, 0));
    assert!(record.hold_us_p50 >= 30_000.0, "{record:?}");
}

#[test]
fn a_stall_holds_what_arrives_in_it() {
    // 100 ms of every 150 ms: of messages at any times, some meet a stall.
    let stall_ms = Some(100);
    let options = ResponderOptions { stall_ms, stall_every_ms: 150, ..ResponderOptions::default() };
    let mut shown = Shown::new(options);
    let (mut held, mut number) = (0, 0);
    while held < 2 {
        number += 1;
        let sent = Instant::now();
        shown.publish();
        assert_eq!(shown.told(), Told::Delivered(number));
        held += u32::from(sent.elapsed() >= Duration::from_millis(50));
        assert_eq!(shown.told(), Told::Acknowledged(number));
    }
    let record = shown.end();
    assert_eq!((record.messages, record.lost), (u64::from(number), 0));
    assert!(record.hold_us_max >= 50_000.0, "{record:?}");
}

#[test]
fn a_limited_forwarder_is_as_slow_as_its_limit() {
    let options = ResponderOptions { limit: Some(200), ..ResponderOptions::default() };
    let mut shown = Shown::new(options);
    let sent = Instant::now();
    for _ in 0..44 {
        shown.publish();
    }
    let told = shown.told_until(44);
    // It may catch up for 20 ms, which are four messages; the others are 5 ms apart.
    assert!(sent.elapsed() >= Duration::from_millis(195), "{:?}", sent.elapsed());
    assert_eq!(told.len(), 88, "nothing is lost");
    assert_eq!(shown.end().messages, 44);
}
