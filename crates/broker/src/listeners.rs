//! Listeners as shards and the control plane know them. A listener keeps its number until the
//! broker ends; one whose configuration has changed gets another, and its connections go on under
//! the old one.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tacho_net::{ListenSettings, ServerTransport};

use crate::config::{Config, Listener, QueuePolicies, SessionLevels};
use crate::gate::Gate;
use crate::given_sockets::GivenSockets;

/// Numbers of listeners; connections hold theirs in 16 bits.
const NUMBERS_MAX: usize = 4_096;

/// What a listener is to the connections that come by it.
pub(crate) struct ListenerPart {
    /// As it is configured.
    pub(crate) listener: Listener,
    /// What it puts between its sockets and us.
    pub(crate) transport: ServerTransport,
    /// What it lets in.
    pub(crate) gate: Gate,
    /// Policies for full queues.
    pub(crate) queue_policies: QueuePolicies,
    /// Durability levels of sessions.
    pub(crate) levels: SessionLevels,
}

/// All listeners by number, read without locks.
pub(crate) struct ListenerParts(ArcSwap<Vec<Arc<ListenerPart>>>);

impl ListenerParts {
    /// Those of a configuration, with their transports.
    pub(crate) fn of(config: &Config, transports: Vec<ServerTransport>) -> Self {
        let all = config.listeners.iter().zip(transports).enumerate();
        let all = all.map(|(at, (listener, transport))| {
            Arc::new(ListenerPart::new(config, at, listener.clone(), transport))
        });
        Self(ArcSwap::from_pointee(all.collect()))
    }

    /// The listener with a number.
    pub(crate) fn get(&self, number: usize) -> Option<Arc<ListenerPart>> {
        self.0.load().get(number).cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<ListenerPart>>> {
        self.0.load_full()
    }

    /// Whether there are numbers for so many more.
    pub(crate) fn has_room_for(&self, more: usize) -> bool {
        self.0.load().len() + more <= NUMBERS_MAX
    }

    /// Adds some: only one thread does that at a time.
    pub(crate) fn add(&self, parts: impl IntoIterator<Item = ListenerPart>) {
        let mut all = Vec::clone(&self.0.load());
        all.extend(parts.into_iter().map(Arc::new));
        self.0.store(Arc::new(all));
    }
}

impl ListenerPart {
    /// The listener at this place of a configuration.
    pub(crate) fn new(
        config: &Config,
        at: usize,
        listener: Listener,
        transport: ServerTransport,
    ) -> Self {
        let gate = Gate::new(&listener);
        let (queue_policies, levels) = (config.queue_policies(), config.session_levels());
        // Invariant: both have one for each listener.
        let (queue_policies, levels) = (queue_policies[at], levels[at]);
        Self { listener, transport, gate, queue_policies, levels }
    }
}

/// Which listeners take connections. One request at a time changes that.
#[derive(Default)]
pub(crate) struct Listening {
    /// By number.
    listeners: Mutex<Vec<ListenerState>>,
    /// Held while sockets are opened and closed.
    pub(crate) change: tokio::sync::Mutex<()>,
    /// None may be opened: the broker is being drained.
    is_drained: AtomicBool,
    given: GivenSockets,
}

/// One listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerState {
    /// With the port that the system chose where 0 was configured.
    pub(crate) address: SocketAddr,
    pub(crate) sockets: ListenSettings,
    pub(crate) is_open: bool,
    /// An operator has stopped it.
    pub(crate) is_stopped: bool,
    /// The configuration has it no more.
    pub(crate) is_removed: bool,
}

impl ListenerState {
    /// One that takes connections.
    pub(crate) const fn open(address: SocketAddr, sockets: ListenSettings) -> Self {
        Self { address, sockets, is_open: true, is_stopped: false, is_removed: false }
    }
}

impl Listening {
    /// All of these are open.
    pub(crate) fn of(
        addresses: &[SocketAddr],
        listeners: &[Listener],
        given: GivenSockets,
    ) -> Self {
        let all = addresses.iter().zip(listeners);
        let open = all.map(|(&address, of)| ListenerState::open(address, of.sockets.listen()));
        Self { listeners: Mutex::new(open.collect()), given, ..Self::default() }
    }

    /// A socket that listens there.
    pub(crate) fn open(
        &self,
        address: SocketAddr,
        settings: &ListenSettings,
    ) -> io::Result<TcpListener> {
        self.given.listen(address, settings)
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> Vec<ListenerState> {
        self.lock().clone()
    }

    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut ListenerState)) {
        if let Some(listener) = self.lock().get_mut(number) {
            change(listener);
        }
    }

    /// None may be opened.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }

    pub(crate) fn set_drained(&self, is_drained: bool) {
        self.is_drained.store(is_drained, Ordering::Relaxed);
    }

    /// Another one, with the next number.
    pub(crate) fn add(&self, listener: ListenerState) {
        self.lock().push(listener);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ListenerState>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
