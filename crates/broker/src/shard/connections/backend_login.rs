//! Logins that a backend behind HTTP decides, and the step that follows where it does not.

use std::sync::Arc;

use tacho_access::{CertificateName, Proof, RequestClient, Who};
use tacho_codec::Connect;
use tacho_net::ConnId;

use super::login::AskedLogin;
use super::login_end::EndSource;
use super::refused_logins::LoginRefusal;
use crate::config::{BackendOrder, HttpSettings, OnUnavailable};
use crate::keys::{ConnectingClient, User};
use crate::login_answer::BackendLogin;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};

impl Shard {
    /// Whether the backend is asked about a user before the password file of the listener.
    pub(super) fn asks_backend_about(&self, listener: u16, name: &str) -> bool {
        let Some((_, backend)) = self.shared.access.backend(listener) else { return false };
        let users = self.access.users(listener);
        backend.settings().order == BackendOrder::First
            || users.is_none_or(|users| users.get(name).is_none())
    }

    /// The settings of the backend of a connection's listener, if it has one.
    fn backend_settings(&self, conn: ConnId) -> Option<&HttpSettings> {
        let backend = self.shared.access.backend(self.connections.listener_of(conn));
        backend.map(|(_, backend)| backend.settings())
    }

    /// Logs a client in by what the backend has said of it a short while ago, or has it asked.
    pub(super) fn log_in_by_backend(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
        user: &str,
    ) -> Flow {
        let shared = Arc::clone(&self.shared);
        let backend = shared.access.backend(self.connections.listener_of(conn));
        let Some((number, backend)) = backend else {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::NoStep);
        };
        let password = match connect.password.map(std::str::from_utf8) {
            // No JSON can have it.
            Some(Err(_)) => return self.log_in_next(net, conn, connect, packet, client),
            Some(Ok(password)) => Some(password).filter(|password| !password.is_empty()),
            None => None,
        };
        if password.is_none() && backend.fields().has_password() {
            // To many directories an empty password is a login without one, which succeeds.
            return self.log_in_next(net, conn, connect, packet, client);
        }
        let name_of = |name: CertificateName| match backend.fields().has_certificate() {
            true => self.certificate_name(net, conn, name)?.ok(),
            false => None,
        };
        let (common_name, subject) =
            (name_of(CertificateName::Cn), name_of(CertificateName::Subject));
        let asked = RequestClient {
            user,
            client_id: &client.key.client_id,
            password,
            address: net.peer_addr(conn).map(|address| address.ip()),
            listener: self.shared.access.address_of(self.connections.listener_of(conn)),
            certificate_name: common_name.as_deref(),
            certificate_subject: subject.as_deref(),
        };
        let proof = backend.fields().proof(&self.shared.access.key, &asked);
        if let Some(answer) = self.access.backend_answer(number, proof, net.now_ns()) {
            self.stats.backend_answers_remembered_total.increment();
            return self.follow_backend(net, conn, connect, packet, client, answer);
        }
        let asked = AskedLogin::Backend(backend.fields().fill(&asked), proof);
        self.hold_login(net, conn, connect, packet, client, asked)
    }

    /// The backend has answered: the login goes on, and the answer is remembered.
    pub(super) fn backend_answered(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
        (answer, asked): (BackendLogin, Option<Proof>),
    ) -> Flow {
        let keep_s = self.keep_s(net, conn, &answer);
        let backend = self.shared.access.backend(self.connections.listener_of(conn));
        let number = backend.map(|(number, _)| number);
        if let (Some(number), Some(asked), 1..) = (number, asked, keep_s) {
            let until_ns = net.now_ns() + keep_s * 1_000_000_000;
            self.access.remember_answer(number, asked, answer.clone(), until_ns);
        }
        self.follow_backend(net, conn, connect, packet, client, answer)
    }

    /// For how long the backend is not asked again.
    fn keep_s(&self, net: &Net, conn: ConnId, answer: &BackendLogin) -> u64 {
        let Some(http) = self.backend_settings(conn) else { return 0 };
        let (allowed_s, denied_s) = (http.remember_allowed_s, http.remember_denied_s);
        match answer {
            BackendLogin::Allow { expires_unix_s: None, .. } => allowed_s.into(),
            // Afterwards it may allow the login anew.
            BackendLogin::Allow { expires_unix_s: Some(end_s), .. } => {
                end_s.saturating_sub(self.unix_s(net) as u64).min(allowed_s.into())
            }
            BackendLogin::Deny | BackendLogin::Expired | BackendLogin::Ignore => denied_s.into(),
            // The circuit says when it is asked again.
            BackendLogin::Unavailable => 0,
        }
    }

    /// What follows from what the backend says.
    fn follow_backend(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        mut client: ConnectingClient,
        answer: BackendLogin,
    ) -> Flow {
        let why = match answer {
            BackendLogin::Allow { rules, expires_unix_s } => {
                let name = connect.username.unwrap_or_default();
                let who = Who::new(Some(name), &client.key.client_id);
                let now_s = self.unix_s(net) as u64;
                if rules.as_ref().is_some_and(|rules| !rules.suits(&who)) {
                    LoginRefusal::BackendRules
                } else if expires_unix_s.is_some_and(|end_s| end_s <= now_s) {
                    LoginRefusal::BackendExpired
                } else {
                    let ends_in_s = expires_unix_s.map(|end_s| end_s - now_s);
                    self.limit_login(net, conn, ends_in_s, EndSource::Backend);
                    self.stats.logins_verified_total.increment();
                    client.user = Some(User { name: name.into(), is_listed: false, rules });
                    return self.connect(net, conn, connect, packet, client);
                }
            }
            BackendLogin::Deny => LoginRefusal::BackendDenied,
            BackendLogin::Expired => LoginRefusal::BackendExpired,
            BackendLogin::Ignore => return self.log_in_next(net, conn, connect, packet, client),
            BackendLogin::Unavailable => {
                match self.backend_settings(conn).map(|http| http.on_unavailable) {
                    Some(OnUnavailable::Ignore) => {
                        return self.log_in_next(net, conn, connect, packet, client);
                    }
                    Some(OnUnavailable::Refuse) | None => LoginRefusal::BackendUnavailable,
                }
            }
        };
        self.refuse_login(net, conn, connect, &client, why)
    }

    /// The backend does not decide: the password file does, if that comes after it.
    fn log_in_next(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
    ) -> Flow {
        let is_first = self.backend_settings(conn).is_some_and(|h| h.order == BackendOrder::First);
        let listener = self.connections.listener_of(conn);
        let users = self.access.users(listener).filter(|_| is_first).cloned();
        match (users, connect.username) {
            (Some(users), Some(name)) => {
                self.log_in_by_password(net, conn, connect, packet, client, (users, name))
            }
            _ => {
                let has_password = connect.password.is_some_and(|password| !password.is_empty());
                let why = match has_password {
                    true => LoginRefusal::NoStep,
                    false => LoginRefusal::NoPassword,
                };
                self.refuse_login(net, conn, connect, &client, why)
            }
        }
    }
}
