//! How long this machine stops a thread.
//!
//! A host stops the virtual processors of its guests. The part of that time that it does not report
//! as stolen counts as CPU time of the thread that ran: a turn of the broker looks longer than it
//! was.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::floor::{pin_self_to, thread_cpu_ns};

/// Longest CPU time, in milliseconds, between two looks of a thread that only looks at the clocks,
/// for so long and alone on this core.
pub(super) fn stop_cpu_ms_max(lasts: Duration, cpu: usize) -> Result<f64> {
    let looker = thread::spawn(move || -> Result<f64> {
        pin_self_to(&[cpu])?;
        let begun = Instant::now();
        let (mut seen_ns, mut ns_max) = (thread_cpu_ns(), 0);
        while begun.elapsed() < lasts {
            let now_ns = thread_cpu_ns();
            ns_max = ns_max.max(now_ns - seen_ns);
            seen_ns = now_ns;
        }
        Ok(ns_max as f64 / 1e6)
    });
    looker.join().map_err(|_| anyhow!("the thread that looks at the clock panicked"))?
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
