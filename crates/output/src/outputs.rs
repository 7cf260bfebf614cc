//! All targets of a run.

use std::time::{Duration, Instant};

use crate::point::OutputItem;
use crate::sender::{Items, OutputAccount, OutputStartError, Sender};
use crate::target::{OutputTarget, TARGETS_MAX};

/// How outputs work.
#[derive(Clone, Debug)]
pub struct OutputSetting {
    /// Where points go.
    pub targets: Vec<OutputTarget>,
    /// Where the threads run; empty leaves it to the system.
    pub cpus: Vec<usize>,
}

/// Sends points to all targets. None by default: then everything is without effect.
#[derive(Debug, Default)]
pub struct Outputs {
    senders: Vec<Sender>,
}

impl Outputs {
    /// Opens all targets: creates files and reads secrets. Services are not asked yet; one that
    /// cannot be reached is no error here.
    ///
    /// # Errors
    /// When there are too many targets, or one of them cannot be used.
    pub fn start(setting: &OutputSetting) -> Result<Self, OutputStartError> {
        let count = setting.targets.len();
        if count > TARGETS_MAX {
            return Err(OutputStartError::TooMany(count));
        }
        let numbered = setting.targets.iter().zip(1..);
        let senders = numbered
            .map(|(target, number)| Sender::start(target, number, setting.cpus.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self { senders })
    }

    /// Are there no targets?
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// Sends items to all targets; returns at once. What does not fit into the queue of a target is
    /// counted as unsent there.
    pub fn send(&self, items: Vec<OutputItem>) {
        if self.is_empty() || items.is_empty() {
            return;
        }
        let cost = items.iter().map(OutputItem::cost).sum();
        let items: Items = items.into();
        self.senders.iter().for_each(|sender| sender.post(&items, cost));
    }

    /// Ends all series, and waits as [`Outputs::flush`] does.
    pub fn end_series(&self, patience: Duration) -> Vec<OutputAccount> {
        self.send(vec![OutputItem::End]);
        self.flush(patience)
    }

    /// Waits until the targets have everything or `patience` is over. What became of the items
    /// since the last call, per target; what could not be sent by then is dropped and counted. A
    /// target that took nothing of them gets one attempt, so that a dead service costs no time.
    pub fn flush(&self, patience: Duration) -> Vec<OutputAccount> {
        let until = Instant::now() + patience;
        self.senders.iter().for_each(|sender| sender.ask_to_settle(until));
        self.senders.iter().map(|sender| sender.await_settled(until)).collect()
    }

    /// Targets with their first errors; each target is told once.
    pub fn take_troubles(&self) -> Vec<(String, String)> {
        self.senders.iter().filter_map(Sender::take_trouble).collect()
    }

    /// The target whose failure ends the run, and its error.
    pub fn failure(&self) -> Option<(String, String)> {
        self.senders.iter().find_map(Sender::failure)
    }
}
