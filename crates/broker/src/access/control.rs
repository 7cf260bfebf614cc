//! The files of access control of a running broker, and their reload.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_access::{Bans, FileError, TokenVerifier};
use tacho_net::Remote;

use super::audit::{Audit, AuditEvent, AuditKind};
use super::backend::NamedHealth;
use super::bans::OffenceBans;
use super::key_fetches::KeyFetches;
use super::unix_offset::UnixOffset;
use crate::config::Config;
use crate::keys::stable_hash;
use crate::mail::Mail;
use crate::policy::{Files, Policy, Texts};

/// The files of access control of a running broker. Cheap to clone.
#[derive(Clone)]
pub struct AccessControl(Arc<Inner>);

struct Inner {
    current: Mutex<Current>,
    /// To the shards.
    remote: Remote<Mail>,
    audit: Audit,
    bans: Arc<OffenceBans>,
    unix_offset: Arc<UnixOffset>,
    is_unusable: AtomicBool,
    failures: AtomicU64,
    key_fetches: KeyFetches,
    backends: Vec<NamedHealth>,
}

struct Current {
    files: Files,
    /// Of the files that the policy was read from.
    fingerprint: Vec<u64>,
    policy: Arc<Policy>,
    /// Of the keys of tokens that were fetched last.
    keys: Option<u64>,
    /// What the files held when they were looked at last, if that is new.
    seen: Option<FilesFound>,
    /// What the files held when they could not be used: that is not tried again.
    unusable: Option<FilesFound>,
}

/// What files hold.
#[derive(PartialEq, Eq)]
enum FilesFound {
    Texts(Vec<u64>),
    Unreadable(FileError),
}

impl FilesFound {
    fn of(read: &Result<Texts, FileError>) -> Self {
        match read {
            Ok(texts) => Self::Texts(texts.fingerprint()),
            Err(error) => Self::Unreadable(error.clone()),
        }
    }
}

/// What looking at the files has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// What they hold is in force, or cannot be used.
    Settled,
    /// They have changed just now. Soon they should be looked at again.
    Changing,
}

impl AccessControl {
    /// Reads the files.
    pub(crate) fn open(
        config: &Config,
        remote: Remote<Mail>,
        audit: Audit,
    ) -> Result<Self, FileError> {
        let files = Files::of(config);
        let (fingerprint, policy) = files.open()?;
        let policy = Arc::new(policy);
        let current = Mutex::new(Current {
            files,
            fingerprint,
            policy,
            keys: None,
            seen: None,
            unusable: None,
        });
        let (is_unusable, failures) = (AtomicBool::new(false), AtomicU64::new(0));
        let bans = Arc::new(OffenceBans::new(&config.access));
        let unix_offset = Arc::new(UnixOffset::read());
        let inner = Inner {
            current,
            remote,
            audit,
            bans,
            unix_offset,
            is_unusable,
            failures,
            key_fetches: KeyFetches::default(),
            backends: NamedHealth::all(&config.access.http),
        };
        Ok(Self(Arc::new(inner)))
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.0.lock().policy)
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    pub(crate) fn bans(&self) -> &Arc<OffenceBans> {
        &self.0.bans
    }

    pub(crate) fn unix_offset(&self) -> Arc<UnixOffset> {
        Arc::clone(&self.0.unix_offset)
    }

    pub(crate) fn has_files(&self) -> bool {
        !self.0.lock().files.is_empty()
    }

    /// Whether the files differ from the policy in force, since they cannot be used.
    pub(crate) fn is_unusable(&self) -> bool {
        self.0.is_unusable.load(Ordering::Relaxed)
    }

    pub(crate) fn key_fetches(&self) -> &KeyFetches {
        &self.0.key_fetches
    }

    /// How asking the backends of logins goes.
    pub(crate) fn backends(&self) -> &[NamedHealth] {
        &self.0.backends
    }

    /// Keys of tokens have been fetched: they are in force from now on. False if they were before.
    pub(super) fn keys_fetched(&self, url: &str, text: &str) -> Result<bool, FileError> {
        let inner = &*self.0;
        let mut current = inner.lock();
        let keys = Some(stable_hash(text.as_bytes()));
        let Some(tokens) = current.policy.tokens().filter(|_| current.keys != keys) else {
            return Ok(false);
        };
        let verifier = TokenVerifier::parse_fetched(url, text, tokens.rules().clone())?;
        current.policy = Arc::new(current.policy.with_tokens(verifier));
        current.keys = keys;
        inner.post(&current.policy);
        inner.note(AuditKind::RulesChanged, Some("keys of tokens were fetched".to_owned()));
        Ok(true)
    }

    /// The bans that operators had made before the broker started.
    pub(crate) fn begin_with_bans(&self, bans: Arc<Bans>) {
        let mut current = self.0.lock();
        if !bans.is_empty() {
            current.policy = Arc::new(current.policy.with_operator_bans(bans));
        }
    }

    /// Operators have made these bans: they are in force from now on, and end connections.
    pub(crate) fn change_bans(&self, bans: Arc<Bans>) {
        let inner = &*self.0;
        let mut current = inner.lock();
        current.policy = Arc::new(current.policy.with_operator_bans(bans));
        inner.post(&current.policy);
    }

    /// How often files could not be used.
    pub(crate) fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Reads the files again and applies them, also to clients that are connected. Files that
    /// cannot be used change nothing. Opens the audit log anew.
    pub fn reload(&self) -> AccessReloaded {
        let inner = &*self.0;
        inner.audit.reopen();
        inner.unix_offset.read_again();
        let mut current = inner.lock();
        if current.files.is_empty() {
            return AccessReloaded::NotConfigured;
        }
        let read = current.files.read();
        let found = FilesFound::of(&read);
        if current.is_in_force(&found) {
            inner.settled(&mut current);
            return AccessReloaded::Unchanged;
        }
        inner.apply(&mut current, read, found)
    }

    /// Uses files for other listeners, read before: they are in force from now on.
    pub(crate) fn use_files(&self, files: Files, texts: &Texts) -> Result<(), FileError> {
        let inner = &*self.0;
        let mut current = inner.lock();
        let policy = files.parse(texts, current.policy.version() + 1)?;
        (current.files, current.fingerprint) = (files, texts.fingerprint());
        current.take(policy);
        inner.settled(&mut current);
        inner.post(&current.policy);
        Ok(())
    }

    /// Reads the files, and applies them if they have changed and are the same as at the last look.
    /// What cannot be used is tried, and logged, once.
    pub(crate) fn look(&self) -> Looked {
        let inner = &*self.0;
        inner.unix_offset.read_again();
        let mut current = inner.lock();
        let read = current.files.read();
        let found = FilesFound::of(&read);
        if current.is_in_force(&found) {
            inner.settled(&mut current);
            return Looked::Settled;
        }
        if current.unusable.as_ref() == Some(&found) {
            current.seen = None;
            return Looked::Settled;
        }
        if current.seen.as_ref() != Some(&found) {
            current.seen = Some(found);
            return Looked::Changing;
        }
        let reloaded = inner.apply(&mut current, read, found);
        if reloaded == AccessReloaded::New {
            tracing::info!("{reloaded}");
        }
        Looked::Settled
    }
}

impl Current {
    /// A policy of the files, with what is not in files.
    fn take(&mut self, policy: Policy) {
        let policy = policy.with_operator_bans_of(&self.policy);
        let policy = match self.files.lack_keys() {
            true => policy.with_fetched_tokens(&self.policy),
            false => policy,
        };
        self.policy = Arc::new(policy);
    }

    fn is_in_force(&self, found: &FilesFound) -> bool {
        matches!(found, FilesFound::Texts(fingerprint) if *fingerprint == self.fingerprint)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all shards. Called under the lock, so that versions arrive in order.
    fn post(&self, policy: &Arc<Policy>) {
        for shard in 0..self.remote.shards() {
            self.remote.post(shard, Mail::PolicyChanged(Arc::clone(policy)));
        }
    }

    fn note(&self, event: AuditKind, why: Option<String>) {
        self.audit.note(AuditEvent { event, why, ..AuditEvent::default() });
    }

    /// The files hold what is in force.
    fn settled(&self, current: &mut Current) {
        (current.seen, current.unusable) = (None, None);
        self.is_unusable.store(false, Ordering::Relaxed);
    }

    fn apply(
        &self,
        current: &mut Current,
        read: Result<Texts, FileError>,
        found: FilesFound,
    ) -> AccessReloaded {
        let version = current.policy.version() + 1;
        match read.and_then(|texts| current.files.parse(&texts, version)) {
            Ok(policy) => {
                current.take(policy);
                if let FilesFound::Texts(fingerprint) = found {
                    current.fingerprint = fingerprint;
                }
                self.settled(current);
                self.post(&current.policy);
                self.note(AuditKind::RulesChanged, None);
                AccessReloaded::New
            }
            Err(error) => {
                tracing::error!(
                    "the new users and access rules cannot be used, the old ones stay in force: \
                     {error}"
                );
                (current.seen, current.unusable) = (None, Some(found));
                self.is_unusable.store(true, Ordering::Relaxed);
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.note(AuditKind::RulesUnusable, Some(error.to_string()));
                AccessReloaded::Unusable
            }
        }
    }
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").field("files", &self.0.lock().files).finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tacho_net::mailboxes;
    use tempfile::TempDir;

    use super::*;
    use crate::config::RawConfig;

    const RULES: &str = "topic read a/#\n";

    /// A broker's access control with an access list, and the path of that.
    fn control(folder: &TempDir) -> (AccessControl, PathBuf) {
        let path = folder.path().join("acl");
        fs::write(&path, RULES).expect("writes");
        let mut raw = RawConfig::default();
        raw.access.acl_file = Some(path.clone());
        let config = raw.resolve().expect("valid");
        let remote = mailboxes::<Mail>(1)[0].remote();
        (AccessControl::open(&config, remote, Audit::default()).expect("valid"), path)
    }

    #[test]
    fn a_change_counts_once_it_is_seen_twice() {
        let folder = TempDir::new().expect("a folder");
        let (control, path) = control(&folder);
        assert_eq!(control.look(), Looked::Settled);
        // A writer has truncated the file, and goes on.
        for half in ["", "topic read"] {
            fs::write(&path, half).expect("writes");
            assert_eq!(control.look(), Looked::Changing);
        }
        fs::write(&path, "topic read b\n").expect("writes");
        assert_eq!(control.look(), Looked::Changing);
        assert_eq!(control.policy().version(), 1);
        assert_eq!(control.look(), Looked::Settled);
        assert_eq!((control.policy().version(), control.failures()), (2, 0));
        assert_eq!(control.look(), Looked::Settled);
        assert_eq!(control.policy().version(), 2);
    }

    #[test]
    fn what_cannot_be_used_is_tried_once_and_told_until_it_is_mended() {
        let folder = TempDir::new().expect("a folder");
        let (control, path) = control(&folder);
        let look_twice = || [control.look(), control.look()];
        fs::write(&path, "topc read b\n").expect("writes");
        assert_eq!(look_twice(), [Looked::Changing, Looked::Settled]);
        assert_eq!(look_twice(), [Looked::Settled; 2]);
        assert_eq!((control.is_unusable(), control.failures()), (true, 1));
        fs::remove_file(&path).expect("is there");
        assert_eq!(look_twice(), [Looked::Changing, Looked::Settled]);
        assert_eq!(look_twice(), [Looked::Settled; 2]);
        assert_eq!((control.is_unusable(), control.failures()), (true, 2));
        assert_eq!(control.policy().version(), 1);
        // What is in force still.
        fs::write(&path, RULES).expect("writes");
        assert_eq!(control.look(), Looked::Settled);
        assert_eq!((control.is_unusable(), control.policy().version()), (false, 1));
        // The same mistake again is another one.
        fs::write(&path, "topc read b\n").expect("writes");
        assert_eq!(look_twice(), [Looked::Changing, Looked::Settled]);
        assert_eq!((control.is_unusable(), control.failures()), (true, 3));
        assert_eq!(control.reload(), AccessReloaded::Unusable);
        assert_eq!(control.failures(), 4);
        fs::write(&path, "topic read b\n").expect("writes");
        assert_eq!(control.reload(), AccessReloaded::New);
        assert_eq!((control.is_unusable(), control.policy().version()), (false, 2));
    }
}
