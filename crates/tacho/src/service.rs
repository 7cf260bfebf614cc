//! What the service manager is told, by the protocol of sd_notify(3): that the broker runs, is
//! reading its files anew, works, or ends. Without a service manager (NOTIFY_SOCKET) nothing.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::{io, thread};

use sd_notify::NotifyState;
use tacho_broker::{Broker, HealthCheck};

/// Tells the service manager that the broker works, as long as it does; ends when dropped.
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The broker takes connections.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Files are read anew; [`ready`] follows.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("the service manager is not told of the reload: {error}"),
    }
}

/// The broker ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager cannot be told: {error}");
    }
}

impl Watchdog {
    /// Starts if the service manager asks for signs of life (WATCHDOG_USEC): it gets two in the
    /// time that it allows.
    pub(crate) fn start(broker: &Broker) -> io::Result<Option<Self>> {
        let Some(limit) = sd_notify::watchdog_enabled() else { return Ok(None) };
        let health = broker.health()?;
        let (stop, stopped) = channel::<()>();
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(limit / 2) {
                report(&health);
            }
        })?;
        Ok(Some(Self { stop: Some(stop), thread: Some(thread) }))
    }
}

fn report(health: &HealthCheck) {
    match health.check() {
        Ok(()) => tell(&[NotifyState::Watchdog]),
        // Said before the service manager ends the broker for it.
        Err(error) => tracing::error!("no sign of life for the service manager: {error}"),
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It holds nothing that its panic could lose.
            let _ = thread.join();
        }
    }
}
