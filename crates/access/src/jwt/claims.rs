//! What is asked of the claims of a token (RFC 7519, 4.1).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{TokenAcl, TokenError, VerifiedToken};
use crate::attributes::Attributes;
use crate::template::Who;

/// What is asked of claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The claim that names the user.
    pub user_claim: String,
    /// `iss` must be this.
    pub issuer: Option<String>,
    /// `aud` must be this, or have it. Without it a token must have no `aud`: it is for others.
    pub audience: Option<String>,
    /// Claims that must have these values; `%c` is the client identifier, `%u` the user name of
    /// CONNECT, `%%` a `%`.
    pub claims: BTreeMap<String, String>,
    /// The claim with rules, see [`TokenAcl`]; `None`: rules of tokens have no effect.
    pub acl_claim: Option<String>,
    /// The claim with [`Attributes`]; `None`: attributes of tokens have no effect.
    pub attributes_claim: Option<String>,
    /// Seconds that the clock of the issuer may be ahead or behind.
    pub leeway_s: u64,
    /// A token without `exp` is refused.
    pub needs_expiry: bool,
}

/// The client that a token is from, as its CONNECT says.
#[derive(Clone, Copy, Debug)]
pub struct TokenClient<'a> {
    /// The client identifier.
    pub client_id: &'a str,
    /// The user name: no more than a claim of the client.
    pub user: Option<&'a str>,
}

impl TokenRules {
    /// Checks the claims of a token whose signature is right.
    pub(super) fn check(
        &self,
        claims: &Map<String, Value>,
        client: &TokenClient<'_>,
        now_unix_s: u64,
    ) -> Result<VerifiedToken, TokenError> {
        let (now, leeway) = (now_unix_s as f64, self.leeway_s as f64);
        let expires = date(claims, "exp")?;
        match expires {
            Some(expires) if now >= expires + leeway => return Err(TokenError::Expired),
            None if self.needs_expiry => return Err(TokenError::NoExpiry),
            _ => {}
        }
        for name in ["nbf", "iat"] {
            if date(claims, name)?.is_some_and(|from| from > now + leeway) {
                return Err(TokenError::NotYetValid);
            }
        }
        let issuer = claims.get("iss").and_then(Value::as_str);
        if self.issuer.as_deref().is_some_and(|wanted| issuer != Some(wanted)) {
            return Err(TokenError::Issuer);
        }
        if !self.is_audience(claims.get("aud")) {
            return Err(TokenError::Audience);
        }
        for (name, wanted) in &self.claims {
            let wanted = fill(wanted, client);
            let is_right = match (claims.get(name), &wanted) {
                (Some(Value::String(text)), Some(wanted)) => text == wanted,
                (Some(value @ (Value::Number(_) | Value::Bool(_))), Some(wanted)) => {
                    let shown = value.to_string();
                    shown == *wanted
                }
                _ => false,
            };
            if !is_right {
                return Err(TokenError::Claim(name.clone()));
            }
        }
        let user = claims.get(&self.user_claim).and_then(Value::as_str);
        let is_name = |user: &&str| !user.is_empty() && !user.contains(char::is_control);
        let user = user.filter(is_name).ok_or_else(|| TokenError::User(self.user_claim.clone()))?;
        // A number that is too large for 64 bits is the largest of them.
        let expires_unix_s = expires.map(|expires| (expires + leeway).ceil() as u64);
        let acl = self.acl(claims, &Who::new(Some(user), client.client_id))?;
        let acl = TokenAcl::brought(acl, self.attributes(claims)?);
        Ok(VerifiedToken { user: user.to_owned(), expires_unix_s, acl })
    }

    fn acl(
        &self,
        claims: &Map<String, Value>,
        who: &Who<'_>,
    ) -> Result<Option<TokenAcl>, TokenError> {
        let Some(name) = &self.acl_claim else { return Ok(None) };
        let acl = claims.get(name).map(|claim| TokenAcl::of_claim(claim, who)).transpose();
        acl.map_err(|why| TokenError::Acl(name.clone(), why))
    }

    fn attributes(&self, claims: &Map<String, Value>) -> Result<Attributes, TokenError> {
        let Some(name) = &self.attributes_claim else { return Ok(Attributes::NONE) };
        let attributes = claims.get(name).map(Attributes::parse).transpose();
        let attributes = attributes.map_err(|why| TokenError::Attributes(name.clone(), why))?;
        Ok(attributes.unwrap_or_default())
    }

    fn is_audience(&self, audience: Option<&Value>) -> bool {
        match (&self.audience, audience) {
            (None, audience) => audience.is_none(),
            (Some(wanted), Some(Value::String(audience))) => audience == wanted,
            (Some(wanted), Some(Value::Array(audiences))) => {
                audiences.iter().any(|audience| audience.as_str() == Some(wanted))
            }
            _ => false,
        }
    }
}

/// Seconds since 1970.
fn date(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => {
            let date = value.as_f64().filter(|date| date.is_finite() && *date >= 0.0);
            date.map(Some).ok_or(TokenError::Malformed)
        }
    }
}

/// Whether the placeholders of a text are known.
pub fn is_claim_template(text: &str) -> bool {
    let all = TokenClient { client_id: "", user: Some("") };
    fill(text, &all).is_some()
}

/// `None` where a placeholder has no value.
fn fill(template: &str, client: &TokenClient<'_>) -> Option<String> {
    let mut pieces = template.split('%');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    while let Some(piece) = pieces.next() {
        if let Some(rest) = piece.strip_prefix('c') {
            filled.push_str(client.client_id);
            filled.push_str(rest);
        } else if let Some(rest) = piece.strip_prefix('u') {
            filled.push_str(client.user?);
            filled.push_str(rest);
        } else if piece.is_empty() {
            // `%%`: what follows the second one has no placeholder before it.
            filled.push('%');
            filled.push_str(pieces.next()?);
        } else {
            return None;
        }
    }
    Some(filled)
}
