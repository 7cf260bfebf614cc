//! The management API, `/api/v1`: on a Unix socket for the processes of the broker's own user, and
//! by HTTP on loopback for programs with a key.
//!
//! It runs on the thread of the control plane. What it asks shards is cut into pieces that clients
//! do not notice; what it changes goes to the audit log.

mod alarms;
mod answers;
mod backup;
mod bans;
mod bridge_store;
mod bridges;
mod clients;
mod configuration;
mod cursor;
mod drain;
mod events;
mod explain;
mod gate;
mod groups;
mod history;
mod keys;
mod listeners;
mod operations;
mod publish;
mod retained;
mod socket;
mod sse;
mod status;
mod store;
mod subscribers;
mod top;
mod topics;
mod trace;
mod users;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use tacho_http::{ApiError, Counters, Limits, TlsSource};
use tacho_net::tls::TlsServer;
use tokio::sync::{Mutex, MutexGuard, Semaphore};
use tokio::time::timeout;

use super::View;
use super::routes::{OwnNames, guard};
use crate::access::{AccessControl, AuditEvent, AuditKind, Name};
use crate::config::Config;
use crate::policy::Policy;
use crate::reload::Reloads;
use crate::shard::Shared;

use backup::LastBackup;
use gate::{Caller, KeyGate};
use history::History;
use topics::CountedTopics;
use trace::RunningTraces;

pub(crate) use bridge_store::BridgeStore;
pub(crate) use socket::BoundSocket;
pub use socket::{SocketError, folder as management_folder};
pub(crate) use store::ManagementStore;

/// Connections to each of the doors; when there are more, one that is idle gives way.
const CONNECTIONS_MAX: usize = 32;
/// How long a search through all sessions waits for another one.
const SEARCH_WAIT: Duration = Duration::from_secs(4);

/// What the API needs to know of the broker beside what the control plane knows.
pub(crate) struct ManagedBroker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) access: AccessControl,
    pub(crate) reloads: Reloads,
    pub(crate) config: Config,
    pub(crate) store: ManagementStore,
    pub(crate) bridges: BridgeStore,
}

/// Where the API is served.
#[derive(Default)]
pub(crate) struct Doors {
    pub(crate) socket: Option<BoundSocket>,
    pub(crate) listener: Option<TcpListener>,
    /// The listener's, if it has TLS.
    pub(crate) tls: Option<Arc<TlsServer>>,
}

impl Doors {
    pub(crate) const fn are_any(&self) -> bool {
        self.socket.is_some() || self.listener.is_some()
    }

    /// The path of the socket.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.socket.as_ref().map(BoundSocket::path)
    }

    /// The address of the listener.
    pub(crate) fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.listener.as_ref().map(TcpListener::local_addr).transpose()
    }
}

/// What all requests share.
#[derive(Clone)]
struct Api(Arc<ApiShared>);

struct ApiShared {
    view: Arc<View>,
    broker: ManagedBroker,
    gate: KeyGate,
    /// Held during a search through all sessions: one at a time.
    search: Mutex<()>,
    /// Places of watchers of events.
    watchers: Arc<Semaphore>,
    traces: RunningTraces,
    /// Filters whose messages are counted.
    topics: CountedTopics,
    /// Held while publishes are counted: for one at a time.
    counting: Mutex<()>,
    /// Held while bridges are changed: one at a time.
    bridging: Mutex<()>,
    /// Held while a bridge is tested: one at a time.
    trying: Arc<Semaphore>,
    history: History,
    backup: LastBackup,
}

impl Api {
    fn view(&self) -> &View {
        &self.0.view
    }

    fn broker(&self) -> &ManagedBroker {
        &self.0.broker
    }

    fn gate(&self) -> &KeyGate {
        &self.0.gate
    }

    /// Users, rules and bans of the files, as they are in force.
    fn policy(&self) -> Arc<Policy> {
        self.broker().access.policy()
    }

    /// A place among those that look at everything: one at a time.
    async fn search(&self) -> Result<MutexGuard<'_, ()>, ApiError> {
        let place = timeout(SEARCH_WAIT, self.0.search.lock()).await;
        place.map_err(|_| {
            let message = "another search is running: try again later";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })
    }

    /// Notes in the audit log what an operator has done.
    fn note(&self, caller: &Caller, action: &'static str, event: AuditEvent) {
        let by = Some(Name::new(caller.name()));
        let event = AuditEvent { event: AuditKind::Managed, action: Some(action), by, ..event };
        self.broker().shared.access.audit.note(event);
    }
}

/// Serves the API until the control plane ends.
pub(super) async fn serve(view: Arc<View>, broker: ManagedBroker, doors: Doors) {
    let gate = KeyGate::new(broker.config.management.requests_per_s_max);
    let watchers = Arc::new(Semaphore::new(events::WATCHERS_MAX));
    let api = Api(Arc::new(ApiShared {
        view,
        broker,
        gate,
        search: Mutex::default(),
        watchers,
        traces: RunningTraces::default(),
        topics: CountedTopics::default(),
        counting: Mutex::default(),
        bridging: Mutex::default(),
        trying: Arc::new(Semaphore::new(1)),
        history: History::default(),
        backup: LastBackup::default(),
    }));
    let Doors { socket, listener, tls } = doors;
    tokio::join!(
        serve_socket(api.clone(), socket),
        serve_http(api.clone(), listener, tls),
        history::keep(api),
    );
}

/// Bounds of connections. A body that is too long is refused before its connection is.
fn limits(api: &Api) -> Limits {
    let limits = Limits::with_places(CONNECTIONS_MAX);
    let request_bytes_max = limits.request_bytes_max + 2 * operations::body_bytes_max(api);
    Limits { request_bytes_max, ..limits }
}

async fn serve_socket(api: Api, socket: Option<BoundSocket>) {
    let Some(socket) = socket else { return };
    let listener = match socket.listener() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the management socket cannot be used"),
    };
    let limits = limits(&api);
    let router = operations::router(api).layer(from_fn(gate::enter_by_socket));
    let served = tacho_http::serve_socket(
        (listener, socket::admits),
        router,
        limits,
        Arc::<Counters>::default(),
        std::future::pending(),
    );
    if let Err(error) = served.await {
        tracing::error!(%error, "the management socket is no longer served");
    }
}

async fn serve_http(api: Api, listener: Option<TcpListener>, tls: Option<Arc<TlsServer>>) {
    let Some(listener) = listener else { return };
    let limits = limits(&api);
    let router = operations::router(api.clone())
        .layer(from_fn_with_state(api, gate::enter_by_key))
        .layer(from_fn_with_state(
            match tls {
                // Without TLS it listens on loopback only.
                None => OwnNames::Loopback,
                // A foreign name has no certificate here.
                Some(_) => OwnNames::Any,
            },
            guard,
        ));
    let (counters, end) = (Arc::<Counters>::default(), std::future::pending());
    let served = match tls {
        None => tacho_http::serve(listener, router, limits, counters, end).await,
        Some(tls) => {
            let source: TlsSource = Arc::new(move || tls.config());
            tacho_http::serve_tls((listener, source), router, limits, counters, end).await
        }
    };
    if let Err(error) = served {
        tracing::error!(%error, "the management API is no longer served by HTTP");
    }
}
