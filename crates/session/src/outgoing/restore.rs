//! Restoring the outgoing half of a session.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::{PacketId, QoS};

use super::slot::Slot;
use super::window::Window;
use super::{Outgoing, OutgoingLimits};
use crate::queue::Queued;
use crate::restored::{ExchangeStage, RestoredExchange};
use crate::{Delivery, Payload, Persist, Record};

impl<M: Payload> Outgoing<M> {
    /// Restores exchanges and queue, without a connection. The limits apply to new messages only.
    ///
    /// Exchanges that contradict others, because some records were lost, are dropped.
    pub(crate) fn restore(
        limits: OutgoingLimits,
        next_seq: u64,
        mut exchanges: Vec<RestoredExchange<M>>,
        mut queued: Vec<(u64, Delivery<M>)>,
        persist: &mut impl Persist<M>,
    ) -> Self {
        let mut outgoing = Self::new(limits);
        exchanges.sort_by_key(|exchange| exchange.seq);
        queued.sort_by_key(|(seq, _)| *seq);
        let last_seq = exchanges.last().map(|exchange| exchange.seq);
        let last_seq = last_seq.max(queued.last().map(|(seq, _)| *seq)).unwrap_or(0);
        outgoing.next_seq = next_seq.max(last_seq + 1);
        let slots = slots(exchanges, persist);
        outgoing.window = Window::restore(slots, usize::from(outgoing.inflight_max));
        for (seq, delivery) in queued {
            outgoing.queue.push(Queued { seq, delivery });
        }
        outgoing
    }
}

/// The exchanges as slots, each identifier once: an identifier is reused only after the exchange of
/// the older message has ended.
fn slots<M>(
    exchanges: Vec<RestoredExchange<M>>,
    persist: &mut impl Persist<M>,
) -> Vec<(PacketId, Slot<M>)> {
    let newest: HashMap<PacketId, u64, RandomState> =
        exchanges.iter().map(|exchange| (exchange.packet_id, exchange.seq)).collect();
    let mut slots = Vec::with_capacity(exchanges.len());
    for RestoredExchange { seq, packet_id, stage, delivery } in exchanges {
        let slot = match (stage, delivery) {
            _ if newest.get(&packet_id) != Some(&seq) => None,
            (ExchangeStage::Released, _) => Some(Slot::released(seq)),
            (ExchangeStage::Sent, Some(delivery)) if delivery.qos != QoS::AtMostOnce => {
                // Whether it was sent is unknown: it counts as sent.
                Some(Slot { sent: true, ..Slot::publish(seq, delivery) })
            }
            (ExchangeStage::Sent, _) => None,
        };
        match slot {
            Some(slot) => slots.push((packet_id, slot)),
            None => drop(persist.persist(Record::Acked { seq, packet_id })),
        }
    }
    slots
}
