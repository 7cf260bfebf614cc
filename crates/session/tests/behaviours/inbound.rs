//! Messages from the client: acknowledgements, duplicates, receive maximum.

use tacho_codec::AckKind::{PubAck, PubComp, PubRec};
use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::Inbound;
use tacho_session::server::End;

use super::*;

const OK: ReasonCode = ReasonCode::SUCCESS;

fn receive(session: &mut Session<&'static str>, qos: QoS, packet_id: u16) -> Inbound {
    session.handle_publish(qos, PacketId::new(packet_id)).expect("a legal PUBLISH")
}

fn accept(session: &mut Session<&'static str>, qos: QoS, packet_id: u16) {
    session.accept_publish(qos, PacketId::new(packet_id), OK, BatchSeq::DONE, &mut InMemory);
}

fn poll_at(session: &mut Session<&'static str>, committed: u64) -> Option<Transmit<&'static str>> {
    session.poll_transmit(0, BatchSeq::new(committed), &mut InMemory)
}

// [MQTT-2.2.1-5] [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-4.3.3-8] [MQTT-4.3.3-11]
// [MQTT-3.1.1: 2.3.1-6] [MQTT-3.1.1: 3.3.4-1] [MQTT-3.1.1: 4.3.2-2] [MQTT-3.1.1: 4.3.3-2]
#[test]
fn each_qos_is_acknowledged_in_its_way() {
    let mut session = connected();
    for (qos, packet_id) in [(AtMostOnce, 0), (AtLeastOnce, 1), (ExactlyOnce, 2)] {
        assert_eq!(receive(&mut session, qos, packet_id), Inbound::New);
        accept(&mut session, qos, packet_id);
    }
    assert_eq!(poll_all(&mut session), [ack(PubAck, 1, OK), ack(PubRec, 2, OK)]);
    session.handle_pubrel(id(2), &mut InMemory).expect("PUBREL");
    assert_eq!(poll_all(&mut session), [ack(PubComp, 2, OK)]);
    assert_eq!(session.inbound_unacked(), 0);
}

// 33
#[test]
fn the_reason_of_the_owner_is_sent() {
    let mut session = connected();
    let reasons = [ReasonCode::NO_MATCHING_SUBSCRIBERS, ReasonCode::NOT_AUTHORIZED];
    for (packet_id, reason) in (1..).zip(reasons) {
        receive(&mut session, AtLeastOnce, packet_id);
        let packet_id = PacketId::new(packet_id);
        let done = BatchSeq::DONE;
        session.accept_publish(AtLeastOnce, packet_id, reason, done, &mut InMemory);
    }
    let expected = [ack(PubAck, 1, reasons[0]), ack(PubAck, 2, reasons[1])];
    assert_eq!(poll_all(&mut session), expected);
}

#[test]
fn acknowledgements_leave_in_the_order_of_the_publishes() {
    let mut session = connected();
    receive(&mut session, AtLeastOnce, 1);
    receive(&mut session, ExactlyOnce, 2);
    receive(&mut session, AtLeastOnce, 3);
    accept(&mut session, AtLeastOnce, 3);
    accept(&mut session, ExactlyOnce, 2);
    assert!(!session.has_output(BatchSeq::DONE));
    assert_eq!(poll_all(&mut session), []);
    accept(&mut session, AtLeastOnce, 1);
    let expected = [ack(PubAck, 1, OK), ack(PubRec, 2, OK), ack(PubAck, 3, OK)];
    assert_eq!(poll_all(&mut session), expected);
}

#[test]
fn an_acknowledgement_waits_for_its_commit_and_blocks_those_behind_it() {
    let mut session = connected();
    for (packet_id, batch) in [(1, 5), (2, 0)] {
        receive(&mut session, AtLeastOnce, packet_id);
        let (packet_id, batch) = (PacketId::new(packet_id), BatchSeq::new(batch));
        session.accept_publish(AtLeastOnce, packet_id, OK, batch, &mut InMemory);
    }
    assert_eq!(poll_at(&mut session, 4), None);
    assert_eq!(poll_at(&mut session, 5), Some(ack(PubAck, 1, OK)));
    assert_eq!(poll_at(&mut session, 5), Some(ack(PubAck, 2, OK)));
}

#[test]
fn pubrec_and_pubcomp_wait_for_their_own_records() {
    let mut session = connected();
    let mut log = Log::default();
    receive(&mut session, ExactlyOnce, 1);
    session.accept_publish(ExactlyOnce, PacketId::new(1), OK, BatchSeq::DONE, &mut log);
    assert_eq!(poll_at(&mut session, 0), None);
    assert_eq!(poll_at(&mut session, 1), Some(ack(PubRec, 1, OK)));
    session.handle_pubrel(id(1), &mut log).expect("PUBREL");
    assert_eq!(poll_at(&mut session, 1), None);
    // The same PUBREL after a reconnect waits for the same record.
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    session.handle_pubrel(id(1), &mut log).expect("PUBREL");
    assert_eq!(poll_at(&mut session, 1), None);
    let not_found = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
    assert_eq!(poll_at(&mut session, 2), Some(ack(PubComp, 1, not_found)));
    assert_eq!(log.names, ["InboundReceived", "InboundReleased"]);
}

// 26
// [MQTT-4.3.3-10] [MQTT-4.3.3-12]
// [MQTT-3.1.1: 4.3.3-2]
#[test]
fn a_repeated_qos_2_publish_is_a_duplicate_until_pubrel() {
    let mut session = connected();
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::New);
    accept(&mut session, ExactlyOnce, 1);
    poll_all(&mut session);
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::Duplicate);
    assert_eq!(poll_all(&mut session), [ack(PubRec, 1, OK)]);
    assert_eq!(session.inbound_unacked(), 1);
    session.handle_pubrel(id(1), &mut InMemory).expect("PUBREL");
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::New);
    assert_eq!(session.counters().duplicates_suppressed, 1);
}

// 26
// [MQTT-4.3.3-10]
#[test]
fn a_qos_2_duplicate_is_recognized_after_reconnecting() {
    let mut session = connected();
    receive(&mut session, ExactlyOnce, 1);
    accept(&mut session, ExactlyOnce, 1);
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    assert_eq!(poll_all(&mut session), [], "acknowledgements end with their connection");
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::Duplicate);
    assert_eq!(poll_all(&mut session), [ack(PubRec, 1, OK)]);
}

#[test]
fn a_duplicate_of_an_unaccepted_message_waits_with_it() {
    let mut session = connected();
    receive(&mut session, ExactlyOnce, 1);
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::Duplicate);
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::Duplicate);
    assert_eq!(poll_all(&mut session), []);
    accept(&mut session, ExactlyOnce, 1);
    assert_eq!(poll_all(&mut session), [ack(PubRec, 1, OK)]);
}

// 29
// [MQTT-3.1.2-4]
#[test]
fn a_clean_start_drops_received_identifiers() {
    let mut session = connected();
    receive(&mut session, ExactlyOnce, 1);
    accept(&mut session, ExactlyOnce, 1);
    session.disconnect(0, End::Lost);
    session.connect(0, ConnectParams { clean_start: true, ..params() });
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::New);
}

// 26
// [MQTT-4.3.3-9]
#[test]
fn a_refused_qos_2_publish_frees_its_identifier() {
    let mut session = connected();
    let refusal = ReasonCode::NOT_AUTHORIZED;
    receive(&mut session, ExactlyOnce, 1);
    let done = BatchSeq::DONE;
    session.accept_publish(ExactlyOnce, PacketId::new(1), refusal, done, &mut InMemory);
    assert_eq!(poll_all(&mut session), [ack(PubRec, 1, refusal)]);
    assert_eq!(session.inbound_unacked(), 0);
    assert_eq!(receive(&mut session, ExactlyOnce, 1), Inbound::New);
}

// 26
// [MQTT-4.3.3-11]
#[test]
fn pubrel_for_an_unknown_identifier_gets_pubcomp_0x92() {
    let mut session = connected();
    session.handle_pubrel(id(7), &mut InMemory).expect("PUBREL");
    let reason = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
    assert_eq!(poll_all(&mut session), [ack(PubComp, 7, reason)]);
}

// 31
#[test]
fn more_than_the_receive_maximum_is_0x93() {
    let limits = SessionLimits { receive_maximum: 2, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    receive(&mut session, AtLeastOnce, 1);
    receive(&mut session, ExactlyOnce, 2);
    receive(&mut session, AtMostOnce, 0);
    for qos in [AtLeastOnce, ExactlyOnce] {
        let error = session.handle_publish(qos, PacketId::new(3)).expect_err("refused");
        assert_eq!(error.reason(), ReasonCode::RECEIVE_MAXIMUM_EXCEEDED);
    }
    accept(&mut session, AtLeastOnce, 1);
    accept(&mut session, ExactlyOnce, 2);
    // Accepting is not enough, the acknowledgement has to be sent; PUBREC returns no credit.
    assert!(session.handle_publish(AtLeastOnce, PacketId::new(3)).is_err());
    poll_all(&mut session);
    receive(&mut session, AtLeastOnce, 3);
    assert!(session.handle_publish(AtLeastOnce, PacketId::new(4)).is_err());
    session.handle_pubrel(id(2), &mut InMemory).expect("PUBREL");
    accept(&mut session, AtLeastOnce, 3);
    poll_all(&mut session);
    assert_eq!(session.inbound_unacked(), 0);
}

#[test]
fn the_receive_maximum_starts_over_with_each_connection() {
    let limits = SessionLimits { receive_maximum: 1, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    receive(&mut session, ExactlyOnce, 1);
    accept(&mut session, ExactlyOnce, 1);
    session.disconnect(0, End::Lost);
    session.connect(0, params());
    // The client owes PUBREL for 1, which uses no quota of this connection.
    assert_eq!(receive(&mut session, ExactlyOnce, 2), Inbound::New);
    let repeated = session.handle_publish(ExactlyOnce, PacketId::new(1));
    assert!(repeated.is_err(), "a retransmitted PUBLISH does");
    session.handle_pubrel(id(1), &mut InMemory).expect("PUBREL");
    accept(&mut session, ExactlyOnce, 2);
    poll_all(&mut session);
    assert_eq!(session.inbound_unacked(), 1);
}

// 31
#[test]
fn mqtt_3_has_no_receive_maximum() {
    let limits = SessionLimits { receive_maximum: 1, ..SessionLimits::default() };
    let mut session = connected_with(limits, ConnectParams { version: Version::V311, ..params() });
    for packet_id in 1..100 {
        assert_eq!(receive(&mut session, AtLeastOnce, packet_id), Inbound::New);
    }
}

#[test]
fn a_publish_without_identifier_is_a_protocol_error_not_a_panic() {
    let mut session = connected();
    let error = session.handle_publish(AtLeastOnce, None).expect_err("refused");
    assert_eq!(error.reason(), ReasonCode::PROTOCOL_ERROR);
}

#[test]
fn a_flood_of_pubrels_is_bounded() {
    let mut session = connected();
    let flood = (0..200_000_u32).map(|n| id((n % 65_535 + 1) as u16));
    let refused = flood.map(|id| session.handle_pubrel(id, &mut InMemory)).any(|r| r.is_err());
    assert!(refused);
}
