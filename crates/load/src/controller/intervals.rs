//! Merges the intervals of all threads, and sums up a measured window.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::shares::Shares;
use crate::cells::Cells;
use crate::context::RunContext;
use crate::events::{
    ActionCounts, Counters, GroupInterval, GroupTotals, Histogram, IntervalSnapshot, PhaseKind,
    ShareTotals, SharedTotals, TargetInterval, TargetTotals, ThreadUsage, Totals,
};
use crate::histogram::{self, histogram, record};
use crate::mail::{Interval, RoundTrip};
use crate::plan::Plan;
use crate::recorder::Sample;
use crate::verifier::{Books, MemberCount};

/// Identifies an interval: position of the phase, number within it.
type Key = (usize, u64);

/// The head of a thread that reports no more.
const NEVER_LATE: Key = (usize::MAX, u64::MAX);

/// Bound of pending round trips: those of ten brokers in a long phase without intervals.
const ROUND_TRIPS_MAX: usize = 100_000;

/// Incomplete intervals, and the sums of the window.
#[derive(Debug)]
pub(super) struct Intervals {
    context: Arc<RunContext>,
    pending: BTreeMap<Key, Merged>,
    /// The last interval that each thread reported.
    heads: Vec<Option<Key>>,
    window: WindowSum,
    /// Round trips that belong to no interval yet.
    round_trips: Vec<RoundTrip>,
    /// The processes that run the threads.
    shares: Shares,
}

#[derive(Debug)]
struct Merged {
    kind: PhaseKind,
    start_ns: u64,
    end_ns: u64,
    sample: Sample,
    threads: Vec<ThreadUsage>,
    shares: Vec<ShareTotals>,
    actions: BTreeMap<usize, ActionCounts>,
}

/// A measured window: position of its phase, start and length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) index: usize,
    pub(super) start_ns: u64,
    pub(super) len_ns: u64,
}

/// What belongs to the measured window.
#[derive(Debug)]
struct WindowSum {
    /// Counters of the window; latencies of window and drain, whose intended times all lie in the
    /// window.
    sample: Sample,
    /// Clients connected at the end of each thread's last interval.
    connected: Vec<u64>,
    /// Messages dropped when the drain ended, by cell.
    dropped_late: Vec<u64>,
    threads: Vec<ThreadUsage>,
    /// By broker.
    rtt: Vec<Histogram>,
    shares: Vec<ShareTotals>,
}

impl Intervals {
    pub(super) fn new(context: Arc<RunContext>, shares: Shares) -> Self {
        let threads = context.plan.threads;
        Self {
            pending: BTreeMap::new(),
            heads: vec![None; threads],
            window: WindowSum::new(&context, &shares),
            round_trips: Vec::new(),
            context,
            shares,
        }
    }

    /// Adds the interval of a thread; returns the intervals that are now complete.
    pub(super) fn add(&mut self, thread: usize, interval: &Interval) -> Vec<IntervalSnapshot> {
        self.window.add(thread, interval);
        self.shares.add_to_window(&mut self.window.shares, thread, interval);
        let key = (interval.index, interval.number);
        let (threads, cells) = (self.heads.len(), self.context.cells.len());
        let merged = self.pending.entry(key).or_insert_with(|| Merged {
            kind: interval.kind,
            start_ns: interval.start_ns,
            end_ns: interval.start_ns,
            sample: Sample::new(cells),
            threads: vec![ThreadUsage::default(); threads],
            shares: self.shares.none(),
            actions: BTreeMap::new(),
        });
        merged.start_ns = merged.start_ns.min(interval.start_ns);
        merged.end_ns = merged.end_ns.max(interval.start_ns + interval.len_ns);
        merged.sample.add(&interval.sample);
        merged.threads[thread] = interval.usage;
        self.shares.add(&mut merged.shares, thread, interval);
        for (action, counts) in &interval.actions {
            merged.actions.entry(*action).or_default().add(counts);
        }
        self.heads[thread] = Some(key);
        self.complete()
    }

    /// These threads report no more; returns the intervals that are now complete.
    pub(super) fn lose(&mut self, threads: Range<usize>) -> Vec<IntervalSnapshot> {
        let lost = self.heads.iter_mut().zip(&mut self.window.connected);
        for (head, connected) in lost.take(threads.end).skip(threads.start) {
            (*head, *connected) = (Some(NEVER_LATE), 0);
        }
        self.complete()
    }

    fn complete(&mut self) -> Vec<IntervalSnapshot> {
        let slowest = self.heads.iter().min().copied().flatten();
        let mut complete = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && slowest.is_some_and(|slowest| *entry.key() <= slowest)
        {
            let (key, merged) = entry.remove_entry();
            complete.push(self.finish(key, merged));
        }
        complete
    }

    /// Adds a round trip.
    pub(super) fn add_round_trip(&mut self, round_trip: RoundTrip) {
        if self.round_trips.len() < ROUND_TRIPS_MAX {
            self.round_trips.push(round_trip);
        }
    }

    /// Returns all remaining intervals, complete or not, and starts afresh.
    pub(super) fn flush(&mut self) -> Vec<IntervalSnapshot> {
        for head in self.heads.iter_mut().filter(|head| **head != Some(NEVER_LATE)) {
            *head = None;
        }
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().map(|(key, merged)| self.finish(key, merged)).collect()
    }

    /// The interval as reported.
    fn finish(&mut self, (phase_index, _): Key, merged: Merged) -> IntervalSnapshot {
        let Merged { kind, start_ns, end_ns, sample, threads, shares, actions } = merged;
        let rtt = self.rtt_until(end_ns, kind == PhaseKind::Measure);
        let RunContext { plan, cells, .. } = &*self.context;
        let logs_in = plan.groups.iter().any(|group| group.login.is_some());
        let mut groups = vec![GroupInterval::default(); plan.groups.len()];
        let mut targets: Vec<TargetInterval> = cells
            .targets
            .iter()
            .zip(&rtt)
            .map(|(name, rtt)| TargetInterval {
                name: name.clone(),
                connected: 0,
                counters: Counters::default(),
                rtt: rtt.clone(),
            })
            .collect();
        for (info, cell) in cells.infos.iter().zip(&sample.cells) {
            let (group, target) = (&mut groups[info.group], &mut targets[info.target]);
            group.counters.add(&cell.counters);
            histogram::add(&mut group.e2e, &cell.e2e.0);
            group.connected += cell.connected;
            target.counters.add(&cell.counters);
            target.connected += cell.connected;
        }
        IntervalSnapshot {
            phase: kind,
            phase_index,
            start_ns,
            len_ns: end_ns - start_ns,
            connected: sample.connected(),
            counters: sample.counters(),
            e2e: sample.e2e(),
            service: sample.service.0,
            send_delay: sample.send_delay.0,
            ack: sample.ack.0,
            ack_failed: sample.ack_failed.0,
            connect: sample.connect,
            subscribe: sample.subscribe,
            logins: logs_in.then(|| sample.logins.unwrap_or_default()),
            bytes_in: sample.bytes_in,
            bytes_out: sample.bytes_out,
            rtt: sum(&rtt),
            groups,
            targets,
            threads,
            shares,
            actions: actions.into_iter().collect(),
        }
    }

    /// Takes the round trips before `end_ns`, by broker. Those of a measured interval also count
    /// for the window.
    fn rtt_until(&mut self, end_ns: u64, measured: bool) -> Vec<Histogram> {
        let mut by_target = vec![histogram(); self.context.cells.targets.len()];
        self.round_trips.retain(|&RoundTrip { target, at_ns, took_ns }| {
            let here = at_ns < end_ns;
            if here {
                record(&mut by_target[target], took_ns);
            }
            !here
        });
        if measured {
            for (window, rtt) in self.window.rtt.iter_mut().zip(&by_target) {
                histogram::add(window, rtt);
            }
        }
        by_target
    }

    /// The totals of a window whose books are closed.
    pub(super) fn totals(&mut self, measured: Measured, books: Books, drained: bool) -> Totals {
        let fresh = WindowSum::new(&self.context, &self.shares);
        let WindowSum { mut sample, connected, dropped_late, threads, rtt, shares } =
            std::mem::replace(&mut self.window, fresh);
        for (cell, dropped) in sample.cells.iter_mut().zip(dropped_late) {
            cell.counters.dropped += dropped;
        }
        let RunContext { plan, cells, .. } = &*self.context;
        Totals {
            phase_index: measured.index,
            start_ns: measured.start_ns,
            len_ns: measured.len_ns,
            counters: sample.counters(),
            groups: group_totals(plan, cells, &sample, &books),
            targets: target_totals(cells, &sample, &books, &rtt),
            shared: shared_totals(plan, &books.members),
            delivery: books.window,
            outside: books.outside,
            violations: books.violations,
            acknowledged_lost: books.acknowledged_lost,
            acknowledged_pending: books.acknowledged_undelivered,
            gaps: books.gaps,
            gaps_cut: books.gaps_cut,
            e2e: sample.e2e(),
            service: sample.service.0,
            send_delay: sample.send_delay.0,
            ack: sample.ack.0,
            ack_failed: sample.ack_failed.0,
            connect: sample.connect,
            subscribe: sample.subscribe,
            logins: sample.logins,
            connected: connected.iter().sum(),
            bytes_in: sample.bytes_in,
            bytes_out: sample.bytes_out,
            rtt: sum(&rtt),
            received_min_max: books.received_min_max,
            actions: books.actions,
            drained,
            threads,
            shares,
        }
    }
}

fn sum(parts: &[Histogram]) -> Histogram {
    let mut sum = histogram();
    parts.iter().for_each(|part| histogram::add(&mut sum, part));
    sum
}

fn group_totals(plan: &Plan, cells: &Cells, sample: &Sample, books: &Books) -> Vec<GroupTotals> {
    let mut groups: Vec<GroupTotals> = plan
        .groups
        .iter()
        .map(|group| GroupTotals {
            name: group.name.clone(),
            targets: Vec::new(),
            clients: 0,
            counters: Counters::default(),
            delivery: Default::default(),
            e2e: histogram(),
        })
        .collect();
    for (info, (cell, delivery)) in cells.infos.iter().zip(sample.cells.iter().zip(&books.cells)) {
        let group = &mut groups[info.group];
        group.targets.push(cells.targets[info.target].clone());
        group.clients += info.clients;
        group.counters.add(&cell.counters);
        group.delivery.add(delivery);
        histogram::add(&mut group.e2e, &cell.e2e.0);
    }
    groups
}

fn target_totals(
    cells: &Cells,
    sample: &Sample,
    books: &Books,
    rtt: &[Histogram],
) -> Vec<TargetTotals> {
    let mut targets: Vec<TargetTotals> = cells
        .targets
        .iter()
        .zip(rtt)
        .map(|(name, rtt)| TargetTotals {
            name: name.clone(),
            clients: 0,
            counters: Counters::default(),
            delivery: Default::default(),
            e2e: histogram(),
            rtt: rtt.clone(),
        })
        .collect();
    for (info, (cell, delivery)) in cells.infos.iter().zip(sample.cells.iter().zip(&books.cells)) {
        let target = &mut targets[info.target];
        target.clients += info.clients;
        target.counters.add(&cell.counters);
        target.delivery.add(delivery);
        histogram::add(&mut target.e2e, &cell.e2e.0);
    }
    targets
}

fn shared_totals(plan: &Plan, members: &[MemberCount]) -> Vec<SharedTotals> {
    let mut shared: Vec<SharedTotals> = plan
        .shared_groups()
        .into_iter()
        .map(|group| SharedTotals {
            name: group.name.to_owned(),
            filter: group.filter.to_owned(),
            members: Vec::new(),
        })
        .collect();
    for &MemberCount { group, client, count } in members {
        shared[group as usize].members.push((client, count));
    }
    shared.iter_mut().for_each(|group| group.members.sort_unstable());
    shared
}

impl WindowSum {
    fn new(context: &RunContext, shares: &Shares) -> Self {
        let (threads, cells) = (context.plan.threads, &context.cells);
        Self {
            sample: Sample::new(cells.len()),
            connected: vec![0; threads],
            dropped_late: vec![0; cells.len()],
            threads: vec![ThreadUsage::default(); threads],
            rtt: vec![histogram(); cells.targets.len()],
            shares: shares.none(),
        }
    }

    fn add(&mut self, thread: usize, interval: &Interval) {
        match interval.kind {
            PhaseKind::Measure => {
                self.sample.add(&interval.sample);
                self.connected[thread] = interval.sample.connected();
                self.threads[thread].add(&interval.usage);
            }
            PhaseKind::Resume | PhaseKind::Drain => {
                self.sample.add_latencies(&interval.sample);
                for (dropped, cell) in self.dropped_late.iter_mut().zip(&interval.sample.cells) {
                    *dropped += cell.counters.dropped;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::tests::{plan_of, publisher};

    /// Two groups at one broker, on two threads.
    fn intervals() -> Intervals {
        let clients = (0..2).map(|_| publisher("t", QoS::AtMostOnce)).collect();
        let plan = Plan { threads: 2, ..plan_of(clients) };
        Intervals::new(Arc::new(RunContext::new(plan)), Shares::new(vec![(0..1, 3), (1..2, 4)]))
    }

    fn interval(index: usize, number: u64, sent: u64) -> Interval {
        let mut sample = Sample::new(2);
        sample.cells[1].counters.sent = sent;
        sample.cells[1].connected = 1;
        Interval {
            index,
            kind: PhaseKind::Measure,
            number,
            start_ns: 1_000 * number,
            len_ns: 1_000,
            sample,
            usage: ThreadUsage { wall_ns: 1_000, ..ThreadUsage::default() },
            actions: vec![(3, ActionCounts { clients: sent, ..ActionCounts::default() })],
        }
    }

    #[test]
    fn an_interval_is_complete_when_all_threads_have_reported_it() {
        let mut intervals = intervals();
        assert!(intervals.add(0, &interval(0, 0, 1)).is_empty());
        assert!(intervals.add(0, &interval(0, 1, 2)).is_empty());
        let complete = intervals.add(1, &interval(0, 0, 10));
        assert_eq!(complete.len(), 1);
        assert_eq!((complete[0].counters.sent, complete[0].connected), (11, 2));
        let clients = ActionCounts { clients: 11, ..ActionCounts::default() };
        assert_eq!(complete[0].actions, [(3, clients)]);
        // Thread 1 entered the next phase without a second interval in this one.
        let complete = intervals.add(1, &interval(1, 0, 20));
        assert_eq!(complete.len(), 1);
        assert_eq!((complete[0].phase_index, complete[0].counters.sent), (0, 2));
        let left = intervals.flush();
        assert_eq!((left.len(), left[0].counters.sent), (1, 20));
    }

    #[test]
    fn a_lost_thread_holds_no_interval_back() {
        let mut intervals = intervals();
        assert!(intervals.add(0, &interval(0, 0, 1)).is_empty());
        let complete = intervals.lose(1..2);
        assert_eq!((complete.len(), complete[0].counters.sent), (1, 1));
        let sent = |shares: &[ShareTotals]| -> Vec<u64> {
            shares.iter().map(|share| share.counters.sent).collect()
        };
        assert_eq!(sent(&complete[0].shares), [1, 0]);
        intervals.flush();
        assert_eq!(intervals.add(0, &interval(1, 0, 2)).len(), 1);
        let books = Books { cells: vec![Default::default(); 2], ..Books::default() };
        let window = Measured { index: 1, start_ns: 0, len_ns: 1_000 };
        let totals = intervals.totals(window, books, false);
        assert_eq!((sent(&totals.shares), totals.connected), (vec![3, 0], 1));
        assert_eq!((totals.shares[0].clients, totals.shares[0].threads[0].wall_ns), (3, 2_000));
    }

    #[test]
    fn totals_sum_up_the_window() {
        let mut intervals = intervals();
        intervals.add_round_trip(RoundTrip { target: 0, at_ns: 0, took_ns: 5_000 });
        for (thread, sent) in [(0, 3), (1, 4), (0, 5)] {
            intervals.add(thread, &interval(2, 0, sent));
        }
        let mut late = interval(3, 0, 100);
        late.kind = PhaseKind::Drain;
        late.sample.cells[0].counters.dropped = 7;
        intervals.add(0, &late);
        intervals.flush();
        let books = Books { cells: vec![Default::default(); 2], ..Books::default() };
        let totals =
            intervals.totals(Measured { index: 2, start_ns: 0, len_ns: 1_000 }, books, true);
        let groups: Vec<_> = totals.groups.iter().map(|group| group.counters.sent).collect();
        assert_eq!((groups, totals.targets[0].counters.sent), (vec![0, 12], 12));
        assert_eq!((totals.connected, totals.rtt.len(), totals.targets[0].rtt.max()), (2, 1, 5));
        assert_eq!((totals.counters.sent, totals.counters.dropped), (12, 7));
        assert_eq!((totals.threads[0].wall_ns, totals.threads[1].wall_ns), (2_000, 1_000));
    }
}
