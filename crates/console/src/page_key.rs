//! Tokens of the pages of runs that the console starts: each run has its own, which follows from
//! the console's. So the next console knows it, too, and no file has to keep it.

use ring::hmac;
use tacho_http::hex;

/// What such tokens are made of.
#[derive(Clone)]
pub(crate) struct PageKey(hmac::Key);

impl PageKey {
    /// Of a console with this token.
    pub(crate) fn new(own: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, own.as_bytes()))
    }

    /// The token of the page of a run.
    pub(crate) fn token(&self, id: &str) -> String {
        let tag = hmac::sign(&self.0, format!("page of the run {id}").as_bytes());
        hex(tag.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_token_that_a_later_console_knows() {
        let key = PageKey::new("of the console");
        let token = key.token("a");
        assert_eq!(token, PageKey::new("of the console").token("a"));
        assert_ne!(token, key.token("b"));
        assert_ne!(token, PageKey::new("of another console").token("a"));
        assert_eq!(token.len(), 64);
    }
}
