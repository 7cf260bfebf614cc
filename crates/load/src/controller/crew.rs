//! The generator threads of a run, as the controller reaches them: here, or in other processes.

use std::ops::Range;
use std::thread::JoinHandle;

use tacho_net::Remote;

use crate::mail::{Mail, Order, SendOrder};
use crate::wire;

/// Lead time of commands to threads here, long enough that all start a phase together.
const MARGIN_HERE_NS: u64 = 20_000_000;
/// The same to other processes and machines.
const MARGIN_ELSEWHERE_NS: u64 = 300_000_000;

/// The generator threads of a run.
pub(crate) enum Crew {
    /// Threads of this process.
    Here { remote: Remote<Mail>, threads: Vec<JoinHandle<()>> },
    /// Threads of other processes.
    Elsewhere(Vec<CrewPart>),
}

/// The threads of one other process.
pub(crate) struct CrewPart {
    pub(crate) name: String,
    pub(crate) threads: Range<usize>,
    pub(crate) clients: u64,
    pub(crate) send: SendOrder,
}

impl Crew {
    /// Lead time of commands that all threads are to begin together.
    pub(super) const fn margin_ns(&self) -> u64 {
        match self {
            Self::Here { .. } => MARGIN_HERE_NS,
            Self::Elsewhere(_) => MARGIN_ELSEWHERE_NS,
        }
    }

    pub(super) fn post_all(&self, mail: impl Fn() -> Mail) {
        match self {
            Self::Here { remote, threads } => {
                for thread in 0..threads.len() {
                    // A thread that has ended has reported why.
                    let _ = remote.post(thread, mail());
                }
            }
            Self::Elsewhere(parts) => {
                let order = Order { thread: None, mail: mail() };
                for part in parts {
                    part.send(&order);
                }
            }
        }
    }

    /// Passes mail from one thread on to another.
    pub(super) fn post(&self, thread: usize, mail: Mail) {
        match self {
            Self::Here { remote, .. } => {
                let _ = remote.post(thread, mail);
            }
            Self::Elsewhere(parts) => {
                if let Some(part) = parts.iter().find(|part| part.threads.contains(&thread)) {
                    part.send(&Order { thread: Some(thread), mail });
                }
            }
        }
    }

    /// The process that runs a thread: its name and its threads.
    pub(super) fn part_of(&self, thread: usize) -> Option<(String, Range<usize>)> {
        let Self::Elsewhere(parts) = self else { return None };
        let part = parts.iter().find(|part| part.threads.contains(&thread))?;
        Some((part.name.clone(), part.threads.clone()))
    }

    /// Tells a process to stop, as far as it hears, and sends it nothing else.
    pub(super) fn dismiss(&mut self, threads: &Range<usize>) {
        let Self::Elsewhere(parts) = self else { return };
        for part in parts.extract_if(.., |part| part.threads == *threads) {
            part.send(&Order { thread: None, mail: Mail::Stop });
        }
    }

    /// Whether the end of all threads is known by their last reports only.
    pub(super) const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Elsewhere(_))
    }

    /// Waits for the threads of this process, which have been told to end; false if one panicked.
    pub(super) fn join(&mut self) -> bool {
        let Self::Here { threads, .. } = self else { return true };
        let panics = threads.drain(..).filter_map(|thread| thread.join().err()).count();
        panics == 0
    }
}

impl CrewPart {
    fn send(&self, order: &Order) {
        // A part that is gone has been reported as lost, or will be.
        let sent = wire::encode(order).is_ok_and(|bytes| (self.send)(&bytes));
        let _ = sent;
    }
}
