//! What the threads that verify credentials, or have a backend do so, answer.

use std::sync::Arc;

use tacho_access::{TokenAcl, TokenError};

/// Whether credentials are right.
pub(crate) enum LoginAnswer {
    Password(bool),
    Token(Result<TokenLogin, TokenError>),
    Backend(BackendLogin),
}

/// What a backend says of a client.
#[derive(Clone, Debug)]
pub(crate) enum BackendLogin {
    /// It is the user that it says.
    Allow {
        rules: Option<Arc<TokenAcl>>,
        /// `None`: it has no end.
        expires_unix_s: Option<u64>,
    },
    Deny,
    /// It would be, if that had not ended already.
    Expired,
    /// It does not know the client.
    Ignore,
    /// There is no answer that counts.
    Unavailable,
}

/// A login by a token.
pub(crate) struct TokenLogin {
    pub(crate) user: Arc<str>,
    pub(crate) rules: Option<Arc<TokenAcl>>,
    /// From now on; `None`: it has no end.
    pub(crate) ends_in_s: Option<u64>,
}
