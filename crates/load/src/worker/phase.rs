//! Phases, intervals and windows on one thread: everything driven by time.

use std::cmp::Reverse;
use std::sync::Arc;

use tacho_net::{Net, clock};

use super::Worker;
use crate::events::{PhaseKind, ThreadUsage};
use crate::mail::{Ended, Enter, Interval, ReportBody, Status, Task};
use crate::plan::Scale;
use crate::recorder::Scope;
use crate::schedule::{Place, Schedule};
use crate::verifier::StreamEnds;
use crate::window::Window;

const SECOND_NS: u64 = 1_000_000_000;

/// The thread's position in the plan.
#[derive(Debug)]
pub(super) struct PhaseState {
    current: Option<Enter>,
    /// The phases announced so far.
    announced: Vec<(usize, PhaseKind)>,
    /// The controller waits for `Done` of this phase.
    unfinished: bool,
    /// Number of the current interval, its start and its end.
    number: u64,
    start_ns: u64,
    edge_ns: u64,
    /// The next time at which [`Worker::advance`] has work.
    wake_ns: u64,
    /// Messages intended at or after this time are not sent.
    pub(super) load_end_ns: u64,
    scale: Option<Scale>,
    /// Streams whose client is disconnected.
    pub(super) dead: Vec<u32>,
    usage: UsageMeter,
    /// By cell, at the end of the last interval.
    offered: Vec<Offered>,
    /// Bytes read and written by then.
    bytes: (u64, u64),
}

/// Cumulative counts of a cell's schedules.
#[derive(Debug, Clone, Copy, Default)]
struct Offered {
    /// Taken from schedules, or due and waiting.
    offered: u64,
    attempted: u64,
    sent: u64,
}

impl Default for PhaseState {
    fn default() -> Self {
        Self {
            current: None,
            announced: Vec::new(),
            unfinished: false,
            number: 0,
            start_ns: 0,
            edge_ns: u64::MAX,
            wake_ns: u64::MAX,
            load_end_ns: 0,
            scale: None,
            dead: Vec::new(),
            usage: UsageMeter::default(),
            offered: Vec::new(),
            bytes: (0, 0),
        }
    }
}

impl PhaseState {
    pub(super) fn kind(&self) -> Option<PhaseKind> {
        self.current.map(|enter| enter.task.kind())
    }

    pub(super) const fn is_loading(&self, now_ns: u64) -> bool {
        now_ns < self.load_end_ns
    }

    pub(super) const fn next_edge_ns(&self) -> u64 {
        self.edge_ns
    }

    /// Whether the controller waits for `Done`.
    pub(super) const fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// The index of the phase that the controller waits for; returned once.
    pub(super) fn take_unfinished(&mut self) -> Option<usize> {
        let unfinished = std::mem::replace(&mut self.unfinished, false);
        self.current.filter(|_| unfinished).map(|enter| enter.index)
    }
}

/// CPU time of this thread.
#[derive(Debug, Default)]
struct UsageMeter {
    wall_ns: u64,
    cpu_ns: u64,
    spin_ns: u64,
    rests: u64,
}

impl UsageMeter {
    /// Usage since the last call; `spin_ns` and `rests` are the time spent spinning and the rests
    /// taken so far.
    fn read(&mut self, cpu: Option<usize>, spin_ns: u64, rests: u64) -> ThreadUsage {
        let wall_ns = clock::now_ns();
        let cpu_ns = clock::thread_cpu_ns();
        let usage = ThreadUsage {
            cpu,
            wall_ns: wall_ns - self.wall_ns,
            cpu_ns: cpu_ns - self.cpu_ns,
            spin_ns: spin_ns - self.spin_ns,
            rests: rests - self.rests,
        };
        (self.wall_ns, self.cpu_ns) = (wall_ns, cpu_ns);
        (self.spin_ns, self.rests) = (spin_ns, rests);
        usage
    }
}

/// When an interval ends that begins at `at_ns`: with its phase at the latest. What comes behind
/// the end of a load, before a controller orders the next phase, is of that phase.
fn next_edge_ns(at_ns: u64, end_ns: u64) -> u64 {
    if at_ns >= end_ns { u64::MAX } else { (at_ns + SECOND_NS).min(end_ns) }
}

impl Worker {
    /// Does the work due by `now_ns`: closes intervals, enters phases.
    #[inline]
    pub(super) fn advance(&mut self, net: &mut Net<Self>, now_ns: u64) {
        if now_ns >= self.phase.wake_ns {
            self.advance_to(net, now_ns);
        }
    }

    #[cold]
    fn advance_to(&mut self, net: &mut Net<Self>, now_ns: u64) {
        loop {
            let next_start_ns = self.upcoming.front().map_or(u64::MAX, |enter| enter.start_ns);
            if self.phase.edge_ns.min(next_start_ns) > now_ns {
                break;
            }
            if self.phase.edge_ns < next_start_ns {
                self.rotate(self.phase.edge_ns);
            } else if let Some(enter) = self.upcoming.pop_front() {
                self.rotate(enter.start_ns);
                self.enter(net, enter);
            }
        }
        self.note_wake_up();
    }

    pub(super) fn note_wake_up(&mut self) {
        let next_start_ns = self.upcoming.front().map_or(u64::MAX, |enter| enter.start_ns);
        self.phase.wake_ns = self.phase.edge_ns.min(next_start_ns);
    }

    /// Announces a phase. Its window applies from now on, because messages of other threads may
    /// arrive before this thread enters the phase. A controller that takes the run up may announce
    /// what an earlier one has announced.
    pub(super) fn announce(&mut self, enter: Enter) {
        let place = (enter.index, enter.task.kind());
        if self.phase.announced.contains(&place) {
            return;
        }
        self.phase.announced.push(place);
        if let Task::Load { end_ns, measure: true, .. } = enter.task {
            self.verifier.set_window(Window { start_ns: enter.start_ns, end_ns });
        }
        self.upcoming.push_back(enter);
        self.note_wake_up();
    }

    /// Stops publishing at `at_ns`, and discards announced phases.
    pub(super) fn cut(&mut self, at_ns: u64) {
        self.upcoming.clear();
        self.cancel_actions();
        self.phase.load_end_ns = self.phase.load_end_ns.min(at_ns);
        let window = self.verifier.window();
        if at_ns <= window.start_ns {
            self.verifier.set_window(Window::NONE);
        } else if at_ns < window.end_ns {
            self.verifier.set_window(Window { end_ns: at_ns, ..window });
        }
        self.note_wake_up();
    }

    fn enter(&mut self, net: &mut Net<Self>, enter: Enter) {
        self.phase.current = Some(enter);
        self.phase.number = 0;
        self.phase.start_ns = enter.start_ns;
        self.phase.edge_ns = next_edge_ns(enter.start_ns, enter.task.end_ns());
        self.phase.unfinished = true;
        if !matches!(enter.task, Task::Probe) {
            self.stop_probes();
        }
        let scope = match enter.task {
            Task::Load { measure: false, .. } => Scope::All,
            Task::Load { .. } | Task::Resume | Task::Drain => Scope::Window(self.verifier.window()),
            _ => Scope::Nothing,
        };
        self.recorder.set_scope(scope);
        match enter.task {
            Task::Connect => self.plan_connects(enter.start_ns),
            Task::Subscribe => self.plan_subscribes(enter.start_ns),
            Task::Offline => self.plan_departures(enter.start_ns),
            Task::Resume => self.plan_returns(enter.start_ns),
            Task::Probe => self.start_probes(net, enter.start_ns),
            Task::Load { end_ns, scale, measure } => {
                self.load(enter.start_ns, end_ns, scale);
                if measure {
                    self.plan_absences(net, enter.start_ns);
                    self.plan_actions(enter.start_ns);
                }
            }
            Task::Drain => {}
            Task::Disconnect => {
                self.cancel_actions();
                self.plan_disconnects(enter.start_ns);
            }
        }
    }

    /// Starts the schedules, or continues them.
    fn load(&mut self, start_ns: u64, end_ns: u64, scale: Scale) {
        let is_continued = self.phase.scale == Some(scale) && self.phase.load_end_ns == start_ns;
        self.phase.load_end_ns = end_ns;
        if is_continued {
            return;
        }
        self.phase.scale = Some(scale);
        self.phase.dead.clear();
        for position in std::mem::take(&mut self.blocked) {
            let client = &mut self.clients[position as usize];
            client.waiting.clear();
            client.is_blocked = false;
        }
        let seed = self.context.plan.seed;
        let mut due = Vec::new();
        for (local, stream) in (0u32..).zip(&mut self.streams) {
            stream.is_willing = false;
            stream.in_flight = 0;
            let place = Place {
                ordinal: stream.ordinal,
                siblings: stream.siblings,
                seed: seed ^ (stream.block as u64) << 32,
            };
            let acknowledged = stream.qos != tacho_codec::QoS::AtMostOnce;
            stream.schedule = Schedule::new(start_ns, &stream.pace, scale, place, acknowledged);
            if stream.next_ns() < u64::MAX {
                due.push(Reverse((stream.next_ns(), local)));
            }
        }
        self.due = due.into();
        self.plan_logins(start_ns, scale.factor());
        for local in 0..self.streams.len() as u32 {
            self.make_willing(local);
        }
    }

    /// Ends the current interval at `at_ns`.
    fn rotate(&mut self, at_ns: u64) {
        let (start_ns, number) = (self.phase.start_ns, self.phase.number);
        self.phase.start_ns = at_ns;
        self.phase.number += 1;
        let is_loading = matches!(self.phase.kind(), Some(PhaseKind::WarmUp | PhaseKind::Measure));
        let end_ns = if is_loading { self.phase.load_end_ns } else { u64::MAX };
        self.phase.edge_ns = next_edge_ns(at_ns, end_ns);
        let Some(enter) = self.phase.current.filter(|_| at_ns > start_ns) else { return };
        if at_ns - start_ns >= SECOND_NS {
            self.write_off_stalled();
        }
        self.count_offered(at_ns);
        let cpus = &self.context.plan.cpus;
        let cpu = (!cpus.is_empty()).then(|| cpus[self.thread % cpus.len()]);
        let (bytes_in, bytes_out) = self.phase.bytes;
        let (spin_ns, rests) = (self.spin.total_ns(), self.traffic.rests_taken());
        let mut sample = self.recorder.rotate();
        (sample.bytes_in, sample.bytes_out) = (self.bytes.0 - bytes_in, self.bytes.1 - bytes_out);
        self.phase.bytes = self.bytes;
        for (cell, connected) in sample.cells.iter_mut().zip(&self.totals.alive) {
            cell.connected = *connected;
        }
        let interval = Interval {
            index: enter.index,
            kind: enter.task.kind(),
            number,
            start_ns,
            len_ns: at_ns - start_ns,
            sample,
            usage: self.phase.usage.read(cpu, spin_ns, rests),
            actions: self.actions.take_changes(),
        };
        self.report(ReportBody::Interval(Box::new(interval)));
    }

    /// Counts the messages due before `at_ns`: taken from the schedules, or in the backlog.
    fn count_offered(&mut self, at_ns: u64) {
        let until_ns = at_ns.min(self.phase.load_end_ns);
        self.drop_dead(until_ns);
        let cells = self.context.cells.len();
        let (clients, streams) = (&mut self.clients, &self.streams);
        let backlog_of = |local: u32, sums: &mut [u64]| {
            let stream = &streams[local as usize];
            if let Some(schedule) = &stream.schedule {
                sums[usize::from(stream.cell)] += schedule.remaining_before(until_ns);
            }
        };
        let mut held_back = vec![0; cells];
        self.blocked.retain(|&position| {
            let client = &mut clients[position as usize];
            for &local in &client.waiting {
                backlog_of(local, &mut held_back);
            }
            client.is_blocked = !client.waiting.is_empty();
            client.is_blocked
        });
        let is_late = |top: &Reverse<(u64, u32)>| top.0.0 < until_ns;
        let mut late = vec![0; cells];
        if self.due.peek().is_some_and(is_late) {
            self.due
                .iter()
                .filter(|top| is_late(top))
                .for_each(|top| backlog_of(top.0.1, &mut late));
        }
        self.phase.offered.resize(cells, Offered::default());
        for (cell, last) in self.phase.offered.iter_mut().enumerate() {
            let counters = &mut self.recorder.sample.cells[cell].counters;
            let sent = last.sent + counters.sent;
            let attempted = sent + held_back[cell];
            let offered = self.totals.taken[cell] + held_back[cell] + late[cell];
            counters.offered = offered - last.offered;
            // Messages blocked at the end of the last interval may have been dropped since.
            counters.attempted = attempted.saturating_sub(last.attempted);
            *last = Offered { offered, attempted, sent };
        }
    }

    /// Drops the messages due before `until_ns` of streams without a connection.
    pub(super) fn drop_dead(&mut self, until_ns: u64) {
        for local in &self.phase.dead {
            let stream = &mut self.streams[*local as usize];
            let Some(schedule) = &mut stream.schedule else { continue };
            loop {
                let count = schedule.remaining_before(until_ns);
                if count == 0 {
                    break;
                }
                schedule.skip(count);
                self.totals.taken[usize::from(stream.cell)] += count;
                self.recorder.cell(stream.cell).dropped += count;
            }
        }
    }

    /// Streams in closed mode at QoS 0 wait for deliveries, which may be lost without a later
    /// message that reveals it: a stream without progress for one second gets a new window. The
    /// missing deliveries are reported as lost.
    fn write_off_stalled(&mut self) {
        for local in 0..self.streams.len() as u32 {
            let stream = &mut self.streams[local as usize];
            if stream.in_flight > 0
                && !stream.progressed
                && stream.qos == tacho_codec::QoS::AtMostOnce
            {
                stream.in_flight = 0;
                self.make_willing(local);
            }
            self.streams[local as usize].progressed = false;
        }
    }

    pub(super) fn status(&self) -> Status {
        let held_back = self
            .blocked
            .iter()
            .flat_map(|position| &self.clients[*position as usize].waiting)
            .filter(|local| {
                let schedule = self.streams[**local as usize].schedule.as_ref();
                schedule.is_some_and(|schedule| schedule.next_ns() < self.phase.load_end_ns)
            })
            .count();
        // A late generator may still have unsent messages that are due before the end.
        let late = self.due.peek().is_some_and(|top| top.0.0 < self.phase.load_end_ns);
        Status {
            expected: self.totals.expected,
            received: self.totals.received,
            outstanding: self.totals.unacked
                + held_back as u64
                + u64::from(late)
                + self.logins_outstanding(),
            probes_missing: self.probes.missing(),
            probes_expected: self.probes.expected(),
            unprobed: self.probes.first_missing().map(|local| self.streams[local].index),
        }
    }

    /// The drain is over: stops sending, and reports what was sent.
    pub(super) fn report_ends(&mut self) {
        let end_ns = self.phase.load_end_ns;
        for stream in &mut self.streams {
            if let Some(schedule) = &mut stream.schedule {
                let count = schedule.remaining_before(end_ns);
                schedule.skip(count);
                self.totals.taken[usize::from(stream.cell)] += count;
                self.recorder.cell(stream.cell).dropped += count;
            }
        }
        for position in std::mem::take(&mut self.blocked) {
            let client = &mut self.clients[position as usize];
            client.waiting.clear();
            client.is_blocked = false;
        }
        self.due.clear();
        self.abandon_logins();
        self.phase.scale = None;
        let ends = self.streams.iter_mut().map(|stream| (stream.index, stream.ends())).collect();
        self.report(ReportBody::Ends(ends));
    }

    /// Closes the books of the window.
    pub(super) fn settle(&mut self, ends: &Arc<[StreamEnds]>) {
        self.rotate(clock::now_ns().max(self.phase.start_ns));
        self.phase.current = None;
        self.phase.edge_ns = u64::MAX;
        self.note_wake_up();
        let mut books = self.verifier.settle(ends);
        books.actions = self.action_totals(|stream| ends[stream.index()].to > 0);
        self.verifier.set_window(Window::NONE);
        self.recorder.set_scope(Scope::Nothing);
        for stream in &mut self.streams {
            stream.settle();
        }
        (self.totals.expected, self.totals.received) = (0, 0);
        self.report(ReportBody::Books(Box::new(books)));
    }

    pub(super) fn stop(&mut self, net: &mut Net<Self>) {
        self.rotate(clock::now_ns().max(self.phase.start_ns));
        self.report(ReportBody::Ended(Box::new(Ended {
            connect: self.connect_latency.clone(),
            handshake: self.handshake_latency.clone(),
            suback: self.suback_latency.clone(),
            connected: self.totals.connected,
            connected_ns: self.totals.connected_ns,
            subscribed: self.totals.subscribed,
        })));
        net.stop();
    }
}
