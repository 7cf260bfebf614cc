//! The session machines, behaviour by behaviour.

mod aliases;
mod authentication;
mod client;
mod inbound;
mod lifetime;
mod loading;
mod outbound;
mod peer;
mod queue;
mod records;
mod restored;

use tacho_codec::{AckKind, PacketId, QoS, ReasonCode, Version};
use tacho_session::server::{ConnectParams, Session, SessionLimits};
use tacho_session::{BatchSeq, Delivery, EXPIRY_NEVER, InMemory, Offer, Persist, Record, Transmit};

const SECOND_NS: u64 = 1_000_000_000;

fn id(value: u16) -> PacketId {
    PacketId::new(value).expect("not zero")
}

/// A resumable 5.0 connection with the protocol's defaults.
fn params<M>() -> ConnectParams<M> {
    ConnectParams {
        version: Version::V5,
        clean_start: false,
        receive_maximum: u16::MAX,
        topic_alias_maximum_in: 0,
        topic_alias_maximum_out: 0,
        keep_alive_s: 0,
        session_expiry_s: EXPIRY_NEVER,
        will: None,
    }
}

fn connected_with(
    limits: SessionLimits,
    params: ConnectParams<&'static str>,
) -> Session<&'static str> {
    let mut session = Session::new(limits);
    assert!(!session.connect(0, params).session_present);
    session
}

fn connected() -> Session<&'static str> {
    connected_with(SessionLimits::default(), params())
}

fn offer(
    session: &mut Session<&'static str>,
    qos: QoS,
    message: &'static str,
) -> Offer<&'static str> {
    session.offer(0, Delivery::new(qos, message), &mut InMemory)
}

/// All packets to send when all batches are committed.
fn poll_all(session: &mut Session<&'static str>) -> Vec<Transmit<&'static str>> {
    let all = BatchSeq::new(u64::MAX);
    std::iter::from_fn(|| session.poll_transmit(0, all, &mut InMemory)).collect()
}

fn publish(qos: QoS, message: &'static str, packet_id: u16, dup: bool) -> Transmit<&'static str> {
    let delivery = Delivery::new(qos, message);
    Transmit::Publish { delivery, packet_id: PacketId::new(packet_id), dup }
}

fn ack(kind: AckKind, packet_id: u16, reason: ReasonCode) -> Transmit<&'static str> {
    Transmit::Ack { kind, packet_id: id(packet_id), reason }
}

fn pubrel(packet_id: u16) -> Transmit<&'static str> {
    Transmit::PubRel { packet_id: id(packet_id), reason: ReasonCode::SUCCESS }
}

/// Gives every record the next batch, and remembers what it was.
#[derive(Default)]
struct Log {
    last: u64,
    names: Vec<String>,
}

impl<M: std::fmt::Debug> Persist<M> for Log {
    fn persist(&mut self, record: Record<'_, M>) -> BatchSeq {
        self.last += 1;
        let name = format!("{record:?}");
        self.names.push(name.split([' ', '{']).next().unwrap_or_default().to_owned());
        BatchSeq::new(self.last)
    }
}
