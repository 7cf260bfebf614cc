//! Pages of clients, gathered from the shards in bounded pieces.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;

use super::View;
use super::ask::NoAnswer;
use crate::query::{ClientFilter, ClientRow, ClientScan, ScanOrder};

/// Rows per query to a shard.
pub(super) const ROWS_PER_QUERY: usize = 256;
/// Queries per answer: a page may have fewer rows than requested and a `next`.
const QUERIES_MAX: usize = 64;
/// Pause between two queries of a search, in which a shard serves its clients.
const PAUSE: Duration = Duration::from_millis(1);

/// A page of sessions.
#[derive(Serialize)]
pub(super) struct ClientPage {
    pub(super) clients: Vec<ClientRow>,
    /// Where the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl View {
    /// Up to `limit` clients from a place on.
    pub(super) async fn page(
        &self,
        start: PageStart,
        limit: usize,
        filter: Option<&Arc<ClientFilter>>,
    ) -> Result<ClientPage, NoAnswer> {
        let mut clients = Vec::new();
        let mut place = start;
        for query in 0..QUERIES_MAX {
            if place.shard >= self.stats.len() {
                return Ok(ClientPage { clients, next: None });
            }
            let left = limit - clients.len();
            if left == 0 {
                break;
            }
            if filter.is_some() && query > 0 {
                sleep(PAUSE).await;
            }
            let limit = left.min(ROWS_PER_QUERY);
            let filter = filter.cloned();
            let scan = ClientScan { from: place.slot, limit, order: ScanOrder::Slot, filter };
            let answer = self.clients(place.shard, scan).await?;
            clients.extend(answer.rows);
            place = match answer.next {
                Some(slot) => PageStart { slot, ..place },
                None => PageStart { shard: place.shard + 1, slot: 0 },
            };
        }
        let next = (place.shard < self.stats.len()).then(|| place.text());
        Ok(ClientPage { clients, next })
    }
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageStart {
    pub(super) shard: usize,
    pub(super) slot: usize,
}

impl PageStart {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (shard, slot) = text.split_once('.')?;
        Some(Self { shard: shard.parse().ok()?, slot: slot.parse().ok()? })
    }

    pub(super) fn text(self) -> String {
        format!("{}.{}", self.shard, self.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_start_round_trips_as_text() {
        let place = PageStart { shard: 3, slot: 1_048_576 };
        assert_eq!(PageStart::parse(&place.text()), Some(place));
        for text in ["", "1", "1.", ".1", "1.2.3", "-1.2", "a.b"] {
            assert_eq!(PageStart::parse(text), None, "{text}");
        }
    }
}
