//! How clients prove who they are, beyond a user name and a password.

use std::sync::Arc;

use tacho_access::{ScramHash, TokenSigner};

/// How the clients of a group prove who they are.
#[derive(Debug, Clone, Default)]
pub enum Authentication {
    /// By user name and password in CONNECT, as far as they have them.
    #[default]
    Password,
    /// By a token that is signed anew for every connection.
    Token(TokenLogin),
    /// By SCRAM over AUTH, with user name and password (5.0 only).
    Scram(ScramHash),
}

/// Tokens of the clients of a group. What they claim is a matter of each [`Client`].
///
/// [`Client`]: super::Client
#[derive(Debug, Clone)]
pub struct TokenLogin {
    /// Signs them.
    pub signer: Arc<TokenSigner>,
    /// How long each is valid, at least 1 s.
    pub lifetime_s: u32,
    /// How they are presented.
    pub place: TokenPlace,
}

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenPlace {
    /// As the password of CONNECT.
    #[default]
    Password,
    /// As the user name of CONNECT.
    Username,
    /// By the authentication method `JWT` (5.0 only). A connected client brings a new token by
    /// re-authentication after three quarters of the lifetime.
    Auth,
}

impl TokenLogin {
    /// The authentication method of [`TokenPlace::Auth`].
    pub const METHOD: &str = "JWT";

    /// How long after its connection a client brings a new token; `None` if it cannot.
    pub(crate) fn renewal_ns(&self) -> Option<u64> {
        let lifetime_ns = u64::from(self.lifetime_s) * 1_000_000_000;
        (self.place == TokenPlace::Auth).then_some(lifetime_ns / 4 * 3)
    }
}

impl Authentication {
    /// Whether it takes AUTH packets or properties of 5.0.
    pub(super) fn needs_v5(&self) -> bool {
        match self {
            Self::Password => false,
            Self::Token(token) => token.place == TokenPlace::Auth,
            Self::Scram(_) => true,
        }
    }
}

/// Logins without keys.
pub(crate) mod form {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
    use tacho_access::ScramHash;

    use super::Authentication;

    #[derive(Serialize, Deserialize)]
    enum AuthenticationForm {
        Password,
        ScramSha256,
        ScramSha512,
    }

    pub(crate) fn serialize<S: Serializer>(
        value: &Authentication,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let form = match value {
            Authentication::Password => AuthenticationForm::Password,
            Authentication::Scram(ScramHash::Sha256) => AuthenticationForm::ScramSha256,
            Authentication::Scram(ScramHash::Sha512) => AuthenticationForm::ScramSha512,
            Authentication::Token(_) => {
                return Err(ser::Error::custom("keys of tokens do not travel"));
            }
        };
        form.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Authentication, D::Error> {
        Ok(match AuthenticationForm::deserialize(from)? {
            AuthenticationForm::Password => Authentication::Password,
            AuthenticationForm::ScramSha256 => Authentication::Scram(ScramHash::Sha256),
            AuthenticationForm::ScramSha512 => Authentication::Scram(ScramHash::Sha512),
        })
    }
}
