//! Logins that were verified a short while ago.
//!
//! A verification by Argon2 takes tens of milliseconds and of megabytes. What was verified is
//! remembered as an HMAC over user, stored hash and password under a key that exists only in this
//! process: a client that connects again costs microseconds. A changed password changes the stored
//! hash, and so what is remembered.

use std::collections::HashSet;

use ring::hmac;
use ring::rand::SystemRandom;

use crate::hash::{NoRandomness, StoredPassword};

/// A random key, made when the process starts.
#[derive(Clone, Debug)]
pub struct ProcessKey(hmac::Key);

/// Stands for one user, stored hash and password, or for what a backend is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proof([u8; 32]);

impl ProcessKey {
    /// A new key.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new() -> Result<Self, NoRandomness> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        key.map(Self).map_err(|_| NoRandomness)
    }

    /// Bytes that stand for a user that does not exist, the same as long as the process runs.
    pub(crate) fn made_up(&self, user: &str, what: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        // A length that no part of a proof has.
        context.update(&u64::MAX.to_le_bytes());
        for part in [what, user.as_bytes()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }

    /// Stands for values, some of which may be absent, in this order.
    pub(crate) fn proof_of_all(&self, values: impl Iterator<Item = Option<String>>) -> Proof {
        let mut context = hmac::Context::with_key(&self.0);
        // A length that no part of another proof has.
        context.update(&(u64::MAX - 1).to_le_bytes());
        for value in values {
            context.update(&[u8::from(value.is_some())]);
            let value = value.unwrap_or_default();
            context.update(&(value.len() as u64).to_le_bytes());
            context.update(value.as_bytes());
        }
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        Proof(proof)
    }

    /// The proof of a login, right or wrong.
    pub fn proof(&self, user: &str, stored: &StoredPassword, password: &[u8]) -> Proof {
        let mut context = hmac::Context::with_key(&self.0);
        for part in [user.as_bytes(), stored.hash(), password] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        Proof(proof)
    }
}

/// Verified logins, bounded in number and time.
///
/// They are kept in two sets. When the newer one is full or old enough it becomes the older one,
/// and what was in that is forgotten.
#[derive(Default)]
pub struct Remembered {
    newer: HashSet<Proof>,
    older: HashSet<Proof>,
    since_ns: u64,
    len_max: usize,
    keep_ns: u64,
}

impl Remembered {
    /// At most `len_max` logins, each for `keep_ns` to twice that after its last use.
    pub fn new(len_max: usize, keep_ns: u64) -> Self {
        Self { len_max, keep_ns, ..Self::default() }
    }

    /// Whether this login was verified a short while ago.
    pub fn knows(&mut self, proof: Proof, now_ns: u64) -> bool {
        self.rotate(now_ns);
        if self.newer.contains(&proof) {
            return true;
        }
        let is_known = self.older.contains(&proof);
        if is_known {
            self.add(proof, now_ns);
        }
        is_known
    }

    /// A login has been verified.
    pub fn add(&mut self, proof: Proof, now_ns: u64) {
        self.rotate(now_ns);
        if self.newer.len() >= self.len_max / 2 {
            self.older = std::mem::take(&mut self.newer);
            self.since_ns = now_ns;
        }
        if self.len_max > 1 {
            self.newer.insert(proof);
        }
    }

    /// Logins that are remembered.
    pub fn len(&self) -> usize {
        self.newer.len() + self.older.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn rotate(&mut self, now_ns: u64) {
        let age_ns = now_ns.saturating_sub(self.since_ns);
        if age_ns < self.keep_ns {
            return;
        }
        self.older = std::mem::take(&mut self.newer);
        if age_ns >= self.keep_ns.saturating_mul(2) {
            self.older.clear();
        }
        self.since_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Scheme;

    fn proofs(count: u32) -> Vec<Proof> {
        let key = ProcessKey::new().expect("randomness");
        let stored = StoredPassword::make(b"p", Scheme::Sha512).expect("randomness");
        (0..count).map(|number| key.proof(&number.to_string(), &stored, b"p")).collect()
    }

    #[test]
    fn a_proof_depends_on_key_user_hash_and_password() {
        let (key, other) = (ProcessKey::new().unwrap(), ProcessKey::new().unwrap());
        let stored = StoredPassword::make(b"p", Scheme::Sha512).unwrap();
        let changed = StoredPassword::make(b"p", Scheme::Sha512).unwrap();
        let proof = key.proof("ab", &stored, b"p");
        assert!(proof == key.proof("ab", &stored, b"p"));
        for different in [
            key.proof("ab", &stored, b"q"),
            key.proof("a", &stored, b"p"),
            key.proof("ab", &changed, b"p"),
            other.proof("ab", &stored, b"p"),
        ] {
            assert!(proof != different);
        }
    }

    #[test]
    fn logins_are_forgotten_when_they_are_old_or_too_many() {
        let proofs = proofs(100);
        let mut remembered = Remembered::new(10, 1_000);
        assert!(!remembered.knows(proofs[0], 0));
        remembered.add(proofs[0], 0);
        assert!(remembered.knows(proofs[0], 999));
        // Used in time, it is kept on.
        assert!(remembered.knows(proofs[0], 1_500));
        assert!(remembered.knows(proofs[0], 2_600));
        assert!(!remembered.knows(proofs[0], 9_000));
        for proof in &proofs {
            remembered.add(*proof, 9_000);
            assert!(remembered.len() <= 10);
        }
        assert!(remembered.knows(proofs[99], 9_000));
        assert!(!remembered.knows(proofs[0], 9_000));
        let mut nothing = Remembered::new(0, 1_000);
        nothing.add(proofs[0], 0);
        assert!(nothing.is_empty());
    }
}
