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
//! A message belongs to the measured window by its intended time, whenever it arrives, so that a
//! window also includes its late messages. Counters go by the time of the event.

use serde::{Deserialize, Serialize};

use crate::events::{Counters, JudgedLogin, LoginTotals, Outcomes};
use crate::histogram::{Histogram, Spread, add, histogram, record};
use crate::lateness::Lateness;
use crate::payload::Header;
use crate::plan::LoginKind;
use crate::window::Window;

/// The figures of one thread in one interval.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// By cell; [`Sample::counters`] adds them up.
    pub(crate) cells: Vec<CellSample>,
    pub(crate) service: Spread,
    pub(crate) send_delay: Spread,
    pub(crate) ack: Spread,
    pub(crate) ack_failed: Spread,
    pub(crate) connect: Outcomes,
    pub(crate) subscribe: Outcomes,
    /// `None` without any.
    pub(crate) logins: Option<Box<LoginTotals>>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The figures of one cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CellSample {
    pub(crate) counters: Counters,
    pub(crate) e2e: Spread,
    /// Clients connected at the end of the interval.
    pub(crate) connected: u64,
}

impl Sample {
    pub(crate) fn new(cells: usize) -> Self {
        Self { cells: vec![CellSample::default(); cells], ..Self::default() }
    }

    /// Sum over all cells.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for cell in &self.cells {
            sum.add(&cell.counters);
        }
        sum
    }

    /// End-to-end latency of all cells.
    pub(crate) fn e2e(&self) -> Histogram {
        let mut sum = histogram();
        for cell in &self.cells {
            add(&mut sum, &cell.e2e.0);
        }
        sum
    }

    /// Clients connected at the end of the interval.
    pub(crate) fn connected(&self) -> u64 {
        self.cells.iter().map(|cell| cell.connected).sum()
    }

    /// Adds the sample of another thread or of a later interval.
    pub(crate) fn add(&mut self, other: &Self) {
        self.add_latencies(other);
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.counters.add(&theirs.counters);
            mine.connected += theirs.connected;
        }
        for (mine, theirs) in
            [(&mut self.connect, &other.connect), (&mut self.subscribe, &other.subscribe)]
        {
            mine.ok += theirs.ok;
            mine.failed += theirs.failed;
            add(&mut mine.ok_us, &theirs.ok_us);
            add(&mut mine.failed_us, &theirs.failed_us);
        }
        if let Some(logins) = &other.logins {
            self.logins.get_or_insert_default().ended.add(&logins.ended);
        }
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }

    /// Adds the latencies, which go by intended time.
    pub(crate) fn add_latencies(&mut self, other: &Self) {
        if self.cells.len() < other.cells.len() {
            self.cells.resize_with(other.cells.len(), CellSample::default);
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            add(&mut mine.e2e.0, &theirs.e2e.0);
        }
        for (mine, theirs) in [
            (&mut self.service, &other.service),
            (&mut self.send_delay, &other.send_delay),
            (&mut self.ack, &other.ack),
            (&mut self.ack_failed, &other.ack_failed),
        ] {
            add(&mut mine.0, &theirs.0);
        }
        if let Some(logins) = &other.logins {
            self.logins.get_or_insert_default().add_due(logins);
        }
    }
}

impl Outcomes {
    /// Records the end of an attempt.
    pub(crate) fn note(&mut self, ok: bool, took_ns: u64) {
        let (count, histogram) = match ok {
            true => (&mut self.ok, &mut self.ok_us),
            false => (&mut self.failed, &mut self.failed_us),
        };
        *count += 1;
        record(histogram, took_ns);
    }
}

/// The messages that histograms include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All messages: warm-up, for live display only.
    All,
    /// Messages intended for the window.
    Window(Window),
    /// No messages.
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

/// Records the figures of one thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) sample: Sample,
    scope: Scope,
    overrun_after_ns: u64,
}

impl Recorder {
    /// A recorder for a plan with this many cells.
    pub(crate) fn new(overrun_after_ns: u64, cells: usize) -> Self {
        Self { sample: Sample::new(cells), scope: Scope::Nothing, overrun_after_ns }
    }

    pub(crate) const fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Counters of a cell.
    #[inline]
    pub(crate) fn cell(&mut self, cell: u16) -> &mut Counters {
        &mut self.sample.cells[usize::from(cell)].counters
    }

    /// A message was written.
    #[inline]
    pub(crate) fn sent(&mut self, cell: u16, intended_ns: u64, now_ns: u64) {
        let lateness = Lateness::of_send(intended_ns, now_ns);
        let overrun = u64::from(lateness.is_overrun(self.overrun_after_ns));
        let counters = self.cell(cell);
        counters.sent += 1;
        counters.overrun += overrun;
        if self.scope.takes(intended_ns) {
            record(&mut self.sample.send_delay.0, lateness.as_ns());
        }
    }

    /// A message arrived for the first time.
    #[inline]
    pub(crate) fn received(&mut self, cell: u16, header: &Header, now_ns: u64) {
        let cell = &mut self.sample.cells[usize::from(cell)];
        cell.counters.received += 1;
        // The verifier counts a receipt before the intended time as negative.
        if self.scope.takes(header.intended_ns)
            && let Some(e2e_ns) = now_ns.checked_sub(header.intended_ns)
        {
            record(&mut cell.e2e.0, e2e_ns);
            // The header has the send time in whole microseconds, rounded down, so this is at most
            // 1 us too long and never negative.
            record(&mut self.sample.service.0, now_ns.saturating_sub(header.sent_ns()));
        }
    }

    /// A message received its last acknowledgement.
    #[inline]
    pub(crate) fn acked(&mut self, cell: u16, intended_ns: u64, sent_ns: u64, now_ns: u64) {
        self.cell(cell).acked += 1;
        if self.scope.takes(intended_ns) {
            record(&mut self.sample.ack.0, now_ns.saturating_sub(sent_ns));
        }
    }

    /// A message was refused, or its connection ended before it was acknowledged.
    pub(crate) fn not_acked(&mut self, intended_ns: u64, sent_ns: u64, now_ns: u64) {
        if self.scope.takes(intended_ns) {
            record(&mut self.sample.ack_failed.0, now_ns.saturating_sub(sent_ns));
        }
    }

    /// A login that was due at `intended_ns`, and possible from `possible_ns` on, began.
    pub(crate) fn login_began(&mut self, intended_ns: u64, possible_ns: u64, now_ns: u64) {
        if self.scope.takes(intended_ns) {
            let lateness = Lateness::of_send(possible_ns, now_ns);
            record(&mut self.sample.send_delay.0, lateness.as_ns());
        }
    }

    /// A login ended: accepted, refused, or failed.
    pub(crate) fn login_ended(&mut self, login: JudgedLogin, intended_ns: u64, now_ns: u64) {
        let is_due = self.scope.takes(intended_ns);
        let logins = self.sample.logins.get_or_insert_default();
        logins.ended.note(login.why.as_ref());
        if is_due {
            logins.note(login, now_ns.saturating_sub(intended_ns));
        }
    }

    /// A login had not ended, or not begun, when the drain was over.
    pub(crate) fn login_unfinished(&mut self, kind: LoginKind, intended_ns: u64) {
        if self.scope.takes(intended_ns) {
            self.sample.logins.get_or_insert_default().of_mut(kind).unfinished += 1;
        }
    }

    /// Ends the interval and returns its figures.
    pub(crate) fn rotate(&mut self) -> Sample {
        let cells = self.sample.cells.len();
        std::mem::replace(&mut self.sample, Sample::new(cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::StreamIndex;

    const WINDOW: Window = Window { start_ns: 1_000_000_000, end_ns: 2_000_000_000 };

    fn header(intended_ns: u64, late_us: u32) -> Header {
        let stream = StreamIndex::default();
        Header { run: 0, stream, seq: 0, probe: false, intended_ns, late_us }
    }

    #[test]
    fn late_messages_count_in_the_window_of_their_intended_time() {
        let mut recorder = Recorder::new(1_000_000, 1);
        recorder.set_scope(Scope::Window(WINDOW));
        recorder.received(0, &header(999_999_999, 0), 1_500_000_000);
        recorder.received(0, &header(1_999_999_999, 0), 9_999_999_999);
        recorder.received(0, &header(2_000_000_000, 0), 9_999_999_999);
        let sample = recorder.rotate();
        assert_eq!(sample.counters().received, 3);
        assert_eq!(sample.e2e().len(), 1);
        assert!(sample.e2e().equivalent(sample.e2e().max(), 8_000_000));
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let mut recorder = Recorder::new(1_000_000, 1);
        recorder.set_scope(Scope::All);
        // Written 700 us late, received 300 us after that.
        recorder.sent(0, 1_000_000, 1_700_000);
        recorder.received(0, &header(1_000_000, 700), 2_000_000);
        recorder.acked(0, 1_000_000, 1_700_000, 1_900_000);
        recorder.sent(0, 1_000_000, 2_000_001);
        let sample = recorder.rotate();
        assert_eq!(sample.e2e().max(), 1_000);
        assert_eq!(sample.service.0.max(), 300);
        assert_eq!((sample.send_delay.0.min(), sample.send_delay.0.max()), (700, 1_000));
        assert_eq!(sample.ack.0.max(), 200);
        assert_eq!((sample.counters().sent, sample.counters().overrun), (2, 1));
        assert_eq!(recorder.rotate().counters(), Counters::default());
    }

    #[test]
    fn samples_add_up() {
        let mut sum = Sample::default();
        for late_us in [1, 100_000_000] {
            let mut recorder = Recorder::new(0, 1);
            recorder.set_scope(Scope::All);
            recorder.sent(0, 0, late_us * 1_000);
            sum.add(&recorder.rotate());
        }
        assert_eq!((sum.counters().sent, sum.send_delay.0.len()), (2, 2));
        assert!(sum.send_delay.0.equivalent(sum.send_delay.0.max(), 100_000_000));
    }

    /// A broker stalls for 200 ms in every 5 s, at 1,000 messages per second: 4 % of the messages
    /// wait, evenly spread over 0 to 200 ms. A generator that stops sending meanwhile would see one
    /// slow message (coordinated omission); by intended time all of them are slow.
    #[test]
    fn a_stall_shows_in_full() {
        use crate::plan::{CatchUp, Pace, PhasePolicy, Rate, Scale};
        use crate::schedule::{Place, Schedule};

        const MS: u64 = 1_000_000;
        let answered_ns = |sent_ns: u64| match sent_ns % (5_000 * MS) {
            within if within < 200 * MS => sent_ns - within + 200 * MS,
            _ => sent_ns,
        };
        let pace = Pace::Open {
            rate: Rate::every_ns(MS),
            phase: PhasePolicy::Aligned,
            catch_up: CatchUp::CatchUp,
        };
        let place = Place { ordinal: 0, siblings: 1, seed: 0 };
        // Not bound: every message is sent on time. Bound: one message at a time, a window of 1.
        for bound in [false, true] {
            let mut schedule = Schedule::new(0, &pace, Scale::ONE, place, true).expect("is open");
            let mut recorder = Recorder::new(MS, 1);
            recorder.set_scope(Scope::All);
            let mut free_ns = 0;
            while schedule.next_ns() < 50_000 * MS {
                let now_ns =
                    if bound { schedule.next_ns().max(free_ns) } else { schedule.next_ns() };
                let due = schedule.take(now_ns, CatchUp::CatchUp).expect("is due");
                recorder.sent(0, due.intended_ns, now_ns);
                free_ns = answered_ns(now_ns);
                let late_us = ((now_ns - due.intended_ns) / 1_000) as u32;
                recorder.received(0, &header(due.intended_ns, late_us), free_ns);
            }
            let e2e = recorder.rotate().e2e();
            assert_eq!(e2e.len(), 50_000);
            let about = |quantile, expected_us: u64| {
                let value_us = e2e.value_at_quantile(quantile);
                assert!(value_us.abs_diff(expected_us) <= 2_000, "{quantile}: {value_us} us");
            };
            about(0.5, 0);
            about(0.97, 50_000);
            about(0.99, 150_000);
            assert!(e2e.max() >= 199_000 && e2e.max() <= 201_000);
        }
    }
}
