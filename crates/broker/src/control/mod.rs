//! The control plane: `/metrics` and other questions by HTTP, `$SYS` topics. One thread of its own;
//! it reads the shards' counters and posts mail to them, and they never wait for it.
//!
//! Time is read here, unlike in the rest of this crate: a control plane has no loop to give it.

mod ask;
mod bridges;
mod connection;
mod exposition;
mod journal;
mod load;
mod metrics;
mod names;
mod process;
mod routes;
mod slow;
mod sys;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_journal::Journal;
use tacho_net::{Remote, clock};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use crate::bridge::Bridges;
use crate::mail::Mail;
use crate::stats::{Counter, ShardStats};

use sys::Sys;

/// What the control plane sees of the broker.
pub(crate) struct View {
    pub(crate) stats: Vec<Arc<ShardStats>>,
    pub(crate) remote: Remote<Mail>,
    pub(crate) connections_max: usize,
    pub(crate) journal: Option<Journal>,
    pub(crate) bridges: Arc<Bridges>,
    started_ns: u64,
}

impl View {
    pub(crate) fn new(
        stats: Vec<Arc<ShardStats>>,
        remote: Remote<Mail>,
        connections_max: usize,
    ) -> Self {
        let (journal, bridges, started_ns) = (None, Arc::default(), clock::now_ns());
        Self { stats, remote, connections_max, journal, bridges, started_ns }
    }

    fn uptime(&self) -> Duration {
        Duration::from_nanos(clock::now_ns().saturating_sub(self.started_ns))
    }

    /// One counter, summed over all shards.
    fn total(&self, counter: impl Fn(&ShardStats) -> &Counter) -> u64 {
        self.sum(|stats| counter(stats).value())
    }

    fn sum(&self, value: impl Fn(&ShardStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| value(stats)).sum()
    }

    /// The counters whose names `wanted` accepts, summed over all shards.
    fn total_named(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let values = self.stats.iter().flat_map(|stats| stats.values());
        values.filter(|(name, _)| wanted(name)).map(|(_, value)| value).sum()
    }
}

/// The control plane's thread. It ends when this is dropped.
pub(crate) struct Control {
    address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Serves on `listener` if there is one, and publishes `$SYS` topics every `sys_interval`
    /// unless that is zero; the first ones at once.
    pub(crate) fn start(
        view: View,
        listener: Option<TcpListener>,
        sys_interval: Duration,
    ) -> io::Result<Self> {
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let mut sys = (!sys_interval.is_zero()).then(|| Sys::new(sys_interval));
        if let Some(sys) = &mut sys {
            sys.publish(&view);
        }
        let has_names = view.bridges.iter().any(|bridge| bridge.addresses.is_name());
        if listener.is_none() && sys.is_none() && !has_names {
            return Ok(Self { address, stop: None, thread: None });
        }
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let view = Arc::new(view);
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(&view, listener) => {}
                    () = publish_sys(&view, sys) => {}
                    () = names::look_up(&view.bridges) => {}
                    // Also when the sender is dropped.
                    _ = stopped => {}
                }
            });
            // A look-up may take longer than anybody wants to wait for.
            runtime.shutdown_background();
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it serves.
    pub(crate) const fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It never blocks for long, and whatever became of it, the broker goes on.
            let _ = thread.join();
        }
    }
}

async fn serve(view: &Arc<View>, listener: Option<TcpListener>) {
    if let Some(listener) = listener
        && let Err(error) = routes::serve(Arc::clone(view), listener).await
    {
        tracing::error!(%error, "metrics are no longer served");
    }
    std::future::pending().await
}

async fn publish_sys(view: &View, sys: Option<Sys>) {
    if let Some(mut sys) = sys {
        let mut ticks = tokio::time::interval(sys.interval());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is at once, and has been published.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            sys.publish(view);
        }
    }
    std::future::pending().await
}
