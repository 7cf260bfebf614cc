//! How a client's connection ended.

use std::fmt;
use std::io;

use tacho_codec::ReasonCode;
use tacho_net::Closed;

/// How a client's connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client sent DISCONNECT.
    ByClient(ReasonCode),
    /// The broker ended it, perhaps with a word of explanation.
    ByBroker(ReasonCode, Option<&'static str>),
    /// The client did not read, and memory was short.
    SlowReader,
    /// The client closed it without DISCONNECT.
    ClosedByClient,
    /// The broker closed it, and what led to that was not told before.
    ClosedByBroker,
    /// An error of the connection.
    Lost(Box<str>),
}

impl Ending {
    /// Of a connection that ended without DISCONNECT.
    pub(crate) fn of_socket(why: &Closed) -> Self {
        match why {
            Closed::ByPeer => Self::ClosedByClient,
            Closed::ByUs => Self::ClosedByBroker,
            Closed::Error(error) => Self::lost(error),
        }
    }

    fn lost(error: &io::Error) -> Self {
        Self::Lost(error.to_string().into())
    }

    /// Whether another connection of the client took its session.
    pub(crate) fn is_takeover(&self) -> bool {
        matches!(self, Self::ByBroker(ReasonCode::SESSION_TAKEN_OVER, _))
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByClient(reason) => write!(f, "DISCONNECT by the client: {reason}"),
            Self::ByBroker(reason, None) => write!(f, "by the broker: {reason}"),
            Self::ByBroker(reason, Some(why)) => write!(f, "by the broker: {reason}: {why}"),
            Self::SlowReader => {
                f.write_str("by the broker: the client does not read, and memory is short")
            }
            Self::ClosedByClient => f.write_str("closed by the client without DISCONNECT"),
            Self::ClosedByBroker => f.write_str("closed by the broker"),
            Self::Lost(error) => write!(f, "lost: {error}"),
        }
    }
}

/// The last connection of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastConnection {
    pub(crate) ending: Ending,
    pub(crate) ended_ns: u64,
    pub(crate) duration_ns: u64,
}
