//! Keys of tokens, and the algorithms that they are for (RFC 7518, 8037).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{self, EcdsaVerificationAlgorithm, RsaParameters, UnparsedPublicKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use spki::der::Decode as _;
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use crate::file::FileError;

/// Each may have to be tried for a token that names none.
const KEYS_MAX: usize = 32;
/// 2048 bits: smaller ones are not secure, and never verify.
const RSA_BYTES_MIN: usize = 256;
/// Shorter secrets are guessed.
pub(super) const SECRET_BYTES_MIN: usize = 16;

const OID_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const OID_EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const OID_P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const OID_P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const OID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// How a token is signed.
#[derive(Clone, Copy)]
pub(super) enum Signing {
    Hmac(hmac::Algorithm),
    Rsa(&'static RsaParameters),
    Ec(Curve, &'static EcdsaVerificationAlgorithm),
    Ed25519,
}

impl Signing {
    /// By the name in the header of a token. There is no `none`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Self::Hmac(hmac::HMAC_SHA256),
            "HS384" => Self::Hmac(hmac::HMAC_SHA384),
            "HS512" => Self::Hmac(hmac::HMAC_SHA512),
            "RS256" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            "RS384" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            "RS512" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            "PS256" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            "PS384" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            "PS512" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
            "ES256" => Self::Ec(Curve::P256, &signature::ECDSA_P256_SHA256_FIXED),
            "ES384" => Self::Ec(Curve::P384, &signature::ECDSA_P384_SHA384_FIXED),
            "EdDSA" => Self::Ed25519,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
}

/// One key.
#[derive(Debug)]
pub(super) struct TokenKey {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<String>,
    material: Material,
}

enum Material {
    Secret(Vec<u8>),
    /// An `RSAPublicKey` of RFC 8017.
    Rsa(Vec<u8>),
    RsaParts {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    Ec(Curve, Vec<u8>),
    Ed25519(Vec<u8>),
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "Secret",
            Self::Rsa(_) | Self::RsaParts { .. } => "Rsa",
            Self::Ec(..) => "Ec",
            Self::Ed25519(_) => "Ed25519",
        })
    }
}

impl TokenKey {
    pub(super) const fn is_secret(&self) -> bool {
        matches!(self.material, Material::Secret(_))
    }

    /// Whether the key is for an algorithm.
    pub(super) fn suits(&self, name: &str, signing: Signing) -> bool {
        let is_kind = match (&self.material, signing) {
            (Material::Secret(_), Signing::Hmac(_))
            | (Material::Rsa(_) | Material::RsaParts { .. }, Signing::Rsa(_))
            | (Material::Ed25519(_), Signing::Ed25519) => true,
            (Material::Ec(curve, _), Signing::Ec(wanted, _)) => *curve == wanted,
            _ => false,
        };
        is_kind && self.algorithm.as_deref().is_none_or(|algorithm| algorithm == name)
    }

    /// Whether a token that names this key, or none, may be signed by it.
    pub(super) fn is_named(&self, id: Option<&str>) -> bool {
        match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            _ => true,
        }
    }

    pub(super) fn verifies(&self, signing: Signing, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, signing) {
            (Material::Secret(secret), Signing::Hmac(algorithm)) => {
                hmac::verify(&hmac::Key::new(algorithm, secret), message, signature).is_ok()
            }
            (Material::Rsa(key), Signing::Rsa(parameters)) => {
                UnparsedPublicKey::new(parameters, key).verify(message, signature).is_ok()
            }
            (Material::RsaParts { modulus, exponent }, Signing::Rsa(parameters)) => {
                let key = signature::RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
            (Material::Ec(_, point), Signing::Ec(_, algorithm)) => {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
            }
            (Material::Ed25519(key), Signing::Ed25519) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

/// Reads keys, see [`TokenVerifier::parse`](super::TokenVerifier::parse).
pub(super) fn parse(path: &str, text: &str) -> Result<Vec<TokenKey>, FileError> {
    let wrong = |what: &str| FileError::whole(path, what);
    let keys = if text.trim_start().starts_with('{') {
        jwks(text).map_err(|what| FileError::whole(path, what))?
    } else if text.contains("-----BEGIN ") {
        pem(text).map_err(wrong)?
    } else {
        vec![secret(text.trim_end_matches(['\r', '\n']).as_bytes().to_vec()).map_err(wrong)?]
    };
    match keys.len() {
        0 => Err(wrong("it has no key that tokens can be verified with")),
        1..=KEYS_MAX => Ok(keys),
        _ => Err(wrong("it has more than 32 keys")),
    }
}

fn secret(secret: Vec<u8>) -> Result<TokenKey, &'static str> {
    if secret.len() < SECRET_BYTES_MIN {
        return Err("the secret has less than 16 bytes");
    }
    Ok(TokenKey { id: None, algorithm: None, material: Material::Secret(secret) })
}

fn pem(text: &str) -> Result<Vec<TokenKey>, &'static str> {
    if text.contains("PRIVATE KEY-----") {
        return Err("it has a private key: the broker needs the public one");
    }
    let mut keys = Vec::new();
    for block in SubjectPublicKeyInfoDer::pem_slice_iter(text.as_bytes()) {
        let block = block.map_err(|_| "it is no valid PEM file")?;
        let info = SubjectPublicKeyInfoRef::from_der(&block);
        let info = info.map_err(|_| "a public key of it cannot be read")?;
        let bits = info.subject_public_key.raw_bytes().to_vec();
        let curve = info.algorithm.parameters_oid().ok();
        let material = match (info.algorithm.oid, curve) {
            (OID_RSA, _) if bits.len() < RSA_BYTES_MIN => {
                return Err("an RSA key of it has less than 2048 bits");
            }
            (OID_RSA, _) => Material::Rsa(bits),
            (OID_EC, Some(OID_P256)) => Material::Ec(Curve::P256, bits),
            (OID_EC, Some(OID_P384)) => Material::Ec(Curve::P384, bits),
            (OID_ED25519, _) => Material::Ed25519(bits),
            _ => return Err("a key of it is not RSA, EC (P-256, P-384) or Ed25519"),
        };
        keys.push(TokenKey { id: None, algorithm: None, material });
    }
    match keys.is_empty() {
        true => Err("it has no PUBLIC KEY (`openssl x509 -pubkey` takes it from a certificate)"),
        false => Ok(keys),
    }
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    k: Option<String>,
    d: Option<serde::de::IgnoredAny>,
}

fn jwks(text: &str) -> Result<Vec<TokenKey>, String> {
    let invalid =
        |error: serde_json::Error| format!("it is no valid set of JSON Web Keys: {error}");
    let value: serde_json::Value = serde_json::from_str(text).map_err(invalid)?;
    let keys = match value.get("keys").is_some() {
        true => serde_json::from_value::<JwkSet>(value).map_err(invalid)?.keys,
        false => vec![serde_json::from_value::<Jwk>(value).map_err(invalid)?],
    };
    let mut usable = Vec::new();
    for (at, key) in keys.into_iter().enumerate() {
        let named = key.kid.clone().unwrap_or_else(|| (at + 1).to_string());
        let key = jwk(key).map_err(|what| format!("the key {named}: {what}"))?;
        usable.extend(key);
    }
    Ok(usable)
}

/// `None` for a key of another kind or use, which is to be ignored (RFC 7517, 5).
fn jwk(jwk: Jwk) -> Result<Option<TokenKey>, &'static str> {
    if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
        return Ok(None);
    }
    if jwk.d.is_some() {
        return Err("it is private: the broker needs the public one");
    }
    let bytes = |member: &Option<String>| {
        let text = member.as_deref().ok_or("a member is missing")?;
        BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| "a member is no base64url")
    };
    let point = |len: usize| {
        let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
        match x.len() == len && y.len() == len {
            true => Ok([&[4][..], &x, &y].concat()),
            false => Err("a coordinate has a wrong length"),
        }
    };
    let material = match (&*jwk.kty, jwk.crv.as_deref()) {
        ("oct", _) => secret(bytes(&jwk.k)?)?.material,
        ("RSA", _) => {
            let (modulus, exponent) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
            if modulus.len() < RSA_BYTES_MIN {
                return Err("it has less than 2048 bits");
            }
            Material::RsaParts { modulus, exponent }
        }
        ("EC", Some("P-256")) => Material::Ec(Curve::P256, point(32)?),
        ("EC", Some("P-384")) => Material::Ec(Curve::P384, point(48)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(&jwk.x)?),
        _ => return Ok(None),
    };
    Ok(Some(TokenKey { id: jwk.kid, algorithm: jwk.alg, material }))
}
