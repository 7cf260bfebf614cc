//! Stopping a run: by a signal or by its page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The stop flag of the process, and whether it was the page that raised it.
#[derive(Clone, Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    by_page: Arc<AtomicBool>,
}

impl Stop {
    /// Around the flag that signals raise.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self { flag, by_page: Arc::default() }
    }

    /// The flag.
    pub const fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Was the process asked to stop?
    pub fn is_raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The page's button was pressed.
    pub(crate) fn raise_by_page(&self) {
        self.by_page.store(true, Ordering::Relaxed);
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Forgets the page's button; was it pressed?
    pub(crate) fn take_by_page(&self) -> bool {
        self.by_page.swap(false, Ordering::Relaxed)
    }

    /// Lowers the flag and waits until it is raised again.
    pub(crate) fn wait_for_next(&self) {
        self.flag.store(false, Ordering::Relaxed);
        self.wait();
    }

    /// Waits until the process is asked to stop.
    pub fn wait(&self) {
        while !self.is_raised() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
