//! Restoring sessions, retained messages and the queues of shared groups from the journal, before
//! the shard's loop runs and before any client is served.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_session::server;
use tacho_topic::{Filter, Group};

use crate::config::Level;
use crate::delivery::Place;
use crate::delivery::{GroupRef, NO_GROUP};
use crate::durable::Durable;
use crate::durable::recovery::FoundSession;
use crate::durable::start::{ShardPart, WaitingGroup};
use crate::keys::{SessionSlot, User};
use crate::shard::access::SessionAccess;
use crate::shard::durability::JournaledSession;
use crate::shard::{Net, Shard};
use crate::subscription::SubscriptionOptions;

/// Shared subscriptions by their numbers.
type Groups = HashMap<u64, Arc<Group>, RandomState>;

impl Shard {
    /// Takes over what this shard owns. The route map has the subscriptions already.
    pub(crate) fn restore(&mut self, part: ShardPart) {
        let ShardPart { sessions, retained, groups } = part;
        self.refresh_routes();
        let all = self.shared.routes.groups().into_iter().map(|group| (group.id(), group));
        let all: Groups = all.collect();
        for session in sessions {
            self.restore_session(session, &all);
        }
        self.restore_retained(retained);
        for WaitingGroup { group, queue, waiting } in groups {
            let level = self.shared.durable.as_ref().map_or(Level::Memory, Durable::sessions_level);
            for (seq, message) in waiting {
                self.restore_waiting(&group, Place { queue, seq, level }, message);
            }
        }
        self.make_links();
        if let Some(journal) = &mut self.durability.journal {
            journal.hand_over();
        }
    }

    fn restore_session(&mut self, found: FoundSession, groups: &Groups) {
        let FoundSession { record, queue, will, subscriptions, restored } = found;
        let journaled = JournaledSession { queue, level: record.level, has_will: will.is_some() };
        let stored = restored.queued.len() + restored.exchanges.len();
        let limits = self.session_limits_for(&record.key, true);
        let machine = self.durability.make_machine(Some(&journaled), |recorder| {
            server::Session::restore(limits, restored, recorder)
        });
        let slot = self.add_session(record.key, machine, Some(journaled));
        let session = &mut self.sessions[slot];
        session.restore_version(record.version);
        // Whether the user is in a password file is asked when it logs in.
        let user = record.user.map(|name| User { name, is_listed: false, rules: None });
        session.access = SessionAccess::restored(user, will.and_then(|will| will.token_says));
        session.set_queue_policy(record.queue_policy);
        session.journal.stored.count = stored as u32;
        self.sessions.count_places(slot);
        for (filter, options) in subscriptions {
            self.restore_subscription(slot, filter, options);
        }
        self.restore_former_groups(slot, groups);
    }

    fn restore_subscription(
        &mut self,
        slot: SessionSlot,
        filter: Filter,
        options: SubscriptionOptions,
    ) {
        // Messages in distribution at that time have reached their sessions.
        let options = SubscriptionOptions { since: 0, ..options };
        match &filter {
            Filter::Plain(plain) => {
                self.routing.restore(plain, slot, options);
            }
            Filter::Shared(shared) => {
                // Invariant: all subscriptions were put into the route map before.
                if let Some(group) = self.routing.group(shared).map(Arc::clone) {
                    self.restore_member(&group, slot, options);
                }
            }
        }
        self.sessions[slot].subscriptions.add(&filter);
    }

    /// What came through shared subscriptions that the session has left goes to others when the
    /// session ends.
    fn restore_former_groups(&mut self, slot: SessionSlot, groups: &Groups) {
        let machine = &self.sessions[slot].machine;
        let mut left: Vec<u64> = machine
            .messages()
            .map(|copy| copy.group)
            .filter(|&group| group != NO_GROUP && !self.is_member(slot, group))
            .map(|GroupRef(number)| number)
            .collect();
        left.sort_unstable();
        left.dedup();
        let left: Vec<_> = left.iter().filter_map(|number| groups.get(number).cloned()).collect();
        if !left.is_empty() {
            self.sessions[slot].memberships.restore_former(left);
        }
    }

    /// All shards have what they own: time may run, and what waits may go.
    pub(in crate::shard) fn all_recovered(&mut self, net: &mut Net) {
        self.durability.unarmed = Some(SessionSlot::new(0));
        self.sweep_restored();
        self.retained_recovered(net);
        self.groups_recovered(net);
        self.start_links(net);
    }

    /// Arms the timers of restored sessions, as long as the turn lasts. True if some are left.
    #[inline]
    pub(in crate::shard) fn continue_recovery(&mut self, net: &mut Net) -> bool {
        match self.durability.unarmed {
            None => false,
            Some(first) => self.arm_timers(net, first),
        }
    }

    #[cold]
    fn arm_timers(&mut self, net: &mut Net, first: SessionSlot) -> bool {
        net.begin_work();
        for index in first.index()..self.sessions.slots_end() {
            let slot = SessionSlot::new(index as u32);
            if self.sessions.contains(slot) {
                self.sessions.arm_timer(net, slot);
            }
            if !net.charge(1) {
                self.durability.unarmed = Some(SessionSlot::new(index as u32 + 1));
                return true;
            }
        }
        self.durability.unarmed = None;
        false
    }
}
