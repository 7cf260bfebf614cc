//! Counters of a session.

/// Why a message for the peer was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// QoS 0 without a connection, and the session does not queue QoS 0.
    Offline,
    /// The queue has reached its limit of messages.
    QueueFull,
    /// The queue has reached its limit of bytes.
    QueueBytesFull,
    /// QoS 0 while the connection is congested.
    NoCredit,
    /// The message expired before it was sent.
    Expired,
    /// The message is larger than the client's Maximum Packet Size.
    PacketTooLarge,
    /// The client may not have the message.
    Denied,
}

impl DropReason {
    /// The number of reasons.
    pub const COUNT: usize = 7;

    /// All reasons.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Offline,
        Self::QueueFull,
        Self::QueueBytesFull,
        Self::NoCredit,
        Self::Expired,
        Self::PacketTooLarge,
        Self::Denied,
    ];

    /// The name used as metric label and log field.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::QueueFull => "queue_full",
            Self::QueueBytesFull => "queue_bytes_full",
            Self::NoCredit => "no_credit",
            Self::Expired => "expired",
            Self::PacketTooLarge => "packet_too_large",
            Self::Denied => "denied",
        }
    }
}

/// Counters of one session; they never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    dropped: [u64; DropReason::COUNT],
    /// PUBLISH packets of QoS 2 that were recognized as duplicates.
    pub duplicates_suppressed: u64,
    /// Acknowledgements for identifiers that were not in flight.
    pub acks_unexpected: u64,
}

impl Counters {
    pub(crate) const NONE: Self =
        Self { dropped: [0; DropReason::COUNT], duplicates_suppressed: 0, acks_unexpected: 0 };

    /// The number of messages dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// The number of messages dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    #[inline]
    pub(crate) const fn count_drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }
}
