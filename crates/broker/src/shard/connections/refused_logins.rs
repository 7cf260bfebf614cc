//! Logins that are refused: counted, told by the log and the audit log, and answered.

use std::borrow::Cow;
use std::net::SocketAddr;

use tacho_access::{Cause, CertificateError, Exceeded, TokenError};
use tacho_codec::{Connect, ReasonCode, Version};
use tacho_net::ConnId;

use crate::access::{AuditEvent, AuditKind, Name, Offence};
use crate::authentication::AuthFailure;
use crate::keys::{ConnectingClient, SessionSlot};
use crate::shard::access::{Banned, CERTIFICATE_ENDED, CauseShown, Shown, reason_of};
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};

/// Why a login is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoginRefusal {
    /// There are no credentials.
    Anonymous,
    /// There is a user name and no password.
    NoPassword,
    /// The user does not exist, or the password is another.
    Wrong,
    /// There is no token, and users log in with nothing else.
    NoToken,
    /// No step of the logins knows the client.
    NoStep,
    /// The backend says no.
    BackendDenied,
    /// The backend says that the login has ended.
    BackendExpired,
    /// The name of the client would widen the rules of the backend's answer.
    BackendRules,
    /// The backend gives no answer that counts.
    BackendUnavailable,
    /// The token is refused.
    Token(TokenError),
    /// The address or the client identifier is banned for what it did.
    Banned(Offence),
    /// The ban file names the address, the client identifier or the user.
    InBanFile(Banned),
    /// Too many logins wait.
    Busy,
    /// The login waited for too long.
    Late,
    /// The listener asks for a certificate, and there is none.
    NoCertificate,
    /// The certificate names no user.
    Certificate(CertificateError),
    /// The certificate is not accepted any more.
    CertificateEnded,
    /// The user that has logged in is not the certificate's.
    CertificateUser,
    /// The client identifier is not the name in the certificate.
    CertificateClientId,
    /// The name in the certificate cannot be a client identifier.
    CertificateNoClientId,
    /// The session of this client identifier is another user's.
    Stranger,
    /// The access rules do not let it connect.
    ByRule(Cause),
    /// The will exceeds a limit of its roles.
    OverLimit(Exceeded),
    /// Its user has as many connections as its roles allow.
    UserConnections,
    /// The will may not be published.
    Will,
}

impl LoginRefusal {
    fn sentence(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Anonymous => "no user name: anonymous clients are not admitted here",
            Self::NoPassword => "no password",
            Self::Wrong => "unknown user or wrong password",
            Self::NoToken => "no token: clients log in with a JSON Web Token here",
            Self::NoStep => "neither the backend nor a password file knows the user",
            Self::BackendDenied => "the backend of logins refuses it",
            Self::BackendExpired => "the backend of logins says that the login has expired",
            Self::BackendRules => {
                "a name in the backend's rules for it contains +, #, / or a control character"
            }
            Self::BackendUnavailable => "the backend of logins does not answer",
            Self::Token(error) => return Cow::Owned(error.to_string()),
            Self::Banned(offence) => offence.sentence(),
            Self::InBanFile(banned) => return banned.sentence(),
            Self::Busy => "too many logins wait to be verified",
            Self::Late => "the login was not verified in time",
            Self::NoCertificate => "no certificate: clients log in with a certificate here",
            Self::Certificate(error) => return Cow::Owned(error.to_string()),
            Self::CertificateEnded => CERTIFICATE_ENDED,
            Self::CertificateUser => "the certificate is another user's",
            Self::CertificateClientId => {
                "the client identifier is not the name in the certificate, as it must be here"
            }
            Self::CertificateNoClientId => {
                "the name in the certificate is too long for a client identifier, or reserved"
            }
            Self::Stranger => "the session of this client identifier belongs to another user",
            Self::ByRule(cause) => {
                return Cow::Owned(format!("it may not connect: {}", CauseShown(*cause)));
            }
            Self::OverLimit(exceeded) => {
                return Cow::Owned(format!("the will exceeds a limit: {}", exceeded.sentence()));
            }
            Self::UserConnections => "its user has as many connections as its roles allow",
            Self::Will => "the access rules do not allow the will, or its response topic",
        })
    }

    /// Whether it may be a guess.
    const fn is_guess(&self) -> bool {
        match self {
            Self::Wrong | Self::NoStep | Self::BackendDenied => true,
            Self::Token(error) => error.is_guess(),
            _ => false,
        }
    }

    const fn reason(&self) -> ReasonCode {
        match self {
            Self::Token(TokenError::NoKeys) | Self::BackendUnavailable => {
                ReasonCode::SERVER_UNAVAILABLE
            }
            Self::NoPassword
            | Self::Wrong
            | Self::NoToken
            | Self::NoStep
            | Self::BackendDenied
            | Self::BackendExpired
            | Self::BackendRules
            | Self::Token(_) => ReasonCode::BAD_USER_NAME_OR_PASSWORD,
            Self::Banned(_) | Self::InBanFile(_) => ReasonCode::BANNED,
            Self::Busy | Self::Late => ReasonCode::SERVER_BUSY,
            Self::OverLimit(exceeded) => reason_of(*exceeded),
            Self::UserConnections => ReasonCode::QUOTA_EXCEEDED,
            Self::CertificateClientId | Self::CertificateNoClientId => {
                ReasonCode::CLIENT_IDENTIFIER_NOT_VALID
            }
            Self::Anonymous
            | Self::NoCertificate
            | Self::Certificate(_)
            | Self::CertificateEnded
            | Self::CertificateUser
            | Self::Stranger
            | Self::ByRule(_)
            | Self::Will => ReasonCode::NOT_AUTHORIZED,
        }
    }
}

/// A login that is refused, as the logs tell it.
struct RefusedLogin<'a> {
    /// Absent, as its protocol, before its CONNECT.
    client_id: Option<&'a str>,
    user: Option<&'a str>,
    protocol: Option<Version>,
    reason: ReasonCode,
    why: &'a str,
}

impl Shard {
    /// Why the address of a connection is banned, if it is.
    #[inline]
    pub(super) fn offence_of_address(&self, net: &Net, conn: ConnId) -> Option<Offence> {
        let bans = &self.shared.access.bans;
        if !bans.has_addresses() {
            return None;
        }
        bans.of_address(net.peer_addr(conn)?.ip(), net.now_ns())
    }

    /// Why the client of a connection is banned, if it is, by its address or its identifier.
    #[inline]
    pub(super) fn offence_of(&self, net: &Net, conn: ConnId, client_id: &str) -> Option<Offence> {
        let of_address = self.offence_of_address(net, conn);
        let bans = &self.shared.access.bans;
        of_address.or_else(|| bans.of_client_id(client_id, net.now_ns()))
    }

    /// An address is banned from now on.
    #[cold]
    pub(super) fn tell_banned_address(&mut self, net: &Net, address: SocketAddr, why: &str) {
        self.shared.access.audit.note(AuditEvent {
            event: AuditKind::AddressBanned,
            address: Some(address),
            why: Some(why.to_owned()),
            ..AuditEvent::default()
        });
        if let Some(untold) = self.access.line(net.now_ns()) {
            let address = address.ip();
            tracing::warn!(%address, why = %format_args!("\"{why}\""), untold, "address banned");
        }
    }

    pub(super) fn refuse_login(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        client: &ConnectingClient,
        why: LoginRefusal,
    ) -> Flow {
        let certified = client.certificate_user.as_deref();
        self.refuse_login_of(net, conn, connect, (&client.key.client_id, certified), why);
        Flow::Stop
    }

    /// Refuses a client that is banned, before anything is asked of it or after.
    pub(in crate::shard) fn refuse_banned(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        banned: Banned,
    ) {
        let why = LoginRefusal::InBanFile(banned);
        self.refuse_login_of(net, conn, connect, (connect.client_id, None), why);
    }

    /// A connection from a banned address, of which nothing is read.
    pub(super) fn tell_banned_connection(&mut self, net: &Net, conn: ConnId, banned: &Banned) {
        self.stats.refused_banned_total.increment();
        let refused = RefusedLogin {
            client_id: None,
            user: None,
            protocol: None,
            reason: ReasonCode::BANNED,
            why: &banned.sentence(),
        };
        self.tell_refused_login(net, conn, &refused);
    }

    /// Refuses a client with this identifier and the user that its certificate names.
    pub(super) fn refuse_login_of(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        (client_id, certified): (&str, Option<&str>),
        why: LoginRefusal,
    ) {
        let stats = &self.stats;
        let counter = match why {
            LoginRefusal::Anonymous => &stats.refused_logins_anonymous_total,
            LoginRefusal::NoPassword
            | LoginRefusal::Wrong
            | LoginRefusal::NoToken
            | LoginRefusal::NoStep
            | LoginRefusal::BackendDenied
            | LoginRefusal::BackendExpired
            | LoginRefusal::BackendRules
            | LoginRefusal::Token(_) => &stats.refused_logins_wrong_total,
            LoginRefusal::BackendUnavailable => &stats.refused_logins_unavailable_total,
            LoginRefusal::Banned(_) | LoginRefusal::InBanFile(_) => &stats.refused_banned_total,
            LoginRefusal::Busy | LoginRefusal::Late => &stats.refused_logins_busy_total,
            LoginRefusal::NoCertificate
            | LoginRefusal::Certificate(_)
            | LoginRefusal::CertificateEnded
            | LoginRefusal::CertificateUser
            | LoginRefusal::CertificateClientId
            | LoginRefusal::CertificateNoClientId => &stats.refused_logins_certificate_total,
            LoginRefusal::Stranger => &stats.refused_strangers_total,
            LoginRefusal::ByRule(_) => &stats.denied_connects_total,
            LoginRefusal::OverLimit(exceeded) => stats.over_limit(exceeded),
            LoginRefusal::UserConnections => &stats.role_limit_connections_total,
            LoginRefusal::Will => &stats.denied_wills_total,
        };
        counter.increment();
        let refused = RefusedLogin {
            client_id: Some(client_id),
            user: certified.or(connect.username),
            protocol: Some(connect.version),
            reason: why.reason(),
            why: &why.sentence(),
        };
        self.tell_refused_login(net, conn, &refused);
        match why.is_guess() {
            true => self.refuse_guess(net, conn, connect.version, why.reason()),
            false => self.refuse(net, conn, connect.version, why.reason()),
        }
    }

    /// A method of enhanced authentication has refused a client that is not connected yet.
    pub(super) fn tell_failed_authentication(
        &mut self,
        net: &Net,
        conn: ConnId,
        failure: &AuthFailure,
        client: (&str, Option<&str>),
    ) {
        let (client_id, user) = client;
        let (reason, why) = (failure.to_connack(), &*failure.sentence());
        let refused = RefusedLogin {
            client_id: Some(client_id),
            user,
            protocol: Some(Version::V5),
            reason,
            why,
        };
        self.tell_refused_login(net, conn, &refused);
    }

    /// A method of enhanced authentication has refused a client that is connected.
    pub(super) fn tell_failed_reauthentication(
        &mut self,
        net: &Net,
        conn: ConnId,
        failure: &AuthFailure,
        slot: SessionSlot,
    ) {
        let session = &self.sessions[slot];
        let client_id = session.key().client_id.to_string();
        let user = session.access.user_name().map(str::to_owned);
        let refused = RefusedLogin {
            client_id: Some(&client_id),
            user: user.as_deref(),
            protocol: Some(Version::V5),
            reason: failure.to_disconnect(),
            why: &failure.sentence(),
        };
        self.tell_refused_login(net, conn, &refused);
        if failure.is_guess() {
            self.count_guess(net, conn);
        }
    }

    #[cold]
    fn tell_refused_login(&mut self, net: &Net, conn: ConnId, refused: &RefusedLogin<'_>) {
        let RefusedLogin { client_id, user, protocol, reason, why } = *refused;
        self.trace_refusal(net, conn, why);
        let line = self.access.line(net.now_ns());
        let (audit, events) = (&self.shared.access.audit, &self.shared.events);
        if line.is_none() && !audit.is_on() && !events.are_watched() {
            return;
        }
        let peer = net.peer_addr(conn);
        self.tell_login_refused(net, peer, (client_id, user), why);
        if let Some(untold) = line {
            let address = peer.map(|address| address.to_string());
            tracing::info!(
                client = %Shown(client_id.unwrap_or_default()),
                user = %Shown(user.unwrap_or_default()),
                address = address.as_deref().unwrap_or("unknown"),
                why = %format_args!("\"{why}\""),
                untold,
                "login refused"
            );
        }
        if audit.is_on() {
            audit.note(AuditEvent {
                event: AuditKind::LoginRefused,
                address: peer,
                listener: net.local_addr(conn),
                client_id: client_id.map(Name::new),
                user: user.map(Name::new),
                protocol: protocol.map(|protocol| protocol.to_string()),
                reason: Some(format!("{:#04x}", reason.value())),
                why: Some(why.to_owned()),
                ..AuditEvent::default()
            });
        }
    }
}
