//! JSON Web Tokens as credentials: RFC 7519, signed in the compact form of RFC 7515.
//!
//! The keys decide which algorithms count: a token cannot choose one that its key was not made for
//! (RFC 8725, 3.1).

mod acl;
mod claims;
mod keys;
mod sign;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use acl::TokenAcl;
pub use claims::{TokenClient, TokenRules, is_claim_template};
use keys::{Signing, TokenKey};
pub use sign::{SignError, TokenClaims, TokenSigner};

use crate::file::FileError;

/// What checks tokens: keys, and what is asked of claims.
#[derive(Debug)]
pub struct TokenVerifier {
    keys: Vec<TokenKey>,
    rules: TokenRules,
}

/// What a token says of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The user that the client logs in as.
    pub user: String,
    /// When the token ends, in seconds since 1970; `None`: never.
    pub expires_unix_s: Option<u64>,
    /// What the client may do, and its attributes, if the token says so.
    pub acl: Option<TokenAcl>,
}

/// Why a token is refused. Never shows a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not as RFC 7515 and 7519 have it.
    #[error("the token is malformed")]
    Malformed,
    /// The keys have not been fetched yet.
    #[error("the keys of tokens have not been fetched yet")]
    NoKeys,
    /// It was made with an algorithm that is not known, not allowed, or not for these keys.
    #[error("no key is for the algorithm of the token")]
    Algorithm,
    /// It names a key that there is not.
    #[error("no key has the identifier (kid) that the token names")]
    Key,
    /// It was not made with one of the keys, or was changed since.
    #[error("the signature of the token is wrong")]
    Signature,
    /// It has ended.
    #[error("the token has expired")]
    Expired,
    /// It never ends.
    #[error("the token has no end (exp)")]
    NoExpiry,
    /// It holds from a later time on, or was made later (`nbf`, `iat`).
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It is another issuer's.
    #[error("the token is of another issuer (iss)")]
    Issuer,
    /// It is for others.
    #[error("the token is for another audience (aud)")]
    Audience,
    /// A claim is missing, or another.
    #[error("the claim `{0}` of the token is missing or differs")]
    Claim(String),
    /// Its rules cannot be used.
    #[error("the rules in the claim `{0}` of the token cannot be used: {1}")]
    Acl(String, String),
    /// Its attributes cannot be used.
    #[error("the attributes in the claim `{0}` of the token cannot be used: {1}")]
    Attributes(String, String),
    /// It names no user.
    #[error("the claim `{0}` of the token names no user")]
    User(String),
}

impl TokenError {
    /// Whether it may be a guess. A token that was valid once, or is for others, is none.
    #[must_use]
    pub const fn is_guess(&self) -> bool {
        matches!(self, Self::Malformed | Self::Algorithm | Self::Key | Self::Signature)
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that have to be understood: there are none.
    crit: Option<Value>,
}

impl TokenVerifier {
    /// Reads keys: a JWK or a set of them (RFC 7517), public keys in PEM, or else a secret for
    /// HMAC, as its bytes without the end of the line. `path` is for errors.
    ///
    /// # Errors
    /// The text has no usable key, a private one, or too many.
    pub fn parse(path: &str, text: &str, rules: TokenRules) -> Result<Self, FileError> {
        Ok(Self { keys: keys::parse(path, text)?, rules })
    }

    /// Without keys: every token is refused until there are some.
    #[must_use]
    pub const fn without_keys(rules: TokenRules) -> Self {
        Self { keys: Vec::new(), rules }
    }

    /// Reads keys that were fetched: a set of public JWK. `url` is for errors.
    ///
    /// # Errors
    /// The text is something else, or has a secret, which anyone could fetch.
    pub fn parse_fetched(url: &str, text: &str, rules: TokenRules) -> Result<Self, FileError> {
        if !text.trim_start().starts_with('{') {
            return Err(FileError::whole(url, "it is no set of JSON Web Keys"));
        }
        let verifier = Self::parse(url, text, rules)?;
        match verifier.has_secret() {
            true => Err(FileError::whole(url, "it has a secret: only public keys are fetched")),
            false => Ok(verifier),
        }
    }

    /// What is asked of tokens.
    #[must_use]
    pub const fn rules(&self) -> &TokenRules {
        &self.rules
    }

    /// Whether who can read the file can make tokens.
    pub fn has_secret(&self) -> bool {
        self.keys.iter().any(TokenKey::is_secret)
    }

    /// Checks a token at a time.
    ///
    /// # Errors
    /// The token is refused.
    pub fn verify(
        &self,
        token: &str,
        client: &TokenClient<'_>,
        now_unix_s: u64,
    ) -> Result<VerifiedToken, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        if self.keys.is_empty() {
            return Err(TokenError::NoKeys);
        }
        let Header { alg, kid, crit } = part(header)?;
        if crit.is_some() {
            return Err(TokenError::Malformed);
        }
        let signing = Signing::named(&alg).ok_or(TokenError::Algorithm)?;
        let signature = decode(signature)?;
        let mut suitable = self.keys.iter().filter(|key| key.suits(&alg, signing)).peekable();
        if suitable.peek().is_none() {
            return Err(TokenError::Algorithm);
        }
        let mut named = suitable.filter(|key| key.is_named(kid.as_deref())).peekable();
        if named.peek().is_none() {
            return Err(TokenError::Key);
        }
        if !named.any(|key| key.verifies(signing, signed.as_bytes(), &signature)) {
            return Err(TokenError::Signature);
        }
        self.rules.check(&part(payload)?, client, now_unix_s)
    }
}

/// Whether credentials are meant to be a token: three parts, the first of which is a header.
pub fn looks_like_token(credentials: &str) -> bool {
    let mut parts = credentials.split('.');
    let (header, rest) = (parts.next().unwrap_or_default(), parts.count());
    rest == 2 && part::<Header>(header).is_ok()
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)
}

fn part<T: DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests;
