//! Delivery: from a PUBLISH to the sessions of this shard, and from a session to its connection.

mod fan_out;
mod heads;
mod offer;
mod publish;
mod write;

use std::collections::VecDeque;

use tacho_codec::SubscriptionIdsBuf;

use fan_out::FanOut;
use heads::Heads;

pub(super) use write::BY_REFERENCE_BYTES;

/// Owns the fan-outs that are not finished, and what is reused from delivery to delivery.
pub(super) struct FanOuts {
    /// First in, first out.
    fan_outs: VecDeque<FanOut>,
    /// Deliveries that this turn still allows, beside its time.
    left_this_turn: usize,
    /// What is written belongs to a long fan-out: it waits behind other output.
    may_wait: bool,
    heads: Heads,
    /// Messages that had to wait in a session so far.
    queued_total: u64,
    /// For the subscription identifiers of the packet that is written.
    ids: SubscriptionIdsBuf,
}

impl FanOuts {
    pub(super) fn new(per_turn_max: usize) -> Self {
        Self {
            fan_outs: VecDeque::new(),
            left_this_turn: per_turn_max,
            may_wait: false,
            heads: Heads::default(),
            queued_total: 0,
            ids: SubscriptionIdsBuf::new(),
        }
    }

    /// Fan-outs that are not finished.
    #[inline]
    pub(super) fn unfinished(&self) -> usize {
        self.fan_outs.len()
    }

    /// Messages that had to wait in a session so far.
    #[inline]
    pub(super) fn queued_total(&self) -> u64 {
        self.queued_total
    }
}
