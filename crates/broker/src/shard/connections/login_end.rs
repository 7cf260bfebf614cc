//! Clients whose login ends while they are connected: by a token, or by a backend's answer.

use tacho_codec::ReasonCode;
use tacho_net::{ConnId, TimerId};
use tacho_session::server::End;

use crate::access::AuditKind;
use crate::config::OnExpiry;
use crate::shard::connections::Connection;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

/// Ten years: later ends do not come.
const END_S_MAX: u64 = 10 * 365 * 86_400;

/// What has set the end of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndSource {
    Token,
    Backend,
}

/// The end of the login of a connection's client.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginEnd {
    /// Fires then.
    pub(super) timer: TimerId,
    source: EndSource,
}

impl EndSource {
    const fn sentence(self) -> &'static str {
        match self {
            Self::Token => "the token has expired",
            Self::Backend => "the login has expired, as the backend has said",
        }
    }
}

impl Shard {
    /// The login of a client ends after this time.
    pub(super) fn limit_login(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        ends_in_s: Option<u64>,
        source: EndSource,
    ) {
        let Some(ends_in_s) = ends_in_s.filter(|&ends_in_s| ends_in_s <= END_S_MAX) else { return };
        if self.on_expiry(source) == OnExpiry::Stay {
            return;
        }
        let token = TimerToken::LoginEnd { connection: conn.index() as u32 };
        let end_ns = net.now_ns() + ends_in_s * 1_000_000_000;
        let timer = net.set_timer(end_ns, token.encode());
        self.connections.limit_login(conn, LoginEnd { timer, source });
    }

    /// The same for a client that is connected and has brought a new token, in the place of the end
    /// so far.
    pub(super) fn renew_login(&mut self, net: &mut Net, conn: ConnId, ends_in_s: Option<u64>) {
        if let Some(end) = self.connections.take_login_end(conn) {
            net.cancel_timer(end.timer);
        }
        self.limit_login(net, conn, ends_in_s, EndSource::Token);
    }

    /// The login of a client has ended.
    pub(in crate::shard) fn login_expired(&mut self, net: &mut Net, connection: u32) {
        match self.connections.at(connection as usize) {
            Connection::Active { id, session, .. } => {
                // Invariant: the timer is the connection's.
                let Some(LoginEnd { source, .. }) = self.connections.take_login_end(id) else {
                    return;
                };
                let why = source.sentence();
                self.stats.ended_tokens_total.increment();
                self.log_denied(net, session, "stay connected", "", &why);
                self.audit_ended(net, session, AuditKind::ClientDisconnected, None, why);
                self.say_goodbye_because(net, id, ReasonCode::NOT_AUTHORIZED, Some(why));
                let end = match self.on_expiry(source) {
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

    fn on_expiry(&self, source: EndSource) -> OnExpiry {
        let jwt = self.shared.access.settings.jwt.as_ref();
        match source {
            EndSource::Token => jwt.map_or(OnExpiry::Stay, |jwt| jwt.on_expiry),
            EndSource::Backend => OnExpiry::Disconnect,
        }
    }
}
