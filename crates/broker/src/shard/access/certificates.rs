//! Certificates of connected clients, judged anew when CAs or revocation lists have changed.

use tacho_codec::ReasonCode;
use tacho_net::ConnId;
use tacho_session::server::End;

use crate::access::AuditKind;
use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// Why a client is disconnected or refused.
pub(in crate::shard) const ENDED: &str =
    "the certificate has been revoked, has expired, or its CA is not trusted any more";
/// What verifying a certificate costs, in units of a turn's work: some 100 us.
const UNITS: u32 = 64;

impl Shard {
    /// Whether the certificate of a connection's client was accepted and would not be now.
    pub(in crate::shard) fn refuses_certificate(&self, net: &Net, conn: ConnId) -> bool {
        let Some(peer) = net.peer_certificates(conn) else { return false };
        let part = self.shared.listeners.get(usize::from(self.connections.listener_of(conn)));
        let tls = part.as_ref().and_then(|part| part.transport.tls());
        tls.is_some_and(|tls| !tls.still_accepts(&peer))
    }

    /// Disconnects the client of a session if its certificate is not accepted any more: true if it
    /// was.
    pub(super) fn end_refused_certificate(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        conn: ConnId,
    ) -> bool {
        if net.peer_certificates(conn).is_none() || self.sessions[slot].link().is_some() {
            return false;
        }
        let is_refused = self.refuses_certificate(net, conn);
        // Behind it: the clock is looked at when the work is done.
        net.charge(UNITS);
        if !is_refused {
            return false;
        }
        self.stats.ended_certificates_total.increment();
        self.log_denied(net, slot, "stay connected", "", &ENDED);
        self.audit_ended(net, slot, AuditKind::ClientDisconnected, None, ENDED);
        self.say_goodbye(net, conn, ReasonCode::NOT_AUTHORIZED);
        self.session_disconnected(net, slot, End::Lost);
        true
    }
}
