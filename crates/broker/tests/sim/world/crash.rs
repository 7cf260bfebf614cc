//! Ends of the broker, and of the power, and what comes after.

use tacho_journal::sim::Faults as DiskFaults;

use super::{SECOND_NS, World};
use crate::client::{Stage, is_stuck};
use crate::ledger::Ending;

impl World {
    /// One commit, if there is something to commit. False if not.
    pub(super) fn commit(&mut self) -> bool {
        let committed = self.disk.is_some() && self.cluster.commit();
        if committed {
            self.ledger.wills.committed();
        }
        if self.cluster.journal().is_some_and(is_stuck) {
            let links = self.clients.iter_mut().filter_map(|client| client.link.as_mut());
            for link in links.filter(|link| link.stage == Stage::Connecting) {
                link.was_stuck = true;
            }
        }
        committed
    }

    /// The commit thread has its turn, or not.
    pub(super) fn commit_somehow(&mut self) {
        let percent = self.setup.durable.as_ref().map_or(0, |durable| durable.commit_percent);
        if percent > 0 && self.rng.percent(percent) {
            self.commit();
        }
    }

    pub(super) fn begin_disk_faults(&self) {
        if let (Some(disk), Some(durable)) = (&self.disk, &self.setup.durable) {
            disk.set_faults(durable.disk_faults);
        }
    }

    pub(super) fn end_disk_faults(&self) {
        if let Some(disk) = &self.disk {
            disk.set_faults(DiskFaults::default());
            disk.set_capacity(None);
        }
    }

    /// The broker ends, perhaps, or the disk gets full for a while.
    pub(super) fn crash_somehow(&mut self) {
        let Some(durable) = &self.setup.durable else { return };
        let (permille, narrow_bytes) = (durable.crash_permille, durable.narrow_bytes);
        if let (Some(disk), Some(bytes)) = (&self.disk, narrow_bytes)
            && self.rng.percent(5)
        {
            disk.set_capacity(self.rng.percent(50).then_some(bytes));
        }
        if self.rng.below(1000) < permille {
            self.crash();
            while self.rng.percent(20) {
                self.crash();
            }
        }
    }

    /// The broker ends without a farewell and comes back with what is left on the disk.
    fn crash(&mut self) {
        for client in 0..self.clients.len() {
            self.last_words(client);
        }
        let values = self.cluster.stats().iter().flat_map(|stats| stats.values());
        for (name, value) in values.filter(|(name, _)| name.ends_with("_total")) {
            *self.earlier.entry(name).or_default() += value;
        }
        // Invariant: only clusters with a disk crash.
        let (disk, durable) = (self.disk.take(), self.setup.durable.as_ref());
        let (disk, durable) = disk.zip(durable).expect("a broker with a journal");
        let only_kill = durable.only_kills || self.rng.percent(30);
        let disk = if only_kill { disk.kill() } else { disk.power_cut() };
        self.ledger.crashed();
        // A restarted broker has space and a readable disk.
        disk.set_capacity(None);
        disk.set_faults(DiskFaults::default());
        self.setup.shards = self.rng.between(1, 3) as usize;
        self.setup.config.shards = self.setup.shards;
        self.setup.loop_seed = self.rng.next_u64();
        let down_ns = if self.rng.percent(50) { 0 } else { self.rng.below(3 * SECOND_NS) };
        let now_ns = self.cluster.now_ns() + down_ns;
        if self.talks {
            eprintln!("the broker dies, power cut {}, {} shards", !only_kill, self.setup.shards);
        }
        // What is counted per thread has to be given back before the next one begins to count.
        self.cluster = self.setup.cluster(now_ns, None);
        self.cluster = self.setup.cluster(now_ns, Some(&disk));
        self.restored = Some(self.cluster.totals());
        let over = |shard| self.cluster.over_limit(shard);
        self.restored_queues = (0..self.setup.shards).filter_map(over).collect();
        self.disk = Some(disk);
        self.begin_disk_faults();
    }

    /// What the broker had said is heard, or not; then the connection is over.
    fn last_words(&mut self, client: usize) {
        if self.rng.percent(60)
            && let Some(link) = &self.clients[client].link
        {
            let bytes = link.peer.receive(usize::MAX);
            self.take_in(client, &bytes);
        }
        self.clients[client].abandoned.clear();
        let Some(link) = self.clients[client].link.take() else { return };
        let since_ns = match link.peer.is_closing() {
            // The broker had noticed an end before its own.
            true => link.since_ns(self.clients[client].nature.keep_alive_s),
            false => self.cluster.now_ns(),
        };
        let ending = match link.stage {
            Stage::Connecting => Ending::Unaccepted,
            Stage::Leaving => Ending::MaybePolite,
            // What ends with its connection is gone without a trace.
            Stage::Online if link.opening.ephemeral => Ending::MaybePolite,
            Stage::Online => Ending::Lost { since_ns, session_ends: false },
        };
        self.say(client, "has lost its broker");
        self.ended(client, link.stage, link.opening, ending, since_ns);
    }

    /// A counter of the broker, over all its lives.
    pub(super) fn counted(&self, name: &str) -> u64 {
        self.earlier.get(name).copied().unwrap_or(0) + self.cluster.counter(name)
    }

    /// All sessions have ended and all retained messages are deleted: the disk knows that too.
    pub(super) fn nothing_is_kept(&mut self) {
        let Some(disk) = self.disk.take() else { return };
        let disk = disk.kill();
        let cluster = self.setup.cluster(self.cluster.now_ns(), Some(&disk));
        for gauge in ["sessions", "subscriptions", "retained", "retained_bytes"] {
            assert_eq!(cluster.counter(gauge), 0, "the gauge {gauge} after a restart");
        }
        for shard in 0..self.setup.shards {
            let held = cluster.held(shard);
            // What a shard is told at its start waits in its mailbox.
            let expected = tacho_broker::sim::Held { mails: held.mails, ..Default::default() };
            assert_eq!(held, expected, "shard {shard} keeps something after a restart");
        }
    }
}
