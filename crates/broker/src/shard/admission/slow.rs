//! Slow clients: how many messages they have missed.

use super::Admission;
use crate::keys::SessionSlot;
use crate::stats::ShardStats;

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

impl Admission {
    /// Remembers which client missed a message, for the log.
    #[inline]
    pub(in crate::shard) fn note_drop(&mut self, slot: SessionSlot) {
        self.drop_report.latest = Some(slot);
    }

    /// The session that missed a message last.
    pub(super) fn latest_drop(&self) -> Option<SessionSlot> {
        self.drop_report.latest
    }

    /// One log line about messages that slow clients have missed, if there were any lately.
    /// `client_id` is of the session that missed one last.
    pub(super) fn report_drops(
        &mut self,
        shard: usize,
        stats: &ShardStats,
        now_ns: u64,
        client_id: Option<&str>,
    ) {
        let counters = [
            &stats.dropped_output_full_total,
            &stats.dropped_queue_full_total,
            &stats.dropped_overload_total,
        ];
        let dropped: u64 = counters.into_iter().map(|counter| counter.value()).sum();
        let report = &mut self.drop_report;
        if dropped == report.told || now_ns < report.not_before_ns {
            return;
        }
        tracing::warn!(
            shard,
            dropped = dropped - report.told,
            client_id = client_id.unwrap_or("?"),
            "messages to slow clients were dropped; the client is the latest of them"
        );
        report.told = dropped;
        report.not_before_ns = now_ns + REPORT_NS;
    }
}
