//! SCRAM (RFC 5802) with SHA-256 (RFC 7677) and SHA-512: both sides of an exchange, the server's
//! here.
//!
//! The password never crosses the network, and what the server stores does not let anyone log in.
//! There is no binding to the TLS channel: a client that demands it is refused.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

pub use client::{SaltedPassword, ScramClient, ServerProof};
pub use message::ScramError;
use message::{ClientFinal, ClientFirst};

use crate::hash::{SCRAM_ITERATIONS, SCRAM_SALT_LEN, Scheme, ScramHash, ScramTerms, saslprepared};
use crate::remembered::ProcessKey;
use crate::users::Users;

mod client;
mod message;
#[cfg(test)]
mod tests;

/// Random bytes of each side's part of the nonce.
const NONCE_LEN: usize = 18;

/// An exchange whose first message has been answered.
pub struct ScramExchange {
    hash: ScramHash,
    user: String,
    /// The user exists. Any other goes through the same exchange and fails at its end.
    is_known: bool,
    /// StoredKey and ServerKey.
    keys: Vec<u8>,
    /// What the client has said about channel binding, to be repeated.
    gs2_header: String,
    nonce: String,
    /// The two messages so far, as they are signed.
    signed: String,
}

/// An exchange that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramSuccess {
    /// The user.
    pub user: String,
    /// The server's proof, for the client.
    pub server_final: Vec<u8>,
}

impl ScramExchange {
    /// Answers the first message of a client. Of a user that does not exist salt and iterations are
    /// made up, the same each time as long as the process runs.
    ///
    /// # Errors
    /// The message is malformed, demands what there is not, or there are no random numbers.
    pub fn begin(
        users: &Users,
        hash: ScramHash,
        key: &ProcessKey,
        client_first: &[u8],
    ) -> Result<(Self, Vec<u8>), ScramError> {
        let mut random = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut random).map_err(|_| ScramError::NoRandomness)?;
        Self::begin_with(users, hash, key, client_first, &STANDARD_NO_PAD.encode(random))
    }

    fn begin_with(
        users: &Users,
        hash: ScramHash,
        key: &ProcessKey,
        client_first: &[u8],
        server_nonce: &str,
    ) -> Result<(Self, Vec<u8>), ScramError> {
        let first = ClientFirst::parse(client_first)?;
        let user = saslprepared(&first.user).filter(|user| !user.is_empty());
        let user = user.ok_or(ScramError::Malformed("a user name that is not allowed"))?;
        let stored = users.get(&user).filter(|stored| {
            matches!(stored.scheme(), Scheme::Scram { hash: of_user, .. } if of_user == hash)
        });
        let made_up = MadeUp::of(users, hash, key, &user);
        let (salt, iterations, keys) = match stored.and_then(ScramTerms::of).zip(stored) {
            Some((terms, stored)) => (stored.salt(), terms.iterations, stored.hash().to_vec()),
            None => (&*made_up.salt, made_up.iterations, made_up.keys),
        };
        let nonce = format!("{}{server_nonce}", first.nonce);
        let answer = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        let exchange = Self {
            hash,
            is_known: stored.is_some(),
            user,
            keys,
            gs2_header: first.gs2_header.to_owned(),
            nonce,
            signed: format!("{},{answer}", first.bare),
        };
        Ok((exchange, answer.into_bytes()))
    }

    /// The user that the client says it is.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Checks the final message of a client.
    ///
    /// # Errors
    /// The message is malformed, the user does not exist, or the password is another.
    pub fn finish(self, client_final: &[u8]) -> Result<ScramSuccess, ScramError> {
        let last = ClientFinal::parse(client_final)?;
        let binding = STANDARD.decode(last.binding);
        if binding.as_deref() != Ok(self.gs2_header.as_bytes()) || last.nonce != self.nonce {
            return Err(ScramError::Malformed("another nonce or channel binding than before"));
        }
        let proof = STANDARD.decode(last.proof);
        let proof = proof.ok().filter(|proof| proof.len() == self.hash.len());
        let mut client_key = proof.ok_or(ScramError::Malformed("a proof of another length"))?;
        let signed = format!("{},{}", self.signed, last.without_proof);
        let (stored_key, server_key) = self.keys.split_at(self.hash.len());
        let signature = self.hash.hmac(stored_key, signed.as_bytes());
        client_key.iter_mut().zip(signature).for_each(|(byte, mask)| *byte ^= mask);
        let is_right = bool::from(self.hash.digest(&client_key).ct_eq(stored_key));
        let server_signature = self.hash.hmac(server_key, signed.as_bytes());
        if !is_right || !self.is_known {
            return Err(ScramError::Wrong);
        }
        let server_final = format!("v={}", STANDARD.encode(server_signature)).into_bytes();
        Ok(ScramSuccess { user: self.user, server_final })
    }
}

/// Shows no secret.
impl std::fmt::Debug for ScramExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScramExchange").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// What a user that does not exist would have (RFC 5802, 5.1). It is made up for others, too, so
/// that the answer takes as long.
struct MadeUp {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    keys: Vec<u8>,
}

impl MadeUp {
    fn of(users: &Users, hash: ScramHash, key: &ProcessKey, user: &str) -> Self {
        // As often as users have these terms, so that they tell nothing.
        let terms = users.scram_terms();
        let of_hash = terms.partition_point(|terms| terms.hash < hash)
            ..terms.partition_point(|terms| terms.hash <= hash);
        let terms = &terms[of_hash];
        let chosen = key.made_up(user, b"terms");
        let index = u64::from_le_bytes([
            chosen[0], chosen[1], chosen[2], chosen[3], chosen[4], chosen[5], chosen[6], chosen[7],
        ]);
        let terms = terms.get((index % terms.len().max(1) as u64) as usize);
        let salt_len = terms.map_or(SCRAM_SALT_LEN, |terms| terms.salt_len);
        let block = |number: u8| key.made_up(user, &[number]);
        let bytes =
            |first: u8, len: usize| -> Vec<u8> { (first..).flat_map(&block).take(len).collect() };
        Self {
            salt: bytes(0, salt_len),
            iterations: terms.map_or(SCRAM_ITERATIONS, |terms| terms.iterations),
            keys: bytes(100, hash.stored_len()),
        }
    }
}
