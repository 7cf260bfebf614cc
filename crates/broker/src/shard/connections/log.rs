//! The log of connections, at the level `debug` (`-v`): a line when a client is connected, and one
//! with the reason and the duration when it is not any more.
//!
//! What clients choose is escaped, so that no name can forge a line.

use std::fmt::{self, Display};
use std::time::Duration;

use tacho_codec::{Connect, ReasonCode};
use tacho_net::ConnId;
use tracing::Level;

use crate::ending::{Ending, LastConnection};
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
        self.tell_connected(net, slot);
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let client = self.sessions[slot].key().client_id.escape_debug();
        let (listener, _) = self.connections.origin(conn);
        let part = self.shared.listeners.get(usize::from(listener));
        tracing::debug!(
            %client,
            address = %OrUnknown(net.peer_addr(conn)),
            user = %connect.username.unwrap_or_default().escape_debug(),
            protocol = %connect.version,
            listener = %format_args!(
                "{}://{}",
                part.as_ref().map_or("tcp", |part| part.listener.transport.name()),
                OrUnknown(net.local_addr(conn)),
            ),
            clean_start = connect.clean_start,
            keep_alive_s = connect.keep_alive_s,
            "connected"
        );
    }

    /// A client was refused.
    pub(super) fn log_refusal(&self, net: &Net, conn: ConnId, reason: ReasonCode) {
        self.tell_refused(net, conn, reason);
        if tracing::enabled!(Level::DEBUG) {
            tracing::debug!(address = %OrUnknown(net.peer_addr(conn)), %reason, "refused");
        }
    }

    /// The connection of a client ends: the log, the session and the watchers of events learn how.
    pub(in crate::shard) fn note_end(&mut self, net: &Net, slot: SessionSlot, ending: Ending) {
        let Some(conn) = self.sessions[slot].connection() else { return };
        let (_, since_ns) = self.connections.origin(conn);
        let duration_ns = net.now_ns().saturating_sub(since_ns);
        if tracing::enabled!(Level::DEBUG) {
            tracing::debug!(
                client = %self.sessions[slot].key().client_id.escape_debug(),
                reason = %format_args!("\"{ending}\""),
                duration_s = %format_args!("{:.3}", Duration::from_nanos(duration_ns).as_secs_f64()),
                "disconnected"
            );
        }
        self.tell_ended(net, slot, &ending);
        self.trace_ended(net, slot, &ending);
        let last = LastConnection { ending, ended_ns: net.now_ns(), duration_ns };
        self.sessions[slot].note_last_connection(last);
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
