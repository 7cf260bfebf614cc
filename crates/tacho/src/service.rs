//! What the service manager is told, by the protocol of sd_notify(3): that the broker runs, is
//! reading its files anew, works, or ends. Without a service manager (NOTIFY_SOCKET) nothing.

use std::io;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tacho_broker::{Broker, GivenSockets, HealthCheck, Watcher};

/// The listening sockets that the service manager has bound (LISTEN_FDS).
///
/// # Errors
/// A sentence: one of them is no TCP socket that listens.
pub(crate) fn sockets() -> Result<GivenSockets, String> {
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(given.len());
    for place in 0..given.len() {
        let socket = given.take_tcp_listener(place).map_err(|error| {
            format!("socket {} of the service manager is no TCP listener: {error}", place + 1)
        })?;
        sockets.extend(socket);
    }
    GivenSockets::new(sockets)
        .map_err(|error| format!("a socket of the service manager cannot be used: {error}"))
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

/// Tells the service manager that the broker works, as long as it does, if it asks for signs of
/// life (WATCHDOG_USEC): it gets two in the time that it allows. Ends when dropped.
pub(crate) fn watchdog(broker: &Broker) -> io::Result<Option<Watcher>> {
    let Some(limit) = sd_notify::watchdog_enabled() else { return Ok(None) };
    let health = broker.health()?;
    let watcher = Watcher::start("watchdog", limit / 2, move || {
        report(&health);
        limit / 2
    });
    watcher.map(Some)
}

fn report(health: &HealthCheck) {
    match health.check() {
        Ok(()) => tell(&[NotifyState::Watchdog]),
        // Said before the service manager ends the broker for it.
        Err(error) => tracing::error!("no sign of life for the service manager: {error}"),
    }
}
