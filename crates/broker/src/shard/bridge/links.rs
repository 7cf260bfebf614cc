//! The links of a shard: those of the configuration, and those of an earlier configuration that the
//! journal still holds.
//!
//! A pool that was reduced leaves surplus links, which continue until their messages are
//! delivered. A bridge that was removed from the configuration is dropped with its messages.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_session::Link;
use tacho_session::server::{self, Restored, SessionLimits};

use super::{Asking, BridgeLink, Granted, Introduction, PeerSession, Stage, Tenure};
use crate::bridge::{Bridges, LINK_EXPIRY_S};
use crate::config::Level;
use crate::delivery::Copy;
use crate::keys::{ClientKey, LinkIndex, SessionSlot, stable_hash};
use crate::shard::durability::OpenedSession;
use crate::shard::last_told::LastTold;
use crate::shard::routing::BridgeRoutes;
use crate::shard::{Net, Shard};

impl Shard {
    /// The queue limits of this client's session.
    pub(in crate::shard) fn session_limits_for(
        &self,
        key: &ClientKey,
        is_journaled: bool,
    ) -> SessionLimits {
        let bridge = key.link().and_then(|(name, _)| self.bridges.known.find(name));
        match bridge {
            Some((_, bridge)) => bridge.session_limits(self.limits()),
            None => self.session_limits(is_journaled),
        }
    }

    /// Creates a link for every restored bridge session, and a session for every link without one.
    /// Called once, before the loop runs.
    pub(in crate::shard) fn make_links(&mut self) {
        let bridges = Arc::clone(&self.bridges.known);
        for (place, bridge) in bridges.iter().enumerate() {
            for number in 0..bridge.config().connections {
                if bridges.shard_of(bridge, number) == self.id {
                    self.make_link(place, number);
                }
            }
        }
        let left = self.sessions.iter().filter(|(_, session)| session.link().is_none());
        let left = left.filter_map(|(slot, session)| {
            let (name, number) = session.key().link()?;
            Some((slot, bridges.find(name).map(|(place, _)| (place, number))))
        });
        for (slot, place) in left.collect::<Vec<_>>() {
            let machine = &self.sessions[slot].machine;
            let is_empty = machine.queue_len() + machine.inflight_len() == 0;
            match place {
                Some((place, number)) if !is_empty => {
                    self.add_link(place, number, slot, false);
                }
                _ => self.bridges.orphans.push(slot),
            }
        }
        if !bridges.is_empty() {
            self.route_to_bridges();
        }
    }

    /// Messages leave by the bridges that this shard knows.
    fn route_to_bridges(&mut self) {
        let links = self.bridges.all.iter().filter(|link| link.slot != SessionSlot::NONE);
        let links: HashMap<_, _, RandomState> =
            links.map(|link| ((link.bridge, link.number), link.slot)).collect();
        let bridges = Arc::clone(&self.bridges.known);
        self.routing.set_bridges(BridgeRoutes { bridges, links });
    }

    /// Operators have added or removed bridges.
    pub(in crate::shard) fn bridges_changed(&mut self, net: &mut Net, bridges: Arc<Bridges>) {
        let new_places = self.bridges.known.len()..bridges.len();
        self.bridges.known = Arc::clone(&bridges);
        for link in self.bridges.indexes() {
            let place = self.bridges.all[link.index()].bridge;
            if bridges.at(place).is_removed() {
                self.end_link(net, link);
            }
        }
        let before = self.bridges.all.len();
        for place in new_places {
            let bridge = bridges.at(place);
            for number in 0..bridge.config().connections {
                if bridges.shard_of(bridge, number) == self.id {
                    self.make_link(place, number);
                }
            }
        }
        self.count_sessions();
        self.route_to_bridges();
        self.routing.forget_routes();
        for link in self.bridges.indexes().skip(before) {
            self.report_link(link);
            self.link_due(net, link);
        }
    }

    /// The link of a bridge that was removed ends, with what waits for it.
    fn end_link(&mut self, net: &mut Net, link: LinkIndex) {
        let slot = self.bridges.all[link.index()].slot;
        if slot == SessionSlot::NONE {
            return;
        }
        self.say_bye(net, link);
        let entry = &mut self.bridges.all[link.index()];
        entry.protocol.close();
        let held_bytes = std::mem::take(&mut entry.held_bytes);
        self.bridges.known.at(entry.bridge).holds(held_bytes, 0);
        self.arm_link(net, link);
        self.sessions[slot].left_bridge();
        self.bridges.all[link.index()].slot = SessionSlot::NONE;
        self.discard_session(net, slot);
    }

    fn make_link(&mut self, place: usize, number: u16) {
        let key = self.bridges.known.at(place).key_of(number);
        match self.sessions.find(&key) {
            Some(slot) => self.add_link(place, number, slot, false),
            None => {
                let slot = self.make_link_session(place, key);
                self.add_link(place, number, slot, true);
            }
        }
    }

    fn make_link_session(&mut self, place: usize, key: ClientKey) -> SessionSlot {
        // There was one of this name, which an operator has removed.
        self.forget_ended_session(&key);
        let durable = self.shared.durable.as_ref();
        let level = durable.map_or(Level::Memory, |durable| durable.settings.persistent_level);
        let journaled = self.place_in_journal(level);
        let limits = self.session_limits_for(&key, journaled.is_some());
        let machine = self.durability.make_machine(journaled.as_ref(), |recorder| {
            server::Session::restore(limits, nothing(), recorder)
        });
        let slot = self.add_session(key, machine, journaled);
        let version = self.bridges.known.at(place).config().version;
        let opened = OpenedSession { version, expiry_s: LINK_EXPIRY_S, will: None, waits: false };
        self.record_opened(slot, &opened);
        slot
    }

    fn add_link(&mut self, place: usize, number: u16, slot: SessionSlot, is_new: bool) {
        let bridge = self.bridges.known.at(place);
        let is_enabled = bridge.config().enabled;
        let session = &mut self.sessions[slot];
        // Invariant: there are no more links than identifiers in one configuration.
        let link = LinkIndex::new(self.bridges.all.len() as u16);
        session.became_link(link, bridge.source, bridge.config().version);
        let seed = stable_hash(session.key().client_id.as_bytes()) ^ fastrand::u64(..);
        self.bridges.all.push(BridgeLink {
            bridge: place,
            number,
            slot,
            protocol: Link::new(bridge.link_settings(), 0, seed),
            timer: None,
            conn: None,
            stage: Stage::Disconnected,
            peer: if is_new { PeerSession::Unknown } else { PeerSession::Known },
            introduction: match bridge.config().bridge_flag && !bridge.config().version.is_v5() {
                true => Introduction::Bridge,
                false => Introduction::Client,
            },
            tenure: match number < bridge.config().connections {
                true => Tenure::Configured,
                false => Tenure::Leaving,
            },
            rests: !is_enabled,
            attempts: 0,
            subscribing: Asking::Done,
            unsubscribing: Asking::Done,
            told_refusal: LastTold::default(),
            told_loop: LastTold::default(),
            granted: Granted::ALL,
            held_bytes: 0,
        });
        if !is_enabled {
            self.bridges.all[link.index()].protocol.close();
        }
    }

    /// All shards are ready: links connect, and links without a configured bridge end.
    pub(in crate::shard) fn start_links(&mut self, net: &mut Net) {
        for slot in std::mem::take(&mut self.bridges.orphans) {
            let Some(session) = self.sessions.get(slot) else { continue };
            let machine = &session.machine;
            let messages = machine.queue_len() + machine.inflight_len();
            if messages > 0 {
                let link = &*session.key().client_id;
                tracing::warn!(
                    link,
                    messages,
                    "the configuration no longer has this bridge: its queued messages are dropped"
                );
            }
            self.discard_session(net, slot);
        }
        for link in self.bridges.indexes() {
            self.report_link(link);
            self.link_due(net, link);
        }
    }

    /// Ends a surplus link once its queue is empty. True if it ended.
    pub(super) fn leave_if_done(&mut self, net: &mut Net, link: LinkIndex) -> bool {
        let entry = &self.bridges.all[link.index()];
        let slot = entry.slot;
        let Some(session) = self.sessions.get(slot).filter(|_| entry.tenure == Tenure::Leaving)
        else {
            return false;
        };
        if session.machine.queue_len() + session.machine.inflight_len() > 0 {
            return false;
        }
        self.say_bye(net, link);
        self.bridges.all[link.index()].protocol.close();
        self.report_link(link);
        self.sessions[slot].left_bridge();
        self.bridges.all[link.index()].slot = SessionSlot::NONE;
        self.discard_session(net, slot);
        true
    }
}

/// A session that was never connected and does not expire without a connection.
const fn nothing() -> Restored<Copy> {
    Restored {
        now_ns: 0,
        expiry_s: LINK_EXPIRY_S,
        ends_at_ns: Some(u64::MAX),
        will: None,
        will_at_ns: None,
        next_seq: 1,
        exchanges: Vec::new(),
        queued: Vec::new(),
        inbound: Vec::new(),
    }
}
