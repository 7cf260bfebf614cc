//! Access control outside of the shards: the files that say who may connect and do what, their
//! reload, and the threads that verify passwords or ask a backend.

mod audit;
mod backend;
mod bans;
mod control;
mod key_fetch;
mod key_fetches;
mod logins;
mod unix_offset;
mod user_places;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

pub use backend::{BackendOutcome, ask_backend};
pub use control::{AccessControl, AccessReloaded};

pub(crate) use audit::{
    Audit, AuditEvent, AuditFile, AuditKind, AuditOutcome, AuditThread, Name, check_audit_path,
};
pub(crate) use backend::{
    Backend, BackendHealth, BackendJob, BackendLogins, BackendResult, NamedHealth,
};
pub(crate) use bans::{Offence, OffenceBans};
pub(crate) use control::Looked;

pub(crate) use key_fetch::{KeyFetcher, KeyThread, KeysWanted};

#[cfg(feature = "sim")]
pub(crate) use logins::SimulatedLogins;
pub(crate) use logins::{AnswerTo, Credentials, LoginJob, Logins};

pub(crate) use unix_offset::UnixOffset;
pub(crate) use user_places::{UserPlace, UserPlaces};

use tacho_access::{NoRandomness, ProcessKey};

use crate::config::{AccessSettings, CertificateLogin, Config, ConfigError};
use crate::listeners::{ListenerPart, ListenerParts};
use crate::policy::{Files, Policy};

/// Checks that the files of a configuration can be used.
///
/// # Errors
/// A file cannot be read or used.
pub fn check_access(config: &Config) -> Result<(), ConfigError> {
    Files::of(config).open()?;
    KeyFetcher::new(config.access.jwt.as_ref())?;
    Backend::open_all(config)?;
    if let Some(path) = &config.access.audit_file {
        check_audit_path(path).map_err(|source| unusable_audit(path, source))?;
    }
    Ok(())
}

/// Opens the audit log, if there is one.
pub(crate) fn open_audit(config: &Config) -> Result<Option<AuditFile>, ConfigError> {
    let Some(path) = &config.access.audit_file else { return Ok(None) };
    let file = AuditFile::open(path.clone(), config.access.audit_bytes_max);
    file.map(Some).map_err(|source| unusable_audit(path, source))
}

fn unusable_audit(path: &Path, source: io::Error) -> ConfigError {
    ConfigError::Audit { path: path.display().to_string(), source }
}

/// What all shards know of access control.
pub(crate) struct SharedAccess {
    pub(crate) settings: AccessSettings,
    listeners: Arc<ListenerParts>,
    /// The policy at the start. Shards get later ones by mail.
    pub(crate) first: Arc<Policy>,
    pub(crate) logins: Logins,
    /// What says whether clients may log in, elsewhere.
    backends: Vec<BackendLogins>,
    pub(crate) audit: Audit,
    pub(crate) bans: Arc<OffenceBans>,
    pub(crate) key: ProcessKey,
    pub(crate) unix_offset: Arc<UnixOffset>,
    pub(crate) user_places: Arc<UserPlaces>,
}

impl SharedAccess {
    pub(crate) fn new(
        config: &Config,
        listeners: Arc<ListenerParts>,
        access: &AccessControl,
        logins: Logins,
        backends: Vec<BackendLogins>,
    ) -> Result<Self, NoRandomness> {
        Ok(Self {
            settings: config.access.clone(),
            listeners,
            first: access.policy(),
            logins,
            backends,
            audit: access.audit().clone(),
            bans: Arc::clone(access.bans()),
            key: ProcessKey::new()?,
            unix_offset: access.unix_offset(),
            user_places: Arc::default(),
        })
    }

    /// The configured address of a listener.
    pub(crate) fn address_of(&self, listener: u16) -> Option<SocketAddr> {
        self.part(listener).map(|part| part.listener.address)
    }

    /// The backend that decides the logins of a listener, and its number.
    pub(crate) fn backend(&self, listener: u16) -> Option<(usize, &BackendLogins)> {
        let number = self.part(listener)?.listener.login_backend.index()?;
        Some((number, self.backends.get(number)?))
    }

    /// How clients log in with certificates at a listener.
    pub(crate) fn certificate_login(&self, listener: u16) -> Option<CertificateLogin> {
        self.part(listener)?.listener.certificates
    }

    pub(crate) fn admits_anonymous(&self, listener: u16) -> bool {
        self.part(listener).is_some_and(|part| part.listener.allow_anonymous)
    }

    fn part(&self, listener: u16) -> Option<Arc<ListenerPart>> {
        self.listeners.get(usize::from(listener))
    }
}
