//! Puts the intervals of all threads together, and sums up a measured window.

use std::collections::BTreeMap;

use crate::events::{Counters, IntervalSnapshot, PhaseKind, ThreadUsage, Totals};
use crate::mail::Interval;
use crate::recorder::Sample;
use crate::verifier::Books;

/// Which interval: position of the phase, number within it.
type Key = (usize, u64);

/// Intervals that wait for threads, and the sums of the window.
#[derive(Debug)]
pub(super) struct Intervals {
    pending: BTreeMap<Key, Merged>,
    /// The last interval that each thread reported.
    heads: Vec<Option<Key>>,
    window: WindowSum,
}

#[derive(Debug)]
struct Merged {
    kind: PhaseKind,
    start_ns: u64,
    end_ns: u64,
    connected: u64,
    sample: Sample,
    threads: Vec<ThreadUsage>,
}

/// What belongs to the measured window.
#[derive(Debug, Default)]
struct WindowSum {
    /// Histograms of window and drain, by intended time all of the window.
    sample: Sample,
    /// Events of the window alone.
    counters: Counters,
    /// Dropped because the drain ended.
    dropped_late: u64,
    threads: Vec<ThreadUsage>,
}

impl Intervals {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            heads: vec![None; threads],
            window: WindowSum::new(threads),
        }
    }

    /// Takes the interval of a thread; returns what is now complete.
    pub(super) fn add(&mut self, thread: usize, interval: &Interval) -> Vec<IntervalSnapshot> {
        self.window.add(thread, interval);
        let key = (interval.index, interval.number);
        let threads = self.heads.len();
        let merged = self.pending.entry(key).or_insert_with(|| Merged {
            kind: interval.kind,
            start_ns: interval.start_ns,
            end_ns: interval.start_ns,
            connected: 0,
            sample: Sample::default(),
            threads: vec![ThreadUsage::default(); threads],
        });
        merged.start_ns = merged.start_ns.min(interval.start_ns);
        merged.end_ns = merged.end_ns.max(interval.start_ns + interval.len_ns);
        merged.connected += interval.connected;
        merged.sample.add(&interval.sample);
        merged.threads[thread] = interval.usage;
        self.heads[thread] = Some(key);
        let slowest = self.heads.iter().min().copied().flatten();
        let mut complete = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && slowest.is_some_and(|slowest| *entry.key() <= slowest)
        {
            let (key, merged) = entry.remove_entry();
            complete.push(merged.into_snapshot(key));
        }
        complete
    }

    /// Returns what is left, complete or not; phases begin anew.
    pub(super) fn flush(&mut self) -> Vec<IntervalSnapshot> {
        self.heads.fill(None);
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().map(|(key, merged)| merged.into_snapshot(key)).collect()
    }

    /// The totals of the window that began at `start_ns`, whose books are closed.
    pub(super) fn totals(
        &mut self,
        (phase_index, start_ns, len_ns): (usize, u64, u64),
        books: Books,
        drained: bool,
    ) -> Totals {
        let fresh = WindowSum::new(self.heads.len());
        let WindowSum { sample, mut counters, dropped_late, threads } =
            std::mem::replace(&mut self.window, fresh);
        counters.dropped += dropped_late;
        Totals {
            phase_index,
            start_ns,
            len_ns,
            counters,
            delivery: books.window,
            outside: books.outside,
            violations: books.violations,
            gaps: books.gaps,
            gaps_cut: books.gaps_cut,
            e2e: sample.e2e,
            service: sample.service,
            send_delay: sample.send_delay,
            ack: sample.ack,
            received_min_max: books.received_min_max,
            drained,
            threads,
        }
    }
}

impl WindowSum {
    fn new(threads: usize) -> Self {
        Self { threads: vec![ThreadUsage::default(); threads], ..Self::default() }
    }

    fn add(&mut self, thread: usize, interval: &Interval) {
        match interval.kind {
            PhaseKind::Measure => {
                self.counters.add(&interval.sample.counters);
                let usage = &mut self.threads[thread];
                usage.cpu = interval.usage.cpu;
                usage.wall_ns += interval.usage.wall_ns;
                usage.cpu_ns += interval.usage.cpu_ns;
                usage.idle_spin_ns += interval.usage.idle_spin_ns;
            }
            PhaseKind::Drain => self.dropped_late += interval.sample.counters.dropped,
            _ => return,
        }
        self.sample.add(&interval.sample);
    }
}

impl Merged {
    fn into_snapshot(self, (phase_index, _): Key) -> IntervalSnapshot {
        IntervalSnapshot {
            phase: self.kind,
            phase_index,
            start_ns: self.start_ns,
            len_ns: self.end_ns - self.start_ns,
            connected: self.connected,
            counters: self.sample.counters,
            e2e: self.sample.e2e,
            service: self.sample.service,
            send_delay: self.sample.send_delay,
            ack: self.sample.ack,
            threads: self.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(index: usize, number: u64, sent: u64) -> Interval {
        let mut sample = Sample::default();
        sample.counters.sent = sent;
        Interval {
            index,
            kind: PhaseKind::Measure,
            number,
            start_ns: 1_000 * number,
            len_ns: 1_000,
            connected: 1,
            sample,
            usage: ThreadUsage { wall_ns: 1_000, ..ThreadUsage::default() },
        }
    }

    #[test]
    fn an_interval_is_complete_when_no_thread_is_behind() {
        let mut intervals = Intervals::new(2);
        assert!(intervals.add(0, &interval(0, 0, 1)).is_empty());
        assert!(intervals.add(0, &interval(0, 1, 2)).is_empty());
        let complete = intervals.add(1, &interval(0, 0, 10));
        assert_eq!(complete.len(), 1);
        assert_eq!((complete[0].counters.sent, complete[0].connected), (11, 2));
        // Thread 1 went over to the next phase without a second interval in this one.
        let complete = intervals.add(1, &interval(1, 0, 20));
        assert_eq!(complete.len(), 1);
        assert_eq!((complete[0].phase_index, complete[0].counters.sent), (0, 2));
        let left = intervals.flush();
        assert_eq!((left.len(), left[0].counters.sent), (1, 20));
    }

    #[test]
    fn totals_sum_up_the_window() {
        let mut intervals = Intervals::new(2);
        for (thread, sent) in [(0, 3), (1, 4), (0, 5)] {
            intervals.add(thread, &interval(2, 0, sent));
        }
        let mut late = interval(3, 0, 100);
        late.kind = PhaseKind::Drain;
        late.sample.counters.dropped = 7;
        intervals.add(0, &late);
        let totals = intervals.totals((2, 0, 1_000), Books::default(), true);
        assert_eq!((totals.counters.sent, totals.counters.dropped), (12, 7));
        assert_eq!((totals.threads[0].wall_ns, totals.threads[1].wall_ns), (2_000, 1_000));
    }
}
