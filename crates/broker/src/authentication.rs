//! The interface for methods of enhanced authentication (MQTT 5.0, 4.12).
//!
//! A method is registered by its name when the broker starts ([`Broker::start_with`]). For each
//! CONNECT that names it, and for each re-authentication of such a client, it begins an exchange.
//! The exchange gets the data of the client step by step and answers each step through an
//! [`AuthReply`]: at once, or later from another thread, for example after asking a remote service.
//! Shards never wait for it; the connection of the client does, at most `limits.connect_timeout_s`
//! before its CONNACK.
//!
//! [`Broker::start_with`]: crate::Broker::start_with

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tacho_access::{ScramError, TokenAcl, TokenError};
use tacho_codec::ReasonCode;
use tacho_session::AuthVerdict;

/// A method of enhanced authentication.
pub trait AuthMethod: Send + Sync {
    /// Begins an exchange with a client; its first step follows immediately.
    fn begin(&self, client: &AuthClient<'_>) -> Box<dyn AuthExchange>;
}

/// One exchange with one client. Dropped when it ends or its connection does.
pub trait AuthExchange: Send {
    /// Handles the next data of the client; for the first step the data of its CONNECT, or of the
    /// AUTH that begins a re-authentication. Called on the thread of a shard: it must not block.
    fn step(&mut self, data: Option<&[u8]>, reply: AuthReply);

    /// The user that the client says it is, for the logs, where CONNECT does not tell.
    fn claimed_user(&self) -> Option<&str> {
        None
    }
}

/// The client to authenticate.
#[derive(Clone, Copy, Debug)]
pub struct AuthClient<'a> {
    /// The client identifier, or the assigned one if CONNECT had none.
    pub client_id: &'a str,
    /// As in CONNECT; absent in a re-authentication.
    pub username: Option<&'a str>,
    /// As in CONNECT; absent in a re-authentication.
    pub password: Option<&'a [u8]>,
    /// This is a re-authentication of a connected client.
    pub again: bool,
}

/// The answer of a method to one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthStep {
    /// The client has to continue, with this data.
    Continue(Option<Vec<u8>>),
    /// The client is authenticated as the user name of its CONNECT and gets this data with CONNACK
    /// or AUTH.
    Success(Option<Vec<u8>>),
    /// The client is authenticated as this user. One that authenticates again must be the same.
    SuccessAs(Box<AuthUser>),
    /// The client is not authenticated.
    Failure(AuthFailure),
}

/// The user that a client has authenticated as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthUser {
    pub(crate) name: Arc<str>,
    /// It is in the password file of the listener.
    pub(crate) is_listed: bool,
    /// Of its token.
    pub(crate) rules: Option<Arc<TokenAcl>>,
    /// From now on; `None`: it has no end.
    pub(crate) ends_in_s: Option<u64>,
    pub(crate) data: Option<Vec<u8>>,
}

impl AuthUser {
    /// A user, and the data that the client gets with CONNACK or AUTH.
    #[must_use]
    pub fn new(name: &str, data: Option<Vec<u8>>) -> Self {
        Self { name: name.into(), is_listed: false, rules: None, ends_in_s: None, data }
    }
}

/// Why a method refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// The credentials are wrong.
    BadCredentials,
    /// The client is not allowed to connect.
    NotAuthorized,
    /// The method cannot decide at present.
    Unavailable,
    /// The token is refused.
    Token(TokenError),
    /// A message of SCRAM is malformed, or demands what there is not.
    Scram(ScramError),
    /// A client that is connected has authenticated as another user.
    OtherUser,
}

impl AuthFailure {
    pub(crate) const fn to_connack(&self) -> ReasonCode {
        match self {
            Self::Token(TokenError::NoKeys) => ReasonCode::SERVER_UNAVAILABLE,
            Self::BadCredentials | Self::Token(_) => ReasonCode::BAD_USER_NAME_OR_PASSWORD,
            Self::NotAuthorized | Self::Scram(_) | Self::OtherUser => ReasonCode::NOT_AUTHORIZED,
            Self::Unavailable => ReasonCode::SERVER_UNAVAILABLE,
        }
    }

    pub(crate) fn sentence(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::BadCredentials => "wrong credentials, says the authentication method",
            Self::NotAuthorized => "not authorized, says the authentication method",
            Self::Unavailable => "the authentication method cannot decide at present",
            Self::OtherUser => "the client has authenticated again as another user",
            Self::Token(error) => return Cow::Owned(error.to_string()),
            Self::Scram(error) => return Cow::Owned(error.to_string()),
        })
    }

    /// Whether it may be a guess.
    pub(crate) const fn is_guess(&self) -> bool {
        match self {
            Self::BadCredentials => true,
            Self::Token(error) => error.is_guess(),
            _ => false,
        }
    }

    /// DISCONNECT has fewer codes (3.14.2.1).
    pub(crate) const fn to_disconnect(&self) -> ReasonCode {
        match self {
            Self::Unavailable => ReasonCode::UNSPECIFIED_ERROR,
            _ => ReasonCode::NOT_AUTHORIZED,
        }
    }
}

impl AuthStep {
    pub(crate) const fn verdict(&self) -> AuthVerdict {
        match self {
            Self::Continue(_) => AuthVerdict::Continue,
            Self::Success(_) | Self::SuccessAs(_) => AuthVerdict::Success,
            Self::Failure(_) => AuthVerdict::Failure,
        }
    }
}

/// The connection of a shard that waits for an exchange. The index may belong to another connection
/// by the time of the answer: the exchange number identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangeRef {
    pub(crate) connection: u32,
    pub(crate) number: u64,
}

/// The answer to one step, to be given once, from any thread. If it is dropped without an answer,
/// the step fails with [`AuthFailure::Unavailable`].
pub struct AuthReply {
    /// Absent once the answer is given.
    send: Option<Box<dyn FnOnce(AuthStep) + Send>>,
}

impl AuthReply {
    pub(crate) fn new(send: impl FnOnce(AuthStep) + Send + 'static) -> Self {
        Self { send: Some(Box::new(send)) }
    }

    /// Gives the answer. It is ignored if the client has disconnected.
    pub fn send(mut self, step: AuthStep) {
        self.answer(step);
    }

    fn answer(&mut self, step: AuthStep) {
        if let Some(send) = self.send.take() {
            send(step);
        }
    }
}

impl Drop for AuthReply {
    fn drop(&mut self) {
        self.answer(AuthStep::Failure(AuthFailure::Unavailable));
    }
}

impl fmt::Debug for AuthReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthReply").finish_non_exhaustive()
    }
}

/// The registered methods by name.
#[derive(Clone, Default)]
pub struct AuthMethods {
    by_name: BTreeMap<String, Arc<dyn AuthMethod>>,
}

impl AuthMethods {
    /// Adds a method, or replaces the one with this name.
    #[must_use]
    pub fn with(mut self, name: &str, method: impl AuthMethod + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Arc::new(method));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn AuthMethod>> {
        self.by_name.get(name)
    }
}

impl fmt::Debug for AuthMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
