//! Events of this shard's clients and links, for the watchers of the management API.

use std::net::SocketAddr;

use tacho_codec::ReasonCode;
use tacho_net::ConnId;

use super::{Net, Shard};
use crate::ending::Ending;
use crate::events::{Event, EventKind, cut};
use crate::keys::SessionSlot;

impl Shard {
    /// A client is connected.
    #[inline]
    pub(super) fn tell_connected(&self, net: &Net, slot: SessionSlot) {
        if self.shared.events.are_watched() {
            self.tell_of(net, slot, EventKind::Connected, None);
        }
    }

    /// A client's connection has ended.
    #[inline]
    pub(super) fn tell_ended(&self, net: &Net, slot: SessionSlot, ending: &Ending) {
        if self.shared.events.are_watched() {
            let kind = match ending.is_takeover() {
                true => EventKind::TakenOver,
                false => EventKind::Disconnected,
            };
            self.tell_of(net, slot, kind, Some(ending.to_string()));
        }
    }

    /// A CONNECT was refused.
    #[inline]
    pub(super) fn tell_refused(&self, net: &Net, conn: ConnId, reason: ReasonCode) {
        if self.shared.events.are_watched() {
            self.shared.events.tell(Event {
                address: net.peer_addr(conn),
                reason: Some(reason.to_string()),
                ..self.event(net.now_ns(), EventKind::Refused)
            });
        }
    }

    /// A login was refused.
    pub(super) fn tell_login_refused(
        &self,
        net: &Net,
        address: Option<SocketAddr>,
        (client_id, user): (Option<&str>, Option<&str>),
        why: &str,
    ) {
        if self.shared.events.are_watched() {
            self.shared.events.tell(Event {
                client_id: client_id.map(cut),
                user: user.map(cut),
                address,
                reason: Some(why.to_owned()),
                ..self.event(net.now_ns(), EventKind::LoginRefused)
            });
        }
    }

    /// A client has missed messages: so many since that was last told.
    pub(super) fn tell_dropped(&self, now_ns: u64, slot: SessionSlot, count: u64) {
        if self.shared.events.are_watched() {
            let session = &self.sessions[slot];
            let reason = "the client is slow, or does not come back for its messages";
            self.shared.events.tell(Event {
                client_id: Some(cut(&session.key().client_id)),
                user: session.access.user_name().map(cut),
                reason: Some(reason.to_owned()),
                count: Some(count),
                ..self.event(now_ns, EventKind::Dropped)
            });
        }
    }

    /// This shard sheds more load than before, or less.
    pub(super) fn tell_overload(&self, now_ns: u64, (before, now): (&str, &str)) {
        if self.shared.events.are_watched() {
            self.shared.events.tell(Event {
                reason: Some(format!("shard {}: {before} -> {now}", self.id)),
                ..self.event(now_ns, EventKind::Overload)
            });
        }
    }

    /// A connection of a bridge is up, or down with the reason.
    pub(super) fn tell_bridge(&self, now_ns: u64, bridge: &str, down: Option<&str>) {
        if self.shared.events.are_watched() {
            let kind = match down {
                None => EventKind::BridgeUp,
                Some(_) => EventKind::BridgeDown,
            };
            self.shared.events.tell(Event {
                bridge: Some(bridge.to_owned()),
                reason: down.map(str::to_owned),
                ..self.event(now_ns, kind)
            });
        }
    }

    #[cold]
    fn tell_of(&self, net: &Net, slot: SessionSlot, kind: EventKind, reason: Option<String>) {
        let session = &self.sessions[slot];
        self.shared.events.tell(Event {
            client_id: Some(cut(&session.key().client_id)),
            user: session.access.user_name().map(cut),
            address: session.connection().and_then(|conn| net.peer_addr(conn)),
            reason,
            ..self.event(net.now_ns(), kind)
        });
    }

    fn event(&self, now_ns: u64, kind: EventKind) -> Event {
        Event::new(kind, self.shared.access.unix_offset.unix_ms(now_ns))
    }
}
