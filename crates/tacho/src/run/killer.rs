//! Kills a broker at the moments that a run plans, and starts it again.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tacho_lab::run::{Course, Kills};
use tacho_load::PhaseKind;

use super::process::{SharedProcess, lock};

/// Between a broker that serves again and the next kill, so that clients come back at all.
const PAUSE: Duration = Duration::from_millis(250);

/// Kills one broker. Its thread lives as long as the broker: where a command is ended with who
/// started it, that is the thread.
#[derive(Debug)]
pub(super) struct Killer {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

enum Order {
    /// A run begins.
    Begin { course: Arc<Course>, kills: Kills, stop: Arc<AtomicBool> },
    /// A phase of it began.
    Phase { kind: PhaseKind, planned: Option<Duration> },
    /// It is over; answer when nothing is going on any more.
    End { answer: Sender<()> },
}

impl Killer {
    /// Starts the thread.
    pub(super) fn new(process: SharedProcess) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let failure = Arc::default();
        let mut work = Work {
            process,
            inbox,
            failure: Arc::clone(&failure),
            run: None,
            moments: VecDeque::new(),
        };
        let thread = Builder::new().name("broker-kills".into()).spawn(move || work.go_on())?;
        Ok(Self { orders: Some(orders), thread: Some(thread), failure })
    }

    /// A run begins, which wants these `kills`; `stop` ends it if the broker does not come back.
    pub(super) fn begin(&self, course: Arc<Course>, kills: Kills, stop: &Arc<AtomicBool>) {
        self.tell(Order::Begin { course, kills, stop: Arc::clone(stop) });
    }

    /// A phase of the run began.
    pub(super) fn phase(&self, kind: PhaseKind, planned: Option<Duration>) {
        self.tell(Order::Phase { kind, planned });
    }

    /// The run is over: returns when the broker is back, if it had been killed.
    pub(super) fn end(&self) {
        let (answer, answered) = mpsc::channel();
        self.tell(Order::End { answer });
        // An error says that the thread has ended, which is as good.
        let _ = answered.recv();
    }

    /// Why the broker could not be started again.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The thread ends after this.
            let _ = orders.send(order);
        }
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

struct Work {
    process: SharedProcess,
    inbox: Receiver<Order>,
    failure: Arc<Mutex<Option<String>>>,
    run: Option<(Arc<Course>, Kills, Arc<AtomicBool>)>,
    /// When to kill, in order.
    moments: VecDeque<Instant>,
}

impl Work {
    fn go_on(&mut self) {
        loop {
            let wait = self.moments.front().map(|at| at.saturating_duration_since(Instant::now()));
            let order = match wait {
                Some(wait) => self.inbox.recv_timeout(wait),
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(order) => self.obey(order),
                Err(RecvTimeoutError::Timeout) => self.kill(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Begin { course, kills, stop } => {
                self.moments.clear();
                self.run = Some((course, kills, stop));
            }
            Order::Phase { kind, planned } => {
                let Some((_, kills, _)) = &self.run else { return };
                let now = Instant::now();
                match kind {
                    PhaseKind::Measure => {
                        let after = kills.while_measuring(planned.unwrap_or_default());
                        self.moments.extend(after.into_iter().map(|after| now + after));
                    }
                    PhaseKind::Resume => {
                        let after = kills.while_draining();
                        self.moments.extend(after.iter().map(|after| now + *after));
                    }
                    PhaseKind::Disconnect => self.moments.clear(),
                    _ => {}
                }
            }
            Order::End { answer } => {
                self.moments.clear();
                self.run = None;
                // Nobody waits any more if it cannot be told.
                let _ = answer.send(());
            }
        }
    }

    fn kill(&mut self) {
        self.moments.pop_front();
        let Some((course, _, stop)) = &self.run else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut process = lock(&self.process);
        process.kill();
        course.killed();
        let back = process.start_again().and_then(|pid| {
            course.started(pid);
            process.wait_until_it_serves(stop)
        });
        match back {
            Ok(()) => course.serves(),
            // Somebody stopped the run meanwhile.
            Err(_) if stop.load(Ordering::Relaxed) => return,
            Err(failure) => {
                let words = failure.message.trim_start_matches("error: ").to_owned();
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
                stop.store(true, Ordering::Relaxed);
                self.moments.clear();
                return;
            }
        }
        let earliest = Instant::now() + PAUSE;
        for moment in &mut self.moments {
            *moment = (*moment).max(earliest);
        }
    }
}
