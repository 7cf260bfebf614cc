//! Kills a broker at planned moments, and starts it again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::RigError;
use crate::process::SharedProcess;

/// Between a broker that serves again and the next kill, so that clients come back at all.
const PAUSE: Duration = Duration::from_millis(250);

/// Receives a broker's process events, on the killer's thread.
pub trait ProcessEvents: Send + Sync {
    /// Its process was killed.
    fn killed(&self);
    /// A new process was started.
    fn started(&self, pid: u32);
    /// The new process serves clients.
    fn serves(&self);
}

/// Kills one broker, on a thread of its own.
#[derive(Debug)]
pub struct Killer {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<OnceLock<RigError>>,
}

enum Order {
    /// A run begins.
    Begin { events: Arc<dyn ProcessEvents>, stop: Arc<AtomicBool> },
    /// Kill at these moments too, which are in order.
    Plan(Vec<Instant>),
    /// Forget all moments.
    Cancel,
    /// The run is over; answer when the broker is back.
    End { answer: Sender<()> },
}

impl Killer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no further thread.
    pub fn new(process: SharedProcess) -> Result<Self, RigError> {
        let (orders, inbox) = mpsc::channel();
        let failure = Arc::default();
        let mut work = Work {
            process,
            inbox,
            failure: Arc::clone(&failure),
            run: None,
            moments: VecDeque::new(),
        };
        let thread = Builder::new()
            .name("broker-kills".into())
            .spawn(move || work.obey_orders())
            .map_err(RigError::Thread)?;
        Ok(Self { orders: Some(orders), thread: Some(thread), failure })
    }

    /// A run begins; `events` are told, and `stop` ends the run if the broker does not come back.
    pub fn begin(&self, events: Arc<dyn ProcessEvents>, stop: &Arc<AtomicBool>) {
        self.tell(Order::Begin { events, stop: Arc::clone(stop) });
    }

    /// Kills the broker after each of these times from now, which are in order.
    pub fn plan(&self, after: &[Duration]) {
        let now = Instant::now();
        self.tell(Order::Plan(after.iter().map(|after| now + *after).collect()));
    }

    /// Forgets all kills that have not begun.
    pub fn cancel(&self) {
        self.tell(Order::Cancel);
    }

    /// The run is over: returns when the broker is back, if it had been killed.
    pub fn end(&self) {
        let (answer, answered) = mpsc::channel();
        self.tell(Order::End { answer });
        // An error says that the thread has ended, which is as good.
        let _ = answered.recv();
    }

    /// Why the broker could not be started again.
    pub fn failure(&self) -> Option<&RigError> {
        self.failure.get()
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

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin { .. } => "Begin",
            Self::Plan(_) => "Plan",
            Self::Cancel => "Cancel",
            Self::End { .. } => "End",
        })
    }
}

struct Work {
    process: SharedProcess,
    inbox: Receiver<Order>,
    failure: Arc<OnceLock<RigError>>,
    run: Option<(Arc<dyn ProcessEvents>, Arc<AtomicBool>)>,
    /// When to kill, in order.
    moments: VecDeque<Instant>,
}

impl Work {
    fn obey_orders(&mut self) {
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
            Order::Begin { events, stop } => {
                self.moments.clear();
                self.run = Some((events, stop));
            }
            Order::Plan(moments) if self.run.is_some() => self.moments.extend(moments),
            Order::Plan(_) => {}
            Order::Cancel => self.moments.clear(),
            Order::End { answer } => {
                self.moments.clear();
                self.run = None;
                // The receiver may be gone, and then needs no answer.
                let _ = answer.send(());
            }
        }
    }

    fn kill(&mut self) {
        self.moments.pop_front();
        let Some((events, stop)) = &self.run else { return };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut process = self.process.lock();
        process.kill();
        events.killed();
        let back = process.start_again().and_then(|pid| {
            events.started(pid);
            process.wait_until_it_serves(stop)
        });
        match back {
            Ok(()) => events.serves(),
            // The run was stopped meanwhile.
            Err(_) if stop.load(Ordering::Relaxed) => return,
            Err(failure) => {
                // The first failure counts.
                let _ = self.failure.set(failure);
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
