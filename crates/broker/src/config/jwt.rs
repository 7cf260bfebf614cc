//! `[access.jwt]`: clients log in with JSON Web Tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use tacho_access::{TokenRules, is_claim_template};

use super::{ConfigError, check_range};

/// `[access.jwt]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JwtSettings {
    /// Keys that tokens are verified with: JWK set, public keys in PEM, or a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Where they are fetched from instead, as a JWK set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_url: Option<KeyUrl>,
    /// Certificates to trust there (PEM), instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_ca_file: Option<PathBuf>,
    /// Seconds between two requests for them.
    #[serde(default = "key_refresh_s")]
    pub key_refresh_s: u32,
    /// Where a client puts its token.
    #[serde(default)]
    pub from: TokenPlace,
    /// The claim that names the user.
    #[serde(default = "subject")]
    pub user_claim: String,
    /// The claim with rules of the client; empty: rules of tokens have no effect.
    #[serde(default = "acl")]
    pub acl_claim: String,
    /// The claim with attributes of the client; empty: attributes of tokens have no effect.
    #[serde(default = "attributes")]
    pub attributes_claim: String,
    /// What `iss` must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What `aud` must be or have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Seconds that the clocks of issuer and broker may differ.
    #[serde(default = "leeway_s")]
    pub leeway_s: u32,
    /// Tokens without an end are refused.
    #[serde(default = "yes")]
    pub require_expiry: bool,
    /// What follows when the token of a connected client ends.
    #[serde(default)]
    pub on_expiry: OnExpiry,
    /// Claims that must have these values.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
}

/// The URL of keys. Shown without its query, which may have a secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct KeyUrl(String);

impl KeyUrl {
    /// The whole of it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.find(['?', '#']).unwrap_or(self.0.len());
        let (shown, hidden) = self.0.split_at(end);
        // Refused where it is checked, and the refusal is shown.
        let host_at = shown.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = shown.split_at(host_at);
        let host = rest.split('/').next().unwrap_or_default();
        let without_user = host.rfind('@').map_or(rest, |at| &rest[at + 1..]);
        write!(f, "{scheme}{without_user}{}", if hidden.is_empty() { "" } else { "?..." })
    }
}

impl fmt::Debug for KeyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a client puts its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPlace {
    /// In the password.
    #[default]
    Password,
    /// In the user name.
    Username,
}

/// What follows when the token of a connected client ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The client is disconnected, and its will published.
    #[default]
    Disconnect,
    /// The client is disconnected, and its will deleted.
    DisconnectWithoutWill,
    /// Nothing: the token counts when a client connects.
    Stay,
}

fn subject() -> String {
    "sub".to_owned()
}

fn acl() -> String {
    "acl".to_owned()
}

fn attributes() -> String {
    "client_attrs".to_owned()
}

const fn key_refresh_s() -> u32 {
    300
}

const fn leeway_s() -> u32 {
    30
}

const fn yes() -> bool {
    true
}

impl JwtSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_keys().map_err(ConfigError::TokenKeys)?;
        let refresh_s = self.key_refresh_s.into();
        check_range("access.jwt.key_refresh_s", refresh_s, 10, 86_400, "from 10 to 86400")?;
        check_range("access.jwt.leeway_s", self.leeway_s.into(), 0, 3_600, "at most 3600")?;
        match self.claims.values().find(|value| !is_claim_template(value)) {
            Some(wrong) => Err(ConfigError::ClaimTemplate(wrong.clone())),
            None => Ok(()),
        }
    }

    fn check_keys(&self) -> Result<(), &'static str> {
        let Some(url) = self.key_url.as_ref().map(KeyUrl::secret) else {
            return match (&self.key_file, &self.key_ca_file) {
                (None, _) => Err("set `key_file` or `key_url`, where the keys of tokens are"),
                (_, Some(_)) => Err("`key_ca_file` has no use without `key_url`"),
                (Some(_), None) => Ok(()),
            };
        };
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = host.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        if self.key_file.is_some() {
            Err("`key_file` or `key_url`, not both")
        } else if host.is_empty() {
            Err("`key_url` must begin with https:// (or http://) and a host")
        } else if host.contains('@') {
            Err("`key_url` has a user or a password, which would be visible: leave them out")
        } else if self.key_ca_file.is_some() && !url.starts_with("https://") {
            Err("`key_ca_file` has no use without https://")
        } else {
            Ok(())
        }
    }

    /// Whether tokens may bring rules or attributes.
    pub(crate) fn brings_rules(&self) -> bool {
        !self.acl_claim.is_empty() || !self.attributes_claim.is_empty()
    }

    /// What is asked of tokens.
    pub(crate) fn rules(&self) -> TokenRules {
        let named = |claim: &String| Some(claim.clone()).filter(|claim| !claim.is_empty());
        TokenRules {
            user_claim: self.user_claim.clone(),
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            claims: self.claims.clone(),
            acl_claim: named(&self.acl_claim),
            attributes_claim: named(&self.attributes_claim),
            leeway_s: self.leeway_s.into(),
            needs_expiry: self.require_expiry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_keys_are_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("https://id.example/keys", "https://id.example/keys"),
            ("https://id.example/keys?token=secret", "https://id.example/keys?..."),
            ("https://id.example/a@b?c@d", "https://id.example/a@b?..."),
            ("https://id.example#secret", "https://id.example?..."),
            ("https://ann:secret@id.example:1/x", "https://id.example:1/x"),
            ("http://secret@", "http://"),
        ] {
            let url = KeyUrl(url.to_owned());
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }
}
