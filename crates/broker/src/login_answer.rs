//! What the threads that verify credentials answer.

use std::sync::Arc;

use tacho_access::{TokenAcl, TokenError};

/// Whether credentials are right.
pub(crate) enum LoginAnswer {
    Password(bool),
    Token(Result<TokenLogin, TokenError>),
}

/// A login by a token.
pub(crate) struct TokenLogin {
    pub(crate) user: Arc<str>,
    pub(crate) rules: Option<Arc<TokenAcl>>,
    /// From now on; `None`: it has no end.
    pub(crate) ends_in_s: Option<u64>,
}
