//! Runs the phases of a plan on its threads, and turns their reports into events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tacho_net::clock;

use crate::context::RunContext;
use crate::events::{BegunPhase, Delivery, End, Event, Summary};
use crate::histogram::{self, histogram};
use crate::mail::{Ended, Enter, Mail, OnLoss, Report, ReportBody, Status, Task};
use crate::past::Past;
use crate::plan::{ClientIndex, Group, Phase, Receiver};
use crate::rtt::RttThread;
use crate::verifier::{Books, StreamEnds, settle_shared};

mod begin;
mod closed_books;
mod crew;
mod intervals;
mod load;
mod losses;
mod roll;
mod shares;
mod take_up;
pub(crate) mod threads;

pub(crate) use begin::{start, start_parts};
use closed_books::ClosedBooks;
use crew::Crew;
pub(crate) use crew::CrewPart;
use intervals::{Intervals, Measured};
use load::{Load, begun};
use roll::Roll;
use shares::Shares;

/// How often the controller checks the abort flag and a drain.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often clients that have waited too long are given up.
const GIVE_UP_EVERY_NS: u64 = 100_000_000;
/// Drain time of an aborted run.
const ABORT_DRAIN_NS: u64 = 1_000_000_000;
/// After a drain ended with this much silence, messages still missing count as lost.
const SILENCE_NS: u64 = 1_000_000_000;
/// Time for the last reports of threads in other processes.
const LAST_REPORTS_NS: u64 = 2_000_000_000;
/// Timeout of threads for closing connections and for responses to the controller.
const ANSWER_TIMEOUT_NS: u64 = 10_000_000_000;

/// Responses of threads that the controller collects.
#[derive(Debug, Default)]
struct Inbox {
    /// The phase entered last.
    phase: usize,
    statuses: Vec<Status>,
    ends: Vec<StreamEnds>,
    books: Books,
    ended: Vec<Ended>,
}

struct Controller {
    context: Arc<RunContext>,
    events: mpsc::Sender<Event>,
    abort: Arc<AtomicBool>,
    crew: Crew,
    reports: mpsc::Receiver<Report>,
    intervals: Intervals,
    roll: Roll,
    /// The processes that run the threads, where others do.
    shares: Shares,
    on_loss: OnLoss,
    /// The load has begun: a part of it may be lost.
    is_loading: bool,
    /// Shared groups with members that are lost: what came to those is unknown.
    lost_groups: HashSet<Receiver>,
    rtt: Option<RttThread>,
    rtt_failure: Option<String>,
    /// When the first connect phase began.
    connect_start_ns: u64,
    /// The phases entered so far.
    entered: Vec<BegunPhase>,
    inbox: Inbox,
    failures: u64,
    /// Clients whose connection failed.
    lost: HashSet<ClientIndex>,
    last_failure: String,
    /// Per started action: the threads that have started it and the clients affected, until all
    /// threads have.
    started_actions: HashMap<usize, (usize, u64)>,
    /// Start of the last measured window.
    measured_ns: u64,
    /// Timeout for CONNACK.
    connect_timeout_ns: u64,
    /// What an earlier controller of the run has heard, and this one has not taken yet.
    past: Option<Past>,
    closed: ClosedBooks,
}

impl Controller {
    /// Runs the plan, or what is left of it behind the past of another controller.
    fn run(mut self) {
        let end = self.run_phases().err().unwrap_or(End::Completed);
        if !matches!(end, End::Completed | End::Thread(_) | End::ShareLost { .. }) {
            // A run that ends early still disconnects its clients.
            let _ = self.disconnect(self.context.plan.phases.len());
        }
        let summary = self.stop(end);
        self.emit(Event::Finished(Box::new(summary)));
    }

    fn run_phases(&mut self) -> Result<(), End> {
        let phases = self.context.plan.phases.clone();
        let mut taken_up = self.take_up()?;
        let mut index = taken_up.as_ref().map_or(0, Load::first);
        while index < phases.len() {
            match phases[index] {
                Phase::Connect { timeout_ns } => self.connect(index, timeout_ns)?,
                Phase::Subscribe { timeout_ns } => {
                    self.enter_now(index, Task::Subscribe)?;
                    self.wait_done(timeout_ns)?;
                }
                Phase::Offline => {
                    self.enter_now(index, Task::Offline)?;
                    self.wait_done(u64::MAX)?;
                }
                Phase::Resume { timeout_ns } => self.resume(index, timeout_ns, None)?,
                Phase::Probe { timeout_ns } => self.probe(index, timeout_ns)?,
                Phase::WarmUp { .. } | Phase::Measure { .. } => {
                    let mut load = match taken_up.take() {
                        Some(load) => load,
                        None => self.begin_load(index),
                    };
                    let measured = self.follow_load(&mut load)?;
                    index = load.end();
                    if let Some(Phase::Resume { timeout_ns }) = phases.get(index) {
                        self.resume(index, *timeout_ns, measured)?;
                        index += 1;
                    }
                    let drain = match phases.get(index) {
                        Some(Phase::Drain { timeout_ns }) => *timeout_ns,
                        _ => {
                            // The plan has no drain: it gets one of zero length.
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
        self.enter_now(index, Task::Connect)?;
        self.wait_done(timeout_ns)?;
        if self.has_lost_all() { Err(End::Unreachable(self.last_failure.clone())) } else { Ok(()) }
    }

    fn probe(&mut self, index: usize, timeout_ns: u64) -> Result<(), End> {
        self.enter_now(index, Task::Probe)?;
        let deadline_ns = clock::now_ns() + timeout_ns;
        while !self.roll.all_done() {
            self.receive_or_abort(LOOK_EVERY)?;
            if clock::now_ns() >= deadline_ns {
                let statuses = self.ask_status()?;
                let first = statuses.iter().find_map(|status| status.unprobed);
                let Some(stream) = first else { continue };
                return Err(End::ProbeFailed {
                    missing: statuses.iter().map(|status| status.probes_missing).sum(),
                    expected: statuses.iter().map(|status| status.probes_expected).sum(),
                    waited_ms: timeout_ns / 1_000_000,
                    first_topic: self.context.streams.infos[stream.index()].topic.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Reconnects absent clients. Messages queued for them arrive from here on.
    fn resume(
        &mut self,
        index: usize,
        timeout_ns: u64,
        measured: Option<Measured>,
    ) -> Result<(), End> {
        self.enter_now(index, Task::Resume)?;
        match self.wait_done(timeout_ns) {
            Err(end) => Err(self.cut_short(end, measured, index)),
            done => done,
        }
    }

    /// Ends a load early, with a report of the window measured so far.
    fn cut_short(&mut self, end: End, measured: Option<Measured>, index: usize) -> End {
        if matches!(end, End::Thread(_) | End::ShareLost { .. }) {
            return end;
        }
        let at_ns = clock::now_ns();
        self.post_all(|| Mail::Cut(at_ns));
        let measured = measured.filter(|measured| measured.start_ns < at_ns).map(|measured| {
            Measured { len_ns: measured.len_ns.min(at_ns - measured.start_ns), ..measured }
        });
        // The abort is being handled; the drain must not react to it again.
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
            && matches!(self.context.plan.phases.get(index - 1), Some(Phase::Resume { .. }));
        let start_ns = match measured {
            Some(measured) if !resumed => measured.start_ns + measured.len_ns,
            _ => self.start_of(index),
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
        self.enter(Enter { index, start_ns, task: Task::Drain })?;
        let deadline_ns = start_ns + timeout_ns;
        let mut aborted = None;
        let (mut received, mut arrival_ns) = (0, clock::now_ns());
        let drained = loop {
            let statuses = self.ask_status()?;
            let sum = |part: fn(&Status) -> u64| statuses.iter().map(part).sum::<u64>();
            if sum(|s| s.received) != received {
                (received, arrival_ns) = (sum(|s| s.received), clock::now_ns());
            }
            let is_quiet = clock::now_ns() - arrival_ns > SILENCE_NS;
            match self.roll.is_whole() {
                true if sum(|s| s.expected) != sum(|s| s.received) => {}
                // What lost clients sent and should have received is unknown.
                false if !is_quiet => {}
                is_whole if sum(|s| s.outstanding) == 0 => break is_whole,
                _ => {}
            }
            if clock::now_ns() >= deadline_ns || aborted.is_some() {
                break false;
            }
            match self.receive_or_abort(LOOK_EVERY) {
                Err(End::Aborted) => aborted = Some(End::Aborted),
                other => other?,
            }
        };
        let were_closed = self.closed.are_of_some();
        let mut books = self.close_books()?;
        // Threads that had closed theirs miss nothing any more, whatever came.
        let drained = drained && !(were_closed && books.undelivered > 0);
        if drained || clock::now_ns() - arrival_ns > SILENCE_NS {
            books.violations.lost += books.undelivered;
            books.acknowledged_lost += std::mem::take(&mut books.acknowledged_undelivered);
        }
        if let Some(measured) = measured {
            let totals = self.intervals.totals(measured, books, drained);
            self.emit(Event::Measured(Box::new(totals)));
        }
        aborted.map_or(Ok(()), Err)
    }

    /// Collects what was sent from all threads, distributes it, and collects their books.
    fn close_books(&mut self) -> Result<Books, End> {
        // Those of threads that are gone stay unknown.
        let unknown = StreamEnds { unknown: true, ..StreamEnds::default() };
        self.inbox.ends = vec![unknown; self.context.homes.len()];
        for (stream, end) in self.closed.take_ends() {
            self.inbox.ends[stream.index()] = end;
        }
        self.ask(|| Mail::ReportEnds)?;
        let ends: Arc<[StreamEnds]> = std::mem::take(&mut self.inbox.ends).into();
        self.inbox.books = Books::default();
        self.ask(|| Mail::Settle(Arc::clone(&ends)))?;
        for books in self.closed.take_books() {
            self.inbox.books.add(books);
        }
        self.flush_intervals();
        let mut books = std::mem::take(&mut self.inbox.books);
        books.cells.resize(self.context.cells.len(), Delivery::default());
        settle_shared(&mut books, &ends, &self.lost_groups);
        for (home, end) in self.context.homes.iter().zip(&*ends) {
            let inside = end.window_to - end.window_from;
            books.window.sent += inside;
            books.cells[usize::from(home.cell)].sent += inside;
            books.outside.sent += end.to - end.from - inside;
        }
        Ok(books)
    }

    fn disconnect(&mut self, index: usize) -> Result<(), End> {
        self.enter_now(index, Task::Disconnect)?;
        self.wait_done_despite_abort(ANSWER_TIMEOUT_NS + self.disconnects_ns())
    }

    /// The time to disconnect all clients at their groups' rates.
    fn disconnects_ns(&self) -> u64 {
        let span_ns = |group: &Group| {
            let clients = group.clients.len() as f64;
            group.disconnects_per_s.map_or(0, |rate| (clients * 1e9 / rate) as u64)
        };
        self.context.plan.groups.iter().map(span_ns).max().unwrap_or(0)
    }

    /// Waits for `Done` of all threads, ignoring the abort flag.
    fn wait_done_despite_abort(&mut self, timeout_ns: u64) -> Result<(), End> {
        let deadline_ns = clock::now_ns() + timeout_ns;
        while !self.roll.all_done() && clock::now_ns() < deadline_ns {
            self.receive(LOOK_EVERY)?;
        }
        Ok(())
    }

    fn stop(&mut self, end: End) -> Summary {
        self.post_all(|| Mail::Stop);
        let mut end = end;
        if self.crew.is_elsewhere() {
            self.await_last_reports();
        }
        if let Some(rtt) = self.rtt.take() {
            rtt.stop();
        }
        if !self.crew.join() {
            end = End::Thread("panicked".into());
        }
        while let Ok(report) = self.reports.try_recv() {
            // A thread that failed before has been reported.
            let _ = self.handle(report);
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
            histogram::add(&mut summary.connect, &ended.connect);
            histogram::add(&mut summary.handshake, &ended.handshake);
            histogram::add(&mut summary.suback, &ended.suback);
        }
        summary
    }

    /// Waits a moment for the last reports of threads in other processes.
    fn await_last_reports(&mut self) {
        let deadline_ns = clock::now_ns() + LAST_REPORTS_NS;
        while self.inbox.ended.len() < self.roll.left()
            && clock::now_ns() < deadline_ns
            && self.receive(LOOK_EVERY).is_ok()
        {}
    }

    fn enter_now(&mut self, index: usize, task: Task) -> Result<(), End> {
        self.enter(Enter { index, start_ns: self.start_of(index), task })
    }

    fn enter(&mut self, enter: Enter) -> Result<(), End> {
        self.inbox.phase = enter.index;
        self.roll.enter();
        self.note_entered(&enter);
        self.take_past(enter.index)?;
        self.end_past();
        self.post_all(|| Mail::Enter(enter));
        Ok(())
    }

    /// When a phase began that an earlier controller has entered; now for others.
    fn start_of(&self, index: usize) -> u64 {
        let past_ns = self.past.as_ref().and_then(|past| past.start_of(index));
        past_ns.unwrap_or_else(clock::now_ns)
    }

    fn note_entered(&mut self, enter: &Enter) {
        let begun = begun(enter);
        self.entered.push(begun);
        self.emit(begun.event());
    }

    /// Waits until all threads have finished the phase. Clients that wait longer than `timeout_ns`
    /// are given up, each counted from its own start, so that a late generator does not cause
    /// timeouts.
    fn wait_done(&mut self, timeout_ns: u64) -> Result<(), End> {
        let mut check_ns = clock::now_ns().saturating_add(timeout_ns);
        while !self.roll.all_done() {
            self.receive_or_abort(LOOK_EVERY)?;
            if clock::now_ns() >= check_ns {
                check_ns += GIVE_UP_EVERY_NS;
                self.post_all(|| Mail::GiveUp { timeout_ns });
            }
        }
        Ok(())
    }

    fn ask_status(&mut self) -> Result<Vec<Status>, End> {
        self.inbox.statuses.clear();
        self.ask(|| Mail::ReportStatus)?;
        Ok(std::mem::take(&mut self.inbox.statuses))
    }

    /// Asks all threads, and waits for their answers.
    fn ask(&mut self, question: impl Fn() -> Mail) -> Result<(), End> {
        self.roll.ask();
        self.post_all(question);
        let deadline_ns = clock::now_ns() + ANSWER_TIMEOUT_NS;
        while let Some(thread) = self.roll.unanswered() {
            self.receive(LOOK_EVERY)?;
            if clock::now_ns() > deadline_ns && self.roll.unanswered() == Some(thread) {
                self.give_up(thread, "did not respond within 10 s")?;
            }
        }
        Ok(())
    }

    /// Handles reports for up to `wait`, then checks the abort flag.
    fn receive_or_abort(&mut self, wait: Duration) -> Result<(), End> {
        self.receive(wait)?;
        if self.abort.load(Ordering::Relaxed) { Err(End::Aborted) } else { Ok(()) }
    }

    /// Whether all clients are lost.
    fn has_lost_all(&self) -> bool {
        self.lost.len() >= self.context.plan.client_count()
    }

    fn receive(&mut self, wait: Duration) -> Result<(), End> {
        match self.reports.recv_timeout(wait) {
            Ok(report) => self.handle(report)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(End::Thread("all threads have ended".into()));
            }
        }
        while let Ok(report) = self.reports.try_recv() {
            self.handle(report)?;
        }
        Ok(())
    }

    fn handle(&mut self, report: Report) -> Result<(), End> {
        let thread = report.thread;
        // Round trips are measured by a thread of their own.
        if !matches!(report.body, ReportBody::Rtt(_) | ReportBody::RttFailed(_)) {
            if self.roll.is_gone(thread) {
                return Ok(());
            }
            self.roll.heard(thread, clock::now_ns());
        }
        match report.body {
            ReportBody::Interval(interval) => {
                for snapshot in self.intervals.add(thread, &interval) {
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
            ReportBody::ActionStarted { action, clients } => {
                self.note_action_started(action as usize, clients);
            }
            ReportBody::Done { index } if index == self.inbox.phase => self.roll.note_done(thread),
            ReportBody::Done { .. } => {}
            ReportBody::Status(status) => {
                self.inbox.statuses.push(status);
                self.roll.note_answer(thread);
            }
            ReportBody::Ends(ends) => {
                let has_closed = self.closed.are_of(thread);
                for (stream, end) in ends.into_iter().filter(|_| !has_closed) {
                    self.inbox.ends[stream.index()] = end;
                }
                self.roll.note_answer(thread);
            }
            ReportBody::Books(books) => {
                if !self.closed.are_of(thread) {
                    self.inbox.books.add(*books);
                }
                self.roll.note_answer(thread);
            }
            ReportBody::Rtt(round_trip) => self.intervals.add_round_trip(round_trip),
            ReportBody::RttFailed(why) => {
                self.rtt_failure.get_or_insert(why);
            }
            ReportBody::Ended(ended) => self.inbox.ended.push(*ended),
            ReportBody::Forward { thread: to, mail } => self.crew.post(to, *mail),
            ReportBody::Lost(lost) => self.lose(thread, lost)?,
            ReportBody::Broken(why) => return Err(End::Thread(why)),
        }
        Ok(())
    }

    /// A thread started an action; reported once all threads have.
    fn note_action_started(&mut self, action: usize, clients: u64) {
        let (threads, sum) = self.started_actions.entry(action).or_default();
        *threads += 1;
        *sum += clients;
        self.emit_started(action);
    }

    /// Reports the start of an action once all threads that are left have started it.
    fn emit_started(&mut self, action: usize) {
        let has_all = |(threads, _): &(usize, u64)| *threads >= self.roll.left();
        if self.started_actions.get(&action).is_some_and(has_all) {
            let (_, clients) = self.started_actions.remove(&action).unwrap_or_default();
            let after_ns = self.context.plan.actions.get(action).map_or(0, |of| of.after_ns);
            let at_ns = self.measured_ns.saturating_add(after_ns);
            self.emit(Event::ActionStarted { action, at_ns, clients });
        }
    }

    fn flush_intervals(&mut self) {
        for snapshot in self.intervals.flush() {
            self.emit(Event::Interval(Box::new(snapshot)));
        }
    }

    fn post_all(&self, mail: impl Fn() -> Mail) {
        self.crew.post_all(mail);
    }

    fn emit(&self, event: Event) {
        // The receiver is gone when the engine is being dropped; the abort flag is set then.
        let _ = self.events.send(event);
    }
}
