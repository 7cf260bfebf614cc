//! Backpressure: publishers are held back while receivers or other shards are behind.
//!
//! Their acknowledgements are withheld first (an unfinished fan-out owes them); then their sockets
//! are not read, except for one buffer a second, so that a PINGREQ is answered in time.

use std::sync::Arc;

use tacho_codec::Packet;
use tacho_net::{ConnId, TimerId};

use crate::keys::SessionSlot;
use crate::permits::{Permit, Quota};
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

/// Between two reads of a held-back socket. A keep-alive below 4 s is cut off no sooner than after
/// 1.5 times itself, so one second always suffices.
const TRICKLE_NS: u64 = 1_000_000_000;

const PINGRESP: [u8; 2] = [0xd0, 0x00];

/// Why a publisher is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum HoldReason {
    /// Receivers or other shards are behind.
    Backlog,
    /// Its message would have to wait, and there is no memory for that, or a queue is full; or the
    /// journal cannot take it.
    Budget,
    /// The shard sheds load, and it sends more than its part.
    Overload,
    /// It has published more than it may; a timer of its own ends that.
    Rate,
}

/// The publishers held back at present.
pub(super) struct Throttle {
    held: Vec<(ConnId, HoldReason)>,
    /// Other shards know that this one holds publishers back until there is room.
    awaits_room: bool,
    timer: Option<TimerId>,
    /// Held while this shard's backlog holds back the publishers of all shards.
    backlog: Option<Permit>,
    backlogged: Arc<Quota>,
}

impl Throttle {
    pub(super) fn new(backlogged: Arc<Quota>) -> Self {
        Self { held: Vec::new(), awaits_room: false, timer: None, backlog: None, backlogged }
    }

    /// Tells the other shards whether this one is behind: from `max` unfinished fan-outs on, and
    /// until half of them are left.
    fn set_backlog(&mut self, len: usize, max: usize) {
        let is_behind = len >= if self.backlog.is_some() { max / 2 + 1 } else { max };
        if is_behind != self.backlog.is_some() {
            self.backlog = is_behind.then(|| self.backlogged.take());
        }
    }

    /// Whether a publisher is held back until there is room.
    fn awaits_it(&self) -> bool {
        self.held.iter().any(|(_, why)| *why == HoldReason::Budget)
    }

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
    pub(in crate::shard) fn pinged(&mut self, net: &mut Net, conn: ConnId, slot: SessionSlot) {
        self.stats.pings_total.increment();
        if net.output_bytes(conn) <= self.limits().output_bytes_max {
            self.trace_packet(net, slot, TraceKind::Out, &Packet::PingResp);
            net.out(conn).extend_from_slice(&PINGRESP);
        } else {
            self.sessions[slot].pressure.ping_waits();
        }
    }

    /// Whether a client has left so much unread that its requests are not worth answering.
    pub(in crate::shard) fn is_unresponsive(&self, net: &Net, conn: ConnId) -> bool {
        let limits = self.limits();
        let patience_bytes = 2 * limits.output_bytes_max + limits.packet_size_max as usize;
        net.output_bytes(conn) > patience_bytes
    }

    /// A connection takes output again.
    pub(in crate::shard) fn output_drained(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
    ) {
        self.output_unblocked(net, slot);
        if self.sessions[slot].pressure.take_owed_ping() {
            self.trace_packet(net, slot, TraceKind::Out, &Packet::PingResp);
            net.out(conn).extend_from_slice(&PINGRESP);
        }
        self.pump(net, slot);
    }

    #[inline]
    pub(in crate::shard) fn is_backlogged(&self, net: &Net) -> bool {
        self.delivery.unfinished() >= self.limits().fanout_backlog_max
            || (net.shards() > 1 && self.others_are_behind(net))
            || self.durability.is_behind()
    }

    fn others_are_behind(&self, net: &Net) -> bool {
        self.shared.backlogged.used() > 0 || (0..net.shards()).any(|shard| net.congested(shard))
    }

    #[cold]
    pub(in crate::shard) fn hold_publisher(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        why: HoldReason,
        reads_on: bool,
    ) {
        self.trace_held(net, conn, why);
        match why {
            HoldReason::Backlog => self.stats.throttled_total.increment(),
            HoldReason::Overload => self.stats.throttled_overload_total.increment(),
            // Counted as refused.
            HoldReason::Budget => {}
            HoldReason::Rate => return,
        }
        if !reads_on {
            net.pause_read(conn);
        }
        if why == HoldReason::Budget && !self.admission.throttle.awaits_room {
            self.admission.throttle.awaits_room = true;
            self.shared.room.hold(self.id, true);
        }
        if why != HoldReason::Budget || !self.admission.throttle.held.contains(&(conn, why)) {
            self.admission.throttle.held.push((conn, why));
        }
        if self.admission.throttle.timer.is_none() {
            let deadline_ns = net.now_ns() + TRICKLE_NS;
            let token = TimerToken::Throttle.encode();
            self.admission.throttle.timer = Some(net.set_timer(deadline_ns, token));
        }
    }

    /// Reads the publishers again that are held back without a reason by now: a backlog ends once
    /// it is down to half.
    pub(in crate::shard) fn release_publishers(&mut self, net: &mut Net) {
        if net.shards() > 1 {
            self.tell_backlog();
        }
        // Read after it is known everywhere that publishers are held back here, see `Room`.
        let room_made = self.shared.room.made();
        let was_made = std::mem::replace(&mut self.admission.room_made, room_made) != room_made;
        if !self.admission.throttle.held.is_empty() {
            self.release_held(net, was_made);
        }
        if self.admission.throttle.awaits_room && !self.admission.throttle.awaits_it() {
            self.admission.throttle.awaits_room = false;
            self.shared.room.hold(self.id, false);
        }
    }

    /// `room_made`: somewhere there is room again, perhaps for what a publisher is held back at. It
    /// tries again, and is held back again if not.
    #[cold]
    fn release_held(&mut self, net: &mut Net, room_made: bool) {
        self.update_budget();
        let behind = self.delivery.unfinished() > self.limits().fanout_backlog_max / 2
            || (net.shards() > 1 && self.others_are_behind(net))
            || self.durability.is_behind();
        let refuses = self.admission.may_refuse() && !room_made;
        let throttles = self.admission.overload.throttles();
        if behind && refuses && throttles {
            return;
        }
        let mut held = std::mem::take(&mut self.admission.throttle.held);
        held.retain(|&(conn, why)| {
            let stays = match why {
                HoldReason::Backlog => behind,
                HoldReason::Budget => refuses,
                HoldReason::Overload => throttles,
                HoldReason::Rate => false,
            };
            if !stays {
                net.resume_read(conn);
            }
            stays
        });
        self.admission.throttle.held = held;
        if self.admission.throttle.held.is_empty()
            && let Some(timer) = self.admission.throttle.timer.take()
        {
            net.cancel_timer(timer);
        }
    }

    /// Other shards' messages become fan-outs here: their publishers are held back for them too.
    fn tell_backlog(&mut self) {
        let (len, max) = (self.delivery.unfinished(), self.limits().fanout_backlog_max);
        self.admission.throttle.set_backlog(len, max);
    }

    pub(in crate::shard) fn read_throttled(&mut self, net: &mut Net) {
        self.admission.throttle.timer = None;
        for (conn, _) in std::mem::take(&mut self.admission.throttle.held) {
            net.resume_read(conn);
        }
    }
}
