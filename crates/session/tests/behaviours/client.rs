//! The client's side.

use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::Inbound;
use tacho_session::client::{ClientLimits, ConnAckParams, Publish, Session, TimeoutEvent};

use super::{AckKind, ReasonCode, SECOND_NS, Transmit, Version, ack, id, publish, pubrel};

const OK: ReasonCode = ReasonCode::SUCCESS;

fn params() -> ConnAckParams {
    ConnAckParams::new(Version::V5)
}

fn resumed() -> ConnAckParams {
    ConnAckParams { session_present: true, ..params() }
}

fn connected(params: ConnAckParams) -> Session<&'static str> {
    let mut session = Session::new(ClientLimits::default());
    assert!(session.connack(0, params).is_empty());
    session
}

fn poll_all(session: &mut Session<&'static str>) -> Vec<Transmit<&'static str>> {
    std::iter::from_fn(|| session.poll_transmit(0)).collect()
}

// [MQTT-2.2.1-3]
// [MQTT-3.1.1: 2.3.1-2]
#[test]
fn publishes_of_each_qos_return_their_message_when_acknowledged() {
    let mut session = connected(params());
    let sent = session.publish(0, AtMostOnce, "a");
    assert_eq!(sent, Publish::Send(publish(AtMostOnce, "a", 0, false)));
    let sent = session.publish(0, AtLeastOnce, "b");
    assert_eq!(sent, Publish::Send(publish(AtLeastOnce, "b", 1, false)));
    let sent = session.publish(0, ExactlyOnce, "c");
    assert_eq!(sent, Publish::Send(publish(ExactlyOnce, "c", 2, false)));
    assert_eq!(session.handle_puback(id(1), OK), Ok(Some("b")));
    assert_eq!(session.handle_pubrec(id(2), OK), Ok(None));
    assert_eq!(poll_all(&mut session), [pubrel(2)]);
    assert_eq!(session.handle_pubcomp(id(2), OK), Ok(Some("c")));
    assert_eq!(session.inflight_len(), 0);
}

#[test]
fn a_refused_qos_2_message_is_returned_with_pubrec() {
    let mut session = connected(params());
    session.publish(0, ExactlyOnce, "a");
    assert_eq!(session.handle_pubrec(id(1), ReasonCode::QUOTA_EXCEEDED), Ok(Some("a")));
    assert_eq!(poll_all(&mut session), []);
}

// [MQTT-3.3.4-7] [MQTT-4.9.0-2]
#[test]
fn a_full_window_blocks_qos_1_and_2_but_not_qos_0() {
    let mut session = connected(ConnAckParams { receive_maximum: 1, ..params() });
    session.publish(0, AtLeastOnce, "a");
    assert!(!session.can_publish());
    assert_eq!(session.publish(0, AtLeastOnce, "b"), Publish::Blocked("b"));
    assert!(matches!(session.publish(0, AtMostOnce, "c"), Publish::Send(_)));
    session.handle_puback(id(1), OK).expect("PUBACK");
    assert!(matches!(session.publish(0, AtLeastOnce, "b"), Publish::Send(_)));
}

#[test]
fn without_a_connection_everything_is_blocked() {
    let mut session: Session<&str> = Session::new(ClientLimits::default());
    for qos in [AtMostOnce, AtLeastOnce, ExactlyOnce] {
        assert_eq!(session.publish(0, qos, "a"), Publish::Blocked("a"));
    }
}

// 28
// [MQTT-4.4.0-1] [MQTT-4.6.0-1]
// [MQTT-3.1.1: 2.3.1-3] [MQTT-3.1.1: 4.4.0-1] [MQTT-3.1.1: 4.6.0-1]
#[test]
fn a_resume_retransmits_unacknowledged_messages_before_new_ones() {
    let mut session = connected(params());
    session.publish(0, AtLeastOnce, "a");
    session.publish(0, ExactlyOnce, "b");
    session.handle_pubrec(id(2), OK).expect("PUBREC");
    session.disconnected();
    assert!(session.connack(0, resumed()).is_empty());
    assert_eq!(session.publish(0, AtLeastOnce, "c"), Publish::Queued);
    let expected =
        [publish(AtLeastOnce, "a", 1, true), pubrel(2), publish(AtLeastOnce, "c", 3, false)];
    assert_eq!(poll_all(&mut session), expected);
    assert_eq!(session.handle_pubcomp(id(2), OK), Ok(Some("b")));
}

// [MQTT-3.2.2-5]
#[test]
fn unacknowledged_messages_are_returned_if_the_server_has_no_session() {
    let mut session = connected(params());
    session.publish(0, AtLeastOnce, "a");
    session.publish(0, ExactlyOnce, "received");
    session.publish(0, ExactlyOnce, "b");
    session.handle_pubrec(id(2), OK).expect("PUBREC");
    session.disconnected();
    assert_eq!(session.connack(0, params()), ["a", "b"]);
    assert_eq!(poll_all(&mut session), []);
    assert_eq!(session.inflight_len(), 0);
}

// [MQTT-4.5.0-2]
// [MQTT-3.1.1: 4.5.0-2]
#[test]
fn inbound_messages_are_acknowledged_and_duplicates_recognized() {
    let mut session = connected(params());
    assert_eq!(session.handle_publish(AtMostOnce, None), Ok(Inbound::New));
    assert_eq!(session.handle_publish(AtLeastOnce, Some(id(1))), Ok(Inbound::New));
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(2))), Ok(Inbound::New));
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(2))), Ok(Inbound::Duplicate));
    session.handle_pubrel(id(2)).expect("PUBREL");
    let expected = [
        ack(AckKind::PubAck, 1, OK),
        ack(AckKind::PubRec, 2, OK),
        ack(AckKind::PubRec, 2, OK),
        ack(AckKind::PubComp, 2, OK),
    ];
    assert_eq!(poll_all(&mut session), expected);
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(2))), Ok(Inbound::New));
}

#[test]
fn a_server_above_our_receive_maximum_is_an_error() {
    let limits = ClientLimits { receive_maximum: 1, ..ClientLimits::default() };
    let mut session: Session<&str> = Session::new(limits);
    session.connack(0, params());
    session.handle_publish(ExactlyOnce, Some(id(1))).expect("the first");
    let error = session.handle_publish(AtLeastOnce, Some(id(2))).expect_err("refused");
    assert_eq!(error.reason(), ReasonCode::RECEIVE_MAXIMUM_EXCEEDED);
}

// [MQTT-2.2.1-3]
// [MQTT-3.1.1: 2.3.1-2]
#[test]
fn subscribe_and_publish_share_the_identifiers() {
    let mut session = connected(params());
    let subscribe = session.reserve_id().expect("an identifier");
    assert_eq!(subscribe, id(1));
    let sent = session.publish(0, AtLeastOnce, "a");
    assert_eq!(sent, Publish::Send(publish(AtLeastOnce, "a", 2, false)));
    assert!(!session.release_id(id(2)), "a PUBLISH is not released by SUBACK");
    assert!(session.release_id(subscribe));
    assert!(!session.release_id(subscribe));
    assert!(session.handle_puback(subscribe, OK) == Ok(None), "it is free");
    session.reserve_id().expect("an identifier");
    session.disconnected();
    session.connack(0, resumed());
    assert_eq!(poll_all(&mut session), [publish(AtLeastOnce, "a", 2, true)]);
}

// [MQTT-3.1.2-20]
// [MQTT-3.1.1: 3.1.2-23]
#[test]
fn pingreq_is_sent_only_when_no_other_packet_was() {
    let mut session = connected(ConnAckParams { keep_alive_s: 10, ping_timeout_s: 5, ..params() });
    assert_eq!(session.next_timeout(), Some(10 * SECOND_NS));
    session.publish(4 * SECOND_NS, AtMostOnce, "a");
    assert_eq!(session.handle_timeout(10 * SECOND_NS), None);
    assert_eq!(session.next_timeout(), Some(14 * SECOND_NS));
    assert_eq!(session.handle_timeout(14 * SECOND_NS), Some(TimeoutEvent::SendPingReq));
    assert_eq!(session.next_timeout(), Some(19 * SECOND_NS));
    session.handle_pingresp();
    assert_eq!(session.next_timeout(), Some(24 * SECOND_NS));
}

#[test]
fn a_missing_pingresp_times_out_once() {
    let mut session = connected(ConnAckParams { keep_alive_s: 10, ping_timeout_s: 5, ..params() });
    assert_eq!(session.handle_timeout(10 * SECOND_NS), Some(TimeoutEvent::SendPingReq));
    assert_eq!(session.handle_timeout(15 * SECOND_NS - 1), None);
    assert_eq!(session.handle_timeout(15 * SECOND_NS), Some(TimeoutEvent::PingTimeout));
    assert_eq!(session.handle_timeout(90 * SECOND_NS), None);
}

#[test]
fn keep_alive_0_sends_no_pingreq() {
    let mut session = connected(params());
    assert_eq!(session.next_timeout(), None);
    assert_eq!(session.handle_timeout(u64::MAX), None);
}
