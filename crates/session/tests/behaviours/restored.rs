//! Sessions restored from their stored state.

use tacho_codec::AckKind::{PubComp, PubRec};
use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::server::{End, ExchangeStage, Restored, RestoredExchange, TimeoutEvent};
use tacho_session::{DropReason, Inbound, WillState};

use super::*;

const OK: ReasonCode = ReasonCode::SUCCESS;

/// An empty session that never expires, restored at second 100.
fn nothing() -> Restored<&'static str> {
    Restored {
        now_ns: 100 * SECOND_NS,
        expiry_s: EXPIRY_NEVER,
        ends_at_ns: None,
        will: None,
        will_at_ns: None,
        next_seq: 1,
        exchanges: Vec::new(),
        queued: Vec::new(),
        inbound: Vec::new(),
    }
}

fn sent(
    seq: u64,
    packet_id: u16,
    qos: QoS,
    message: &'static str,
) -> RestoredExchange<&'static str> {
    let delivery = Some(Delivery::new(qos, message));
    RestoredExchange { seq, packet_id: id(packet_id), stage: ExchangeStage::Sent, delivery }
}

fn released(seq: u64, packet_id: u16) -> RestoredExchange<&'static str> {
    let stage = ExchangeStage::Released;
    RestoredExchange { seq, packet_id: id(packet_id), stage, delivery: None }
}

fn restore(restored: Restored<&'static str>) -> Session<&'static str> {
    Session::restore(SessionLimits::default(), restored, &mut InMemory)
}

fn events(session: &mut Session<&'static str>, now_s: u64) -> Vec<TimeoutEvent<&'static str>> {
    std::iter::from_fn(|| session.handle_timeout(now_s * SECOND_NS)).collect()
}

// 28
// [MQTT-4.4.0-1] [MQTT-4.6.0-1]
// [MQTT-3.1.1: 4.4.0-1] [MQTT-3.1.1: 4.6.0-1]
#[test]
fn a_restored_session_resumes_in_order() {
    let queued = |seq, qos, message| (seq, Delivery::new(qos, message));
    // In any order.
    let mut session = restore(Restored {
        exchanges: vec![
            released(4, 9),
            sent(5, 12, ExactlyOnce, "c"),
            sent(2, 8, AtLeastOnce, "a"),
        ],
        queued: vec![queued(8, AtMostOnce, "e"), queued(7, ExactlyOnce, "d")],
        next_seq: 9,
        ..nothing()
    });
    assert!(session.exists() && !session.is_connected());
    assert_eq!((session.inflight_len(), session.queue_len(), session.next_seq()), (3, 2, 9));
    assert_eq!(offer(&mut session, AtLeastOnce, "f"), Offer::Queued);
    assert!(session.connect(0, params()).session_present);
    let expected = [
        publish(AtLeastOnce, "a", 8, true),
        pubrel(9),
        publish(ExactlyOnce, "c", 12, true),
        publish(ExactlyOnce, "d", 13, false),
        publish(AtMostOnce, "e", 0, false),
        publish(AtLeastOnce, "f", 14, false),
    ];
    assert_eq!(poll_all(&mut session), expected);
    session.handle_puback(id(8), OK, &mut InMemory).expect("PUBACK");
    session.handle_pubcomp(id(9), OK, &mut InMemory).expect("PUBCOMP");
    session.handle_pubrec(id(12), OK, &mut InMemory).expect("PUBREC");
    assert_eq!(poll_all(&mut session), [pubrel(12)]);
    assert_eq!(session.inflight_len(), 3);
}

// 26
// [MQTT-4.3.3-10] [MQTT-4.3.3-12]
#[test]
fn a_restored_session_knows_its_received_identifiers() {
    let mut session = restore(Restored { inbound: vec![id(3), id(7)], ..nothing() });
    session.connect(0, params());
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(7))), Ok(Inbound::Duplicate));
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(8))), Ok(Inbound::New));
    session.handle_pubrel(id(3), &mut InMemory).expect("PUBREL");
    session.accept_publish(ExactlyOnce, Some(id(8)), OK, BatchSeq::DONE, &mut InMemory);
    let expected = [ack(PubRec, 7, OK), ack(PubRec, 8, OK), ack(PubComp, 3, OK)];
    assert_eq!(poll_all(&mut session), expected);
    assert_eq!(session.handle_publish(ExactlyOnce, Some(id(3))), Ok(Inbound::New));
}

#[test]
fn a_restored_session_ends_at_its_original_time() {
    let mut session = restore(Restored {
        expiry_s: 60,
        ends_at_ns: Some(130 * SECOND_NS),
        inbound: vec![id(1)],
        ..nothing()
    });
    assert_eq!(session.next_timeout(), Some(130 * SECOND_NS));
    assert_eq!(events(&mut session, 130), [TimeoutEvent::SessionExpired]);
    assert!(!session.exists());
    // The expiry of one that was connected counts from the restart.
    let session = restore(Restored { expiry_s: 60, ..nothing() });
    assert_eq!(session.next_timeout(), Some(160 * SECOND_NS));
    // One whose time has passed ends at once, and one without expiry does not end.
    let mut late = restore(Restored { expiry_s: 60, ends_at_ns: Some(7), ..nothing() });
    assert_eq!(events(&mut late, 100), [TimeoutEvent::SessionExpired]);
    assert_eq!(restore(nothing()).next_timeout(), None);
}

// [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT-3.1.3-9]
#[test]
fn a_restored_will_is_published_once_at_its_time() {
    let will = |delay_s| Some(WillState { message: "will", delay_s });
    let of = |delay_s, will_at_s: Option<u64>, expiry_s| Restored {
        expiry_s,
        will: will(delay_s),
        will_at_ns: will_at_s.map(|at_s| at_s * SECOND_NS),
        ..nothing()
    };
    let published = TimeoutEvent::PublishWill("will");
    // It was connected at the crash: the delay starts at the restart.
    for (restored, due_s) in [
        (of(0, None, 60), 100),
        (of(5, None, 60), 105),
        (of(90, None, 60), 160),
        (of(5, Some(102), 60), 102),
        (of(5, Some(1), EXPIRY_NEVER), 1),
        (of(90, Some(1_000), 60), 160),
    ] {
        let mut session = restore(restored);
        assert_eq!(session.next_timeout(), Some(due_s * SECOND_NS));
        assert_eq!(events(&mut session, due_s)[0], published.clone());
        assert!(!events(&mut session, 10_000).contains(&published));
    }
    let mut resumed = restore(of(5, None, 60));
    assert_eq!(resumed.connect(101 * SECOND_NS, params()).publish_will, None);
    assert_eq!(events(&mut resumed, 10_000), []);
}

// 29
// [MQTT-3.1.2-4]
#[test]
fn a_clean_start_drops_the_restored_state() {
    let mut session = restore(Restored {
        exchanges: vec![sent(1, 1, ExactlyOnce, "a")],
        queued: vec![(2, Delivery::new(AtLeastOnce, "b"))],
        inbound: vec![id(1)],
        next_seq: 3,
        ..nothing()
    });
    session.connect(0, ConnectParams { clean_start: true, ..params() });
    assert_eq!(poll_all(&mut session), []);
    assert_eq!((session.inflight_len(), session.queue_len()), (0, 0));
    assert!(!session.knows_inbound(ExactlyOnce, id(1)));
    assert_eq!(session.next_seq(), 3, "numbers continue");
}

#[test]
fn numbers_continue_behind_everything_restored() {
    let session = restore(Restored { exchanges: vec![released(70, 1)], ..nothing() });
    assert_eq!(session.next_seq(), 71);
    let queued = vec![(90, Delivery::new(AtLeastOnce, "a"))];
    let session = restore(Restored { queued, ..nothing() });
    assert_eq!(session.next_seq(), 91);
}

#[test]
fn limits_apply_only_to_messages_after_a_restart() {
    let queued = |seq| (seq, Delivery { size_bytes: 10, ..Delivery::new(AtLeastOnce, "a") });
    let limits = SessionLimits { queue_len_max: 2, inflight_max: 1, ..SessionLimits::default() };
    let exchanges = vec![sent(1, 1, AtLeastOnce, "x"), sent(2, 2, AtLeastOnce, "y")];
    let restored = Restored { exchanges, queued: (3..6).map(queued).collect(), ..nothing() };
    let mut session = Session::restore(limits, restored, &mut InMemory);
    assert_eq!((session.inflight_len(), session.queue_len(), session.queue_bytes()), (2, 3, 30));
    let dropped = Offer::Dropped(DropReason::QueueFull);
    assert_eq!(offer(&mut session, AtLeastOnce, "b"), dropped);
    session.connect(0, params());
    for (packet_id, message, dup) in
        [(1, "x", true), (2, "y", true), (3, "a", false), (4, "a", false), (5, "a", false)]
    {
        let size_bytes = if dup { 0 } else { 10 };
        let delivery = Delivery { size_bytes, ..Delivery::new(AtLeastOnce, message) };
        let packet_id = PacketId::new(packet_id);
        assert_eq!(poll_all(&mut session), [Transmit::Publish { delivery, packet_id, dup }]);
        session.handle_puback(packet_id.expect("QoS 1"), OK, &mut InMemory).expect("PUBACK");
    }
}

/// A part of the log was lost, with the record that the older exchange had ended.
#[test]
fn of_two_exchanges_with_one_identifier_the_newer_is_kept_and_the_older_ended() {
    let mut log = Log::default();
    let nonsense = RestoredExchange { delivery: None, ..sent(4, 4, AtLeastOnce, "") };
    let exchanges = vec![
        sent(3, 1, ExactlyOnce, "new"),
        sent(1, 1, ExactlyOnce, "old"),
        sent(2, 2, AtMostOnce, "never in flight"),
        nonsense,
    ];
    let restored = Restored { exchanges, ..nothing() };
    let mut session = Session::restore(SessionLimits::default(), restored, &mut log);
    assert_eq!(log.names, ["Acked", "Acked", "Acked"]);
    session.connect(0, params());
    assert_eq!(poll_all(&mut session), [publish(ExactlyOnce, "new", 1, true)]);
}

// 45
// [MQTT-4.8.2-5]
#[test]
fn a_qos_2_message_that_may_have_been_sent_before_a_crash_goes_to_no_other_session() {
    let mut session = restore(Restored {
        exchanges: vec![sent(1, 1, ExactlyOnce, "a"), sent(2, 2, AtLeastOnce, "b"), released(3, 3)],
        queued: vec![(4, Delivery::new(ExactlyOnce, "c"))],
        ..nothing()
    });
    let mut log = Log::default();
    let left: Vec<_> = session.take_undelivered(&mut log).into_iter().map(|d| d.message).collect();
    assert_eq!(left, ["b", "c"]);
    assert_eq!(log.names, ["Acked", "Removed", "Acked", "Removed"]);
}

// 38
// [MQTT-3.3.2-5]
#[test]
fn messages_that_expired_while_the_server_was_down_are_not_sent() {
    let mortal = |qos| Delivery { expires_at_ns: 50 * SECOND_NS, ..Delivery::new(qos, "a") };
    let mut session = restore(Restored {
        queued: vec![(1, mortal(AtLeastOnce)), (2, mortal(AtMostOnce))],
        ..nothing()
    });
    session.connect(100 * SECOND_NS, params());
    let mut log = Log::default();
    assert_eq!(session.poll_transmit(100 * SECOND_NS, BatchSeq::DONE, &mut log), None);
    assert_eq!(log.names, ["Expired", "Expired"]);
    session.disconnect(0, End::Lost);
    assert_eq!((session.queue_len(), session.counters().dropped(DropReason::Expired)), (0, 2));
}
