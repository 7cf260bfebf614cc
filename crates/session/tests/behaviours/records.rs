//! The records of a session, and the packets that wait for them.

use tacho_codec::AckKind::{PubAck, PubComp, PubRec};
use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::server::End;

use super::*;

const OK: ReasonCode = ReasonCode::SUCCESS;

/// Every record in words: kind, number of the message, packet identifier.
#[derive(Default)]
struct Words {
    last: u64,
    lines: Vec<String>,
}

impl Persist<&'static str> for Words {
    fn persist(&mut self, record: Record<'_, &'static str>) -> BatchSeq {
        self.last += 1;
        self.lines.push(match record {
            Record::Enqueued { seq, delivery } => format!("enqueued {seq} {}", delivery.message),
            Record::Sent { seq, packet_id, from_queue, .. } => {
                format!("sent {seq} as {packet_id}{}", if from_queue { " from queue" } else { "" })
            }
            Record::Released { seq, packet_id } => format!("released {seq} as {packet_id}"),
            Record::Acked { seq, packet_id } => format!("acked {seq} as {packet_id}"),
            Record::Lapsed { seq, packet_id } => format!("lapsed {seq} as {packet_id}"),
            Record::Expired { seq, .. } => format!("expired {seq}"),
            Record::Dispatched { seq, .. } => format!("dispatched {seq}"),
            Record::Removed { seq, delivery } => format!("removed {seq} {}", delivery.message),
            Record::InboundReceived { packet_id } => format!("received {packet_id}"),
            Record::InboundReleased { packet_id } => format!("freed {packet_id}"),
            other => format!("{other:?}"),
        });
        BatchSeq::new(self.last)
    }
}

impl Words {
    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn offer(&mut self, session: &mut Session<&'static str>, qos: QoS, message: &'static str) {
        session.offer(0, Delivery::new(qos, message), self);
    }

    fn poll_all(&mut self, session: &mut Session<&'static str>) -> usize {
        let all = BatchSeq::new(u64::MAX);
        std::iter::from_fn(|| session.poll_transmit(0, all, self)).count()
    }
}

#[test]
fn numbers_grow_with_the_order_of_sending() {
    let limits = SessionLimits { inflight_max: 2, ..SessionLimits::default() };
    let (mut session, mut words) = (connected_with(limits, params()), Words::default());
    words.offer(&mut session, AtLeastOnce, "a");
    words.offer(&mut session, AtMostOnce, "none");
    words.offer(&mut session, ExactlyOnce, "b");
    words.offer(&mut session, AtLeastOnce, "c");
    assert_eq!(words.take(), ["sent 1 as 1", "sent 2 as 2", "enqueued 3 c"]);
    words.poll_all(&mut session);
    session.handle_pubrec(id(2), OK, &mut words).expect("PUBREC");
    session.handle_pubrec(id(2), OK, &mut words).expect("PUBREC again");
    session.handle_puback(id(1), OK, &mut words).expect("PUBACK");
    session.handle_puback(id(1), OK, &mut words).expect("PUBACK again");
    words.poll_all(&mut session);
    session.handle_pubcomp(id(2), OK, &mut words).expect("PUBCOMP");
    assert_eq!(
        words.take(),
        ["released 2 as 2", "acked 1 as 1", "sent 3 as 3 from queue", "acked 2 as 2"]
    );
    assert_eq!(session.next_seq(), 4);
    session.abandon(PacketId::new(3), &mut words);
    session.abandon(None, &mut words);
    assert_eq!(words.take(), ["acked 3 as 3"]);
}

#[test]
fn an_error_in_pubrec_and_expiry_in_the_window_end_an_entry() {
    let (mut session, mut words) = (connected(), Words::default());
    words.offer(&mut session, ExactlyOnce, "a");
    words.poll_all(&mut session);
    let delivery = Delivery { expires_at_ns: 5, ..Delivery::new(ExactlyOnce, "b") };
    session.offer(0, delivery, &mut words);
    assert_eq!(session.poll_transmit(5, BatchSeq::new(9), &mut words), None);
    session.handle_pubrec(id(1), ReasonCode::QUOTA_EXCEEDED, &mut words).expect("PUBREC");
    assert_eq!(words.take(), ["sent 1 as 1", "sent 2 as 2", "lapsed 2 as 2", "acked 1 as 1"]);
}

/// A crash once brought the message back, behind messages that had followed it.
#[test]
fn no_message_overtakes_an_expired_one_in_the_window_before_that_is_committed() {
    let (mut session, mut words) = (connected(), Words::default());
    let delivery = Delivery { expires_at_ns: 5, ..Delivery::new(ExactlyOnce, "a") };
    session.offer(0, delivery, &mut words);
    words.offer(&mut session, AtLeastOnce, "b");
    assert_eq!(session.poll_transmit(5, BatchSeq::new(2), &mut words), None);
    assert_eq!(words.take(), ["sent 1 as 1", "sent 2 as 2", "lapsed 1 as 1"]);
    words.offer(&mut session, AtLeastOnce, "c");
    assert!(!session.has_output(BatchSeq::new(2)));
    assert!(session.has_output(BatchSeq::new(3)));
    let mut poll = || session.poll_transmit(5, BatchSeq::new(3), &mut words);
    assert_eq!(poll(), Some(publish(AtLeastOnce, "b", 2, false)));
    assert_eq!(poll(), Some(publish(AtLeastOnce, "c", 3, false)));
    let sent = Offer::SendNow(publish(AtLeastOnce, "d", 4, false));
    assert_eq!(offer(&mut session, AtLeastOnce, "d"), sent, "nothing waits any more");
}

#[test]
fn queued_qos_0_has_records_too_and_leaves_after_their_commit() {
    let limits = SessionLimits { queue_qos0_offline: true, ..SessionLimits::default() };
    let (mut session, mut words) = (connected_with(limits, params()), Words::default());
    session.disconnect(0, End::Lost);
    words.offer(&mut session, AtMostOnce, "a");
    words.offer(&mut session, AtMostOnce, "b");
    words.offer(&mut session, AtLeastOnce, "c");
    assert_eq!(words.take(), ["enqueued 1 a", "enqueued 2 b", "enqueued 3 c"]);
    session.connect(0, params());
    let mut poll = |session: &mut Session<_>, committed| {
        session.poll_transmit(0, BatchSeq::new(committed), &mut words)
    };
    assert!(session.has_output(BatchSeq::DONE));
    assert_eq!(poll(&mut session, 3), None, "they might be sent twice after a crash");
    assert!(!session.has_output(BatchSeq::new(4)));
    // Between the connections nothing is recorded again.
    session.disconnect(0, End::Lost);
    assert_eq!(session.take_queued(|_| true, &mut Log::default()).len(), 1, "only what is here");
    session.connect(0, params());
    assert_eq!(poll(&mut session, 5), Some(publish(AtMostOnce, "a", 0, false)));
    assert_eq!(poll(&mut session, 5), Some(publish(AtMostOnce, "b", 0, false)));
    assert_eq!(poll(&mut session, 5), None);
    assert_eq!(words.take(), ["dispatched 1", "dispatched 2"]);
}

#[test]
fn removed_messages_are_recorded() {
    let limits = SessionLimits { inflight_max: 2, ..SessionLimits::default() };
    let (mut session, mut words) = (connected_with(limits, params()), Words::default());
    for (qos, message) in
        [(AtLeastOnce, "a"), (ExactlyOnce, "b"), (AtLeastOnce, "c"), (ExactlyOnce, "d")]
    {
        words.offer(&mut session, qos, message);
    }
    words.poll_all(&mut session);
    words.take();
    session.take_queued(|message| *message == "c", &mut words);
    assert_eq!(words.take(), ["removed 3 c"]);
    let taken = session.take_undelivered(&mut words).into_iter().map(|d| d.message);
    assert_eq!(taken.collect::<Vec<_>>(), ["a", "d"]);
    assert_eq!(words.take(), ["removed 1 a", "acked 2 as 2", "removed 4 d"]);
}

#[test]
fn received_identifiers_are_recorded_once_when_used_and_once_when_freed() {
    let (mut session, mut words) = (connected(), Words::default());
    let poll = |session: &mut Session<_>, committed| {
        session.poll_transmit(0, BatchSeq::new(committed), &mut InMemory)
    };
    session.handle_publish(ExactlyOnce, PacketId::new(1)).expect("PUBLISH");
    session.record_publish(id(1), &mut words);
    session.record_publish(id(1), &mut words);
    assert_eq!(words.take(), ["received 1"]);
    assert_eq!(poll(&mut session, 9), None, "it is not accepted");
    let batch = BatchSeq::new(7);
    session.accept_publish(ExactlyOnce, PacketId::new(1), OK, batch, &mut words);
    assert_eq!(poll(&mut session, 6), None);
    assert_eq!(poll(&mut session, 7), Some(ack(PubRec, 1, OK)));
    session.handle_pubrel(id(1), &mut words).expect("PUBREL");
    session.handle_pubrel(id(1), &mut words).expect("PUBREL again");
    assert_eq!(words.take(), ["freed 1"]);
}

#[test]
fn the_record_of_an_unaccepted_message_delays_its_pubrec() {
    let (mut session, mut words) = (connected(), Words::default());
    session.handle_publish(ExactlyOnce, PacketId::new(1)).expect("PUBLISH");
    session.record_publish(id(1), &mut words);
    session.accept_publish(ExactlyOnce, PacketId::new(1), OK, BatchSeq::DONE, &mut words);
    let mut poll = |committed| session.poll_transmit(0, BatchSeq::new(committed), &mut words);
    assert_eq!(poll(0), None);
    assert_eq!(poll(1), Some(ack(PubRec, 1, OK)));
}

/// The client reuses the identifier once it receives the error.
#[test]
fn a_message_refused_after_its_record_frees_its_identifier_first() {
    let (mut session, mut words) = (connected(), Words::default());
    let refusal = ReasonCode::QUOTA_EXCEEDED;
    for (packet_id, is_recorded) in [(1, true), (2, false)] {
        session.handle_publish(ExactlyOnce, PacketId::new(packet_id)).expect("PUBLISH");
        if is_recorded {
            session.record_publish(id(packet_id), &mut words);
        }
        let (packet_id, done) = (PacketId::new(packet_id), BatchSeq::DONE);
        session.accept_publish(ExactlyOnce, packet_id, refusal, done, &mut words);
    }
    assert_eq!(words.take(), ["received 1", "freed 1"]);
    let mut poll = |committed| session.poll_transmit(0, BatchSeq::new(committed), &mut words);
    assert_eq!(poll(1), None);
    assert_eq!(poll(2), Some(ack(PubRec, 1, refusal)));
    assert_eq!(poll(2), Some(ack(PubRec, 2, refusal)));
}

#[test]
fn a_clean_start_and_an_end_record_no_single_entries() {
    let (mut session, mut words) = (connected(), Words::default());
    words.offer(&mut session, AtLeastOnce, "a");
    session.handle_publish(ExactlyOnce, PacketId::new(1)).expect("PUBLISH");
    session.accept_publish(ExactlyOnce, PacketId::new(1), OK, BatchSeq::DONE, &mut words);
    words.take();
    session.disconnect(0, End::TakenOver { clean_start: true });
    session.connect(0, ConnectParams { clean_start: true, ..params() });
    words.poll_all(&mut session);
    assert!(words.take().is_empty());
    // Numbers and identifiers continue, so that old and new entries are never confused.
    words.offer(&mut session, AtLeastOnce, "b");
    assert_eq!(words.take(), ["sent 2 as 2"]);
}

#[test]
fn acknowledgements_keep_their_order_regardless_of_their_batches() {
    let (mut session, mut words) = (connected(), Words::default());
    let accept = |session: &mut Session<_>, words: &mut Words, qos, packet_id, batch| {
        let packet_id = PacketId::new(packet_id);
        session.handle_publish(qos, packet_id).expect("PUBLISH");
        session.accept_publish(qos, packet_id, OK, BatchSeq::new(batch), words);
    };
    accept(&mut session, &mut words, ExactlyOnce, 1, 0);
    accept(&mut session, &mut words, AtLeastOnce, 2, 8);
    accept(&mut session, &mut words, AtLeastOnce, 3, 0);
    accept(&mut session, &mut words, ExactlyOnce, 4, 0);
    session.handle_pubrel(id(1), &mut words).expect("PUBREL");
    let mut leaves = |committed| {
        let batch = BatchSeq::new(committed);
        let all = std::iter::from_fn(|| session.poll_transmit(0, batch, &mut InMemory));
        all.collect::<Vec<_>>()
    };
    assert_eq!(leaves(0), []);
    assert_eq!(leaves(7), [ack(PubRec, 1, OK)]);
    let rest = [ack(PubAck, 2, OK), ack(PubAck, 3, OK), ack(PubRec, 4, OK), ack(PubComp, 1, OK)];
    assert_eq!(leaves(8), rest);
}
