//! The shards of the broker on simulated loops, for tests.
//!
//! A [`Cluster`] is a whole broker in one thread, without sockets and without a clock (see
//! [`tacho_net::sim`]). Its shards are those of [`Broker`](crate::Broker), unchanged.
//!
//! With a journal ([`Cluster::with_journal`]) nothing is committed automatically: the test calls
//! [`Cluster::commit`]. To simulate a crash, drop the cluster and make another one on the same
//! disk.

use std::sync::Arc;

use tacho_journal::storage::Storage;
use tacho_journal::{Committer, Journal, OpenError, Opened, Options, Step};
use tacho_net::sim::{Faults, Peer, Simulation};
use tacho_net::{LoopConfig, Mailbox, Remote, mailboxes};
use tokio::sync::oneshot;

use crate::access::{AccessControl, Audit, Logins, SharedAccess, SimulatedLogins};
use crate::authentication::AuthMethods;
use crate::bridge::Bridges;
use crate::config::{Config, ConfigError};
use crate::durable::reader::Reader;
use crate::durable::start::{ShardPart, journal_options};
use crate::durable::threads::{RecoveredBroker, recover};
use crate::durable::{Durable, JournalError, WallClock};
use crate::listeners::ListenerParts;
use crate::mail::Mail;
use crate::query::{ClientFilter, ClientScan, Query, ScanOrder, ScannedClients};
use crate::server::loop_limits;
use crate::shard::{Authenticators, Net, Shard, Shared};
use crate::stats::ShardStats;

pub use crate::shard::{Held, OverLimit, Totals};

/// A broker whose shards run in an order drawn from a seed.
pub struct Cluster {
    simulation: Simulation<Shard>,
    shared: Arc<Shared>,
    stats: Vec<Arc<ShardStats>>,
    remote: Remote<Mail>,
    committer: Option<Committer>,
    access: AccessControl,
    logins: Arc<SimulatedLogins>,
}

/// A search that is under way.
pub struct Search(oneshot::Receiver<ScannedClients>);

impl Search {
    /// The client identifiers that were found, and where to go on; `None` while there is no answer.
    pub fn take(&mut self) -> Option<(Vec<String>, Option<usize>)> {
        let ScannedClients { rows, next } = self.0.try_recv().ok()?;
        Some((rows.into_iter().map(|row| row.client_id).collect(), next))
    }
}

/// The journal's committer, if there is a journal, and what each shard starts with.
type Started = (Option<Committer>, Vec<ShardPart>);

/// Small, so that segments come and go in short runs too.
const SEGMENT_BYTES: u32 = 64 * 1024;
const LOG_BYTES_MIN: u64 = 256 * 1024;

/// The seed, faults and time of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// Seed of all random choices.
    pub seed: u64,
    /// Faults of the loops.
    pub faults: Faults,
    /// Initial time of the loops.
    pub now_ns: u64,
}

/// Why a cluster cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NoCluster {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The journal cannot be used.
    #[error("the journal: {0}")]
    Journal(String),
}

impl From<OpenError> for NoCluster {
    fn from(error: OpenError) -> Self {
        Self::Journal(error.to_string())
    }
}

impl From<JournalError> for NoCluster {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

impl Cluster {
    /// A broker with `config` at the time `now_ns`. `bounds` may lower the limits of a turn; its
    /// listeners are ignored.
    ///
    /// # Errors
    /// Certificates of a listener cannot be used.
    pub fn new(
        config: &Config,
        bounds: impl Fn(LoopConfig) -> LoopConfig,
        seed: u64,
        faults: Faults,
        now_ns: u64,
    ) -> Result<Self, ConfigError> {
        let seeds = Seeds { seed, faults, now_ns };
        let start = |_: &mut Shared, _: &Remote<Mail>| Ok((None, Vec::new()));
        Self::start(config, bounds, seeds, start)
    }

    /// A broker with a journal on `storage`, recovered from what an earlier one has left there.
    /// `unix_ns` is the time of the wall clock.
    ///
    /// # Errors
    /// Certificates of a listener cannot be used, or the journal cannot be opened or read.
    pub fn with_journal(
        config: &Config,
        bounds: impl Fn(LoopConfig) -> LoopConfig,
        seeds: Seeds,
        storage: impl Storage + 'static,
        unix_ns: u64,
    ) -> Result<Self, NoCluster> {
        let options = Options {
            segment_bytes: SEGMENT_BYTES,
            log_bytes_min: LOG_BYTES_MIN,
            ..journal_options(&config.durability)
        };
        let opened = Journal::open_on(storage, options)?;
        Self::on_journal(config, bounds, seeds, opened, unix_ns)
    }

    /// A broker with a journal that is already open.
    ///
    /// # Errors
    /// Certificates of a listener cannot be used, or the journal cannot be read.
    pub fn on_journal(
        config: &Config,
        bounds: impl Fn(LoopConfig) -> LoopConfig,
        seeds: Seeds,
        opened: Opened,
        unix_ns: u64,
    ) -> Result<Self, NoCluster> {
        Self::start(config, bounds, seeds, |shared, remote| {
            let clock = (WallClock::new(seeds.now_ns, unix_ns), seeds.now_ns);
            let reader = Reader::AtOnce(remote.clone());
            let RecoveredBroker { committer, durable, parts } =
                recover(opened, &shared.recovery_context(config), clock, reader)?;
            shared.durable = Some(durable);
            Ok((Some(committer), parts))
        })
    }

    fn start<E: From<ConfigError>>(
        config: &Config,
        bounds: impl Fn(LoopConfig) -> LoopConfig,
        seeds: Seeds,
        start: impl FnOnce(&mut Shared, &Remote<Mail>) -> Result<Started, E>,
    ) -> Result<Self, E> {
        let connections_max = match config.limits.connections_max {
            0 => usize::MAX / 2,
            max => max,
        };
        let listeners = Arc::new(ListenerParts::of(config, config.open_transports()?));
        let boxes = mailboxes::<Mail>(config.shards);
        let remote = boxes[0].remote();
        let access = AccessControl::open(config, remote.clone(), Audit::default())
            .map_err(ConfigError::Access)?;
        let simulated_logins = Arc::new(SimulatedLogins::new(remote.clone()));
        let logins = Logins::Simulated(Arc::clone(&simulated_logins));
        // Invariant: a machine that runs tests has random numbers.
        let shared_access =
            SharedAccess::new(config, Arc::clone(&listeners), &access, logins, Vec::new())
                .expect("randomness");
        let maxima = (connections_max, usize::MAX);
        let mut shared = Shared::new(config, listeners, shared_access, maxima);
        let methods = AuthMethods::default();
        shared.authenticators = Some(Authenticators { methods, remote: remote.clone() });
        shared.set_bridges(Bridges::open(config)?);
        let stats: Vec<_> = (0..config.shards).map(|_| Arc::new(ShardStats::default())).collect();
        let (committer, parts) = start(&mut shared, &remote)?;
        let shared = Arc::new(shared);
        let mut parts = parts.into_iter();
        let shard = |(id, mailbox): (usize, Mailbox<Mail>)| {
            let mut shard = Shard::new(id, Arc::clone(&shared), Arc::clone(&stats[id]));
            if let Some(part) = parts.next() {
                shard.restore(part);
                remote.post(id, Mail::Recovered);
            }
            (bounds(loop_limits(config)), mailbox, shard)
        };
        let shards: Vec<_> = boxes.into_iter().enumerate().map(shard).collect();
        let Seeds { seed, faults, now_ns } = seeds;
        let simulation = Simulation::new(seed, faults, now_ns, shards);
        let logins = simulated_logins;
        Ok(Self { simulation, shared, stats, remote, committer, access, logins })
    }

    /// Commits what the shards have appended to the journal, and notifies the shards that wait for
    /// it. False if there was nothing to commit, or if the disk does not take it at present.
    pub fn commit(&mut self) -> bool {
        let Some(committer) = &mut self.committer else { return false };
        let Step::Committed(_) = committer.step() else { return false };
        if let Some(durable) = &self.shared.durable {
            durable.committed(&self.remote);
        }
        true
    }

    /// The files of access control.
    pub const fn access(&self) -> &AccessControl {
        &self.access
    }

    /// From now on logins that need verification wait for [`Self::answer_login`], or not. Those
    /// that wait go on waiting.
    pub fn hold_logins(&self, is_held: bool) {
        self.logins.hold(is_held);
    }

    /// How many wait.
    pub fn logins_waiting(&self) -> usize {
        self.logins.len()
    }

    /// Verifies the login that waits at this place and answers so many times; with 0 it is never
    /// answered.
    pub fn answer_login(&self, at: usize, times: u32) {
        self.logins.answer(at, times);
    }

    /// Searches a shard for clients whose identifiers begin so, from a place on, as the management
    /// API does; the answer comes with one of its next turns.
    pub fn search(&self, shard: usize, from: usize, prefix: &str) -> Search {
        let filter = ClientFilter { prefix: Some(prefix.to_owned()), ..ClientFilter::default() };
        let filter = Some(Arc::new(filter));
        let scan = ClientScan { from, limit: 256, order: ScanOrder::Slot, filter };
        let (reply, answer) = oneshot::channel();
        self.remote.post(shard, Mail::Query(Box::new(Query::Clients(scan, reply))));
        Search(answer)
    }

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.shared.durable.as_ref().map(|durable: &Durable| &durable.journal)
    }

    /// The simulated loops: time, turns, faults.
    pub fn loops(&mut self) -> &mut Simulation<impl tacho_net::Handler> {
        &mut self.simulation
    }

    /// Connects a client to the first listener of a shard.
    pub fn connect(&mut self, shard: usize) -> Peer {
        self.simulation.connect(shard, 0)
    }

    /// The current time.
    pub fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    /// Each shard's counters.
    pub fn stats(&self) -> &[Arc<ShardStats>] {
        &self.stats
    }

    /// The sum of one counter over all shards.
    pub fn counter(&self, name: &str) -> u64 {
        let values = self.stats.iter().flat_map(|stats| stats.values());
        values.filter(|(known, _)| *known == name).map(|(_, value)| value).sum()
    }

    /// Asks every shard to disconnect its clients and to stop.
    pub fn stop(&self) {
        for shard in 0..self.remote.shards() {
            self.remote.post(shard, Mail::Shutdown);
        }
    }

    /// Whether the loop of a shard still runs.
    pub fn runs(&self, shard: usize) -> bool {
        self.simulation.net(shard).is_some()
    }

    /// What a shard holds at present.
    pub fn held(&self, shard: usize) -> Held {
        let mut held = self.simulation.handler(shard).held();
        held.loop_connections = self.simulation.net(shard).map_or(0, |net| net.connections());
        held.mails = self.remote.mailbox_len(shard);
        held
    }

    /// Bytes to clients of a shard that have not left.
    pub fn output_bytes(&self, shard: usize) -> usize {
        self.simulation.net(shard).map_or(0, Net::unwritten_bytes)
    }

    /// Groups of shared subscriptions that are referenced anywhere, also by remembered routes.
    pub fn groups_len(&self) -> usize {
        self.shared.routes.groups_len()
    }

    /// The totals of the broker over all shards.
    pub fn totals(&self) -> Totals {
        let shards = 0..self.stats.len();
        Totals::new(&self.shared, shards.map(|shard| self.simulation.handler(shard)))
    }

    /// The first total that is above its limit.
    pub fn total_over_limit(&self) -> Option<OverLimit> {
        self.totals().over_limit(&self.shared)
    }

    /// The first queue or buffer of a shard that holds more than its limit allows.
    pub fn over_limit(&self, shard: usize) -> Option<OverLimit> {
        let net = self.simulation.net(shard)?;
        self.simulation.handler(shard).over_limit(net)
    }
}
