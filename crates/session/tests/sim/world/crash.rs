//! The server crashes and restarts from its journal.

use tacho_codec::QoS;
use tacho_session::server;

use super::World;
use crate::journal::Op;

impl World {
    pub(super) fn crash(&mut self) {
        self.link.cut();
        self.server_online = false;
        self.server_on_link = false;
        self.congested = false;
        self.waiting.clear();
        let lost = self.journal.crash(&mut self.rng);
        self.lose_offers(&lost);
        // An acknowledged message is stored, so it is among them.
        self.up.remember(self.journal.stored());
        let state = self.journal.state();
        let in_flight = state.exchanges();
        let in_flight = in_flight.map(|(_, id, released, d)| (id, d.message.msg.id, released));
        self.server_sends.remember(in_flight);
        self.server = if state.exists() {
            let restored = state.restored(self.now_ns, &mut self.rng);
            server::Session::restore(self.setup.limits, restored, &mut self.journal)
        } else {
            server::Session::new(self.setup.limits)
        };
        self.check_records();
    }

    /// Messages to the client that were not committed were not acknowledged to their publisher,
    /// which retransmits them, in their order.
    fn lose_offers(&mut self, lost: &[Op]) {
        for op in lost.iter().rev() {
            if let Op::Enqueued(_, delivery) | Op::Sent { delivery, from_queue: false, .. } = op
                && delivery.qos != QoS::AtMostOnce
            {
                self.again.push_front(delivery.clone());
            }
        }
    }

    /// Checks that the session agrees with its records.
    pub(super) fn check_records(&self) {
        let state = self.journal.state();
        let exchanges = state.exchanges().count();
        assert_eq!(self.server.inflight_len(), exchanges, "exchanges and their records");
        // Messages of QoS 0 stay until their departure is committed.
        let (queue_len, queued_len) = (self.server.queue_len(), state.queued_len());
        assert!(queue_len >= queued_len, "queue {queue_len}, records {queued_len}");
        let departs = self.journal.keeps_qos0() && queue_len > queued_len;
        assert!(departs || queue_len == queued_len, "queue {queue_len}, records {queued_len}");
        for &packet_id in self.inbound_ids.keys() {
            let known = self.server.knows_inbound(QoS::ExactlyOnce, packet_id);
            let waits = self.waiting.iter().any(|waiting| waiting.packet_id == Some(packet_id));
            let recorded = state.has_inbound(packet_id);
            assert!(recorded == known || (known && waits), "inbound {packet_id}: {recorded}");
        }
    }
}
