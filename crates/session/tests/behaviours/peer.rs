//! Sessions towards a peer that is a server, and that decides whether a session is present.

use tacho_session::server::{End, Session};

use crate::*;

/// Three messages in flight: unanswered, answered with PUBREC, unanswered.
fn in_flight() -> Session<&'static str> {
    let mut session = connected();
    for (qos, message) in
        [(QoS::AtLeastOnce, "a"), (QoS::ExactlyOnce, "b"), (QoS::ExactlyOnce, "c")]
    {
        assert!(matches!(offer(&mut session, qos, message), Offer::SendNow(_)));
    }
    session.handle_pubrec(id(2), ReasonCode::SUCCESS, &mut InMemory).expect("expected");
    assert_eq!(poll_all(&mut session), [pubrel(2)]);
    session.disconnect(0, End::Lost);
    session
}

#[test]
fn a_peer_with_a_session_gets_retransmissions() {
    let mut session = in_flight();
    session.connect(0, params());
    let first = publish(QoS::AtLeastOnce, "a", 1, true);
    let last = publish(QoS::ExactlyOnce, "c", 3, true);
    assert_eq!(poll_all(&mut session), [first, pubrel(2), last]);
}

#[test]
fn a_peer_without_a_session_gets_new_messages_except_those_it_had_received() {
    struct Said(Vec<String>);
    impl Persist<&'static str> for Said {
        fn persist(&mut self, record: Record<'_, &'static str>) -> BatchSeq {
            self.0.push(format!("{record:?}"));
            BatchSeq::DONE
        }
    }
    let mut session = in_flight();
    let mut said = Said(Vec::new());
    session.forgotten_by_peer(&mut said);
    assert_eq!(said.0, ["Acked { seq: 2, packet_id: PacketId(2) }"]);
    session.connect(0, params());
    let new = [(QoS::AtLeastOnce, "a", 1), (QoS::ExactlyOnce, "c", 3)];
    let new = new.map(|(qos, message, id)| publish(qos, message, id, false));
    assert_eq!(poll_all(&mut session), new);
    assert_eq!(session.inflight_len(), 2);
    for (id_, message) in [(1, "a"), (3, "c")] {
        let handled = match message {
            "a" => session.handle_puback(id(id_), ReasonCode::SUCCESS, &mut InMemory),
            _ => session
                .handle_pubrec(id(id_), ReasonCode::SUCCESS, &mut InMemory)
                .and_then(|()| session.handle_pubcomp(id(id_), ReasonCode::SUCCESS, &mut InMemory)),
        };
        handled.expect("expected");
    }
    assert_eq!(session.inflight_len(), 0);
}

#[test]
fn unreleased_identifiers_are_free_when_the_peer_has_no_session() {
    let mut session = connected();
    let receive = |session: &mut Session<&'static str>| {
        session.handle_publish(QoS::ExactlyOnce, Some(id(5))).expect("allowed")
    };
    assert_eq!(receive(&mut session), tacho_session::Inbound::New);
    let (qos, reason) = (QoS::ExactlyOnce, ReasonCode::SUCCESS);
    session.accept_publish(qos, Some(id(5)), reason, BatchSeq::DONE, &mut InMemory);
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    assert_eq!(receive(&mut session), tacho_session::Inbound::Duplicate);
    session.disconnect(0, End::Lost);
    session.forgotten_by_peer(&mut InMemory);
    session.connect(0, params());
    assert_eq!(receive(&mut session), tacho_session::Inbound::New);
}

#[test]
fn a_peer_without_qos_2_gets_everything_with_qos_1() {
    let mut session = in_flight();
    assert!(matches!(offer(&mut session, QoS::ExactlyOnce, "d"), Offer::Queued));
    session.forgotten_by_peer(&mut InMemory);
    session.limit_qos(QoS::AtLeastOnce);
    session.connect(0, params());
    let new = [("a", 1), ("c", 3), ("d", 4)];
    let new = new.map(|(message, id)| publish(QoS::AtLeastOnce, message, id, false));
    assert_eq!(poll_all(&mut session), new);
    session.handle_puback(id(3), ReasonCode::SUCCESS, &mut InMemory).expect("QoS 1");
    assert!(!session.has_output(BatchSeq::DONE));
}

#[test]
fn a_subscribe_gets_an_identifier_of_its_own_beside_open_exchanges() {
    let mut session = in_flight();
    session.connect(0, params());
    let reserved = session.reserve_id().expect("there is room");
    assert!(reserved.get() > 3);
    assert_eq!(poll_all(&mut session).len(), 3);
    assert!(session.release_id(reserved));
    assert!(!session.release_id(reserved));
}

#[test]
fn messages_that_expire_without_a_connection_can_be_dropped() {
    let mut session = connected();
    session.disconnect(0, End::Lost);
    let soon = Delivery { expires_at_ns: 10, ..Delivery::new(QoS::AtLeastOnce, "soon") };
    session.offer(0, soon, &mut InMemory);
    session.drop_expired(9, &mut InMemory);
    assert_eq!(session.queue_len(), 1);
    session.drop_expired(10, &mut InMemory);
    assert_eq!(session.queue_len(), 0);
}

#[test]
fn what_the_peer_leaves_unanswered_counts_from_its_last_packet_on_this_connection() {
    /// To the nearest second: finer times are not kept.
    fn waits_s(session: &Session<&'static str>, at_s: u64) -> Option<u64> {
        let for_ns = session.unanswered_ns(at_s * SECOND_NS)?;
        Some((for_ns + SECOND_NS / 2) / SECOND_NS)
    }
    let mut session = connected();
    assert_eq!(waits_s(&session, 1), None);
    for (at_s, qos, message) in [(1, QoS::AtLeastOnce, "a"), (3, QoS::ExactlyOnce, "b")] {
        let delivery = Delivery::new(qos, message);
        let offered = session.offer(at_s * SECOND_NS, delivery, &mut InMemory);
        assert!(matches!(offered, Offer::SendNow(_)));
    }
    assert_eq!(waits_s(&session, 10), Some(9), "the oldest one");
    session.handle_puback(id(1), ReasonCode::SUCCESS, &mut InMemory).expect("expected");
    assert_eq!(waits_s(&session, 10), Some(7));
    session.handle_pubrec(id(2), ReasonCode::SUCCESS, &mut InMemory).expect("expected");
    assert_eq!(waits_s(&session, 10), None, "PUBREL is due from here");
    let poll = |session: &mut Session<&'static str>, at_s: u64| {
        session.poll_transmit(at_s * SECOND_NS, BatchSeq::DONE, &mut InMemory)
    };
    assert_eq!(poll(&mut session, 11), Some(pubrel(2)));
    assert_eq!(waits_s(&session, 14), Some(3));
    session.disconnect(15 * SECOND_NS, End::Lost);
    session.connect(20 * SECOND_NS, params());
    assert_eq!(waits_s(&session, 20), None, "nothing is sent on this connection yet");
    assert_eq!(poll(&mut session, 21), Some(pubrel(2)));
    assert_eq!(waits_s(&session, 23), Some(2));
    session.handle_pubcomp(id(2), ReasonCode::SUCCESS, &mut InMemory).expect("expected");
    assert_eq!(waits_s(&session, 30), None);
}
