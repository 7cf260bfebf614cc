//! The keys of SCRAM (RFC 5802, 3): what is stored in the place of a password.

use std::num::NonZeroU32;

use ring::{digest, hmac, pbkdf2};

use super::{DigestKind, Scheme, StoredPassword};

/// Bytes of a new salt.
pub(crate) const SALT_LEN: usize = 16;
/// RFC 7677, 4: at least.
pub(super) const ITERATIONS_MIN: u32 = 4_096;

/// The hash of a SCRAM method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScramHash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl ScramHash {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// The name of the authentication method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// The name in stored passwords and as an argument.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name()
    }

    const fn kind(self) -> DigestKind {
        match self {
            Self::Sha256 => DigestKind::Sha256,
            Self::Sha512 => DigestKind::Sha512,
        }
    }

    pub(crate) fn len(self) -> usize {
        self.kind().algorithm().output_len()
    }

    /// Bytes of what is stored: both keys.
    pub(crate) fn stored_len(self) -> usize {
        2 * self.len()
    }

    pub(crate) fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.kind().hmac(), key), text).as_ref().to_vec()
    }

    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        digest::digest(self.kind().algorithm(), bytes).as_ref().to_vec()
    }
}

/// By its [`ScramHash::name`].
impl std::str::FromStr for ScramHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|hash| hash.name() == text);
        found.ok_or_else(|| format!("'{text}' is no hash of SCRAM: use sha256 or sha512"))
    }
}

/// A text as SASLprep (RFC 4013) prepares user names and passwords; `None` if it has a character
/// that is not allowed.
#[must_use]
pub fn saslprepared(text: &str) -> Option<String> {
    stringprep::saslprep(text).ok().map(Into::into)
}

/// SaltedPassword of a password.
pub(crate) fn salted_password(
    hash: ScramHash,
    iterations: NonZeroU32,
    password: &[u8],
    salt: &[u8],
) -> Vec<u8> {
    let text = std::str::from_utf8(password).ok().and_then(saslprepared);
    // Bytes that are no such text are no user's password: they take as long to be refused.
    let password = text.as_deref().map_or(password, str::as_bytes);
    let mut salted = vec![0; hash.len()];
    pbkdf2::derive(hash.kind().pbkdf2(), iterations, salt, password, &mut salted);
    salted
}

/// StoredKey and ServerKey of a password; false if there is no room for them.
pub(super) fn derive(
    hash: ScramHash,
    iterations: NonZeroU32,
    password: &[u8],
    salt: &[u8],
    into: &mut [u8],
) -> bool {
    if into.len() != hash.stored_len() {
        return false;
    }
    let salted = salted_password(hash, iterations, password, salt);
    let stored_key = hash.digest(&hash.hmac(&salted, b"Client Key"));
    let (stored, server) = into.split_at_mut(hash.len());
    stored.copy_from_slice(&stored_key);
    server.copy_from_slice(&hash.hmac(&salted, b"Server Key"));
    true
}

/// What the server tells about a user before the password is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScramTerms {
    pub(crate) hash: ScramHash,
    pub(crate) iterations: NonZeroU32,
    pub(crate) salt_len: usize,
}

impl ScramTerms {
    pub(crate) fn of(stored: &StoredPassword) -> Option<Self> {
        let Scheme::Scram { hash, iterations } = stored.scheme() else { return None };
        Some(Self { hash, iterations, salt_len: stored.salt().len() })
    }
}

/// Of new passwords, unless another number is asked for.
pub const ITERATIONS: NonZeroU32 = match NonZeroU32::new(10_000) {
    Some(iterations) => iterations,
    None => NonZeroU32::MIN,
};
