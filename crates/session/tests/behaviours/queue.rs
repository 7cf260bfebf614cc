//! The bounded queue: limits, drop policy, message expiry, congestion.

use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use tacho_session::server::End;
use tacho_session::{DropReason, Overflow, QueueLevel, SubscriptionIdList};

use super::*;

fn offline(limits: SessionLimits) -> Session<&'static str> {
    let mut session = connected_with(limits, params());
    session.disconnect(0, End::Lost);
    session
}

fn sized(message: &'static str, size_bytes: u32) -> Delivery<&'static str> {
    Delivery { size_bytes, ..Delivery::new(AtLeastOnce, message) }
}

// 58
#[test]
fn a_full_queue_drops_the_newest_message() {
    let mut session = offline(SessionLimits { queue_len_max: 2, ..SessionLimits::default() });
    assert_eq!(offer(&mut session, AtLeastOnce, "a"), Offer::Queued);
    assert_eq!(offer(&mut session, ExactlyOnce, "b"), Offer::Queued);
    assert_eq!(offer(&mut session, AtLeastOnce, "c"), Offer::Dropped(DropReason::QueueFull));
    session.connect(0, params());
    let expected = [publish(AtLeastOnce, "a", 1, false), publish(ExactlyOnce, "b", 2, false)];
    assert_eq!(poll_all(&mut session), expected);
    assert_eq!(session.counters().dropped(DropReason::QueueFull), 1);
}

// 58
#[test]
fn the_queue_is_bounded_in_bytes_too() {
    let mut session = offline(SessionLimits { queue_bytes_max: 100, ..SessionLimits::default() });
    assert_eq!(session.offer(0, sized("a", 60), &mut InMemory), Offer::Queued);
    let dropped = Offer::Dropped(DropReason::QueueBytesFull);
    assert_eq!(session.offer(0, sized("b", 41), &mut InMemory), dropped);
    assert_eq!(session.offer(0, sized("c", 40), &mut InMemory), Offer::Queued);
    assert_eq!((session.queue_len(), session.queue_bytes()), (2, 100));
    session.connect(0, params());
    assert_eq!(poll_all(&mut session).len(), 2);
    assert_eq!((session.queue_len(), session.queue_bytes()), (0, 0));
}

#[test]
fn a_full_queue_drops_its_oldest_messages_if_told_to() {
    let limits = SessionLimits {
        queue_len_max: 3,
        queue_bytes_max: 100,
        overflow: Overflow::DropOldest,
        queue_qos0_offline: true,
        ..SessionLimits::default()
    };
    let mut session = offline(limits);
    let mut log = Log::default();
    for (message, size_bytes) in [("a", 30), ("b", 30), ("c", 30), ("d", 30)] {
        assert_eq!(session.offer(0, sized(message, size_bytes), &mut log), Offer::Queued);
    }
    assert_eq!(log.names, ["Enqueued", "Enqueued", "Enqueued", "Discarded", "Enqueued"]);
    assert_eq!(session.counters().dropped(DropReason::QueueFull), 1);
    // Several make room for a large one.
    assert_eq!(session.offer(0, sized("e", 65), &mut log), Offer::Queued);
    assert_eq!(session.counters().dropped_total(), 3);
    // Nothing makes room for one that is larger than the queue, or that promises nothing.
    let too_large = Offer::Dropped(DropReason::QueueBytesFull);
    assert_eq!(session.refusal(0, &sized("f", 101)), Some(DropReason::QueueBytesFull));
    assert_eq!(session.offer(0, sized("f", 101), &mut log), too_large);
    let qos_0 = Delivery { size_bytes: 30, ..Delivery::new(AtMostOnce, "g") };
    assert_eq!(session.offer(0, qos_0, &mut log), too_large);
    session.connect(0, params());
    let sent: Vec<_> = poll_all(&mut session).into_iter().map(message_of).collect();
    assert_eq!(sent, ["d", "e"]);
    assert_eq!(session.counters().dropped_total(), 5);
}

/// What was recorded as dispatched before a crash would have to be is not dropped once more.
#[test]
fn messages_that_are_about_to_leave_make_no_room() {
    let limits = SessionLimits {
        queue_len_max: 3,
        overflow: Overflow::DropOldest,
        queue_qos0_offline: true,
        inflight_max: 1,
        ..SessionLimits::default()
    };
    let mut session = offline(limits);
    let mut log = Log::default();
    for (qos, message) in [(AtMostOnce, "a"), (AtLeastOnce, "b"), (AtLeastOnce, "c")] {
        assert_eq!(session.offer(0, Delivery::new(qos, message), &mut log), Offer::Queued);
    }
    session.connect(0, params());
    assert_eq!(session.poll_transmit(0, BatchSeq::DONE, &mut log), None, "it waits for the commit");
    assert_eq!(session.offer(0, Delivery::new(AtLeastOnce, "d"), &mut log), Offer::Queued);
    let sent: Vec<_> = poll_all(&mut session).into_iter().map(message_of).collect();
    assert_eq!(sent, ["a", "c"], "b made room");
    assert_eq!(session.queue_len(), 1);
}

#[test]
fn a_queue_that_keeps_everything_says_when_it_is_full_and_when_it_has_room() {
    let limits = SessionLimits {
        queue_len_max: 8,
        queue_bytes_max: 1_000,
        overflow: Overflow::Keep,
        queue_qos0_offline: true,
        inflight_max: 1,
        ..SessionLimits::default()
    };
    let mut session = offline(limits);
    let levels: Vec<QueueLevel> = (0..10)
        .map(|_| {
            assert_eq!(offer(&mut session, AtLeastOnce, "a"), Offer::Queued);
            session.queue_level()
        })
        .collect();
    use QueueLevel::{Full, High, Room};
    assert_eq!(levels, [Room, Room, Room, Room, Room, Room, High, Full, Full, Full]);
    assert_eq!(session.refusal(0, &sized("b", 1)), None);
    assert_eq!(offer(&mut session, AtMostOnce, "c"), Offer::Dropped(DropReason::QueueFull));
    assert_eq!(session.counters().dropped_total(), 1);
    session.set_overflow(Overflow::DropNewest);
    assert_eq!(session.overflow(), Overflow::DropNewest);
    assert_eq!(offer(&mut session, AtLeastOnce, "d"), Offer::Dropped(DropReason::QueueFull));
    // Bytes count as well.
    let mut session = offline(SessionLimits { queue_bytes_max: 100, ..limits });
    for (size_bytes, level) in [(75, Room), (1, High), (23, High), (50, Full)] {
        assert_eq!(session.offer(0, sized("a", size_bytes), &mut InMemory), Offer::Queued);
        assert_eq!(session.queue_level(), level, "{size_bytes}");
    }
}

fn message_of(transmit: Transmit<&'static str>) -> &'static str {
    match transmit {
        Transmit::Publish { delivery, .. } => delivery.message,
        other => panic!("not a message: {other:?}"),
    }
}

// 58
#[test]
fn qos_0_without_connection_is_dropped_or_queued_as_configured() {
    let mut session = offline(SessionLimits::default());
    assert_eq!(offer(&mut session, AtMostOnce, "a"), Offer::Dropped(DropReason::Offline));
    let limits = SessionLimits { queue_qos0_offline: true, ..SessionLimits::default() };
    let mut session = offline(limits);
    assert_eq!(offer(&mut session, AtMostOnce, "a"), Offer::Queued);
    session.connect(0, params());
    assert_eq!(offer(&mut session, AtMostOnce, "b"), Offer::Queued, "a is ahead of it");
    let expected = [publish(AtMostOnce, "a", 0, false), publish(AtMostOnce, "b", 0, false)];
    assert_eq!(poll_all(&mut session), expected);
    assert!(matches!(offer(&mut session, AtMostOnce, "c"), Offer::SendNow(_)));
}

// 38
// [MQTT-3.3.2-5]
#[test]
fn expired_messages_leave_the_queue_and_are_counted() {
    let mut session = offline(SessionLimits::default());
    let mut log = Log::default();
    for (message, expires_at_ns) in [("a", 5), ("b", u64::MAX), ("c", 7), ("d", 20)] {
        let delivery = Delivery { expires_at_ns, ..Delivery::new(AtLeastOnce, message) };
        assert_eq!(session.offer(0, delivery, &mut log), Offer::Queued);
    }
    session.connect(10, params());
    let mut sent = Vec::new();
    while let Some(transmit) = session.poll_transmit(10, BatchSeq::DONE, &mut log) {
        if let Transmit::Publish { delivery, .. } = transmit {
            sent.push(delivery.message);
        }
    }
    assert_eq!(sent, ["b", "d"]);
    assert_eq!(session.counters().dropped(DropReason::Expired), 2);
    assert_eq!(log.names[4..], ["Expired", "Sent", "Expired", "Sent"]);
}

// 38
// [MQTT-3.3.2-5]
#[test]
fn an_expired_message_is_not_queued() {
    let mut session = connected();
    let delivery = Delivery { expires_at_ns: 5, ..Delivery::new(AtMostOnce, "a") };
    let dropped = Offer::Dropped(DropReason::Expired);
    assert_eq!(session.offer(5, delivery, &mut InMemory), dropped);
}

// 38, 58
#[test]
fn a_full_queue_makes_room_by_dropping_expired_messages() {
    let mut session = offline(SessionLimits { queue_len_max: 1, ..SessionLimits::default() });
    let delivery = Delivery { expires_at_ns: 5, ..Delivery::new(AtLeastOnce, "a") };
    session.offer(0, delivery, &mut InMemory);
    assert_eq!(session.offer(6, sized("b", 1), &mut InMemory), Offer::Queued);
}

// 38
// [MQTT-3.3.2-6]
#[test]
fn the_expiry_interval_sent_is_the_remaining_time() {
    let delivery = |expires_at_ns| Delivery { expires_at_ns, ..Delivery::new(AtMostOnce, ()) };
    assert_eq!(delivery(u64::MAX).expiry_left_s(5), None);
    assert_eq!(delivery(10 * SECOND_NS).expiry_left_s(3 * SECOND_NS), Some(7));
    assert_eq!(delivery(10 * SECOND_NS).expiry_left_s(10 * SECOND_NS - 1), Some(1));
    assert_eq!(delivery(u64::MAX - 1).expiry_left_s(0), Some(u32::MAX));
}

// 58
#[test]
fn congestion_queues_qos_1_and_2_and_drops_qos_0() {
    let mut session = connected();
    session.set_congested(true);
    assert_eq!(offer(&mut session, AtMostOnce, "a"), Offer::Dropped(DropReason::NoCredit));
    assert_eq!(offer(&mut session, AtLeastOnce, "b"), Offer::Queued);
    session.set_congested(false);
    assert_eq!(offer(&mut session, AtLeastOnce, "c"), Offer::Queued, "b is ahead of it");
    let expected = [publish(AtLeastOnce, "b", 1, false), publish(AtLeastOnce, "c", 2, false)];
    assert_eq!(poll_all(&mut session), expected);
}

#[test]
fn drop_reasons_have_distinct_names() {
    let mut names = DropReason::ALL.map(DropReason::name);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn subscription_identifiers_keep_their_order() {
    let mut ids = SubscriptionIdList::NONE;
    assert!(ids.is_empty() && ids.as_slice().is_empty());
    for id in [7, 0, 3, 268_435_455] {
        ids.push(id);
    }
    assert_eq!(ids.as_slice(), [7, 3, 268_435_455]);
    assert_eq!(SubscriptionIdList::one(7).as_slice(), [7]);
    assert_eq!([1, 2].into_iter().collect::<SubscriptionIdList>().as_slice(), [1, 2]);
}

#[test]
fn unsent_messages_expire_in_the_window_and_sent_ones_do_not() {
    let limits = SessionLimits { inflight_max: 10, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    let mortal =
        |qos, message| Delivery { expires_at_ns: SECOND_NS, ..Delivery::new(qos, message) };
    let offer_mortal = |session: &mut Session<&'static str>, qos, message| {
        session.offer(0, mortal(qos, message), &mut InMemory)
    };
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let sent = offer_mortal(&mut session, qos, "sent");
        assert!(matches!(sent, Offer::SendNow(_)));
    }
    session.set_congested(true);
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        assert_eq!(offer_mortal(&mut session, qos, "unsent"), Offer::Queued);
    }
    offer(&mut session, QoS::AtLeastOnce, "immortal");
    session.set_congested(false);
    // The first poll moves all three into the window and sends one; then time passes.
    let all = BatchSeq::DONE;
    let first = session.poll_transmit(0, all, &mut InMemory);
    assert!(
        matches!(first, Some(Transmit::Publish { delivery, .. }) if delivery.message == "unsent")
    );
    let second = session.poll_transmit(2 * SECOND_NS, all, &mut InMemory);
    let immortal = publish(QoS::AtLeastOnce, "immortal", 5, false);
    assert_eq!(second, Some(immortal.clone()));
    assert_eq!(session.counters().dropped(DropReason::Expired), 1);
    assert_eq!(session.inflight_len(), 4);
    // The next connection retransmits all sent messages, regardless of their age.
    session.disconnect(2 * SECOND_NS, End::Lost);
    session.connect(2 * SECOND_NS, params());
    let again = std::iter::from_fn(|| session.poll_transmit(2 * SECOND_NS, all, &mut InMemory));
    assert_eq!(again.filter(|t| matches!(t, Transmit::Publish { dup: true, .. })).count(), 4);
}

// 38. The message behind it once waited until an unrelated event.
// [MQTT-3.3.2-5]
#[test]
fn an_expired_message_in_the_window_makes_room_for_a_queued_one() {
    let limits = SessionLimits { inflight_max: 1, ..SessionLimits::default() };
    let mut session = connected_with(limits, params());
    let mut log = Log::default();
    let short = Delivery { expires_at_ns: 5, ..Delivery::new(ExactlyOnce, "a") };
    assert_eq!(session.offer(0, short, &mut log), Offer::Queued, "it is not committed");
    let other = Delivery::new(AtLeastOnce, "b");
    assert_eq!(session.offer(0, other, &mut log), Offer::Queued);
    let sent = session.poll_transmit(10, BatchSeq::new(log.last), &mut InMemory);
    let Some(Transmit::Publish { delivery, .. }) = sent else { panic!("{sent:?}") };
    assert_eq!(delivery.message, "b");
    assert!(!session.has_output(BatchSeq::new(log.last)));
}
