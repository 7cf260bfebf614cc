//! Full queues of sessions: publishers of what would have to wait there keep their messages, or the
//! session ends, by its policy.
//!
//! A session that refuses is marked in the route map, filter by filter. So every shard knows before
//! it takes a message in whether a receiver is full, as late as the mark takes to get there: what
//! was routed before is queued.

use std::collections::VecDeque;

use tacho_codec::ReasonCode;
use tacho_session::server::End;

use crate::config::QueuePolicy;
use crate::delivery::Body;
use crate::keys::{SessionRef, SessionSlot};
use crate::mail::Mail;
use crate::shard::{Net, Shard};

/// Filters marked or unmarked per turn: a few hundred microseconds.
const MARKS_MAX: usize = 128;
/// Sessions ended per turn.
const ENDS_MAX: usize = 16;
/// Between two log lines about the same full session.
const TOLD_AGAIN_NS: u64 = 60_000_000_000;

/// Between two looks for expired messages in full queues. No message comes to these, so that
/// nothing else drops what has expired.
const LOOK_NS: u64 = 1_000_000_000;
/// Sessions looked at per turn.
const LOOKED_AT_MAX: usize = 256;

/// Sessions that end because their queue is full.
#[derive(Debug, Default)]
pub(super) struct EndingSessions(VecDeque<SessionRef>);

/// The look for expired messages in full queues.
#[derive(Debug, Default)]
pub(super) struct ExpiryLook {
    /// When it goes on; `None` while no session is full.
    pub(super) due_ns: Option<u64>,
    left: Vec<SessionSlot>,
}

impl Shard {
    /// Once per turn: acts on queues that have become full or have room again. True if there is
    /// more to do.
    #[inline]
    pub(in crate::shard) fn watch_queues(&mut self, net: &mut Net) -> bool {
        if self.sessions.has_level_changes() {
            self.note_full_sessions(net);
        }
        if self.routing.owes_marks() {
            self.mark_full_sessions(net);
        }
        if !self.admission.ending.0.is_empty() {
            self.end_full_sessions(net);
        }
        if self.admission.expiry_look.due_ns.is_some_and(|due_ns| due_ns <= net.now_ns()) {
            self.drop_expired_of_full(net);
        }
        self.routing.owes_marks() || !self.admission.ending.0.is_empty()
    }

    /// Drops expired messages at the head of full queues, some queues per turn.
    #[cold]
    fn drop_expired_of_full(&mut self, net: &Net) {
        let now_ns = net.now_ns();
        let look = &mut self.admission.expiry_look;
        if look.left.is_empty() {
            look.left = self.routing.full_sessions();
        }
        let rest = look.left.len().saturating_sub(LOOKED_AT_MAX);
        let slots = look.left.split_off(rest);
        look.due_ns = match (rest, slots.is_empty()) {
            (0, true) => None,
            (0, false) => Some(now_ns + LOOK_NS),
            _ => Some(now_ns),
        };
        for slot in slots {
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            self.durability.act(slot, session.subject(), |machine, recorder| {
                machine.drop_expired(now_ns, recorder);
            });
            self.count_dropped(net, slot);
            self.sessions.count_places(slot);
        }
    }

    #[cold]
    fn note_full_sessions(&mut self, net: &mut Net) {
        for slot in self.sessions.take_level_changes() {
            let Some(session) = self.sessions.get(slot) else { continue };
            let (is_full, was_full) = (session.is_full(), self.routing.is_full(slot));
            if is_full && !was_full {
                if self.routing.session_filled(slot, &session.subscriptions) {
                    self.shared.room.queue_filled();
                    self.stats.sessions_full.increment();
                }
                self.bind_no_more(slot);
                let look = &mut self.admission.expiry_look;
                let due_ns = net.now_ns() + LOOK_NS;
                look.due_ns.get_or_insert(due_ns);
                self.tell_full(net, slot);
            } else if was_full && !is_full {
                self.routing.session_has_room(slot);
                self.bind_again(net, slot);
                let client_id = &*self.sessions[slot].key().client_id;
                tracing::debug!(shard = self.id, client_id, "the session's queue has room again");
            }
        }
    }

    #[cold]
    fn mark_full_sessions(&mut self, net: &mut Net) {
        let mut changes = Vec::new();
        let with_room = self.routing.mark_full(MARKS_MAX, &mut changes);
        self.shared.routes.apply(&changes);
        self.refresh_routes();
        for _ in 0..with_room {
            self.full_session_gone(net);
        }
    }

    /// A full session has room, or has ended.
    fn full_session_gone(&mut self, net: &mut Net) {
        self.stats.sessions_full.decrement();
        self.shared.room.queue_has_room();
        self.tell_room(net);
    }

    /// A session is about to end. Its slot has no other session before its subscriptions are gone.
    pub(in crate::shard) fn full_session_ended(&mut self, net: &mut Net, slot: SessionSlot) {
        self.bind_again(net, slot);
        if self.routing.is_full(slot) {
            self.routing.session_has_room(slot);
        }
    }

    /// There is room again: shards that hold publishers back try them again.
    pub(in crate::shard) fn tell_room(&self, net: &mut Net) {
        for shard in self.shared.room.make() {
            if shard != self.id {
                net.post(shard, Mail::RoomMade);
            }
        }
    }

    /// One log line for a session that stops publishers, at most once a minute.
    fn tell_full(&mut self, net: &Net, slot: SessionSlot) {
        let now_ns = net.now_ns();
        let session = &mut self.sessions[slot];
        if !session.pressure.told_full().may_tell(now_ns, TOLD_AGAIN_NS) {
            return;
        }
        let machine = &session.machine;
        tracing::warn!(
            shard = self.id,
            client_id = &*session.key().client_id,
            connected = session.connection().is_some(),
            messages = machine.queue_len(),
            bytes = machine.queue_bytes(),
            "the session's queue is full: publishers to its subscriptions are refused or held back"
        );
    }

    /// A message did not fit into the queue of a session: it ends with this turn if its policy says
    /// so.
    #[cold]
    pub(in crate::shard) fn end_if_so_configured(&mut self, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        if session.queue_policy() == QueuePolicy::EndSession && session.pressure.ends() {
            let session = self.sessions.reference(self.id, slot);
            self.admission.ending.0.push_back(session);
        }
    }

    #[cold]
    fn end_full_sessions(&mut self, net: &mut Net) {
        let ending = &mut self.admission.ending.0;
        let first: Vec<SessionRef> = ending.drain(..ending.len().min(ENDS_MAX)).collect();
        for session in first {
            if let Some(slot) = self.sessions.resolve(session) {
                self.end_full_session(net, slot);
            }
        }
    }

    fn end_full_session(&mut self, net: &mut Net, slot: SessionSlot) {
        let session = &self.sessions[slot];
        let messages = session.machine.queue_len() + session.machine.inflight_len();
        let (connection, client_id) = (session.connection(), &*session.key().client_id);
        tracing::warn!(
            shard = self.id,
            client_id,
            connected = connection.is_some(),
            messages,
            "the session is ended and its messages are dropped: its queue is full"
        );
        self.stats.ended_queue_full_total.increment();
        self.stats.dropped_queue_full_total.add(messages as u64);
        if let Some(conn) = connection {
            self.say_goodbye(net, conn, ReasonCode::QUOTA_EXCEEDED);
            self.session_disconnected(net, slot, End::ProtocolError);
        }
        let Some(session) = self.sessions.get(slot) else { return };
        // The session's end publishes a will that waits [MQTT-3.1.3-9].
        let will = session.machine.will().map(|(will, _)| will.message.message.clone());
        if let Some(Body::Here(will)) = will {
            self.publish_will(net, slot, &will);
        }
        self.discard_session(net, slot);
    }
}
