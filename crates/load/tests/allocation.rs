//! Publishing, receiving and verifying does not allocate per message.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tacho_codec::QoS;
use tacho_load::null_broker::NullBroker;
use tacho_load::{Engine, Event, Pace, PhaseKind};
use tacho_net::{Loop, LoopConfig, mailboxes};
use tacho_testkit::load::Scene;

/// Allocations of the whole process: generator, controller and broker.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: all calls are forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn steady_load_does_not_allocate_per_message() {
    let listener = tacho_net::bind(([127, 0, 0, 1], 0).into(), 128).expect("bind");
    let addr = listener.local_addr().expect("address");
    let config = LoopConfig { listeners: vec![listener], ..LoopConfig::default() };
    let mailbox = mailboxes(1).pop().expect("one mailbox");
    let event_loop = Loop::new(config, mailbox).expect("loop");
    // It is never stopped, and ends with the test process.
    std::thread::spawn(move || event_loop.run(&mut NullBroker::default()));
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
        let pace = Pace::Closed { window: 16 };
        let scene = Scene { pace, warm_up_ms: 500, ..Scene::pairs(10, qos) };
        let engine = Engine::start(scene.plan(addr)).expect("the plan is good");
        let (mut before, mut after) = (0, 0);
        let totals = loop {
            match engine.next_event(Duration::from_secs(120)).expect("events until the end") {
                Event::Phase { kind: PhaseKind::Measure, .. } => {
                    before = ALLOCATIONS.load(Ordering::Relaxed);
                }
                Event::Phase { kind: PhaseKind::Drain, .. } => {
                    after = ALLOCATIONS.load(Ordering::Relaxed);
                }
                Event::Measured(totals) => break totals,
                _ => {}
            }
        };
        // The rest are intervals and reports: a few hundred, independent of the number of messages.
        let (allocations, messages) = (after - before, totals.delivery.received);
        println!("QoS {qos}: {allocations} allocations, {messages} messages");
        assert!(messages > 2_000, "{messages} messages");
        assert!(allocations * 10 < messages, "{allocations} for {messages} messages at QoS {qos}");
    }
}
