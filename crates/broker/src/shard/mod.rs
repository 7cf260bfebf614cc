//! A shard: one thread's connections, the sessions it owns, and their subscriptions.
//!
//! The parts: [`connection`] frames and dispatches packets, [`connect`] opens sessions,
//! [`committing`] lets those of durable ones wait, [`authenticate`] lets methods of authentication
//! talk to their clients, [`answers`] keeps answers within what a client takes, [`goodbye`] ends
//! connections,
//! [`publish`] takes messages in, [`deliver`] sends them out, [`distribution`] follows those that
//! other shards have to store, [`subscribe`] keeps subscriptions, [`shared`] their groups,
//! [`retained`] the retained messages and their replay, [`lifetime`] the timers and the ends of
//! sessions, [`durable`] tells the journal of messages and [`keeping`] of sessions, [`awaiting`]
//! knows what is committed, [`restore`] makes sessions of what the journal kept, [`loading`] brings
//! messages back from it, [`throttle`] holds publishers back, [`budget`] refuses what there is no
//! memory for, [`overload`] sheds load, [`slow`] knows the slow clients, [`control`] answers the
//! control plane, [`bridge`] talks to other brokers.

mod ahead;
mod answers;
mod authenticate;
mod awaiting;
mod bridge;
mod budget;
mod committing;
mod connect;
mod connection;
mod control;
mod deliver;
mod distribution;
mod dropped;
mod durable;
mod goodbye;
mod heads;
#[cfg(feature = "sim")]
mod inspect;
mod keeping;
mod lent;
mod lifetime;
mod loading;
mod overload;
mod publish;
mod recorder;
mod restore;
mod retained;
mod routes;
mod session;
mod shared;
mod slow;
mod stuck;
mod subscribe;
mod throttle;
mod unanswered;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use tacho_codec::SubscriptionIdsBuf;
use tacho_net::{Closed, ConnId, Handler, Next, ServerTransport, TimerId};
use tacho_topic::{RouteMap, RouteSnapshot, SubscriptionIndex};

use crate::bridge::Bridges;
use crate::config::{self, Config, Limits, SharedStrategy};
use crate::durable::Durable;
use crate::durable::start::RecoveryContext;
use crate::keys::{ClientKey, SessionRef};
use crate::mail::{Detached, Mail};
use crate::memory::{Ledger, Memory};
use crate::message::SharedPayload;
use crate::stats::ShardStats;
use crate::subscription::{self as subscriptions, SubscriptionOptions};

pub(crate) use authenticate::Authenticators;
use authenticate::Exchange;
use bridge::Members;
use connection::Connection;
use deliver::FanOut;
use durable::ShardJournal;
use heads::Heads;
use loading::Loading;
use overload::Overload;
use retained::{OpenRequest, RetainedStore, RetainedTotals, RetainedVersions};
use routes::RouteCache;
use session::Session;
use shared::LocalGroups;
use slow::DropReport;
use throttle::Throttle;
use unanswered::Unanswered;

#[cfg(feature = "sim")]
pub use inspect::{Held, OverLimit, Totals};

pub(crate) type Net = tacho_net::Net<Shard>;

/// What all shards share.
pub(crate) struct Shared {
    pub(crate) routes: RouteMap,
    pub(crate) limits: Limits,
    pub(crate) strategy: SharedStrategy,
    pub(crate) retained_versions: RetainedVersions,
    pub(crate) retained_totals: RetainedTotals,
    /// What each listener puts between its sockets and us.
    pub(crate) transports: Vec<ServerTransport>,
    pub(crate) overload: config::Overload,
    pub(crate) connections_max: usize,
    pub(crate) sessions_per_shard_max: usize,
    /// Methods of enhanced authentication; without them none is known.
    pub(crate) authenticators: Option<Authenticators>,
    /// The beginning of response topics, for clients that ask.
    pub(crate) response_information: Option<String>,
    /// Clients connected now in all shards: their CONNECT was accepted.
    pub(crate) connections: AtomicUsize,
    /// Sockets open now in all shards, whatever they are.
    pub(crate) sockets: AtomicUsize,
    /// As many as descriptors allow, refusals included.
    pub(crate) sockets_max: usize,
    /// Connections in all shards whose client is not connected yet.
    pub(crate) handshakes: AtomicUsize,
    /// Subscriptions of all shards, and the bytes of their filters.
    pub(crate) subscriptions: AtomicUsize,
    pub(crate) subscriptions_bytes: AtomicU64,
    pub(crate) memory: Memory,
    /// Shards with so many unfinished fan-outs that all publishers are held back.
    pub(crate) backlogged: Backlogged,
    /// Present where there is a data directory.
    pub(crate) durable: Option<Durable>,
    pub(crate) bridges: Arc<Bridges>,
}

impl Shared {
    pub(crate) fn new(
        config: &Config,
        transports: Vec<ServerTransport>,
        connections_max: usize,
        sockets_max: usize,
    ) -> Self {
        Self {
            routes: RouteMap::with_shards(config.shards),
            sessions_per_shard_max: config.limits.sessions_max.div_ceil(config.shards),
            connections_max,
            connections: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
            sockets_max,
            handshakes: AtomicUsize::new(0),
            subscriptions: AtomicUsize::new(0),
            subscriptions_bytes: AtomicU64::new(0),
            memory: Memory::new(&config.limits),
            backlogged: Backlogged::default(),
            overload: config.overload.clone(),
            limits: config.limits.clone(),
            strategy: config.shared_strategy,
            retained_versions: RetainedVersions::new(config.shards),
            retained_totals: RetainedTotals::default(),
            transports,
            authenticators: None,
            response_information: config.response_information.clone(),
            durable: None,
            bridges: Arc::default(),
        }
    }

    /// What recovery needs to know before the shards run.
    pub(crate) fn recovery_context<'a>(&'a self, config: &'a Config) -> RecoveryContext<'a> {
        let (routes, bridges, memory) = (&self.routes, &*self.bridges, &self.memory);
        RecoveryContext { config, routes, bridges, memory }
    }
}

/// How many shards are behind. Aligned, as all shards look at it often.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Backlogged(pub(crate) AtomicUsize);

/// One thread's part of the broker.
pub(crate) struct Shard {
    id: usize,
    shared: Arc<Shared>,
    stats: Arc<ShardStats>,
    /// The route map as loaded after the last read.
    snapshot: Arc<RouteSnapshot>,
    /// By [`ConnId::index`].
    connections: Vec<Connection>,
    sessions: Slab<Box<Session>>,
    by_client: HashMap<ClientKey, u32, RandomState>,
    next_generation: u32,
    index: SubscriptionIndex<u32, SubscriptionOptions>,
    routes: RouteCache,
    groups: LocalGroups,
    retained: RetainedStore,
    retained_timer: Option<(TimerId, u64)>,
    open_requests: VecDeque<OpenRequest>,
    fan_outs: VecDeque<FanOut>,
    /// What this turn's budget of deliveries still allows.
    deliveries_left: usize,
    heads: Heads,
    throttle: Throttle,
    unanswered: Unanswered,
    /// Of connections whose CONNECT named an authentication method, by [`ConnId::index`].
    exchanges: HashMap<u32, Box<Exchange>, RandomState>,
    next_exchange: u64,
    overload: Overload,
    ledger: Ledger,
    /// The budget of all that waits is used up.
    queues_full: bool,
    /// Present where there is a data directory.
    journal: Option<Box<ShardJournal>>,
    /// The disk is full or failing, or the journal at its limit, as of the last read.
    journal_stuck: bool,
    /// Messages that had to wait in a session so far.
    queued: u64,
    /// Connections whose client was not connected yet, the oldest first.
    openings: VecDeque<ConnId>,
    drop_report: DropReport,
    loading: Loading,
    bridges: Members,
    /// Reused for the subscription identifiers of the packet being written.
    ids: SubscriptionIdsBuf,
    stopping: bool,
    stop_deadline_ns: u64,
}

impl Shard {
    pub(crate) fn new(id: usize, shared: Arc<Shared>, stats: Arc<ShardStats>) -> Self {
        let journal = |durable| Box::new(ShardJournal::new(durable, Arc::clone(&stats)));
        let journal = shared.durable.as_ref().map(journal);
        Self {
            id,
            snapshot: shared.routes.snapshot(),
            routes: RouteCache::new(
                shared.limits.route_cache_topics_max,
                shared.limits.route_cache_bytes_max,
            ),
            stats,
            connections: Vec::new(),
            sessions: Slab::new(),
            by_client: HashMap::default(),
            next_generation: 0,
            index: SubscriptionIndex::new(),
            groups: LocalGroups::default(),
            retained: RetainedStore::default(),
            retained_timer: None,
            open_requests: VecDeque::new(),
            fan_outs: VecDeque::new(),
            deliveries_left: shared.limits.deliveries_per_turn_max,
            heads: Heads::default(),
            throttle: Throttle::default(),
            unanswered: Unanswered::default(),
            exchanges: HashMap::default(),
            next_exchange: 0,
            overload: Overload::new(&shared.overload),
            ledger: Ledger::new(&shared.memory),
            queues_full: false,
            journal,
            journal_stuck: false,
            queued: 0,
            openings: VecDeque::new(),
            drop_report: DropReport::default(),
            loading: Loading::default(),
            bridges: Members::default(),
            ids: SubscriptionIdsBuf::new(),
            stopping: false,
            stop_deadline_ns: u64::MAX,
            shared,
        }
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Loads the route map if it changed: after every socket read and before routing.
    #[inline]
    fn refresh_routes(&mut self) {
        self.shared.routes.refresh(&mut self.snapshot);
    }

    fn session_ref(&self, slot: u32) -> SessionRef {
        let generation = self.sessions[slot as usize].generation;
        SessionRef { shard: self.id as u16, slot, generation }
    }

    /// The session's slot, if it still is the session that was meant.
    fn resolve(&self, session: SessionRef) -> Option<u32> {
        let found = self.sessions.get(session.slot as usize)?;
        (found.generation == session.generation).then_some(session.slot)
    }
}

impl Handler for Shard {
    type Mail = Mail;
    type Shared = SharedPayload;

    fn accepted(&mut self, net: &mut Net, conn: ConnId, listener: usize) {
        self.connection_accepted(net, conn, listener);
    }

    fn input(&mut self, net: &mut Net, conn: ConnId, data: &[u8]) -> usize {
        self.refresh_routes();
        let used = self.connection_input(net, conn, data);
        self.hand_over(net);
        used
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
        let session = match self.connections[conn.index()] {
            Connection::Active { session, .. } => Some(session),
            Connection::Bridge { member, .. } => self.session_of_member(member),
            _ => None,
        };
        if let Some(session) = session {
            self.output_drained(net, conn, session);
            // This turn's look at commits may be over: what now waits for one has to be noticed.
            self.serve_committed(net);
        }
    }

    fn timer(&mut self, net: &mut Net, token: u64) {
        self.timer_fired(net, token);
        self.hand_over(net);
    }

    fn mail(&mut self, net: &mut Net, from: usize, mail: Mail) {
        match mail {
            Mail::Adopt(detached, listener) => self.adopt(net, *detached, listener),
            Mail::Deliver(message, receipt) => self.deliver_forwarded(net, from, message, receipt),
            Mail::Stored(receipt, commit) => self.stored_elsewhere(net, receipt, commit),
            // Who waits for it is served at the end of the turn, all together.
            Mail::Committed => {}
            Mail::Clogged(topic) => self.topic_clogged(net, &topic),
            Mail::GroupChanged(group) => self.group_changed(net, &group),
            Mail::DeliverShared(group, message) => self.deliver_to_member(net, &group, message),
            Mail::DeliverWaited(group, message) => {
                self.deliver_to_member(net, &group, message);
                group.waited(1);
            }
            Mail::DeliverLarge(large) => self.deliver_large(net, *large),
            Mail::QueueShared(group, message) => self.let_wait(net, &group, message),
            Mail::Retain(message) => self.retain(net, message),
            Mail::ReplayRequest(request) => self.replay_requested(from, *request),
            Mail::ReplayBatch(batch) => self.replay_arrived(net, *batch),
            Mail::Authenticated(exchange, step) => self.authenticated(net, exchange, step),
            Mail::PublishSys(values) => self.publish_sys(net, &values),
            Mail::Ask(ask) => self.asked(net, *ask),
            Mail::Loaded(loaded) => self.loaded(net, *loaded),
            Mail::Recovered => self.all_recovered(net),
            Mail::Shutdown => self.shut_down(net),
        }
        self.hand_over(net);
    }

    fn turn(&mut self, net: &mut Net) -> Next {
        self.continue_fan_outs(net);
        let owes_answers = self.answer_replays(net);
        self.serve_committed(net);
        self.stats.route_cache_evictions_total.set(self.routes.evictions);
        self.watch_load(net);
        // After it is known what room there is now: nothing else may happen for a while.
        self.release_publishers(net);
        self.hand_over(net);
        if self.stopping {
            return self.finish_stopping(net);
        }
        if owes_answers || !self.fan_outs.is_empty() {
            return Next::Again;
        }
        let next_ns = match (self.overload.next_look_ns(), self.ask_again(net)) {
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
