//! Hashes of other brokers' user databases: bcrypt, and digests and PBKDF2 as EMQX stores them.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD_NO_PAD};
use ring::{digest as digests, hmac, pbkdf2};

use super::{DERIVED_LENS, HashError, ITERATIONS_MAX, SALT_LENS, Scheme, StoredPassword, number};

/// EMQX takes 5 to 10; each step doubles the time, and 15 are about 2 s.
const COSTS: std::ops::RangeInclusive<u32> = 4..=15;
const BCRYPT_SALT_LEN: usize = 16;
/// bcrypt's texts leave out the last of 24 bytes.
const BCRYPT_HASH_LEN: usize = 23;
/// bcrypt takes no more of a password, and of its end.
const BCRYPT_PASSWORD_MAX: usize = 72;

/// bcrypt's own alphabet. Some programs leave bits in the last character.
const BCRYPT_TEXT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::BCRYPT,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestKind {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl DigestKind {
    /// By its name in stored passwords.
    fn named(name: &str) -> Option<Self> {
        [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    pub(super) const fn algorithm(self) -> &'static digests::Algorithm {
        match self {
            Self::Sha1 => &digests::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digests::SHA256,
            Self::Sha384 => &digests::SHA384,
            Self::Sha512 => &digests::SHA512,
        }
    }

    pub(super) const fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    pub(super) const fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

impl fmt::Display for DigestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the salt of a digest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaltPlace {
    /// There is none.
    Absent,
    /// Before the password.
    Before,
    /// After the password.
    After,
}

impl SaltPlace {
    const fn name(self) -> &'static str {
        match self {
            Self::Absent => "unsalted",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl fmt::Display for SaltPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl StoredPassword {
    /// A hash of another broker's database, with the bytes of salt and hash.
    ///
    /// # Errors
    /// A length or a parameter is out of its range.
    pub(crate) fn imported(scheme: Scheme, salt: &[u8], hash: &[u8]) -> Result<Self, HashError> {
        let fits = match scheme {
            Scheme::Bcrypt { cost } if !COSTS.contains(&cost) => return Err(HashError::Parameter),
            Scheme::Bcrypt { .. } => salt.len() == BCRYPT_SALT_LEN && hash.len() == BCRYPT_HASH_LEN,
            Scheme::Digest { digest, salt: place } => {
                hash.len() == digest.algorithm().output_len()
                    && (place != SaltPlace::Absent || salt.is_empty())
            }
            Scheme::Pbkdf2Of { iterations, .. } if iterations.get() > ITERATIONS_MAX => {
                return Err(HashError::Parameter);
            }
            Scheme::Pbkdf2Of { .. } => DERIVED_LENS.contains(&hash.len()),
            Scheme::Sha512
            | Scheme::Pbkdf2 { .. }
            | Scheme::Argon2id { .. }
            | Scheme::Scram { .. } => {
                return Err(HashError::UnknownFormat);
            }
        };
        if !fits || salt.len() > *SALT_LENS.end() {
            return Err(HashError::Length);
        }
        Ok(Self { scheme, salt: salt.into(), hash: hash.into() })
    }
}

/// `cost$` and 53 characters of salt and hash.
pub(super) fn parse_bcrypt(fields: &str) -> Result<StoredPassword, HashError> {
    let (cost, text) = fields.split_once('$').ok_or(HashError::Fields)?;
    let cost = number(cost, *COSTS.end())?;
    let (salt, hash) = text.split_at_checked(22).ok_or(HashError::Length)?;
    let decode = |text| BCRYPT_TEXT.decode(text).map_err(|_| HashError::Base64);
    StoredPassword::imported(Scheme::Bcrypt { cost }, &decode(salt)?, &decode(hash)?)
}

pub(super) fn write_bcrypt(
    f: &mut fmt::Formatter<'_>,
    cost: u32,
    salt: &[u8],
    hash: &[u8],
) -> fmt::Result {
    write!(f, "$2b${cost:02}${}{}", BCRYPT_TEXT.encode(salt), BCRYPT_TEXT.encode(hash))
}

/// `sha256-before$salt$hash`.
pub(super) fn parse_digest(fields: &str) -> Result<StoredPassword, HashError> {
    let (kind, rest) = fields.split_once('$').ok_or(HashError::Fields)?;
    let (digest, place) = kind.split_once('-').ok_or(HashError::Parameter)?;
    let places = [SaltPlace::Absent, SaltPlace::Before, SaltPlace::After];
    let salt = places.into_iter().find(|known| known.name() == place);
    let digest = DigestKind::named(digest).ok_or(HashError::Parameter)?;
    with_fields(Scheme::Digest { digest, salt: salt.ok_or(HashError::Parameter)? }, rest)
}

/// `pbkdf2-sha256` and `iterations$salt$hash`.
pub(super) fn parse_pbkdf2(kind: &str, fields: &str) -> Result<StoredPassword, HashError> {
    let digest = kind.strip_prefix("pbkdf2-").and_then(DigestKind::named);
    let digest = digest.ok_or(HashError::UnknownFormat)?;
    let (iterations, rest) = fields.split_once('$').ok_or(HashError::Fields)?;
    let iterations = NonZeroU32::new(number(iterations, ITERATIONS_MAX)?);
    let iterations = iterations.ok_or(HashError::Parameter)?;
    with_fields(Scheme::Pbkdf2Of { digest, iterations }, rest)
}

/// `salt$hash` in base64 without padding.
fn with_fields(scheme: Scheme, fields: &str) -> Result<StoredPassword, HashError> {
    let (salt, hash) = fields.split_once('$').ok_or(HashError::Fields)?;
    let decode = |text| STANDARD_NO_PAD.decode(text).map_err(|_| HashError::Base64);
    StoredPassword::imported(scheme, &decode(salt)?, &decode(hash)?)
}

/// False for a password with a zero byte, where implementations of bcrypt differ.
pub(super) fn bcrypt(cost: u32, password: &[u8], salt: &[u8], into: &mut [u8]) -> bool {
    let Ok(salt) = <[u8; BCRYPT_SALT_LEN]>::try_from(salt) else { return false };
    let mut text = password.to_vec();
    text.push(0);
    text.truncate(BCRYPT_PASSWORD_MAX);
    let derived = bcrypt::bcrypt(cost, salt, &text);
    into.copy_from_slice(&derived[..BCRYPT_HASH_LEN]);
    !password.contains(&0)
}

pub(super) fn digest(
    digest: DigestKind,
    place: SaltPlace,
    password: &[u8],
    salt: &[u8],
    into: &mut [u8],
) -> bool {
    let (first, second) = match place {
        SaltPlace::Absent | SaltPlace::Before => (salt, password),
        SaltPlace::After => (password, salt),
    };
    let mut context = digests::Context::new(digest.algorithm());
    context.update(first);
    context.update(second);
    // Invariant: the length was checked when the hash was read.
    into.copy_from_slice(context.finish().as_ref());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// Made by other programs (the C library's crypt, Python's hashlib) from `secret`; the salt of
    /// the digests is the text `salt-of-emqx` where there is one.
    const KNOWN: [&str; 5] = [
        "$2b$06$abcdefghijklmnopqrstuuxLa0AkDDSrQ9VwNnETzOsObiucpMYgC",
        "$digest$sha256-before$c2FsdC1vZi1lbXF4$RQAMcSPZS5lsJu57gDGFvMG2c4SJ2nJYgQSLqjTxBWo",
        "$digest$sha512-after$c2FsdC1vZi1lbXF4$6o5KFaeb/fUU22acdRL74\
         y9msLzSBcs0Au03Ujjh/0HlLhNeTVPJe6I+clRsePKohC4oKPo8z3x/106NqTNHdw",
        "$digest$sha1-unsalted$$5en6G6MezRroT3XKqkdPOmY/BfQ",
        "$pbkdf2-sha256$4096$c2FsdC1vZi1lbXF4$6jo+/+4FSCBL5Zy71t2h5aaM/dkaW6Af8vo0He/XAf0",
    ];

    #[test]
    fn imported_hashes_are_verified_and_keep_their_text() {
        for text in KNOWN {
            let stored = StoredPassword::parse(text).expect(text);
            let mut memory = Memory::default();
            assert!(stored.verify(b"secret", &mut memory), "{text}");
            assert!(!stored.verify(b"secret ", &mut memory), "{text}");
            // HMAC takes a key and the key with zeros behind it for the same.
            let is_hmac = matches!(stored.scheme(), Scheme::Pbkdf2Of { .. });
            assert_eq!(stored.verify(b"secret\0", &mut memory), is_hmac, "{text}");
            assert!(!stored.verify(b"", &mut memory), "{text}");
            assert_eq!(stored.to_string().replace("$2b$", "$2y$"), text.replace("$2b$", "$2y$"));
        }
    }

    #[test]
    fn bcrypt_takes_72_bytes_of_a_password() {
        let stored = StoredPassword::parse(KNOWN[0]).expect("valid");
        let long = [b'x'; 200];
        let mut memory = Memory::default();
        let mut derived = [0; BCRYPT_HASH_LEN];
        assert!(bcrypt(4, &long, &[7; 16], &mut derived));
        let mut shorter = [0; BCRYPT_HASH_LEN];
        assert!(bcrypt(4, &long[..72], &[7; 16], &mut shorter));
        assert_eq!(derived, shorter);
        assert!(!stored.verify(&long, &mut memory));
    }

    #[test]
    fn wrong_imported_texts_are_refused_by_name() {
        let (salt, hash) = (STANDARD_NO_PAD.encode([7; 12]), STANDARD_NO_PAD.encode([9; 32]));
        for (text, error) in [
            ("$2b$10$short".to_owned(), HashError::Length),
            (
                "$2b$31$abcdefghijklmnopqrstuvabcdefghijklmnopqrstuvwxyz01234".to_owned(),
                HashError::Parameter,
            ),
            (
                "$2b$03$abcdefghijklmnopqrstuvabcdefghijklmnopqrstuvwxyz01234".to_owned(),
                HashError::Parameter,
            ),
            ("$2x$10$abc".to_owned(), HashError::UnknownFormat),
            ("$2b$10".to_owned(), HashError::Fields),
            (format!("$2b$10${}", "\u{e9}".repeat(30)), HashError::Base64),
            (format!("$digest$sha256-before${salt}"), HashError::Fields),
            (format!("$digest$sha256-middle${salt}${hash}"), HashError::Parameter),
            (format!("$digest$md5-before${salt}${hash}"), HashError::Parameter),
            (format!("$digest$sha512-before${salt}${hash}"), HashError::Length),
            (format!("$digest$sha256-unsalted${salt}${hash}"), HashError::Length),
            (format!("$digest$sha256-before$!${hash}"), HashError::Base64),
            (format!("$pbkdf2-md5$10${salt}${hash}"), HashError::UnknownFormat),
            (format!("$pbkdf2-sha256$0${salt}${hash}"), HashError::Parameter),
            (format!("$pbkdf2-sha256$99999999${salt}${hash}"), HashError::Parameter),
            (format!("$pbkdf2-sha256$10${salt}$AAAA"), HashError::Length),
        ] {
            assert_eq!(StoredPassword::parse(&text), Err(error), "{text}");
        }
    }
}
