//! Logins that a backend behind HTTP decides. Threads of their own ask it, since it may take its
//! time; a queue of bounded length is before them. Where there are several, each has its own.

mod agents;
mod circuit;
mod exchange;
mod health;

use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tacho_access::{FilledRequest, LoginFields, RequestClient};
use tacho_net::{Remote, clock};

use super::unix_offset::UnixOffset;
use crate::authentication::ExchangeRef;
use crate::config::{Config, ConfigError, HttpMethod, HttpSettings, SecretHeader};
use crate::login_answer::{BackendLogin, LoginAnswer};
use crate::mail::Mail;
use crate::policy::is_readable_by_all;
use agents::Agents;
use circuit::Circuit;
use exchange::BackendExchange;

pub use exchange::BackendOutcome;
pub(crate) use health::{BackendHealth, BackendResult, NamedHealth};

/// A client that logs in.
pub(crate) struct BackendJob {
    pub(crate) request: FilledRequest,
    /// Gone when the client is.
    pub(crate) client: Weak<()>,
    /// The shard where its CONNECT waits.
    pub(crate) shard: usize,
    pub(crate) to: ExchangeRef,
}

/// What asks the backend, before its threads are started.
pub(crate) struct Backend {
    settings: HttpSettings,
    fields: LoginFields,
    agents: Agents,
}

/// The threads that ask a backend, and the queue before them. They end with it.
pub(crate) struct BackendLogins {
    settings: HttpSettings,
    fields: LoginFields,
    jobs: SyncSender<BackendJob>,
    health: Arc<BackendHealth>,
}

/// What the threads share.
struct BackendThreads {
    exchange: BackendExchange,
    circuit: Mutex<Circuit>,
    health: Arc<BackendHealth>,
    unix_offset: Arc<UnixOffset>,
    waiting: Mutex<Receiver<BackendJob>>,
    remote: Remote<Mail>,
}

impl Backend {
    /// Reads certificates and secrets of all backends; nothing is asked yet.
    pub(crate) fn open_all(config: &Config) -> Result<Vec<Self>, ConfigError> {
        let mut backends = Vec::new();
        for (index, settings) in config.access.http.all().iter().enumerate() {
            let backend = Self::open(settings)?;
            warn(settings, &backend.fields);
            if config.listeners.iter().all(|l| l.login_backend.index() != Some(index)) {
                let shown = settings.shown();
                tracing::warn!("access.http: {shown}: no listener has it as `login_backend`");
            }
            backends.push(backend);
        }
        Ok(backends)
    }

    fn open(settings: &HttpSettings) -> Result<Self, ConfigError> {
        let fields = settings.fields()?;
        let agents = Agents::open(settings, clock::now_ns()).map_err(|what| {
            let name = settings.name.as_ref().map(|name| format!("`{name}`: "));
            ConfigError::Http(format!("{}{what}", name.unwrap_or_default()))
        })?;
        Ok(Self { settings: settings.clone(), fields, agents })
    }

    /// Starts the threads of all. `healths` are those of the backends in the same order.
    pub(crate) fn start_all(
        backends: Vec<Self>,
        healths: &[NamedHealth],
        unix_offset: &Arc<UnixOffset>,
        remote: &Remote<Mail>,
    ) -> io::Result<Vec<BackendLogins>> {
        let (mut started, mut threads) = (Vec::new(), 0);
        for (backend, NamedHealth { health, .. }) in backends.into_iter().zip(healths) {
            let count = backend.settings.connections_max;
            let numbers = threads..threads + count;
            threads += count;
            let (health, unix_offset) = (Arc::clone(health), Arc::clone(unix_offset));
            started.push(backend.start(numbers, health, unix_offset, remote)?);
        }
        Ok(started)
    }

    /// Starts threads with these numbers. They answer by mail, and read the wall clock when an
    /// answer has come.
    fn start(
        self,
        numbers: Range<u32>,
        health: Arc<BackendHealth>,
        unix_offset: Arc<UnixOffset>,
        remote: &Remote<Mail>,
    ) -> io::Result<BackendLogins> {
        let Self { settings, fields, agents } = self;
        let (jobs, waiting) = sync_channel(settings.waiting_max as usize);
        let asking = Arc::new(BackendThreads {
            circuit: Mutex::new(Circuit::new(settings.failures_max, settings.pause_s)),
            exchange: BackendExchange::new(settings.clone(), agents, Arc::clone(&health)),
            health: Arc::clone(&health),
            unix_offset,
            waiting: Mutex::new(waiting),
            remote: remote.clone(),
        });
        for number in numbers {
            let asking = Arc::clone(&asking);
            std::thread::Builder::new()
                .name(format!("login-http-{number}"))
                .spawn(move || asking.run())?;
        }
        Ok(BackendLogins { settings, fields, jobs, health })
    }
}

/// Asks a backend about one client, as a broker would ask it.
///
/// # Errors
/// Certificates or secrets of the backend cannot be used.
pub fn ask_backend(
    settings: &HttpSettings,
    client: &RequestClient<'_>,
) -> Result<BackendOutcome, ConfigError> {
    let Backend { settings, fields, agents } = Backend::open(settings)?;
    let exchange = BackendExchange::new(settings, agents, Arc::default());
    Ok(exchange.run(&fields.fill(client), clock::now_ns()))
}

/// Tells of what is less safe than it may seem.
fn warn(settings: &HttpSettings, fields: &LoginFields) {
    if !settings.is_encrypted() && !is_loopback(settings.origin()) {
        tracing::warn!(
            "{}: what clients log in with crosses the network unencrypted: use https",
            settings.origin()
        );
    }
    if settings.method == HttpMethod::Get && fields.has_password() {
        tracing::warn!(
            "{}: passwords are in the URL, which servers write to their logs: use method = \"post\"",
            settings.origin()
        );
    }
    let files = settings.secret_headers.values().filter_map(|source| match source {
        SecretHeader::File { file, .. } => Some(file),
        SecretHeader::Env { .. } | SecretHeader::Unknown => None,
    });
    for path in files.chain(&settings.key_file).filter(|path| is_readable_by_all(path)) {
        tracing::warn!(
            "{}: all users of this machine may read the secrets in it (chmod o-r)",
            path.display()
        );
    }
}

fn is_loopback(origin: &str) -> bool {
    let uri: Option<ureq::http::Uri> = origin.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl BackendLogins {
    pub(crate) const fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// What the backend is sent about a client.
    pub(crate) const fn fields(&self) -> &LoginFields {
        &self.fields
    }

    /// Hands a login to the threads; false if too many wait already.
    pub(crate) fn ask(&self, job: BackendJob) -> bool {
        // Before a thread can take it.
        self.health.came();
        match self.jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.health.went();
                false
            }
        }
    }
}

impl BackendThreads {
    fn run(&self) {
        loop {
            // The lock is held while this thread waits: the others wait for the lock instead.
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(BackendJob { request, client, shard, to }) = next else { return };
            self.health.went();
            // A client that has given up needs no answer.
            if client.strong_count() > 0 {
                let answer = LoginAnswer::Backend(self.ask(&request));
                // It may say when the login ends.
                self.unix_offset.read_again();
                self.remote.post(shard, Mail::LoggedIn(to, Box::new(answer)));
            }
        }
    }

    fn ask(&self, request: &FilledRequest) -> BackendLogin {
        let circuit = || self.circuit.lock().unwrap_or_else(PoisonError::into_inner);
        let begun_ns = clock::now_ns();
        if !circuit().admits(begun_ns) {
            self.health.skipped();
            return BackendLogin::Unavailable;
        }
        let outcome = self.exchange.run(request, begun_ns);
        let now_ns = clock::now_ns();
        let is_paused = {
            let mut circuit = circuit();
            match outcome.is_silence() {
                true => circuit.failed(now_ns),
                false => circuit.answered(),
            }
            circuit.is_open()
        };
        self.health.observe(now_ns.saturating_sub(begun_ns));
        self.exchange.tell(&outcome, is_paused, now_ns);
        outcome.into_login()
    }
}
