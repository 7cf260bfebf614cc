//! The shared secret of an agent and its clients.

use std::fmt;
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::TokenSource;

/// The environment variable that holds an agent's token, on both sides.
pub const TOKEN_VARIABLE: &str = "TACHO_MONITOR_TOKEN";

/// Shorter tokens can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// A longer token is probably the wrong file.
const TOKEN_BYTES_MAX: usize = 1024;

/// A secret shared by agent and client.
#[derive(Clone)]
pub struct Token(hmac::Key);

/// A token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set.
    #[error("a token is required: set {TOKEN_VARIABLE}, or name a file that holds it")]
    Missing,
    /// The file cannot be read.
    #[error("cannot read the token file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The token is too short or too long.
    #[error("a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes, not {0}")]
    Length(usize),
    /// The system's random number generator failed.
    #[error("cannot generate a token: the system's random number generator failed")]
    Random,
}

/// The side that proves its knowledge of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Agent,
    Client,
}

impl fmt::Debug for Token {
    /// Never shows the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token `text`, surrounding white space removed.
    ///
    /// # Errors
    /// The token is too short or too long.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// Reads the token from a file.
    ///
    /// # Errors
    /// The file cannot be read, or its content is not a valid token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::File { path: path.display().to_string(), source })?;
        Self::new(&text)
    }

    /// The token in the environment; `None` where the variable is not set.
    ///
    /// # Errors
    /// The variable does not hold a valid token.
    pub fn from_environment() -> Result<Option<Self>, TokenError> {
        std::env::var(TOKEN_VARIABLE).ok().map(|text| Self::new(&text)).transpose()
    }

    /// The token that `source` refers to.
    ///
    /// # Errors
    /// There is no token, or it is not valid.
    pub fn from_source(source: &TokenSource) -> Result<Self, TokenError> {
        match source {
            TokenSource::Environment => Self::from_environment()?.ok_or(TokenError::Missing),
            TokenSource::File(path) => Self::read(path),
            TokenSource::Given(text) => Self::new(text),
        }
    }

    /// Generates a token; returns it with its text.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn generate() -> Result<(Self, String), TokenError> {
        let text = nonce().ok_or(TokenError::Random)?;
        Ok((Self::new(&text)?, text))
    }

    /// The proof by which `side` shows that it knows the token.
    pub(super) fn proof(&self, side: Side, nonces: [&str; 2]) -> String {
        hex(hmac::sign(&self.0, &statement(side, nonces)).as_ref())
    }

    /// Checks the proof of `side`, in constant time.
    pub(super) fn verify(&self, side: Side, nonces: [&str; 2], proof: &str) -> bool {
        unhex(proof)
            .is_some_and(|tag| hmac::verify(&self.0, &statement(side, nonces), &tag).is_ok())
    }
}

/// The signed statement. It names the side, so that neither side can replay the other's proof.
fn statement(side: Side, [agent, client]: [&str; 2]) -> Vec<u8> {
    format!("tacho monitor 1\n{side:?}\n{agent}\n{client}").into_bytes()
}

/// 32 random bytes in hexadecimal.
pub(super) fn nonce() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
