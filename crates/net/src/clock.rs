//! The clock that all loops share.

use std::sync::atomic::{AtomicI64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// What this process adds to its machine's clock.
static SHIFT_NS: AtomicI64 = AtomicI64::new(0);

/// Nanoseconds of `CLOCK_MONOTONIC`: comparable between the threads and the processes of a machine;
/// [shifted](shift), of another machine's.
///
/// Handlers take the time of their turn from [`Net::now_ns`](crate::Net::now_ns), which costs
/// nothing; this function reads the clock.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64;
    now_ns.wrapping_add_signed(SHIFT_NS.load(Ordering::Relaxed))
}

/// From now on the clock of this process shows that much more than its machine's: a process that
/// works for another machine follows that one's clock. No loop may be running, since their timers
/// would not follow.
pub fn shift(by_ns: i64) {
    SHIFT_NS.store(by_ns, Ordering::Relaxed);
}

/// A time of [`now_ns`] on the machine's own clock, for its timers.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn on_machine_ns(at_ns: u64) -> u64 {
    at_ns.saturating_add_signed(SHIFT_NS.load(Ordering::Relaxed).saturating_neg())
}

/// Nanoseconds of CPU time that the calling thread has used. Costs a system call.
pub(crate) fn thread_cpu_ns() -> u64 {
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

    #[test]
    fn unix_ns_is_the_systems_wall_clock() {
        let system_ns = || SystemTime::now().duration_since(UNIX_EPOCH).expect("past 1970");
        let before = system_ns();
        let ours = Duration::from_nanos(unix_ns());
        assert!((before..=system_ns()).contains(&ours), "{ours:?}");
    }
}
