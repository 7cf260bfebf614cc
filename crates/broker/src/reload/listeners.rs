//! Listeners that a changed configuration adds, removes or changes. All that can fail is tried
//! before anything is changed, but for the address of a listener that takes another's place.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tacho_net::{Remote, ServerTransport};
use tokio::sync::oneshot;

use crate::access::AccessControl;
use crate::certificates::Certificates;
use crate::config::{Config, Limits, Listener};
use crate::listeners::{ListenerPart, ListenerState, Listening};
use crate::mail::Mail;
use crate::policy::{Files, Texts};
use crate::query::Query;
use crate::shard::Shared;

/// A shard may take so many looks to open or close a socket: 2 s at least.
const LOOKS_MAX: u32 = 2_000;
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What becomes of the listeners.
pub(super) enum ListenerChange {
    /// They are as they were.
    Nothing,
    /// It needs a restart.
    Waits,
    Planned(Box<ListenerPlan>),
}

/// What is to be done; nothing of it can fail but sockets.
pub(super) struct ListenerPlan {
    removed: Vec<usize>,
    added: Vec<(ListenerPart, Option<TcpListener>)>,
    files: Files,
    texts: Texts,
}

/// What listeners belong to.
pub(super) struct ListenerOwners<'a> {
    pub(super) shared: &'a Shared,
    pub(super) listening: &'a Listening,
    pub(super) access: &'a AccessControl,
    pub(super) certificates: &'a Certificates,
    pub(super) remote: &'a Remote<Mail>,
}

impl ListenerOwners<'_> {
    /// Finds out what has changed. `base` is the configuration of the start, whose common settings
    /// are in force; a sentence if the new listeners cannot be used.
    pub(super) fn plan(
        &self,
        base: &Config,
        limits: &Limits,
        new: &Config,
    ) -> Result<ListenerChange, String> {
        let (parts, states) = (self.shared.listeners.all(), self.listening.all());
        let is_there = |number: usize| states.get(number).is_some_and(|state| !state.is_removed);
        let mut kept = vec![false; parts.len()];
        let mut added: Vec<Listener> = Vec::new();
        for wanted in &new.listeners {
            let mut all = parts.iter().enumerate();
            let same = all.find(|(n, part)| is_there(*n) && !kept[*n] && part.listener == *wanted);
            match same {
                Some((number, _)) => kept[number] = true,
                None => added.push(wanted.clone()),
            }
        }
        let removed: Vec<usize> =
            (0..parts.len()).filter(|&number| is_there(number) && !kept[number]).collect();
        if added.is_empty() && removed.is_empty() {
            return Ok(ListenerChange::Nothing);
        }
        let needs_more = |listener: &Listener| {
            let file = &listener.password_file;
            listener.has_levels()
                || file.is_some() && !parts.iter().any(|part| part.listener.password_file == *file)
        };
        if base.access != new.access
            || added.iter().any(needs_more)
            || !self.shared.listeners.has_room_for(added.len())
        {
            return Ok(ListenerChange::Waits);
        }
        let mut all: Vec<Listener> = parts.iter().map(|part| part.listener.clone()).collect();
        all.extend(added.iter().cloned());
        let files = Files::of(&base.with_listeners(all, limits));
        let texts = files.read().map_err(|error| error.to_string())?;
        files.parse(&texts, 1).map_err(|error| error.to_string())?;
        let config = base.with_listeners(added, limits);
        let transports = config.open_transports().map_err(|error| error.to_string())?;
        let freed: Vec<SocketAddr> =
            removed.iter().filter_map(|&number| Some(states.get(number)?.address)).collect();
        let added = self.opened(&config, transports, &freed)?;
        Ok(ListenerChange::Planned(Box::new(ListenerPlan { removed, added, files, texts })))
    }

    /// New listeners with their sockets; those at an address that is not free yet have none.
    fn opened(
        &self,
        config: &Config,
        transports: Vec<ServerTransport>,
        freed: &[SocketAddr],
    ) -> Result<Vec<(ListenerPart, Option<TcpListener>)>, String> {
        let all = config.listeners.iter().zip(transports).enumerate();
        all.map(|(at, (listener, transport))| {
            let address = listener.address;
            let socket = match freed.contains(&address) || self.listening.is_drained() {
                true => None,
                false => {
                    let failed = |error| format!("cannot listen on {address}: {error}");
                    let opened = self.listening.open(address, &listener.sockets.listen());
                    Some(opened.map_err(failed)?)
                }
            };
            let part = ListenerPart::new(config, at, listener.clone(), transport);
            Ok((part, socket))
        })
        .collect()
    }

    /// Does it; sentences about sockets that could not be opened.
    pub(super) fn apply(&self, plan: ListenerPlan) -> Vec<String> {
        let _one_at_a_time = self.listening.change.blocking_lock();
        let ListenerPlan { removed, added, files, texts } = plan;
        let mut problems = Vec::new();
        if let Err(error) = self.access.use_files(files, &texts) {
            problems.push(error.to_string());
        }
        for number in removed {
            if !self.all(|reply| Query::CloseListener(number, reply)) {
                problems.push("a shard does not close a listener in time".to_owned());
            }
            self.listening.change(number, |listener| {
                (listener.is_open, listener.is_removed) = (false, true);
            });
        }
        let first = self.shared.listeners.all().len();
        let (parts, sockets): (Vec<ListenerPart>, Vec<_>) = added.into_iter().unzip();
        let wanted: Vec<_> = parts
            .iter()
            .map(|part| (part.listener.address, part.listener.sockets.listen()))
            .collect();
        parts.iter().for_each(|part| self.certificates.add(part.transport.tls()));
        self.shared.listeners.add(parts);
        for ((number, (address, settings)), socket) in (first..).zip(wanted).zip(sockets) {
            let socket = match socket {
                None if !self.listening.is_drained() => {
                    self.listening.open(address, &settings).map(Some)
                }
                socket => Ok(socket),
            };
            let opened = socket.and_then(|socket| match socket {
                Some(socket) => self.open(number, &socket).map(Some),
                None => Ok(None),
            });
            let open = opened.unwrap_or_else(|error| {
                problems.push(format!("cannot listen on {address}: {error}"));
                None
            });
            let state = ListenerState::open(open.unwrap_or(address), settings);
            self.listening.add(ListenerState { is_open: open.is_some(), ..state });
        }
        problems
    }

    /// Has all shards accept from a socket; its address.
    fn open(&self, number: usize, socket: &TcpListener) -> std::io::Result<SocketAddr> {
        let address = socket.local_addr()?;
        for shard in 0..self.remote.shards() {
            let clone = socket.try_clone()?;
            let listens = self.ask(shard, |reply| Query::Listen(number, clone, reply));
            if listens != Some(true) {
                self.all(|reply| Query::CloseListener(number, reply));
                return Err(std::io::Error::other("an event loop has no room for it"));
            }
        }
        Ok(address)
    }

    /// Whether all shards have done something.
    fn all(&self, query: impl Fn(oneshot::Sender<()>) -> Query) -> bool {
        (0..self.remote.shards()).map(|shard| self.ask(shard, &query)).all(|done| done.is_some())
    }

    fn ask<T>(&self, shard: usize, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Option<T> {
        let (reply, mut answer) = oneshot::channel();
        if !self.remote.post(shard, Mail::Query(Box::new(query(reply)))) {
            return None;
        }
        for _ in 0..LOOKS_MAX {
            match answer.try_recv() {
                Ok(answer) => return Some(answer),
                Err(oneshot::error::TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(oneshot::error::TryRecvError::Closed) => return None,
            }
        }
        None
    }
}
