//! Messages to the client: QoS handshakes, window, resend.

use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::server::End;
use tacho_session::{Counters, DropReason};

use super::*;

const OK: ReasonCode = ReasonCode::SUCCESS;

fn offer_all(session: &mut Session<&'static str>, qos: QoS, messages: &[&'static str]) {
    for message in messages {
        offer(session, qos, message);
    }
}

// [MQTT-2.2.1-2] [MQTT-4.3.1-1]
// [MQTT-3.1.1: 2.3.1-5] [MQTT-3.1.1: 4.3.1-1]
#[test]
fn qos_0_is_sent_at_once_without_identifier() {
    let mut session = connected();
    let expected = Offer::SendNow(publish(AtMostOnce, "a", 0, false));
    assert_eq!(offer(&mut session, AtMostOnce, "a"), expected);
    assert_eq!(session.inflight_len(), 0);
}

// [MQTT-2.2.1-4] [MQTT-4.3.2-2] [MQTT-4.3.2-3]
// [MQTT-3.1.1: 2.3.1-4] [MQTT-3.1.1: 4.3.2-1]
#[test]
fn qos_1_ends_with_puback_and_frees_its_place() {
    let mut session = connected();
    let expected = Offer::SendNow(publish(AtLeastOnce, "a", 1, false));
    assert_eq!(offer(&mut session, AtLeastOnce, "a"), expected);
    assert_eq!(session.inflight_len(), 1);
    session.handle_puback(id(1), OK, &mut InMemory).expect("PUBACK");
    assert_eq!(session.inflight_len(), 0);
    assert_eq!(poll_all(&mut session), []);
}

// [MQTT-4.3.3-2] [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5]
// [MQTT-3.1.1: 4.3.3-1]
#[test]
fn qos_2_goes_through_pubrec_pubrel_pubcomp() {
    let mut session = connected();
    let expected = Offer::SendNow(publish(ExactlyOnce, "a", 1, false));
    assert_eq!(offer(&mut session, ExactlyOnce, "a"), expected);
    session.handle_pubrec(id(1), OK, &mut InMemory).expect("PUBREC");
    assert_eq!(poll_all(&mut session), [pubrel(1)]);
    assert_eq!(session.inflight_len(), 1);
    session.handle_pubcomp(id(1), OK, &mut InMemory).expect("PUBCOMP");
    assert_eq!(session.inflight_len(), 0);
}

// 27
// [MQTT-4.4.0-2]
#[test]
fn pubrec_with_an_error_ends_the_exchange_and_returns_quota() {
    let limits = SessionLimits { inflight_max: 1, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    offer(&mut session, ExactlyOnce, "a");
    assert_eq!(offer(&mut session, ExactlyOnce, "b"), Offer::Queued);
    session.handle_pubrec(id(1), ReasonCode::QUOTA_EXCEEDED, &mut InMemory).expect("PUBREC");
    assert_eq!(poll_all(&mut session), [publish(ExactlyOnce, "b", 2, false)]);
}

#[test]
fn an_unknown_pubrec_is_answered_with_0x92() {
    let mut session = connected();
    session.handle_pubrec(id(9), OK, &mut InMemory).expect("PUBREC");
    let reason = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
    assert_eq!(poll_all(&mut session), [Transmit::PubRel { packet_id: id(9), reason }]);
    assert_eq!(session.counters().acks_unexpected, 1);
}

#[test]
fn unknown_puback_and_pubcomp_are_counted_and_harmless() {
    let mut session = connected();
    session.handle_puback(id(9), OK, &mut InMemory).expect("PUBACK");
    session.handle_pubcomp(id(9), OK, &mut InMemory).expect("PUBCOMP");
    assert_eq!(session.counters().acks_unexpected, 2);
}

#[test]
fn an_acknowledgement_of_the_wrong_kind_is_a_protocol_error() {
    let mut session = connected();
    offer(&mut session, AtLeastOnce, "a");
    offer(&mut session, ExactlyOnce, "b");
    let errors = [
        session.handle_pubrec(id(1), OK, &mut InMemory),
        session.handle_pubcomp(id(1), OK, &mut InMemory),
        session.handle_puback(id(2), OK, &mut InMemory),
        session.handle_pubcomp(id(2), OK, &mut InMemory),
    ];
    for error in errors {
        assert_eq!(error.expect_err("refused").reason(), ReasonCode::PROTOCOL_ERROR);
    }
    assert_eq!(session.inflight_len(), 2);
}

// [MQTT-4.6.0-4]
// [MQTT-3.1.1: 4.6.0-4]
#[test]
fn pubrels_leave_in_the_order_of_the_pubrecs() {
    let mut session = connected();
    offer_all(&mut session, ExactlyOnce, &["a", "b", "c"]);
    for packet_id in [2, 3, 1] {
        session.handle_pubrec(id(packet_id), OK, &mut InMemory).expect("PUBREC");
    }
    assert_eq!(poll_all(&mut session), [pubrel(2), pubrel(3), pubrel(1)]);
}

// 31
// [MQTT-3.3.4-9] [MQTT-3.3.4-10] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-4.9.0-3]
#[test]
fn the_clients_receive_maximum_limits_qos_1_and_2_but_not_qos_0() {
    let mut session =
        connected_with(SessionLimits::default(), ConnectParams { receive_maximum: 2, ..params() });
    assert!(matches!(offer(&mut session, AtLeastOnce, "a"), Offer::SendNow(_)));
    assert!(matches!(offer(&mut session, ExactlyOnce, "b"), Offer::SendNow(_)));
    assert_eq!(offer(&mut session, AtLeastOnce, "c"), Offer::Queued);
    assert!(matches!(offer(&mut session, AtMostOnce, "d"), Offer::SendNow(_)));
    assert!(!session.has_output(BatchSeq::DONE));
    assert_eq!(poll_all(&mut session), []);
    session.handle_puback(id(1), OK, &mut InMemory).expect("PUBACK");
    assert!(session.has_output(BatchSeq::DONE));
    assert_eq!(poll_all(&mut session), [publish(AtLeastOnce, "c", 3, false)]);
    // PUBREC alone returns no credit.
    assert_eq!(offer(&mut session, AtLeastOnce, "e"), Offer::Queued);
    session.handle_pubrec(id(2), OK, &mut InMemory).expect("PUBREC");
    assert_eq!(poll_all(&mut session), [pubrel(2)]);
    session.handle_pubcomp(id(2), OK, &mut InMemory).expect("PUBCOMP");
    assert_eq!(poll_all(&mut session), [publish(AtLeastOnce, "e", 4, false)]);
}

// 28
// [MQTT-3.3.1-1] [MQTT-4.3.3-6] [MQTT-4.4.0-1] [MQTT-4.6.0-1]
// [MQTT-3.1.1: 3.3.1-1] [MQTT-3.1.1: 4.4.0-1] [MQTT-3.1.1: 4.6.0-1]
#[test]
fn resume_retransmits_publish_and_pubrel_in_original_order_with_dup() {
    let mut session = connected();
    offer(&mut session, AtLeastOnce, "a");
    offer(&mut session, ExactlyOnce, "b");
    offer(&mut session, ExactlyOnce, "c");
    session.handle_pubrec(id(2), OK, &mut InMemory).expect("PUBREC");
    session.disconnect(0, End::Lost);
    assert_eq!(offer(&mut session, AtLeastOnce, "d"), Offer::Queued);
    assert!(session.connect(0, params()).session_present);
    let expected = [
        publish(AtLeastOnce, "a", 1, true),
        pubrel(2),
        publish(ExactlyOnce, "c", 3, true),
        publish(AtLeastOnce, "d", 4, false),
    ];
    assert_eq!(poll_all(&mut session), expected);
    assert_eq!(poll_all(&mut session), [], "nothing is retransmitted on a live connection");
}

// 30
#[test]
fn a_live_message_waits_behind_the_retransmissions() {
    let mut session = connected();
    offer(&mut session, AtLeastOnce, "a");
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    assert_eq!(offer(&mut session, AtLeastOnce, "b"), Offer::Queued);
    let expected = [publish(AtLeastOnce, "a", 1, true), publish(AtLeastOnce, "b", 2, false)];
    assert_eq!(poll_all(&mut session), expected);
}

// 31
// [MQTT-3.3.4-9]
#[test]
fn retransmissions_keep_a_receive_maximum_that_is_now_smaller() {
    let mut session = connected();
    offer_all(&mut session, AtLeastOnce, &["a", "b", "c"]);
    session.disconnect(0, End::Lost);
    session.connect(0, ConnectParams { receive_maximum: 1, ..params() });
    for (packet_id, message) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(poll_all(&mut session), [publish(AtLeastOnce, message, packet_id, true)]);
        session.handle_puback(id(packet_id), OK, &mut InMemory).expect("PUBACK");
    }
}

#[test]
fn the_window_takes_no_more_from_the_queue_than_fits() {
    let limits = SessionLimits { inflight_max: 2, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    session.disconnect(0, End::Lost);
    offer_all(&mut session, ExactlyOnce, &["a", "b", "c", "d"]);
    session.connect(0, params());
    assert_eq!(session.window_left(), 2);
    assert_eq!(poll_all(&mut session).len(), 2);
    assert_eq!((session.inflight_len(), session.queue_len(), session.window_left()), (2, 2, 0));
}

// 29
// [MQTT-3.1.2-4]
#[test]
fn a_clean_start_drops_messages_in_flight_and_queued() {
    let mut session = connected();
    offer(&mut session, AtLeastOnce, "a");
    session.disconnect(0, End::Lost);
    offer(&mut session, AtLeastOnce, "b");
    let again = session.connect(0, ConnectParams { clean_start: true, ..params() });
    assert!(!again.session_present);
    assert_eq!(poll_all(&mut session), []);
    assert_eq!((session.inflight_len(), session.queue_len(), session.queue_bytes()), (0, 0, 0));
    // The new session ignores the old acknowledgement.
    assert!(matches!(offer(&mut session, AtLeastOnce, "c"), Offer::SendNow(_)));
}

#[test]
fn an_outgoing_qos_2_publish_and_its_pubrel_wait_for_their_commits() {
    let mut session = connected();
    let mut log = Log::default();
    let delivery = Delivery::new(ExactlyOnce, "a");
    assert_eq!(session.offer(0, delivery, &mut log), Offer::Queued);
    let poll = |session: &mut Session<_>, committed| {
        session.poll_transmit(0, BatchSeq::new(committed), &mut Log::default())
    };
    assert!(!session.has_output(BatchSeq::DONE));
    assert_eq!(poll(&mut session, 0), None);
    assert_eq!(poll(&mut session, 1), Some(publish(ExactlyOnce, "a", 1, false)));
    session.handle_pubrec(id(1), OK, &mut log).expect("PUBREC");
    assert_eq!(poll(&mut session, 1), None);
    assert_eq!(poll(&mut session, 2), Some(pubrel(1)));
    assert_eq!(log.names, ["Sent", "Released"]);
}

#[test]
fn an_outgoing_qos_1_publish_waits_for_no_commit() {
    let mut session = connected();
    let delivery = Delivery::new(AtLeastOnce, "a");
    let offered = session.offer(0, delivery, &mut Log::default());
    assert_eq!(offered, Offer::SendNow(publish(AtLeastOnce, "a", 1, false)));
}

// 32
// [MQTT-3.1.2-25]
#[test]
fn a_message_too_large_for_the_client_counts_as_done() {
    let mut session =
        connected_with(SessionLimits::default(), ConnectParams { receive_maximum: 1, ..params() });
    offer(&mut session, AtLeastOnce, "huge");
    offer(&mut session, AtLeastOnce, "b");
    session.abandon(PacketId::new(1), &mut InMemory);
    assert_eq!(poll_all(&mut session), [publish(AtLeastOnce, "b", 2, false)]);
    assert_eq!(session.counters().dropped(DropReason::PacketTooLarge), 1);
    assert_eq!(session.counters().dropped_total(), 1);
    assert_eq!(Counters::default().dropped_total(), 0);
}

// 45
#[test]
fn unacknowledged_messages_can_be_taken_out_in_order() {
    let limits = SessionLimits { inflight_max: 2, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    offer_all(&mut session, AtLeastOnce, &["a", "b", "c", "d"]);
    session.handle_puback(id(1), OK, &mut InMemory).expect("PUBACK");
    let left: Vec<_> =
        session.take_undelivered(&mut InMemory).into_iter().map(|d| d.message).collect();
    assert_eq!(left, ["b", "c", "d"]);
    assert_eq!((session.inflight_len(), session.queue_len()), (0, 0));
}

// 45
// [MQTT-4.8.2-5]
#[test]
fn a_sent_qos_2_message_goes_to_no_other_session() {
    let limits = SessionLimits { inflight_max: 1, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    offer_all(&mut session, ExactlyOnce, &["a", "b"]);
    let left: Vec<_> =
        session.take_undelivered(&mut InMemory).into_iter().map(|d| d.message).collect();
    assert_eq!(left, ["b"]);
}
