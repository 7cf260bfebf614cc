//! The figures of each process of a divided run.

use std::ops::Range;

use crate::events::{PhaseKind, ShareTotals, ThreadUsage};
use crate::histogram;
use crate::mail::Interval;

/// The threads and the number of clients of each process; none of a run that is not divided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares(Vec<(Range<usize>, u64)>);

impl Shares {
    pub(crate) fn new(parts: Vec<(Range<usize>, u64)>) -> Self {
        Self(parts)
    }

    /// Sums to begin with.
    pub(super) fn none(&self) -> Vec<ShareTotals> {
        self.0.iter().map(|(threads, clients)| ShareTotals::new(*clients, threads.len())).collect()
    }

    /// Position, threads and clients of the process that runs a thread.
    pub(super) fn of(&self, thread: usize) -> Option<(usize, Range<usize>, u64)> {
        let share = self.0.iter().position(|(threads, _)| threads.contains(&thread))?;
        self.0.get(share).map(|(threads, clients)| (share, threads.clone(), *clients))
    }

    /// Adds an interval of a thread to the sum of its process.
    pub(super) fn add(&self, sums: &mut [ShareTotals], thread: usize, interval: &Interval) {
        let Some((share, threads, _)) = self.of(thread) else { return };
        let Some(sum) = sums.get_mut(share) else { return };
        histogram::add(&mut sum.send_delay, &interval.sample.send_delay.0);
        sum.counters.add(&interval.sample.counters());
        sum.bytes_in += interval.sample.bytes_in;
        sum.bytes_out += interval.sample.bytes_out;
        if let Some(usage) = sum.threads.get_mut(thread - threads.start) {
            usage.add(&interval.usage);
        }
    }

    /// The same for a measured window: drain and resume add lateness only, which goes by intended
    /// time.
    pub(super) fn add_to_window(
        &self,
        sums: &mut [ShareTotals],
        thread: usize,
        interval: &Interval,
    ) {
        match interval.kind {
            PhaseKind::Measure => self.add(sums, thread, interval),
            PhaseKind::Resume | PhaseKind::Drain => {
                let share = self.of(thread).and_then(|(share, ..)| sums.get_mut(share));
                if let Some(sum) = share {
                    histogram::add(&mut sum.send_delay, &interval.sample.send_delay.0);
                }
            }
            _ => {}
        }
    }
}

impl ThreadUsage {
    /// Adds a later interval of the same thread.
    pub(super) fn add(&mut self, later: &Self) {
        self.cpu = later.cpu;
        self.wall_ns += later.wall_ns;
        self.cpu_ns += later.cpu_ns;
        self.spin_ns += later.spin_ns;
        self.rests += later.rests;
    }
}
