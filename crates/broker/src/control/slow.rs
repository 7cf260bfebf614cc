//! The slowest clients: found by asking every shard, piece by piece.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tacho_net::clock;
use tokio::time::{sleep, timeout};

use super::View;
use super::ask::NoAnswer;
use crate::query::{ClientRow, ClientScan, ScanOrder};

/// Between two questions to a shard: it has its clients to serve.
const PAUSE: Duration = Duration::from_millis(2);
/// For all questions together: what has been found by then is the answer.
const WALK: Duration = Duration::from_secs(8);
/// Clients that `/metrics` shows.
const SHOWN: usize = 10;
/// How old what it shows may be before it is looked up again.
const FRESH_NS: u64 = 10_000_000_000;

/// The slowest clients.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Slowest {
    /// The slowest one first.
    pub(super) clients: Vec<ClientRow>,
    /// Whether all sessions were looked at.
    pub(super) complete: bool,
}

impl View {
    /// The `limit` clients that are most behind.
    pub(super) async fn slowest(&self, limit: usize) -> Slowest {
        let mut clients = Vec::new();
        let walk = async {
            for shard in 0..self.stats.len() {
                self.walk(shard, limit, &mut clients).await?;
            }
            Ok::<(), NoAnswer>(())
        };
        let complete = matches!(timeout(WALK, walk).await, Ok(Ok(())));
        Slowest { clients, complete }
    }

    async fn walk(
        &self,
        shard: usize,
        limit: usize,
        found: &mut Vec<ClientRow>,
    ) -> Result<(), NoAnswer> {
        let mut next = Some(0);
        while let Some(from) = next {
            let question = ClientScan { from, limit, order: ScanOrder::Slowest };
            let answer = self.clients(shard, question).await?;
            found.extend(answer.rows);
            found.sort_by_key(|row| Reverse((row.waiting_bytes(), row.dropped)));
            found.truncate(limit);
            next = answer.next;
            if next.is_some() {
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}

/// What `/metrics` shows of them: looked up behind its back, and only while somebody asks, so that
/// no scrape ever waits for a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    clients: Arc<[ClientRow]>,
    /// 0: never.
    taken_ns: u64,
    looking: bool,
}

impl Remembered {
    /// What was found last. If that is old, a new look begins.
    pub(super) fn clients(&self, view: &Arc<View>) -> Arc<[ClientRow]> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = state.taken_ns == 0 || clock::now_ns() - state.taken_ns > FRESH_NS;
        if old && !state.looking {
            state.looking = true;
            tokio::spawn(self.clone().look(Arc::clone(view)));
        }
        Arc::clone(&state.clients)
    }

    async fn look(self, view: Arc<View>) {
        let slowest = view.slowest(SHOWN).await;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clients = slowest.clients.into();
        state.taken_ns = clock::now_ns();
        state.looking = false;
    }
}
