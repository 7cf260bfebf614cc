//! The broker's shards on simulated loops: for tests.
//!
//! A [`Cluster`] is a whole broker in one thread, without sockets and clock: see
//! [`tacho_net::sim`]. The shards are those of [`Broker`](crate::Broker), unchanged.

use std::sync::Arc;

use tacho_net::sim::{Faults, Peer, Simulation};
use tacho_net::{LoopConfig, Mailbox, Remote, mailboxes};

use crate::config::{Config, ConfigError};
use crate::mail::Mail;
use crate::server::loop_limits;
use crate::shard::{Shard, Shared};
use crate::stats::ShardStats;

pub use crate::shard::{Held, OverLimit, Totals};

/// A broker whose shards take turns as a seed says.
pub struct Cluster {
    simulation: Simulation<Shard>,
    shared: Arc<Shared>,
    stats: Vec<Arc<ShardStats>>,
    remote: Remote<Mail>,
}

impl Cluster {
    /// The broker of `config` at the time `now_ns`. `bounds` may narrow what a turn does; its
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
        let connections_max = match config.limits.connections_max {
            0 => usize::MAX / 2,
            max => max,
        };
        let transports = config.open_transports()?;
        let shared = Arc::new(Shared::new(config, transports, connections_max, usize::MAX));
        let stats: Vec<_> = (0..config.shards).map(|_| Arc::new(ShardStats::default())).collect();
        let boxes = mailboxes::<Mail>(config.shards);
        let remote = boxes[0].remote();
        let shard = |(id, mailbox): (usize, Mailbox<Mail>)| {
            let shard = Shard::new(id, Arc::clone(&shared), Arc::clone(&stats[id]));
            (bounds(loop_limits(config)), mailbox, shard)
        };
        let shards = boxes.into_iter().enumerate().map(shard);
        let simulation = Simulation::new(seed, faults, now_ns, shards);
        Ok(Self { simulation, shared, stats, remote })
    }

    /// Time, turns, faults.
    pub fn loops(&mut self) -> &mut Simulation<impl tacho_net::Handler> {
        &mut self.simulation
    }

    /// A client connects to the first listener of a shard.
    pub fn connect(&mut self, shard: usize) -> Peer {
        self.simulation.connect(shard, 0)
    }

    /// The present time.
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

    /// Asks every shard to say goodbye to its clients and to stop.
    pub fn stop(&self) {
        for shard in 0..self.remote.shards() {
            self.remote.post(shard, Mail::Shutdown);
        }
    }

    /// Whether a shard's loop still runs.
    pub fn runs(&self, shard: usize) -> bool {
        self.simulation.net(shard).is_some()
    }

    /// What a shard holds now.
    pub fn held(&self, shard: usize) -> Held {
        let mut held = self.simulation.handler(shard).held();
        held.loop_connections = self.simulation.net(shard).map_or(0, |net| net.connections());
        held.mails = self.remote.mailbox_len(shard);
        held
    }

    /// What the broker counts over all shards.
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
