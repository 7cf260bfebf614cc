//! Bans: who may not connect, whatever the rules say.
//!
//! Without bans a question costs a branch. Messages never ask: a ban ends the connection.

use std::borrow::Cow;

use tacho_access::Ban;
use tacho_codec::{Connect, ReasonCode};
use tacho_net::ConnId;
use tacho_session::server::End;

use crate::access::AuditKind;
use crate::keys::SessionSlot;
use crate::policy::Policy;
use crate::shard::{Net, Shard};

/// What is banned of a client, with the reason that the file gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shard) struct Banned {
    what: &'static str,
    reason: Option<Box<str>>,
}

impl Banned {
    fn new(what: &'static str, ban: &Ban) -> Self {
        Self { what, reason: ban.reason().map(Into::into) }
    }

    pub(in crate::shard) fn sentence(&self) -> Cow<'static, str> {
        match &self.reason {
            None => Cow::Borrowed(self.what),
            Some(reason) => Cow::Owned(format!("{}: {reason}", self.what)),
        }
    }
}

impl Shard {
    /// What has the bans, if there are any.
    fn bans(&self) -> Option<&Policy> {
        let policy = &*self.access.policy;
        policy.has_bans().then_some(policy)
    }

    /// Seconds since 1970.
    pub(in crate::shard) fn unix_s(&self, net: &Net) -> i64 {
        self.shared.access.unix_offset.unix_s(net.now_ns())
    }

    /// Whether the address of a connection is banned.
    pub(in crate::shard) fn ban_of_address(&self, net: &Net, conn: ConnId) -> Option<Banned> {
        // Asking for the address is a system call.
        let bans = self.bans().filter(|bans| bans.has_banned_addresses())?;
        let ban = bans.ban_of_address(net.peer_addr(conn)?.ip(), self.unix_s(net))?;
        Some(Banned::new("the address is banned", ban))
    }

    /// Whether a client is banned that says who it is, or by its address.
    pub(in crate::shard) fn ban_of(
        &self,
        net: &Net,
        conn: ConnId,
        client_id: &str,
        user: Option<&str>,
    ) -> Option<Banned> {
        let (bans, unix_s) = (self.bans()?, self.unix_s(net));
        if let Some(ban) = bans.ban_of_client_id(client_id, unix_s) {
            return Some(Banned::new("the client identifier is banned", ban));
        }
        if let Some(ban) = user.and_then(|user| bans.ban_of_user(user, unix_s)) {
            return Some(Banned::new("the user is banned", ban));
        }
        self.ban_of_address(net, conn)
    }

    /// The same by a CONNECT: the name need not be verified, so that no password is for nothing.
    pub(in crate::shard) fn ban_of_connect(
        &self,
        net: &Net,
        conn: ConnId,
        connect: &Connect<'_>,
    ) -> Option<Banned> {
        self.ban_of(net, conn, connect.client_id, connect.username)
    }

    /// The same of a session and a connection, which is the session's or waits for it.
    pub(in crate::shard) fn ban_of_session(
        &self,
        net: &Net,
        slot: SessionSlot,
        conn: ConnId,
    ) -> Option<Banned> {
        let session = &self.sessions[slot];
        // Links are this broker's own.
        if session.link().is_some() {
            return None;
        }
        self.ban_of(net, conn, &session.key().client_id, session.access.user_name())
    }

    /// Disconnects the client of a session if it has been banned: true if it was.
    pub(super) fn end_banned(&mut self, net: &mut Net, slot: SessionSlot, conn: ConnId) -> bool {
        let Some(banned) = self.ban_of_session(net, slot, conn) else { return false };
        let why = banned.sentence();
        self.stats.ended_by_bans_total.increment();
        self.log_denied(net, slot, "stay connected", "", &why);
        self.audit_ended(net, slot, AuditKind::ClientDisconnected, None, &why);
        // 0x8A is for CONNACK only (2.4).
        self.say_goodbye(net, conn, ReasonCode::ADMINISTRATIVE_ACTION);
        self.session_disconnected(net, slot, End::Lost);
        true
    }
}
