//! A link: messages between two parties over a bus, in order, none lost, with credit.
//!
//! A bus loses messages: a subscription overflows, a connection breaks. A link numbers its pieces,
//! sends at most a window of them ahead of their acknowledgements (the credit, far below what a
//! subscription holds), repeats what was not acknowledged, and ignores what comes twice or too
//! early. Each side says at least every second that it is there; a side that has not been heard for
//! a time is lost, and so is the link. A side that was stopped for as long ends the link itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{Bus, BusError, Subject, Subscription};

mod window;

use window::{Taken, Window};

/// How often a link looks at its clock.
const TICK: Duration = Duration::from_millis(100);
/// Pieces and acknowledgements that may wait: several windows.
const CAPACITY: usize = 1_024;

/// The two ends of a link.
#[derive(Clone, Debug)]
pub struct LinkEnds {
    /// Where this side receives.
    pub own: Subject,
    /// Where the other side receives.
    pub other: Subject,
}

/// Bounds of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkLimits {
    /// After this time without a sign of the other side it is lost.
    pub silence: Duration,
    /// Bytes that may wait to be sent, and size of the largest message.
    pub bytes_max: usize,
}

impl Default for LinkLimits {
    /// Five seconds, and 64 MiB.
    fn default() -> Self {
        Self { silence: Duration::from_secs(5), bytes_max: 64 << 20 }
    }
}

/// What a link tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A message of the other side.
    Message(Vec<u8>),
    /// The other side has ended the link, or this side cannot go on; nothing follows.
    Ended(String),
    /// Nothing was heard of the other side for too long; nothing follows.
    Silent(String),
}

/// One end of a link. Dropping it tells the other side that it ends.
pub struct Link {
    shared: Arc<LinkState>,
    thread: Option<JoinHandle<()>>,
}

struct LinkState {
    bus: Arc<dyn Bus>,
    other: Subject,
    window: Mutex<Window>,
    /// Room in the window, or the end.
    room: Condvar,
    stop: AtomicBool,
    began: Instant,
}

impl Link {
    /// Opens this side. `on_event` is called on the link's thread, and must not wait for long.
    ///
    /// # Errors
    /// The bus does not let it subscribe, or no thread can be started.
    pub fn open(
        bus: Arc<dyn Bus>,
        ends: LinkEnds,
        limits: LinkLimits,
        on_event: impl FnMut(LinkEvent) + Send + 'static,
    ) -> Result<Self, BusError> {
        let messages = bus.subscribe(&ends.own.into(), CAPACITY)?;
        let window = Window::new(limits.silence.as_nanos() as u64, limits.bytes_max);
        let shared = Arc::new(LinkState {
            bus,
            other: ends.other,
            window: Mutex::new(window),
            room: Condvar::new(),
            stop: AtomicBool::new(false),
            began: Instant::now(),
        });
        let pumped = Arc::clone(&shared);
        let work = move || pumped.pump(&messages, on_event);
        let spawned = Builder::new().name("bus-link".to_owned()).spawn(work);
        let thread = spawned.map_err(|error| BusError::Refused { why: error.to_string() })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends a message: at once as far as there is credit, the rest as credit returns.
    ///
    /// # Errors
    /// The link has ended, the message is larger than its limit, or too much waits already.
    pub fn send(&self, message: &[u8]) -> Result<(), BusError> {
        let mut window = lock(&self.shared.window);
        window.send(message)?;
        self.shared.flush(&mut window);
        Ok(())
    }

    /// Waits until the other side has everything that was sent; false if it does not within
    /// `wait`, or the link has ended.
    pub fn settle(&self, wait: Duration) -> bool {
        let window = lock(&self.shared.window);
        let waits = |window: &mut Window| !window.is_settled() && !window.has_ended();
        let (window, _) = self
            .shared
            .room
            .wait_timeout_while(window, wait, waits)
            .unwrap_or_else(PoisonError::into_inner);
        window.is_settled()
    }

    /// Bytes that this side has sent and received, with what the link adds.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        lock(&self.shared.window).bytes()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let goodbye = lock(&self.shared.window).goodbye();
        // A side that is lost does not hear it, and notices the silence.
        let _ = self.shared.bus.publish(&self.shared.other, goodbye.into());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("other", &self.shared.other).finish_non_exhaustive()
    }
}

impl LinkState {
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Takes what arrives, and looks at the clock, until the link ends.
    fn pump(&self, messages: &Subscription, mut on_event: impl FnMut(LinkEvent)) {
        let end = loop {
            let message = match messages.next(TICK) {
                Ok(message) => message,
                Err(error) => break LinkEvent::Ended(error.to_string()),
            };
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let mut window = lock(&self.window);
            let now_ns = self.now_ns();
            // What waits now is of before: the other side has given this one up.
            if let Some(seconds) = window.stood_still_s(now_ns) {
                break LinkEvent::Ended(format!("this side stood still for {seconds} s"));
            }
            let taken = match message {
                Some(message) => window.take(now_ns, &message.payload),
                None => Taken::Nothing,
            };
            let lost = window.silence_s(now_ns);
            self.flush(&mut window);
            drop(window);
            self.room.notify_all();
            match taken {
                Taken::Message(message) => on_event(LinkEvent::Message(message)),
                Taken::End(why) => break LinkEvent::Ended(why),
                Taken::Nothing => {}
            }
            if let Some(seconds) = lost {
                break LinkEvent::Silent(format!("nothing was heard of it for {seconds} s"));
            }
        };
        // A side that is given up, but lives, hears it when it can.
        let goodbye = lock(&self.window).goodbye();
        let _ = self.bus.publish(&self.other, goodbye.into());
        self.room.notify_all();
        on_event(end);
    }

    /// Publishes what may be sent now; what the bus does not take is repeated later.
    fn flush(&self, window: &mut Window) {
        let now_ns = self.now_ns();
        while let Some(piece) = window.poll(now_ns) {
            if self.bus.publish(&self.other, Bytes::from(piece)).is_err() {
                return;
            }
        }
    }
}

/// The state is consistent between any two statements, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
