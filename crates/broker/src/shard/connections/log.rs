//! The log of connections, at the level `debug` (`-v`): a line when a client is connected, and one
//! with the reason and the duration when it is not any more.
//!
//! What clients choose is escaped, so that no name can forge a line.

use std::fmt::{self, Display};
use std::time::Duration;

use tacho_codec::{Connect, ReasonCode};
use tacho_net::{Closed, ConnId, ServerTransport};
use tracing::Level;

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

impl Shard {
    /// A client is connected to its session.
    pub(super) fn log_begin(
        &self,
        net: &Net,
        conn: ConnId,
        slot: SessionSlot,
        connect: &Connect<'_>,
    ) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let client = self.sessions[slot].key().client_id.escape_debug();
        let (listener, _) = self.connections.origin(conn);
        tracing::debug!(
            %client,
            address = %OrUnknown(net.peer_addr(conn)),
            user = %connect.username.unwrap_or_default().escape_debug(),
            protocol = %connect.version,
            listener = %format_args!(
                "{}://{}",
                transport(self.shared.transports.get(usize::from(listener))),
                OrUnknown(net.local_addr(conn)),
            ),
            clean_start = connect.clean_start,
            keep_alive_s = connect.keep_alive_s,
            "connected"
        );
    }

    /// A client was refused.
    pub(super) fn log_refusal(&self, net: &Net, conn: ConnId, reason: ReasonCode) {
        if tracing::enabled!(Level::DEBUG) {
            tracing::debug!(address = %OrUnknown(net.peer_addr(conn)), %reason, "refused");
        }
    }

    /// A client ended its connection.
    pub(super) fn log_disconnect(&self, net: &Net, slot: SessionSlot, reason: ReasonCode) {
        self.log_end(net, slot, &format_args!("DISCONNECT by the client: {reason}"));
    }

    /// The broker ends a client's connection.
    pub(super) fn log_goodbye(
        &self,
        net: &Net,
        slot: SessionSlot,
        reason: ReasonCode,
        why: Option<&'static str>,
    ) {
        match why {
            Some(why) => self.log_end(net, slot, &format_args!("by the broker: {reason}: {why}")),
            None => self.log_end(net, slot, &format_args!("by the broker: {reason}")),
        }
    }

    /// The broker ends the connection of a client that does not read.
    pub(in crate::shard) fn log_slow_reader(&self, net: &Net, slot: SessionSlot) {
        self.log_end(net, slot, &"by the broker: the client does not read, and memory is short");
    }

    /// A connection ended without DISCONNECT.
    pub(super) fn log_loss(&self, net: &Net, slot: SessionSlot, why: &Closed) {
        match why {
            Closed::ByPeer => self.log_end(net, slot, &"closed by the client without DISCONNECT"),
            Closed::ByUs => self.log_end(net, slot, &"closed by the broker"),
            Closed::Error(error) => self.log_end(net, slot, &format_args!("lost: {error}")),
        }
    }

    fn log_end(&self, net: &Net, slot: SessionSlot, reason: &dyn Display) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let session = &self.sessions[slot];
        let Some(conn) = session.connection() else { return };
        let (_, since_ns) = self.connections.origin(conn);
        let length = Duration::from_nanos(net.now_ns().saturating_sub(since_ns));
        tracing::debug!(
            client = %session.key().client_id.escape_debug(),
            reason = %format_args!("\"{reason}\""),
            duration_s = %format_args!("{:.3}", length.as_secs_f64()),
            "disconnected"
        );
    }
}

const fn transport(transport: Option<&ServerTransport>) -> &'static str {
    match transport {
        None | Some(ServerTransport::Tcp) => "tcp",
        Some(ServerTransport::Tls(_)) => "tls",
        Some(ServerTransport::Ws(_)) => "ws",
        Some(ServerTransport::Wss(..)) => "wss",
    }
}

/// A value that the system may not tell.
pub(super) struct OrUnknown<T>(pub(super) Option<T>);

impl<T: Display> Display for OrUnknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}
