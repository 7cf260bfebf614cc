//! The methods of enhanced authentication: those of the program that runs the broker, and the
//! broker's own, SCRAM by the password file of the listener and `JWT` by the keys of tokens.

use std::sync::Arc;

use tacho_access::{
    ProcessKey, ScramError, ScramExchange, ScramHash, TokenError, TokenVerifier, Users,
};

use crate::access::{AnswerTo, Credentials, LoginJob, Logins, SharedAccess};
use crate::authentication::{
    AuthClient, AuthExchange, AuthFailure, AuthMethod, AuthReply, AuthStep, AuthUser,
};
use crate::shard::Shard;

/// The method whose data is a JSON Web Token.
const JWT: &str = "JWT";

/// A method of enhanced authentication.
pub(in crate::shard) enum Method {
    Program(Arc<dyn AuthMethod>),
    Scram(ScramHash, Arc<Users>),
    Token(Arc<TokenVerifier>),
}

/// What the success of an exchange is worth when its answer comes: users and keys may have changed
/// since it began.
pub(super) enum Validity {
    Counts,
    /// The user is gone, or has another password.
    Lost,
    /// This decides now, and has not been asked.
    Unknown(Method),
}

impl Method {
    /// Whether its data is a token.
    pub(super) const fn is_token(&self) -> bool {
        matches!(self, Self::Token(_))
    }

    /// Begins an exchange. `username` is that of CONNECT, also when the client authenticates again.
    pub(super) fn begin(
        &self,
        access: &SharedAccess,
        client: &AuthClient<'_>,
        username: Option<&str>,
    ) -> Box<dyn AuthExchange> {
        match self {
            Self::Program(method) => method.begin(client),
            Self::Scram(hash, users) => Box::new(ByScram {
                hash: *hash,
                users: Arc::clone(users),
                key: access.key.clone(),
                begun: None,
                claimed_user: None,
            }),
            Self::Token(verifier) => Box::new(ByToken {
                logins: access.logins.clone(),
                verifier: Arc::clone(verifier),
                client_id: client.client_id.into(),
                username: username.map(Into::into),
                alive: Arc::new(()),
            }),
        }
    }
}

impl Shard {
    /// The method of this name at a listener.
    pub(in crate::shard) fn auth_method(&self, name: &str, listener: u16) -> Option<Method> {
        let authenticators = self.shared.authenticators.as_ref()?;
        if let Some(method) = authenticators.methods.get(name) {
            return Some(Method::Program(Arc::clone(method)));
        }
        if name == JWT {
            return self.access.tokens().map(Arc::clone).map(Method::Token);
        }
        let hash = ScramHash::ALL.into_iter().find(|hash| hash.method() == name)?;
        let users = self.access.users(listener).filter(|users| users.has_scram(hash))?;
        Some(Method::Scram(hash, Arc::clone(users)))
    }
}

impl Shard {
    /// What it is worth now that a method has found that a client is this user.
    pub(super) fn validity(&self, method: &Method, listener: u16, name: &str) -> Validity {
        match method {
            Method::Program(_) => Validity::Counts,
            Method::Scram(_, then) => match self.access.users(listener) {
                Some(now) if Arc::ptr_eq(then, now) => Validity::Counts,
                Some(now) if now.get(name).is_some() && now.get(name) == then.get(name) => {
                    Validity::Counts
                }
                _ => Validity::Lost,
            },
            Method::Token(then) => match self.access.tokens() {
                Some(now) if Arc::ptr_eq(then, now) => Validity::Counts,
                Some(now) => Validity::Unknown(Method::Token(Arc::clone(now))),
                None => Validity::Lost,
            },
        }
    }
}

struct ByScram {
    hash: ScramHash,
    users: Arc<Users>,
    key: ProcessKey,
    /// Once the first message is answered.
    begun: Option<ScramExchange>,
    claimed_user: Option<String>,
}

impl AuthExchange for ByScram {
    fn step(&mut self, data: Option<&[u8]>, reply: AuthReply) {
        reply.send(self.answer(data.unwrap_or_default()).unwrap_or_else(|error| {
            AuthStep::Failure(match error {
                ScramError::Wrong => AuthFailure::BadCredentials,
                ScramError::NoRandomness => AuthFailure::Unavailable,
                error => AuthFailure::Scram(error),
            })
        }));
    }

    fn claimed_user(&self) -> Option<&str> {
        self.claimed_user.as_deref()
    }
}

impl ByScram {
    fn answer(&mut self, data: &[u8]) -> Result<AuthStep, ScramError> {
        let Some(begun) = self.begun.take() else {
            let (begun, answer) = ScramExchange::begin(&self.users, self.hash, &self.key, data)?;
            self.claimed_user = Some(begun.user().to_owned());
            self.begun = Some(begun);
            return Ok(AuthStep::Continue(Some(answer)));
        };
        let success = begun.finish(data)?;
        Ok(AuthStep::SuccessAs(Box::new(AuthUser {
            name: success.user.into(),
            is_listed: true,
            rules: None,
            ends_in_s: None,
            data: Some(success.server_final),
        })))
    }
}

struct ByToken {
    logins: Logins,
    verifier: Arc<TokenVerifier>,
    client_id: Arc<str>,
    username: Option<Box<str>>,
    /// Its end tells the threads that there is no need to verify.
    alive: Arc<()>,
}

impl AuthExchange for ByToken {
    fn step(&mut self, data: Option<&[u8]>, reply: AuthReply) {
        let Some(token) = data.and_then(|data| std::str::from_utf8(data).ok()) else {
            return reply.send(AuthStep::Failure(AuthFailure::Token(TokenError::Malformed)));
        };
        let credentials = Credentials::Token {
            verifier: Arc::clone(&self.verifier),
            token: token.into(),
            client_id: Arc::clone(&self.client_id),
            user: self.username.clone(),
        };
        let client = Arc::downgrade(&self.alive);
        // If too many wait, the reply says so by its end.
        let job = LoginJob { credentials, client, answer_to: AnswerTo::Method(reply) };
        self.logins.verify(job);
    }
}
