//! What happens to clients at times of the measured window.

/// Something that happens to some clients of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// From the start of the measured window.
    pub after_ns: u64,
    /// One client after the other within this time; 0 is all at once.
    pub over_ns: u64,
    /// Position of the group in the plan.
    pub group: usize,
    /// To how many of its clients.
    pub clients: u32,
    /// Which ones: each turn takes others, as long as there are others.
    pub turn: u32,
    /// What happens.
    pub deed: Deed,
}

/// What happens to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Its connection ends; it comes back by the [reconnect](super::Group::reconnect) of its
    /// group, and without one stays away.
    Disconnect {
        /// With DISCONNECT; otherwise the connection breaks, and the broker publishes the will.
        clean: bool,
    },
    /// It does not read its socket.
    Pause {
        /// For so long.
        for_ns: u64,
    },
    /// It connects a second time with the same identifier, while its first connection is up.
    TakeOver,
    /// It subscribes. Clients of such groups do not in [`Phase::Subscribe`](super::Phase).
    Subscribe,
}

impl Action {
    /// Actions that a plan has at most.
    pub const MAX: usize = 10_000;

    /// Which one of those concerned client `rank` of `all` is; `None` when it is not concerned.
    /// Those concerned are spread evenly over the group.
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
    fn exactly_so_many_are_concerned_and_each_turn_takes_others() {
        let action = |clients, turn| Action {
            after_ns: 0,
            over_ns: 0,
            group: 0,
            clients,
            turn,
            deed: Deed::TakeOver,
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
