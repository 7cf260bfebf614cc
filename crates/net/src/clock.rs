//! The clock that all loops share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: comparable between the threads and the processes of a machine.
///
/// Handlers take the time of their turn from [`Net::now_ns`](crate::Net::now_ns), which costs
/// nothing; this function is for those who need the time at this very moment.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since 1970 by the system's wall clock: for instants that outlive the process. It may
/// jump, so nothing is measured by it.
#[must_use]
pub fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    // A clock before 1970 or beyond 2500 is wrong; any value is as good then.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Makes the calling thread's sleeps end when they shall: by default the system lets ordinary
/// threads sleep up to 50 us longer, to wake several at once.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn sleep_exactly() {
    // Where it is not allowed, sleeps are a little longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// The system's sleeps are as they are.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn sleep_exactly() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let first = now_ns();
        assert!(first > 0);
        assert!(now_ns() >= first);
    }

    #[test]
    fn the_wall_clock_is_past_the_making_of_this() {
        assert!(unix_ns() > 1_700_000_000 * 1_000_000_000);
    }
}
