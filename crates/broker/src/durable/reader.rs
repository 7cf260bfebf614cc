//! Loads messages from the disk on its own thread, so that shards do not block.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use tacho_journal::{Journal, MessageId};
use tacho_net::Remote;

use crate::mail::{Loaded, LoadedFor, Mail};

/// Queued requests; a shard repeats a request that does not fit.
const REQUESTS_MAX: usize = 1_024;

/// Messages that a shard needs.
#[derive(Debug)]
pub(crate) struct LoadRequest {
    pub(crate) shard: usize,
    pub(crate) wanted_for: LoadedFor,
    pub(crate) ids: Vec<MessageId>,
}

/// The receiver of requests.
pub(crate) enum Reader {
    /// A thread.
    Thread(SyncSender<LoadRequest>),
    /// The journal itself, which answers by mail at once: for simulations, where nothing blocks.
    #[cfg(feature = "sim")]
    AtOnce(Remote<Mail>),
}

/// The thread, before its start.
pub(crate) struct ReaderThread {
    journal: Journal,
    remote: Remote<Mail>,
    requests: Receiver<LoadRequest>,
}

impl ReaderThread {
    /// Starts the thread. It ends when all request senders are dropped.
    pub(crate) fn spawn(self) -> io::Result<JoinHandle<()>> {
        let Self { journal, remote, requests } = self;
        std::thread::Builder::new().name("journal-reader".to_owned()).spawn(move || {
            for request in requests {
                answer(&journal, &remote, request);
            }
        })
    }
}

impl Reader {
    /// A reader, and its thread.
    pub(crate) fn new(journal: Journal, remote: Remote<Mail>) -> (Self, ReaderThread) {
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        (Self::Thread(sender), ReaderThread { journal, remote, requests })
    }

    /// Requests messages; returns the request if it has to be repeated later.
    #[cfg_attr(not(feature = "sim"), allow(unused_variables))]
    pub(crate) fn ask(&self, journal: &Journal, request: LoadRequest) -> Result<(), LoadRequest> {
        match self {
            Self::Thread(sender) => sender.try_send(request).map_err(|error| match error {
                TrySendError::Full(request) | TrySendError::Disconnected(request) => request,
            }),
            #[cfg(feature = "sim")]
            Self::AtOnce(remote) => {
                answer(journal, remote, request);
                Ok(())
            }
        }
    }
}

fn answer(journal: &Journal, remote: &Remote<Mail>, request: LoadRequest) {
    let LoadRequest { shard, wanted_for, ids } = request;
    let messages = journal.read(&ids);
    remote.post(shard, Mail::Loaded(Box::new(Loaded { wanted_for, messages })));
}
