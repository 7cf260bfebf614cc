//! The threads of shards: started, and held until all have restored their sessions.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tacho_net::{Loop, LoopConfig, Mailbox, usable_cpus};

use crate::config::Config;
use crate::durable::start::ShardPart;
use crate::mail::Mail;
use crate::shard::{Shard, Shared};
use crate::start_error::StartError;
use crate::stats::ShardStats;

pub(super) fn loop_config(
    config: &Config,
    id: usize,
    listeners: &[TcpListener],
) -> Result<LoopConfig, StartError> {
    let clone = |l: &TcpListener| l.try_clone();
    let listeners = listeners.iter().map(clone).collect::<Result<_, _>>();
    Ok(LoopConfig {
        listeners: listeners.map_err(|source| StartError::Shard { shard: id, source })?,
        cpu: if config.pin_shards { nth_usable_cpu(id) } else { None },
        batch_writes: config.io_uring,
        ..loop_limits(config)
    })
}

/// The settings of a loop that follow from the broker's limits.
pub(crate) fn loop_limits(config: &Config) -> LoopConfig {
    let limits = &config.limits;
    LoopConfig {
        turn_ns_max: u64::from(limits.turn_us_max) * 1_000,
        mailbox_high_len: limits.mailbox_len_max,
        newcomers_budget_ns: u64::from(config.overload.newcomers_us) * 1_000,
        output_high_bytes: limits.output_bytes_max,
        output_low_bytes: limits.output_bytes_max / 4,
        ..LoopConfig::default()
    }
}

/// With more shards than CPUs, CPUs are used more than once.
fn nth_usable_cpu(shard: usize) -> Option<usize> {
    let cpus = usable_cpus();
    (!cpus.is_empty()).then(|| cpus[shard % cpus.len()])
}

/// What the thread of a shard starts with.
pub(super) struct NewShard {
    pub(super) id: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) stats: Arc<ShardStats>,
    pub(super) part: ShardPart,
}

/// A shard that waits to run.
pub(super) struct Ready {
    /// Receives a message once the shard has restored its sessions.
    pub(super) is_restored: mpsc::Receiver<()>,
    /// Lets it run; if this is dropped, it ends.
    pub(super) go: mpsc::SyncSender<()>,
}

/// The thread of a shard, and what it waits for.
pub(super) type StartedShard = (JoinHandle<io::Result<()>>, Ready);

pub(super) fn start_shard(
    config: LoopConfig,
    mailbox: Mailbox<Mail>,
    shard: NewShard,
) -> io::Result<StartedShard> {
    let NewShard { id, shared, stats, part } = shard;
    let (ready, started) = mpsc::sync_channel(1);
    let (restored, is_restored) = mpsc::sync_channel(1);
    let (go, may_go) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(format!("shard-{id}")).spawn(move || {
        let event_loop = match Loop::new(config, mailbox) {
            Ok(event_loop) => event_loop,
            Err(error) => {
                let _ = ready.send(Err(error));
                return Ok(());
            }
        };
        let _ = ready.send(Ok(()));
        let mut shard = Shard::new(id, shared, stats);
        shard.restore(part);
        let _ = restored.send(());
        match may_go.recv() {
            Ok(()) => event_loop.run(&mut shard),
            Err(_) => Ok(()),
        }
    })?;
    match started.recv() {
        Ok(Ok(())) => Ok((thread, Ready { is_restored, go })),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the thread ended during its start")),
    }
}
