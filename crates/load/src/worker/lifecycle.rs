//! The states of a virtual client: its connection, its session's history, its subscriptions.

/// The connection of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected yet.
    Idle,
    /// The connection is being opened since the given time: TCP, TLS, WebSocket.
    Connecting { since_ns: u64 },
    /// CONNECT is sent; the time is still the start of `Connecting`.
    Greeting { since_ns: u64 },
    /// CONNACK was received.
    Up,
    /// SUBSCRIBE is sent; `missing` SUBACKs are outstanding.
    Subscribing { since_ns: u64, missing: u32 },
    /// Disconnected temporarily; a timer or a phase reconnects it.
    Away,
    /// DISCONNECT is sent.
    Closing,
    /// Ended as planned.
    Closed,
    /// Given up.
    Failed,
}

impl State {
    pub(super) const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Subscribing { .. })
    }

    /// Whether it is about to be up.
    pub(super) const fn is_on_its_way(self) -> bool {
        matches!(self, Self::Connecting { .. } | Self::Greeting { .. } | Self::Away)
    }
}

/// What the broker may know of a client's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionHistory {
    /// Possibly a session of an earlier run.
    Unknown,
    /// The session of an earlier run was discarded (3.x only).
    Wiped,
    /// The client has been connected in this run.
    Established,
}

/// The subscriptions of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subscriptions {
    /// None are to be made for now.
    Unwanted,
    /// To be made.
    Wanted,
    /// Made in the client's session.
    Made,
}

impl Subscriptions {
    pub(super) fn want(&mut self) {
        if *self == Self::Unwanted {
            *self = Self::Wanted;
        }
    }

    pub(super) const fn are_wanted(self) -> bool {
        matches!(self, Self::Wanted | Self::Made)
    }
}
