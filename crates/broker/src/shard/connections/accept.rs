//! Connections come and go.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;

use tacho_net::proxy::HeaderError;
use tacho_net::ws::OriginError;
use tacho_net::{Closed, ConnId, ServerTransport};
use tacho_session::server::End;

use super::Connection;
use super::log::OrUnknown;
use crate::ending::Ending;
use crate::gate::{ConnectionPermits, Excess, Gate};
use crate::listeners::ListenerPart;
use crate::mail::Adopted;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

impl Shard {
    pub(in crate::shard) fn connection_accepted(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        listener: usize,
    ) {
        self.stats.accepted_total.increment();
        let socket = self.shared.sockets.try_take();
        let is_above = socket.is_none();
        let socket = socket.unwrap_or_else(|| self.shared.sockets.take());
        self.connections.came(conn, ConnectionPermits::of_socket(socket));
        self.connections.set(conn, Connection::Closing);
        let is_full = is_above && !self.close_oldest_handshake(net);
        if self.is_stopping() || is_full {
            self.stats.refused_connections_total.increment();
            net.abort(conn);
            return;
        }
        let Some(part) = self.shared.listeners.get(listener) else { return net.abort(conn) };
        let is_admitted = match &part.gate.proxies {
            Some(proxies) => {
                let proxy = net.peer_addr(conn);
                let is_trusted = proxy.is_some_and(|proxy| proxies.trusts(proxy.ip()));
                if is_trusted {
                    net.expect_proxy_header(conn);
                } else {
                    self.stats.refused_proxies_total.increment();
                    let why = "the listener is for proxies, and the address is not in \
                               `proxy_trusted`";
                    self.tell_refused_connection(net, proxy, &why);
                }
                is_trusted
            }
            None => self.admit(net, conn, &part),
        };
        if is_admitted {
            self.open(net, conn, listener as u16);
        } else {
            net.abort(conn);
        }
    }

    /// A proxy has told the address of its client.
    pub(in crate::shard) fn connection_proxied(&mut self, net: &mut Net, conn: ConnId) {
        let Connection::Opening { listener, .. } = self.connections.get(conn) else { return };
        let part = self.shared.listeners.get(usize::from(listener));
        if !part.is_some_and(|part| self.admit(net, conn, &part)) {
            self.drop_connection(net, conn);
            net.abort(conn);
        }
    }

    /// Whether a connection whose client's address is known is served; begins its transport.
    fn admit(&mut self, net: &mut Net, conn: ConnId, part: &ListenerPart) -> bool {
        if self.shared.access.bans.counts_flaps() {
            net.keep_peer_addr(conn);
        }
        // Before a handshake is paid for. Others are told at CONNECT.
        let transport = &part.transport;
        let is_encrypted = matches!(transport, ServerTransport::Tls(_) | ServerTransport::Wss(..));
        if is_encrypted && self.offence_of_address(net, conn).is_some() {
            self.stats.refused_banned_total.increment();
            return false;
        }
        if is_encrypted && let Some(banned) = self.ban_of_address(net, conn) {
            self.tell_banned_connection(net, conn, &banned);
            return false;
        }
        // Last: what an address has too much of must not use up the listener's share.
        if !self.enters_from_its_address(net, conn, &part.gate)
            || !self.enters(net, conn, &part.gate)
        {
            return false;
        }
        match part.transport.filter() {
            Ok(None) => {}
            Ok(Some(filter)) => net.set_filter(conn, filter),
            Err(error) => {
                tracing::error!(shard = self.id, %error, "a connection cannot be served");
                return false;
            }
        }
        true
    }

    /// Whether the listener has room for one more connection.
    fn enters(&mut self, net: &mut Net, conn: ConnId, gate: &Gate) -> bool {
        let Some(permits) = self.connections.permits(conn) else { return false };
        match gate.enter(permits, net.now_ns()) {
            Ok(()) => true,
            Err(excess) => self.tell_excess(net, conn, excess),
        }
    }

    /// Whether the listener has room for one more connection of the client's address.
    fn enters_from_its_address(&mut self, net: &mut Net, conn: ConnId, gate: &Gate) -> bool {
        if !gate.asks_for_addresses() {
            return true;
        }
        // One without an address has ended already.
        let Some(address) = net.peer_addr(conn) else { return false };
        let Some(permits) = self.connections.permits(conn) else { return false };
        match gate.enter_from(permits, address.ip(), net.now_ns()) {
            Ok(is_counted) => {
                self.stats.uncounted_addresses_total.add(u64::from(!is_counted));
                true
            }
            Err(excess) => self.tell_excess(net, conn, excess),
        }
    }

    #[cold]
    fn tell_excess(&mut self, net: &Net, conn: ConnId, excess: Excess) -> bool {
        match excess.is_of_address() {
            true => self.stats.refused_address_limits_total.increment(),
            false => self.stats.refused_listener_limits_total.increment(),
        }
        self.tell_refused_connection(net, net.peer_addr(conn), &excess.sentence());
        false
    }

    /// A connection ended before its CONNECT, by a fault of what came before it.
    fn handshake_failed(&mut self, net: &Net, conn: ConnId, error: &io::Error) {
        let inner = error.get_ref();
        let counter = if inner.is_some_and(|inner| inner.is::<HeaderError>()) {
            &self.stats.refused_proxy_headers_total
        } else if inner.is_some_and(|inner| inner.is::<OriginError>()) {
            &self.stats.refused_origins_total
        } else {
            self.stats.failed_handshakes_total.increment();
            tracing::debug!(shard = self.id, connection = conn.index(), %error, "no connection");
            return;
        };
        counter.increment();
        self.tell_refused_connection(net, net.peer_addr(conn), &error);
    }

    /// A connection of which no client is heard.
    #[cold]
    fn tell_refused_connection(
        &mut self,
        net: &Net,
        address: Option<SocketAddr>,
        why: &dyn Display,
    ) {
        let Some(untold) = self.access.line(net.now_ns()) else { return };
        tracing::info!(
            address = %OrUnknown(address),
            why = %format_args!("\"{why}\""),
            untold,
            "connection refused"
        );
    }

    /// A connection left this shard, closed or moved to another one with its permits.
    pub(in crate::shard) fn connection_gone(&mut self, conn: ConnId) -> Option<ConnectionPermits> {
        self.admission.forget(conn);
        self.traces.connection_gone(conn);
        self.connections.went(conn)
    }

    fn open(&mut self, net: &mut Net, conn: ConnId, listener: u16) {
        let deadline_ns = net.now_ns() + u64::from(self.limits().connect_timeout_s) * 1_000_000_000;
        let token = TimerToken::Connect { connection: conn.index() as u32 };
        let timer = net.set_timer(deadline_ns, token.encode());
        self.connections.set(conn, Connection::Opening { id: conn, timer, listener });
        self.connections.opened(conn);
        if self.connections.has_too_many_handshakes(net.shards()) {
            self.close_oldest_handshake(net);
        }
    }

    /// Makes room for a newer connection: an honest client connects within a moment.
    fn close_oldest_handshake(&mut self, net: &mut Net) -> bool {
        let Some(conn) = self.connections.pop_oldest_handshake() else { return false };
        self.stats.refused_handshakes_total.increment();
        self.drop_connection(net, conn);
        net.abort(conn);
        true
    }

    pub(in crate::shard) fn adopt(&mut self, net: &mut Net, adopted: Adopted) {
        let Adopted { detached, listener, permits } = adopted;
        let conn = net.attach(detached);
        self.connections.came(conn, permits);
        self.open(net, conn, listener);
    }

    pub(in crate::shard) fn connection_closed(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        why: &Closed,
    ) {
        let state = self.connections.get(conn);
        if let Some(end) = self.connections.take_login_end(conn) {
            net.cancel_timer(end.timer);
        }
        if let Connection::Active { session, .. } = state {
            self.note_end(net, session, Ending::of_socket(why));
            self.count_flap(net, conn, Some(session));
        } else if state.timer().is_some() && !state.is_refusing() && !matches!(why, Closed::ByUs) {
            self.count_flap(net, conn, None);
        }
        self.connection_gone(conn);
        match state {
            Connection::Opening { timer, .. }
            | Connection::Authenticating { timer, .. }
            | Connection::LoggingIn { timer, .. } => {
                net.cancel_timer(timer);
                if let Closed::Error(error) = why {
                    self.handshake_failed(net, conn, error);
                }
            }
            Connection::Refusing { timer, .. } => {
                net.cancel_timer(timer);
            }
            Connection::Committing { timer, session, .. } => {
                net.cancel_timer(timer);
                self.pending_connect_lost(net, session);
            }
            Connection::Active { session, .. } => {
                self.stats.connections_lost_total.increment();
                self.session_disconnected(net, session, End::Lost);
            }
            Connection::Bridge { link, .. } => self.bridge_lost(net, link, why),
            Connection::Vacant | Connection::Closing => {}
        }
    }

    /// The time for connecting is no longer limited.
    pub(in crate::shard) fn cancel_connect_timer(&self, net: &mut Net, conn: ConnId) {
        if let Some(timer) = self.connections.get(conn).timer() {
            net.cancel_timer(timer);
        }
    }

    pub(in crate::shard) fn connect_timed_out(&mut self, net: &mut Net, connection: u32) {
        match self.connections.at(connection as usize) {
            Connection::Opening { id, .. } => {
                self.stats.connect_timeouts_total.increment();
                self.drop_connection(net, id);
            }
            Connection::Authenticating { id, .. } => {
                self.stats.connect_timeouts_total.increment();
                self.authentication_timed_out(net, id);
            }
            Connection::LoggingIn { id, .. } => {
                self.stats.connect_timeouts_total.increment();
                self.login_timed_out(net, id);
            }
            Connection::Refusing { id, version, reason, .. } => {
                self.refuse(net, id, version, reason);
            }
            Connection::Committing { session, .. } => {
                self.stats.connect_timeouts_total.increment();
                self.cancel_pending_connect(net, session);
            }
            _ => {}
        }
    }
}
