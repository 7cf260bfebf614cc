//! An agent whose clock is off and drifts. It skews the clock of its program, and is its only test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, LocalBus};
use tacho_lab::agents::{
    Agent, AgentCard, AgentLimits, AgentSettings, ClockOffset, Labels, clock_offset,
};
use tacho_load::division::{clock_ns, skew_clock};
use tacho_monitor::{ClockMap, now_ns};

const DRIFT: f64 = 80e-6;
/// What is known of a drift before it is measured: crystals are not worse.
const DRIFT_MAX: f64 = 100e-6;

/// What has to be added to the agent's clock now, within the time between two readings.
fn true_shift() -> (i64, u64) {
    let before_ns = now_ns();
    let there_ns = clock_ns();
    let after_ns = now_ns();
    (before_ns.wrapping_sub(there_ns).cast_signed(), after_ns - before_ns)
}

#[test]
fn offset_and_drift_of_an_agent_are_read_within_their_bounds() {
    skew_clock(10_000_000_000, (DRIFT * 1e9) as i64);
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
    let mut card = AgentCard::of_this_machine("skewed", Labels::new(), 1);
    card.boot = None;
    let settings = AgentSettings { card: card.clone(), limits: AgentLimits::default() };
    let agent = Agent::register(Arc::clone(&bus), settings).expect("registers");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let serving = std::thread::spawn(move || agent.serve(&stopped, &|_| {}));

    let mut map = ClockMap::default();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        let ClockOffset { shift_ns, error_ns } =
            clock_offset(&*bus, &card, &mut map, 5).expect("it answers");
        let (true_ns, reading_ns) = true_shift();
        // Between the exchange and this reading the clock has drifted on, if this thread waited.
        let off_ns = shift_ns.abs_diff(true_ns);
        assert!(off_ns <= error_ns + reading_ns + 100_000, "{shift_ns} {true_ns} {error_ns}");
        assert!((-10_100_000_000..-9_900_000_000).contains(&shift_ns), "{shift_ns}");
        std::thread::sleep(Duration::from_millis(250));
    }
    let (drift, error) = map.drift();
    assert!((drift - DRIFT).abs() <= error + 1e-6, "{drift} +- {error}");
    assert!(error < DRIFT_MAX, "{drift} +- {error}");

    stop.store(true, Ordering::Relaxed);
    serving.join().expect("no panic").expect("the bus is there");
}
