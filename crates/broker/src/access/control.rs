//! The files of access control of a running broker, and their reload.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tacho_access::FileError;
use tacho_net::Remote;

use crate::config::Config;
use crate::mail::Mail;
use crate::policy::{Files, Policy};

/// The files of access control of a running broker. Cheap to clone.
#[derive(Clone)]
pub struct AccessControl(Arc<Inner>);

struct Inner {
    files: Files,
    current: Mutex<Current>,
    /// To the shards.
    remote: Remote<Mail>,
}

struct Current {
    fingerprint: Vec<u64>,
    policy: Arc<Policy>,
}

impl AccessControl {
    /// Reads the files.
    pub(crate) fn open(config: &Config, remote: Remote<Mail>) -> Result<Self, FileError> {
        let files = Files::of(config);
        let (fingerprint, policy) = files.open()?;
        let current = Mutex::new(Current { fingerprint, policy: Arc::new(policy) });
        Ok(Self(Arc::new(Inner { files, current, remote })))
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.0.current.lock().unwrap_or_else(PoisonError::into_inner).policy)
    }

    /// Reads the files again and applies them, also to clients that are connected. Files that
    /// cannot be used change nothing.
    pub fn reload(&self) -> AccessReloaded {
        let inner = &*self.0;
        if inner.files.is_empty() {
            return AccessReloaded::NotConfigured;
        }
        let mut current = inner.current.lock().unwrap_or_else(PoisonError::into_inner);
        let read = inner.files.read().and_then(|texts| {
            let fingerprint = texts.fingerprint();
            if fingerprint == current.fingerprint {
                return Ok(None);
            }
            let policy = inner.files.parse(&texts, current.policy.version() + 1)?;
            Ok(Some(Current { fingerprint, policy: Arc::new(policy) }))
        });
        match read {
            Ok(None) => AccessReloaded::Unchanged,
            Ok(Some(new)) => {
                *current = new;
                for shard in 0..inner.remote.shards() {
                    let policy = Arc::clone(&current.policy);
                    inner.remote.post(shard, Mail::PolicyChanged(policy));
                }
                AccessReloaded::New
            }
            Err(error) => {
                tracing::error!(
                    "the new users and access rules cannot be used, the old ones stay in force: \
                     {error}"
                );
                AccessReloaded::Unusable
            }
        }
    }
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").field("files", &self.0.files).finish_non_exhaustive()
    }
}

/// What reloading the files of access control did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessReloaded {
    /// There are no files.
    NotConfigured,
    /// They have not changed.
    Unchanged,
    /// The new ones are in force.
    New,
    /// A file cannot be used: the old ones stay in force.
    Unusable,
}

impl fmt::Display for AccessReloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConfigured => "no users and access rules are configured",
            Self::Unchanged => "users and access rules: unchanged",
            Self::New => "users and access rules: reloaded",
            Self::Unusable => "users and access rules: unusable, the old ones stay in force",
        })
    }
}
