//! Confirmations: CONNACK, SUBACK and UNSUBACK of durable sessions wait for their commit.
//!
//! A connection that waits for its session is `Connection::Committing`: its CONNECT is stored as
//! it arrived, and its socket is not read. The session has been taken over or made already, and
//! counts as disconnected.

use std::collections::VecDeque;

use tacho_codec::{Packet, ReasonCode};
use tacho_net::ConnId;
use tacho_session::{BatchSeq, WillState};

use super::unanswered::{Changed, PendingAck};
use crate::delivery::Copy;
use crate::keys::SessionSlot;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::stored_connect::stored_connect;

/// Answers that wait: no honest client asks more before it has got one.
const ANSWERS_MAX: usize = 1_024;

/// What a session's client is to be told once it is true.
#[derive(Default)]
pub(crate) struct Confirmations {
    connect: Option<PendingConnect>,
    /// SUBACK and UNSUBACK in the order of their requests.
    answers: VecDeque<PendingAck>,
}

impl Confirmations {
    /// Whether a connection waits for the session.
    pub(in crate::shard) const fn has_pending_connect(&self) -> bool {
        self.connect.is_some()
    }

    pub(in crate::shard) fn into_answers(self) -> VecDeque<PendingAck> {
        self.answers
    }
}

/// A CONNECT that waits for its commit.
pub(in crate::shard) struct PendingConnect {
    pub(in crate::shard) conn: ConnId,
    pub(in crate::shard) batch: BatchSeq,
    /// Without the bit of bridges, so that it can be decoded again.
    pub(in crate::shard) packet: Vec<u8>,
    /// Goes into CONNACK in the place of what the client sent.
    pub(in crate::shard) authentication_data: Option<Vec<u8>>,
    pub(in crate::shard) is_assigned: bool,
    pub(in crate::shard) will: Option<WillState<Copy>>,
}

/// What a SUBSCRIBE or UNSUBSCRIBE changed, as recorded in the journal.
pub(in crate::shard) struct RecordedChanges {
    /// The last batch that holds a record of it.
    pub(in crate::shard) batch: BatchSeq,
    /// The subscriptions that SUBSCRIBE made or changed.
    pub(in crate::shard) changed: Vec<Changed>,
}

impl Shard {
    /// Lets a connection wait for the commit of its session.
    pub(in crate::shard) fn await_session_commit(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        pending: PendingConnect,
    ) {
        let (conn, batch) = (pending.conn, pending.batch);
        self.connections.await_commit(conn, slot);
        net.pause_read(conn);
        let session = &mut self.sessions[slot];
        session.journal.confirmations.get_or_insert_default().connect = Some(pending);
        self.await_commit(slot, batch);
        self.watch_unanswered(net);
    }

    /// Takes the connection that waits for this session, with its CONNECT.
    pub(in crate::shard) fn take_pending_connect(
        &mut self,
        slot: SessionSlot,
    ) -> Option<(ConnId, Vec<u8>)> {
        let confirmations = self.sessions.get_mut(slot)?.journal.confirmations.as_mut()?;
        let pending = confirmations.connect.take()?;
        Some((pending.conn, pending.packet))
    }

    /// Ends the wait of a connection for this session, if there is one.
    pub(in crate::shard) fn cancel_pending_connect(&mut self, net: &mut Net, slot: SessionSlot) {
        if self.close_pending_connect(net, slot) {
            self.pending_connect_lost(net, slot);
        }
    }

    /// Closes the connection that waits for this session, if there is one; what becomes of the
    /// session is the caller's.
    pub(in crate::shard) fn close_pending_connect(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
    ) -> bool {
        let confirmations = self.sessions[slot].journal.confirmations.as_mut();
        let Some(pending) = confirmations.and_then(|confirmations| confirmations.connect.take())
        else {
            return false;
        };
        self.drop_connection(net, pending.conn);
        true
    }

    /// A connection that waited is gone: the session goes on without it, as it was.
    pub(in crate::shard) fn pending_connect_lost(&mut self, net: &mut Net, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        if let Some(confirmations) = &mut session.journal.confirmations {
            confirmations.connect = None;
        }
        if session.machine.exists() {
            self.record_closed(slot);
        } else {
            self.discard_session(net, slot);
        }
    }

    /// A commit is complete that a session has waited for.
    pub(in crate::shard) fn send_confirmations(&mut self, net: &mut Net, slot: SessionSlot) {
        let committed = self.durability.committed();
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let connection = session.connection();
        let Some(confirmations) = &mut session.journal.confirmations else { return };
        if let Some(conn) = connection {
            while let Some(answer) =
                confirmations.answers.pop_front_if(|answer| answer.batch <= committed)
            {
                net.out(conn).extend_from_slice(&answer.bytes);
            }
        }
        let pending = match &confirmations.connect {
            Some(pending) if pending.batch <= committed => confirmations.connect.take(),
            _ => None,
        };
        if confirmations.connect.is_none() && confirmations.answers.is_empty() {
            session.journal.confirmations = None;
        }
        if let Some(pending) = pending {
            self.complete_connect(net, slot, pending);
        }
    }

    fn complete_connect(&mut self, net: &mut Net, slot: SessionSlot, pending: PendingConnect) {
        let PendingConnect { conn, packet, authentication_data, is_assigned, will, .. } = pending;
        // Invariant: it was decoded before, when it came.
        let Some(mut connect) = stored_connect(&packet) else {
            return self.drop_connection(net, conn);
        };
        if let Some(banned) = self.ban_of_session(net, slot, conn) {
            // Since it was let in: the sweep knows only clients that are connected.
            self.refuse_banned(net, conn, &connect, banned);
            return self.pending_connect_lost(net, slot);
        }
        if self.is_users_end(slot, conn)
            || self.refuses_certificate(net, conn)
            || self.is_shut_out(slot)
        {
            // Since users or rules were read again: the sweep knows only connected clients.
            self.refuse(net, conn, connect.version, ReasonCode::NOT_AUTHORIZED);
            return self.pending_connect_lost(net, slot);
        }
        if authentication_data.is_some() {
            connect.properties.authentication_data = authentication_data.as_deref();
        }
        self.refresh_routes();
        self.open_session(net, conn, slot, &connect, will, is_assigned);
        net.resume_read(conn);
    }

    /// Sends SUBACK or UNSUBACK once what the request changed is committed, and what was asked
    /// before is answered.
    pub(in crate::shard) fn answer_after(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        packet: Packet<'_>,
        recorded: RecordedChanges,
    ) -> Flow {
        let RecordedChanges { batch, changed } = recorded;
        let committed = self.durability.committed();
        let session = &mut self.sessions[slot];
        let waits = session.journal.confirmations.as_ref().is_some_and(|p| !p.answers.is_empty());
        if batch <= committed && !waits {
            return self.answer(net, conn, slot, packet);
        }
        let (packet_id, reasons, changed) = match &packet {
            Packet::SubAck(suback) => (suback.packet_id, suback.reasons.clone(), Some(changed)),
            Packet::UnsubAck(unsuback) => (unsuback.packet_id, unsuback.reasons.clone(), None),
            // Invariant: nothing else is asked in this way.
            _ => return Flow::Continue,
        };
        let mut bytes = Vec::new();
        if !session.terms().encode_answer(packet, &mut bytes) {
            return self.end_connection(net, conn, ReasonCode::PACKET_TOO_LARGE);
        }
        let answers = &mut session.journal.confirmations.get_or_insert_default().answers;
        if answers.len() >= ANSWERS_MAX {
            return self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED);
        }
        answers.push_back(PendingAck { batch, bytes, packet_id, reasons, changed });
        self.await_commit(slot, batch);
        self.watch_unanswered(net);
        Flow::Continue
    }
}
