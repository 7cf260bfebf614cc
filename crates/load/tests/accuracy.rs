//! Accuracy of the figures against a responder that delays messages by a known time, and one that
//! stalls. These tests measure, so they are excluded from ordinary runs; run them one at a time on
//! a machine with two idle cores:
//!
//! ```text
//! cargo test --release -p tacho-load --test accuracy -- --ignored --test-threads 1 --nocapture
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tacho_codec::{
    Ack, ConnAck, Direction, Packet, PacketId, Publish, QoS, ReasonCode, SubAck, Version,
    split_frame,
};
use tacho_load::payload::Header;
use tacho_load::{Histogram, Phase, Timing};
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Next, Remote, clock, mailboxes};
use tacho_testkit::load::{Scene, open, run};

const MS: u64 = 1_000_000;

/// The behaviour of the responder.
#[derive(Clone, Copy)]
enum Delay {
    /// Delivers it this long after it was written.
    Hold(u64),
    /// Stalls for `length_ns` in every `period_ns`.
    Stall { period_ns: u64, length_ns: u64 },
}

/// One publisher, one subscriber, any topic.
struct Responder {
    delay: Delay,
    subscriber: Option<ConnId>,
    next_id: u16,
    held: VecDeque<(u64, Header, Vec<u8>)>,
    stall_ns: u64,
    /// Written here minus written by the generator, in microseconds: what a perfect generator would
    /// measure if the return path took no time.
    truth: Histogram,
}

impl Responder {
    fn deliver(&mut self, net: &mut Net<Self>, header: &Header, frame: &[u8]) {
        let Some(conn) = self.subscriber else { return };
        net.out(conn).extend_from_slice(frame);
        if !header.probe {
            let held_us = clock::now_ns().saturating_sub(header.sent_ns()) / 1_000;
            self.truth.record(held_us).expect("the histogram grows");
        }
    }

    fn publish(&mut self, net: &mut Net<Self>, conn: ConnId, publish: &Publish<'_>) {
        if let Some(packet_id) = publish.packet_id {
            let ack = Packet::PubAck(Ack::new(packet_id, ReasonCode::SUCCESS));
            ack.encode(Version::V5, net.out(conn).as_vec_mut()).expect("encodable");
        }
        let header = Header::decode(publish.payload).expect("only load clients publish here");
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        let packet_id = publish.packet_id.and_then(|_| PacketId::new(self.next_id));
        let mut frame = Vec::new();
        let publish = Publish { packet_id, ..*publish };
        publish.encode(Version::V5, &mut frame).expect("encodable");
        match self.delay {
            Delay::Hold(delay_ns) => {
                self.held.push_back((header.sent_ns() + delay_ns, header, frame));
            }
            Delay::Stall { .. } => self.deliver(net, &header, &frame),
        }
    }
}

impl Handler for Responder {
    type Mail = std::sync::mpsc::Sender<Histogram>;
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, _conn: ConnId, _listener: usize) {}

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let mut used = 0;
        while let Some(frame) = split_frame(&data[used..], u32::MAX).expect("frames") {
            used += frame.total_len;
            let answer = match Packet::decode(&frame, Version::V5, Direction::ToServer) {
                Ok(Packet::Connect(_)) => Packet::ConnAck(ConnAck::refusal(ReasonCode::SUCCESS)),
                Ok(Packet::Subscribe(subscribe)) => {
                    self.subscriber = Some(conn);
                    Packet::SubAck(SubAck {
                        packet_id: subscribe.packet_id,
                        reasons: vec![ReasonCode::granted(QoS::AtLeastOnce)],
                        reason_string: None,
                        user_properties: Default::default(),
                    })
                }
                Ok(Packet::Publish(publish)) => {
                    self.publish(net, conn, &publish);
                    continue;
                }
                Ok(Packet::PingReq) => Packet::PingResp,
                _ => continue,
            };
            answer.encode(Version::V5, net.out(conn).as_vec_mut()).expect("encodable");
        }
        used
    }

    fn closed(&mut self, _net: &mut Net<Self>, _conn: ConnId, _why: Closed) {}

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, reply: Self::Mail) {
        // The test waits for it.
        let _ = reply.send(self.truth.clone());
        net.stop();
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let now_ns = clock::now_ns();
        if let Delay::Stall { period_ns, length_ns } = self.delay
            && now_ns >= self.stall_ns
        {
            self.stall_ns = now_ns + period_ns;
            std::thread::sleep(std::time::Duration::from_nanos(length_ns));
        }
        while let Some((_, header, frame)) =
            self.held.pop_front_if(|(due_ns, ..)| *due_ns <= clock::now_ns())
        {
            self.deliver(net, &header, &frame);
        }
        match self.delay {
            Delay::Hold(_) => Next::Again,
            Delay::Stall { .. } => Next::At(self.stall_ns),
        }
    }
}

struct Running {
    addr: SocketAddr,
    remote: Remote<std::sync::mpsc::Sender<Histogram>>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Spins where it delays messages, because its own lateness would distort the figures.
    fn start(delay: Delay) -> Self {
        let listener = tacho_net::bind(([127, 0, 0, 1], 0).into(), 16).expect("bind");
        let addr = listener.local_addr().expect("address");
        let mailbox = mailboxes(1).pop().expect("one mailbox");
        let remote = mailbox.remote();
        let spin = matches!(delay, Delay::Hold(_));
        let config = LoopConfig { listeners: vec![listener], spin, ..LoopConfig::default() };
        let event_loop = Loop::<Responder>::new(config, mailbox).expect("loop");
        let thread = std::thread::spawn(move || {
            let mut responder = Responder {
                delay,
                subscriber: None,
                next_id: 0,
                held: VecDeque::new(),
                stall_ns: clock::now_ns() + 1_000 * MS,
                truth: tacho_load::events::histogram(),
            };
            event_loop.run(&mut responder).expect("loop runs");
        });
        Self { addr, remote, thread }
    }

    fn truth(self) -> Histogram {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.remote.post(0, sender);
        let truth = receiver.recv().expect("the responder answers");
        self.thread.join().expect("the responder does not panic");
        truth
    }
}

fn scene(measure_ms: u64) -> Scene {
    Scene {
        pace: open(1_000),
        warm_up_ms: 500,
        measure_ms,
        drain_ms: 5_000,
        ..Scene::pairs(1, QoS::AtLeastOnce)
    }
}

#[test]
#[ignore = "measures; needs two free cores"]
fn the_median_service_time_is_right() {
    for delay_ms in [1, 5, 50] {
        let responder = Running::start(Delay::Hold(delay_ms * MS));
        let mut plan = scene(4_000).plan(responder.addr);
        plan.timing = Timing::Spin;
        let outcome = run(plan);
        let totals = outcome.only();
        assert_eq!((totals.delivery.sent, totals.delivery.lost), (4_000, 0));
        let median = totals.service.value_at_quantile(0.5) as f64;
        let truth = responder.truth().value_at_quantile(0.5) as f64;
        let wanted = delay_ms as f64 * 1_000.0;
        println!(
            "held {wanted} us: the responder's own median {truth} us, measured {median} us, \
             {:+.1} us from what was asked for, p99 {} us",
            median - wanted,
            totals.service.value_at_quantile(0.99)
        );
        assert!((median - wanted).abs() <= wanted * 0.01 + 20.0, "{median} instead of {wanted}");
    }
}

/// At 1,000 messages per second, 4 % meet a stall of 200 ms in 5 s and wait 0 to 200 ms for its
/// end: the 99th percentile of all messages is at 3/4 of the stall.
#[test]
#[ignore = "measures; needs two free cores"]
fn a_stall_shows_in_full() {
    let stall = Delay::Stall { period_ns: 5_000 * MS, length_ns: 200 * MS };
    let responder = Running::start(stall);
    let mut plan = scene(15_000).plan(responder.addr);
    // A probe must not coincide with the first stall.
    plan.phases.retain(|phase| !matches!(phase, Phase::Probe { .. }));
    let outcome = run(plan);
    let e2e = &outcome.only().e2e;
    let (p99, max) = (e2e.value_at_quantile(0.99), e2e.max());
    println!("e2e: p50 {} us, p99 {p99} us, max {max} us", e2e.value_at_quantile(0.5));
    responder.truth();
    assert!((135_000..=170_000).contains(&p99), "p99 {p99} us");
    assert!(max >= 199_000, "max {max} us");
}
