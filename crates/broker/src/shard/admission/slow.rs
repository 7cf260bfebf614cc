//! Slow clients: since when their output is blocked, and how many messages they have missed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::keys::SessionSlot;
use crate::query::SlowRow;
use crate::shard::{Net, Shard};

/// Between two log lines about messages that one session has missed.
const TOLD_AGAIN_NS: u64 = 60_000_000_000;
/// From the first message that a session misses to the log line: it tells how many more there were.
const GATHERED_NS: u64 = 250_000_000;
/// Lines written at once; further sessions follow with the next look.
const LINES_MAX: usize = 16;
/// A client counts as slow when its output has been above its limit for so long.
const SLOW_NS: u64 = 500_000_000;
/// Times that are remembered.
const TIMES_MAX: usize = 128;

/// Sessions that have missed messages of which the log has not told.
#[derive(Debug, Default)]
pub(crate) struct DropReport {
    /// The first one is due first.
    due: BinaryHeap<Reverse<(u64, SessionSlot)>>,
}

/// What the log has told of the messages that one session has missed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToldDrops {
    missed: u64,
    at_ns: Option<u64>,
    /// It is among the sessions of a [`DropReport`].
    is_due: bool,
}

/// A time in which a client was slow.
#[derive(Debug)]
struct SlowTime {
    client_id: Arc<str>,
    ended_ns: u64,
    /// How long its output was above its limit.
    blocked_ns: u64,
    /// Messages that it has missed.
    dropped: u64,
}

/// The last times in which clients of this shard were slow.
#[derive(Debug, Default)]
pub(super) struct SlowTimes(VecDeque<SlowTime>);

impl SlowTimes {
    fn note(&mut self, time: SlowTime) {
        if self.0.len() == TIMES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }
}

impl DropReport {
    /// When the next line is due.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
    }
}

impl Shard {
    /// A client's output is above its limit; the control plane reports since when.
    #[cold]
    pub(in crate::shard) fn output_blocked(&mut self, net: &Net, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        session.machine.set_congested(true);
        session.pressure.output_blocked(net.now_ns());
    }

    /// It takes output again.
    pub(in crate::shard) fn output_unblocked(&mut self, net: &Net, slot: SessionSlot) {
        self.sessions[slot].machine.set_congested(false);
        self.slow_time_ended(net.now_ns(), slot);
    }

    /// The client's output is not above its limit any more: it takes it, or is not connected.
    #[inline]
    pub(in crate::shard) fn slow_time_ended(&mut self, now_ns: u64, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        let blocked_ns = session.pressure.output_unblocked(now_ns);
        if blocked_ns >= SLOW_NS {
            let client_id = Arc::clone(&session.key().client_id);
            let time = SlowTime { client_id, ended_ns: now_ns, blocked_ns, dropped: 0 };
            self.admission.slow_times.note(time);
        }
    }

    /// In which times clients of this shard were slow, the last one first.
    pub(in crate::shard) fn slow_history(&self, net: &mut Net) -> Vec<SlowRow> {
        let row = |time: &SlowTime| SlowRow {
            client_id: time.client_id.as_ref().into(),
            shard: self.id,
            ended_s_ago: net.now_ns().saturating_sub(time.ended_ns) / 1_000_000_000,
            blocked_ms: time.blocked_ns / 1_000_000,
            dropped: time.dropped,
        };
        let rows: Vec<SlowRow> = self.admission.slow_times.0.iter().rev().map(row).collect();
        net.charge(rows.len() as u32);
        rows
    }

    /// A client has missed a message because it is slow or its queue is full: the log tells it,
    /// once a minute.
    pub(in crate::shard) fn note_drop(&mut self, net: &Net, slot: SessionSlot) {
        let drops = self.sessions[slot].pressure.drops();
        if std::mem::replace(&mut drops.is_due, true) {
            return;
        }
        let soon_ns = net.now_ns() + GATHERED_NS;
        let due_ns = drops.at_ns.map_or(soon_ns, |at_ns| soon_ns.max(at_ns + TOLD_AGAIN_NS));
        self.admission.drop_report.due.push(Reverse((due_ns, slot)));
    }

    /// Writes the log lines about missed messages that are due.
    #[inline]
    pub(in crate::shard) fn report_drops(&mut self, now_ns: u64) {
        if self.admission.drop_report.next_look_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.report_due_drops(now_ns);
        }
    }

    #[cold]
    fn report_due_drops(&mut self, now_ns: u64) {
        for _ in 0..LINES_MAX {
            let due = &mut self.admission.drop_report.due;
            if due.peek().is_none_or(|Reverse((due_ns, _))| *due_ns > now_ns) {
                return;
            }
            // Another session may have got the slot of one that has ended.
            if let Some(Reverse((_, slot))) = due.pop()
                && let Some(session) = self.sessions.get_mut(slot)
                && session.pressure.drops().is_due
            {
                self.tell_drops(now_ns, slot);
            }
        }
    }

    fn tell_drops(&mut self, now_ns: u64, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        let total = session.missed_total();
        let drops = session.pressure.drops();
        let dropped = total - std::mem::replace(&mut drops.missed, total);
        (drops.at_ns, drops.is_due) = (Some(now_ns), false);
        tracing::warn!(
            shard = self.id,
            client_id = &*session.key().client_id,
            connected = session.connection().is_some(),
            dropped,
            total,
            queued = session.machine.queue_len(),
            "messages were dropped: the client is slow, or does not come back for them"
        );
        let client_id = Arc::clone(&session.key().client_id);
        let time = SlowTime { client_id, ended_ns: now_ns, blocked_ns: 0, dropped };
        self.admission.slow_times.note(time);
        self.tell_dropped(now_ns, slot, dropped);
    }
}
