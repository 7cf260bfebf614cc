//! Tokens that clients log in with: the load signs them, and nothing writes their key anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tacho_load::{TokenClaims, TokenSigner};

use super::quantity::TimeSpan;
use super::template::{ClientPlace, Template};
use super::vars::VarValue;

/// A token of its own for each client and connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Token {
    /// What signs it.
    #[serde(flatten)]
    pub key: TokenKey,
    /// What it claims; `sub` is the user name or client identifier unless it is here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Claim>,
    /// How long it is valid.
    pub lifetime: TimeSpan,
    /// How it is presented.
    pub place: TokenPlace,
}

/// How a token is presented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenPlace {
    /// As the password.
    #[default]
    Password,
    /// As the user name.
    Username,
    /// By the authentication method `JWT` (MQTT 5), and renewed by re-authentication.
    Auth,
}

/// A claim: plain, or a template.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Claim {
    /// May differ from client to client.
    Text(Template),
    /// A number, true or false.
    Plain(VarValue),
}

impl Claim {
    /// Refuses the claims that follow from the lifetime of a token.
    ///
    /// # Errors
    /// A sentence that names the claim.
    pub fn check_name(name: &str) -> Result<(), String> {
        match name {
            "iat" | "exp" => Err(format!("the claim '{name}' follows from the lifetime")),
            _ => Ok(()),
        }
    }
}

/// A key that signs tokens, and the file that it comes from. Its text form is the latter only.
#[derive(Clone, Serialize)]
pub struct TokenKey {
    key_file: PathBuf,
    algorithm: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    #[serde(skip)]
    signer: Arc<TokenSigner>,
}

impl TokenPlace {
    /// All of them, by the names that files use.
    pub const ALL: [(&'static str, Self); 3] =
        [("password", Self::Password), ("username", Self::Username), ("auth", Self::Auth)];

    /// The one that files call so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    }
}

impl TokenKey {
    /// Reads a secret, or a private key in PEM.
    ///
    /// # Errors
    /// A sentence without any content of the file, when it cannot be read or has no such key, or
    /// the algorithm is not for it.
    pub fn read(
        path: &Path,
        algorithm: Option<&str>,
        key_id: Option<String>,
    ) -> Result<Self, String> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the token key '{shown}': {error}"))?;
        let signer = TokenSigner::parse(&shown, &text, algorithm, key_id.as_deref())
            .map_err(|error| format!("cannot use the token key {error}"))?;
        let key_file = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let (algorithm, signer) = (signer.algorithm(), Arc::new(signer));
        Ok(Self { key_file, algorithm, key_id, signer })
    }

    /// What signs.
    pub fn signer(&self) -> Arc<TokenSigner> {
        Arc::clone(&self.signer)
    }
}

impl Token {
    /// How long tokens are valid where nothing is said.
    pub const LIFETIME: TimeSpan = TimeSpan::from_secs(3600);

    /// Of a key alone.
    pub const fn of_key(key: TokenKey) -> Self {
        let place = TokenPlace::Password;
        Self { key, claims: BTreeMap::new(), lifetime: Self::LIFETIME, place }
    }

    /// What the token of a client claims; `subject` is its user name or client identifier.
    pub(crate) fn claims_of(&self, place: ClientPlace, subject: String) -> TokenClaims {
        let mut claims = TokenClaims::default();
        claims.set_text("sub", subject);
        for (name, claim) in &self.claims {
            match claim {
                Claim::Text(template) => claims.set_text(name, template.expand_at(place)),
                Claim::Plain(VarValue::Text(text)) => claims.set_text(name, text.clone()),
                Claim::Plain(VarValue::Boolean(flag)) => claims.set_flag(name, *flag),
                Claim::Plain(VarValue::Integer(number)) => claims.set_whole(name, *number),
                Claim::Plain(VarValue::Float(number)) => claims.set_number(name, *number),
            }
        }
        claims
    }
}

/// Never the key.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenKey").field(&self.key_file).field(&self.algorithm).finish()
    }
}

impl PartialEq for TokenKey {
    fn eq(&self, other: &Self) -> bool {
        (&self.key_file, self.algorithm, &self.key_id)
            == (&other.key_file, other.algorithm, &other.key_id)
    }
}
