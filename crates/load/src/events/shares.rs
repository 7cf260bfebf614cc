//! Parts of a run that other processes make.

use super::ThreadUsage;
use super::delivery::Counters;
use crate::histogram::{Histogram, histogram};

/// The part of one process in a measured window or an interval.
#[derive(Debug, Clone)]
pub struct ShareTotals {
    /// Its clients.
    pub clients: u64,
    /// Messages that its clients sent and received.
    pub counters: Counters,
    /// Intended time to written: how late its threads were.
    pub send_delay: Histogram,
    /// Bytes read from its connections.
    pub bytes_in: u64,
    /// Bytes written to its connections.
    pub bytes_out: u64,
    /// Resource usage of its generator threads.
    pub threads: Vec<ThreadUsage>,
}

impl ShareTotals {
    /// One with so many clients and threads, and nothing else yet.
    pub(crate) fn new(clients: u64, threads: usize) -> Self {
        Self {
            clients,
            counters: Counters::default(),
            send_delay: histogram(),
            bytes_in: 0,
            bytes_out: 0,
            threads: vec![ThreadUsage::default(); threads],
        }
    }
}

/// A part that was lost while the run went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostPart {
    /// Position of its process in the division.
    pub share: usize,
    /// When.
    pub at_ns: u64,
    /// Its clients, which neither send nor receive from here on.
    pub clients: u64,
    /// Clients of the run.
    pub of: u64,
    /// What happened.
    pub why: String,
}
