//! The cost of a session: memory when idle, allocations when busy.

#![expect(unsafe_code, reason = "a counting allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use tacho_codec::{PacketId, QoS, ReasonCode, Version};
use tacho_session::server::{ConnectParams, Session, SessionLimits};
use tacho_session::{BatchSeq, Delivery, EXPIRY_NEVER, InMemory, Offer, Transmit, client};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of `work` on this thread.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn connected() -> Session<Arc<[u8]>> {
    let mut session = Session::new(SessionLimits::default());
    session.connect(
        0,
        ConnectParams {
            version: Version::V5,
            clean_start: false,
            receive_maximum: 100,
            topic_alias_maximum_in: 0,
            topic_alias_maximum_out: 0,
            keep_alive_s: 60,
            session_expiry_s: EXPIRY_NEVER,
            will: None,
        },
    );
    session
}

#[test]
fn an_idle_session_is_small_and_owns_no_heap() {
    let size_bytes = size_of::<Session<Arc<[u8]>>>();
    assert!(size_bytes < 600, "{size_bytes} bytes");
    assert_eq!(allocations(|| drop(connected())), 0);
}

/// One message through a publisher's and a subscriber's session, with all packets of its exchanges.
fn exchange(
    publisher: &mut Session<Arc<[u8]>>,
    subscriber: &mut Session<Arc<[u8]>>,
    message: &Arc<[u8]>,
    qos: QoS,
    id: u16,
) {
    let id = PacketId::new(id).filter(|_| qos != QoS::AtMostOnce);
    publisher.handle_activity(1);
    publisher.handle_publish(qos, id).expect("within the receive maximum");
    let delivery = Delivery { size_bytes: 128, ..Delivery::new(qos, Arc::clone(message)) };
    let Offer::SendNow(Transmit::Publish { packet_id, .. }) =
        subscriber.offer(1, delivery, &mut InMemory)
    else {
        panic!("the window is open");
    };
    publisher.accept_publish(qos, id, ReasonCode::SUCCESS, BatchSeq::DONE, &mut InMemory);
    while publisher.poll_transmit(1, BatchSeq::DONE, &mut InMemory).is_some() {}
    let (Some(id), Some(packet_id)) = (id, packet_id) else { return };
    let ok = ReasonCode::SUCCESS;
    if qos == QoS::AtLeastOnce {
        subscriber.handle_puback(packet_id, ok, &mut InMemory).expect("PUBACK");
    } else {
        publisher.handle_pubrel(id, &mut InMemory).expect("PUBREL");
        subscriber.handle_pubrec(packet_id, ok, &mut InMemory).expect("PUBREC");
        while subscriber.poll_transmit(1, BatchSeq::DONE, &mut InMemory).is_some() {}
        subscriber.handle_pubcomp(packet_id, ok, &mut InMemory).expect("PUBCOMP");
        while publisher.poll_transmit(1, BatchSeq::DONE, &mut InMemory).is_some() {}
    }
}

#[test]
fn a_message_of_any_qos_allocates_nothing_in_steady_state() {
    let message: Arc<[u8]> = Arc::from([0_u8; 128]);
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let (mut publisher, mut subscriber) = (connected(), connected());
        let mut run = |ids: std::ops::Range<u16>| {
            ids.for_each(|id| exchange(&mut publisher, &mut subscriber, &message, qos, id));
        };
        run(1..10);
        assert_eq!(allocations(|| run(10..2_000)), 0, "{qos:?}");
    }
}

#[test]
fn a_client_publish_allocates_nothing_in_steady_state() {
    let mut session = client::Session::new(client::ClientLimits::default());
    session.connack(0, client::ConnAckParams::new(Version::V5));
    let mut run = |messages: std::ops::Range<u32>| {
        for message in messages {
            let sent = session.publish(1, QoS::AtLeastOnce, message);
            let client::Publish::Send(Transmit::Publish { packet_id: Some(id), .. }) = sent else {
                panic!("the window is open");
            };
            assert_eq!(session.handle_puback(id, ReasonCode::SUCCESS), Ok(Some(message)));
        }
    };
    run(0..10);
    assert_eq!(allocations(|| run(10..100_000)), 0);
}
