//! How writers wake the commit thread.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use crate::options::Urgency;

/// Wakes the commit thread.
#[derive(Default)]
pub(crate) struct Signal {
    /// A writer waits for a commit that has not begun yet.
    forced: AtomicBool,
    /// The commit thread will look for riding records without being woken.
    armed: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Signal {
    /// A record was appended.
    pub(crate) fn appended(&self, urgency: Urgency) {
        let flag = match urgency {
            Urgency::Forces => &self.forced,
            Urgency::Rides => &self.armed,
            Urgency::Waits => return,
        };
        // The thread clears the flag before it reads the buffers. A writer that appends after that
        // sees the flag cleared, because both hold the lock of the buffer in between.
        if !flag.load(Ordering::Relaxed) && !flag.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Requests a commit without an append.
    pub(crate) fn force(&self) {
        self.appended(Urgency::Forces);
    }

    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Makes the calling thread the one to wake.
    pub(crate) fn attach(&self) -> io::Result<()> {
        let thread = std::thread::current();
        self.thread.set(thread).map_err(|_| io::Error::other("a second commit thread"))
    }

    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Acquire)
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    /// The thread is about to read the buffers.
    pub(crate) fn begin(&self) {
        self.forced.swap(false, Ordering::AcqRel);
    }

    /// Sets whether the thread looks for riding records without being woken.
    pub(crate) fn arm(&self, armed: bool) {
        self.armed.swap(armed, Ordering::AcqRel);
    }
}
