//! Holding publishers back while receivers or other shards are behind; clients that do not read.
//!
//! Their acknowledgements are withheld first (an unfinished fan-out owes them); then their sockets
//! are not read, except for one buffer a second, so that a PINGREQ is answered in time.

use tacho_net::{ConnId, TimerId};

use super::lifetime::TimerToken;
use super::{Net, Shard};

/// Between two reads of a held-back socket. A keep-alive below 4 s is cut off no sooner than after
/// 1.5 times itself, so one second always suffices.
const TRICKLE_NS: u64 = 1_000_000_000;

const PINGRESP: [u8; 2] = [0xd0, 0x00];

/// The publishers held back at present.
#[derive(Default)]
pub(crate) struct Throttle {
    held: Vec<ConnId>,
    timer: Option<TimerId>,
}

impl Throttle {
    #[cfg(feature = "sim")]
    pub(super) fn held_len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        if !self.held.is_empty() {
            self.held.retain(|held| *held != conn);
        }
    }
}

impl Shard {
    /// Answers a PINGREQ; to a client that does not read, once it does.
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
        let session = &mut self.sessions[slot as usize];
        session.machine.set_congested(false);
        if std::mem::take(&mut session.owes_pingresp) {
            net.out(conn).extend_from_slice(&PINGRESP);
        }
        self.pump(net, slot);
    }

    #[inline]
    pub(super) fn must_throttle(&self, net: &Net) -> bool {
        self.fan_outs.len() >= self.limits().fanout_backlog_max || any_mailbox_congested(net)
    }

    #[cold]
    pub(super) fn hold_publisher(&mut self, net: &mut Net, conn: ConnId) {
        self.stats.throttled_total.increment();
        net.pause_read(conn);
        self.throttle.held.push(conn);
        if self.throttle.timer.is_none() {
            let deadline_ns = net.now_ns() + TRICKLE_NS;
            let token = TimerToken::Throttle.encode();
            self.throttle.timer = Some(net.set_timer(deadline_ns, token));
        }
    }

    /// Lets everybody go on once the backlog is down to half.
    pub(super) fn release_publishers(&mut self, net: &mut Net) {
        let low = self.limits().fanout_backlog_max / 2;
        if !self.throttle.held.is_empty()
            && self.fan_outs.len() <= low
            && !any_mailbox_congested(net)
        {
            if let Some(timer) = self.throttle.timer.take() {
                net.cancel_timer(timer);
            }
            self.resume_all(net);
        }
    }

    pub(super) fn read_throttled(&mut self, net: &mut Net) {
        self.throttle.timer = None;
        self.resume_all(net);
    }

    fn resume_all(&mut self, net: &mut Net) {
        for conn in std::mem::take(&mut self.throttle.held) {
            net.resume_read(conn);
        }
    }
}

#[inline]
fn any_mailbox_congested(net: &Net) -> bool {
    net.shards() > 1 && (0..net.shards()).any(|shard| net.congested(shard))
}
