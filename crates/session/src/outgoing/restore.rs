//! The outgoing half of a session that was kept elsewhere.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tacho_codec::{PacketId, QoS};

use super::slot::Slot;
use super::window::Window;
use super::{Outgoing, OutgoingLimits};
use crate::queue::Queued;
use crate::server::{ExchangeStage, RestoredExchange};
use crate::{Delivery, Payload, Persist, Record};

impl<M: Payload> Outgoing<M> {
    /// Exchanges and queue as they were without a connection. Limits count for what comes.
    ///
    /// What contradicts itself, because a part of the records was lost, is given up.
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

/// The exchanges as slots, each identifier once: it was given to a newer message only after the
/// older one's exchange had ended.
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
                // It may have been sent or not: it counts as sent.
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
