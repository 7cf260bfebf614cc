//! The clock that all loops share.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// What this process adds to its machine's clock: [shift] and [skew] together.
static ADDED_NS: AtomicI64 = AtomicI64::new(0);
/// The part of that which is a [skew].
static AHEAD_NS: AtomicI64 = AtomicI64::new(0);
/// How much faster a skewed clock runs, in parts per billion; 0 for the machine's own pace.
static DRIFT_PPB: AtomicI64 = AtomicI64::new(0);
/// Since when, on the machine's clock.
static DRIFT_SINCE_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of `CLOCK_MONOTONIC`: comparable between the threads and the processes of a machine;
/// [shifted](shift), of another machine's.
///
/// Handlers take the time of their turn from [`Net::now_ns`](crate::Net::now_ns), which costs
/// nothing; this function reads the clock.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    paced(machine_ns()).wrapping_add_signed(ADDED_NS.load(Ordering::Relaxed))
}

#[inline]
fn machine_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// From now on the clock of this process shows that much more than its machine's: a process that
/// works for another machine follows that one's clock. No loop may be running, since their timers
/// would not follow.
pub fn shift(by_ns: i64) {
    ADDED_NS.store(by_ns.wrapping_add(AHEAD_NS.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// The machine's clock without a [shift], as this process tells it to others.
#[must_use]
pub fn unshifted_ns() -> u64 {
    paced(machine_ns()).wrapping_add_signed(AHEAD_NS.load(Ordering::Relaxed))
}

/// For tests of what follows other machines' clocks: from now on this process takes its machine's
/// clock for one that is so far ahead and runs so much faster (at most 1 %). Before any loop.
pub fn skew(ahead_ns: i64, drift_ppb: i64) {
    DRIFT_SINCE_NS.store(machine_ns(), Ordering::Relaxed);
    DRIFT_PPB.store(drift_ppb.clamp(-10_000_000, 10_000_000), Ordering::Relaxed);
    AHEAD_NS.store(ahead_ns, Ordering::Relaxed);
    shift(0);
}

/// A time of the machine's clock on one that drifts.
#[inline]
fn paced(machine_ns: u64) -> u64 {
    match DRIFT_PPB.load(Ordering::Relaxed) {
        0 => machine_ns,
        drift_ppb => drifted(machine_ns, DRIFT_SINCE_NS.load(Ordering::Relaxed), drift_ppb),
    }
}

#[cold]
fn drifted(machine_ns: u64, since_ns: u64, drift_ppb: i64) -> u64 {
    let passed_ns = i128::from(machine_ns) - i128::from(since_ns);
    let ahead_ns = passed_ns * i128::from(drift_ppb) / 1_000_000_000;
    machine_ns.wrapping_add_signed(ahead_ns as i64)
}

/// The time of the machine's clock when one that drifts shows this.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn undrifted(at_ns: u64, since_ns: u64, drift_ppb: i64) -> u64 {
    let passed_ns = i128::from(at_ns) - i128::from(since_ns);
    let ahead_ns = passed_ns * i128::from(drift_ppb) / (1_000_000_000 + i128::from(drift_ppb));
    at_ns.saturating_add_signed((ahead_ns as i64).saturating_neg())
}

/// A time of [`now_ns`] on the machine's own clock, for its timers.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn on_machine_ns(at_ns: u64) -> u64 {
    let at_ns = at_ns.saturating_add_signed(ADDED_NS.load(Ordering::Relaxed).saturating_neg());
    match DRIFT_PPB.load(Ordering::Relaxed) {
        0 => at_ns,
        drift_ppb => undrifted(at_ns, DRIFT_SINCE_NS.load(Ordering::Relaxed), drift_ppb),
    }
}

/// Nanoseconds of CPU time that the calling thread has used. Costs a system call.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    (used.tv_sec as u64) * 1_000_000_000 + used.tv_nsec as u64
}

/// Nanoseconds since 1970 by the system's wall clock, for times that are stored or compared with
/// other machines. The clock may be set back or forward, so durations must not be measured by it.
#[must_use]
pub fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    // A clock that shows a time before 1970 or after 2500 is wrong; so is its result here.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Reduces the timer slack of the calling thread to 1 ns. By default Linux lets ordinary threads
/// sleep up to 50 us longer, to combine wake-ups.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn minimise_timer_slack() {
    // If it is not allowed, sleeps are a little longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Other systems have no such setting.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn minimise_timer_slack() {}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    // A clock of CPU time would stand still during the sleep, one in other units would fall out of
    // the bounds.
    #[test]
    fn now_ns_advances_with_real_time() {
        const PAUSE: Duration = Duration::from_millis(20);
        // macOS has a resolution of 1 us.
        const RESOLUTION_NS: u128 = 2_000;
        let outer = Instant::now();
        let from_ns = now_ns();
        let inner = Instant::now();
        thread::sleep(PAUSE);
        let at_least_ns = inner.elapsed().as_nanos();
        let elapsed_ns = u128::from(now_ns() - from_ns);
        let at_most_ns = outer.elapsed().as_nanos();
        assert!(at_least_ns >= PAUSE.as_nanos());
        assert!(elapsed_ns + RESOLUTION_NS >= at_least_ns, "{elapsed_ns}, not {at_least_ns}");
        assert!(elapsed_ns <= at_most_ns + RESOLUTION_NS, "{elapsed_ns}, not {at_most_ns}");
    }

    #[test]
    fn all_threads_read_the_same_clock() {
        let before_ns = now_ns();
        let elsewhere_ns = thread::spawn(now_ns).join().expect("no panic");
        assert!((before_ns..=now_ns()).contains(&elsewhere_ns), "{elsewhere_ns}");
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_drifting_clock_is_read_in_both_directions() {
        const SINCE_NS: u64 = 5_000_000_000;
        // After 1,000 s at 100 ppm.
        assert_eq!(drifted(SINCE_NS + 1_000_000_000_000, SINCE_NS, 100_000), 1_005_100_000_000);
        for drift_ppb in [100_000, -100_000, 10_000_000, -10_000_000] {
            for machine_ns in [SINCE_NS, SINCE_NS + 1, SINCE_NS + 86_400_000_000_000] {
                let shown_ns = drifted(machine_ns, SINCE_NS, drift_ppb);
                let back_ns = undrifted(shown_ns, SINCE_NS, drift_ppb);
                assert!(back_ns.abs_diff(machine_ns) <= 1, "{drift_ppb}: {machine_ns}, {back_ns}");
            }
        }
    }

    #[test]
    fn unix_ns_is_the_systems_wall_clock() {
        let system_ns = || SystemTime::now().duration_since(UNIX_EPOCH).expect("past 1970");
        let before = system_ns();
        let ours = Duration::from_nanos(unix_ns());
        assert!((before..=system_ns()).contains(&ours), "{ours:?}");
    }
}
