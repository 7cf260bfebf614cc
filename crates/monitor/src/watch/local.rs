//! The local machine.

use std::time::Duration;

use super::feed::Feed;
use crate::clock::next_tick_ns;
use crate::{MachineSampler, ProcRoot, WatchedProcess, now_ns};

/// Samples this machine at a fixed interval.
#[derive(Debug)]
pub(super) struct Local {
    sampler: MachineSampler,
    missing: Vec<String>,
}

impl Local {
    /// Takes the first sample, so that unreadable files are reported immediately.
    pub(super) fn new(root: ProcRoot, processes: Vec<WatchedProcess>) -> Result<Self, String> {
        let mut sampler = MachineSampler::new(root, processes);
        sampler.sample(now_ns()).map_err(|error| error.to_string())?;
        Ok(Self { sampler, missing: Vec::new() })
    }

    /// Samples until stopped.
    pub(super) fn watch(&mut self, feed: &Feed, interval: Duration) {
        let mut due_ns = next_tick_ns(now_ns(), interval, now_ns());
        loop {
            feed.sleep_until(due_ns);
            if feed.stopping() {
                return;
            }
            match self.sampler.sample(now_ns()) {
                Ok(row) => row.into_iter().for_each(|row| feed.row(row)),
                Err(error) => feed.error(error.to_string()),
            }
            let missing = self.sampler.missing();
            for what in missing.iter().filter(|what| !self.missing.contains(what)) {
                feed.error(format!("no such process yet: {what}"));
            }
            self.missing = missing;
            due_ns = next_tick_ns(due_ns, interval, now_ns());
        }
    }
}
