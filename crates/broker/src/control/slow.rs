//! The slowest clients, found by scanning the sessions of every shard in pieces.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tacho_net::clock;
use tokio::time::{sleep, timeout};

use super::View;
use super::ask::NoAnswer;
use crate::query::{ClientRow, ClientScan, ScanOrder};

/// Pause between two queries to a shard, which has clients to serve.
const PAUSE: Duration = Duration::from_millis(2);
/// Limit for a whole scan: what has been found by then is the answer.
const SCAN_TIMEOUT: Duration = Duration::from_secs(8);
/// Clients on the metrics page.
const SHOWN: usize = 10;
/// Age of the shown clients from which a new scan begins.
const FRESH_NS: u64 = 10_000_000_000;

/// The slowest clients.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Slowest {
    /// The slowest client first.
    pub(super) clients: Vec<ClientRow>,
    /// Whether all sessions were scanned.
    pub(super) complete: bool,
}

impl View {
    /// The `limit` clients with the most queued bytes, those whose queue is full first.
    pub(super) async fn slowest(&self, limit: usize) -> Slowest {
        self.first_of(limit, ScanOrder::Slowest).await
    }

    /// The `limit` clients that come first in this order.
    pub(super) async fn first_of(&self, limit: usize, order: ScanOrder) -> Slowest {
        let mut clients = Vec::new();
        let scan = async {
            for shard in 0..self.stats.len() {
                self.scan_shard(shard, (limit, order), &mut clients).await?;
            }
            Ok::<(), NoAnswer>(())
        };
        let complete = matches!(timeout(SCAN_TIMEOUT, scan).await, Ok(Ok(())));
        Slowest { clients, complete }
    }

    async fn scan_shard(
        &self,
        shard: usize,
        (limit, order): (usize, ScanOrder),
        found: &mut Vec<ClientRow>,
    ) -> Result<(), NoAnswer> {
        let mut next = Some(0);
        while let Some(from) = next {
            let query = ClientScan { from, limit, order, filter: None };
            let answer = self.clients(shard, query).await?;
            found.extend(answer.rows);
            match order {
                ScanOrder::Queue => {
                    found.sort_by_key(|row| Reverse((row.queue_bytes, row.queue_len)));
                }
                ScanOrder::Slot | ScanOrder::Slowest => found
                    .sort_by_key(|row| Reverse((row.queue_full, row.waiting_bytes(), row.dropped))),
            }
            found.truncate(limit);
            next = answer.next;
            if next.is_some() {
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}

/// The slowest clients for `/metrics`: a scrape starts a scan in the background and returns the
/// result of the last one, so that it never waits for a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowClients(Arc<Mutex<LastScan>>);

#[derive(Debug, Default)]
struct LastScan {
    clients: Arc<[ClientRow]>,
    /// 0 before the first scan.
    taken_ns: u64,
    is_scanning: bool,
}

impl SlowClients {
    /// The result of the last scan. If it is old, a new scan begins.
    pub(super) fn clients(&self, view: &Arc<View>) -> Arc<[ClientRow]> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = state.taken_ns == 0 || clock::now_ns() - state.taken_ns > FRESH_NS;
        if old && !state.is_scanning {
            state.is_scanning = true;
            tokio::spawn(self.clone().scan(Arc::clone(view)));
        }
        Arc::clone(&state.clients)
    }

    async fn scan(self, view: Arc<View>) {
        let slowest = view.slowest(SHOWN).await;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clients = slowest.clients.into();
        state.taken_ns = clock::now_ns();
        state.is_scanning = false;
    }
}
