//! Holding publishers back while receivers or other shards are behind; clients that do not read.
//!
//! Their acknowledgements are withheld first (an unfinished fan-out owes them); then their sockets
//! are not read, except for one buffer a second, so that a PINGREQ is answered in time.

use std::sync::atomic::Ordering;

use tacho_net::{ConnId, TimerId};

use super::lifetime::TimerToken;
use super::{Net, Shard};

/// Between two reads of a held-back socket. A keep-alive below 4 s is cut off no sooner than after
/// 1.5 times itself, so one second always suffices.
const TRICKLE_NS: u64 = 1_000_000_000;

const PINGRESP: [u8; 2] = [0xd0, 0x00];

/// Why a publisher is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Receivers or other shards are behind.
    Backlog,
    /// Its message would have to wait, and there is no memory for that; or the journal cannot take
    /// it.
    Budget,
    /// The shard sheds load, and it sends more than its part.
    Overload,
}

/// The publishers held back at present.
#[derive(Default)]
pub(crate) struct Throttle {
    held: Vec<(ConnId, Why)>,
    timer: Option<TimerId>,
    /// What this shard has told the others of its backlog.
    backlogged: bool,
}

impl Throttle {
    #[cfg(feature = "sim")]
    pub(super) fn held_len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        if !self.held.is_empty() {
            self.held.retain(|(held, _)| *held != conn);
        }
    }
}

impl Shard {
    /// Answers a PINGREQ [MQTT-3.12.4-1]; to a client that does not read, once it does.
    pub(super) fn pinged(&mut self, net: &mut Net, conn: ConnId, slot: u32) {
        self.stats.pings_total.increment();
        if net.output_bytes(conn) <= self.limits().output_bytes_max {
            net.out(conn).extend_from_slice(&PINGRESP);
        } else {
            self.sessions[slot as usize].owes_pingresp = true;
        }
    }

    /// Whether a client has left so much unread that its requests are not worth answering.
    pub(super) fn is_deaf(&self, net: &Net, conn: ConnId) -> bool {
        let limits = self.limits();
        let patience_bytes = 2 * limits.output_bytes_max + limits.packet_size_max as usize;
        net.output_bytes(conn) > patience_bytes
    }

    /// A connection takes output again.
    pub(super) fn output_drained(&mut self, net: &mut Net, conn: ConnId, slot: u32) {
        self.output_unblocked(slot);
        if std::mem::take(&mut self.sessions[slot as usize].owes_pingresp) {
            net.out(conn).extend_from_slice(&PINGRESP);
        }
        self.pump(net, slot);
    }

    #[inline]
    pub(super) fn must_throttle(&self, net: &Net) -> bool {
        self.fan_outs.len() >= self.limits().fanout_backlog_max
            || (net.shards() > 1 && self.others_are_behind(net))
            || self.is_journal_behind()
    }

    /// Whether more was handed to the journal than it should have to write at once.
    #[inline]
    fn is_journal_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_pressed())
    }

    fn others_are_behind(&self, net: &Net) -> bool {
        self.shared.backlogged.0.load(Ordering::Relaxed) > 0
            || (0..net.shards()).any(|shard| net.congested(shard))
    }

    #[cold]
    pub(super) fn hold_publisher(&mut self, net: &mut Net, conn: ConnId, why: Why, reads_on: bool) {
        match why {
            Why::Backlog => self.stats.throttled_total.increment(),
            Why::Overload => self.stats.throttled_overload_total.increment(),
            // Counted as refused.
            Why::Budget => {}
        }
        if !reads_on {
            net.pause_read(conn);
        }
        if why != Why::Budget || !self.throttle.held.contains(&(conn, why)) {
            self.throttle.held.push((conn, why));
        }
        if self.throttle.timer.is_none() {
            let deadline_ns = net.now_ns() + TRICKLE_NS;
            let token = TimerToken::Throttle.encode();
            self.throttle.timer = Some(net.set_timer(deadline_ns, token));
        }
    }

    /// Lets everybody go on for whom there is no reason any more: once the backlog is down to half,
    /// for one.
    pub(super) fn release_publishers(&mut self, net: &mut Net) {
        if net.shards() > 1 {
            self.tell_backlog();
        }
        if !self.throttle.held.is_empty() {
            self.release_held(net);
        }
    }

    #[cold]
    fn release_held(&mut self, net: &mut Net) {
        let behind = self.fan_outs.len() > self.limits().fanout_backlog_max / 2
            || (net.shards() > 1 && self.others_are_behind(net))
            || self.is_journal_behind();
        let mut held = std::mem::take(&mut self.throttle.held);
        held.retain(|&(conn, why)| {
            let stays = match why {
                Why::Backlog => behind,
                Why::Budget => self.queues_full | self.journal_stuck,
                Why::Overload => self.overload.throttles(),
            };
            if !stays {
                net.resume_read(conn);
            }
            stays
        });
        self.throttle.held = held;
        if self.throttle.held.is_empty()
            && let Some(timer) = self.throttle.timer.take()
        {
            net.cancel_timer(timer);
        }
    }

    /// Other shards' messages become fan-outs here: their publishers are held back for them too.
    fn tell_backlog(&mut self) {
        let (len, max) = (self.fan_outs.len(), self.limits().fanout_backlog_max);
        let is_behind = len >= if self.throttle.backlogged { max / 2 + 1 } else { max };
        if is_behind != self.throttle.backlogged {
            self.throttle.backlogged = is_behind;
            let behind = &self.shared.backlogged.0;
            if is_behind {
                behind.fetch_add(1, Ordering::Relaxed);
            } else {
                behind.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn read_throttled(&mut self, net: &mut Net) {
        self.throttle.timer = None;
        for (conn, _) in std::mem::take(&mut self.throttle.held) {
            net.resume_read(conn);
        }
    }
}
