//! The ways to log in.

/// How clients log in, and at which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Argon2id, each user for the first time.
    Argon2First,
    /// Argon2id, users that the broker remembers.
    Argon2Again,
    /// mosquitto's PBKDF2-SHA512, every login verified.
    Pbkdf2,
    Hs256,
    Es256,
    /// SCRAM-SHA-256.
    Scram,
    /// A client certificate that names the user.
    Certificate,
    /// A backend behind HTTP, asked about every login.
    Backend,
    /// mosquitto, with the same file as [`Method::Pbkdf2`].
    Mosquitto,
}

impl Method {
    pub(crate) const ALL: [Self; 9] = [
        Self::Argon2First,
        Self::Argon2Again,
        Self::Pbkdf2,
        Self::Hs256,
        Self::Es256,
        Self::Scram,
        Self::Certificate,
        Self::Backend,
        Self::Mosquitto,
    ];

    /// The first part of its cases' names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Argon2First => "tacho_login_argon2_first",
            Self::Argon2Again => "tacho_login_argon2_again",
            Self::Pbkdf2 => "tacho_login_pbkdf2",
            Self::Hs256 => "tacho_login_hs256",
            Self::Es256 => "tacho_login_es256",
            Self::Scram => "tacho_login_scram",
            Self::Certificate => "tacho_login_certificate",
            Self::Backend => "tacho_login_backend",
            Self::Mosquitto => "mosquitto_login_pbkdf2",
        }
    }

    /// In words, for tables.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Argon2First => "password, Argon2id, each user for the first time",
            Self::Argon2Again => "password, Argon2id, users that are remembered",
            Self::Pbkdf2 => "password, mosquitto's `$7$` (PBKDF2-SHA512), none remembered",
            Self::Hs256 => "token, HS256",
            Self::Es256 => "token, ES256",
            Self::Scram => "SCRAM-SHA-256",
            Self::Certificate => "client certificate (P-256), a full TLS handshake each",
            Self::Backend => "password, asked of a backend behind HTTP each time",
            Self::Mosquitto => "password, `$7$`, with mosquitto",
        }
    }

    /// Logins per second of the case that measures latency.
    pub(crate) const fn paced_per_s(self) -> u64 {
        if self.is_once() { 5 } else { 300 }
    }

    /// Logins per second of the other case: more than any broker decides. Each user waits for its
    /// own login; of users that log in once, not more may wait than a broker has room for.
    pub(crate) const fn most_per_s(self) -> u64 {
        if self.is_once() { 60 } else { 20_000 }
    }

    /// Whether each user logs in once.
    pub(crate) const fn is_once(self) -> bool {
        matches!(self, Self::Argon2First)
    }

    pub(crate) fn is_of_tacho(self) -> bool {
        self != Self::Mosquitto
    }
}
