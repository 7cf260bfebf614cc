//! A limit on how long clients of durable sessions wait for a commit once the journal stalls.
//!
//! Their requests have been carried out in memory and handed to the journal, which may write them
//! once there is space. So that the answer stays true then, a subscription that is refused after
//! all is removed again, here and in the journal. An UNSUBSCRIBE stays in effect, and its client is
//! told that a restart may undo it. A CONNECT is refused, and its session is left as if the
//! connection had broken.

use tacho_codec::split_frame;
use tacho_codec::{
    Connect, Packet, PacketId, ReasonCode, SubAck, UnsubAck, UserProperties, Version,
};
use tacho_net::{ConnId, TimerId};
use tacho_session::BatchSeq;
use tacho_session::server::End;
use tacho_topic::Filter;

use crate::keys::SessionSlot;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// Interval of the look at waiting clients. They are answered once the journal accepted nothing in
/// two intervals in a row: a failed segment is replaced sooner than that.
const LOOK_NS: u64 = 1_000_000_000;
const NEXT_TURN_NS: u64 = 1;

/// Why a durable session's subscription is refused.
pub(in crate::shard) const NOTHING_CAN_BE_WRITTEN: &str =
    "the subscription would have to be kept, and nothing can be written at present";

/// What UNSUBACK says to explain itself.
const MAY_COME_BACK: &str =
    "it is over, but cannot be written at present: after a restart it may be there again";

/// Whether a client waits that may have to be told that nothing can be written.
#[derive(Default)]
pub(crate) struct Unanswered {
    timer: Option<TimerId>,
    /// The journal took nothing when it was last looked.
    was_stalled: bool,
}

/// An answer that waits for a commit, and what is said instead if there is none.
pub(in crate::shard) struct PendingAck {
    pub(in crate::shard) batch: BatchSeq,
    pub(in crate::shard) bytes: Vec<u8>,
    pub(in crate::shard) packet_id: PacketId,
    pub(in crate::shard) reasons: Vec<ReasonCode>,
    /// What SUBSCRIBE has changed; `None` for UNSUBSCRIBE.
    pub(in crate::shard) changed: Option<Vec<Changed>>,
}

/// A subscription that was made or got other options.
pub(in crate::shard) struct Changed {
    pub(in crate::shard) filter: Filter,
    /// What it was before, if it was there.
    pub(in crate::shard) former: Option<SubscriptionOptions>,
}

impl PendingAck {
    /// The packet that says that nothing can be written.
    fn refusal(self, version: Version) -> Packet<'static> {
        let Self { packet_id, reasons, .. } = self;
        let (user_properties, is_v5) = (UserProperties::EMPTY, version == Version::V5);
        let instead = |code: ReasonCode| {
            move |reason: ReasonCode| if reason == ReasonCode::SUCCESS { code } else { reason }
        };
        if self.changed.is_none() {
            // "No subscription existed" stays true.
            let instead = instead(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR);
            let reasons = reasons.into_iter().map(instead).collect();
            let reason_string = Some(MAY_COME_BACK);
            return Packet::UnsubAck(UnsubAck {
                packet_id,
                reasons,
                reason_string,
                user_properties,
            });
        }
        let refused =
            if is_v5 { ReasonCode::QUOTA_EXCEEDED } else { ReasonCode::UNSPECIFIED_ERROR };
        let granted_not = |reason: ReasonCode| if reason.is_error() { reason } else { refused };
        let reasons = reasons.into_iter().map(granted_not).collect();
        let reason_string = Some(NOTHING_CAN_BE_WRITTEN);
        Packet::SubAck(SubAck { packet_id, reasons, reason_string, user_properties })
    }
}

impl Shard {
    /// A client waits for a commit.
    pub(in crate::shard) fn watch_unanswered(&mut self, net: &mut Net) {
        self.look_after(net, LOOK_NS);
    }

    /// Looks at the clients that wait after this time.
    fn look_after(&mut self, net: &mut Net, pause_ns: u64) {
        if self.durability.unanswered.timer.is_none() {
            let deadline_ns = net.now_ns() + pause_ns;
            let timer = net.set_timer(deadline_ns, TimerToken::Unanswered.encode());
            let was_stalled = self.durability.is_stalled();
            self.durability.unanswered = Unanswered { timer: Some(timer), was_stalled };
        }
    }

    /// Answers the clients that have waited for too long.
    pub(in crate::shard) fn look_at_unanswered(&mut self, net: &mut Net) {
        self.durability.unanswered.timer = None;
        let is_stalled = self.durability.is_stalled();
        let ends = is_stalled && self.durability.unanswered.was_stalled;
        let mut has_time = true;
        for slot in if ends { self.unanswered() } else { Vec::new() } {
            self.end_wait(net, slot);
            has_time = net.charge(1);
            if !has_time {
                break;
            }
        }
        if !self.unanswered().is_empty() {
            self.look_after(net, if has_time { LOOK_NS } else { NEXT_TURN_NS });
        }
    }

    /// The sessions whose clients wait for an answer.
    fn unanswered(&self) -> Vec<SessionSlot> {
        let Some(journal) = &self.durability.journal else { return Vec::new() };
        let waits = |slot: &SessionSlot| {
            self.sessions.get(*slot).is_some_and(|session| session.journal.confirmations.is_some())
        };
        let mut slots: Vec<SessionSlot> = journal.commits.waiting_slots().filter(waits).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn end_wait(&mut self, net: &mut Net, slot: SessionSlot) {
        if self.refuse_pending_connect(net, slot) {
            return;
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(conn) = session.connection() else { return };
        let Some(confirmations) = session.journal.confirmations.take() else { return };
        let terms = *session.terms();
        let committed = self.durability.committed();
        let mut answers = confirmations.into_answers();
        let unfinished = self.refuse_unfinished(slot);
        self.take_back(net, slot, unfinished);
        // The last one first: so each finds what it has changed.
        for answer in answers.iter_mut().rev().filter(|answer| answer.batch > committed) {
            match &mut answer.changed {
                Some(changed) => self.take_back(net, slot, std::mem::take(changed)),
                None => self.stats.journal_unconfirmed_unsubscribes_total.increment(),
            }
        }
        let cannot_tell =
            |answer: &PendingAck| answer.batch > committed && answer.changed.is_none();
        if terms.version() != Version::V5 && answers.iter().any(cannot_tell) {
            // UNSUBACK of 3.x can only say that it is over.
            self.say_goodbye(net, conn, ReasonCode::QUOTA_EXCEEDED);
            self.session_disconnected(net, slot, End::Lost);
            return;
        }
        for answer in answers {
            if answer.batch <= committed {
                net.out(conn).extend_from_slice(&answer.bytes);
                continue;
            }
            let packet = answer.refusal(terms.version());
            if !terms.encode_answer(packet, net.out(conn).as_vec_mut()) {
                self.end_connection(net, conn, ReasonCode::PACKET_TOO_LARGE);
                return;
            }
        }
    }

    /// Subscriptions are after all as they were.
    fn take_back(&mut self, net: &mut Net, slot: SessionSlot, changed: Vec<Changed>) {
        self.stats.journal_refused_subscriptions_total.add(changed.len() as u64);
        let mut changes = Vec::new();
        for Changed { filter, former } in changed.into_iter().rev() {
            // It may have been unsubscribed since.
            if !self.sessions[slot].subscriptions.contains(&filter) {
                continue;
            }
            match former {
                None => {
                    self.forget(net, slot, &filter, &mut changes);
                    self.sweep_anew(slot);
                }
                Some(former) => self.restore_options(slot, &filter, former),
            }
        }
        self.shared.routes.apply(&changes);
        self.refresh_routes();
    }

    /// A CONNECT that waits is refused; false if there is none.
    fn refuse_pending_connect(&mut self, net: &mut Net, slot: SessionSlot) -> bool {
        let Some((conn, packet)) = self.take_pending_connect(slot) else { return false };
        let frame = split_frame(&packet, u32::MAX).ok().flatten();
        match frame.and_then(|frame| Connect::decode(&frame).ok()) {
            Some(connect) => self.refuse_late(net, conn, connect.version),
            // Invariant: it was decoded before, when it came.
            None => self.drop_connection(net, conn),
        }
        self.pending_connect_lost(net, slot);
        true
    }

    fn refuse_late(&mut self, net: &mut Net, conn: ConnId, version: Version) {
        self.stats.journal_refused_connects_total.increment();
        self.refuse(net, conn, version, ReasonCode::QUOTA_EXCEEDED);
    }
}
