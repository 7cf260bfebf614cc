//! A shard: one thread's connections, the sessions it owns, and their subscriptions.
//!
//! [`Shard`] composes the owners below, dispatches the events of its loop to them, and holds the
//! flows that concern several of them. Each owner has a folder, and its fields are private there:
//!
//! | owner | what it owns |
//! |---|---|
//! | [`connections`] | states and permits of connections, authentication exchanges |
//! | [`sessions`] | the sessions, by slot and by client |
//! | [`routing`] | this shard's filters, the route map as last loaded, remembered routes |
//! | [`delivery`] | unfinished fan-outs |
//! | [`groups`] | members of shared groups here, queues of the groups that it owns |
//! | [`retained`] | retained messages of its topics, and requests for them |
//! | [`durability`] | record batches, waiting sessions, distributions, loading |
//! | [`admission`] | publishers held back, the steps of shedding load, the memory budget |
//! | [`bridge`] | the links of bridges |
//! | [`access`] | users and access rules in force, decisions and logins remembered |
//! | [`trace`] | which clients and topics operators follow |
//!
//! [`permission`] decides what clients may do; [`routing`]'s `destinations` decides where messages
//! go. [`control`] answers the control plane.

mod access;
mod admission;
mod bridge;
mod connections;
mod control;
mod delivery;
mod draining;
mod durability;
mod events;
mod groups;
mod last_told;
mod output;
mod permission;
mod retained;
mod routing;
mod sessions;
mod shared;
mod stopping;
mod timers;
mod trace;

use std::io;
use std::sync::Arc;

use tacho_net::{Closed, ConnId, Handler, Next};

use crate::config::Limits;
use crate::mail::Mail;
use crate::message::SharedPayload;
use crate::stats::ShardStats;

use access::AccessRules;
use admission::Admission;
use bridge::BridgeLinks;
use connections::{Connection, Connections};
use delivery::FanOuts;
use draining::Draining;
use durability::Journaling;
use groups::LocalGroups;
use retained::Retained;
use routing::{Routing, SubscriptionCounts};
use sessions::Sessions;
use stopping::Phase;
use timers::TimerToken;
use trace::Traces;

pub(crate) use connections::Authenticators;
#[cfg(feature = "sim")]
pub use control::{Held, OverLimit, Totals};
pub(crate) use shared::Shared;

pub(crate) type Net = tacho_net::Net<Shard>;

/// One thread's part of the broker.
pub(crate) struct Shard {
    id: usize,
    shared: Arc<Shared>,
    /// Those in force.
    limits: Arc<Limits>,
    stats: Arc<ShardStats>,
    phase: Phase,
    /// While no client is taken.
    draining: Option<Draining>,
    connections: Connections,
    sessions: Sessions,
    /// Where subscriptions are counted.
    subscriptions: Arc<SubscriptionCounts>,
    routing: Routing,
    delivery: FanOuts,
    groups: LocalGroups,
    retained: Retained,
    durability: Journaling,
    admission: Admission,
    bridges: BridgeLinks,
    access: AccessRules,
    traces: Traces,
}

impl Shard {
    /// The calling thread is the shard's.
    pub(crate) fn new(id: usize, shared: Arc<Shared>, stats: Arc<ShardStats>) -> Self {
        let counts = SubscriptionCounts::new(Arc::clone(&shared.subscriptions), Arc::clone(&stats));
        let keeps_qos0 = shared.durable.as_ref().is_some_and(|d| d.settings.offline_qos0);
        let flags = shared.durable.as_ref().map(|durable| Arc::clone(durable.flags(id)));
        Self {
            id,
            phase: Phase::Running,
            draining: None,
            connections: Connections::new(Arc::clone(&shared.handshakes), Arc::clone(&stats)),
            sessions: Sessions::new(Arc::clone(&stats), flags),
            subscriptions: Arc::new(counts),
            routing: Routing::new(
                id,
                &shared.routes,
                &shared.limits,
                keeps_qos0,
                Arc::clone(&stats),
            ),
            delivery: FanOuts::new(shared.limits.deliveries_per_turn_max),
            groups: LocalGroups::new(Arc::clone(&stats)),
            retained: Retained::new(Arc::clone(&shared.retained_totals), Arc::clone(&stats)),
            durability: Journaling::new(shared.durable.as_ref(), &stats),
            admission: Admission::new(
                Arc::clone(&shared.backlogged),
                &shared.overload,
                &shared.memory,
            ),
            bridges: BridgeLinks::new(Arc::clone(&shared.bridges)),
            access: AccessRules::new(&shared.access, shared.shards),
            traces: Traces::default(),
            limits: Arc::clone(&shared.limits),
            shared,
            stats,
        }
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn timer_fired(&mut self, net: &mut Net, token: TimerToken) {
        match token {
            TimerToken::Connect { connection } => self.connect_timed_out(net, connection),
            TimerToken::Session { slot, generation } => {
                self.session_timer_fired(net, slot, generation);
            }
            TimerToken::LoginEnd { connection } => self.login_expired(net, connection),
            TimerToken::Throttle => self.read_throttled(net),
            TimerToken::PublishRate { connection } => self.release_fast(net, connection),
            TimerToken::Retained => self.expire_retained(net),
            TimerToken::Link { link } => self.link_due(net, link),
            TimerToken::Unanswered => self.look_at_unanswered(net),
        }
    }

    /// Loads the route map if it changed: after every socket read and before routing.
    #[inline]
    fn refresh_routes(&mut self) {
        self.routing.refresh(&self.shared.routes);
    }
}

impl Handler for Shard {
    type Mail = Mail;
    type Shared = SharedPayload;

    fn accepted(&mut self, net: &mut Net, conn: ConnId, listener: usize) {
        self.connection_accepted(net, conn, listener);
    }

    fn proxied(&mut self, net: &mut Net, conn: ConnId) {
        self.connection_proxied(net, conn);
    }

    fn input(&mut self, net: &mut Net, conn: ConnId, data: &[u8]) -> usize {
        self.refresh_routes();
        let used = self.connection_input(net, conn, data);
        self.hand_over(net);
        used
    }

    fn unit_grew(&mut self, net: &mut Net, conn: ConnId, len: usize) {
        self.packet_grew(net, conn, len);
        self.hand_over(net);
    }

    fn connected(&mut self, net: &mut Net, conn: ConnId, result: io::Result<()>) {
        self.bridge_connected(net, conn, result);
        self.hand_over(net);
    }

    fn closed(&mut self, net: &mut Net, conn: ConnId, why: Closed) {
        self.connection_closed(net, conn, &why);
        self.hand_over(net);
    }

    fn drained(&mut self, net: &mut Net, conn: ConnId) {
        let session = match self.connections.get(conn) {
            Connection::Active { session, .. } => Some(session),
            Connection::Bridge { link, .. } => self.session_of_link(link),
            _ => None,
        };
        if let Some(session) = session {
            self.output_drained(net, conn, session);
            // This turn's look at commits may be over: what now waits for one has to be noticed.
            if self.serve_committed(net) {
                net.turn_again();
            }
        }
    }

    fn timer(&mut self, net: &mut Net, token: u64) {
        self.timer_fired(net, TimerToken::decode(token));
        self.hand_over(net);
    }

    fn mail(&mut self, net: &mut Net, from: usize, mail: Mail) {
        match mail {
            Mail::Adopt(adopted) => self.adopt(net, *adopted),
            Mail::Deliver(message, receipt) => self.deliver_forwarded(net, from, message, receipt),
            Mail::Stored(receipt, commit) => self.stored_elsewhere(net, receipt, commit),
            // The sessions that wait for it are served at the end of the turn, all together.
            Mail::Committed => {}
            Mail::Clogged(topic) => self.topic_clogged(net, &topic),
            // The turn tries the publishers again.
            Mail::RoomMade => {}
            Mail::GroupChanged(group) => self.group_changed(net, &group),
            Mail::DeliverShared(group, message) => self.deliver_to_member(net, &group, message),
            Mail::DeliverWaited(place, message) => {
                self.deliver_to_member(net, place.group(), message);
                drop(place);
            }
            Mail::DeliverLarge(large) => self.deliver_large(net, *large),
            Mail::QueueShared(place, message) => self.queue_for_group(net, place, message),
            Mail::Retain(message) => self.retain(net, message),
            Mail::ReplayRequest(request) => self.replay_requested(from, *request),
            Mail::ReplayBatch(batch) => self.replay_arrived(net, *batch),
            Mail::Authenticated(exchange, step) => self.authenticated(net, exchange, step),
            Mail::LoggedIn(login, answer) => self.logged_in(net, login, *answer),
            Mail::PolicyChanged(policy) => self.policy_changed(policy),
            Mail::LimitsChanged(limits) => self.limits = limits,
            Mail::CertificatesJudgedAnew => self.sweep_certificates(),
            Mail::PublishSys(values) => self.publish_sys(net, &values),
            Mail::Query(ask) => self.asked(net, *ask),
            Mail::Loaded(loaded) => self.loaded(net, *loaded),
            Mail::Recovered => self.all_recovered(net),
            Mail::Shutdown => self.shut_down(net),
        }
        self.hand_over(net);
    }

    fn turn(&mut self, net: &mut Net) -> Next {
        self.continue_fan_outs(net);
        net.begin_work();
        let mut is_unfinished = self.answer_replays(net);
        is_unfinished |= self.remove_ended(net);
        is_unfinished |= self.continue_redistribution(net);
        net.begin_work();
        is_unfinished |= self.serve_committed(net);
        is_unfinished |= self.continue_recovery(net);
        is_unfinished |= self.continue_sweep(net);
        is_unfinished |= self.watch_queues(net);
        self.stats.route_cache_evictions_total.set(self.routing.evictions());
        self.watch_load(net);
        // After it is known what room there is now: nothing else may happen for a while.
        self.release_publishers(net);
        self.hand_over(net);
        if self.is_stopping() {
            net.begin_work();
            return self.continue_stopping(net);
        }
        if is_unfinished || self.delivery.unfinished() > 0 {
            return Next::Again;
        }
        let next_ns = match (self.admission.next_look_ns(), self.ask_again(net)) {
            (Some(look_ns), Some(ask_ns)) => Some(look_ns.min(ask_ns)),
            (look_ns, ask_ns) => look_ns.or(ask_ns),
        };
        next_ns.map_or(Next::Sleep, Next::At)
    }

    fn turn_ended(&mut self, net: &mut Net) {
        self.note_turn(net);
        self.ask_in_time(net);
    }

    fn idle(&mut self, _net: &mut Net) {
        self.ask_for_commit();
    }
}
