//! Subscriptions of sessions that have ended leave the indexes a few per turn, so that clients with
//! many of them leave without holding up others.
//!
//! Until then the indexes name the slot of the session, which nothing is delivered to and no other
//! session gets.

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_topic::{Filter, RouteChange};

use super::Routing;
use super::filters::{EndedFilters, SubscribedFilters};
use crate::config::Limits;
use crate::keys::SessionSlot;
use crate::shard::groups::EndedMemberships;
use crate::shard::{Net, Shard};
use crate::stats::ShardStats;

/// The subscriptions to be removed are at most this part of those that there may be, before a
/// SUBSCRIBE has to make room.
const SHARE_MAX: usize = 8;
/// Subscriptions that leave the route map together, between two looks at the time.
const BATCH: usize = 64;
/// What removing one costs.
const REMOVAL_UNITS: usize = 3;

/// The sessions that have ended, in order.
pub(super) struct Removals {
    sessions: VecDeque<EndedSession>,
    /// Of all these sessions.
    filters: usize,
    filters_max: usize,
    per_turn_max: usize,
    stats: Arc<ShardStats>,
}

/// What is left of a session that has ended.
struct EndedSession {
    slot: SessionSlot,
    is_durable: bool,
    filters: EndedFilters,
    /// One for each shared filter.
    memberships: EndedMemberships,
}

impl Removals {
    pub(super) fn new(limits: &Limits, stats: Arc<ShardStats>) -> Self {
        Self {
            sessions: VecDeque::new(),
            filters: 0,
            filters_max: limits.subscriptions_max / SHARE_MAX,
            per_turn_max: limits.subscription_removals_per_turn_max,
            stats,
        }
    }

    fn push(&mut self, session: EndedSession) {
        self.filters += session.filters.len();
        self.sessions.push_back(session);
    }

    fn count(&self) {
        self.stats.subscriptions_ended.set(self.filters as u64);
    }
}

impl Routing {
    /// Subscriptions of ended sessions that are still in the indexes.
    #[cfg(feature = "sim")]
    pub(in crate::shard) fn ended_len(&self) -> usize {
        self.removals.filters
    }
}

impl Shard {
    /// A session has ended: its subscriptions are removed when there is time.
    pub(in crate::shard) fn remove_later(
        &mut self,
        slot: SessionSlot,
        is_durable: bool,
        subscriptions: &mut SubscribedFilters,
        memberships: EndedMemberships,
    ) {
        let filters = subscriptions.end();
        if filters.len() == 0 {
            self.sessions.release(slot);
            return;
        }
        self.routing.removals.push(EndedSession { slot, is_durable, filters, memberships });
        self.routing.removals.count();
    }

    /// Removes as many subscriptions of ended sessions as there is time for, and as a turn may.
    /// True if there are more.
    #[inline]
    pub(in crate::shard) fn remove_ended(&mut self, net: &mut Net) -> bool {
        if self.routing.removals.sessions.is_empty() {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let mut left = self.routing.removals.per_turn_max;
        net.begin_work();
        while left > 0 && !self.routing.removals.sessions.is_empty() {
            let count = left.min(BATCH);
            // While another shard changes the map it is not waited for: there are turns enough.
            let is_done = shared.routes.try_apply(|| self.take_out(net, count));
            if !is_done || !net.charge((count * REMOVAL_UNITS) as u32) {
                break;
            }
            left -= count;
        }
        self.refresh_routes();
        !self.routing.removals.sessions.is_empty()
    }

    /// A SUBSCRIBE adds so many subscriptions: removes as many if too many wait for that, so that
    /// their number stays bounded.
    #[inline]
    pub(super) fn make_room_for(&mut self, net: &mut Net, count: usize) {
        if self.routing.removals.filters > self.routing.removals.filters_max {
            let changes = self.take_out(net, count);
            self.shared.routes.apply(&changes);
            self.refresh_routes();
        }
    }

    /// Takes subscriptions out of this shard's indexes; the result is for the route map, in the
    /// same event.
    #[cold]
    fn take_out(&mut self, net: &mut Net, count: usize) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        for _ in 0..count {
            let Some(session) = self.routing.removals.sessions.front_mut() else { break };
            let (slot, is_durable) = (session.slot, session.is_durable);
            let filter = session.filters.next();
            let is_last = session.filters.len() == 0;
            match filter {
                Some(Filter::Plain(filter)) => {
                    self.routing.remove(&filter, slot, is_durable, &mut changes);
                }
                Some(Filter::Shared(_)) => {
                    if let Some(membership) = session.memberships.pop() {
                        self.remove_member(net, membership, &mut changes);
                    }
                }
                None => {}
            }
            self.routing.removals.filters -= 1;
            if is_last {
                self.routing.removals.sessions.pop_front();
                self.sessions.release(slot);
            }
        }
        let removals = &mut self.routing.removals;
        if removals.sessions.is_empty() {
            removals.sessions = VecDeque::new();
        }
        removals.count();
        changes
    }
}
