//! Admission: what this shard lets in. Permits for what the whole broker has a limited number of,
//! the memory budget, publishers held back, load shed step by step, slow clients.

pub(super) mod budget;
mod full;
mod overload;
mod pressure;
mod slow;
pub(super) mod throttle;

use std::sync::Arc;

use tacho_net::ConnId;

use crate::config;
use crate::memory::{Ledger, Memory};
use crate::permits::Quota;
use full::{EndingSessions, ExpiryLook};
use overload::LoadShedding;
use slow::{DropReport, SlowTimes};
use throttle::Throttle;

pub(super) use pressure::ClientPressure;
pub(super) use throttle::HoldReason;

/// Owns what is known of the shard's load, and the publishers that are held back for it.
pub(super) struct Admission {
    throttle: Throttle,
    overload: LoadShedding,
    ledger: Ledger,
    /// The budget of waiting messages is used up.
    queues_full: bool,
    /// As of the last read the journal takes nothing: its disk is full or failing, or it is at its
    /// limit.
    journal_stalled: bool,
    /// As of the last read the queue of a session or a shared subscription anywhere is full.
    any_full: bool,
    /// [`Room::made`](crate::room::Room::made) at the end of the last turn.
    room_made: u64,
    ending: EndingSessions,
    expiry_look: ExpiryLook,
    drop_report: DropReport,
    slow_times: SlowTimes,
}

impl Admission {
    /// The calling thread is the shard's.
    pub(super) fn new(
        backlogged: Arc<Quota>,
        overload: &config::Overload,
        memory: &Memory,
    ) -> Self {
        Self {
            throttle: Throttle::new(backlogged),
            overload: LoadShedding::new(overload),
            ledger: Ledger::new(memory),
            queues_full: false,
            journal_stalled: false,
            any_full: false,
            room_made: 0,
            ending: EndingSessions::default(),
            expiry_look: ExpiryLook::default(),
            drop_report: DropReport::default(),
            slow_times: SlowTimes::default(),
        }
    }

    /// Whether messages of QoS 1 and 2 may have to be refused at present.
    #[inline]
    pub(super) fn may_refuse(&self) -> bool {
        self.queues_full | self.journal_stalled | self.any_full
    }

    /// Whether the budget of waiting messages is used up.
    #[inline]
    pub(super) fn queues_full(&self) -> bool {
        self.queues_full
    }

    /// Whether all buffers together are at their limit.
    #[inline]
    pub(super) fn buffers_full(&self) -> bool {
        self.overload.buffers_full()
    }

    /// Unsent bytes above which a reader gets no QoS 0 now.
    #[inline]
    pub(super) fn shed_above_bytes(&self) -> usize {
        self.overload.shed_above_bytes()
    }

    /// When to look at the load, at what was dropped and at full queues again if nothing happens.
    pub(super) fn next_look_ns(&self) -> Option<u64> {
        let looks_ns = [
            self.overload.next_look_ns(),
            self.drop_report.next_look_ns(),
            self.expiry_look.due_ns,
        ];
        looks_ns.into_iter().flatten().min()
    }

    /// A connection left this shard.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.throttle.forget(conn);
    }

    #[cfg(feature = "sim")]
    pub(super) fn held_len(&self) -> usize {
        self.throttle.held_len()
    }

    #[cfg(feature = "sim")]
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
