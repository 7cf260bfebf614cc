//! AUTH: the exchanges of clients that prove who they are, and tokens that are renewed.

use tacho_codec::{Auth, ReasonCode};
use tacho_net::Net;

use super::lifecycle::State;
use super::{Failure, Worker};
use crate::authentication::signed;
use crate::plan::{Authentication, TokenLogin};

/// Marks the timer of a new token.
pub(super) const RENEW: u64 = 1 << 33;

impl Worker {
    /// An AUTH of the broker: it continues an exchange, or ends one of a connected client.
    #[cold]
    pub(super) fn handle_auth(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        auth: &Auth<'_>,
    ) -> Result<(), Failure> {
        let client = &mut self.clients[local];
        let group = &self.context.plan.groups[client.group];
        let wrong = || Failure::Protocol("an AUTH that was not asked for".into());
        let (Some(prover), Some(conn)) = (client.prover.as_deref_mut(), client.conn) else {
            return Err(wrong());
        };
        match (client.state, auth.reason) {
            (state, ReasonCode::SUCCESS) if state.is_up() => Ok(()),
            (State::Greeting { .. }, ReasonCode::CONTINUE_AUTHENTICATION) => {
                let plan = &group.clients[client.rank];
                let answer = prover.answer(plan, auth.data).map_err(Failure::Protocol)?;
                let answer = Auth {
                    reason: ReasonCode::CONTINUE_AUTHENTICATION,
                    method: auth.method,
                    data: Some(&answer),
                    ..Auth::default()
                };
                answer
                    .encode(client.version, net.out(conn).as_vec_mut())
                    .map_err(|error| Failure::Protocol(error.to_string()))
            }
            _ => Err(wrong()),
        }
    }

    /// Schedules the connected client's next token, if it can bring one.
    pub(super) fn plan_renewal(&mut self, net: &mut Net<Self>, local: usize) {
        let client = &mut self.clients[local];
        let group = &self.context.plan.groups[client.group];
        let Authentication::Token(how) = &group.authentication else { return };
        let Some(after_ns) = how.renewal_ns() else { return };
        let at_ns = net.now_ns().saturating_add(after_ns);
        client.renewal = Some(net.set_timer(at_ns, RENEW | local as u64));
    }

    /// The client brings a new token, before the last one ends.
    #[cold]
    pub(super) fn renew(&mut self, net: &mut Net<Self>, local: usize) {
        let context = std::sync::Arc::clone(&self.context);
        let client = &mut self.clients[local];
        client.renewal = None;
        let group = &context.plan.groups[client.group];
        let Some(conn) = client.conn.filter(|_| client.state.is_up()) else { return };
        let Authentication::Token(how) = &group.authentication else { return };
        let sent = signed(how, &group.clients[client.rank]).and_then(|token| {
            let auth = Auth {
                reason: ReasonCode::REAUTHENTICATE,
                method: Some(TokenLogin::METHOD),
                data: Some(token.as_bytes()),
                ..Auth::default()
            };
            auth.encode(client.version, net.out(conn).as_vec_mut())
                .map_err(|error| error.to_string())
        });
        match sent {
            Ok(()) => self.plan_renewal(net, local),
            Err(why) => self.fail(net, local, Failure::Protocol(why)),
        }
    }
}
