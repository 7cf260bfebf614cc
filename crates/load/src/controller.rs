//! Runs the phases of a plan over its threads and turns their reports into events.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tacho_net::{Remote, clock};

use crate::events::{Delivery, End, Event, Summary, histogram};
use crate::mail::{Ended, Enter, Mail, Report, ReportBody, Status, Task};
use crate::plan::{ClientIndex, Group, Phase, Plan};
use crate::recorder;
use crate::rtt::RttThread;
use crate::verifier::{Books, StreamEnds, settle_shared};
use crate::worker::Common;

mod intervals;
mod threads;

use intervals::Intervals;

/// Commands reach all threads well within this, so that they start a phase together.
const START_MARGIN_NS: u64 = 20_000_000;
/// How often the controller looks at the abort flag and at a drain.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often clients are given up that wait for too long.
const GIVE_UP_EVERY_NS: u64 = 100_000_000;
/// What an aborted run gives its last messages.
const ABORT_DRAIN_NS: u64 = 1_000_000_000;
/// When nothing has arrived for this long at the end of a drain, nothing more would have.
const SILENCE_NS: u64 = 1_000_000_000;
/// How long threads may take to close connections or to answer.
const ANSWER_TIMEOUT_NS: u64 = 10_000_000_000;

/// Starts the threads and the controller.
pub(crate) fn start(
    plan: Plan,
    events: mpsc::Sender<Event>,
    abort: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    // A limit that cannot be raised shows where it is reached: as a failed connect.
    let _ = tacho_net::raise_fd_limit();
    let common = Arc::new(Common::new(plan));
    let (sender, reports) = mpsc::channel();
    let (threads, remote) = threads::start(&common, &sender)?;
    let rtt = RttThread::start(&common, &sender)?;
    let controller = Controller {
        intervals: Intervals::new(Arc::clone(&common)),
        rtt,
        rtt_failure: None,
        connect_start_ns: 0,
        common,
        events,
        abort,
        remote,
        reports,
        inbox: Inbox::default(),
        failures: 0,
        lost: HashSet::new(),
        last_failure: String::new(),
        acted: HashMap::new(),
        measured_ns: 0,
        connect_timeout_ns: u64::MAX,
    };
    Builder::new().name("load-control".into()).spawn(move || controller.run(threads))
}

/// Answers of threads that the controller collects.
#[derive(Debug, Default)]
struct Inbox {
    /// The phase last entered, and how many threads are done with it.
    phase: usize,
    done: usize,
    statuses: Vec<Status>,
    ends: Vec<StreamEnds>,
    ends_from: usize,
    books: Books,
    books_from: usize,
    ended: Vec<Ended>,
}

struct Controller {
    common: Arc<Common>,
    events: mpsc::Sender<Event>,
    abort: Arc<AtomicBool>,
    remote: Remote<Mail>,
    reports: mpsc::Receiver<Report>,
    intervals: Intervals,
    rtt: Option<RttThread>,
    rtt_failure: Option<String>,
    /// When the first connect phase began.
    connect_start_ns: u64,
    inbox: Inbox,
    failures: u64,
    /// Clients whose connection failed.
    lost: HashSet<ClientIndex>,
    last_failure: String,
    /// Threads that began an action, and clients it concerns, until all threads have.
    acted: HashMap<usize, (usize, u64)>,
    /// When the last measured window began.
    measured_ns: u64,
    /// How long a client waits for its CONNACK.
    connect_timeout_ns: u64,
}

impl Controller {
    fn run(mut self, threads: Vec<JoinHandle<()>>) {
        let end = self.run_phases().err().unwrap_or(End::Completed);
        if !matches!(end, End::Completed | End::Thread(_)) {
            // A run that ends early still says goodbye to the broker.
            let _ = self.disconnect(self.common.plan.phases.len());
        }
        let summary = self.stop(end, threads);
        self.emit(Event::Finished(Box::new(summary)));
    }

    fn run_phases(&mut self) -> Result<(), End> {
        let phases = self.common.plan.phases.clone();
        let mut index = 0;
        while index < phases.len() {
            match phases[index] {
                Phase::Connect { timeout_ns } => self.connect(index, timeout_ns)?,
                Phase::Subscribe { timeout_ns } => {
                    self.enter_now(index, Task::Subscribe);
                    self.wait_done(timeout_ns)?;
                }
                Phase::Offline => {
                    self.enter_now(index, Task::Offline);
                    self.wait_done(u64::MAX)?;
                }
                Phase::Resume { timeout_ns } => self.resume(index, timeout_ns, None)?,
                Phase::Probe { timeout_ns } => self.probe(index, timeout_ns)?,
                Phase::WarmUp { .. } | Phase::Measure { .. } => {
                    let loads = load_phases(&phases[index..]);
                    let measured = self.load(index, &phases[index..index + loads])?;
                    index += loads;
                    if let Some(Phase::Resume { timeout_ns }) = phases.get(index) {
                        self.resume(index, *timeout_ns, measured)?;
                        index += 1;
                    }
                    let drain = match phases.get(index) {
                        Some(Phase::Drain { timeout_ns }) => *timeout_ns,
                        _ => {
                            // The drain that the plan left out.
                            self.drain(index, 0, measured)?;
                            continue;
                        }
                    };
                    self.drain(index, drain, measured)?;
                }
                Phase::Drain { timeout_ns } => self.drain(index, timeout_ns, None)?,
                Phase::Disconnect => self.disconnect(index)?,
            }
            index += 1;
        }
        Ok(())
    }

    fn connect(&mut self, index: usize, timeout_ns: u64) -> Result<(), End> {
        if self.connect_start_ns == 0 {
            self.connect_start_ns = clock::now_ns();
        }
        self.connect_timeout_ns = timeout_ns;
        self.enter_now(index, Task::Connect);
        self.wait_done(timeout_ns)?;
        if self.is_alone() { Err(End::Unreachable(self.last_failure.clone())) } else { Ok(()) }
    }

    fn probe(&mut self, index: usize, timeout_ns: u64) -> Result<(), End> {
        self.enter_now(index, Task::Probe);
        let deadline_ns = clock::now_ns() + timeout_ns;
        while !self.all_done() {
            self.look(LOOK_EVERY)?;
            if clock::now_ns() >= deadline_ns {
                let statuses = self.ask_status()?;
                let first = statuses.iter().find_map(|status| status.unprobed);
                let Some(stream) = first else { continue };
                return Err(End::ProbeFailed {
                    missing: statuses.iter().map(|status| status.probes_missing).sum(),
                    expected: statuses.iter().map(|status| status.probes_expected).sum(),
                    waited_ms: timeout_ns / 1_000_000,
                    first_topic: self.common.streams.infos[stream as usize].topic.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Runs consecutive load phases; returns the window of the measured one.
    fn load(&mut self, first: usize, phases: &[Phase]) -> Result<Option<Measured>, End> {
        let mut start_ns = clock::now_ns() + START_MARGIN_NS;
        let mut measured = None;
        let mut starts = Vec::new();
        for (index, phase) in (first..).zip(phases) {
            let (duration_ns, scale, measure) = match *phase {
                Phase::WarmUp { duration_ns, scale } => (duration_ns, scale, false),
                Phase::Measure { duration_ns, scale } => (duration_ns, scale, true),
                _ => continue,
            };
            let end_ns = start_ns + duration_ns;
            let task = Task::Load { end_ns, scale, measure };
            self.post_all(|| Mail::Enter(Enter { index, start_ns, task }));
            starts.push((index, task.kind(), start_ns));
            if measure {
                measured = Some(Measured { index, start_ns, len_ns: duration_ns });
                self.measured_ns = start_ns;
            }
            start_ns = end_ns;
        }
        let mut starts = starts.into_iter().peekable();
        let mut look_ns = clock::now_ns();
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= look_ns && !self.common.plan.actions.is_empty() {
                // Who comes back may get no answer.
                look_ns = now_ns + GIVE_UP_EVERY_NS;
                let timeout_ns = self.connect_timeout_ns;
                self.post_all(|| Mail::GiveUp { timeout_ns });
            }
            while let Some((index, kind, at_ns)) = starts.next_if(|start| start.2 <= now_ns) {
                self.emit(Event::Phase { kind, index, at_ns });
            }
            if now_ns >= start_ns {
                return Ok(measured);
            }
            let wait_ns = start_ns.min(starts.peek().map_or(u64::MAX, |start| start.2)) - now_ns;
            if let Err(end) = self.look(Duration::from_nanos(wait_ns).min(LOOK_EVERY)) {
                return Err(self.cut_short(end, measured, first));
            }
            if self.is_alone() {
                let end = End::AllLost(self.last_failure.clone());
                return Err(self.cut_short(end, measured, first));
            }
        }
    }

    /// Brings back who was absent. What is due to them arrives from here on.
    fn resume(
        &mut self,
        index: usize,
        timeout_ns: u64,
        measured: Option<Measured>,
    ) -> Result<(), End> {
        self.enter_now(index, Task::Resume);
        match self.wait_done(timeout_ns) {
            Err(end) => Err(self.cut_short(end, measured, index)),
            done => done,
        }
    }

    /// Ends a load early, with a report of what was measured so far.
    fn cut_short(&mut self, end: End, measured: Option<Measured>, index: usize) -> End {
        if matches!(end, End::Thread(_)) {
            return end;
        }
        let at_ns = clock::now_ns();
        self.post_all(|| Mail::Cut(at_ns));
        let measured = measured.filter(|measured| measured.start_ns < at_ns).map(|measured| {
            Measured { len_ns: measured.len_ns.min(at_ns - measured.start_ns), ..measured }
        });
        // The abort has been seen; the drain must not see it again.
        self.abort.store(false, Ordering::Relaxed);
        let drained = self.drain_at(index, at_ns, ABORT_DRAIN_NS, measured);
        self.abort.store(end == End::Aborted, Ordering::Relaxed);
        drained.err().unwrap_or(end)
    }

    fn drain(
        &mut self,
        index: usize,
        timeout_ns: u64,
        measured: Option<Measured>,
    ) -> Result<(), End> {
        let resumed = index > 0
            && matches!(self.common.plan.phases.get(index - 1), Some(Phase::Resume { .. }));
        let start_ns = match measured {
            Some(measured) if !resumed => measured.start_ns + measured.len_ns,
            _ => clock::now_ns(),
        };
        self.drain_at(index, start_ns, timeout_ns, measured)
    }

    fn drain_at(
        &mut self,
        index: usize,
        start_ns: u64,
        timeout_ns: u64,
        measured: Option<Measured>,
    ) -> Result<(), End> {
        self.enter(Enter { index, start_ns, task: Task::Drain });
        let deadline_ns = start_ns + timeout_ns;
        let mut aborted = None;
        let (mut received, mut arrival_ns) = (0, clock::now_ns());
        let drained = loop {
            let statuses = self.ask_status()?;
            let sum = |part: fn(&Status) -> u64| statuses.iter().map(part).sum::<u64>();
            if sum(|s| s.received) != received {
                (received, arrival_ns) = (sum(|s| s.received), clock::now_ns());
            }
            if sum(|s| s.expected) == sum(|s| s.received) && sum(|s| s.outstanding) == 0 {
                break true;
            }
            if clock::now_ns() >= deadline_ns || aborted.is_some() {
                break false;
            }
            match self.look(LOOK_EVERY) {
                Err(End::Aborted) => aborted = Some(End::Aborted),
                other => other?,
            }
        };
        let mut books = self.close_books()?;
        if drained || clock::now_ns() - arrival_ns > SILENCE_NS {
            books.violations.lost += books.undelivered;
            books.acknowledged_lost += std::mem::take(&mut books.acknowledged_undelivered);
        }
        if let Some(measured) = measured {
            let window = (measured.index, measured.start_ns, measured.len_ns);
            let totals = self.intervals.totals(window, books, drained);
            self.emit(Event::Measured(Box::new(totals)));
        }
        aborted.map_or(Ok(()), Err)
    }

    /// Asks all threads what was sent, tells all threads, and collects their books.
    fn close_books(&mut self) -> Result<Books, End> {
        self.inbox.ends = vec![StreamEnds::default(); self.common.homes.len()];
        self.inbox.ends_from = 0;
        self.post_all(|| Mail::TellEnds);
        self.wait_for(|inbox, threads| inbox.ends_from == threads)?;
        let ends: Arc<[StreamEnds]> = std::mem::take(&mut self.inbox.ends).into();
        self.inbox.books = Books::default();
        self.inbox.books_from = 0;
        self.post_all(|| Mail::Settle(Arc::clone(&ends)));
        self.wait_for(|inbox, threads| inbox.books_from == threads)?;
        self.flush_intervals();
        let mut books = std::mem::take(&mut self.inbox.books);
        books.cells.resize(self.common.cells.len(), Delivery::default());
        settle_shared(&mut books, &ends);
        for (home, end) in self.common.homes.iter().zip(&*ends) {
            let inside = end.window_to - end.window_from;
            books.window.sent += inside;
            books.cells[usize::from(home.cell)].sent += inside;
            books.outside.sent += end.to - end.from - inside;
        }
        Ok(books)
    }

    fn disconnect(&mut self, index: usize) -> Result<(), End> {
        self.enter_now(index, Task::Disconnect);
        self.inbox_wait_quietly(ANSWER_TIMEOUT_NS + self.disconnects_ns())
    }

    /// How long it takes to disconnect all clients at their groups' rates.
    fn disconnects_ns(&self) -> u64 {
        let span_ns = |group: &Group| {
            let clients = group.clients.len() as f64;
            group.disconnects_per_s.map_or(0, |rate| (clients * 1e9 / rate) as u64)
        };
        self.common.plan.groups.iter().map(span_ns).max().unwrap_or(0)
    }

    /// Waits for `Done` of all threads, deaf to the abort flag.
    fn inbox_wait_quietly(&mut self, timeout_ns: u64) -> Result<(), End> {
        let deadline_ns = clock::now_ns() + timeout_ns;
        while !self.all_done() && clock::now_ns() < deadline_ns {
            self.receive(LOOK_EVERY)?;
        }
        Ok(())
    }

    fn stop(&mut self, end: End, threads: Vec<JoinHandle<()>>) -> Summary {
        self.post_all(|| Mail::Stop);
        let mut end = end;
        if let Some(rtt) = self.rtt.take() {
            rtt.stop();
        }
        for thread in threads {
            if thread.join().is_err() {
                end = End::Thread("it panicked".into());
            }
        }
        while let Ok(report) = self.reports.try_recv() {
            // A thread that broke before has been reported.
            let _ = self.take(report);
        }
        self.flush_intervals();
        let mut summary = Summary {
            end,
            connected: 0,
            connect_span_ns: 0,
            rtt_failure: self.rtt_failure.take(),
            subscribed: 0,
            failures: self.failures,
            connect: histogram(),
            handshake: histogram(),
            suback: histogram(),
        };
        for ended in &self.inbox.ended {
            summary.connected += ended.connected;
            let span_ns = ended.connected_ns.saturating_sub(self.connect_start_ns);
            summary.connect_span_ns = summary.connect_span_ns.max(span_ns);
            summary.subscribed += ended.subscribed;
            recorder::add(&mut summary.connect, &ended.connect);
            recorder::add(&mut summary.handshake, &ended.handshake);
            recorder::add(&mut summary.suback, &ended.suback);
        }
        summary
    }

    fn enter_now(&mut self, index: usize, task: Task) {
        self.enter(Enter { index, start_ns: clock::now_ns(), task });
    }

    fn enter(&mut self, enter: Enter) {
        (self.inbox.phase, self.inbox.done) = (enter.index, 0);
        let kind = enter.task.kind();
        self.emit(Event::Phase { kind, index: enter.index, at_ns: enter.start_ns });
        self.post_all(|| Mail::Enter(enter));
    }

    /// Waits until all threads are done with the phase. Clients that wait longer than
    /// `timeout_ns` are given up, each by its own time: where the generator itself is late, none
    /// has to pay for it.
    fn wait_done(&mut self, timeout_ns: u64) -> Result<(), End> {
        let mut look_ns = clock::now_ns().saturating_add(timeout_ns);
        while !self.all_done() {
            self.look(LOOK_EVERY)?;
            if clock::now_ns() >= look_ns {
                look_ns += GIVE_UP_EVERY_NS;
                self.post_all(|| Mail::GiveUp { timeout_ns });
            }
        }
        Ok(())
    }

    fn all_done(&self) -> bool {
        self.inbox.done >= self.common.plan.threads
    }

    fn ask_status(&mut self) -> Result<Vec<Status>, End> {
        self.inbox.statuses.clear();
        self.post_all(|| Mail::Tell);
        self.wait_for(|inbox, threads| inbox.statuses.len() == threads)?;
        Ok(std::mem::take(&mut self.inbox.statuses))
    }

    fn wait_for(&mut self, enough: fn(&Inbox, usize) -> bool) -> Result<(), End> {
        let deadline_ns = clock::now_ns() + ANSWER_TIMEOUT_NS;
        while !enough(&self.inbox, self.common.plan.threads) {
            self.receive(LOOK_EVERY)?;
            if clock::now_ns() > deadline_ns {
                return Err(End::Thread("it did not answer within 10 s".into()));
            }
        }
        Ok(())
    }

    /// Takes reports for up to `wait`, then looks at the abort flag.
    fn look(&mut self, wait: Duration) -> Result<(), End> {
        self.receive(wait)?;
        if self.abort.load(Ordering::Relaxed) { Err(End::Aborted) } else { Ok(()) }
    }

    /// Is no client left to go on with?
    fn is_alone(&self) -> bool {
        self.lost.len() >= self.common.plan.client_count()
    }

    fn receive(&mut self, wait: Duration) -> Result<(), End> {
        match self.reports.recv_timeout(wait) {
            Ok(report) => self.take(report)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(End::Thread("all threads have ended".into()));
            }
        }
        while let Ok(report) = self.reports.try_recv() {
            self.take(report)?;
        }
        Ok(())
    }

    fn take(&mut self, report: Report) -> Result<(), End> {
        match report.body {
            ReportBody::Interval(interval) => {
                for snapshot in self.intervals.add(report.thread, &interval) {
                    self.emit(Event::Interval(Box::new(snapshot)));
                }
            }
            ReportBody::Failed { client, why } => {
                self.failures += 1;
                if why.is_final() {
                    self.last_failure = why.to_string();
                    self.lost.insert(client);
                }
                self.emit(Event::Failed { client, why });
            }
            ReportBody::Interrupted { client, why } => {
                self.emit(Event::Interrupted { client, why });
            }
            ReportBody::Acted { action, clients } => self.acted(action as usize, clients),
            ReportBody::Done { index } => {
                self.inbox.done += usize::from(index == self.inbox.phase);
            }
            ReportBody::Status(status) => self.inbox.statuses.push(status),
            ReportBody::Ends(ends) => {
                for (stream, end) in ends {
                    self.inbox.ends[stream as usize] = end;
                }
                self.inbox.ends_from += 1;
            }
            ReportBody::Books(books) => {
                self.inbox.books.add(*books);
                self.inbox.books_from += 1;
            }
            ReportBody::Rtt { target, at_ns, took_ns } => {
                self.intervals.add_round_trip(target, at_ns, took_ns);
            }
            ReportBody::RttFailed(why) => {
                self.rtt_failure.get_or_insert(why);
            }
            ReportBody::Ended(ended) => self.inbox.ended.push(*ended),
            ReportBody::Broken(why) => return Err(End::Thread(why)),
        }
        Ok(())
    }

    /// A thread began an action; once all have, it is told.
    fn acted(&mut self, action: usize, clients: u64) {
        let (threads, sum) = self.acted.entry(action).or_default();
        *threads += 1;
        *sum += clients;
        if *threads == self.common.plan.threads {
            let (_, clients) = self.acted.remove(&action).unwrap_or_default();
            let after_ns = self.common.plan.actions.get(action).map_or(0, |of| of.after_ns);
            let at_ns = self.measured_ns.saturating_add(after_ns);
            self.emit(Event::Acted { action, at_ns, clients });
        }
    }

    fn flush_intervals(&mut self) {
        for snapshot in self.intervals.flush() {
            self.emit(Event::Interval(Box::new(snapshot)));
        }
    }

    fn post_all(&self, mail: impl Fn() -> Mail) {
        for thread in 0..self.common.plan.threads {
            // A thread that has ended has said why.
            let _ = self.remote.post(thread, mail());
        }
    }

    fn emit(&self, event: Event) {
        // Nobody listens any more: the engine is being dropped, the abort flag is set.
        let _ = self.events.send(event);
    }
}

/// A measured window.
#[derive(Debug, Clone, Copy)]
struct Measured {
    index: usize,
    start_ns: u64,
    len_ns: u64,
}

/// How many phases from the first on are one load: up to and including the first `Measure`.
fn load_phases(phases: &[Phase]) -> usize {
    let loads = phases.iter().take_while(|phase| matches!(phase, Phase::WarmUp { .. })).count();
    loads + usize::from(matches!(phases.get(loads), Some(Phase::Measure { .. })))
}
