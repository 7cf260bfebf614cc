//! Bridges that an operator has paused, drains or has stopped.

use super::Tenure;
use crate::bridge::BridgeMode;
use crate::keys::LinkIndex;
use crate::shard::{Net, Shard};

impl Shard {
    /// An operator wants something else of a bridge.
    pub(in crate::shard) fn bridge_mode_changed(&mut self, net: &mut Net, place: usize) {
        // Whether messages leave by it is part of what is remembered of topics.
        self.routing.forget_routes();
        let mode = self.bridges.known.at(place).mode();
        for link in self.bridges.indexes() {
            let entry = &self.bridges.all[link.index()];
            // One that is surplus ends with its messages.
            if entry.bridge != place || entry.tenure != Tenure::Configured {
                continue;
            }
            match mode {
                BridgeMode::Running | BridgeMode::Draining => self.go_on(net, link),
                BridgeMode::Paused => self.rest(net, link, "an operator has paused the bridge"),
                BridgeMode::Stopped => self.rest(net, link, "an operator has stopped the bridge"),
            }
            self.rest_if_drained(net, link);
        }
    }

    /// A link of a bridge that is being drained rests once nothing of it waits. True if it does.
    pub(super) fn rest_if_drained(&mut self, net: &mut Net, link: LinkIndex) -> bool {
        let Some(entry) = self.bridges.all.get(link.index()) else { return false };
        let mode = self.bridges.known.at(entry.bridge).mode();
        if mode != BridgeMode::Draining || entry.rests {
            return false;
        }
        let machine = self.sessions.get(entry.slot).map(|session| &session.machine);
        if machine.is_some_and(|machine| machine.queue_len() + machine.inflight_len() > 0) {
            return false;
        }
        self.rest(net, link, "an operator has drained the bridge: nothing of it waits");
        true
    }

    /// The link has no connection until it goes on. What waits for it stays.
    fn rest(&mut self, net: &mut Net, link: LinkIndex, why: &str) {
        if self.bridges.all[link.index()].rests {
            return;
        }
        self.say_bye(net, link);
        let entry = &mut self.bridges.all[link.index()];
        entry.rests = true;
        entry.protocol.close();
        self.link_down(net, link, why);
        self.arm_link(net, link);
    }

    fn go_on(&mut self, net: &mut Net, link: LinkIndex) {
        let entry = &mut self.bridges.all[link.index()];
        if std::mem::replace(&mut entry.rests, false) {
            entry.protocol.again(net.now_ns());
            self.link_due(net, link);
        }
    }
}
