//! What signals do to a running broker, and how its configuration is read again.

use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tacho_broker::{Broker, Config, ReloadHooks, Reloads, ShardStats, Stopper};

use super::BrokerArgs;
use crate::broker_log::LogControl;
use crate::service;

/// How the configuration of a broker with these flags is read again.
pub(super) fn reload_hooks(args: &BrokerArgs, log: LogControl) -> ReloadHooks {
    let args = args.clone();
    ReloadHooks {
        read: Box::new(move || args.read_again()),
        applied: Box::new(move |config: &Config| {
            if let Err(error) = log.reload(&config.log) {
                tracing::error!("the log file cannot be opened anew: {error}");
            }
        }),
    }
}

/// What signals do.
pub(super) struct SignalAnswers {
    stopper: Stopper,
    reloads: Reloads,
    stats: Vec<Arc<ShardStats>>,
    /// For the service manager.
    status: String,
    log: LogControl,
}

impl SignalAnswers {
    pub(super) fn new(broker: &Broker, status: String, log: LogControl) -> Self {
        let (stopper, stats) = (broker.stopper(), broker.stats().to_vec());
        Self { stopper, reloads: broker.reloads().clone(), stats, status, log }
    }

    pub(super) fn until_stopped(self, signals: &mut Signals) {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    service::reloading();
                    self.reload();
                    service::ready(&self.status);
                }
                SIGUSR1 | SIGUSR2 => tracing::info!(
                    "state: {}, log lines left out: {}",
                    state(&self.stats),
                    self.log.dropped_lines()
                ),
                _ => {
                    service::stopping();
                    return self.stopper.stop();
                }
            }
        }
    }

    fn reload(&self) {
        match self.reloads.reload() {
            Ok(report) => tracing::info!("SIGHUP: {report}"),
            Err(error) => {
                // logrotate moves the file away all the same.
                if let Err(error) = self.log.reopen() {
                    tracing::error!("the log file cannot be opened anew: {error}");
                }
                tracing::error!("SIGHUP: nothing has changed: {error}");
            }
        }
    }
}

/// A counter or gauge, summed over the shards.
pub(super) fn total(stats: &[Arc<ShardStats>], name: &str) -> u64 {
    let all = stats.iter().flat_map(|shard| shard.values());
    all.filter(|(known, _)| *known == name).map(|(_, value)| value).sum()
}

/// For the log: what the broker holds and has done.
fn state(stats: &[Arc<ShardStats>]) -> String {
    let total = |name| total(stats, name);
    format!(
        "clients connected: {}, sessions: {}, connections accepted: {}, messages in: {}, out: {}",
        total("sessions_connected"),
        total("sessions"),
        total("accepted_total"),
        total("publishes_in_total"),
        total("publishes_out_total"),
    )
}
