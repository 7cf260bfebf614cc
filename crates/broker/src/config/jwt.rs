//! `[access.jwt]`: clients log in with JSON Web Tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
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
    pub key_url: Option<String>,
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
        let Some(url) = &self.key_url else {
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

    /// What is asked of tokens.
    pub(crate) fn rules(&self) -> TokenRules {
        TokenRules {
            user_claim: self.user_claim.clone(),
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            claims: self.claims.clone(),
            acl_claim: Some(self.acl_claim.clone()).filter(|claim| !claim.is_empty()),
            leeway_s: self.leeway_s.into(),
            needs_expiry: self.require_expiry,
        }
    }
}
