//! Latency histograms and counters of one generator thread, cut into intervals.
//!
//! The base of latency is the *intended* time of a message:
//!
//! | histogram | from | to |
//! |---|---|---|
//! | `e2e` | intended | received |
//! | `service` | written | received |
//! | `send_delay` | intended | written |
//! | `ack` | written | PUBACK or PUBCOMP |
//!
//! A message belongs to the measured window by its intended time, whenever it arrives: a window
//! that ends while messages are late still gets them. Counters go by the time of the event.

use crate::events::{Counters, Histogram, histogram};
use crate::payload::Header;
use crate::verifier::Window;

/// What a thread recorded in one interval.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) counters: Counters,
    pub(crate) e2e: Histogram,
    pub(crate) service: Histogram,
    pub(crate) send_delay: Histogram,
    pub(crate) ack: Histogram,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            counters: Counters::default(),
            e2e: histogram(),
            service: histogram(),
            send_delay: histogram(),
            ack: histogram(),
        }
    }
}

impl Sample {
    /// Adds another thread's or interval's sample.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        for (mine, theirs) in [
            (&mut self.e2e, &other.e2e),
            (&mut self.service, &other.service),
            (&mut self.send_delay, &other.send_delay),
            (&mut self.ack, &other.ack),
        ] {
            add(mine, theirs);
        }
    }
}

/// Merges histograms without loss.
pub(crate) fn add(sum: &mut Histogram, part: &Histogram) {
    // Invariant: all our histograms grow by themselves and share their precision.
    sum.add(part).expect("histograms of the same precision add up");
}

/// Records one value, in nanoseconds.
#[inline]
pub(crate) fn record(histogram: &mut Histogram, value_ns: u64) {
    // Invariant: the histogram grows to any value.
    histogram.record(value_ns / 1_000).expect("an automatically resized histogram takes any value");
}

/// Which messages go into histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them: warm-up, only looked at while it runs.
    All,
    /// Those intended for the window.
    Window(Window),
    /// None.
    Nothing,
}

impl Scope {
    #[inline]
    const fn takes(&self, intended_ns: u64) -> bool {
        match self {
            Self::All => true,
            Self::Window(window) => window.contains(intended_ns),
            Self::Nothing => false,
        }
    }
}

/// Records what happens on one thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) sample: Sample,
    scope: Scope,
    overrun_after_ns: u64,
}

impl Recorder {
    pub(crate) fn new(overrun_after_ns: u64) -> Self {
        Self { sample: Sample::default(), scope: Scope::Nothing, overrun_after_ns }
    }

    pub(crate) const fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// A message was written.
    #[inline]
    pub(crate) fn sent(&mut self, intended_ns: u64, now_ns: u64) {
        let late_ns = now_ns.saturating_sub(intended_ns);
        self.sample.counters.sent += 1;
        self.sample.counters.overrun += u64::from(late_ns > self.overrun_after_ns);
        if self.scope.takes(intended_ns) {
            record(&mut self.sample.send_delay, late_ns);
        }
    }

    /// A message arrived for the first time.
    #[inline]
    pub(crate) fn received(&mut self, header: &Header, now_ns: u64) {
        self.sample.counters.received += 1;
        // A receipt before the intended time is counted by the verifier as negative.
        if self.scope.takes(header.intended_ns)
            && let Some(e2e_ns) = now_ns.checked_sub(header.intended_ns)
        {
            record(&mut self.sample.e2e, e2e_ns);
            // The header keeps the send time in whole microseconds, rounded down, so that this
            // is at most 1 us too long and never negative.
            record(&mut self.sample.service, now_ns.saturating_sub(header.sent_ns()));
        }
    }

    /// A message was acknowledged for good.
    #[inline]
    pub(crate) fn acked(&mut self, intended_ns: u64, sent_ns: u64, now_ns: u64) {
        self.sample.counters.acked += 1;
        if self.scope.takes(intended_ns) {
            record(&mut self.sample.ack, now_ns.saturating_sub(sent_ns));
        }
    }

    /// Ends the interval: hands out what it recorded.
    pub(crate) fn rotate(&mut self) -> Sample {
        std::mem::take(&mut self.sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { start_ns: 1_000_000_000, end_ns: 2_000_000_000 };

    fn header(intended_ns: u64, late_us: u32) -> Header {
        Header { run: 0, stream: 0, seq: 0, probe: false, intended_ns, late_us }
    }

    #[test]
    fn late_messages_count_where_they_were_intended() {
        let mut recorder = Recorder::new(1_000_000);
        recorder.set_scope(Scope::Window(WINDOW));
        recorder.received(&header(999_999_999, 0), 1_500_000_000);
        recorder.received(&header(1_999_999_999, 0), 9_999_999_999);
        recorder.received(&header(2_000_000_000, 0), 9_999_999_999);
        let sample = recorder.rotate();
        assert_eq!(sample.counters.received, 3);
        assert_eq!(sample.e2e.len(), 1);
        assert!(sample.e2e.equivalent(sample.e2e.max(), 8_000_000));
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let mut recorder = Recorder::new(1_000_000);
        recorder.set_scope(Scope::All);
        // Written 700 us late, received 300 us after that.
        recorder.sent(1_000_000, 1_700_000);
        recorder.received(&header(1_000_000, 700), 2_000_000);
        recorder.acked(1_000_000, 1_700_000, 1_900_000);
        recorder.sent(1_000_000, 2_000_001);
        let sample = recorder.rotate();
        assert_eq!(sample.e2e.max(), 1_000);
        assert_eq!(sample.service.max(), 300);
        assert_eq!((sample.send_delay.min(), sample.send_delay.max()), (700, 1_000));
        assert_eq!(sample.ack.max(), 200);
        assert_eq!((sample.counters.sent, sample.counters.overrun), (2, 1));
        assert_eq!(recorder.rotate().counters, Counters::default());
    }

    #[test]
    fn samples_add_up() {
        let mut sum = Sample::default();
        for late_us in [1, 100_000_000] {
            let mut recorder = Recorder::new(0);
            recorder.set_scope(Scope::All);
            recorder.sent(0, late_us * 1_000);
            sum.add(&recorder.rotate());
        }
        assert_eq!((sum.counters.sent, sum.send_delay.len()), (2, 2));
        assert!(sum.send_delay.equivalent(sum.send_delay.max(), 100_000_000));
    }
}
