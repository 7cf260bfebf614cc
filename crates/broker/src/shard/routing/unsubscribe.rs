//! UNSUBSCRIBE: filters out of the indexes, codes back. A long one is handled in pieces, see
//! [`requests`](super::requests).

use std::vec;

use tacho_codec::{Packet, PacketId, ReasonCode, UnsubAck, Unsubscribe, UserProperties};
use tacho_net::ConnId;
use tacho_session::BatchSeq;
use tacho_topic::{Filter, FilterError};

use super::{FILTER_UNITS, PIECE_FILTERS};
use crate::keys::SessionSlot;
use crate::shard::durability::RecordedChanges;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};

/// An UNSUBSCRIBE: the filters that are not handled yet, and what the others have come to.
pub(super) struct UnsubscribeRequest {
    packet_id: PacketId,
    filters: vec::IntoIter<Filter>,
    /// For UNSUBACK.
    reasons: Vec<ReasonCode>,
    /// The newest batch with records of it.
    batch: BatchSeq,
}

impl UnsubscribeRequest {
    /// Nothing of `unsubscribe` is handled yet.
    ///
    /// # Errors
    /// One of its filters is malformed.
    pub(super) fn new(unsubscribe: &Unsubscribe<'_>) -> Result<Self, FilterError> {
        let filters = unsubscribe.filters.iter().copied().map(Filter::parse);
        let filters = filters.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            packet_id: unsubscribe.packet_id,
            reasons: Vec::with_capacity(filters.len()),
            filters: filters.into_iter(),
            batch: BatchSeq::DONE,
        })
    }

    /// Filters that are not handled yet.
    pub(super) fn left(&self) -> usize {
        self.filters.len()
    }
}

impl Shard {
    /// Handles some filters of an UNSUBSCRIBE, fewer if there is no time for them.
    pub(super) fn unsubscribe_piece(
        &mut self,
        net: &mut Net,
        slot: SessionSlot,
        request: &mut UnsubscribeRequest,
    ) {
        let mut changes = Vec::new();
        for filter in request.filters.by_ref().take(PIECE_FILTERS) {
            let subscriptions = &mut self.sessions[slot].subscriptions;
            request.reasons.push(if subscriptions.remove(&filter) {
                self.remove_subscription(net, slot, &filter, &mut changes);
                request.batch = request.batch.max(self.record_unsubscribed(slot, &filter));
                ReasonCode::SUCCESS
            } else {
                ReasonCode::NO_SUBSCRIPTION_EXISTED
            });
            if !net.charge(FILTER_UNITS) {
                break;
            }
        }
        self.shared.routes.apply(&changes);
        self.refresh_routes();
    }

    /// All filters are handled: answers.
    pub(super) fn unsubscribed(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        request: UnsubscribeRequest,
    ) -> Flow {
        let UnsubscribeRequest { packet_id, reasons, batch, .. } = request;
        let unsuback = Packet::UnsubAck(UnsubAck {
            packet_id,
            reasons,
            reason_string: None,
            user_properties: UserProperties::EMPTY,
        });
        self.stats.unsubscribes_total.increment();
        // Also while the journal is stalled: it promises that they stay removed.
        let recorded = RecordedChanges { batch, changed: Vec::new() };
        self.answer_after(net, conn, slot, unsuback, recorded)
    }
}
