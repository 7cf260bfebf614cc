//! A session whose connections the owner opens itself, to another server: the client's tasks
//! besides publishing and receiving.
//!
//! QoS 1 and 2 are symmetric, so the session is the same as towards a client. The difference: the
//! peer decides, in CONNACK, whether there is a session. The owner reports a missing one with
//! [`Session::forgotten_by_peer`] before [`Session::connect`], which always resumes.

use tacho_codec::{PacketId, QoS};

use super::Session;
use crate::{Payload, Persist};

impl<M: Payload> Session<M> {
    /// The peer has no session (session present is 0). Unacknowledged messages are sent as new ones
    /// with the same identifiers; exchanges with a PUBREC are complete; incoming messages without a
    /// PUBREL arrive as new ones, if they arrive.
    pub fn forgotten_by_peer(&mut self, persist: &mut impl Persist<M>) {
        self.outgoing.forgotten_by_peer(persist);
        self.incoming.forget(persist);
    }

    /// The peer accepts messages up to this QoS only, at least 1: lowers the QoS of messages to
    /// send. For use between two connections.
    pub fn limit_qos(&mut self, qos_max: QoS) {
        self.outgoing.limit_qos(qos_max.max(QoS::AtLeastOnce));
    }

    /// The PUBLISH just yielded cannot be written: ends its exchange as if it was acknowledged.
    pub fn give_up(&mut self, packet_id: Option<PacketId>, persist: &mut impl Persist<M>) {
        if let Some(packet_id) = packet_id {
            self.outgoing.abandon(packet_id, persist);
        }
    }

    /// Drops the expired messages at the head of the queue, also without a connection.
    pub fn drop_expired(&mut self, now_ns: u64, persist: &mut impl Persist<M>) {
        self.outgoing.drop_expired(now_ns, persist);
    }

    /// Reserves a packet identifier for SUBSCRIBE or UNSUBSCRIBE on this connection; `None` if none
    /// is free, or if the exchanges of an earlier connection leave no room yet.
    pub fn reserve_id(&mut self) -> Option<PacketId> {
        self.outgoing.reserve_id()
    }

    /// SUBACK or UNSUBACK arrived: frees its identifier. False if it was not reserved.
    pub fn release_id(&mut self, packet_id: PacketId) -> bool {
        self.outgoing.release_id(packet_id)
    }
}
