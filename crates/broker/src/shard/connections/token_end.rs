//! Clients whose token ends while they are connected.

use tacho_codec::ReasonCode;
use tacho_net::ConnId;
use tacho_session::server::End;

use crate::access::AuditKind;
use crate::config::OnExpiry;
use crate::shard::connections::Connection;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

/// Ten years: later ends do not come.
const END_S_MAX: u64 = 10 * 365 * 86_400;
const EXPIRED: &str = "the token has expired";

impl Shard {
    /// The login of a client ends after this time.
    pub(super) fn limit_login(&mut self, net: &mut Net, conn: ConnId, ends_in_s: Option<u64>) {
        let Some(ends_in_s) = ends_in_s.filter(|&ends_in_s| ends_in_s <= END_S_MAX) else { return };
        if self.on_expiry() == OnExpiry::Stay {
            return;
        }
        let token = TimerToken::LoginEnd { connection: conn.index() as u32 };
        let end_ns = net.now_ns() + ends_in_s * 1_000_000_000;
        let end = net.set_timer(end_ns, token.encode());
        self.connections.limit_login(conn, end);
    }

    /// The same for a client that is connected, in the place of the end so far.
    pub(super) fn renew_login(&mut self, net: &mut Net, conn: ConnId, ends_in_s: Option<u64>) {
        if let Some(end) = self.connections.take_login_end(conn) {
            net.cancel_timer(end);
        }
        self.limit_login(net, conn, ends_in_s);
    }

    /// The token of a client has ended.
    pub(in crate::shard) fn token_expired(&mut self, net: &mut Net, connection: u32) {
        match self.connections.at(connection as usize) {
            Connection::Active { id, session, .. } => {
                self.connections.take_login_end(id);
                self.stats.ended_tokens_total.increment();
                self.log_denied(net, session, "stay connected", "", &EXPIRED);
                self.audit_ended(net, session, AuditKind::ClientDisconnected, None, EXPIRED);
                self.say_goodbye_because(net, id, ReasonCode::NOT_AUTHORIZED, Some(EXPIRED));
                let end = match self.on_expiry() {
                    OnExpiry::DisconnectWithoutWill => End::Normal { expiry_override: None },
                    OnExpiry::Disconnect | OnExpiry::Stay => End::Lost,
                };
                self.session_disconnected(net, session, end);
            }
            Connection::Committing { session, .. } => {
                self.stats.ended_tokens_total.increment();
                self.cancel_pending_connect(net, session);
            }
            _ => {}
        }
    }

    fn on_expiry(&self) -> OnExpiry {
        let jwt = self.shared.access.settings.jwt.as_ref();
        jwt.map_or(OnExpiry::Stay, |jwt| jwt.on_expiry)
    }
}
