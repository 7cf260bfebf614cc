//! Logins by certificate, where a listener takes the users from there.

use std::sync::Arc;

use tacho_access::{CertificateError, CertificateName};
use tacho_codec::Connect;
use tacho_net::ConnId;

use super::refused_logins::LoginRefusal;
use crate::config::CertificateClientId;
use crate::keys::{ConnectingClient, LINK_PREFIX, User};
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};

/// What follows from the certificate of a client, where it counts.
#[derive(Default)]
pub(super) struct Certified {
    /// The user that it names.
    pub(super) user: Option<Arc<str>>,
    /// The client identifier.
    pub(super) client_id: Option<Arc<str>>,
}

impl Shard {
    /// What follows from the certificate of a connection.
    pub(super) fn certified(
        &self,
        net: &Net,
        conn: ConnId,
        connect: &Connect<'_>,
    ) -> Result<Certified, LoginRefusal> {
        let listener = self.connections.listener_of(conn);
        let Some(login) = self.shared.access.certificate_login(listener) else {
            return Ok(Certified::default());
        };
        let name = self.certificate_name(net, conn, login.user);
        let Some(name) = name else { return Ok(Certified::default()) };
        let name: Arc<str> = name.map_err(LoginRefusal::Certificate)?.into();
        let is_other = !connect.client_id.is_empty() && *connect.client_id != *name;
        match login.client_id {
            CertificateClientId::Any => {
                return Ok(Certified { user: Some(name), client_id: None });
            }
            CertificateClientId::Equal if is_other => {
                return Err(LoginRefusal::CertificateClientId);
            }
            CertificateClientId::Equal | CertificateClientId::Replace => {}
        }
        if name.len() > self.limits().client_id_bytes_max || name.starts_with(LINK_PREFIX) {
            return Err(LoginRefusal::CertificateNoClientId);
        }
        Ok(Certified { user: Some(Arc::clone(&name)), client_id: Some(name) })
    }

    /// A name in the certificate of a client: in that of its connection, or, where its listener
    /// says so, in the one that it has shown to its proxy. `None` if there is none.
    pub(super) fn certificate_name(
        &self,
        net: &Net,
        conn: ConnId,
        name: CertificateName,
    ) -> Option<Result<String, CertificateError>> {
        let login = self.shared.access.certificate_login(self.connections.listener_of(conn));
        if login.is_some_and(|login| login.from_proxy) {
            // The connection's own would be the proxy's.
            let told = net.proxied_certificate_name(conn);
            return told.filter(|_| name == CertificateName::Cn).map(|told| name.of_text(told));
        }
        Some(name.of(net.peer_certificates(conn)?.own()))
    }

    /// Lets a client in whose certificate is enough, or that needs none. A client that has to log
    /// in otherwise is returned.
    pub(super) fn log_in_by_certificate(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        mut client: ConnectingClient,
    ) -> Result<ConnectingClient, Flow> {
        let listener = self.connections.listener_of(conn);
        let access = &self.shared.access;
        let Some(login) = access.certificate_login(listener) else { return Ok(client) };
        let has_others = self.access.users(listener).is_some()
            || self.access.tokens().is_some()
            || access.backend(listener).is_some();
        match &client.certificate_user {
            Some(name) if !login.needs_password => {
                let name = Arc::clone(name);
                client.user = Some(User { name, is_listed: false, rules: None });
                let flow = self.connect(net, conn, connect, packet, client);
                if flow == Flow::Continue {
                    self.stats.logins_certificate_total.increment();
                }
                Err(flow)
            }
            Some(_) => Ok(client),
            None => {
                let claims = connect.username.is_some() || connect.password.is_some();
                if access.admits_anonymous(listener) && !(claims && has_others) {
                    return Err(self.connect(net, conn, connect, packet, client));
                }
                if has_others && !login.needs_password {
                    return Ok(client);
                }
                Err(self.refuse_login(net, conn, connect, &client, LoginRefusal::NoCertificate))
            }
        }
    }

    /// Why the certificate of a client that has logged in does not let it in.
    pub(super) fn check_certificate(
        &self,
        net: &Net,
        conn: ConnId,
        client: &ConnectingClient,
    ) -> Result<(), LoginRefusal> {
        if self.refuses_certificate(net, conn) {
            return Err(LoginRefusal::CertificateEnded);
        }
        let login = self.shared.access.certificate_login(self.connections.listener_of(conn));
        let Some(login) = login else { return Ok(()) };
        let user = client.user.as_ref().map(|user| &*user.name);
        match &client.certificate_user {
            Some(name) if user != Some(&**name) => Err(LoginRefusal::CertificateUser),
            // By a method of enhanced authentication.
            None if user.is_some() && login.needs_password => Err(LoginRefusal::NoCertificate),
            _ => Ok(()),
        }
    }
}
