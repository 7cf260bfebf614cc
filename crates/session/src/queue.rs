//! The bounded queue of messages that have no packet identifier yet.

use std::collections::VecDeque;

use tacho_codec::QoS;

use crate::{Delivery, DropReason};

/// An empty queue that was longer than this returns its memory at once.
const CAPACITY_KEPT_MAX: usize = 256;

/// First in, first out; a full queue refuses the newest message.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    deliveries: VecDeque<Delivery<M>>,
    bytes: u64,
    bytes_max: u64,
    len_max: u32,
    qos0_len: u32,
}

impl<M> Queue<M> {
    pub(crate) const fn new(len_max: u32, bytes_max: u64) -> Self {
        Self { deliveries: VecDeque::new(), bytes: 0, bytes_max, len_max, qos0_len: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.deliveries.len()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a message of QoS 0 waits here: the next one has to wait behind it.
    #[inline]
    pub(crate) const fn holds_qos0(&self) -> bool {
        self.qos0_len > 0
    }

    /// Why `delivery` cannot be put into the queue, if it cannot.
    pub(crate) fn refusal(&self, delivery: &Delivery<M>) -> Option<DropReason> {
        if self.deliveries.len() >= self.len_max as usize {
            Some(DropReason::QueueFull)
        } else if self.bytes + u64::from(delivery.size_bytes) > self.bytes_max {
            Some(DropReason::QueueBytesFull)
        } else {
            None
        }
    }

    pub(crate) fn push(&mut self, delivery: Delivery<M>) {
        self.bytes += u64::from(delivery.size_bytes);
        self.qos0_len += u32::from(delivery.qos == QoS::AtMostOnce);
        self.deliveries.push_back(delivery);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Delivery<M>> {
        self.deliveries.iter()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Delivery<M>> {
        self.deliveries.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Delivery<M>> {
        let delivery = self.deliveries.pop_front()?;
        self.bytes -= u64::from(delivery.size_bytes);
        self.qos0_len -= u32::from(delivery.qos == QoS::AtMostOnce);
        if self.deliveries.is_empty() && self.deliveries.capacity() > CAPACITY_KEPT_MAX {
            self.deliveries = VecDeque::new();
        }
        Some(delivery)
    }

    /// Takes out the messages that are `wanted`; the others keep their order.
    pub(crate) fn take_where(&mut self, wanted: impl Fn(&M) -> bool) -> Vec<Delivery<M>> {
        let mut taken = Vec::new();
        for _ in 0..self.deliveries.len() {
            let Some(delivery) = self.pop() else { break };
            if wanted(&delivery.message) {
                taken.push(delivery);
            } else {
                self.push(delivery);
            }
        }
        taken
    }

    /// Drops everything and returns the memory.
    pub(crate) fn clear(&mut self) {
        self.deliveries = VecDeque::new();
        self.bytes = 0;
        self.qos0_len = 0;
    }

    /// Returns the memory of an empty queue.
    pub(crate) fn release_memory(&mut self) {
        if self.deliveries.is_empty() {
            self.deliveries = VecDeque::new();
        }
    }
}
