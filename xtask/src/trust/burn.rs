//! A noisy neighbour: a program that burns cores in bursts, and ends by itself.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::floor::pin_self_to;

const SECONDS_MAX: u64 = 3_600;

#[derive(Args, Clone, Debug)]
pub(crate) struct BurnOptions {
    /// Cores to burn
    #[arg(long, value_delimiter = ',', required = true)]
    cpus: Vec<usize>,
    /// Seconds after which it ends
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Of the lengths of the bursts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(options: &BurnOptions) -> Result<()> {
    if options.seconds > SECONDS_MAX {
        bail!("at most {SECONDS_MAX} seconds");
    }
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let burn = |index: usize, cpu: usize| -> Result<()> {
        pin_self_to(&[cpu])?;
        let mut bursts = Bursts(options.seed.wrapping_add(index as u64));
        while Instant::now() < end {
            let (busy, idle) = bursts.next();
            let until = (Instant::now() + busy).min(end);
            while Instant::now() < until {
                black_box((0..10_000_u64).fold(0, |sum, number| sum ^ black_box(number)));
            }
            thread::sleep(idle);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let cores = options.cpus.iter().enumerate();
        let threads: Vec<_> =
            cores.map(|(index, cpu)| scope.spawn(move || burn(index, *cpu))).collect();
        for thread in threads {
            if thread.join().is_err() {
                bail!("a burning thread has failed");
            }
        }
        Ok(())
    })
}

/// Lengths of bursts and of the quiet times between them.
struct Bursts(u64);

impl Bursts {
    fn next(&mut self) -> (Duration, Duration) {
        (Duration::from_millis(50 + self.number(450)), Duration::from_millis(50 + self.number(950)))
    }

    /// A linear congruential generator: the noise needs no better one.
    fn number(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_quiet_times_have_many_lengths_within_bounds() {
        let mut bursts = Bursts(1);
        let lengths: Vec<_> = (0..200).map(|_| bursts.next()).collect();
        let ms = Duration::from_millis;
        assert!(lengths.iter().all(|(busy, _)| (ms(50)..ms(500)).contains(busy)));
        assert!(lengths.iter().all(|(_, idle)| (ms(50)..ms(1_000)).contains(idle)));
        assert!(lengths.iter().any(|(busy, _)| *busy > ms(400)));
        assert!(lengths.iter().any(|(_, idle)| *idle < ms(200)));
    }
}
