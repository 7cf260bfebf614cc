//! The control plane: the HTTP endpoints, `/metrics` among them, and the `$SYS` topics. It runs on
//! its own thread, reads the counters of the shards and posts queries to them by mail. Shards never
//! wait for it.
//!
//! Unlike the rest of this crate it reads the clock, since no event loop passes the time to it.

mod access;
mod alarms;
mod ask;
mod bridges;
mod drain;
mod exposition;
mod health;
mod journal;
mod listening;
mod load;
mod management;
mod metrics;
mod names;
mod pages;
mod process;
mod push;
mod routes;
mod slow;
mod sys;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_http::Counters as HttpCounters;
use tacho_journal::Journal;
use tacho_net::{Remote, clock};
use tacho_output::Outputs;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use crate::access::AccessControl;
use crate::bridge::BridgeDirectory;
use crate::certificates::Certificates;
use crate::listeners::Listening;
use crate::mail::Mail;
use crate::permits::Quota;
use crate::stats::{Counter, ShardStats};

use alarms::{AlarmWatch, Alarms};
use drain::Drain;
pub use health::{HealthCheck, Unhealthy};
use push::Push;
use sys::Sys;

pub(crate) use management::{BoundSocket, BridgeStore, Doors, ManagedBroker, ManagementStore};
pub use management::{SocketError, management_folder};

/// The control plane's view of the broker.
pub(crate) struct View {
    pub(crate) stats: Vec<Arc<ShardStats>>,
    pub(crate) remote: Remote<Mail>,
    /// Clients that are connected, and how many may be.
    pub(crate) connections: Arc<Quota>,
    pub(crate) journal: Option<Journal>,
    pub(crate) bridges: Arc<BridgeDirectory>,
    pub(crate) access: Option<AccessControl>,
    /// Present where a listener has TLS.
    pub(crate) certificates: Option<Certificates>,
    alarms: Alarms,
    drain: Drain,
    listening: Arc<Listening>,
    http: Arc<HttpCounters>,
    started_ns: u64,
}

impl View {
    pub(crate) fn new(
        stats: Vec<Arc<ShardStats>>,
        remote: Remote<Mail>,
        connections: Arc<Quota>,
    ) -> Self {
        let (journal, bridges, started_ns) = (None, Arc::default(), clock::now_ns());
        let http = Arc::default();
        let (access, certificates) = (None, None);
        Self {
            stats,
            remote,
            connections,
            journal,
            bridges,
            access,
            certificates,
            alarms: Alarms::default(),
            drain: Drain::default(),
            listening: Arc::default(),
            http,
            started_ns,
        }
    }

    /// Which listeners are open, shared with what opens and closes them.
    pub(crate) fn listens(&mut self, listening: Arc<Listening>) {
        self.listening = listening;
    }

    fn uptime(&self) -> Duration {
        Duration::from_nanos(clock::now_ns().saturating_sub(self.started_ns))
    }

    /// The sum of a counter over all shards.
    fn total(&self, counter: impl Fn(&ShardStats) -> &Counter) -> u64 {
        self.sum(|stats| counter(stats).value())
    }

    fn sum(&self, value: impl Fn(&ShardStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| value(stats)).sum()
    }

    /// The sum over all shards of the counters whose names `wanted` accepts.
    fn total_named(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let values = self.stats.iter().flat_map(|stats| stats.values());
        values.filter(|(name, _)| wanted(name)).map(|(_, value)| value).sum()
    }
}

/// The thread of the control plane. It ends when this is dropped.
pub(crate) struct Control {
    address: Option<SocketAddr>,
    /// Where the management API is served.
    management: (Option<PathBuf>, Option<SocketAddr>),
    management_is_encrypted: bool,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Serves HTTP on `listener` if there is one, and publishes the `$SYS` topics at once and then
    /// every `sys_interval`, unless that is zero. Sends the metrics of the broker at `port` to
    /// `outputs`. Serves the management API where there is a door to it.
    pub(crate) fn start(
        view: View,
        listener: Option<TcpListener>,
        sys_interval: Duration,
        (outputs, port): (Outputs, u16),
        (managed, doors): (ManagedBroker, Doors),
    ) -> io::Result<Self> {
        let management = (doors.path().map(Path::to_owned), doors.address()?);
        let management_is_encrypted = doors.tls.is_some();
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let mut sys = (!sys_interval.is_zero()).then(|| Sys::new(sys_interval));
        if let Some(sys) = &mut sys {
            sys.publish(&view);
        }
        let has_names = view.bridges.now().iter().any(|bridge| bridge.addresses.is_name());
        let mut push = Push::new(outputs, port);
        let is_idle = listener.is_none() && sys.is_none() && !has_names && push.is_empty();
        if is_idle && !doors.are_any() {
            let (stop, thread) = (None, None);
            return Ok(Self { address, management, management_is_encrypted, stop, thread });
        }
        for listener in listener.iter().chain(&doors.listener) {
            listener.set_nonblocking(true)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("control-look")
            .build()?;
        let (shared, certificates) = (Arc::clone(&managed.shared), managed.reloads.certificates());
        let alarms = AlarmWatch::new(&managed.config, certificates, shared);
        let (stop, stopped) = oneshot::channel();
        let view = Arc::new(view);
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(&view, listener) => {}
                    () = manage(&view, managed, doors) => {}
                    () = publish_sys(&view, sys) => {}
                    () = alarms.go_on(&view) => {}
                    () = names::look_up(&view.bridges) => {}
                    () = push.go_on(&view) => {}
                    // Ready also when the sender is dropped.
                    _ = stopped => {}
                }
            });
            push.end(&view);
            // A name lookup may take longer than the broker should take to stop.
            runtime.shutdown_background();
        })?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { address, management, management_is_encrypted, stop, thread })
    }

    /// The path of the management socket.
    pub(crate) fn management_socket(&self) -> Option<&Path> {
        self.management.0.as_deref()
    }

    /// The address that the management API is served on by HTTP.
    pub(crate) const fn management_address(&self) -> Option<SocketAddr> {
        self.management.1
    }

    /// Whether that is HTTPS.
    pub(crate) const fn management_is_encrypted(&self) -> bool {
        self.management_is_encrypted
    }

    /// The address that HTTP is served on.
    pub(crate) const fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It never blocks for long. The broker goes on even if it panicked.
            let _ = thread.join();
        }
    }
}

async fn serve(view: &Arc<View>, listener: Option<TcpListener>) {
    if let Some(listener) = listener
        && let Err(error) = routes::serve(Arc::clone(view), listener).await
    {
        tracing::error!(%error, "the control plane no longer serves HTTP");
    }
    std::future::pending().await
}

async fn manage(view: &Arc<View>, managed: ManagedBroker, doors: Doors) {
    if doors.are_any() {
        management::serve(Arc::clone(view), managed, doors).await;
    }
    std::future::pending().await
}

async fn publish_sys(view: &View, sys: Option<Sys>) {
    if let Some(mut sys) = sys {
        let mut ticks = tokio::time::interval(sys.interval());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate, and the topics have just been published.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            sys.publish(view);
        }
    }
    std::future::pending().await
}
