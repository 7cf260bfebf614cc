//! The end of a run: no more faults, everything promised arrives, everything is given back.

use tacho_broker::sim::{Cluster, Totals};
use tacho_codec::QoS;
use tacho_net::sim::Faults;

use super::{SECOND_NS, World};
use crate::client::{CALM_WINDOW_BYTES, Request};
use crate::ledger::Audit;
use crate::setup::{FILTERS, RETAINED, WILL, WILLS};
use crate::wire::{self, Opening};

/// Rounds after which a run that does not come to rest has failed.
const ROUNDS_MAX: usize = 20_000;
/// The filter with all retained topics.
const ALL_RETAINED: usize = 9;
/// Longer than any will's delay and than a closed connection lingers.
const CALM_S: u64 = 8;
/// Longer than all publishers together are held back once every client reads.
const HELD_BACK_S: u64 = 200;

/// Lets the shards take turns as long as they have something to do, within bounds; false if they
/// have nothing.
pub(crate) fn let_shards_work(cluster: &mut Cluster) -> bool {
    for turns in 0..100 {
        if !cluster.loops().step() {
            return turns > 0;
        }
        cluster.loops().advance(1_000);
    }
    true
}

impl World {
    /// Lets everything happen that is under way, without much time passing.
    pub(super) fn run_until_quiet(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut moved = false;
            for client in 0..self.clients.len() {
                moved |= self.has_traffic(client);
                self.exchange(client);
            }
            moved |= let_shards_work(&mut self.cluster);
            moved |= self.commit();
            if !moved {
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.held());
    }

    fn has_traffic(&self, client: usize) -> bool {
        let known = &self.clients[client];
        known.link.as_ref().is_some_and(|link| {
            let hears = known.calm || !known.deaf;
            link.peer.in_transit() > 0
                || hears && (link.peer.waiting() > 0 || link.peer.is_over())
                || known.machine.has_output() && known.is_online()
        })
    }

    pub(super) fn held(&self) -> Vec<tacho_broker::sim::Held> {
        (0..self.setup.shards).map(|shard| self.cluster.held(shard)).collect()
    }

    /// Connects a client without faults and waits until it is done.
    pub(super) fn connect_calmly(&mut self, client: usize) {
        let clean_start = self.clients[client].must_start_anew(self.cluster.now_ns());
        let ephemeral = clean_start && !self.clients[client].version().is_v5();
        self.open(client, Opening { clean_start, ephemeral, will: None });
        for _ in 0..ROUNDS_MAX {
            self.exchange(client);
            if self.clients[client].is_online() {
                return;
            }
            if self.clients[client].link.is_none() {
                // Refused, as if descriptors had run out.
                self.open(client, Opening { clean_start, ephemeral, will: None });
            }
            self.cluster.loops().step();
            self.commit();
            self.cluster.loops().advance(10_000);
        }
        panic!("client {client} cannot connect");
    }

    /// Waits until a client has been told what it asked, however long shards stall.
    pub(super) fn wait_for_answers(&mut self, client: usize) {
        for _ in 0..ROUNDS_MAX {
            self.exchange(client);
            if self.clients[client].requests.is_empty() {
                return;
            }
            self.cluster.loops().step();
            self.commit();
            self.cluster.loops().advance(10_000);
        }
        panic!("client {client} gets no answer");
    }

    /// No more faults: every client reads, answers and reconnects.
    pub(super) fn calm_down(&mut self) {
        self.cluster.loops().set_faults(Faults::default());
        self.cluster.loops().end_stalls();
        for client in &mut self.clients {
            client.calm = true;
            if let Some(link) = &client.link {
                link.peer.set_window(CALM_WINDOW_BYTES);
            }
        }
        self.run_until_quiet();
        for _ in 0..CALM_S {
            self.let_a_second_pass();
        }
        self.ledger.wills.delays_over();
        for client in 0..self.clients.len() {
            let left = self.clients[client].abandoned.iter().filter(|peer| !peer.is_forgotten());
            assert_eq!(left.count(), 0, "connections of client {client} are kept for ever");
            if self.clients[client].link.is_none() {
                self.connect_calmly(client);
            }
        }
        self.run_until_quiet();
        // Publishers that were held back are read again.
        self.let_a_second_pass();
        self.let_a_second_pass();
        self.let_the_held_back_in();
        for client in &self.clients {
            assert!(client.is_online(), "client {} was thrown out", client.index);
            let open = (client.machine.inflight_len(), client.requests.len());
            assert_eq!(open, (0, 0), "client {} waits for answers", client.index);
        }
        for (shard, held) in self.held().into_iter().enumerate() {
            let waiting = (held.queue_len, held.queue_bytes, held.inflight_len);
            assert_eq!(waiting, (0, 0, 0), "shard {shard} has not delivered: {held:?}");
            let work = (held.fan_outs, held.held_publishers, held.group_queue_len, held.mails);
            assert!(matches!(work, (0, 0, _, 0)), "shard {shard} has not finished: {held:?}");
        }
    }

    /// Who is held back for the budget of what waits has no answer yet, and none is due: the broker
    /// looks once a second whether other shards have made room, and a publisher that is released
    /// then may use it up again, so they come in one after the other. One who waits longer than the
    /// broker's patience is closed and comes back.
    fn let_the_held_back_in(&mut self) {
        let mut came_back = false;
        for _ in 0..HELD_BACK_S {
            for client in 0..self.clients.len() {
                // 5.0 is refused and never closed for it.
                if self.clients[client].link.is_none() && !self.clients[client].version().is_v5() {
                    self.connect_calmly(client);
                    came_back = true;
                }
            }
            self.run_until_quiet();
            let online = self.clients.iter().all(|client| client.link.is_some());
            if online && self.held().iter().all(|held| held.held_publishers == 0) {
                break;
            }
            self.let_a_second_pass();
        }
        if came_back {
            // Closed clients may have had wills.
            for _ in 0..CALM_S {
                self.let_a_second_pass();
            }
            self.ledger.wills.delays_over();
        }
    }

    fn let_a_second_pass(&mut self) {
        self.cluster.loops().advance(SECOND_NS);
        self.keep_alive();
        self.run_until_quiet();
    }

    /// A new subscriber sees what is retained; then the ledger judges.
    pub(super) fn audit(&mut self, warden: usize) {
        self.make_room();
        let auditor = self.add_reliable_client();
        self.auditor = Some(auditor);
        self.connect_calmly(auditor);
        self.subscribe(auditor, &[ALL_RETAINED, WILLS]);
        self.run_until_quiet();
        assert!(self.ledger.has_all(auditor, &[ALL_RETAINED, WILLS]), "no room for the auditor");
        let mut audit = Audit {
            epochs: self.clients.iter().map(|client| client.epoch).collect(),
            warden,
            retained: self.retained.clone(),
            retained_refused: self.counted("retained_refused_total") > 0,
            ..Audit::default()
        };
        let values = self.cluster.stats().iter().flat_map(|stats| stats.values());
        let earlier = self.earlier.iter().map(|(name, value)| (*name, *value));
        for (name, value) in values.chain(earlier) {
            match name {
                "dropped_output_full_total" | "dropped_offline_total" => {
                    audit.dropped_qos_0 += value;
                }
                _ if name.starts_with("dropped_") => audit.dropped += value,
                _ => {}
            }
        }
        self.ledger.check(&audit);
    }

    /// Where limits are already reached, the auditor replaces a client that is done.
    fn make_room(&mut self) {
        let limits = self.setup.config.limits.clone();
        let needed_bytes = [ALL_RETAINED, WILLS].map(|filter| FILTERS[filter].len() as u64);
        let needed_bytes: u64 = needed_bytes.iter().sum();
        for client in 0..self.clients.len() {
            let totals = self.cluster.totals();
            if totals.subscriptions + 2 <= limits.subscriptions_max
                && totals.filter_bytes + needed_bytes <= limits.subscriptions_bytes_max
            {
                break;
            }
            // All there are: what the client believes to have unsubscribed may be there still, for
            // its request was lost.
            self.clients[client].subscribed.clear();
            for filter in 0..FILTERS.len() {
                // Unknown to the ledger: what was promised before stays promised.
                let known = &mut self.clients[client];
                let Some(packet_id) = known.machine.reserve_id() else { break };
                known.requests.insert(packet_id, Request::Unsubscribe(Vec::new()));
                known.write(&wire::unsubscribe(known.nature.version, packet_id, filter));
            }
            self.run_until_quiet();
        }
        let connections_max = limits.connections_max;
        if connections_max > 0 && self.cluster.totals().connections >= connections_max {
            self.disconnect(0);
            self.run_until_quiet();
        }
    }

    /// Deletes the retained messages of these topics. Returns where the broker refused that.
    fn delete_retained(&mut self, client: usize, topics: &[usize]) -> Vec<usize> {
        let mut refused = Vec::new();
        for &topic in topics {
            let id = self.ledger.next_id() as usize;
            let sent = self.publish_message(client, topic, QoS::AtLeastOnce, true, 0, None);
            assert!(sent, "the window is open");
            self.run_until_quiet();
            if self.ledger.messages[id].refused {
                refused.push(topic);
            }
        }
        refused
    }

    /// All sessions end, all retained messages are deleted: nothing may be left.
    pub(super) fn leave_nothing(&mut self) {
        let auditor = self.clients.len() - 1;
        self.auditor = None;
        let mut refused = self.delete_retained(auditor, &[&RETAINED[..], &[WILL]].concat());
        // A client without a connection may have a full queue.
        let has_budget = self.setup.config.limits.queues_bytes_max > 0;
        let may_refuse = has_budget || self.setup.queues_fill_up();
        assert!(refused.is_empty() || may_refuse, "deletions are refused: {refused:?}");
        for client in 0..self.clients.len() {
            self.disconnect(client);
        }
        self.run_until_quiet();
        for client in 0..self.clients.len() {
            self.open(client, Opening { clean_start: true, ephemeral: true, will: None });
            self.run_until_quiet();
            assert!(self.clients[client].is_online(), "client {client} cannot come back");
            if client == auditor {
                // What used the budget up was waiting for sessions and groups that are gone now.
                refused = self.delete_retained(auditor, &refused);
                assert!(refused.is_empty(), "nothing waits, and these are refused: {refused:?}");
            }
            self.disconnect(client);
            self.run_until_quiet();
        }
        for _ in 0..CALM_S {
            self.let_a_second_pass();
        }
        for (shard, held) in self.held().into_iter().enumerate() {
            let expected = tacho_broker::sim::Held::default();
            assert_eq!(held, expected, "shard {shard} keeps something");
        }
        assert_eq!(self.cluster.totals(), Totals::default(), "what is counted and not there");
        for gauge in ["connections", "sessions", "subscriptions", "retained", "retained_bytes"] {
            assert_eq!(self.cluster.counter(gauge), 0, "the gauge {gauge}");
        }
        self.cluster.stop();
        self.run_until_quiet();
        let running = (0..self.setup.shards).filter(|&shard| self.cluster.runs(shard)).count();
        assert_eq!(running, 0, "shards that do not stop");
    }
}
