//! How the clients log in: by tokens or SCRAM instead of plain passwords.

use std::path::PathBuf;

use clap::Args;
use tacho_load::ScramHash;
use tacho_scenario::{Claim, Scenario, Template, TimeSpan, Token, TokenKey, TokenPlace};

/// What all clients present instead of their passwords.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LoginArguments {
    /// Log in by SCRAM over AUTH with user name and password (MQTT 5): sha256 or sha512
    #[arg(long, value_name = "HASH", conflicts_with = "token_key")]
    scram: Option<ScramHash>,

    /// Log in by JSON Web Tokens that are signed with the key in this file: a secret, or a private
    /// key in PEM
    ///
    /// Each connection gets a token of its own, whose claim 'sub' is the user name or else the
    /// client identifier. Results keep the path of the file, never the key.
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,

    /// Algorithm of the tokens' signatures; default: HS256, RS256, ES256, ES384 or EdDSA by the key
    #[arg(long, value_name = "NAME", requires = "token_key")]
    token_algorithm: Option<String>,

    /// A claim of the tokens, such as aud=mqtt; the value may be a template; may be given several
    /// times
    #[arg(long = "token-claim", value_name = "NAME=VALUE", requires = "token_key",
          value_parser = parse_claim)]
    token_claims: Vec<(String, Template)>,

    /// How long tokens are valid; default: 1h
    #[arg(long, value_name = "TIME", requires = "token_key", value_parser = parse_lifetime)]
    token_lifetime: Option<TimeSpan>,

    /// Where tokens are presented: password, username, or auth (MQTT 5), which also renews them;
    /// default: password
    #[arg(long, value_name = "PLACE", requires = "token_key", value_parser = parse_place)]
    token_place: Option<TokenPlace>,
}

fn parse_claim(text: &str) -> Result<(String, Template), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "write NAME=VALUE".to_owned())?;
    Claim::check_name(name)?;
    Ok((name.to_owned(), Template::parse(value)?))
}

fn parse_lifetime(text: &str) -> Result<TimeSpan, String> {
    let lifetime = TimeSpan::parse(text)?;
    match lifetime.0.as_secs() {
        0 => Err("a token is valid for at least a second".to_owned()),
        _ => Ok(lifetime),
    }
}

fn parse_place(text: &str) -> Result<TokenPlace, String> {
    TokenPlace::named(text).ok_or_else(|| "password, username or auth".to_owned())
}

impl LoginArguments {
    /// Applies to the clients of all groups; `gives_passwords` where other arguments have
    /// passwords.
    ///
    /// # Errors
    /// A sentence, when a key cannot sign, or arguments contradict each other.
    pub(super) fn apply(
        &self,
        scenario: &mut Scenario,
        gives_passwords: bool,
    ) -> Result<(), String> {
        if let Some(hash) = self.scram {
            scenario.set_scram(hash);
        }
        let Some(path) = &self.token_key else { return Ok(()) };
        let place = self.token_place.unwrap_or_default();
        if gives_passwords && place != TokenPlace::Username {
            return Err(
                "--password-file has no effect beside --token-key: clients log in by their \
                        tokens; remove one of them, or use --token-place username"
                    .to_owned(),
            );
        }
        let key = TokenKey::read(path, self.token_algorithm.as_deref(), None)?;
        let claims = self.token_claims.iter();
        scenario.set_token(&Token {
            key,
            claims: claims
                .map(|(name, value)| (name.clone(), Claim::Text(value.clone())))
                .collect(),
            lifetime: self.token_lifetime.unwrap_or(Token::LIFETIME),
            place,
        });
        Ok(())
    }
}
