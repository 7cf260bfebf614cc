//! Stored passwords: salted hashes in the formats of mosquitto's password files.
//!
//! | text | hash |
//! |---|---|
//! | `$6$salt$hash` | one SHA-512 over password and salt (mosquitto 1.x; not that of crypt) |
//! | `$7$iterations$salt$hash` | PBKDF2-HMAC-SHA512 (mosquitto 2.0) |
//! | `$argon2id$v=19$m=KiB,t=passes,p=lanes$salt$hash` | Argon2id (mosquitto 2.1; ours) |
//! | `$2b$cost$salt-and-hash` | bcrypt |
//! | `$scram-sha256$iterations$salt$StoredKey$ServerKey` | SCRAM (RFC 5802), also with `sha512` |
//! | `$digest$sha256-before$salt$hash` | one digest over salt and password, imported from EMQX |
//! | `$pbkdf2-sha256$iterations$salt$hash` | PBKDF2 with another digest, imported from EMQX |
//!
//! Argon2 has 64 bytes of salt in mosquitto's files, which is more than the usual parsers of such
//! strings take: the fields are decoded here.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

pub use foreign::{DigestKind, SaltPlace};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::pbkdf2;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

pub use scram::{ITERATIONS as SCRAM_ITERATIONS, ScramHash, saslprepared};
pub(crate) use scram::{SALT_LEN as SCRAM_SALT_LEN, ScramTerms, salted_password};

/// SHA-512 has as many bytes, and what mosquitto derives.
const HASH_LEN: usize = 64;
/// mosquitto since 2.1.
const SALT_LEN: usize = 64;
/// Shorter ones do not protect, longer ones are no salt.
const SALT_LENS: std::ops::RangeInclusive<usize> = 8..=128;
const DERIVED_LENS: std::ops::RangeInclusive<usize> = 16..=128;
/// Above these, one login would keep a thread busy for many seconds or take the memory of others.
const ITERATIONS_MAX: u32 = 10_000_000;

/// Rounds that a password stored for SCRAM may have (RFC 7677, 4 has the least).
pub const SCRAM_ITERATIONS_ALLOWED: RangeInclusive<u32> = scram::ITERATIONS_MIN..=ITERATIONS_MAX;
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 64;
const LANES_MAX: u32 = 16;

/// How a password is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// One round of SHA-512: fast, so it protects weak passwords badly.
    Sha512,
    /// PBKDF2 with HMAC-SHA512.
    Pbkdf2 {
        /// Rounds.
        iterations: NonZeroU32,
    },
    /// Argon2id.
    Argon2id {
        /// Memory in KiB.
        memory_kib: u32,
        /// Passes over the memory.
        passes: u32,
        /// Lanes.
        lanes: u32,
    },
    /// bcrypt.
    Bcrypt {
        /// The binary logarithm of the rounds.
        cost: u32,
    },
    /// One digest over password and salt: fast, so it protects weak passwords badly.
    Digest {
        /// The digest.
        digest: DigestKind,
        /// Where the salt is.
        salt: SaltPlace,
    },
    /// The keys of SCRAM: clients may prove the password without sending it.
    Scram {
        /// The hash of the method.
        hash: ScramHash,
        /// Rounds.
        iterations: NonZeroU32,
    },
    /// PBKDF2 with HMAC of any digest.
    Pbkdf2Of {
        /// The digest.
        digest: DigestKind,
        /// Rounds.
        iterations: NonZeroU32,
    },
}

impl Scheme {
    /// For new passwords: what mosquitto 2.1 uses, so that both read the file.
    pub const DEFAULT: Self = Self::Argon2id { memory_kib: 47_104, passes: 1, lanes: 1 };

    /// About how many microseconds a verification takes.
    const fn work_us(self) -> u64 {
        match self {
            Self::Sha512 | Self::Digest { .. } => 1,
            Self::Pbkdf2 { iterations }
            | Self::Pbkdf2Of { iterations, .. }
            | Self::Scram { iterations, .. } => iterations.get() as u64,
            // 2^10 rounds take some 50 ms.
            Self::Bcrypt { cost } => 50_u64 << cost,
            Self::Argon2id { memory_kib, passes, .. } => memory_kib as u64 * passes as u64,
        }
    }

    /// Whether a verification takes less than one of `other`.
    pub(crate) const fn is_cheaper_than(self, other: Self) -> bool {
        self.work_us() < other.work_us()
    }
}

/// Why a text is no stored password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// It has no `$`: a plain password.
    #[error("the password is not hashed: make the entry with `tacho passwd`")]
    Plain,
    /// Another format.
    #[error(
        "the password has an unknown format: $6$, $7$, $argon2id$, $scram-, $2b$ and imported ones are known"
    )]
    UnknownFormat,
    /// A field is missing, or is one too many.
    #[error("the hash of the password has missing or superfluous fields")]
    Fields,
    /// A parameter is not a number, or is out of its range.
    #[error("a parameter of the hash of the password is no number or out of its range")]
    Parameter,
    /// Salt or hash are not base64.
    #[error("salt or hash of the password are not valid base64")]
    Base64,
    /// An imported hash is not hexadecimal.
    #[error("the hash of the password is not hexadecimal")]
    Hexadecimal,
    /// Salt or hash have a wrong length.
    #[error("salt or hash of the password have a wrong length")]
    Length,
}

/// The system gives no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// The salted hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredPassword {
    scheme: Scheme,
    salt: Box<[u8]>,
    hash: Box<[u8]>,
}

/// The memory that Argon2 works in, kept from one verification to the next.
#[derive(Default)]
pub struct Memory(Vec<Block>);

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("blocks", &self.0.len()).finish()
    }
}

impl StoredPassword {
    /// Hashes a password with a new salt.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn make(password: &[u8], scheme: Scheme) -> Result<Self, NoRandomness> {
        let (salt_len, hash_len) = match scheme {
            Scheme::Scram { hash, .. } => (scram::SALT_LEN, hash.stored_len()),
            _ => (SALT_LEN, HASH_LEN),
        };
        let mut salt = vec![0; salt_len];
        SystemRandom::new().fill(&mut salt).map_err(|_| NoRandomness)?;
        let mut hash = vec![0; hash_len];
        derive(scheme, password, &salt, &mut hash, &mut Memory::default());
        Ok(Self { scheme, salt: salt.into(), hash: hash.into() })
    }

    /// Parses the text of a password file.
    ///
    /// # Errors
    /// It has another format, or parameters out of their range.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let fields = text.strip_prefix('$').ok_or(HashError::Plain)?;
        let (kind, rest) = fields.split_once('$').ok_or(HashError::UnknownFormat)?;
        match kind {
            "6" => Self::with_fields(Scheme::Sha512, rest),
            "7" => {
                let (iterations, rest) = rest.split_once('$').ok_or(HashError::Fields)?;
                let iterations = number(iterations, ITERATIONS_MAX)?;
                let iterations = NonZeroU32::new(iterations).ok_or(HashError::Parameter)?;
                Self::with_fields(Scheme::Pbkdf2 { iterations }, rest)
            }
            "argon2id" => Self::parse_argon2id(rest),
            "2a" | "2b" | "2y" => foreign::parse_bcrypt(rest),
            "digest" => foreign::parse_digest(rest),
            _ if kind.starts_with("scram-") => Self::parse_scram(kind, rest),
            _ if kind.starts_with("pbkdf2-") => foreign::parse_pbkdf2(kind, rest),
            _ => Err(HashError::UnknownFormat),
        }
    }

    /// `salt$hash` in base64 with padding.
    fn with_fields(scheme: Scheme, fields: &str) -> Result<Self, HashError> {
        let (salt, hash) = fields.split_once('$').ok_or(HashError::Fields)?;
        let salt = STANDARD.decode(salt).map_err(|_| HashError::Base64)?;
        let hash = STANDARD.decode(hash).map_err(|_| HashError::Base64)?;
        if !SALT_LENS.contains(&salt.len()) || hash.len() != HASH_LEN {
            return Err(HashError::Length);
        }
        Ok(Self { scheme, salt: salt.into(), hash: hash.into() })
    }

    /// `v=19$m=KiB,t=passes,p=lanes$salt$hash`, in base64 without padding.
    fn parse_argon2id(fields: &str) -> Result<Self, HashError> {
        let mut fields = fields.split('$');
        let [Some(version), Some(parameters), Some(salt), Some(hash), None] =
            [fields.next(), fields.next(), fields.next(), fields.next(), fields.next()]
        else {
            return Err(HashError::Fields);
        };
        if version != "v=19" {
            return Err(HashError::Parameter);
        }
        let mut parameters = parameters.split(',');
        let mut parameter = |name: &str, max: u32| {
            let text = parameters.next().and_then(|text| text.strip_prefix(name));
            number(text.ok_or(HashError::Parameter)?, max)
        };
        let memory_kib = parameter("m=", MEMORY_KIB_MAX)?;
        let passes = parameter("t=", PASSES_MAX)?;
        let lanes = parameter("p=", LANES_MAX)?;
        if parameters.next().is_some() {
            return Err(HashError::Fields);
        }
        let salt = STANDARD_NO_PAD.decode(salt).map_err(|_| HashError::Base64)?;
        let hash = STANDARD_NO_PAD.decode(hash).map_err(|_| HashError::Base64)?;
        if !SALT_LENS.contains(&salt.len()) || !DERIVED_LENS.contains(&hash.len()) {
            return Err(HashError::Length);
        }
        if Params::new(memory_kib, passes, lanes, Some(hash.len())).is_err() {
            return Err(HashError::Parameter);
        }
        let scheme = Scheme::Argon2id { memory_kib, passes, lanes };
        Ok(Self { scheme, salt: salt.into(), hash: hash.into() })
    }

    /// `iterations$salt$StoredKey$ServerKey`, in base64 without padding.
    fn parse_scram(kind: &str, fields: &str) -> Result<Self, HashError> {
        let of_kind = |hash: &ScramHash| kind.strip_prefix("scram-") == Some(hash.name());
        let hash = ScramHash::ALL.into_iter().find(of_kind).ok_or(HashError::UnknownFormat)?;
        let mut fields = fields.split('$');
        let [Some(iterations), Some(salt), Some(stored), Some(server), None] =
            [fields.next(), fields.next(), fields.next(), fields.next(), fields.next()]
        else {
            return Err(HashError::Fields);
        };
        let iterations = number(iterations, ITERATIONS_MAX)?;
        let iterations = NonZeroU32::new(iterations)
            .filter(|iterations| iterations.get() >= scram::ITERATIONS_MIN)
            .ok_or(HashError::Parameter)?;
        let decode = |text| STANDARD_NO_PAD.decode(text).map_err(|_| HashError::Base64);
        let (salt, stored, server) = (decode(salt)?, decode(stored)?, decode(server)?);
        let is_key = |key: &[u8]| 2 * key.len() == hash.stored_len();
        if !SALT_LENS.contains(&salt.len()) || !is_key(&stored) || !is_key(&server) {
            return Err(HashError::Length);
        }
        let keys = [stored, server].concat();
        let scheme = Scheme::Scram { hash, iterations };
        Ok(Self { scheme, salt: salt.into(), hash: keys.into() })
    }

    /// The salt, which SCRAM tells every client.
    pub(crate) fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// How it was hashed.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The hash itself, to tell it from others: not to be shown.
    pub(crate) fn hash(&self) -> &[u8] {
        &self.hash
    }

    /// Whether this is the hash of `password`. How long it takes depends on the scheme only.
    pub fn verify(&self, password: &[u8], memory: &mut Memory) -> bool {
        let mut derived = vec![0; self.hash.len()];
        derive(self.scheme, password, &self.salt, &mut derived, memory)
            && derived.ct_eq(&self.hash).into()
    }
}

/// False if the parameters are out of the ranges that were checked before.
fn derive(
    scheme: Scheme,
    password: &[u8],
    salt: &[u8],
    into: &mut [u8],
    memory: &mut Memory,
) -> bool {
    match scheme {
        Scheme::Sha512 => {
            foreign::digest(DigestKind::Sha512, SaltPlace::After, password, salt, into)
        }
        Scheme::Bcrypt { cost } => foreign::bcrypt(cost, password, salt, into),
        Scheme::Digest { digest, salt: place } => {
            foreign::digest(digest, place, password, salt, into)
        }
        Scheme::Pbkdf2 { iterations } => {
            pbkdf2::derive(DigestKind::Sha512.pbkdf2(), iterations, salt, password, into);
            true
        }
        Scheme::Scram { hash, iterations } => scram::derive(hash, iterations, password, salt, into),
        Scheme::Pbkdf2Of { digest, iterations } => {
            pbkdf2::derive(digest.pbkdf2(), iterations, salt, password, into);
            true
        }
        Scheme::Argon2id { memory_kib, passes, lanes } => {
            let Ok(params) = Params::new(memory_kib, passes, lanes, Some(into.len())) else {
                return false;
            };
            let blocks = params.block_count();
            if memory.0.len() < blocks {
                memory.0.resize(blocks, Block::new());
            }
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            argon2
                .hash_password_into_with_memory(password, salt, into, &mut memory.0[..blocks])
                .is_ok()
        }
    }
}

fn number(text: &str, max: u32) -> Result<u32, HashError> {
    // Without signs and such, which `parse` would take.
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|&number: &u32| is_plain && number <= max);
    number.ok_or(HashError::Parameter)
}

/// The text for a password file.
impl fmt::Display for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let padded = |bytes: &[u8]| STANDARD.encode(bytes);
        let plain = |bytes: &[u8]| STANDARD_NO_PAD.encode(bytes);
        match self.scheme {
            Scheme::Sha512 => write!(f, "$6${}${}", padded(&self.salt), padded(&self.hash)),
            Scheme::Pbkdf2 { iterations } => {
                write!(f, "$7${iterations}${}${}", padded(&self.salt), padded(&self.hash))
            }
            Scheme::Argon2id { memory_kib, passes, lanes } => write!(
                f,
                "$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${}${}",
                plain(&self.salt),
                plain(&self.hash)
            ),
            Scheme::Bcrypt { cost } => foreign::write_bcrypt(f, cost, &self.salt, &self.hash),
            Scheme::Digest { digest, salt } => {
                write!(f, "$digest${digest}-{salt}${}${}", plain(&self.salt), plain(&self.hash))
            }
            Scheme::Scram { hash, iterations } => {
                let (stored, server) = self.hash.split_at(self.hash.len() / 2);
                let (salt, stored, server) = (plain(&self.salt), plain(stored), plain(server));
                write!(f, "$scram-{}${iterations}${salt}${stored}${server}", hash.name())
            }
            Scheme::Pbkdf2Of { digest, iterations } => {
                let (salt, hash) = (plain(&self.salt), plain(&self.hash));
                write!(f, "$pbkdf2-{digest}${iterations}${salt}${hash}")
            }
        }
    }
}

/// Shows no secret.
impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPassword").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

mod foreign;
mod scram;
#[cfg(test)]
mod tests;
