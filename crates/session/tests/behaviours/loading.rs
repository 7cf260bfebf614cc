//! Messages that are not in memory.

use tacho_codec::AckKind::PubAck;
use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::Payload;
use tacho_session::server::End;

use super::{
    BatchSeq, Delivery, EXPIRY_NEVER, InMemory, Log, Offer, PacketId, QoS, ReasonCode, Session,
    SessionLimits, Transmit, id, params,
};

const OK: ReasonCode = ReasonCode::SUCCESS;

/// A message, or a reference to its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Here(u32),
    Stored(u32),
}

use Body::{Here, Stored};

impl Payload for Body {
    fn is_loaded(&self) -> bool {
        matches!(self, Here(_))
    }
}

fn connect(session: &mut Session<Body>) {
    session.connect(0, params());
}

fn connected(inflight_max: u16) -> Session<Body> {
    let limits = SessionLimits { inflight_max, queue_qos0_offline: true, ..Default::default() };
    let mut session = Session::new(limits);
    connect(&mut session);
    session
}

fn offer(session: &mut Session<Body>, qos: QoS, body: Body) -> Offer<Body> {
    session.offer(0, Delivery::new(qos, body), &mut InMemory)
}

fn poll(session: &mut Session<Body>) -> Option<Transmit<Body>> {
    let transmit = session.poll_transmit(0, BatchSeq::DONE, &mut InMemory);
    assert!(transmit.is_some() || !session.has_output(BatchSeq::DONE));
    transmit
}

/// The packets sent: the number of a PUBLISH, or the identifier of a PUBREL plus 1000.
fn poll_all(session: &mut Session<Body>) -> Vec<u32> {
    let all = std::iter::from_fn(|| poll(session));
    all.map(|transmit| match transmit {
        Transmit::Publish { delivery, .. } => match delivery.message {
            Here(n) => n,
            Stored(n) => panic!("{n} is not loaded"),
        },
        Transmit::PubRel { packet_id, .. } => u32::from(packet_id.get()) + 1000,
        Transmit::Ack { .. } => panic!("no acknowledgement is due"),
    })
    .collect()
}

fn unloaded(session: &Session<Body>) -> Vec<(u64, u32)> {
    let number = |body: &Body| match body {
        Here(n) => panic!("{n} is loaded"),
        Stored(n) => *n,
    };
    session.unloaded().map(|(seq, delivery)| (seq, number(&delivery.message))).collect()
}

fn load(session: &mut Session<Body>, len_max: usize) -> Vec<u64> {
    let mut loaded = Vec::new();
    session.load(len_max, |seq, body| {
        let Stored(n) = *body else { panic!("{body:?} is loaded") };
        *body = Here(n);
        loaded.push(seq);
    });
    loaded
}

#[test]
fn an_unloaded_message_blocks_the_messages_behind_it_and_nothing_else() {
    let mut session = connected(10);
    for n in 1..=2 {
        assert!(matches!(offer(&mut session, ExactlyOnce, Here(n)), Offer::SendNow(_)));
    }
    assert_eq!(offer(&mut session, AtLeastOnce, Stored(3)), Offer::Queued);
    assert_eq!(offer(&mut session, ExactlyOnce, Here(4)), Offer::Queued);
    assert_eq!(poll_all(&mut session), []);
    assert!(session.is_starved());
    session.handle_pubrec(id(2), OK, &mut InMemory).expect("PUBREC");
    session.handle_publish(AtLeastOnce, PacketId::new(9)).expect("PUBLISH");
    let done = BatchSeq::DONE;
    session.accept_publish(AtLeastOnce, PacketId::new(9), OK, done, &mut InMemory);
    let ack = Transmit::Ack { kind: PubAck, packet_id: id(9), reason: OK };
    assert_eq!(poll(&mut session), Some(ack));
    assert_eq!(poll_all(&mut session), [1002]);
    assert_eq!(unloaded(&session), [(3, 3)]);
    assert_eq!(load(&mut session, 5), [3]);
    assert!(!session.is_starved());
    assert!(session.has_output(BatchSeq::DONE));
    assert_eq!(poll_all(&mut session), [3, 4]);
}

#[test]
fn after_a_resume_pubrels_overtake_unloaded_messages_in_their_order() {
    let mut session = connected(10);
    for n in 1..=4 {
        offer(&mut session, ExactlyOnce, Here(n));
    }
    offer(&mut session, AtLeastOnce, Stored(5));
    offer(&mut session, ExactlyOnce, Stored(6));
    assert_eq!(poll_all(&mut session), []);
    session.disconnect(0, End::Lost);
    connect(&mut session);
    for packet_id in [3, 2] {
        session.handle_pubrec(id(packet_id), OK, &mut InMemory).expect("PUBREC");
    }
    assert_eq!(poll_all(&mut session), [1, 1002, 1003, 4]);
    assert_eq!(load(&mut session, 1), [5]);
    assert_eq!(poll_all(&mut session), [5]);
    assert_eq!(load(&mut session, 1), [6]);
    assert_eq!(poll_all(&mut session), [6]);
    assert_eq!(poll_all(&mut session), []);
}

#[test]
fn pubrels_behind_an_unloaded_message_do_not_wait_for_it() {
    use tacho_session::server::{ExchangeStage, Restored, RestoredExchange};
    let exchange = |seq: u64, stage, body| RestoredExchange {
        seq,
        packet_id: id(seq as u16),
        stage,
        delivery: Some(Delivery::new(ExactlyOnce, body)),
    };
    let restored = Restored {
        now_ns: 0,
        expiry_s: EXPIRY_NEVER,
        ends_at_ns: None,
        will: None,
        will_at_ns: None,
        next_seq: 6,
        exchanges: vec![
            exchange(1, ExchangeStage::Sent, Stored(1)),
            exchange(2, ExchangeStage::Released, Stored(2)),
            exchange(3, ExchangeStage::Sent, Stored(3)),
            exchange(4, ExchangeStage::Released, Stored(4)),
            // Identifiers far from the others: they are stragglers.
            exchange(60_000, ExchangeStage::Sent, Stored(5)),
        ],
        queued: vec![],
        inbound: vec![],
    };
    let mut session = Session::restore(SessionLimits::default(), restored, &mut InMemory);
    assert_eq!(unloaded(&session), [(1, 1), (3, 3), (60_000, 5)]);
    connect(&mut session);
    assert_eq!(poll_all(&mut session), [1002, 1004]);
    assert_eq!(load(&mut session, 2), [1, 3]);
    assert_eq!(poll_all(&mut session), [1, 3]);
    assert_eq!(load(&mut session, 2), [60_000]);
    assert_eq!(poll_all(&mut session), [5]);
}

#[test]
fn an_unloaded_qos_0_message_waits_in_the_queue() {
    let mut session = connected(10);
    assert_eq!(offer(&mut session, AtMostOnce, Stored(1)), Offer::Queued);
    assert_eq!(offer(&mut session, AtMostOnce, Here(2)), Offer::Queued);
    assert_eq!(poll_all(&mut session), []);
    assert!(session.is_starved());
    assert_eq!(load(&mut session, 1), [1]);
    assert_eq!(poll_all(&mut session), [1, 2]);
    assert!(!session.is_starved());
}

#[test]
fn the_queue_of_an_absent_client_is_unloaded_and_loaded_again_in_parts() {
    let mut session = connected(2);
    session.disconnect(0, End::Lost);
    for n in 1..=6 {
        offer(&mut session, AtLeastOnce, Here(n));
    }
    offer(&mut session, AtMostOnce, Here(7));
    session.unload(1, |_, body| {
        let Here(n) = *body else { panic!("{body:?} is not loaded") };
        // One cannot be unloaded.
        if n != 3 {
            *body = Stored(n);
        }
    });
    assert_eq!(unloaded(&session), [(2, 2), (4, 4), (5, 5), (6, 6)]);
    connect(&mut session);
    assert!(!session.is_starved());
    assert_eq!(poll_all(&mut session), [1]);
    assert!(session.is_starved());
    // 2 has its identifier already; it is still first.
    assert_eq!((session.inflight_len(), session.queue_len()), (2, 5));
    assert_eq!(load(&mut session, 2), [2, 4]);
    assert_eq!(poll_all(&mut session), [2]);
    for packet_id in [1, 2] {
        session.handle_puback(id(packet_id), OK, &mut InMemory).expect("PUBACK");
    }
    assert_eq!(poll_all(&mut session), [3, 4]);
    assert_eq!(unloaded(&session), [(5, 5), (6, 6)]);
}

// 38
// [MQTT-3.3.2-5]
#[test]
fn a_message_that_expires_before_it_is_loaded_is_dropped() {
    let mut session = connected(1);
    let mortal = Delivery { expires_at_ns: 5, ..Delivery::new(AtLeastOnce, Stored(1)) };
    session.offer(0, mortal, &mut InMemory);
    offer(&mut session, AtLeastOnce, Here(2));
    assert_eq!(session.poll_transmit(4, BatchSeq::DONE, &mut InMemory), None);
    let sent = session.poll_transmit(5, BatchSeq::DONE, &mut InMemory);
    assert!(
        matches!(sent, Some(Transmit::Publish { delivery, .. }) if delivery.message == Here(2))
    );
}

#[test]
fn a_message_that_cannot_be_loaded_is_discarded() {
    let mut session = connected(3);
    let mut log = Log::default();
    offer(&mut session, ExactlyOnce, Here(1));
    for (n, qos) in [(2, AtLeastOnce), (3, ExactlyOnce), (4, AtLeastOnce), (5, ExactlyOnce)] {
        offer(&mut session, qos, Stored(n));
    }
    assert_eq!(poll_all(&mut session), []);
    assert_eq!((session.inflight_len(), session.queue_len()), (3, 2));
    assert!(!session.discard(1, &mut log), "it was sent");
    assert!(session.discard(2, &mut log));
    assert!(session.discard(4, &mut log));
    assert!(!session.discard(4, &mut log));
    assert_eq!(log.names, ["Acked", "Discarded"]);
    assert_eq!(load(&mut session, 9), [3, 5]);
    assert!(!session.discard(5, &mut log), "it is loaded");
    assert_eq!(poll_all(&mut session), [3, 5]);
}

#[test]
fn a_sent_qos_2_message_that_cannot_be_loaded_ends_with_pubrel() {
    use tacho_session::server::{ExchangeStage, Restored, RestoredExchange};
    let restored = Restored {
        now_ns: 0,
        expiry_s: EXPIRY_NEVER,
        ends_at_ns: None,
        will: None,
        will_at_ns: None,
        next_seq: 2,
        exchanges: vec![RestoredExchange {
            seq: 1,
            packet_id: id(1),
            stage: ExchangeStage::Sent,
            delivery: Some(Delivery::new(ExactlyOnce, Stored(1))),
        }],
        queued: vec![(2, Delivery::new(AtLeastOnce, Here(2)))],
        inbound: vec![],
    };
    let mut log = Log::default();
    let mut session = Session::restore(SessionLimits::default(), restored, &mut log);
    connect(&mut session);
    assert_eq!(poll_all(&mut session), []);
    assert!(session.discard(1, &mut log));
    assert_eq!(log.names, ["Released"]);
    let committed = BatchSeq::new(log.last);
    let pubrel = session.poll_transmit(0, committed, &mut log);
    assert_eq!(pubrel, Some(Transmit::PubRel { packet_id: id(1), reason: OK }));
    session.handle_pubcomp(id(1), OK, &mut log).expect("PUBCOMP");
    assert_eq!(poll_all(&mut session), [2]);
}
