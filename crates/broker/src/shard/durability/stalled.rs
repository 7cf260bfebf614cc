//! What clients of durable sessions get while the journal takes nothing: its disk is full or
//! failing, or it is at its limit.
//!
//! They are told so at once instead of waiting for a commit that may be hours away. What is kept
//! already can be had: a session is resumed and drained. What would have to be kept is refused: a
//! session that is made or ends by a clean start, a subscription. An UNSUBSCRIBE is none of these.
//! It is done at once, as it can only lessen what has to be kept, and refusing it would make the
//! queue grow of a client that wants nothing more; but its UNSUBACK waits, for it says that the
//! subscription is not there after a restart either. Its client may go and come again meanwhile.

use crate::config::Level;
use crate::keys::ClientKey;
use crate::shard::Shard;
use crate::shard::sessions::Session;

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
pub(in crate::shard) struct Asked {
    pub(in crate::shard) clean_start: bool,
    /// How safe the session is to be if it is a new one.
    pub(in crate::shard) level: Level,
    pub(in crate::shard) expiry_s: u32,
}

impl Shard {
    /// Whether a client gets its session now. What was due for the session has to be done before.
    pub(in crate::shard) fn admission(&self, client: &ClientKey, asked: Asked) -> ConnectAnswer {
        if !self.durability.is_stalled() {
            return ConnectAnswer::Committed;
        }
        let session = self.sessions.find(client).map(|slot| &self.sessions[slot]);
        let is_kept = session.is_some_and(|session| session.kept.is_some());
        let Some(session) = session.filter(|session| !asked.clean_start && is_resumable(session))
        else {
            // Neither the end of a durable session nor a new one can be written.
            let ends = is_kept || self.is_end_unsafe(client);
            return if ends || asked.level.journal_level().is_some() {
                ConnectAnswer::Refused
            } else {
                ConnectAnswer::Committed
            };
        };
        if !is_kept {
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

/// Whether a session goes on when its client connects: being taken over ends one that lasts no
/// longer than its connection.
fn is_resumable(session: &Session) -> bool {
    session.machine.exists() && (session.connection.is_none() || session.machine.expiry_s() > 0)
}
