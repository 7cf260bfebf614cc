//! One run of an agent: its share of the load, as long as the controller is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Link, LinkEvent, LinkLimits, Name};
use tacho_load::division::{Assignment, Share};

use super::SILENCE;
use super::figures::Telling;
use super::lease::ControllerWatch;
use super::limits::AgentLimits;
use super::outlet::Outlet;
use super::protocol::{
    Attach, Attached, Keep, ToAgent, ToController, decode, encode, link_ends, mark,
};

/// How often the job looks at its limit of time and at its stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Messages of the controller that may wait while a plan is prepared; the link's credit is less.
const EVENTS_MAX: usize = 256;
/// How long the last reports may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// Time for a job to answer a controller that takes its run up.
const ATTACH_WITHIN: Duration = Duration::from_secs(1);

/// What a job is told.
enum JobEvent {
    /// By the link of this attempt.
    Link(u32, LinkEvent),
    /// By a controller that takes the run up; the answer goes back.
    Attach(Attach, mpsc::SyncSender<Attached>),
    /// The controller that is not heard is there.
    ControllerLives,
}

/// A run that the agent works for, on a thread of its own.
#[derive(Debug)]
pub(super) struct Job {
    run: Name,
    stop: Arc<AtomicBool>,
    outcome: Arc<Mutex<String>>,
    events: mpsc::SyncSender<JobEvent>,
    thread: Option<JoinHandle<()>>,
}

impl Job {
    /// Waits for the controller of `run`.
    pub(super) fn start(
        bus: &Arc<dyn Bus>,
        run: &Name,
        agent: &Name,
        limits: AgentLimits,
    ) -> Result<Self, BusError> {
        let (sender, events) = mpsc::sync_channel(EVENTS_MAX);
        let place = JobPlace {
            bus: Arc::clone(bus),
            run: run.clone(),
            agent: agent.clone(),
            events: sender.clone(),
        };
        let work = Work::new(place.link(0)?, place, limits);
        let stop = Arc::new(AtomicBool::new(false));
        let outcome: Arc<Mutex<String>> = Arc::default();
        let work = {
            let (stop, outcome) = (Arc::clone(&stop), Arc::clone(&outcome));
            move || {
                let why = work.run(events, &stop);
                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = why;
            }
        };
        let thread = Builder::new().name("agent-job".to_owned()).spawn(work);
        let thread = thread.map_err(|error| BusError::Refused { why: error.to_string() })?;
        Ok(Self { run: run.clone(), stop, outcome, events: sender, thread: Some(thread) })
    }

    pub(super) const fn run(&self) -> &Name {
        &self.run
    }

    /// Works for another controller from now on, if this one takes its run up.
    pub(super) fn attach(&self, attach: Attach) -> Attached {
        let (sender, answer) = mpsc::sync_channel(1);
        let asked = self.events.try_send(JobEvent::Attach(attach, sender));
        let busy = || "it is busy".to_owned();
        asked.map_err(|_| busy())?;
        answer.recv_timeout(ATTACH_WITHIN).map_err(|_| busy())?
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Why it ended.
    pub(super) fn outcome(&self) -> String {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the load and tells the controller.
    pub(super) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where a job is, for links to its controllers.
struct JobPlace {
    bus: Arc<dyn Bus>,
    run: Name,
    agent: Name,
    events: mpsc::SyncSender<JobEvent>,
}

impl JobPlace {
    /// The link to the controller of this attempt.
    fn link(&self, attempt: u32) -> Result<Arc<Link>, BusError> {
        let events = self.events.clone();
        let on_event = move |event| {
            // Waiting here holds the link's credit back. The job may have ended.
            let _ = events.send(JobEvent::Link(attempt, event));
        };
        let ends = link_ends(&self.run, attempt, &self.agent)?;
        let limits = LinkLimits { silence: SILENCE, ..LinkLimits::default() };
        Ok(Arc::new(Link::open(Arc::clone(&self.bus), ends, limits, on_event)?))
    }
}

/// The time without a controller.
struct Alone {
    since: Instant,
    _watch: ControllerWatch,
}

/// The work of a job.
struct Work {
    place: JobPlace,
    /// Which controller of the run it works for.
    attempt: u32,
    outlet: Arc<Mutex<Outlet>>,
    limits: AgentLimits,
    share: Option<Share>,
    /// The [`mark`] of what the assignment is.
    assignment: u64,
    /// How long it goes on without a controller.
    keeps_for: Duration,
    alone: Option<Alone>,
    /// When the limit of time is over; counts from the start of the share.
    deadline: Option<Instant>,
    /// Reports could not be sent.
    is_cut_off: Arc<AtomicBool>,
    telling: Telling,
}

impl Work {
    fn new(link: Arc<Link>, place: JobPlace, limits: AgentLimits) -> Self {
        Self {
            place,
            attempt: 0,
            outlet: Arc::new(Mutex::new(Outlet::new(link))),
            limits,
            share: None,
            assignment: 0,
            keeps_for: Duration::ZERO,
            alone: None,
            deadline: None,
            is_cut_off: Arc::default(),
            telling: Telling::default(),
        }
    }

    /// Works until the run ends; returns why.
    fn run(mut self, events: mpsc::Receiver<JobEvent>, stop: &AtomicBool) -> String {
        let why = loop {
            if let Ok(event) = events.recv_timeout(LOOK_EVERY)
                && let Some(end) = self.handle(event)
            {
                break end;
            }
            if stop.load(Ordering::Relaxed) {
                break Err("the agent was stopped".to_owned());
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let seconds = self.limits.time_max.as_secs();
                break Err(format!("its limit of time (--time-max), {seconds} s, is over"));
            }
            if self.alone.as_ref().is_some_and(|alone| alone.since.elapsed() >= self.keeps_for) {
                let seconds = self.keeps_for.as_secs();
                break Ok(format!("no other has taken the run up within {seconds} s"));
            }
            self.tell();
            if self.is_cut_off.load(Ordering::Relaxed) {
                break Err("its reports cannot be sent".to_owned());
            }
        };
        // The link's thread may wait for room here, and ends with the link.
        drop(events);
        let is_done = self.share.as_ref().is_some_and(Share::has_ended);
        // First of all: nothing is sent to the broker any more.
        self.share = None;
        match why {
            Ok(_) if is_done => "over".to_owned(),
            Ok(why) => format!("stopped: the controller is gone: {why}"),
            Err(why) => {
                if let Some(link) = self.link() {
                    // A controller that does not hear it misses the signs of life.
                    let _ = link.send(&encode(&ToController::Failed(why.clone())));
                    let _ = link.settle(FAREWELL);
                }
                format!("stopped: {why}")
            }
        }
    }

    /// Takes what it is told; `Some` ends the work, as a failure or not.
    fn handle(&mut self, event: JobEvent) -> Option<Result<String, String>> {
        match event {
            // Of a controller that another one has replaced.
            JobEvent::Link(attempt, _) if attempt != self.attempt => None,
            JobEvent::Link(_, LinkEvent::Message(message)) => self.take(&message).err().map(Err),
            JobEvent::Link(_, LinkEvent::Ended(why)) => Some(Ok(why)),
            JobEvent::Link(_, LinkEvent::Silent(why)) => match self.go_on_alone() {
                true => None,
                false => Some(Ok(why)),
            },
            JobEvent::Attach(attach, answer) => {
                // A controller that has given up asks again.
                let _ = answer.send(self.attach(&attach));
                None
            }
            JobEvent::ControllerLives => {
                self.alone.is_some().then(|| Ok("it has given this agent up".to_owned()))
            }
        }
    }

    /// The controller is not heard any more: goes on for a time, if the run can be taken up.
    fn go_on_alone(&mut self) -> bool {
        let is_loading = self.share.as_ref().is_some_and(Share::is_loading);
        if !is_loading || self.outlet().pieces().is_none() {
            return false;
        }
        let events = self.place.events.clone();
        let lives = move || {
            let _ = events.send(JobEvent::ControllerLives);
        };
        let (bus, run) = (Arc::clone(&self.place.bus), self.place.run.clone());
        let Ok(watch) = ControllerWatch::start(bus, run, self.attempt, lives) else { return false };
        self.outlet().link = None;
        self.alone = Some(Alone { since: Instant::now(), _watch: watch });
        true
    }

    /// Works for a controller that takes the run up.
    fn attach(&mut self, attach: &Attach) -> Attached {
        if attach.assignment != self.assignment {
            return Err("it has another part of the run than this command makes".to_owned());
        }
        if attach.attempt <= self.attempt {
            return Err("it works for another controller of the run".to_owned());
        }
        let is_loading = self.share.as_ref().is_some_and(Share::is_loading);
        let link = self.place.link(attach.attempt).map_err(|error| error.to_string())?;
        let mut outlet = self.outlet();
        let Some(pieces) = outlet.pieces().filter(|_| is_loading) else {
            return Err("its load is over".to_owned());
        };
        let replaced = outlet.link.replace(link);
        drop(outlet);
        // Its thread may wait for room among the events.
        std::thread::spawn(move || drop(replaced));
        (self.attempt, self.alone) = (attach.attempt, None);
        Ok(pieces)
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self) -> Option<Arc<Link>> {
        self.outlet().link.clone()
    }

    /// Tells the controller from time to time what this process uses.
    fn tell(&mut self) {
        if self.share.is_some()
            && let Some(link) = self.link()
            && let Some(counters) = self.telling.due()
        {
            // The next counters have it all.
            let _ = link.send(&encode(&ToController::Counters(counters)));
        }
    }

    /// Takes a message of the controller.
    fn take(&mut self, message: &[u8]) -> Result<(), String> {
        match decode(message) {
            Some(ToAgent::Prepare { assignment, clock_shift_ns, cores, keep })
                if self.share.is_none() =>
            {
                let answer = match self.prepare(&assignment, clock_shift_ns, cores, keep) {
                    Ok(share) => {
                        self.share = Some(share);
                        self.deadline = Instant::now().checked_add(self.limits.time_max);
                        ToController::Ready
                    }
                    Err(why) => ToController::Refused(why),
                };
                let Some(link) = self.link() else { return Ok(()) };
                link.send(&encode(&answer)).map_err(|error| error.to_string())
            }
            Some(ToAgent::Order(order)) => {
                let Some(share) = &mut self.share else {
                    return Err("an order came before the plan".to_owned());
                };
                let was_loading = share.is_loading();
                share.order(&order).map_err(|error| error.to_string())?;
                if was_loading && !share.is_loading() {
                    self.outlet().keep_no_more();
                }
                Ok(())
            }
            _ => Err("the controller sent what does not belong here".to_owned()),
        }
    }

    fn prepare(
        &mut self,
        assignment: &[u8],
        clock_shift_ns: i64,
        cores: Vec<usize>,
        keep: Option<Keep>,
    ) -> Result<Share, String> {
        let assignment = Assignment::read(assignment).map_err(|error| error.to_string())?;
        self.limits.check(&assignment.figures()).map_err(|excess| excess.to_string())?;
        if let Some(keep) = keep {
            let within = Duration::from_millis(keep.within_ms);
            self.keeps_for = within.min(self.limits.unattended_max);
            self.outlet().keep(&*self.place.bus, &self.place.run, &keep)?;
        }
        self.assignment = mark(assignment.identity());
        let (outlet, is_cut_off) = (Arc::clone(&self.outlet), Arc::clone(&self.is_cut_off));
        let report = move |bytes| {
            let mut outlet = outlet.lock().unwrap_or_else(PoisonError::into_inner);
            if !outlet.report(bytes) {
                is_cut_off.store(true, Ordering::Relaxed);
            }
        };
        let share = assignment.start(cores, clock_shift_ns, report);
        share.map_err(|error| error.to_string())
    }
}
