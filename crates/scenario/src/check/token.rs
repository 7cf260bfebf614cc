//! Tokens and SCRAM, checked.

use tacho_load::ScramHash;
use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::raw::{RawClaim, RawConnect, RawToken};
use crate::token::{Claim, Token, TokenKey, TokenPlace};
use crate::vars::VarValue;

impl Checker<'_> {
    pub(super) fn token(&self, raw: &RawConnect) -> Checked<Option<Token>> {
        let Some(spanned) = &raw.token else { return Ok(None) };
        if let Some(scram) = &raw.scram {
            return Err(self
                .error(scram.span(), "clients log in by a token or by SCRAM, not by both")
                .label("remove 'scram' or 'token'"));
        }
        let RawToken { key_file, algorithm, key_id, claims, lifetime, place } = spanned.get_ref();
        let path = self.source.path(key_file.get_ref());
        let key = TokenKey::read(&path, algorithm.as_deref(), key_id.clone())
            .map_err(|title| self.error(key_file.span(), title))?;
        let lifetime = match lifetime {
            Some(span) if span.get_ref().0.as_secs() == 0 => {
                return Err(self.error(span.span(), "a token is valid for at least a second"));
            }
            Some(span) => *span.get_ref(),
            None => Token::LIFETIME,
        };
        let place = match place {
            None => TokenPlace::default(),
            Some(name) => TokenPlace::named(name.get_ref()).ok_or_else(|| {
                self.choice(name, "place", "\"password\", \"username\" or \"auth\"")
            })?,
        };
        let claims = claims.iter().map(|(name, claim)| {
            Claim::check_name(name.get_ref())
                .map_err(|title| self.error(name.span(), title).label("remove it"))?;
            Ok((name.get_ref().clone(), self.claim(claim)?))
        });
        Ok(Some(Token { key, claims: claims.collect::<Checked<_>>()?, lifetime, place }))
    }

    fn claim(&self, claim: &Spanned<RawClaim>) -> Checked<Claim> {
        Ok(match claim.get_ref() {
            RawClaim::Flag(flag) => Claim::Plain(VarValue::Boolean(*flag)),
            RawClaim::Whole(number) => Claim::Plain(VarValue::Integer(*number)),
            RawClaim::Number(number) => Claim::Plain(VarValue::Float(*number)),
            RawClaim::Text(text) => {
                Claim::Text(self.template(&Spanned::new(claim.span(), text.clone()))?)
            }
        })
    }

    pub(super) fn scram(&self, raw: &RawConnect) -> Checked<Option<ScramHash>> {
        let Some(name) = &raw.scram else { return Ok(None) };
        let hash = name.get_ref().parse::<ScramHash>();
        hash.map(Some).map_err(|title| self.error(name.span(), title))
    }
}
