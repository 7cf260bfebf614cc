//! What the API stores: the hashes of its keys, and the bans that operators make. It writes to its
//! own folder only; users, rules and bans of the configured files are read-only here.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use tacho_access::{Bans, read_text};
use tacho_http::{Role, hex, is_same};

use crate::config::{ConfigError, ManagementSettings};

/// The file of the hashes of keys.
const KEYS: &str = "keys";
/// The file of the bans, in the format of ban files.
const BANS: &str = "bans.toml";
/// Keys at most.
const KEYS_MAX: usize = 1_000;
/// Bans of operators at most; more belong into the ban file.
pub(super) const BANS_MAX: usize = 10_000;
/// Characters of the name of a key.
const NAME_CHARS_MAX: usize = 64;
/// Random bytes of a key: they cannot be guessed, so one pass of a hash is enough.
const KEY_BYTES: usize = 32;
/// How keys begin, so that they are recognized where they should not be.
const KEY_PREFIX: &str = "tacho_";

/// The keys and bans of the API.
#[derive(Debug)]
pub(crate) struct ManagementStore {
    /// Without it there are no keys, and bans end with the broker.
    folder: Option<PathBuf>,
    keys: Mutex<Vec<ApiKey>>,
    bans: Mutex<Vec<OperatorBan>>,
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiKey {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    /// SHA-256 of the key.
    hash: String,
    /// When it was made, in seconds since 1970.
    pub(super) made_s: i64,
}

/// A ban as an operator has made it: of one of the first three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OperatorBan {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// A date and a time with an offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
}

impl OperatorBan {
    /// Whether both are of the same thing.
    fn is_of_same(&self, other: &Self) -> bool {
        (&self.address, &self.client_id, &self.user)
            == (&other.address, &other.client_id, &other.user)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct BanFile {
    #[serde(default)]
    bans: Vec<OperatorBan>,
}

/// Why something is not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("the broker has no place for keys: set `management.store` to a folder")]
    NoFolder,
    #[error("a name has 1 to {NAME_CHARS_MAX} letters, digits, dots, dashes and underscores")]
    Name,
    #[error("there is a key '{0}' already: remove it first, or choose another name")]
    NameTaken(String),
    #[error("there are {0} already: remove some first")]
    Full(usize),
    #[error("{0}")]
    Ban(String),
    #[error("it cannot be stored: {0}")]
    Io(#[from] io::Error),
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl ManagementStore {
    /// Reads what is stored. The folder is made if it is not there.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub(crate) fn open(settings: &ManagementSettings) -> Result<Self, ConfigError> {
        let Some(folder) = &settings.store else {
            return Ok(Self { folder: None, keys: Mutex::default(), bans: Mutex::default() });
        };
        let failed = |path: &Path, why: String| ConfigError::ManagementStore {
            path: path.display().to_string(),
            why,
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| failed(folder, error.to_string()))?;
        let keys = folder.join(KEYS);
        let keys = match text_of(&keys).map_err(|why| failed(&keys, why))? {
            Some(text) => parse_keys(&text).map_err(|why| failed(&keys, why))?,
            None => Vec::new(),
        };
        let path = folder.join(BANS);
        let bans = match text_of(&path).map_err(|why| failed(&path, why))? {
            Some(text) => {
                Bans::parse(&path.display().to_string(), &text).map_err(ConfigError::Access)?;
                let file: BanFile =
                    toml::from_str(&text).map_err(|error| failed(&path, error.to_string()))?;
                file.bans
            }
            None => Vec::new(),
        };
        Ok(Self { folder: Some(folder.clone()), keys: keys.into(), bans: bans.into() })
    }

    /// The name and the role of a key, if it is one. All hashes are compared, each in a time that
    /// does not tell where it differs.
    pub(super) fn find_key(&self, key: &str) -> Option<(Arc<str>, Role)> {
        let given = hash_of(key);
        let mut found = None;
        for key in self.lock_keys().iter() {
            if is_same(given.as_bytes(), key.hash.as_bytes()) {
                found = Some((Arc::clone(&key.name), key.role));
            }
        }
        found
    }

    /// All keys, without what would open anything.
    pub(super) fn keys(&self) -> Vec<ApiKey> {
        self.lock_keys().clone()
    }

    /// Makes a key: it is told once, and only its hash is stored.
    pub(super) fn add_key(&self, name: &str, role: Role, now_s: i64) -> Result<String, StoreError> {
        let folder = self.folder.as_ref().ok_or(StoreError::NoFolder)?;
        let is_usable = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_usable) {
            return Err(StoreError::Name);
        }
        let mut keys = self.lock_keys();
        if keys.iter().any(|key| &*key.name == name) {
            return Err(StoreError::NameTaken(name.to_owned()));
        }
        if keys.len() >= KEYS_MAX {
            return Err(StoreError::Full(KEYS_MAX));
        }
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| StoreError::NoRandomness)?;
        let key = format!("{KEY_PREFIX}{}", hex(&bytes));
        let mut all = keys.clone();
        all.push(ApiKey { name: name.into(), role, hash: hash_of(&key), made_s: now_s });
        write(&folder.join(KEYS), &keys_text(&all))?;
        *keys = all;
        Ok(key)
    }

    /// Removes a key; false if there is none of this name.
    pub(super) fn remove_key(&self, name: &str) -> Result<bool, StoreError> {
        let folder = self.folder.as_ref().ok_or(StoreError::NoFolder)?;
        let mut keys = self.lock_keys();
        let mut all = keys.clone();
        all.retain(|key| &*key.name != name);
        if all.len() == keys.len() {
            return Ok(false);
        }
        write(&folder.join(KEYS), &keys_text(&all))?;
        *keys = all;
        Ok(true)
    }

    /// The bans of operators, as the broker applies them.
    pub(crate) fn applied_bans(&self) -> Arc<Bans> {
        // Invariant: only what can be parsed is stored.
        Arc::new(checked(&bans_text(&self.lock_bans())).unwrap_or_default())
    }

    /// The bans of operators.
    #[cfg(test)]
    fn bans(&self) -> Vec<OperatorBan> {
        self.lock_bans().clone()
    }

    /// Whether bans outlive the broker.
    pub(super) const fn is_lasting(&self) -> bool {
        self.folder.is_some()
    }

    /// Adds a ban, or replaces one of the same thing.
    pub(super) fn add_ban(&self, ban: OperatorBan) -> Result<Arc<Bans>, StoreError> {
        checked(&bans_text(std::slice::from_ref(&ban))).map_err(StoreError::Ban)?;
        let mut bans = self.lock_bans();
        let mut all = bans.clone();
        all.retain(|known| !known.is_of_same(&ban));
        if all.len() >= BANS_MAX {
            return Err(StoreError::Full(BANS_MAX));
        }
        all.push(ban);
        self.replace_bans(&mut bans, all)
    }

    /// Removes the ban of this; `None` if there is none.
    pub(super) fn remove_ban(&self, of: &OperatorBan) -> Result<Option<Arc<Bans>>, StoreError> {
        let mut bans = self.lock_bans();
        let mut all = bans.clone();
        all.retain(|known| !known.is_of_same(of));
        match all.len() == bans.len() {
            true => Ok(None),
            false => self.replace_bans(&mut bans, all).map(Some),
        }
    }

    fn replace_bans(
        &self,
        bans: &mut Vec<OperatorBan>,
        all: Vec<OperatorBan>,
    ) -> Result<Arc<Bans>, StoreError> {
        let text = bans_text(&all);
        // The same address may be written in two ways.
        let applied = checked(&text).map_err(StoreError::Ban)?;
        if let Some(folder) = &self.folder {
            write(&folder.join(BANS), &text)?;
        }
        *bans = all;
        Ok(Arc::new(applied))
    }

    fn lock_keys(&self) -> MutexGuard<'_, Vec<ApiKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_bans(&self) -> MutexGuard<'_, Vec<OperatorBan>> {
        self.bans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text_of(path: &Path) -> Result<Option<String>, String> {
    match path.try_exists() {
        Ok(false) => Ok(None),
        _ => read_text(path).map(Some).map_err(|error| error.to_string()),
    }
}

/// The bans of a text, or why they cannot be used: the line of an error says nothing about a
/// request.
fn checked(text: &str) -> Result<Bans, String> {
    const NAME: &str = "ban";
    Bans::parse(NAME, text).map_err(|error| {
        let place = match error.line() {
            Some(line) => format!("{NAME}:{line}: "),
            None => format!("{NAME}: "),
        };
        let sentence = error.to_string();
        sentence.strip_prefix(&place).unwrap_or(&sentence).to_owned()
    })
}

fn bans_text(bans: &[OperatorBan]) -> String {
    // Invariant: strings only, which TOML can always express.
    toml::to_string(&BanFile { bans: bans.to_vec() }).unwrap_or_default()
}

fn keys_text(keys: &[ApiKey]) -> String {
    let line = |key: &ApiKey| format!("{} {} {} {}\n", key.name, key.role, key.hash, key.made_s);
    keys.iter().map(line).collect()
}

fn parse_keys(text: &str) -> Result<Vec<ApiKey>, String> {
    let parsed = text.lines().enumerate().map(|(number, line)| {
        let fields: Vec<&str> = line.split(' ').collect();
        let key = match fields[..] {
            [name, role, hash, made_s] if hash.len() == 2 * SHA256.output_len() => {
                let role = Role::from_str(role).ok();
                let made_s = made_s.parse().ok();
                let hash = hash.to_owned();
                role.zip(made_s).map(|(role, made_s)| ApiKey {
                    name: name.into(),
                    role,
                    hash,
                    made_s,
                })
            }
            _ => None,
        };
        let form = "a line has the name, the role, the hash and the time of a key";
        key.ok_or_else(|| format!("line {}: {form}", number + 1))
    });
    parsed.collect()
}

fn hash_of(key: &str) -> String {
    hex(digest(&SHA256, key.as_bytes()).as_ref())
}

/// Replaces a file as a whole: after a crash it is the old one or the new one.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn open(folder: &Path) -> Result<ManagementStore, ConfigError> {
        ManagementStore::open(&ManagementSettings {
            store: Some(folder.to_owned()),
            ..ManagementSettings::default()
        })
    }

    #[test]
    fn keys_are_stored_as_hashes_and_outlive_the_broker() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("a/store");
        let store = open(&folder).expect("is made");
        let key = store.add_key("ci.1", Role::Viewer, 7).expect("is made");
        assert_eq!(key.len(), KEY_PREFIX.len() + 2 * KEY_BYTES);
        assert!(matches!(store.add_key("ci.1", Role::Viewer, 7), Err(StoreError::NameTaken(_))));
        for name in ["", "a b", "a/b", "\n", &"x".repeat(65)] {
            let made = store.add_key(name, Role::Viewer, 7);
            assert!(matches!(made, Err(StoreError::Name)), "{name}");
        }
        let path = folder.join(KEYS);
        let text = fs::read_to_string(&path).expect("is there");
        assert!(!text.contains(&key[KEY_PREFIX.len()..]), "{text}");
        assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        let again = open(&folder).expect("is read");
        assert_eq!(again.find_key(&key), Some(("ci.1".into(), Role::Viewer)));
        for wrong in ["", "tacho_", &key[1..], &format!("{key}0")] {
            assert_eq!(again.find_key(wrong), None, "{wrong}");
        }
        assert!(again.remove_key("ci.1").expect("is written"));
        assert!(!again.remove_key("ci.1").expect("is known"));
        assert_eq!(again.find_key(&key), None);
        fs::write(&path, "ci viewer short 7\n").expect("writes");
        let error = open(&folder).expect_err("is damaged").to_string();
        assert!(error.contains("keys: line 1"), "{error}");
    }

    #[test]
    fn without_a_folder_there_are_no_keys_and_bans_are_in_memory() {
        let store = ManagementStore::open(&ManagementSettings::default()).expect("needs nothing");
        assert!(matches!(store.add_key("a", Role::Viewer, 0), Err(StoreError::NoFolder)));
        let ban = OperatorBan { user: Some("ann".to_owned()), ..OperatorBan::default() };
        assert!(store.add_ban(ban).expect("is kept").of_user("ann", 0).is_some());
        assert!(!store.is_lasting());
    }

    #[test]
    fn bans_are_checked_replaced_and_kept() {
        let place = tempfile::tempdir().expect("a folder");
        let store = open(place.path()).expect("is made");
        let of = |address: &str| OperatorBan {
            address: Some(address.to_owned()),
            ..OperatorBan::default()
        };
        for wrong in [
            OperatorBan::default(),
            of("somewhere"),
            OperatorBan { user: Some("x".to_owned()), ..of("192.0.2.7") },
            OperatorBan { until: Some("tomorrow".to_owned()), ..of("192.0.2.7") },
        ] {
            assert!(matches!(store.add_ban(wrong.clone()), Err(StoreError::Ban(_))), "{wrong:?}");
        }
        store.add_ban(of("192.0.2.7")).expect("is right");
        let reason = Some("scans \"all\"\\ports".to_owned());
        store.add_ban(OperatorBan { reason, ..of("192.0.2.7") }).expect("replaces it");
        // The same in other words.
        assert!(matches!(store.add_ban(of("192.0.2.7/32")), Err(StoreError::Ban(_))));
        assert_eq!(store.bans().len(), 1);
        let again = open(place.path()).expect("is read");
        assert_eq!(again.bans(), store.bans());
        assert!(again.applied_bans().has_addresses());
        assert!(again.remove_ban(&of("192.0.2.8")).expect("is known").is_none());
        assert!(again.remove_ban(&of("192.0.2.7")).expect("is written").is_some());
        assert!(open(place.path()).expect("is read").bans().is_empty());
    }
}
