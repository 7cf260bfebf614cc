//! Messages of a shared subscription that no member can take at present.

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_topic::WaitingPlace;

use crate::delivery::ForOne;
use crate::message::Message;
use crate::stats::ShardStats;

/// Capacity that an empty queue keeps.
const KEPT_MAX: usize = 64;

/// First in, first out, kept by the group's owner.
pub(super) struct WaitingMessages {
    messages: VecDeque<(WaitingPlace, ForOne)>,
    bytes: u64,
    stats: Arc<ShardStats>,
}

/// Limits of the queue.
#[derive(Clone, Copy)]
pub(super) struct WaitingLimits {
    pub(super) len_max: usize,
    pub(super) bytes_max: u64,
}

/// How full the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingLevel {
    /// At least a quarter of it is free.
    Room,
    High,
    /// It has reached one of its limits.
    Full,
}

impl WaitingMessages {
    pub(super) fn new(stats: Arc<ShardStats>) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, stats }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn front(&self) -> Option<&Message> {
        self.messages.front().map(|(_, one)| &one.message)
    }

    pub(super) fn has_room(&self, message: &Message, limits: WaitingLimits) -> bool {
        self.messages.len() < limits.len_max
            && self.bytes + message.size_bytes() as u64 <= limits.bytes_max
    }

    pub(super) fn level(&self, limits: WaitingLimits) -> WaitingLevel {
        let (len, len_max) = (self.messages.len() as u64, limits.len_max as u64);
        if len >= len_max || self.bytes >= limits.bytes_max {
            return WaitingLevel::Full;
        }
        let is_high = |amount: u64, max: u64| amount > max - max / 4;
        if is_high(len, len_max) || is_high(self.bytes, limits.bytes_max) {
            WaitingLevel::High
        } else {
            WaitingLevel::Room
        }
    }

    pub(super) fn push(&mut self, place: WaitingPlace, one: ForOne) {
        let bytes = one.message.size_bytes() as u64;
        self.bytes += bytes;
        self.stats.shared_waiting.increment();
        self.stats.shared_waiting_bytes.add(bytes);
        self.messages.push_back((place, one));
    }

    /// Takes out the first message. Its group counts it as waiting until its place is dropped.
    pub(super) fn pop(&mut self) -> Option<(WaitingPlace, ForOne)> {
        let (place, one) = self.messages.pop_front()?;
        let bytes = one.message.size_bytes() as u64;
        self.bytes -= bytes;
        self.stats.shared_waiting.decrement();
        self.stats.shared_waiting_bytes.subtract(bytes);
        if self.messages.is_empty() && self.messages.capacity() > KEPT_MAX {
            self.messages = VecDeque::new();
        }
        Some((place, one))
    }
}
