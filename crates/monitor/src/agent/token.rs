//! The shared secret of an agent and its clients.

use std::fmt;
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::{TOKEN_VARIABLE, TokenSource};

/// Shorter ones can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Longer ones are somebody's file by mistake.
const TOKEN_BYTES_MAX: usize = 1024;

/// A secret that both sides know.
#[derive(Clone)]
pub struct Token(hmac::Key);

/// A token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set.
    #[error("it needs a token: set {TOKEN_VARIABLE}, or name a file with it")]
    Missing,
    /// The file cannot be read.
    #[error("cannot read the token in {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is too short or too long.
    #[error("a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} characters, this one has {0}")]
    Length(usize),
    /// The system has no randomness.
    #[error("the system has no random numbers for a token")]
    Random,
}

/// Who proves to know the token.
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
    /// The token `text`, without white space around it.
    ///
    /// # Errors
    /// When it is too short or too long.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// The token in a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::File { path: path.display().to_string(), source })?;
        Self::new(&text)
    }

    /// The token of the environment; `None` where the variable is not set.
    ///
    /// # Errors
    /// When it is no token.
    pub fn of_environment() -> Result<Option<Self>, TokenError> {
        std::env::var(TOKEN_VARIABLE).ok().map(|text| Self::new(&text)).transpose()
    }

    /// The token that a source names.
    ///
    /// # Errors
    /// When there is none, or it is no token.
    pub fn of(source: &TokenSource) -> Result<Self, TokenError> {
        match source {
            TokenSource::Environment => Self::of_environment()?.ok_or(TokenError::Missing),
            TokenSource::File(path) => Self::read(path),
            TokenSource::Given(text) => Self::new(text),
        }
    }

    /// A new one, with its text.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn generate() -> Result<(Self, String), TokenError> {
        let text = nonce().ok_or(TokenError::Random)?;
        Ok((Self::new(&text)?, text))
    }

    /// What `side` says to prove that it knows the token.
    pub(super) fn proof(&self, side: Side, nonces: [&str; 2]) -> String {
        hex(hmac::sign(&self.0, &statement(side, nonces)).as_ref())
    }

    /// Is that its proof? Takes the same time wherever it is wrong.
    pub(super) fn holds(&self, side: Side, nonces: [&str; 2], proof: &str) -> bool {
        unhex(proof)
            .is_some_and(|tag| hmac::verify(&self.0, &statement(side, nonces), &tag).is_ok())
    }
}

/// What is signed: the side is in it, so that one's proof is not the other's.
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
