//! Messages of a shared subscription that no member can take at present.

use std::collections::VecDeque;

use crate::delivery::ForOne;
use crate::message::Message;

/// An empty queue keeps room for so many.
const KEPT_MAX: usize = 64;

/// First in, first out, kept by the group's owner.
#[derive(Default)]
pub(super) struct WaitingMessages {
    messages: VecDeque<ForOne>,
    bytes: u64,
}

/// How much may wait.
#[derive(Clone, Copy)]
pub(super) struct WaitingLimits {
    pub(super) len_max: usize,
    pub(super) bytes_max: u64,
}

impl WaitingMessages {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    #[cfg(feature = "sim")]
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn front(&self) -> Option<&Message> {
        self.messages.front().map(|one| &one.message)
    }

    pub(super) fn has_room(&self, message: &Message, limits: WaitingLimits) -> bool {
        self.messages.len() < limits.len_max
            && self.bytes + message.size_bytes() as u64 <= limits.bytes_max
    }

    pub(super) fn push(&mut self, one: ForOne) {
        self.bytes += one.message.size_bytes() as u64;
        self.messages.push_back(one);
    }

    pub(super) fn pop(&mut self) -> Option<ForOne> {
        let one = self.messages.pop_front()?;
        self.bytes -= one.message.size_bytes() as u64;
        if self.messages.is_empty() && self.messages.capacity() > KEPT_MAX {
            self.messages = VecDeque::new();
        }
        Some(one)
    }
}
