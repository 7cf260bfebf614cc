//! Users of EMQX's built-in database: files for its `import_users`, CSV or JSON.
//!
//! Columns are `user_id` and either `password` or `password_hash`, with `salt` and `is_superuser`
//! where there are any. Hashes are hexadecimal, bcrypt's excepted; a salt is the text as it is in
//! the file. How passwords were hashed is a setting there, and not in the file.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::Deserialize;

use crate::file::FileError;
use crate::hash::{DigestKind, HashError, SaltPlace, Scheme, StoredPassword};
use crate::users::check_name;

/// How EMQX hashed the passwords of a file: its `password_hash_algorithm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmqxHash {
    /// `sha`, `sha256` or `sha512`, with `salt_position`.
    Digest {
        /// The digest.
        digest: DigestKind,
        /// Where the salt is.
        salt: SaltPlace,
    },
    /// `bcrypt`: cost and salt are in the hash.
    Bcrypt,
    /// `pbkdf2`, with `mac_fun` and `iterations`.
    Pbkdf2 {
        /// The digest.
        digest: DigestKind,
        /// Rounds.
        iterations: NonZeroU32,
    },
}

/// Why a text names no hash of EMQX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a hash of EMQX that can be imported: use sha, sha256 or sha512 with :prefix, :suffix or \
     :disable, bcrypt, or pbkdf2:DIGEST:ITERATIONS"
)]
pub struct UnknownHash;

impl FromStr for EmqxHash {
    type Err = UnknownHash;

    fn from_str(text: &str) -> Result<Self, UnknownHash> {
        let digest = |name| match name {
            "sha" => Ok(DigestKind::Sha1),
            "sha256" => Ok(DigestKind::Sha256),
            "sha384" => Ok(DigestKind::Sha384),
            "sha512" => Ok(DigestKind::Sha512),
            _ => Err(UnknownHash),
        };
        let fields: Vec<&str> = text.split(':').collect();
        match *fields.as_slice() {
            ["bcrypt"] => Ok(Self::Bcrypt),
            ["pbkdf2", name, iterations] => {
                let iterations = iterations.parse().map_err(|_| UnknownHash)?;
                Ok(Self::Pbkdf2 { digest: digest(name)?, iterations })
            }
            [name @ ("sha" | "sha256" | "sha512"), ref position @ ..] => {
                let salt = match *position {
                    // EMQX's default.
                    [] | ["prefix"] => SaltPlace::Before,
                    ["suffix"] => SaltPlace::After,
                    ["disable"] => SaltPlace::Absent,
                    _ => return Err(UnknownHash),
                };
                Ok(Self::Digest { digest: digest(name)?, salt })
            }
            _ => Err(UnknownHash),
        }
    }
}

/// A user of EMQX.
#[derive(Debug)]
pub struct EmqxUser {
    /// The `user_id`.
    pub name: String,
    /// The password, hashed.
    pub stored: StoredPassword,
    /// Rules did not apply to the user. There is no such right in a password file.
    pub is_superuser: bool,
}

/// A record of a file.
#[derive(Deserialize)]
struct UserEntry {
    user_id: String,
    password: Option<String>,
    password_hash: Option<String>,
    #[serde(default)]
    salt: Option<String>,
    #[serde(default)]
    is_superuser: Option<Flag>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Value(bool),
    Text(String),
}

/// Reads the users of a file; its name `path` ends in `.csv` or `.json`. Passwords that are plain
/// are hashed, which takes some 50 ms each.
///
/// # Errors
/// The file has another format, or a record cannot be imported: no user is, then.
pub fn emqx_users(
    path: &str,
    text: &str,
    hash: Option<EmqxHash>,
) -> Result<Vec<EmqxUser>, FileError> {
    let entries = entries(path, text)?;
    let mut names = HashSet::with_capacity(entries.len());
    let mut users = Vec::with_capacity(entries.len());
    for (line, entry) in entries {
        let fail = |what: String| match line {
            Some(line) => FileError::at(path, line, what),
            None => FileError::whole(path, what),
        };
        check_name(&entry.user_id).map_err(|error| fail(error.to_string()))?;
        if !names.insert(entry.user_id.clone()) {
            return Err(fail(format!("the user `{}` is there twice", entry.user_id)));
        }
        let user = user(entry, hash);
        users.push(user.map_err(|(name, why)| fail(format!("the user `{name}`: {why}")))?);
    }
    Ok(users)
}

/// The records of a file with their lines, where those are known.
fn entries(path: &str, text: &str) -> Result<Vec<(Option<usize>, UserEntry)>, FileError> {
    if path.ends_with(".json") {
        let entries: Vec<UserEntry> = serde_json::from_str(text)
            .map_err(|error| FileError::at(path, error.line(), "it is no list of EMQX's users"))?;
        return Ok(entries.into_iter().map(|entry| (None, entry)).collect());
    }
    if !path.ends_with(".csv") {
        return Err(FileError::whole(path, "the name of a file of EMQX ends in .csv or .json"));
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().cloned().map_err(|_| FileError::at(path, 1, "it has no head"))?;
    if !header.iter().any(|name| name == "user_id") {
        return Err(FileError::at(path, 1, "the first line has no column user_id"));
    }
    let mut entries = Vec::new();
    for record in reader.records() {
        // What is wrong is not shown: it may be a password.
        let record = record.map_err(|error| {
            let line = error.position().map_or(1, |position| position.line() as usize);
            FileError::at(path, line, "the line has not the columns of the first one")
        })?;
        let line = record.position().map(|position| position.line() as usize);
        let entry = record
            .deserialize(Some(&header))
            .map_err(|_| FileError::at(path, line.unwrap_or(1), "the line is no user of EMQX"))?;
        entries.push((line, entry));
    }
    Ok(entries)
}

/// One user, or its name and what is wrong with it.
fn user(entry: UserEntry, hash: Option<EmqxHash>) -> Result<EmqxUser, (String, String)> {
    let UserEntry { user_id: name, password, password_hash, salt, is_superuser } = entry;
    let is_superuser = match is_superuser {
        None => false,
        Some(Flag::Value(value)) => value,
        Some(Flag::Text(text)) => match text.as_str() {
            "true" => true,
            "false" | "" => false,
            _ => return Err((name, "is_superuser is neither true nor false".to_owned())),
        },
    };
    let salt = salt.unwrap_or_default();
    let stored = match (password.as_deref(), password_hash.as_deref(), hash) {
        (Some(""), None, _) | (None, None | Some(""), _) => Err("there is no password".to_owned()),
        (Some(password), None, _) => StoredPassword::make(password.as_bytes(), Scheme::DEFAULT)
            .map_err(|error| error.to_string()),
        (Some(_), Some(_), _) => Err("there are both a password and a hash".to_owned()),
        (None, Some(_), None) => Err("the password is hashed: say how with --hash".to_owned()),
        (None, Some(text), Some(hash)) => stored(text, &salt, hash).map_err(|e| e.to_string()),
    };
    match stored {
        Ok(stored) => Ok(EmqxUser { name, stored, is_superuser }),
        Err(why) => Err((name, why)),
    }
}

fn stored(text: &str, salt: &str, hash: EmqxHash) -> Result<StoredPassword, HashError> {
    let scheme = match hash {
        EmqxHash::Bcrypt => {
            let stored = StoredPassword::parse(text)?;
            return match stored.scheme() {
                Scheme::Bcrypt { .. } => Ok(stored),
                _ => Err(HashError::UnknownFormat),
            };
        }
        EmqxHash::Digest { digest, salt } => Scheme::Digest { digest, salt },
        EmqxHash::Pbkdf2 { digest, iterations } => Scheme::Pbkdf2Of { digest, iterations },
    };
    let salt = match scheme {
        // The file may name one that did not take part.
        Scheme::Digest { salt: SaltPlace::Absent, .. } => "",
        _ => salt,
    };
    StoredPassword::imported(scheme, salt.as_bytes(), &unhex(text)?)
}

/// The bytes of hexadecimal text.
fn unhex(text: &str) -> Result<Vec<u8>, HashError> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(HashError::Length);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(HashError::Hexadecimal);
    pairs.iter().map(|&[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    const SHA256: EmqxHash =
        EmqxHash::Digest { digest: DigestKind::Sha256, salt: SaltPlace::Before };
    /// SHA-256 of `salt-of-emqxsecret`.
    const HASH: &str = "45000c7123d94b996c26ee7b803185bcc1b6738489da725881048baa34f1056a";

    fn is_right(user: &EmqxUser, password: &str) -> bool {
        user.stored.verify(password.as_bytes(), &mut Memory::default())
    }

    #[test]
    fn hashed_users_log_in_with_their_passwords() {
        let csv = format!(
            "user_id,password_hash,salt,is_superuser\nann,{HASH},salt-of-emqx,true\n\
             bob,{},salt-of-emqx,false\n",
            HASH.to_uppercase()
        );
        let json = format!(
            r#"[{{"user_id":"ann","password_hash":"{HASH}","salt":"salt-of-emqx",
                 "is_superuser":true}},
                {{"user_id":"bob","password_hash":"{HASH}","salt":"salt-of-emqx"}}]"#
        );
        for (path, text) in [("users.csv", csv), ("users.json", json)] {
            let users = emqx_users(path, &text, Some(SHA256)).expect(path);
            let names: Vec<(&str, bool)> =
                users.iter().map(|user| (&*user.name, user.is_superuser)).collect();
            assert_eq!(names, [("ann", true), ("bob", false)]);
            for user in &users {
                assert!(is_right(user, "secret") && !is_right(user, "secret2"), "{path}");
            }
        }
    }

    #[test]
    fn plain_passwords_are_hashed() {
        let users =
            emqx_users("u.csv", "password,user_id\n two words ,ann\n", None).expect("reads");
        assert!(is_right(&users[0], " two words "));
        assert_eq!(users[0].stored.scheme(), Scheme::DEFAULT);
    }

    #[test]
    fn the_names_of_hashes_are_those_of_the_setting() {
        for (text, hash) in [
            ("sha256", Some(SHA256)),
            ("sha256:prefix", Some(SHA256)),
            (
                "sha:disable",
                Some(EmqxHash::Digest { digest: DigestKind::Sha1, salt: SaltPlace::Absent }),
            ),
            ("bcrypt", Some(EmqxHash::Bcrypt)),
            (
                "pbkdf2:sha512:4096",
                NonZeroU32::new(4096)
                    .map(|iterations| EmqxHash::Pbkdf2 { digest: DigestKind::Sha512, iterations }),
            ),
            ("md5", None),
            ("plain", None),
            ("sha256:middle", None),
            ("pbkdf2:sha256:0", None),
            ("pbkdf2:sha256", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), hash, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_imported_is_named_and_no_secret_is_shown() {
        let head = "user_id,password_hash,salt\n";
        for (path, text, hash, said) in [
            ("u.txt", String::new(), None, "u.txt: the name of a file of EMQX ends in"),
            ("u.csv", "name,password\n".to_owned(), None, "u.csv:1: the first line has no column"),
            ("u.csv", format!("{head}ann,{HASH},s\n"), None, "u.csv:2: the user `ann`: the pass"),
            ("u.csv", format!("{head}ann,{HASH}00,s\n"), Some(SHA256), "u.csv:2: the user `ann`:"),
            ("u.csv", format!("{head}ann,xyz1,s\n"), Some(SHA256), "hexadecimal"),
            ("u.csv", format!("{head}a:b,{HASH},s\n"), Some(SHA256), "u.csv:2: the user name"),
            ("u.csv", format!("{head}a,{HASH},s\na,{HASH},s\n"), Some(SHA256), "u.csv:3: the user"),
            ("u.csv", format!("{head}a,{HASH}\n"), Some(SHA256), "u.csv:2: the line has not"),
            ("u.csv", format!("{head}a,,s\n"), Some(SHA256), "there is no password"),
            ("u.json", "[{".to_owned(), None, "u.json:1: it is no list"),
            (
                "u.json",
                r#"[{"user_id":"a"}]"#.to_owned(),
                None,
                "u.json: the user `a`: there is no",
            ),
        ] {
            let error = emqx_users(path, &text, hash).expect_err(path).to_string();
            assert!(error.contains(said), "{error}");
            assert!(!error.contains(&HASH[..8]), "{error}");
        }
    }
}
