//! What the timers of a shard are for.

use tacho_net::TimerId;

use super::Net;
use crate::keys::{LinkIndex, SessionSlot};

/// What a timer is for, packed into the 64 bits that the loop keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerToken {
    /// A connection has not sent CONNECT, or not authenticated itself.
    Connect { connection: u32 },
    /// A session's keep-alive, expiry or will delay.
    Session { slot: SessionSlot, generation: u32 },
    /// The token that the client of a connection has logged in with ends.
    LoginEnd { connection: u32 },
    /// A publisher held back for its rate is read again.
    PublishRate { connection: u32 },
    /// Publishers held back are read again.
    Throttle,
    /// Retained messages have expired.
    Retained,
    /// A connection to another broker is due, late, or silent.
    Link { link: LinkIndex },
    /// Clients wait for a commit.
    Unanswered,
}

impl TimerToken {
    pub(super) fn encode(self) -> u64 {
        match self {
            Self::Connect { connection } => u64::from(connection),
            // 31 bits of generation: a slot would have to be reused two billion times meanwhile.
            Self::Session { slot, generation } => {
                1 << 63 | u64::from(generation & 0x7fff_ffff) << 32 | u64::from(slot.number())
            }
            Self::Throttle => 1 << 62,
            Self::Retained => 1 << 62 | 1,
            Self::Link { link } => 1 << 62 | 1 << 32 | u64::from(link.number()),
            Self::Unanswered => 1 << 62 | 2,
            Self::LoginEnd { connection } => 1 << 62 | 2 << 32 | u64::from(connection),
            Self::PublishRate { connection } => 1 << 62 | 3 << 32 | u64::from(connection),
        }
    }

    /// Whether the generation of a timer is that of a session.
    pub(super) const fn is_generation(session: u32, timer: u32) -> bool {
        session & 0x7fff_ffff == timer
    }

    pub(super) fn decode(token: u64) -> Self {
        if token >> 63 == 1 {
            Self::Session {
                slot: SessionSlot::new(token as u32),
                generation: (token >> 32) as u32 & 0x7fff_ffff,
            }
        } else if token == 1 << 62 {
            Self::Throttle
        } else if token == 1 << 62 | 1 {
            Self::Retained
        } else if token >> 32 == 1 << 30 | 1 {
            Self::Link { link: LinkIndex::new(token as u16) }
        } else if token >> 32 == 1 << 30 | 2 {
            Self::LoginEnd { connection: token as u32 }
        } else if token >> 32 == 1 << 30 | 3 {
            Self::PublishRate { connection: token as u32 }
        } else if token == 1 << 62 | 2 {
            Self::Unanswered
        } else {
            Self::Connect { connection: token as u32 }
        }
    }
}

/// A timer for the earliest of deadlines that move: it may fire too early, and is armed again then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadlineTimer(Option<ArmedTimer>);

#[derive(Clone, Copy, Debug)]
struct ArmedTimer {
    id: TimerId,
    deadline_ns: u64,
}

impl DeadlineTimer {
    /// Makes sure that it fires no later than `slack_ns` after `deadline_ns`.
    pub(super) fn arm(
        &mut self,
        net: &mut Net,
        deadline_ns: u64,
        slack_ns: u64,
        token: TimerToken,
    ) {
        if let Some(armed) = self.0 {
            if armed.deadline_ns <= deadline_ns.saturating_add(slack_ns) {
                return;
            }
            net.cancel_timer(armed.id);
        }
        let id = net.set_timer(deadline_ns, token.encode());
        self.0 = Some(ArmedTimer { id, deadline_ns });
    }

    /// It has fired.
    pub(super) fn fired(&mut self) {
        self.0 = None;
    }

    pub(super) fn cancel(&mut self, net: &mut Net) {
        if let Some(armed) = self.0.take() {
            net.cancel_timer(armed.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkIndex, SessionSlot, TimerToken};

    #[test]
    fn tokens_survive_packing() {
        for token in [
            TimerToken::Connect { connection: u32::MAX },
            TimerToken::Session { slot: SessionSlot::NONE, generation: 0x7fff_ffff },
            TimerToken::Session { slot: SessionSlot::new(0), generation: 0 },
            TimerToken::LoginEnd { connection: 0 },
            TimerToken::LoginEnd { connection: u32::MAX },
            TimerToken::PublishRate { connection: 0 },
            TimerToken::PublishRate { connection: u32::MAX },
            TimerToken::Throttle,
            TimerToken::Retained,
            TimerToken::Link { link: LinkIndex::new(0) },
            TimerToken::Link { link: LinkIndex::new(u16::MAX) },
            TimerToken::Unanswered,
        ] {
            assert_eq!(TimerToken::decode(token.encode()), token);
        }
    }
}
