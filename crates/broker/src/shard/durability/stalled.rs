//! A stalled journal: its disk is full or failing, or it is at its limit, and it accepts nothing.
//!
//! Clients of durable sessions are told so at once instead of waiting for a commit that may be
//! hours away. What is stored already is available: a session is resumed and drained. Whatever
//! would have to be stored is refused: making a session, ending one by a clean start, a
//! subscription. An UNSUBSCRIBE is carried out at once, because it only reduces what has to be
//! stored, and refusing it would let the queue of a client grow that wants nothing more. Its
//! UNSUBACK still waits, since it promises that the subscription is gone after a restart too. The
//! client may disconnect and connect again meanwhile.

use crate::config::Level;
use crate::keys::ClientKey;
use crate::shard::Shard;

/// When a CONNECT is answered, as far as the journal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum ConnectAnswer {
    /// Once what it changes is committed: at once if it changes nothing there.
    Committed,
    /// Now; what it changes is written down with what comes later.
    AtOnce,
    /// Not at present.
    Refused,
}

/// What a CONNECT asks for.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct ConnectRequest {
    pub(in crate::shard) clean_start: bool,
    /// How safe the session is to be if it is a new one.
    pub(in crate::shard) level: Level,
    pub(in crate::shard) expiry_s: u32,
}

impl Shard {
    /// Whether a client gets its session now. What was due for the session has to be done before.
    pub(in crate::shard) fn answer_to_connect(
        &self,
        client: &ClientKey,
        asked: ConnectRequest,
    ) -> ConnectAnswer {
        if !self.durability.is_stalled() {
            return ConnectAnswer::Committed;
        }
        let session = self.sessions.find(client).map(|slot| &self.sessions[slot]);
        let is_journaled = session.is_some_and(|session| session.journal.is_durable());
        let Some(session) = session.filter(|session| !asked.clean_start && session.is_resumable())
        else {
            // Neither the end of a durable session nor a new one can be written.
            let ends = is_journaled || self.is_end_unsafe(client);
            return if ends || asked.level.journal_level().is_some() {
                ConnectAnswer::Refused
            } else {
                ConnectAnswer::Committed
            };
        };
        if !is_journaled {
            return ConnectAnswer::Committed;
        }
        // The journal knows the session with the expiry that it has, and a longer one is a promise.
        let is_longer = asked.expiry_s > session.machine.expiry_s();
        // Each time something is noted that stays in memory until it can be written.
        let is_pressed =
            self.durability.journal.as_ref().is_some_and(|journal| journal.is_pressed());
        if is_longer || is_pressed { ConnectAnswer::Refused } else { ConnectAnswer::AtOnce }
    }
}
