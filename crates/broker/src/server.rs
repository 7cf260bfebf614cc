//! The broker as a whole: binds the listeners, starts one thread per shard, and stops them.

mod shard_threads;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_net::tls::TlsServer;
use tacho_net::{FdLimit, ListenSettings, Mailbox, Remote, mailboxes, raise_fd_limit};
use tacho_output::{OutputSetting, Outputs};
use tacho_topic::Group;

use crate::access::{
    AccessControl, Audit, AuditThread, Backend, KeyFetcher, KeyThread, KeysWanted, Logins, Looked,
    SharedAccess, open_audit,
};
use crate::authentication::AuthMethods;
use crate::bridge::{self, Bridges};
use crate::certificates::Certificates;
use crate::config::{Config, ConfigError, Listener};
use crate::control::{
    BoundSocket, BridgeStore, Control, Doors, HealthCheck, ManagedBroker, ManagementStore, View,
};
use crate::durable::JournalError;
use crate::durable::start::ShardPart;
use crate::durable::threads::{IdleJournal, JournalThreads};
use crate::given_sockets::GivenSockets;
use crate::listeners::{ListenerParts, Listening};
use crate::mail::Mail;
use crate::reload::Reloads;
use crate::shard::{Authenticators, Shared};
use crate::start_error::StartError;
use crate::stats::ShardStats;
use crate::watcher::Watcher;

#[cfg(feature = "sim")]
pub(crate) use shard_threads::loop_limits;
use shard_threads::{NewShard, Ready, loop_config, start_shard};

/// File descriptors reserved for listeners, event loops, logs and refusals.
const FDS_RESERVED: u64 = 128;
/// Pending connections the kernel keeps of the listeners for HTTP.
const HTTP_BACKLOG: u32 = 4096;
/// A change of files of access control counts if they are the same after this time: what is written
/// in between is read half.
const CHANGE_CONFIRMED_AFTER: Duration = Duration::from_secs(1);
/// Part of the reserve: connections above the limit that stay open until their refusal is sent.
const REFUSALS_MAX: usize = 64;

/// A running broker. Dropping it leaves its shards running; use [`Broker::stop`] and
/// [`Broker::join`].
pub struct Broker {
    addresses: Vec<SocketAddr>,
    connections_max: usize,
    remote: Remote<Mail>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    shared: Arc<Shared>,
    stats: Vec<Arc<ShardStats>>,
    certificates: Certificates,
    access: AccessControl,
    reloads: Reloads,
    listening: Arc<Listening>,
    /// They stop with the broker.
    _watchers: Vec<Watcher>,
    /// Present where the keys of tokens come from a URL.
    _key_thread: Option<KeyThread>,
    /// Stops with the broker; present once it has started.
    control: Option<Control>,
    /// Present with a data directory.
    journal: Option<JournalThreads>,
    /// Present with an audit log.
    audit: Option<AuditThread>,
}

/// A snapshot of a shared subscription. While messages are on their way between shards, the numbers
/// may be from slightly different moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSubscription {
    /// `$share/name/filter`.
    pub filter: String,
    /// Members that are connected.
    pub connected: u32,
    /// QoS 1 and 2 messages that the connected members could take at once.
    pub free_credit: i64,
    /// QoS 1 and 2 messages on their way to the connected members or not acknowledged by them.
    pub inflight: i64,
    /// Messages queued because no member can take them.
    pub waiting: usize,
}

impl SharedSubscription {
    fn from_group(group: &Group) -> Self {
        let loads = || (0..group.shards()).map(|shard| group.load(shard));
        Self {
            filter: group.shared_filter().to_string(),
            connected: loads().map(|load| load.connected).sum(),
            free_credit: loads().map(|load| load.free_credit).sum(),
            inflight: loads().map(|load| load.inflight).sum(),
            waiting: group.waiting(),
        }
    }
}

/// Asks a broker to stop, from any thread.
#[derive(Clone)]
pub struct Stopper {
    remote: Remote<Mail>,
}

impl Broker {
    /// Raises the limit on file descriptors, binds all listeners, and starts the shards.
    ///
    /// # Errors
    /// A listener cannot be bound or an event loop cannot be created.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with(config, AuthMethods::default(), GivenSockets::default())
    }

    /// Like [`Broker::start`], with methods of enhanced authentication, where a CONNECT that names
    /// another method is refused, and with sockets that are bound already.
    ///
    /// # Errors
    /// See [`Broker::start`]; a socket is at an address where the broker does not listen.
    pub fn start_with(
        mut config: Config,
        auth_methods: AuthMethods,
        given: GivenSockets,
    ) -> Result<Self, StartError> {
        let fd_limit = raise_fd_limit().unwrap_or(FdLimit { soft: 1024, hard: 1024 });
        let transports = config.open_transports()?;
        let listeners = bind_all(&config, &given)?;
        let metrics = config.metrics.map(|address| bind_one(address, &given)).transpose()?;
        let store = ManagementStore::open(&config.management)?;
        // Without the bridges that operators have made: a reload leaves those alone.
        let written = config.clone();
        let stored = BridgeStore::open(&config.management, &mut config.bridges)?;
        let outputs = OutputSetting { targets: config.output_targets()?, cpus: Vec::new() };
        let outputs = Outputs::start(&outputs)?;
        let addresses = addresses_of(&listeners, &config)?;
        let management_tls = config.management.open_tls()?;
        let doors = open_doors(&config, (&addresses, &given), management_tls.clone())?;
        let connections_max = connections_max(&config, fd_limit);
        let sockets_max = descriptors_for_sockets(fd_limit);
        let boxes = mailboxes::<Mail>(config.shards);
        let remote = boxes[0].remote();
        let certificates = Certificates::of(&transports, management_tls, remote.clone());
        let (audit, audit_thread) = start_audit(&config)?;
        let access =
            AccessControl::open(&config, remote.clone(), audit).map_err(ConfigError::Access)?;
        access.begin_with_bans(store.applied_bans());
        let keys = KeyFetcher::new(config.access.jwt.as_ref())?;
        let wanted = keys.as_ref().map(KeyFetcher::wanted);
        let listener_parts = Arc::new(ListenerParts::of(&config, transports));
        let parts_of_access = (&access, Arc::clone(&listener_parts));
        let shared_access = share_access(&config, parts_of_access, &remote, wanted.as_ref())?;
        let maxima = (connections_max, sockets_max);
        let mut shared = Shared::new(&config, listener_parts, shared_access, maxima);
        shared.authenticators =
            Some(Authenticators { methods: auth_methods, remote: remote.clone() });
        shared.set_bridges(Bridges::open(&config)?);
        let (idle_journal, parts) = open_journal(&config, &mut shared, &remote)?;
        let shared = Arc::new(shared);
        let journal = start_journal(&config, idle_journal, &shared, &remote)?;
        let watchers =
            start_watchers(&config, &certificates, &access).map_err(StartError::Control)?;
        let listening = Arc::new(Listening::of(&addresses, &config.listeners, given));
        let of_files = (certificates.clone(), access.clone());
        let possible = descriptors_for_sockets(fd_limit) - REFUSALS_MAX;
        let reloads =
            Reloads::new(&written, of_files, (&shared, &listening), remote.clone(), possible);
        let key_thread = keys.map(|keys| keys.start(access.clone())).transpose();
        let mut broker = Self {
            addresses,
            connections_max,
            remote,
            threads: Vec::new(),
            shared,
            stats: Vec::new(),
            certificates,
            access,
            reloads,
            listening,
            _watchers: watchers,
            _key_thread: key_thread.map_err(StartError::Control)?,
            control: None,
            journal,
            audit: audit_thread,
        };
        broker.start_shards(&config, &listeners, boxes, parts)?;
        broker.start_control(config, (metrics, outputs), (store, stored, doors))?;
        Ok(broker)
    }

    /// Starts the shards' threads, and lets them run once each has restored its sessions: a shard
    /// that runs may ask any other for them.
    fn start_shards(
        &mut self,
        config: &Config,
        listeners: &[TcpListener],
        mailboxes: Vec<Mailbox<Mail>>,
        parts: Vec<ShardPart>,
    ) -> Result<(), StartError> {
        let mut ready = Vec::new();
        for ((id, mailbox), part) in mailboxes.into_iter().enumerate().zip(parts) {
            let stats = Arc::new(ShardStats::default());
            self.stats.push(Arc::clone(&stats));
            let loop_config = loop_config(config, id, listeners)?;
            let shard = NewShard { id, shared: Arc::clone(&self.shared), stats, part };
            match start_shard(loop_config, mailbox, shard) {
                Ok((thread, shard)) => {
                    self.threads.push(thread);
                    ready.push(shard);
                }
                Err(source) => {
                    drop(ready);
                    self.stop();
                    return Err(StartError::Shard { shard: id, source });
                }
            }
        }
        self.let_run(ready)
    }

    fn start_control(
        &mut self,
        config: Config,
        (metrics, outputs): (Option<TcpListener>, Outputs),
        (store, bridges, doors): (ManagementStore, BridgeStore, Doors),
    ) -> Result<(), StartError> {
        let connections = Arc::clone(&self.shared.connections);
        let mut view = View::new(self.stats.clone(), self.remote.clone(), connections);
        view.journal = self.shared.durable.as_ref().map(|durable| durable.journal.clone());
        view.bridges = Arc::clone(&self.shared.bridges_now);
        view.access = Some(self.access.clone());
        view.certificates = Some(self.certificates.clone()).filter(|all| !all.is_empty());
        view.listens(Arc::clone(&self.listening));
        let sys_interval = Duration::from_secs(u64::from(config.sys_interval_s));
        let port = self.addresses.first().map_or(0, SocketAddr::port);
        let managed = ManagedBroker {
            shared: Arc::clone(&self.shared),
            access: self.access.clone(),
            reloads: self.reloads.clone(),
            config,
            store,
            bridges,
        };
        let management = (managed, doors);
        match Control::start(view, metrics, sys_interval, (outputs, port), management) {
            Ok(control) => self.control = Some(control),
            Err(error) => {
                self.stop();
                return Err(StartError::Control(error));
            }
        }
        Ok(())
    }

    /// Lets all shards run once each has restored its sessions.
    fn let_run(&self, go: Vec<Ready>) -> Result<(), StartError> {
        for (shard, ready) in go.iter().enumerate() {
            if ready.is_restored.recv().is_err() {
                self.stop();
                return Err(StartError::Panicked { shard });
            }
        }
        for (shard, ready) in go.into_iter().enumerate() {
            self.remote.post(shard, Mail::Recovered);
            // `join` reports a shard that has ended.
            let _ = ready.go.send(());
        }
        Ok(())
    }

    /// The address of the HTTP endpoints, if one is configured.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.control.as_ref().and_then(Control::address)
    }

    /// The path of the management socket, if there is one.
    pub fn management_socket(&self) -> Option<&Path> {
        self.control.as_ref().and_then(Control::management_socket)
    }

    /// The address of the management API by HTTP, if one is configured.
    pub fn management_address(&self) -> Option<SocketAddr> {
        self.control.as_ref().and_then(Control::management_address)
    }

    /// The address of the management API by HTTP as a URL, if one is configured.
    pub fn management_url(&self) -> Option<String> {
        let address = self.management_address()?;
        let is_encrypted = self.control.as_ref().is_some_and(Control::management_is_encrypted);
        let scheme = if is_encrypted { "https" } else { "http" };
        Some(format!("{scheme}://{address}"))
    }

    /// The addresses listened on, with the ports that the system chose where 0 was configured.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Limit on concurrent connections.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// The certificates of the listeners.
    pub const fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The files of access control.
    pub const fn access(&self) -> &AccessControl {
        &self.access
    }

    /// Reads the configuration and what it names again.
    pub const fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// Each shard's counters.
    pub fn stats(&self) -> &[Arc<ShardStats>] {
        &self.stats
    }

    /// The shared subscriptions that have members, in no particular order.
    pub fn shared_subscriptions(&self) -> Vec<SharedSubscription> {
        self.shared
            .routes
            .groups()
            .iter()
            .filter(|group| group.members() > 0)
            .map(|group| SharedSubscription::from_group(group))
            .collect()
    }

    /// The status of the bridges, in the order of the configuration.
    pub fn bridges(&self) -> Vec<bridge::Status> {
        self.shared.bridges_now.status()
    }

    /// A handle that can ask this broker whether it works.
    ///
    /// # Errors
    /// The system gives no descriptors for it.
    pub fn health(&self) -> io::Result<HealthCheck> {
        let connections = Arc::clone(&self.shared.connections);
        let view = View::new(self.stats.clone(), self.remote.clone(), connections);
        HealthCheck::new(view)
    }

    /// A handle that can ask this broker to stop.
    pub fn stopper(&self) -> Stopper {
        Stopper { remote: self.remote.clone() }
    }

    /// Asks the broker to stop: 5.0 clients get DISCONNECT 0x8B, connections are closed.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// Waits until all shards have ended.
    ///
    /// # Errors
    /// A shard failed or panicked.
    pub fn join(self) -> Result<(), StartError> {
        let mut result = Ok(());
        for (shard, thread) in self.threads.into_iter().enumerate() {
            let ended = match thread.join() {
                Ok(ended) => ended.map_err(|source| StartError::Shard { shard, source }),
                Err(_) => Err(StartError::Panicked { shard }),
            };
            if result.is_ok() {
                result = ended;
            }
        }
        drop(self.control);
        drop(self.shared);
        if let Some(journal) = self.journal {
            journal.stop();
        }
        if let Some(audit) = self.audit {
            audit.end();
        }
        result
    }
}

impl Stopper {
    /// See [`Broker::stop`].
    pub fn stop(&self) {
        for shard in 0..self.remote.shards() {
            self.remote.post(shard, Mail::Shutdown);
        }
    }
}

/// Opens the socket and the listener of the management API, if there are any.
fn open_doors(
    config: &Config,
    (addresses, given): (&[SocketAddr], &GivenSockets),
    tls: Option<Arc<TlsServer>>,
) -> Result<Doors, StartError> {
    let settings = &config.management;
    let listener = settings.listen.map(|address| bind_one(address, given)).transpose()?;
    let port = addresses.first().map_or(0, SocketAddr::port);
    let socket =
        BoundSocket::open(settings.socket.as_ref(), port).map_err(StartError::ManagementSocket)?;
    Ok(Doors { socket, listener, tls })
}

/// Opens the audit log, if there is one, and starts its thread.
fn start_audit(config: &Config) -> Result<(Audit, Option<AuditThread>), StartError> {
    let Some(file) = open_audit(config)? else { return Ok((Audit::default(), None)) };
    let (audit, thread) = Audit::start(file).map_err(StartError::Control)?;
    Ok((audit, Some(thread)))
}

/// The threads that look for changes of certificates and of the files of access control.
fn start_watchers(
    config: &Config,
    certificates: &Certificates,
    access: &AccessControl,
) -> io::Result<Vec<Watcher>> {
    let mut watchers = Vec::new();
    let every = Duration::from_secs(u64::from(config.certificates_check_s));
    if !certificates.is_empty() && !every.is_zero() {
        let certificates = certificates.clone();
        watchers.push(Watcher::start("certificates", every, move || {
            certificates.reload();
            every
        })?);
    }
    let every = Duration::from_secs(u64::from(config.access.check_s));
    if access.has_files() && !every.is_zero() {
        let access = access.clone();
        watchers.push(Watcher::start("access-files", every, move || match access.look() {
            Looked::Settled => every,
            Looked::Changing => CHANGE_CONFIRMED_AFTER,
        })?);
    }
    Ok(watchers)
}

/// What shards know of access control. Where clients log in, the threads that verify passwords or
/// ask backends are started.
fn share_access(
    config: &Config,
    (access, listeners): (&AccessControl, Arc<ListenerParts>),
    remote: &Remote<Mail>,
    wanted: Option<&KeysWanted>,
) -> Result<SharedAccess, StartError> {
    let settings = &config.access;
    let logins = match access.policy().has_logins() {
        true => {
            let waiting_max = settings.logins_waiting_max as usize;
            Logins::start(settings.threads(), waiting_max, remote, wanted)
        }
        false => Ok(Logins::None),
    };
    let logins = logins.map_err(StartError::Logins)?;
    let (backends, healths) = (Backend::open_all(config)?, access.backends());
    let backends = Backend::start_all(backends, healths, &access.unix_offset(), remote);
    let backends = backends.map_err(StartError::Logins)?;
    let shared = SharedAccess::new(config, listeners, access, logins, backends);
    shared.map_err(|error| StartError::Logins(io::Error::other(error)))
}

/// Opens the data directory, if there is one, and reads it back: returns its threads, not running
/// yet, and what each shard starts with.
fn open_journal(
    config: &Config,
    shared: &mut Shared,
    remote: &Remote<Mail>,
) -> Result<(Option<IdleJournal>, Vec<ShardPart>), StartError> {
    let Some(directory) = &config.data_dir else {
        return Ok((None, (0..config.shards).map(|_| ShardPart::default()).collect()));
    };
    let opened = IdleJournal::open(directory.clone(), &shared.recovery_context(config), remote);
    let (journal, durable, parts) = opened.map_err(|source| unusable(directory, source))?;
    shared.durable = Some(durable);
    Ok((Some(journal), parts))
}

/// Starts the journal's threads. Shards that wait for commits are notified by mail.
fn start_journal(
    config: &Config,
    journal: Option<IdleJournal>,
    shared: &Arc<Shared>,
    remote: &Remote<Mail>,
) -> Result<Option<JournalThreads>, StartError> {
    let (Some(journal), Some(directory)) = (journal, &config.data_dir) else { return Ok(None) };
    // Weak, since the shards end before their last records are committed.
    let (shared, remote) = (Arc::downgrade(shared), remote.clone());
    let committed = move || {
        if let Some(shared) = shared.upgrade()
            && let Some(durable) = &shared.durable
        {
            durable.committed(&remote);
        }
    };
    journal.spawn(committed).map(Some).map_err(|source| unusable(directory, source))
}

fn unusable(directory: &Path, source: JournalError) -> StartError {
    StartError::Journal { directory: directory.to_path_buf(), source }
}

fn bind_all(config: &Config, given: &GivenSockets) -> Result<Vec<TcpListener>, StartError> {
    if let Some(address) = given.unclaimed(config) {
        return Err(StartError::UnclaimedSocket { address });
    }
    let all = config.listeners.iter();
    all.map(|listener| {
        let address = listener.address;
        let bound = given.listen(address, &listener.sockets.listen());
        bound.map_err(|source| StartError::Bind { address, source })
    })
    .collect()
}

/// Where they listen: with the ports that the system chose.
fn addresses_of(sockets: &[TcpListener], config: &Config) -> Result<Vec<SocketAddr>, StartError> {
    let listeners = config.listeners.iter().zip(sockets);
    let bound = |(listener, socket): (&Listener, &TcpListener)| {
        let address = listener.address;
        socket.local_addr().map_err(|source| StartError::Bind { address, source })
    };
    listeners.map(bound).collect()
}

fn bind_one(address: SocketAddr, given: &GivenSockets) -> Result<TcpListener, StartError> {
    let settings = ListenSettings::with_backlog(HTTP_BACKLOG);
    given.listen(address, &settings).map_err(|source| StartError::Bind { address, source })
}

/// How many sockets can be open at once.
fn descriptors_for_sockets(fd_limit: FdLimit) -> usize {
    fd_limit.soft.saturating_sub(FDS_RESERVED).max(16) as usize + REFUSALS_MAX
}

/// The configured limit, or what the descriptor limit allows if that is lower.
fn connections_max(config: &Config, fd_limit: FdLimit) -> usize {
    let possible = descriptors_for_sockets(fd_limit) - REFUSALS_MAX;
    match config.limits.connections_max {
        0 => possible,
        wanted => {
            if wanted > possible {
                tracing::warn!(
                    "limits.connections_max is {wanted}, but {} descriptors allow {possible}: \
                     raise `ulimit -n`",
                    fd_limit.soft
                );
            }
            wanted.min(possible)
        }
    }
}
