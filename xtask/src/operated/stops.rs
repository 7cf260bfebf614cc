//! How long this machine stops a thread.
//!
//! A host stops the virtual processors of its guests. Part of that time is not told as stolen and
//! counts as CPU time of the thread that ran: a turn of the broker looks longer than it was.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

use crate::floor::pin_self_to;

/// Longest CPU time, in milliseconds, between two looks of a thread that only looks at the clocks,
/// for so long and alone on this core.
pub(super) fn stop_cpu_ms_max(lasts: Duration, cpu: usize) -> Result<f64> {
    let looker = thread::spawn(move || -> Result<f64> {
        pin_self_to(&[cpu])?;
        let begun = Instant::now();
        let (mut seen_ms, mut ms_max) = (thread_cpu_ms(), 0.0_f64);
        while begun.elapsed() < lasts {
            let now_ms = thread_cpu_ms();
            ms_max = ms_max.max(now_ms - seen_ms);
            seen_ms = now_ms;
        }
        Ok(ms_max)
    });
    looker.join().map_err(|_| anyhow!("the thread that looks at the clock panicked"))?
}

fn thread_cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stop_is_above_zero_and_within_the_look() {
        let lasts = Duration::from_millis(20);
        let begun = Instant::now();
        let ms_max = stop_cpu_ms_max(lasts, 0).expect("looks");
        let took_ms = begun.elapsed().as_secs_f64() * 1e3;
        assert!(ms_max > 0.0 && ms_max <= took_ms, "{ms_max} of {took_ms} ms");
    }
}
