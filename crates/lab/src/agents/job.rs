//! One run of an agent: its share of the load, as long as the controller is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_bus::{Bus, BusError, Link, LinkEvent, LinkLimits, Name};
use tacho_load::division::{Assignment, Share};

use super::SILENCE;
use super::figures::Telling;
use super::limits::AgentLimits;
use super::protocol::{ToAgent, ToController, decode, encode, link_ends};

/// How often the job looks at its limit of time and at its stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Messages of the controller that may wait while a plan is prepared; the link's credit is less.
const EVENTS_MAX: usize = 256;
/// How long the last reports may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A run that the agent works for, on a thread of its own.
#[derive(Debug)]
pub(super) struct Job {
    run: Name,
    stop: Arc<AtomicBool>,
    outcome: Arc<Mutex<String>>,
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
        let on_event = move |event| {
            // Waiting here holds the link's credit back. The job may have ended.
            let _ = sender.send(event);
        };
        let link_limits = LinkLimits { silence: SILENCE, ..LinkLimits::default() };
        let link = Link::open(Arc::clone(bus), link_ends(run, agent)?, link_limits, on_event)?;
        let stop = Arc::new(AtomicBool::new(false));
        let outcome: Arc<Mutex<String>> = Arc::default();
        let work = {
            let (stop, outcome) = (Arc::clone(&stop), Arc::clone(&outcome));
            move || {
                let why = Work::new(link, limits).run(events, &stop);
                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = why;
            }
        };
        let thread = Builder::new().name("agent-job".to_owned()).spawn(work);
        let thread = thread.map_err(|error| BusError::Refused { why: error.to_string() })?;
        Ok(Self { run: run.clone(), stop, outcome, thread: Some(thread) })
    }

    pub(super) const fn run(&self) -> &Name {
        &self.run
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

/// The work of a job.
struct Work {
    link: Arc<Link>,
    limits: AgentLimits,
    share: Option<Share>,
    /// When the limit of time is over; counts from the start of the share.
    deadline: Option<Instant>,
    /// Reports could not be sent.
    is_cut_off: Arc<AtomicBool>,
    telling: Telling,
}

impl Work {
    fn new(link: Link, limits: AgentLimits) -> Self {
        let link = Arc::new(link);
        let telling = Telling::default();
        Self { link, limits, share: None, deadline: None, is_cut_off: Arc::default(), telling }
    }

    /// Works until the run ends; returns why.
    fn run(mut self, events: mpsc::Receiver<LinkEvent>, stop: &AtomicBool) -> String {
        let why = loop {
            match events.recv_timeout(LOOK_EVERY) {
                Ok(LinkEvent::Message(message)) => {
                    if let Err(why) = self.take(&message) {
                        break Err(why);
                    }
                }
                Ok(LinkEvent::Ended(why)) => break Ok(why),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok("the link ended".to_owned()),
            }
            if stop.load(Ordering::Relaxed) {
                break Err("the agent was stopped".to_owned());
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let seconds = self.limits.time_max.as_secs();
                break Err(format!("its limit of time (--time-max), {seconds} s, is over"));
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
                // A controller that does not hear it misses the signs of life.
                let _ = self.link.send(&encode(&ToController::Failed(why.clone())));
                let _ = self.link.settle(FAREWELL);
                format!("stopped: {why}")
            }
        }
    }

    /// Tells the controller from time to time what this process uses.
    fn tell(&mut self) {
        if self.share.is_some()
            && let Some(counters) = self.telling.due()
        {
            // The next counters have it all.
            let _ = self.link.send(&encode(&ToController::Counters(counters)));
        }
    }

    /// Takes a message of the controller.
    fn take(&mut self, message: &[u8]) -> Result<(), String> {
        match decode(message) {
            Some(ToAgent::Prepare { assignment, clock_shift_ns, cores })
                if self.share.is_none() =>
            {
                let answer = match self.prepare(&assignment, clock_shift_ns, cores) {
                    Ok(share) => {
                        self.share = Some(share);
                        self.deadline = Instant::now().checked_add(self.limits.time_max);
                        ToController::Ready
                    }
                    Err(why) => ToController::Refused(why),
                };
                self.link.send(&encode(&answer)).map_err(|error| error.to_string())
            }
            Some(ToAgent::Order(order)) => match &self.share {
                Some(share) => share.order(&order).map_err(|error| error.to_string()),
                None => Err("an order came before the plan".to_owned()),
            },
            _ => Err("the controller sent what does not belong here".to_owned()),
        }
    }

    fn prepare(
        &self,
        assignment: &[u8],
        clock_shift_ns: i64,
        cores: Vec<usize>,
    ) -> Result<Share, String> {
        let assignment = Assignment::read(assignment).map_err(|error| error.to_string())?;
        self.limits.check(&assignment.figures()).map_err(|excess| excess.to_string())?;
        let (link, is_cut_off) = (Arc::clone(&self.link), Arc::clone(&self.is_cut_off));
        let report = move |bytes| {
            if link.send(&encode(&ToController::Reports(bytes))).is_err() {
                is_cut_off.store(true, Ordering::Relaxed);
            }
        };
        let share = assignment.start(cores, clock_shift_ns, report);
        share.map_err(|error| error.to_string())
    }
}
