//! What a shard tells the control plane: its loop's figures after each turn, and answers to its
//! scans, each bounded so that clients do not notice.

#[cfg(feature = "sim")]
mod inspect;

use crate::keys::SessionSlot;
use crate::query::{ClientRow, ClientScan, Query, ScanOrder, ScannedClients};
use crate::shard::sessions::Session;
use crate::shard::{Net, Shard};

#[cfg(feature = "sim")]
pub use inspect::{Held, OverLimit, Totals};

/// Sessions looked at for one scan: a few hundred microseconds.
const SESSIONS_LOOKED_AT: usize = 1_024;

impl Shard {
    /// Tells what the loop has counted. A few plain stores per turn.
    #[inline]
    pub(super) fn note_turn(&mut self, net: &Net) {
        let (stats, counters) = (&self.stats, net.counters());
        if counters.turns > 1 {
            stats.turn_ns.observe(net.last_turn_ns());
        }
        stats.turns_total.set(counters.turns);
        stats.slow_turns_total.set(counters.slow_turns);
        stats.turn_ns_max.set(counters.turn_ns_max);
        stats.turn_cpu_ns_max.set(counters.turn_cpu_ns_max);
        stats.turn_units_max.set(counters.turn_units_max);
        stats.sleeps_total.set(counters.sleeps);
        stats.busy_ns_total.set(counters.busy_ns);
        stats.reads_total.set(counters.reads);
        stats.writes_total.set(counters.writes);
        stats.wakes_total.set(counters.wakes);
        stats.bytes_in_total.set(counters.read_bytes);
        stats.bytes_out_total.set(counters.written_bytes);
    }

    /// Sends the answer. The requester may have given up meanwhile, which is harmless.
    #[cold]
    pub(super) fn asked(&self, net: &Net, query: Query) {
        match query {
            Query::Pulse(reply) => drop(reply.send(())),
            Query::Clients(scan, reply) => drop(reply.send(self.clients(net, &scan))),
        }
    }

    fn clients(&self, net: &Net, scan: &ClientScan) -> ScannedClients {
        // Slots are never above the capacity.
        let slots = self.sessions.slots_end();
        let end = scan.from.saturating_add(SESSIONS_LOOKED_AT).min(slots);
        let candidates = (scan.from..end)
            .filter_map(|slot| Some((slot, self.sessions.get(SessionSlot::new(slot as u32))?)));
        match scan.order {
            ScanOrder::Slot => {
                let mut candidates = candidates.peekable();
                let rows = candidates
                    .by_ref()
                    .take(scan.limit)
                    .map(|(_, session)| self.client_row(net, session))
                    .collect();
                let left = candidates.peek().map(|(slot, _)| *slot);
                ScannedClients { rows, next: left.or_else(|| (end < slots).then_some(end)) }
            }
            ScanOrder::Slowest => {
                let mut slow: Vec<(Slowness, &Session)> = candidates
                    .filter_map(|(_, session)| Some((slowness(net, session)?, session)))
                    .collect();
                slow.sort_by_key(|(slowness, _)| std::cmp::Reverse(*slowness));
                slow.truncate(scan.limit);
                let rows = slow.iter().map(|(_, session)| self.client_row(net, session)).collect();
                ScannedClients { rows, next: (end < slots).then_some(end) }
            }
        }
    }

    fn client_row(&self, net: &Net, session: &Session) -> ClientRow {
        let machine = &session.machine;
        let connection = session.connection();
        ClientRow {
            client_id: session.key().client_id.as_ref().into(),
            shard: self.id,
            connected: connection.is_some(),
            address: connection.and_then(|conn| net.peer_addr(conn)),
            version: session.version().to_string(),
            subscriptions: session.subscriptions.len(),
            queue_len: machine.queue_len(),
            queue_bytes: machine.queue_bytes(),
            queue_full: session.is_full(),
            inflight: machine.inflight_len(),
            output_bytes: connection.map_or(0, |conn| net.output_bytes(conn)),
            dropped: session.dropped_total(),
            blocked_ms: session.pressure.blocked_ms(net.now_ns()),
        }
    }
}

/// Whether a client's queue is full, bytes that wait for it, messages that it lost, messages it has
/// not acknowledged.
type Slowness = (bool, u64, u64, usize);

/// `None` for a client that keeps up, or is not connected and stops no publisher.
fn slowness(net: &Net, session: &Session) -> Option<Slowness> {
    let (connection, is_full) = (session.connection(), session.is_full());
    if connection.is_none() && !is_full {
        return None;
    }
    let machine = &session.machine;
    let output_bytes = connection.map_or(0, |conn| net.output_bytes(conn) as u64);
    let waiting_bytes = machine.queue_bytes() + output_bytes;
    let dropped = session.dropped_total();
    let inflight = machine.inflight_len();
    (waiting_bytes > 0 || dropped > 0).then_some((is_full, waiting_bytes, dropped, inflight))
}
