//! The listeners' sockets while the broker runs: closed, and opened again at the same addresses.

use std::io;
use std::net::{SocketAddr, TcpListener};

use serde::Serialize;

use super::View;
use super::ask::NoAnswer;
use crate::listeners::ListenerState;
use crate::query::Query;

/// Whether a listener takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ListenerPhase {
    /// It does.
    Open,
    /// An operator has stopped it.
    Stopped,
    /// The broker is being drained, or it could not be opened again.
    Closed,
}

/// Why a listener does not take connections.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotListen {
    #[error("cannot listen on {address}: {source}")]
    System { address: SocketAddr, source: io::Error },
    #[error("cannot listen on {0}: an event loop has no room for it")]
    Shard(SocketAddr),
    #[error("there is no listener at {0}")]
    Unknown(SocketAddr),
    #[error("the broker is being drained: `undrain` opens its listeners")]
    Drained,
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

impl View {
    /// The number and the address of each listener, and whether it takes connections.
    pub(super) fn listener_phases(&self) -> Vec<(usize, SocketAddr, ListenerPhase)> {
        let phase = |listener: &ListenerState| match (listener.is_open, listener.is_stopped) {
            (true, _) => ListenerPhase::Open,
            (false, true) => ListenerPhase::Stopped,
            (false, false) => ListenerPhase::Closed,
        };
        let all = self.listening.all().into_iter().enumerate();
        all.filter(|(_, listener)| !listener.is_removed)
            .map(|(number, listener)| (number, listener.address, phase(&listener)))
            .collect()
    }

    fn find_listener(&self, address: SocketAddr) -> Result<(usize, ListenerState), CannotListen> {
        let mut all = self.listening.all().into_iter().enumerate();
        let found = all.find(|(_, l)| l.address == address && !l.is_removed);
        found.ok_or(CannotListen::Unknown(address))
    }
}

impl View {
    /// Closes all listeners; returns once no connection is taken any more.
    pub(super) async fn close_listeners(&self) -> Result<(), NoAnswer> {
        let _one_at_a_time = self.listening.change.lock().await;
        self.listening.set_drained(true);
        for (index, listener) in self.listening.all().into_iter().enumerate() {
            if listener.is_open {
                self.close_listener(index).await?;
            }
        }
        Ok(())
    }

    /// Opens all listeners that are closed, and that no operator has stopped. Those that can be
    /// opened are, also when others cannot.
    pub(super) async fn open_listeners(&self) -> Result<(), CannotListen> {
        let _one_at_a_time = self.listening.change.lock().await;
        self.listening.set_drained(false);
        let mut result = Ok(());
        for (index, listener) in self.listening.all().into_iter().enumerate() {
            if !listener.is_open && !listener.is_stopped && !listener.is_removed {
                let opened = self.open_listener(index, &listener).await;
                result = result.and(opened);
            }
        }
        result
    }

    /// Closes a listener for an operator; connections that it has stay.
    pub(super) async fn stop_listener(&self, address: SocketAddr) -> Result<(), CannotListen> {
        let _one_at_a_time = self.listening.change.lock().await;
        let (index, listener) = self.find_listener(address)?;
        self.listening.change(index, |listener| listener.is_stopped = true);
        if listener.is_open {
            self.close_listener(index).await?;
        }
        Ok(())
    }

    /// Opens a listener that an operator has stopped.
    pub(super) async fn start_listener(&self, address: SocketAddr) -> Result<(), CannotListen> {
        let _one_at_a_time = self.listening.change.lock().await;
        let (index, listener) = self.find_listener(address)?;
        if self.listening.is_drained() {
            return Err(CannotListen::Drained);
        }
        if !listener.is_open {
            self.open_listener(index, &listener).await?;
        }
        self.listening.change(index, |listener| listener.is_stopped = false);
        Ok(())
    }

    /// Closes the socket of a listener in all shards.
    async fn close_listener(&self, index: usize) -> Result<(), NoAnswer> {
        for shard in 0..self.stats.len() {
            self.ask(shard, |reply| Query::CloseListener(index, reply)).await?;
        }
        self.listening.change(index, |listener| listener.is_open = false);
        Ok(())
    }

    async fn open_listener(
        &self,
        index: usize,
        listener: &ListenerState,
    ) -> Result<(), CannotListen> {
        let address = listener.address;
        let socket = self.listening.open(address, &listener.sockets);
        let socket = socket.map_err(|source| CannotListen::System { address, source })?;
        let opened = self.share_socket(index, address, &socket).await;
        if opened.is_err() {
            // Connections would be taken by some shards only. What led here is told.
            let _ = self.close_listener(index).await;
            return opened;
        }
        self.listening.change(index, |listener| listener.is_open = true);
        Ok(())
    }

    async fn share_socket(
        &self,
        index: usize,
        address: SocketAddr,
        socket: &TcpListener,
    ) -> Result<(), CannotListen> {
        for shard in 0..self.stats.len() {
            let failed = |source| CannotListen::System { address, source };
            let clone = socket.try_clone().map_err(failed)?;
            if !self.ask(shard, |reply| Query::Listen(index, clone, reply)).await? {
                return Err(CannotListen::Shard(address));
            }
        }
        Ok(())
    }
}
