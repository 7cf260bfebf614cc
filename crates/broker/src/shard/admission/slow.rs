//! Slow clients: since when their output is blocked, and how many messages they have missed.

use crate::keys::SessionSlot;
use crate::shard::{Net, Shard};

/// Between two log lines about dropped messages.
const REPORT_NS: u64 = 10_000_000_000;

/// What a shard has dropped when it last said so.
#[derive(Debug, Default)]
pub(crate) struct DropReport {
    told: u64,
    not_before_ns: u64,
    /// The session that missed a message last.
    latest: Option<SessionSlot>,
}

impl Shard {
    /// A client's output is above its limit; the control plane reports since when.
    #[cold]
    pub(in crate::shard) fn output_blocked(&mut self, net: &Net, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        session.machine.set_congested(true);
        session.pressure.output_blocked(net.now_ns());
    }

    /// It takes output again.
    pub(in crate::shard) fn output_unblocked(&mut self, slot: SessionSlot) {
        let session = &mut self.sessions[slot];
        session.machine.set_congested(false);
        session.pressure.output_unblocked();
    }

    /// Remembers which client missed a message, for the log.
    #[inline]
    pub(in crate::shard) fn note_drop(&mut self, slot: SessionSlot) {
        self.admission.drop_report.latest = Some(slot);
    }

    /// One log line about messages that slow clients have missed, if there were any lately.
    pub(in crate::shard) fn report_drops(&mut self, now_ns: u64) {
        let stats = &self.stats;
        let counters = [
            &stats.dropped_output_full_total,
            &stats.dropped_queue_full_total,
            &stats.dropped_overload_total,
        ];
        let dropped: u64 = counters.into_iter().map(|counter| counter.value()).sum();
        let report = &mut self.admission.drop_report;
        if dropped == report.told || now_ns < report.not_before_ns {
            return;
        }
        let latest = report.latest.and_then(|slot| self.sessions.get(slot));
        let client_id = latest.map_or("?", |session| &session.key().client_id);
        tracing::warn!(
            shard = self.id,
            dropped = dropped - report.told,
            client_id,
            "messages to slow clients were dropped; the client is the latest of them"
        );
        report.told = dropped;
        report.not_before_ns = now_ns + REPORT_NS;
    }
}
