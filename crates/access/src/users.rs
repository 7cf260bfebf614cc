//! Password files: `name:hash` per line, as mosquitto writes and reads them.
//!
//! A first character `#` makes a comment. Blanks around name and hash do not count; what follows a
//! second `:` is ignored. A line without `:` is skipped with a warning.

use std::collections::HashMap;
use std::fmt;

use crate::file::FileError;
use crate::file::shown;
use crate::hash::{Memory, NoRandomness, Scheme, ScramHash, ScramTerms, StoredPassword};
use crate::remembered::{ProcessKey, Proof};

/// The length of a user name travels as 16 bits.
const NAME_BYTES_MAX: usize = 65_535;
const USERS_MAX: usize = 1_000_000;
/// Warnings about one file.
const WARNINGS_MAX: usize = 10;

/// The users of a password file.
pub struct Users {
    by_name: HashMap<Box<str>, StoredPassword>,
    /// Verified in the place of a user that does not exist, so that this takes as long.
    decoy: StoredPassword,
    /// What SCRAM tells of each user that has such a password, in order.
    scram_terms: Vec<ScramTerms>,
    warnings: Vec<String>,
}

impl Users {
    /// Parses the text of a password file; `path` is for errors.
    ///
    /// # Errors
    /// A line has no name, a name twice, or a hash that cannot be used; or there are too many.
    pub fn parse(path: &str, text: &str) -> Result<Self, FileError> {
        let mut by_name = HashMap::new();
        let mut warnings = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let fail = |what: String| Err(FileError::at(path, number, what));
            let Some((name, value)) = fields(line) else {
                if !line.trim().is_empty()
                    && !line.starts_with('#')
                    && warnings.len() < WARNINGS_MAX
                {
                    warnings.push(format!("{path}:{number}: a line without `:` is ignored"));
                }
                continue;
            };
            if let Err(error) = check_name(name) {
                return fail(error.to_string());
            }
            if value.is_empty() {
                return fail(format!("the user {} has no password", shown(name)));
            }
            let stored = match StoredPassword::parse(value) {
                Ok(stored) => stored,
                Err(error) => return fail(format!("the user {}: {error}", shown(name))),
            };
            if by_name.insert(name.into(), stored).is_some() {
                return fail(format!("the user {} is there twice", shown(name)));
            }
            if by_name.len() > USERS_MAX {
                return fail(format!("there are more than {USERS_MAX} users"));
            }
        }
        let decoy = decoy(&by_name).map_err(|error| FileError::whole(path, error.to_string()))?;
        let mut scram_terms: Vec<_> = by_name.values().filter_map(ScramTerms::of).collect();
        scram_terms.sort_unstable();
        Ok(Self { by_name, decoy, scram_terms, warnings })
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The names of all users, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// Whether a user can log in by SCRAM with this hash.
    pub fn has_scram(&self, hash: ScramHash) -> bool {
        // Asked for CONNECT packets of strangers: sorted by their hash first, see `parse`.
        self.scram_terms.binary_search_by(|terms| terms.hash.cmp(&hash)).is_ok()
    }

    pub(crate) fn scram_terms(&self) -> &[ScramTerms] {
        &self.scram_terms
    }

    /// What in the file has no effect.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The stored password of a user.
    pub fn get(&self, name: &str) -> Option<&StoredPassword> {
        self.by_name.get(name)
    }

    /// The proof of a login, right or wrong; `None` for a user that does not exist, which takes as
    /// long.
    pub fn proof(&self, key: &ProcessKey, name: &str, password: &[u8]) -> Option<Proof> {
        let stored = self.by_name.get(name);
        let proof = key.proof(name, stored.unwrap_or(&self.decoy), password);
        stored.map(|_| proof)
    }

    /// Whether the user exists and has this password. A refusal takes as long for a user that does
    /// not exist as for one that does.
    pub fn verify(&self, name: &str, password: &[u8], memory: &mut Memory) -> bool {
        let Some(stored) = self.by_name.get(name) else {
            self.decoy.verify(password, memory);
            return false;
        };
        let is_right = stored.verify(password, memory);
        if !is_right && stored.scheme().is_cheaper_than(self.decoy.scheme()) {
            self.decoy.verify(password, memory);
        }
        is_right
    }
}

/// Shows no secret.
impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A hash that no user has, as costly as the costliest of the file. It is copied, salt and all: to
/// hash another password would take time at every start.
fn decoy(users: &HashMap<Box<str>, StoredPassword>) -> Result<StoredPassword, NoRandomness> {
    let mut costliest: Option<&StoredPassword> = None;
    for stored in users.values() {
        if costliest.is_none_or(|known| known.scheme().is_cheaper_than(stored.scheme())) {
            costliest = Some(stored);
        }
    }
    match costliest {
        Some(stored) => Ok(stored.clone()),
        None => StoredPassword::make(b"", Scheme::Sha512),
    }
}

/// Why a text cannot be a user name in a password file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("the user name is empty")]
    Empty,
    /// It is too long.
    #[error("the user name is longer than 65535 bytes")]
    TooLong,
    /// It would be read as something else.
    #[error(
        "the user name contains `:` or a control character, starts with `#`, or has blanks around it"
    )]
    Characters,
}

/// Checks a user name for a password file.
///
/// # Errors
/// It could not be read back as it is.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    let is_wrong = |character: char| character == ':' || character.is_control();
    if name.starts_with('#') || name.trim() != name || name.contains(is_wrong) {
        return Err(NameError::Characters);
    }
    Ok(())
}

/// Name and hash of a line, if it is a user's.
fn fields(line: &str) -> Option<(&str, &str)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_once(':')?;
    let value = rest.split(':').next().unwrap_or(rest);
    Some((name.trim(), value.trim()))
}

/// The text of a password file with a user added, or with the password of the user changed. All
/// other lines stay as they are.
pub fn set_user(text: &str, name: &str, stored: &StoredPassword) -> String {
    set_users(text, [(name, stored)]).0
}

/// [`set_user`] for many users; with how many were there before.
pub fn set_users<'a>(
    text: &str,
    users: impl IntoIterator<Item = (&'a str, &'a StoredPassword)>,
) -> (String, usize) {
    let mut replaced = 0;
    let users: Vec<(&str, String)> =
        users.into_iter().map(|(name, stored)| (name, format!("{name}:{stored}"))).collect();
    let mut left: HashMap<&str, &str> =
        users.iter().map(|(name, entry)| (*name, entry.as_str())).collect();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let entry = fields(line).and_then(|(name, _)| left.remove(name));
        replaced += usize::from(entry.is_some());
        lines.push(entry.unwrap_or(line));
    }
    let added = users.iter().filter(|(name, _)| left.contains_key(name));
    lines.extend(added.map(|(_, entry)| entry.as_str()));
    (with_line_ends(&lines), replaced)
}

/// The text of a password file with every plain password hashed; with how many there were.
///
/// # Errors
/// A line cannot be read without doubt, or there are no random numbers.
pub fn hash_plain(path: &str, text: &str, scheme: Scheme) -> Result<(String, usize), FileError> {
    let mut hashed = 0;
    let mut written = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((name, value)) = fields(line).filter(|(_, value)| !value.starts_with('$')) else {
            written.push_str(line);
            written.push('\n');
            continue;
        };
        let fail = |what: String| FileError::at(path, number, what);
        if value.is_empty() {
            return Err(fail(format!("the user {} has no password", shown(name))));
        }
        if line.matches(':').count() > 1 {
            let what = "a plain password with `:` cannot be told from a field: set it by name";
            return Err(fail(format!("the user {}: {what}", shown(name))));
        }
        check_name(name).map_err(|error| fail(error.to_string()))?;
        let stored = StoredPassword::make(value.as_bytes(), scheme);
        let stored = stored.map_err(|error| fail(error.to_string()))?;
        written.push_str(&format!("{name}:{stored}\n"));
        hashed += 1;
    }
    Ok((written, hashed))
}

/// The text of a password file without a user; `None` if the user is not there.
pub fn delete_user(text: &str, name: &str) -> Option<String> {
    let left: Vec<&str> = text.lines().filter(|line| !is_of(line, name)).collect();
    (left.len() < text.lines().count()).then(|| with_line_ends(&left))
}

fn is_of(line: &str, name: &str) -> bool {
    fields(line).is_some_and(|(known, _)| known == name)
}

fn with_line_ends(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests;
