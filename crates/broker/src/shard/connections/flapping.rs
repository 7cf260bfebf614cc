//! Clients that connect and leave again and again: counted by address, so that other identifiers
//! each time do not help, and by client identifier; too many ban for a while.

use tacho_net::ConnId;

use crate::access::{AuditEvent, AuditKind, Name, SharedAccess};
use crate::keys::SessionSlot;
use crate::shard::access::Shown;
use crate::shard::{Net, Shard};

impl Shard {
    /// A connection is over, and the broker has not refused or ended it for reasons of its own;
    /// `slot` is the session of its client, if that was connected.
    #[inline]
    pub(in crate::shard) fn count_flap(
        &mut self,
        net: &Net,
        conn: ConnId,
        slot: Option<SessionSlot>,
    ) {
        if self.shared.access.bans.counts_flaps() {
            self.note_flap(net, conn, slot);
        }
    }

    #[cold]
    fn note_flap(&mut self, net: &Net, conn: ConnId, slot: Option<SessionSlot>) {
        let now_ns = net.now_ns();
        let listener = usize::from(self.connections.listener_of(conn));
        let part = self.shared.listeners.get(listener);
        let proxies = part.as_ref().and_then(|part| part.gate.proxies.as_ref());
        let SharedAccess { bans, settings, .. } = &self.shared.access;
        let ban_s = settings.flapping_ban_s;
        let why = |count: u32| format!("{count} connections that ended, banned for {ban_s} s");
        let address = net.peer_addr(conn);
        // A proxy that looks whether the broker is there is no client.
        let address = address.filter(|address| !proxies.is_some_and(|p| p.trusts(address.ip())));
        if let Some(address) = address
            && bans.address_flapped(address.ip(), now_ns)
        {
            let why = why(settings.flapping_address_max);
            self.tell_banned_address(net, address, &why);
        }
        let Some(slot) = slot else { return };
        let client_id = &self.sessions[slot].key().client_id;
        let SharedAccess { bans, audit, settings, .. } = &self.shared.access;
        if !bans.client_id_flapped(client_id, now_ns) {
            return;
        }
        let why = why(settings.flapping_client_id_max);
        audit.note(AuditEvent {
            event: AuditKind::ClientIdBanned,
            address,
            client_id: Some(Name::new(client_id)),
            why: Some(why.clone()),
            ..AuditEvent::default()
        });
        if let Some(untold) = self.access.line(now_ns) {
            let client = Shown(client_id);
            tracing::warn!(
                %client,
                why = %format_args!("\"{why}\""),
                untold,
                "client identifier banned"
            );
        }
    }
}
