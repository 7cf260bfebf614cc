//! Timers, the ends of sessions, and the broker's own end.

use tacho_codec::ReasonCode;
use tacho_session::ProtocolError;
use tacho_session::server::{End, TimeoutEvent};

use crate::delivery::Body;
use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// What the end of a connection costs its session.
const DISCONNECT_UNITS: u32 = 4;
/// Queued messages that are dropped in a microsecond.
const DROPPED_PER_UNIT: usize = 64;

impl Shard {
    /// A timer has fired for a session; `generation` has as many bits as fit into a timer.
    pub(in crate::shard) fn session_timer_fired(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        generation: u32,
    ) {
        if self.sessions.timer_fired(slot, generation) {
            self.session_timeout(net, slot);
        }
    }

    /// Does what is due for a session.
    pub(in crate::shard) fn session_timeout(&mut self, net: &mut Net, slot: SessionSlot) {
        let now_ns = net.now_ns();
        if let Some(session) = self.sessions.get_mut(slot)
            && session.connection().is_some_and(|conn| net.is_held_back(conn))
        {
            // A client that we do not read cannot be blamed for its silence. After a pause of the
            // process it is overdue, while its one read a second is too.
            session.machine.handle_activity(now_ns);
        }
        while let Some(session) = self.sessions.get_mut(slot) {
            match session.machine.handle_timeout(now_ns) {
                Some(TimeoutEvent::KeepAliveExpired) => {
                    // [MQTT-3.1.2-22]; 5.0 is told why (3.14.2.1).
                    if let Some(conn) = session.connection() {
                        self.say_goodbye(net, conn, ReasonCode::KEEP_ALIVE_TIMEOUT);
                    }
                    self.session_disconnected(net, slot, End::Lost);
                }
                Some(TimeoutEvent::PublishWill(will)) => {
                    if let Body::Here(will) = &will.message {
                        self.publish_will(net, slot, will);
                    }
                    self.record_closed(slot);
                }
                Some(TimeoutEvent::SessionExpired) => {
                    self.stats.sessions_expired_total.increment();
                    self.discard_session(net, slot);
                }
                None => break,
            }
        }
        if self.sessions.contains(slot) {
            self.sessions.arm_timer(net, slot);
        }
    }

    /// A session's connection is over, for whatever reason. The socket is the caller's.
    /// An error says that the client's DISCONNECT itself broke the protocol.
    pub(in crate::shard) fn session_disconnected(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        end: End,
    ) -> Option<ProtocolError> {
        let now_ns = net.now_ns();
        net.charge(DISCONNECT_UNITS);
        self.members_connected(net, slot, false);
        self.sessions.disconnect(slot);
        self.slow_time_ended(now_ns, slot);
        let session = &mut self.sessions[slot];
        session.journal.disconnected();
        let effects = session.machine.disconnect(now_ns, end);
        if let Some(Body::Here(will)) = effects.publish_will.map(|will| will.message) {
            self.publish_will(net, slot, &will);
        }
        if effects.session_ended {
            self.discard_session(net, slot);
        } else {
            self.pass_on_unsent(net, slot);
            self.sessions.arm_timer(net, slot);
            self.record_closed(slot);
            self.unload(slot);
        }
        effects.error
    }

    /// Ends a session: its queues are gone, its subscriptions count no more, and nothing is
    /// delivered to it. They leave the indexes in this turn or later ones.
    pub(in crate::shard) fn discard_session(&mut self, net: &mut Net, slot: SessionSlot) {
        self.close_pending_connect(net, slot);
        let dropped = self.sessions[slot].machine.queue_len() / DROPPED_PER_UNIT;
        net.charge(u32::try_from(dropped).unwrap_or(u32::MAX));
        let undelivered = self.take_undelivered_of_groups(slot);
        self.full_session_ended(net, slot);
        let memberships = self.end_memberships(net, slot);
        let mut session = self.sessions.end(slot);
        self.end_hand_offs(&session.journal);
        session.timer.cancel(net);
        self.count_sessions();
        self.redistribute(net, undelivered);
        self.record_session_end(session.key(), &session.journal);
        let is_durable = session.journal.is_durable();
        self.remove_later(slot, is_durable, &mut session.subscriptions, memberships);
    }
}
