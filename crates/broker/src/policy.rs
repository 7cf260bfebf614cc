//! The policy: password files by listener, keys of tokens, access rules and bans, as read last.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_access::{
    AccessList, Acl, Ban, Bans, FileError, RuleSet, TokenRules, TokenVerifier, Users, read_text,
};

use crate::config::{Config, JwtSettings};
use crate::keys::stable_hash;

/// What the files say.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// Counts reloads, from 1 on.
    version: u32,
    /// By listener.
    users: Vec<Option<Arc<Users>>>,
    /// Of all listeners.
    tokens: Option<Arc<TokenVerifier>>,
    list: Option<Arc<AccessList>>,
    bans: Arc<Bans>,
    /// Those that operators have made while the broker ran.
    operator_bans: Arc<Bans>,
}

impl Policy {
    pub(crate) const fn version(&self) -> u32 {
        self.version
    }

    /// The users of a listener, if its clients log in.
    pub(crate) fn users(&self, listener: u16) -> Option<&Arc<Users>> {
        self.users.get(usize::from(listener))?.as_ref()
    }

    /// What verifies tokens, if clients may log in with them.
    pub(crate) const fn tokens(&self) -> Option<&Arc<TokenVerifier>> {
        self.tokens.as_ref()
    }

    /// The access rules, if there are any.
    pub(crate) fn list(&self) -> Option<&AccessList> {
        self.list.as_deref()
    }

    /// The bans of the ban file.
    pub(crate) fn file_bans(&self) -> &Bans {
        &self.bans
    }

    /// Whether anything is banned, by the file or by operators.
    pub(crate) fn has_bans(&self) -> bool {
        !self.bans.is_empty() || !self.operator_bans.is_empty()
    }

    /// Whether any address is.
    pub(crate) fn has_banned_addresses(&self) -> bool {
        self.bans.has_addresses() || self.operator_bans.has_addresses()
    }

    /// The ban of an address at this time, in seconds since 1970.
    pub(crate) fn ban_of_address(&self, address: IpAddr, unix_s: i64) -> Option<&Ban> {
        let of_file = self.bans.of_address(address, unix_s);
        of_file.or_else(|| self.operator_bans.of_address(address, unix_s))
    }

    /// The ban of a client identifier at this time, in seconds since 1970.
    pub(crate) fn ban_of_client_id(&self, client_id: &str, unix_s: i64) -> Option<&Ban> {
        let of_file = self.bans.of_client_id(client_id, unix_s);
        of_file.or_else(|| self.operator_bans.of_client_id(client_id, unix_s))
    }

    /// The ban of a user at this time, in seconds since 1970.
    pub(crate) fn ban_of_user(&self, user: &str, unix_s: i64) -> Option<&Ban> {
        let of_file = self.bans.of_user(user, unix_s);
        of_file.or_else(|| self.operator_bans.of_user(user, unix_s))
    }

    /// The same with other bans of operators, as the next version.
    pub(crate) fn with_operator_bans(&self, operator_bans: Arc<Bans>) -> Self {
        Self {
            version: self.version + 1,
            users: self.users.clone(),
            tokens: self.tokens.clone(),
            list: self.list.clone(),
            bans: Arc::clone(&self.bans),
            operator_bans,
        }
    }

    /// This policy, from files, with the bans of operators of another.
    pub(crate) fn with_operator_bans_of(self, other: &Self) -> Self {
        Self { operator_bans: Arc::clone(&other.operator_bans), ..self }
    }

    /// The same with other keys of tokens, as the next version.
    pub(crate) fn with_tokens(&self, tokens: TokenVerifier) -> Self {
        Self {
            version: self.version + 1,
            users: self.users.clone(),
            tokens: Some(Arc::new(tokens)),
            list: self.list.clone(),
            bans: Arc::clone(&self.bans),
            operator_bans: Arc::clone(&self.operator_bans),
        }
    }

    /// This policy, from files, with the keys of tokens of another, which were fetched.
    pub(crate) fn with_fetched_tokens(self, other: &Self) -> Self {
        Self { tokens: other.tokens.clone(), ..self }
    }

    /// Whether clients of any listener log in.
    pub(crate) fn has_logins(&self) -> bool {
        self.tokens.is_some() || self.users.iter().any(Option::is_some)
    }
}

/// The paths of the files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// By listener.
    passwords: Vec<Option<PathBuf>>,
    /// By listener: whether certificates name users.
    certified: Vec<bool>,
    /// With what is asked of tokens.
    token_keys: Option<(PathBuf, TokenRules)>,
    /// What is asked of tokens whose keys are fetched.
    fetched_keys: Option<TokenRules>,
    acl: Option<PathBuf>,
    rules: Option<PathBuf>,
    bans: Option<PathBuf>,
    /// Addresses of the listeners, which rules may name.
    listeners: Vec<SocketAddr>,
}

/// The files as read, to be parsed.
pub(crate) struct Texts(BTreeMap<PathBuf, String>);

impl Files {
    pub(crate) fn of(config: &Config) -> Self {
        let passwords = config.listeners.iter().map(|listener| listener.password_file.clone());
        let jwt = config.access.jwt.as_ref();
        Self {
            passwords: passwords.collect(),
            certified: config.listeners.iter().map(|l| l.certificates.is_some()).collect(),
            token_keys: jwt.and_then(|jwt| Some((jwt.key_file.clone()?, jwt.rules()))),
            fetched_keys: jwt.filter(|jwt| jwt.key_url.is_some()).map(JwtSettings::rules),
            acl: config.access.acl_file.clone(),
            rules: config.access.rules_file.clone(),
            bans: config.access.ban_file.clone(),
            listeners: config.listeners.iter().map(|listener| listener.address).collect(),
        }
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
        let mut logins = policy.users.iter().zip(&self.certified);
        let has_open = policy.tokens.is_none()
            && logins.any(|(users, is_certified)| users.is_none() && !is_certified);
        if has_open && policy.list().is_some_and(AccessList::names_users) {
            tracing::warn!(
                "the access rules name users, but a listener has no password file: its clients \
                 count as anonymous, since their names are not verified"
            );
        }
        let has_secret = policy.tokens.as_ref().is_some_and(|tokens| tokens.has_secret());
        let secrets = self.token_keys.iter().filter(|_| has_secret).map(|(path, _)| path);
        for path in self.passwords.iter().flatten().chain(secrets).collect::<BTreeSet<_>>() {
            if is_readable_by_all(path) {
                tracing::warn!(
                    "{}: all users of this machine may read the secrets in it (chmod o-r)",
                    path.display()
                );
            }
        }
    }

    /// Whether the keys of tokens are in none of the files, but are fetched.
    pub(crate) const fn lack_keys(&self) -> bool {
        self.fetched_keys.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let token_keys = self.token_keys.iter().map(|(path, _)| path);
        let lists = [&self.acl, &self.rules, &self.bans];
        self.passwords.iter().chain(lists).flatten().chain(token_keys)
    }

    pub(crate) fn read(&self) -> Result<Texts, FileError> {
        let mut texts = BTreeMap::new();
        for path in self.paths() {
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
        let list = self.parse_list(texts)?.map(Arc::new);
        let tokens = match &self.token_keys {
            Some((path, rules)) => {
                let shown = path.display().to_string();
                let verifier = TokenVerifier::parse(&shown, texts.of(path), rules.clone())?;
                Some(Arc::new(verifier))
            }
            None => self.fetched_keys.clone().map(TokenVerifier::without_keys).map(Arc::new),
        };
        let bans = match &self.bans {
            Some(path) => Bans::parse(&path.display().to_string(), texts.of(path))?,
            None => Bans::default(),
        };
        let (bans, operator_bans) = (Arc::new(bans), Arc::default());
        Ok(Policy { version, users, tokens, list, bans, operator_bans })
    }

    fn parse_list(&self, texts: &Texts) -> Result<Option<AccessList>, FileError> {
        if let Some(path) = &self.rules {
            let (shown, listeners) = (path.display().to_string(), Some(&*self.listeners));
            let rules = RuleSet::parse(&shown, texts.of(path), listeners)?;
            return Ok(Some(AccessList::Rules(rules)));
        }
        let Some(path) = &self.acl else { return Ok(None) };
        let acl = Acl::parse(&path.display().to_string(), texts.of(path))?;
        Ok(Some(AccessList::Mosquitto(acl)))
    }
}

#[cfg(unix)]
pub(crate) fn is_readable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_readable_by_all(_path: &Path) -> bool {
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
