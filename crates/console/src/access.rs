//! Who may use the console: tokens with roles.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use tacho_http::{Role, is_same};
use thiserror::Error;

use crate::regular;

/// The file of the token that the console makes.
const FILE: &str = ".console-token";
/// A larger file is none of tokens.
const BYTES_MAX: u64 = 64 << 10;
/// Tokens of a file.
const TOKENS_MAX: usize = 1000;
/// A shorter token could be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// A token fits into a header and an address.
const TOKEN_CHARS_MAX: usize = 512;

/// Why there are no tokens.
#[derive(Debug, Error)]
pub enum AccessError {
    /// The system gives no random numbers.
    #[error("{0}")]
    Random(tacho_monitor::TokenError),
    /// A file cannot be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
}

/// All tokens.
#[derive(Debug)]
pub(crate) struct Access {
    tokens: Vec<(Role, String)>,
}

impl Access {
    /// The console's own token, which `folder` keeps for the next start, and those of `file`: a
    /// line of a role and a token each.
    ///
    /// # Errors
    /// When a file cannot be read, or is no such file. A folder that cannot be written to has
    /// another token at each start.
    pub(crate) fn open(folder: &Path, file: Option<&Path>) -> Result<Self, AccessError> {
        let mut tokens = vec![(Role::Operator, own(&folder.join(FILE))?)];
        if let Some(file) = file {
            tokens.extend(read_tokens(file)?);
        }
        Ok(Self { tokens })
    }

    /// The console's own token.
    pub(crate) fn own(&self) -> &str {
        // Invariant: the first one is made when it is opened.
        &self.tokens[0].1
    }

    /// What a token allows. All are compared, each in a time that does not tell where it differs.
    pub(crate) fn role(&self, given: &str) -> Option<Role> {
        let mut found = None;
        for (role, token) in &self.tokens {
            if is_same(given.as_bytes(), token.as_bytes()) {
                found = found.max(Some(*role));
            }
        }
        found
    }
}

/// The token in the file, which is made where it is not there.
fn own(path: &Path) -> Result<String, AccessError> {
    let failed = |error: &io::Error| AccessError::File {
        path: path.display().to_string(),
        why: format!("{error}; it keeps the token of the console"),
    };
    match regular::open(path) {
        Ok((file, _)) => {
            // One that others can read is no secret any more, but may be kept from now on.
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
            let mut text = String::new();
            let read = file.take(BYTES_MAX).read_to_string(&mut text);
            read.map_err(|error| failed(&error))?;
            if is_usable(text.trim()) {
                return Ok(text.trim().to_owned());
            }
            fs::remove_file(path).map_err(|error| failed(&error))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&error)),
    }
    let (_, token) = tacho_monitor::Token::generate().map_err(AccessError::Random)?;
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    if let Ok(mut file) = made {
        file.write_all(format!("{token}\n").as_bytes()).map_err(|error| failed(&error))?;
    }
    Ok(token)
}

fn read_tokens(path: &Path) -> Result<Vec<(Role, String)>, AccessError> {
    let failed = |why: String| AccessError::File { path: path.display().to_string(), why };
    let text = regular::read(path, BYTES_MAX).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| failed("it is no text".to_owned()))?;
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is a secret and is not repeated.
        let form = || {
            failed(format!(
                "line {}: write a role, viewer or operator, and a token of {TOKEN_CHARS_MIN} letters \
                 and digits or more",
                number + 1
            ))
        };
        let (role, token) = line.split_once(char::is_whitespace).ok_or_else(form)?;
        // Nothing here is for administrators alone.
        let role = [Role::Viewer, Role::Operator].into_iter().find(|known| known.name() == role);
        let role = role.ok_or_else(form)?;
        let token = token.trim();
        if !is_usable(token) {
            return Err(form());
        }
        tokens.push((role, token.to_owned()));
        if tokens.len() > TOKENS_MAX {
            return Err(failed(format!("more than {TOKENS_MAX} tokens")));
        }
    }
    Ok(tokens)
}

/// May this be a token? It goes into headers, addresses and cookies as it is.
fn is_usable(token: &str) -> bool {
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len()) && token.chars().all(usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_token_survives_and_only_its_owner_can_read_it() {
        let place = tempfile::tempdir().expect("a folder");
        let first = Access::open(place.path(), None).expect("is made").own().to_owned();
        let path = place.path().join(FILE);
        let mode = || fs::metadata(&path).expect("is there").permissions().mode() & 0o777;
        assert_eq!((first.len() >= 32, mode()), (true, 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changes");
        let access = Access::open(place.path(), None).expect("is read");
        assert_eq!((access.own(), mode()), (first.as_str(), 0o600));
        assert_eq!(access.role(&first), Some(Role::Operator));
        for wrong in ["", "x", &first[1..], &format!("{first}x"), &first.to_uppercase()] {
            assert_eq!(access.role(wrong), None, "{wrong}");
        }
        fs::write(&path, "short").expect("writes");
        assert!(Access::open(place.path(), None).expect("is made anew").own().len() >= 32);
    }

    #[test]
    fn tokens_of_a_file_have_roles_and_wrong_lines_are_named_without_their_content() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("tokens");
        fs::write(&file, "# who\n\nviewer  0123456789abcdef\noperator\tfedcba9876543210\n")
            .expect("writes");
        let access = Access::open(place.path(), Some(&file)).expect("is right");
        assert_eq!(access.role("0123456789abcdef"), Some(Role::Viewer));
        assert_eq!(access.role("fedcba9876543210"), Some(Role::Operator));
        for wrong in
            ["admin 0123456789abcdef", "viewer short-secret", "viewer", "viewer 0123456789abcdef;x"]
        {
            fs::write(&file, format!("viewer 0123456789abcdef\n{wrong}\n")).expect("writes");
            let error = Access::open(place.path(), Some(&file)).expect_err(wrong).to_string();
            assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
        }
        assert!(Access::open(place.path(), Some(&place.path().join("missing"))).is_err());
    }
}
