//! Where the servers are, and how to log in.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_nats::{ConnectOptions, ServerAddr};
use serde::Deserialize;

use super::{bounded, note_event};
use crate::BusError;

/// Limit on a file with credentials.
const CREDENTIALS_BYTES_MAX: u64 = 64 * 1024;

/// Where the servers are, and how to log in.
#[derive(Clone, Debug)]
pub struct NatsSettings {
    address: ServerAddr,
    credentials: Credentials,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    replicas: usize,
}

/// How to log in at a server. What it holds is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all.
    #[default]
    None,
    /// By user and password.
    User {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// By a token.
    Token(String),
    /// By the seed of an nkey.
    Nkey(String),
    /// By the content of a creds file: a token of a user and its seed.
    Creds(String),
}

/// User and password, or a token, as a file has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
}

impl Credentials {
    /// Reads a file: a creds file of NATS, the seed of an nkey, or TOML with `user` and
    /// `password`, or with `token`.
    ///
    /// # Errors
    /// It cannot be read, is larger than 64 KiB, or is none of these.
    pub fn read(path: &Path) -> Result<Self, BusError> {
        let failed = |why: String| BusError::Credentials { path: path.display().to_string(), why };
        let size = fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if size > CREDENTIALS_BYTES_MAX {
            return Err(failed("it is larger than 64 KiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(|why| failed(why.to_owned()))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        const FORMS: &str = "it is no creds file, no seed of an nkey, and no TOML with user and \
                             password, or token";
        if text.contains("-----BEGIN NATS USER JWT-----") {
            return Ok(Self::Creds(text.to_owned()));
        }
        let line = text.trim();
        if line.starts_with("SU") && line.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(Self::Nkey(line.to_owned()));
        }
        // The error of the parser would show the secret.
        let file: CredentialsFile = toml::from_str(text).map_err(|_| FORMS)?;
        match file {
            CredentialsFile { user: Some(user), password: Some(password), token: None } => {
                Ok(Self::User { user, password })
            }
            CredentialsFile { user: None, password: None, token: Some(token) } => {
                Ok(Self::Token(token))
            }
            _ => Err(FORMS),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::User { .. } => "User",
            Self::Token(_) => "Token",
            Self::Nkey(_) => "Nkey",
            Self::Creds(_) => "Creds",
        })
    }
}

impl NatsSettings {
    /// The server at an address such as `nats://host:4222`, or `tls://host` for TLS.
    ///
    /// # Errors
    /// It is no such address, or holds a password, which belongs into a file.
    pub fn new(address: &str) -> Result<Self, BusError> {
        let bad = |text: &str, why: &str| BusError::Address {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let shown = address.rsplit_once('@').map_or(address, |(_, host)| host);
        let parsed: ServerAddr =
            address.parse().map_err(|_| bad(shown, "write nats://HOST:PORT or tls://HOST:PORT"))?;
        if !matches!(parsed.scheme(), "nats" | "tls") || parsed.host().is_empty() {
            return Err(bad(shown, "write nats://HOST:PORT or tls://HOST:PORT"));
        }
        if parsed.has_user_pass() {
            return Err(bad(
                shown,
                "user and password belong into a file (--bus-credentials), since all users of the \
                 machine see addresses",
            ));
        }
        Ok(Self {
            address: parsed,
            credentials: Credentials::None,
            ca: None,
            identity: None,
            replicas: 1,
        })
    }

    /// Logs in with these.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Trusts the certificates in this file (PEM), beside those of the system.
    #[must_use]
    pub fn with_ca(self, file: PathBuf) -> Self {
        Self { ca: Some(file), ..self }
    }

    /// Presents this certificate (PEM) with its key.
    #[must_use]
    pub fn with_identity(self, certificate: PathBuf, key: PathBuf) -> Self {
        Self { identity: Some((certificate, key)), ..self }
    }

    /// How many servers keep each log and table; 1 unless set. Those that exist already keep their
    /// number.
    #[must_use]
    pub fn with_replicas(self, replicas: usize) -> Self {
        Self { replicas, ..self }
    }

    pub(super) fn address(&self) -> ServerAddr {
        self.address.clone()
    }

    pub(super) const fn replicas(&self) -> usize {
        self.replicas
    }

    /// The address for messages; it holds no secrets.
    #[must_use]
    pub fn address_text(&self) -> String {
        format!("{}://{}:{}", self.address.scheme(), self.address.host(), self.address.port())
    }

    /// Host and port of the server.
    #[must_use]
    pub fn host_and_port(&self) -> (&str, u16) {
        (self.address.host(), self.address.port())
    }

    pub(super) fn options(&self, dropped: &Arc<AtomicU64>) -> Result<ConnectOptions, BusError> {
        let mut options = bounded(ConnectOptions::new());
        let dropped = Arc::clone(dropped);
        options = options.event_callback(move |event| note_event(event, Arc::clone(&dropped)));
        options = match self.credentials.clone() {
            Credentials::None => options,
            Credentials::User { user, password } => options.user_and_password(user, password),
            Credentials::Token(token) => options.token(token),
            Credentials::Nkey(seed) => options.nkey(seed),
            Credentials::Creds(text) => options.credentials(&text).map_err(|_| {
                let why = "the creds file is damaged".to_owned();
                BusError::Connect { address: self.address_text(), why }
            })?,
        };
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options.require_tls(self.address.tls_required() || self.ca.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_passwords_are_not_shown() {
        let settings = NatsSettings::new("nats://127.0.0.1").expect("an address");
        assert_eq!(settings.address_text(), "nats://127.0.0.1:4222");
        for bad in ["mqtt://a", "ws://a", "nats://", "nats://a b"] {
            let error = NatsSettings::new(bad).expect_err(bad).to_string();
            assert!(error.contains("nats://HOST:PORT"), "{error}");
        }
        let error = NatsSettings::new("nats://joe:secret@a").expect_err("a password").to_string();
        assert!(error.contains("--bus-credentials") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn files_of_credentials_are_told_apart() {
        let user = Credentials::parse("user = 'joe'\npassword = 'secret'\n").expect("a login");
        assert_eq!(
            user,
            Credentials::User { user: "joe".to_owned(), password: "secret".to_owned() }
        );
        assert_eq!(format!("{user:?}"), "User");
        let token = Credentials::parse("token = 'abc'");
        assert_eq!(token, Ok(Credentials::Token("abc".to_owned())));
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n";
        assert_eq!(Credentials::parse(seed), Ok(Credentials::Nkey(seed.trim().to_owned())));
        let creds = "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n";
        assert_eq!(Credentials::parse(creds), Ok(Credentials::Creds(creds.to_owned())));
        for bad in ["", "secret", "user = 'joe'", "user = 'a'\npassword = 'b'\ntoken = 'c'"] {
            let why = Credentials::parse(bad).expect_err(bad);
            assert!(!why.contains("secret") && why.contains("creds file"), "{why}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_too_large_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("creds");
        let error = Credentials::read(&path).expect_err("missing").to_string();
        assert!(error.contains("creds"), "{error}");
        fs::write(&path, "x".repeat(70_000)).expect("written");
        let error = Credentials::read(&path).expect_err("too large").to_string();
        assert!(error.contains("64 KiB"), "{error}");
    }
}
