//! A thread per target that encodes points and delivers them.
//!
//! Two bounds: the queue between the run and the thread, and the backlog of packed bodies that a
//! service has not taken yet. Points that exceed either are counted as unsent. The thread has the
//! lowest priority and runs beside the measured cores where there are others.

mod account;
mod answer;
mod backoff;
mod file;
mod http;
mod mailbox;
mod worker;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use account::OutputAccount;
pub use http::{tls_config, tls_identity};
pub(crate) use mailbox::Items;
use mailbox::Mailbox;
use worker::Worker;

use crate::target::{OutputTarget, TargetError};

/// Why points cannot be sent anywhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputStartError {
    /// A target cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Too many targets.
    #[error("{0} outputs are more than the {max} that are possible", max = crate::target::TARGETS_MAX)]
    TooMany(usize),
    /// A file cannot be written.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start a thread for an output: {0}")]
    Thread(io::Error),
}

/// The sending side of one target.
#[derive(Debug)]
pub(crate) struct Sender {
    target: String,
    mailbox: Arc<Mailbox>,
    delivery_max: Duration,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Starts the thread, on `cpus` where there are any.
    pub(crate) fn start(
        target: &OutputTarget,
        number: usize,
        cpus: Vec<usize>,
    ) -> Result<Self, OutputStartError> {
        let mailbox = Arc::new(Mailbox::default());
        let worker = Worker::open(target, Arc::clone(&mailbox))?;
        let delivery_max = worker.delivery_max();
        let own = Arc::clone(&mailbox);
        let body = move || {
            let _over = Over(own);
            if !cpus.is_empty() {
                // Without effect where the system does not allow it.
                let _ = tacho_net::bind_to_cpus(&cpus);
            }
            // The measured threads come first.
            tacho_net::lower_priority();
            worker.work();
        };
        let thread = std::thread::Builder::new().name(format!("tacho-out-{number}"));
        let thread = Some(thread.spawn(body).map_err(OutputStartError::Thread)?);
        Ok(Self { target: target.to_string(), mailbox, delivery_max, thread })
    }

    /// Hands items over; never waits.
    pub(crate) fn post(&self, items: &Items, cost: usize) {
        self.mailbox.post(items, cost);
    }

    /// Asks the thread to send everything until then.
    pub(crate) fn ask_to_settle(&self, until: Instant) {
        self.mailbox.ask_to_settle(until);
    }

    /// Waits until that has happened, or `until` has passed, and a last request with it.
    pub(crate) fn await_settled(&self, until: Instant) -> OutputAccount {
        let account = self.mailbox.await_settled(until + self.delivery_max);
        account.unwrap_or_else(|| OutputAccount {
            target: self.target.clone(),
            last_error: Some("it did not answer in time".to_owned()),
            unsent: 1,
            ..OutputAccount::default()
        })
    }

    /// The target and its first error, once.
    pub(crate) fn take_trouble(&self) -> Option<(String, String)> {
        self.mailbox.take_trouble().map(|why| (self.target.clone(), why))
    }

    /// The target and why the run is to end.
    pub(crate) fn failure(&self) -> Option<(String, String)> {
        self.mailbox.failure().map(|why| (self.target.clone(), why))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.mailbox.quit();
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed.
            let _ = thread.join();
        }
    }
}

/// Says that the thread is over, also after a panic.
struct Over(Arc<Mailbox>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over();
    }
}
