//! Queries to shards, with a timeout on their answers.

use std::time::Duration;

use tacho_net::clock;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::View;
use crate::mail::Mail;
use crate::query::{ClientScan, Query, ScannedClients};

/// How long a shard may take, or lag: far longer than the longest turn of a healthy shard.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("shard {0} has ended")]
    Ended(usize),
    #[error("shard {0} has not answered within {wait} s", wait = TIMEOUT.as_secs())]
    Late(usize),
    #[error("the event loop of shard {shard} lags: what arrives waits {lag_ms} ms")]
    Lagging { shard: usize, lag_ms: u64 },
}

impl View {
    async fn pulse(&self, shard: usize) -> Result<(), NoAnswer> {
        self.ask(shard, Query::Pulse).await
    }

    /// Whether a shard takes turns, and does what it is asked in time.
    async fn health(&self, shard: usize) -> Result<(), NoAnswer> {
        self.pulse(shard).await?;
        let is_lagging =
            || self.stats[shard].lagging_ns(clock::now_ns()) >= TIMEOUT.as_nanos() as u64;
        if is_lagging() {
            // A shard that had nothing to do since has looked at its lag when it answered.
            self.pulse(shard).await?;
        }
        if is_lagging() {
            let lag_ms = self.stats[shard].loop_lag_us.value() / 1_000;
            return Err(NoAnswer::Lagging { shard, lag_ms });
        }
        Ok(())
    }

    /// Whether all shards take turns, and do what they are asked in time.
    pub(super) async fn health_of_all(&self) -> Result<(), NoAnswer> {
        for shard in 0..self.stats.len() {
            self.health(shard).await?;
        }
        Ok(())
    }

    pub(super) async fn clients(
        &self,
        shard: usize,
        scan: ClientScan,
    ) -> Result<ScannedClients, NoAnswer> {
        self.ask(shard, |reply| Query::Clients(scan, reply)).await
    }

    pub(super) async fn ask<T>(
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
    use std::sync::Arc;

    use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, mailboxes};

    use crate::message::SharedPayload;
    use crate::permits::Quota;

    use super::*;

    fn view(mailbox: &tacho_net::Mailbox<Mail>) -> View {
        View::new(vec![Arc::default()], mailbox.remote(), Quota::new(1))
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn blocked_shard_is_late_and_ended_shard_has_ended() {
        let mailbox = mailboxes::<Mail>(1).remove(0);
        let view = view(&mailbox);
        // No shard takes the mail.
        assert_eq!(run(view.health(0)), Err(NoAnswer::Late(0)));
        assert_eq!(NoAnswer::Late(0).to_string(), "shard 0 has not answered within 2 s");
        drop(mailbox);
        assert_eq!(run(view.health(0)), Err(NoAnswer::Ended(0)));
    }

    /// A shard that answers at once, whatever its lag.
    struct Answers;

    impl Handler for Answers {
        type Mail = Mail;
        type Shared = SharedPayload;

        fn accepted(&mut self, _: &mut Net<Self>, _: ConnId, _: usize) {}

        fn input(&mut self, _: &mut Net<Self>, _: ConnId, data: &[u8]) -> usize {
            data.len()
        }

        fn closed(&mut self, _: &mut Net<Self>, _: ConnId, _: Closed) {}

        fn mail(&mut self, net: &mut Net<Self>, _: usize, mail: Mail) {
            match mail {
                Mail::Query(query) => {
                    if let Query::Pulse(reply) = *query {
                        let _ = reply.send(());
                    }
                }
                _ => net.stop(),
            }
        }
    }

    #[test]
    fn shard_that_answers_but_has_lagged_for_two_seconds_is_unhealthy() {
        let mailbox = mailboxes::<Mail>(1).remove(0);
        let view = view(&mailbox);
        let event_loop = Loop::new(LoopConfig::default(), mailbox).expect("a loop");
        let thread = std::thread::spawn(move || event_loop.run(&mut Answers));
        let lags_for = |seconds: u64| {
            let since_ns = clock::now_ns().saturating_sub(seconds * 1_000_000_000);
            view.stats[0].loop_lag_us.set(1_200_000);
            view.stats[0].note_lagging(Some(since_ns));
        };
        assert_eq!(run(view.health(0)), Ok(()));
        lags_for(0);
        assert_eq!(run(view.health(0)), Ok(()), "for less than two seconds");
        lags_for(3);
        let lagging = NoAnswer::Lagging { shard: 0, lag_ms: 1_200 };
        assert_eq!(run(view.health(0)), Err(lagging));
        let text = "the event loop of shard 0 lags: what arrives waits 1200 ms";
        assert_eq!(lagging.to_string(), text);
        view.stats[0].note_lagging(None);
        assert_eq!(run(view.health(0)), Ok(()));
        view.remote.post(0, Mail::Shutdown);
        thread.join().expect("no panic").expect("runs");
    }
}
