//! Questions to shards, and how long one waits for answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::View;
use crate::mail::Mail;

/// How long a shard may take: far longer than the longest turn that is still healthy.
const PATIENCE: Duration = Duration::from_secs(2);

/// A question to one shard; it answers in its next turn.
pub(crate) enum Ask {
    /// Does it take turns?
    Pulse(oneshot::Sender<()>),
    /// Who are its clients?
    Clients(Clients, oneshot::Sender<ClientsAnswer>),
}

/// Asks for some of a shard's sessions.
pub(crate) struct Clients {
    /// The first slot to look at. The shard looks at a bounded number of slots from there on.
    pub(crate) from: usize,
    /// Rows wanted, at most.
    pub(crate) limit: usize,
    pub(crate) order: Order,
}

/// Which sessions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All, by slot.
    Slot,
    /// The slowest connected ones, of the slots that were looked at.
    Slowest,
}

/// Some sessions of a shard.
#[derive(Debug)]
pub(crate) struct ClientsAnswer {
    pub(crate) rows: Vec<ClientRow>,
    /// Where to go on; `None` after the last slot.
    pub(crate) next: Option<usize>,
}

/// One session as users see it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientRow {
    pub(crate) client_id: String,
    pub(crate) shard: usize,
    pub(crate) connected: bool,
    /// Of the peer, while connected.
    pub(crate) address: Option<SocketAddr>,
    /// Of MQTT, at its last CONNECT.
    pub(crate) version: String,
    pub(crate) subscriptions: usize,
    /// Messages that wait for it to take or acknowledge others.
    pub(crate) queue_len: usize,
    pub(crate) queue_bytes: u64,
    /// Messages of QoS 1 and 2 sent and not acknowledged.
    pub(crate) inflight: usize,
    /// Bytes that its connection has not taken.
    pub(crate) output_bytes: usize,
    /// Messages to it that were dropped, for whatever reason.
    pub(crate) dropped: u64,
    /// For how long its connection has been above its limit of output; 0 while it is not.
    pub(crate) blocked_ms: u64,
}

impl ClientRow {
    /// By how much it is behind: orders the slowest.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.queue_bytes + self.output_bytes as u64
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("shard {0} has ended")]
    Ended(usize),
    #[error("shard {0} has not answered in {wait} s", wait = PATIENCE.as_secs())]
    Late(usize),
}

impl View {
    pub(super) async fn pulse(&self, shard: usize) -> Result<(), NoAnswer> {
        self.ask(shard, Ask::Pulse).await
    }

    pub(super) async fn clients(
        &self,
        shard: usize,
        question: Clients,
    ) -> Result<ClientsAnswer, NoAnswer> {
        self.ask(shard, |reply| Ask::Clients(question, reply)).await
    }

    async fn ask<T>(
        &self,
        shard: usize,
        ask: impl FnOnce(oneshot::Sender<T>) -> Ask,
    ) -> Result<T, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        if !self.remote.post(shard, Mail::Ask(Box::new(ask(reply)))) {
            return Err(NoAnswer::Ended(shard));
        }
        match timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(NoAnswer::Ended(shard)),
            Err(_) => Err(NoAnswer::Late(shard)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tacho_net::mailboxes;

    use super::*;

    fn view(mailbox: &tacho_net::Mailbox<Mail>) -> View {
        View::new(Vec::new(), mailbox.remote(), 1)
    }

    fn pulse(view: &View) -> Result<(), NoAnswer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(view.pulse(0))
    }

    #[test]
    fn a_shard_that_takes_no_turns_is_late_and_one_that_has_ended_is_gone() {
        let mailbox = mailboxes::<Mail>(1).remove(0);
        let view = view(&mailbox);
        // Nobody takes the mail.
        assert_eq!(pulse(&view), Err(NoAnswer::Late(0)));
        assert_eq!(NoAnswer::Late(0).to_string(), "shard 0 has not answered in 2 s");
        drop(mailbox);
        assert_eq!(pulse(&view), Err(NoAnswer::Ended(0)));
    }
}
