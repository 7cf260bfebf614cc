//! Access control outside of the shards: the files that say who may connect and do what, their
//! reload, and the threads that verify passwords.

mod control;
mod logins;

use std::sync::Arc;

pub use control::{AccessControl, AccessReloaded};

pub(crate) use control::Looked;

pub(crate) use logins::{LoginJob, Logins};

use tacho_access::{NoRandomness, ProcessKey};

use crate::config::{AccessSettings, Config, ConfigError};
use crate::policy::{Files, Policy};

/// Checks that the files of a configuration can be used.
///
/// # Errors
/// A file cannot be read or used.
pub fn check_access(config: &Config) -> Result<(), ConfigError> {
    Files::of(config).open()?;
    Ok(())
}

/// What all shards know of access control.
pub(crate) struct SharedAccess {
    pub(crate) settings: AccessSettings,
    /// By listener: clients without credentials are admitted where there is a password file.
    admits_anonymous: Vec<bool>,
    /// The policy at the start. Shards get later ones by mail.
    pub(crate) first: Arc<Policy>,
    pub(crate) logins: Logins,
    pub(crate) key: ProcessKey,
}

impl SharedAccess {
    pub(crate) fn new(
        config: &Config,
        first: Arc<Policy>,
        logins: Logins,
    ) -> Result<Self, NoRandomness> {
        Ok(Self {
            settings: config.access.clone(),
            admits_anonymous: config.listeners.iter().map(|l| l.allow_anonymous).collect(),
            first,
            logins,
            key: ProcessKey::new()?,
        })
    }

    pub(crate) fn admits_anonymous(&self, listener: u16) -> bool {
        self.admits_anonymous.get(usize::from(listener)).is_some_and(|&admits| admits)
    }
}
