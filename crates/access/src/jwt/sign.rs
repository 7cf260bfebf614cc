//! Tokens made: what a client that logs in with tokens of its own presents (RFC 7515, 7518).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaEncoding};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value};

use super::keys::SECRET_BYTES_MIN;
use crate::file::FileError;

/// Signs tokens with one key.
pub struct TokenSigner {
    key: SigningKey,
    algorithm: &'static str,
    /// The encoded header, with the dot behind it.
    header: String,
    random: SystemRandom,
}

enum SigningKey {
    Secret(hmac::Key),
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ec(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// What a token claims, except its times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenClaims(Map<String, Value>);

impl TokenClaims {
    /// Sets a claim to a text.
    pub fn set_text(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a claim to true or false.
    pub fn set_flag(&mut self, name: &str, value: bool) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a claim to a whole number.
    pub fn set_whole(&mut self, name: &str, value: i64) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a claim to a number; JSON has none that is not finite, and null stands for it.
    pub fn set_number(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value.into());
    }
}

/// A token could not be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token could not be signed")]
pub struct SignError;

impl TokenSigner {
    /// Reads a key: a private one in PEM (RSA, P-256, P-384, Ed25519), or else a secret for HMAC,
    /// as its bytes without the end of the line. Without an `algorithm` the usual one of the key is
    /// taken: HS256, RS256, ES256, ES384 or EdDSA. `path` is for errors, which show no part of the
    /// key.
    ///
    /// # Errors
    /// The text has no usable key, or the algorithm is not for it.
    pub fn parse(
        path: &str,
        text: &str,
        algorithm: Option<&str>,
        key_id: Option<&str>,
    ) -> Result<Self, FileError> {
        let wrong = |what: String| FileError::whole(path, what);
        let (key, algorithm) = match text.contains("-----BEGIN ") {
            true => private(text, algorithm).map_err(wrong)?,
            false => secret(text, algorithm).map_err(wrong)?,
        };
        let mut header = Map::new();
        header.insert("alg".to_owned(), algorithm.into());
        header.insert("typ".to_owned(), "JWT".into());
        if let Some(key_id) = key_id {
            header.insert("kid".to_owned(), key_id.into());
        }
        let header = format!("{}.", encode(Value::Object(header).to_string().as_bytes()));
        Ok(Self { key, algorithm, header, random: SystemRandom::new() })
    }

    /// The name of the algorithm.
    pub const fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// A token with these claims and with its times: made at `now_unix_s` (`iat`),
    /// ended at `expires_unix_s` (`exp`). Claims of these names win.
    ///
    /// # Errors
    /// The system gives no random numbers, or the key cannot sign.
    pub fn sign(
        &self,
        claims: &TokenClaims,
        now_unix_s: u64,
        expires_unix_s: u64,
    ) -> Result<String, SignError> {
        let mut payload = Map::new();
        payload.insert("iat".to_owned(), now_unix_s.into());
        payload.insert("exp".to_owned(), expires_unix_s.into());
        payload.extend(claims.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        let mut token = self.header.clone();
        token.push_str(&encode(Value::Object(payload).to_string().as_bytes()));
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        token.push_str(&encode(&signature));
        Ok(token)
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        match &self.key {
            SigningKey::Secret(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            SigningKey::Rsa(key, encoding) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = key.sign(*encoding, &self.random, message, &mut signature);
                signed.map(|()| signature).map_err(|_| SignError)
            }
            SigningKey::Ec(key) => {
                let signature = key.sign(&self.random, message).map_err(|_| SignError)?;
                Ok(signature.as_ref().to_vec())
            }
            SigningKey::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}

/// Shows no secret.
impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSigner").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The algorithm that is asked for, if it is one of the key's, else the key's first.
fn chosen<T>(
    of_key: &[(&'static str, T)],
    asked: Option<&str>,
    kind: &str,
) -> Result<(&'static str, T), String>
where
    T: Copy,
{
    let Some(asked) = asked else { return Ok(of_key[0]) };
    let found = of_key.iter().find(|(name, _)| *name == asked).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = of_key.iter().map(|(name, _)| *name).collect();
        format!("the algorithm '{asked}' is not for {kind}: {}", names.join(", "))
    })
}

fn secret(text: &str, asked: Option<&str>) -> Result<(SigningKey, &'static str), String> {
    let secret = text.trim_end_matches(['\r', '\n']).as_bytes();
    if text.trim_start().starts_with('{') {
        return Err("it has a JSON Web Key: use the secret alone, or a private key in PEM".into());
    }
    if secret.len() < SECRET_BYTES_MIN {
        return Err("the secret has less than 16 bytes".to_owned());
    }
    let algorithms =
        [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)];
    let (name, algorithm) = chosen(&algorithms, asked, "a secret")?;
    Ok((SigningKey::Secret(hmac::Key::new(algorithm, secret)), name))
}

fn private(text: &str, asked: Option<&str>) -> Result<(SigningKey, &'static str), String> {
    let rsa: [(&str, &'static dyn RsaEncoding); 6] = [
        ("RS256", &signature::RSA_PKCS1_SHA256),
        ("RS384", &signature::RSA_PKCS1_SHA384),
        ("RS512", &signature::RSA_PKCS1_SHA512),
        ("PS256", &signature::RSA_PSS_SHA256),
        ("PS384", &signature::RSA_PSS_SHA384),
        ("PS512", &signature::RSA_PSS_SHA512),
    ];
    let der = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| "it has no private key in PEM (PRIVATE KEY)".to_owned())?;
    let der = match &der {
        PrivateKeyDer::Pkcs1(key) => {
            let key = RsaKeyPair::from_der(key.secret_pkcs1_der()).map_err(|why| unusable(&why))?;
            let (name, encoding) = chosen(&rsa, asked, "an RSA key")?;
            return Ok((SigningKey::Rsa(Box::new(key), encoding), name));
        }
        PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der(),
        _ => {
            return Err(
                "it has a key in the form of SEC 1: convert it with 'openssl pkcs8 -topk8 \
                        -nodes'"
                    .to_owned(),
            );
        }
    };
    if let Ok(key) = RsaKeyPair::from_pkcs8(der) {
        let (name, encoding) = chosen(&rsa, asked, "an RSA key")?;
        return Ok((SigningKey::Rsa(Box::new(key), encoding), name));
    }
    for (name, kind, algorithm) in [
        ("ES256", "a key of P-256", &signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", "a key of P-384", &signature::ECDSA_P384_SHA384_FIXED_SIGNING),
    ] {
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new()) {
            let (name, ()) = chosen(&[(name, ())], asked, kind)?;
            return Ok((SigningKey::Ec(Box::new(key)), name));
        }
    }
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|why| unusable(&why))?;
    let (name, ()) = chosen(&[("EdDSA", ())], asked, "an Ed25519 key")?;
    Ok((SigningKey::Ed25519(Box::new(key)), name))
}

fn unusable(why: &ring::error::KeyRejected) -> String {
    format!("its key is not RSA (2048 to 4096 bits), EC (P-256, P-384) or Ed25519: {why}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{TokenClient, TokenRules, TokenVerifier};
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const SECRET: &str = "a secret that is long enough for all of these\n";

    fn verified(signer: &TokenSigner, verification_key: &str, leeway_s: u64) -> Option<String> {
        let mut claims = TokenClaims::default();
        claims.set_text("sub", "ann".to_owned());
        claims.set_text("aud", "mqtt".to_owned());
        let token = signer.sign(&claims, NOW, NOW + 60).expect("signs");
        let rules = TokenRules {
            user_claim: "sub".to_owned(),
            issuer: None,
            audience: Some("mqtt".to_owned()),
            claims: BTreeMap::new(),
            acl_claim: None,
            attributes_claim: None,
            leeway_s: 0,
            needs_expiry: true,
        };
        let verifier = TokenVerifier::parse("keys", verification_key, rules).expect("a key");
        let client = TokenClient { client_id: "c", user: None };
        let token = verifier.verify(&token, &client, NOW + leeway_s).ok()?;
        assert_eq!(token.expires_unix_s, Some(NOW + 60));
        Some(token.user)
    }

    #[test]
    fn tokens_of_each_algorithm_are_verified() {
        for name in ["HS256", "HS384", "HS512"] {
            let signer = TokenSigner::parse("key", SECRET, Some(name), Some("k")).expect("a key");
            assert_eq!(verified(&signer, SECRET, 59).as_deref(), Some("ann"), "{name}");
            assert_eq!(verified(&signer, SECRET, 60), None, "{name} has ended");
            assert_eq!(verified(&signer, "another secret of some length", 0), None);
        }
        for (algorithm, name) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, "ES256"),
            (&rcgen::PKCS_ECDSA_P384_SHA384, "ES384"),
            (&rcgen::PKCS_ED25519, "EdDSA"),
        ] {
            let pair = rcgen::KeyPair::generate_for(algorithm).expect("a key");
            let (private, public) = (pair.serialize_pem(), pair.public_key_pem());
            let signer = TokenSigner::parse("key", &private, None, None).expect(name);
            assert_eq!(signer.algorithm(), name);
            assert_eq!(verified(&signer, &public, 0).as_deref(), Some("ann"), "{name}");
        }
        let rsa = include_str!("../../tests/fixtures/rsa.pem");
        let public = include_str!("../../tests/fixtures/rsa.pub.pem");
        for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
            let signer = TokenSigner::parse("key", rsa, Some(name), None).expect(name);
            assert_eq!(verified(&signer, public, 0).as_deref(), Some("ann"), "{name}");
        }
    }

    #[test]
    fn keys_that_cannot_sign_are_refused_without_showing_them() {
        let ec = rcgen::KeyPair::generate().expect("a key");
        for (text, algorithm, words) in [
            ("too short", None, "less than 16 bytes"),
            (SECRET, Some("RS256"), "is not for a secret: HS256, HS384, HS512"),
            ("{\"kty\":\"oct\",\"k\":\"AAAA\"}", None, "JSON Web Key"),
            (&ec.public_key_pem(), None, "no private key"),
            (&ec.serialize_pem(), Some("ES384"), "is not for a key of P-256: ES256"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", None, "Ed25519"),
        ] {
            let error = TokenSigner::parse("key.pem", text, algorithm, None).expect_err(words);
            let error = error.to_string();
            assert!(error.starts_with("key.pem: ") && error.contains(words), "{error}");
        }
        let signer = TokenSigner::parse("key", SECRET, None, None).expect("a key");
        assert!(!format!("{signer:?}").contains("secret that"));
    }
}
