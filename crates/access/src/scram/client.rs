//! The client's side of an exchange (RFC 5802, 3 and 7).

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use super::NONCE_LEN;
use super::message::{ScramError, ServerFirst, server_final};
use crate::hash::{ScramHash, salted_password, saslprepared};

/// What begins the first message: no channel binding, and no other user to act as.
const GS2_HEADER: &str = "n,,";

/// An exchange whose first message has been made.
pub struct ScramClient {
    hash: ScramHash,
    /// The first message without its header.
    bare: String,
    nonce: String,
}

/// A password as the salt and iterations of the server have it, which costs time. A client may
/// keep it for its next exchange (RFC 5802, 4).
#[derive(Clone, PartialEq, Eq)]
pub struct SaltedPassword {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    salted: Vec<u8>,
}

/// An exchange whose last message has been made: what the server has to prove.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerProof(Vec<u8>);

impl ScramClient {
    /// The first message of a user.
    ///
    /// # Errors
    /// The name has a character that is not allowed, or there are no random numbers.
    pub fn begin(hash: ScramHash, user: &str) -> Result<(Self, Vec<u8>), ScramError> {
        let mut random = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut random).map_err(|_| ScramError::NoRandomness)?;
        Self::begin_with(hash, user, &STANDARD_NO_PAD.encode(random))
    }

    pub(super) fn begin_with(
        hash: ScramHash,
        user: &str,
        nonce: &str,
    ) -> Result<(Self, Vec<u8>), ScramError> {
        let user = saslprepared(user).filter(|user| !user.is_empty());
        let user = user.ok_or(ScramError::Malformed("a user name that is not allowed"))?;
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={user},r={nonce}");
        let first = format!("{GS2_HEADER}{bare}").into_bytes();
        Ok((Self { hash, bare, nonce: nonce.to_owned() }, first))
    }

    /// Answers the server's first message: the last message, what the server has to prove, and the
    /// salted password, which is `known` where that is of the same salt and iterations.
    ///
    /// # Errors
    /// The message is malformed, or demands more iterations than any honest server does.
    pub fn answer(
        self,
        server_first: &[u8],
        password: &[u8],
        known: Option<SaltedPassword>,
    ) -> Result<(Vec<u8>, ServerProof, SaltedPassword), ScramError> {
        let first = ServerFirst::parse(server_first)?;
        if !first.nonce.starts_with(&self.nonce) || first.nonce.len() == self.nonce.len() {
            return Err(ScramError::Malformed("another nonce than the client's"));
        }
        let salt = STANDARD.decode(first.salt);
        let salt = salt.map_err(|_| ScramError::Malformed("the salt is no base64"))?;
        let iterations = first.iterations;
        let is_same = |known: &SaltedPassword| known.salt == salt && known.iterations == iterations;
        let password = known.filter(is_same).unwrap_or_else(|| SaltedPassword {
            salted: salted_password(self.hash, iterations, password, &salt),
            salt,
            iterations,
        });
        let without_proof = format!("c={},r={}", STANDARD.encode(GS2_HEADER), first.nonce);
        let signed = format!("{},{},{without_proof}", self.bare, first.text);
        let mut proof = self.hash.hmac(&password.salted, b"Client Key");
        let signature = self.hash.hmac(&self.hash.digest(&proof), signed.as_bytes());
        proof.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        let server_key = self.hash.hmac(&password.salted, b"Server Key");
        let server_proof = ServerProof(self.hash.hmac(&server_key, signed.as_bytes()));
        let last = format!("{without_proof},p={}", STANDARD.encode(proof)).into_bytes();
        Ok((last, server_proof, password))
    }
}

impl ServerProof {
    /// Checks the server's last message.
    ///
    /// # Errors
    /// The message is malformed, or the server does not know the password either.
    pub fn check(&self, message: &[u8]) -> Result<(), ScramError> {
        let signature = STANDARD.decode(server_final(message)?);
        let signature = signature.map_err(|_| ScramError::Malformed("the server's signature"))?;
        match bool::from(signature.ct_eq(&self.0)) {
            true => Ok(()),
            false => Err(ScramError::ServerUnproved),
        }
    }
}

/// Shows no secret.
impl std::fmt::Debug for ScramClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScramClient").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// Shows no secret.
impl std::fmt::Debug for SaltedPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SaltedPassword").finish_non_exhaustive()
    }
}

/// Shows no secret.
impl std::fmt::Debug for ServerProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerProof").finish_non_exhaustive()
    }
}
