//! Threads that look at something from time to time.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that looks at something from time to time; ends when dropped.
pub struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Calls `look` after `first`, and then again after the time that it returns each time.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        name: &str,
        first: Duration,
        mut look: impl FnMut() -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut next = first;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(next) {
                next = look();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread only looks: its panic loses nothing else.
            let _ = thread.join();
        }
    }
}
