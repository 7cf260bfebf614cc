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

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
    /// The client is authenticated and gets this data with CONNACK or AUTH.
    Success(Option<Vec<u8>>),
    /// The client is not authenticated.
    Failure(AuthFailure),
}

/// Why a method refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// The credentials are wrong.
    BadCredentials,
    /// The client is not allowed to connect.
    NotAuthorized,
    /// The method cannot decide at present.
    Unavailable,
}

impl AuthFailure {
    pub(crate) const fn to_connack(self) -> ReasonCode {
        match self {
            Self::BadCredentials => ReasonCode::BAD_USER_NAME_OR_PASSWORD,
            Self::NotAuthorized => ReasonCode::NOT_AUTHORIZED,
            Self::Unavailable => ReasonCode::SERVER_UNAVAILABLE,
        }
    }

    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::BadCredentials => "wrong credentials, says the authentication method",
            Self::NotAuthorized => "not authorized, says the authentication method",
            Self::Unavailable => "the authentication method cannot decide at present",
        }
    }

    /// DISCONNECT has fewer codes (3.14.2.1).
    pub(crate) const fn to_disconnect(self) -> ReasonCode {
        match self {
            Self::BadCredentials | Self::NotAuthorized => ReasonCode::NOT_AUTHORIZED,
            Self::Unavailable => ReasonCode::UNSPECIFIED_ERROR,
        }
    }
}

impl AuthStep {
    pub(crate) const fn verdict(&self) -> AuthVerdict {
        match self {
            Self::Continue(_) => AuthVerdict::Continue,
            Self::Success(_) => AuthVerdict::Success,
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
