//! Timed actions on clients during the measured window.

use serde::{Deserialize, Serialize};

/// A timed action on some clients of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// From the start of the measured window.
    pub after_ns: u64,
    /// The affected clients are spread over this time; 0 means all at once.
    pub over_ns: u64,
    /// Position of the group in the plan.
    pub group: usize,
    /// Number of affected clients.
    pub clients: u32,
    /// Selects the clients: each turn affects different ones as long as possible.
    pub turn: u32,
    /// The kind of action.
    pub kind: ActionKind,
}

/// The effect of an action on a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionKind {
    /// Its connection ends; it reconnects by the [policy](super::Group::reconnect) of its group,
    /// and without one stays disconnected.
    Disconnect {
        /// With DISCONNECT; otherwise the connection breaks and the broker publishes the will.
        clean: bool,
    },
    /// It stops reading its socket.
    Pause {
        /// Length of the pause.
        for_ns: u64,
    },
    /// It connects a second time with the same client identifier while its first connection is up.
    TakeOver,
    /// It subscribes. Clients of such groups do not subscribe in
    /// [`Phase::Subscribe`](super::Phase).
    Subscribe,
}

impl Action {
    /// Limit on the actions of a plan.
    pub const MAX: usize = 10_000;

    /// Position of client `rank` of `all` among the affected clients; `None` when it is not
    /// affected. The affected clients are spread evenly over the group.
    pub(crate) fn position(&self, rank: usize, all: usize) -> Option<u64> {
        let (wanted, all) = (u64::from(self.clients), all.max(1) as u64);
        let place = (rank as u64 + u64::from(self.turn)) % all * wanted;
        (place % all < wanted).then_some(place / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_number_is_affected_and_each_turn_selects_others() {
        let action = |clients, turn| Action {
            after_ns: 0,
            over_ns: 0,
            group: 0,
            clients,
            turn,
            kind: ActionKind::TakeOver,
        };
        for (wanted, all) in [(0, 7), (1, 7), (3, 7), (7, 7), (250, 1000), (999, 1000)] {
            for turn in [0, 1, 5] {
                let action = action(wanted, turn);
                let mut found: Vec<u64> =
                    (0..all).filter_map(|rank| action.position(rank, all)).collect();
                found.sort_unstable();
                assert_eq!(found, (0..u64::from(wanted)).collect::<Vec<_>>(), "{wanted} of {all}");
            }
        }
        let of = |turn| (0..10).filter(move |rank| action(2, turn).position(*rank, 10).is_some());
        let all: std::collections::BTreeSet<usize> = (0..5).flat_map(of).collect();
        assert_eq!(all.len(), 10);
    }
}
