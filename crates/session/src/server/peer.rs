//! A session whose connections its owner opens itself, to another server: what a client would do
//! beside publishing and receiving.
//!
//! QoS 1 and 2 are symmetric, so the session is the same as towards a client. What differs is who
//! says whether there is a session: the peer, in CONNACK. The owner hands that on with
//! [`Session::forgotten_by_peer`] before [`Session::connect`], which resumes always.

use tacho_codec::{PacketId, QoS};

use super::Session;
use crate::{Payload, Persist};

impl<M: Payload> Session<M> {
    /// The peer has no session (session present is 0). What it has not acknowledged goes to it as
    /// new, with the same identifiers; what it had answered with PUBREC is complete; messages that
    /// it had not released come as new ones, if they come.
    pub fn forgotten_by_peer(&mut self, persist: &mut impl Persist<M>) {
        self.outgoing.forgotten_by_peer(persist);
        self.incoming.forget(persist);
    }

    /// The peer takes messages up to this QoS only, which is 1 at least: those that are to be sent
    /// are lowered to it. Between two connections.
    pub fn limit_qos(&mut self, qos_max: QoS) {
        self.outgoing.limit_qos(qos_max.max(QoS::AtLeastOnce));
    }

    /// The PUBLISH just yielded cannot be written: its exchange ends as if it had been
    /// acknowledged.
    pub fn give_up(&mut self, packet_id: Option<PacketId>, persist: &mut impl Persist<M>) {
        if let Some(packet_id) = packet_id {
            self.outgoing.abandon(packet_id, persist);
        }
    }

    /// Drops the messages at the head of the queue that have expired, also without a connection.
    pub fn drop_expired(&mut self, now_ns: u64, persist: &mut impl Persist<M>) {
        self.outgoing.drop_expired(now_ns, persist);
    }

    /// Takes a packet identifier for SUBSCRIBE or UNSUBSCRIBE on this connection; `None` if none
    /// is free, or the exchanges of an earlier connection leave no room for it yet.
    pub fn reserve_id(&mut self) -> Option<PacketId> {
        self.outgoing.reserve_id()
    }

    /// SUBACK or UNSUBACK arrived: its identifier is free. False if it was not reserved.
    pub fn release_id(&mut self, packet_id: PacketId) -> bool {
        self.outgoing.release_id(packet_id)
    }
}
