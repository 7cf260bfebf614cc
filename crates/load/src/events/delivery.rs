//! Counts of messages and deliveries, and breaches of the QoS contract.

use serde::{Deserialize, Serialize};

use crate::plan::{Receiver, StreamIndex};

/// Counts, by the time of each occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Messages due by the schedule (closed mode: same as `attempted`).
    pub offered: u64,
    /// Messages that the generator tried to send: written, or blocked by the inflight window.
    pub attempted: u64,
    /// Messages written, without retransmissions.
    pub sent: u64,
    /// Messages acknowledged by PUBACK, or by PUBCOMP at QoS 2.
    pub acked: u64,
    /// Messages whose PUBACK or PUBREC carried an error.
    pub refused: u64,
    /// Verified first deliveries, without duplicates.
    pub received: u64,
    /// Messages written more than the plan's `overrun_after_ns` behind schedule.
    pub overrun: u64,
    /// Messages never sent: skipped by the catch-up policy, beyond the `waiting_max` messages that
    /// may wait for the inflight window, due while their client was disconnected, or still unsent
    /// at the end of the drain.
    pub dropped: u64,
    /// Messages of QoS 1 and 2 whose acknowledgement never arrived, because connection and session
    /// ended.
    pub unanswered: u64,
    /// Connections that ended unexpectedly after CONNACK.
    pub disconnects: u64,
    /// CONNACKs of reconnecting clients.
    pub reconnects: u64,
    /// Payload bytes of the messages written; a message of varying size counts with its largest.
    pub payload_bytes_out: u64,
    /// Payload bytes of the messages received.
    pub payload_bytes_in: u64,
}

impl Counters {
    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.attempted += other.attempted;
        self.sent += other.sent;
        self.acked += other.acked;
        self.refused += other.refused;
        self.received += other.received;
        self.overrun += other.overrun;
        self.dropped += other.dropped;
        self.unanswered += other.unanswered;
        self.disconnects += other.disconnects;
        self.reconnects += other.reconnects;
        self.payload_bytes_out += other.payload_bytes_out;
        self.payload_bytes_in += other.payload_bytes_in;
    }
}

/// Verdict on messages, by the window in which their intended time lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delivery {
    /// Messages sent.
    pub sent: u64,
    /// Deliveries expected of them (a shared group counts once).
    pub expected: u64,
    /// Of these, deliveries that arrived.
    pub received: u64,
    /// Of these, deliveries that did not arrive: `expected - received`.
    pub lost: u64,
    /// Of the lost, those that the plan declares; they are no violation.
    pub declared_lost: u64,
    /// Of the lost, those at the end of their stream: the broker may have lost them or may still
    /// hold them.
    pub undelivered: u64,
    /// Further copies of received messages.
    pub duplicates: u64,
    /// Of the duplicates, those with the DUP flag set.
    pub duplicates_flagged: u64,
    /// First deliveries that arrived after a later message of the same stream (not judged for
    /// shared groups, whose members have no common order).
    pub out_of_order: u64,
    /// Messages of this run at a receiver without a route for their stream, messages of other runs,
    /// and messages without a header.
    pub unexpected: u64,
    /// Messages with a header but with a wrong size or fill, or from an unknown stream.
    pub corrupted: u64,
    /// Deliveries after the end of the drain, already counted as lost.
    pub late: u64,
    /// Wills received from clients of the plan.
    pub wills: u64,
    /// Deliveries with an intended time in the future (clocks disagree); in no histogram.
    pub negative: u64,
}

impl Delivery {
    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.expected += other.expected;
        self.received += other.received;
        self.lost += other.lost;
        self.declared_lost += other.declared_lost;
        self.undelivered += other.undelivered;
        self.duplicates += other.duplicates;
        self.duplicates_flagged += other.duplicates_flagged;
        self.out_of_order += other.out_of_order;
        self.unexpected += other.unexpected;
        self.corrupted += other.corrupted;
        self.late += other.late;
        self.wills += other.wills;
        self.negative += other.negative;
    }
}

/// Violations of the QoS contract, by effective QoS: each one is an error, not a statistic.
/// Messages to or from a client whose connection failed are not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Violations {
    /// Lost at effective QoS 1 or 2. If messages were still arriving at the end of the drain,
    /// [undelivered](Delivery::undelivered) ones are excluded: the broker may only be slow.
    pub lost: u64,
    /// Duplicated at effective QoS 0 or 2.
    pub duplicates: u64,
    /// First deliveries out of order.
    pub out_of_order: u64,
    /// Damaged.
    pub corrupted: u64,
}

impl Violations {
    /// Their sum.
    pub const fn total(&self) -> u64 {
        self.lost + self.duplicates + self.out_of_order + self.corrupted
    }

    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
        self.corrupted += other.corrupted;
    }
}

/// A run of messages that a receiver did not receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The publisher stream.
    pub stream: StreamIndex,
    /// The receiver that missed them.
    pub receiver: Receiver,
    /// First missing sequence number.
    pub first_seq: u64,
    /// Number of missing messages.
    pub count: u64,
    /// Sequence numbers from the first to the last missing one. Equal to `count`, unless a receiver
    /// missed so many messages that old runs were merged.
    pub span: u64,
    /// The plan declares their loss: no violation.
    pub declared: bool,
    /// Number of them that the broker had acknowledged to their publisher.
    pub acknowledged: u64,
}
