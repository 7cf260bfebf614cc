//! Queries to shards, with a timeout on their answers.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::View;
use crate::mail::Mail;
use crate::query::{ClientScan, Query, ScannedClients};

/// How long a shard may take: far longer than the longest turn of a healthy shard.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("shard {0} has ended")]
    Ended(usize),
    #[error("shard {0} has not answered within {wait} s", wait = TIMEOUT.as_secs())]
    Late(usize),
}

impl View {
    pub(super) async fn pulse(&self, shard: usize) -> Result<(), NoAnswer> {
        self.ask(shard, Query::Pulse).await
    }

    pub(super) async fn clients(
        &self,
        shard: usize,
        scan: ClientScan,
    ) -> Result<ScannedClients, NoAnswer> {
        self.ask(shard, |reply| Query::Clients(scan, reply)).await
    }

    async fn ask<T>(
        &self,
        shard: usize,
        query: impl FnOnce(oneshot::Sender<T>) -> Query,
    ) -> Result<T, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        if !self.remote.post(shard, Mail::Query(Box::new(query(reply)))) {
            return Err(NoAnswer::Ended(shard));
        }
        match timeout(TIMEOUT, answer).await {
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
    fn blocked_shard_is_late_and_ended_shard_has_ended() {
        let mailbox = mailboxes::<Mail>(1).remove(0);
        let view = view(&mailbox);
        // No shard takes the mail.
        assert_eq!(pulse(&view), Err(NoAnswer::Late(0)));
        assert_eq!(NoAnswer::Late(0).to_string(), "shard 0 has not answered within 2 s");
        drop(mailbox);
        assert_eq!(pulse(&view), Err(NoAnswer::Ended(0)));
    }
}
