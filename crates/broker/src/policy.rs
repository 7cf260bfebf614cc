//! The policy: password files by listener and the access list, as read last.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_access::{Acl, FileError, Users, read_text};

use crate::config::Config;
use crate::keys::stable_hash;

/// What the files say.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// Counts reloads, from 1 on.
    version: u32,
    /// By listener.
    users: Vec<Option<Arc<Users>>>,
    acl: Option<Acl>,
}

impl Policy {
    pub(crate) const fn version(&self) -> u32 {
        self.version
    }

    /// The users of a listener, if its clients log in.
    pub(crate) fn users(&self, listener: u16) -> Option<&Arc<Users>> {
        self.users.get(usize::from(listener))?.as_ref()
    }

    /// The access list, if there is one.
    pub(crate) const fn acl(&self) -> Option<&Acl> {
        self.acl.as_ref()
    }

    /// Whether clients of any listener log in.
    pub(crate) fn has_users(&self) -> bool {
        self.users.iter().any(Option::is_some)
    }
}

/// The paths of the files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// By listener.
    passwords: Vec<Option<PathBuf>>,
    acl: Option<PathBuf>,
}

/// The files as read, to be parsed.
pub(crate) struct Texts(BTreeMap<PathBuf, String>);

impl Files {
    pub(crate) fn of(config: &Config) -> Self {
        let passwords = config.listeners.iter().map(|listener| listener.password_file.clone());
        Self { passwords: passwords.collect(), acl: config.access.acl_file.clone() }
    }

    /// Reads and parses them.
    pub(crate) fn open(&self) -> Result<(Vec<u64>, Policy), FileError> {
        let texts = self.read()?;
        let policy = self.parse(&texts, 1)?;
        self.warn(&policy);
        Ok((texts.fingerprint(), policy))
    }

    /// Tells of what has no effect, or more than may be meant.
    fn warn(&self, policy: &Policy) {
        let has_open = policy.users.iter().any(Option::is_none);
        if has_open && policy.acl.as_ref().is_some_and(Acl::names_users) {
            tracing::warn!(
                "the access list names users, but a listener has no password file: its clients \
                 count as anonymous, since their names are not verified"
            );
        }
        for path in self.passwords.iter().flatten().collect::<BTreeSet<_>>() {
            if is_readable_by_all(path) {
                tracing::warn!(
                    "{}: all users of this machine may read the password file (chmod o-r)",
                    path.display()
                );
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.acl.is_none() && self.passwords.iter().all(Option::is_none)
    }

    pub(crate) fn read(&self) -> Result<Texts, FileError> {
        let mut texts = BTreeMap::new();
        for path in self.passwords.iter().chain([&self.acl]).flatten() {
            if !texts.contains_key(path) {
                texts.insert(path.clone(), read_text(path)?);
            }
        }
        Ok(Texts(texts))
    }

    pub(crate) fn parse(&self, texts: &Texts, version: u32) -> Result<Policy, FileError> {
        let mut parsed: BTreeMap<&Path, Arc<Users>> = BTreeMap::new();
        let mut users = Vec::new();
        for path in &self.passwords {
            let Some(path) = path else {
                users.push(None);
                continue;
            };
            if let Some(known) = parsed.get(path.as_path()) {
                users.push(Some(Arc::clone(known)));
                continue;
            }
            let read = Arc::new(Users::parse(&path.display().to_string(), texts.of(path))?);
            for warning in read.warnings() {
                tracing::warn!("{warning}");
            }
            parsed.insert(path, Arc::clone(&read));
            users.push(Some(read));
        }
        let acl = match &self.acl {
            Some(path) => Some(Acl::parse(&path.display().to_string(), texts.of(path))?),
            None => None,
        };
        Ok(Policy { version, users, acl })
    }
}

#[cfg(unix)]
fn is_readable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_all(_path: &Path) -> bool {
    false
}

impl Texts {
    fn of(&self, path: &Path) -> &str {
        self.0.get(path).map(String::as_str).unwrap_or_default()
    }

    /// Tells whether files have changed.
    pub(crate) fn fingerprint(&self) -> Vec<u64> {
        self.0.values().map(|text| stable_hash(text.as_bytes())).collect()
    }
}
