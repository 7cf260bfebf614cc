//! SUBSCRIBE and UNSUBSCRIBE as requests that take as many turns as they need: in pieces, between
//! which other clients are served.
//!
//! The packet stays unread until its last filter is handled, so that all packets behind it wait in
//! their order; what is left of it is kept with the session. Its answer leaves once, at the end. A
//! request whose connection is lost meanwhile ends with that: what it has changed stays.
//!
//! A packet with a malformed filter ends the connection, and none of its filters takes effect.

use tacho_codec::{Direction, Frame, Packet, ReasonCode};
use tacho_net::ConnId;
use tacho_topic::FilterError;

use super::subscribe::SubscribeRequest;
use super::unsubscribe::UnsubscribeRequest;
use crate::keys::SessionSlot;
use crate::permits::Permit;
use crate::shard::durability::Changed;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

/// Filters that a packet may name however few subscriptions a session may have.
const FILTERS_PER_PACKET: usize = 1_024;
/// Filters that are parsed in a microsecond.
const PARSED_PER_UNIT: usize = 8;
/// Requests of a shard that are begun and not finished; more wait unread, since what is kept of
/// one takes more memory than its packet.
pub(super) const UNFINISHED_MAX: usize = 16;
/// Packets up to this size never wait for that: little is kept of them.
const SMALL_BYTES: usize = 1_024;

/// The request of a session that is begun and not finished, if there is one.
#[derive(Default)]
pub(in crate::shard) struct SessionRequest(Option<Box<Unfinished>>);

struct Unfinished {
    request: Request,
    place: Permit,
}

enum Request {
    Subscribe(SubscribeRequest),
    Unsubscribe(UnsubscribeRequest),
}

impl SessionRequest {
    /// Whether there is one.
    pub(in crate::shard) const fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// The connection that it came by is over.
    pub(in crate::shard) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Request {
    /// Filters that are not handled yet.
    fn left(&self) -> usize {
        match self {
            Self::Subscribe(request) => request.left(),
            Self::Unsubscribe(request) => request.left(),
        }
    }
}

impl Shard {
    /// A SUBSCRIBE or UNSUBSCRIBE, perhaps one that is under way.
    pub(in crate::shard) fn request(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        frame: &Frame<'_>,
    ) -> Flow {
        if self.is_swept(slot) {
            return Flow::Later;
        }
        let unfinished = self.sessions[slot].request.0.take();
        let (mut request, place) = match unfinished {
            Some(unfinished) => (unfinished.request, Some(unfinished.place)),
            None if self.has_too_many_requests(frame) => return Flow::Later,
            None => match self.begin_request(net, conn, slot, frame) {
                Ok(request) => (request, None),
                Err(flow) => return flow,
            },
        };
        match &mut request {
            Request::Subscribe(request) => self.subscribe_piece(net, slot, request),
            Request::Unsubscribe(request) => self.unsubscribe_piece(net, slot, request),
        }
        if request.left() > 0 {
            let place = place.unwrap_or_else(|| self.routing.requests.take());
            self.sessions[slot].request.0 = Some(Box::new(Unfinished { request, place }));
            return Flow::Later;
        }
        match request {
            Request::Subscribe(request) => self.subscribed(net, conn, slot, request),
            Request::Unsubscribe(request) => self.unsubscribed(net, conn, slot, request),
        }
    }

    fn has_too_many_requests(&self, frame: &Frame<'_>) -> bool {
        let requests = &self.routing.requests;
        requests.used() >= requests.max() && frame.body.len() > SMALL_BYTES
    }

    /// Decodes a request; otherwise the connection ends.
    fn begin_request(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        slot: SessionSlot,
        frame: &Frame<'_>,
    ) -> Result<Request, Flow> {
        self.stats.packets_in_total.increment();
        let version = self.sessions[slot].version();
        let filters_max = self.filters_per_packet_max();
        let packet = match Packet::decode_bounded(frame, version, Direction::ToServer, filters_max)
        {
            Ok(packet) => packet,
            Err(error) if error.reason == ReasonCode::QUOTA_EXCEEDED => {
                return Err(self.too_many_filters(net, conn));
            }
            Err(error) => return Err(self.protocol_error(net, conn, &error)),
        };
        self.trace_packet(net, slot, TraceKind::In, &packet);
        if self.is_unresponsive(net, conn) {
            return Err(self.end_connection(net, conn, ReasonCode::QUOTA_EXCEEDED));
        }
        let count = match &packet {
            Packet::Subscribe(subscribe) => subscribe.filters.len(),
            Packet::Unsubscribe(unsubscribe) => unsubscribe.filters.len(),
            // Invariant: the caller knows the packet's type.
            _ => return Err(Flow::Continue),
        };
        net.charge((count / PARSED_PER_UNIT) as u32);
        let request = match &packet {
            Packet::Subscribe(subscribe) => {
                let is_durable = self.sessions[slot].journal.is_durable();
                let is_stalled = is_durable && self.durability.is_stalled();
                SubscribeRequest::new(subscribe, is_stalled).map(Request::Subscribe)
            }
            Packet::Unsubscribe(unsubscribe) => {
                UnsubscribeRequest::new(unsubscribe).map(Request::Unsubscribe)
            }
            _ => return Err(Flow::Continue),
        };
        request.map_err(|error| self.malformed_filter(net, conn, error))
    }

    /// A filter that cannot be one: the packet is malformed [MQTT-4.13.1-1].
    #[cold]
    fn malformed_filter(&mut self, net: &mut Net, conn: ConnId, error: FilterError) -> Flow {
        self.end_connection_because(net, conn, ReasonCode::MALFORMED_PACKET, error.sentence())
    }

    /// What is kept of a packet is bounded by what a session may have, though a filter that is
    /// named again and again adds nothing to that.
    fn filters_per_packet_max(&self) -> usize {
        self.limits().subscriptions_per_session_max.max(FILTERS_PER_PACKET)
    }

    #[cold]
    fn too_many_filters(&mut self, net: &mut Net, conn: ConnId) -> Flow {
        self.stats.refused_subscriptions_total.increment();
        let why = "more topic filters in one packet than a session may have subscriptions";
        self.end_connection_because(net, conn, ReasonCode::QUOTA_EXCEEDED, why)
    }

    /// Nothing can be written: a SUBSCRIBE that is under way is refused. Returns what it has
    /// changed, which the caller takes back.
    pub(in crate::shard) fn refuse_unfinished(&mut self, slot: SessionSlot) -> Vec<Changed> {
        let session = &mut self.sessions[slot];
        let version = session.version();
        match session.request.0.as_deref_mut() {
            Some(Unfinished { request: Request::Subscribe(request), .. }) => {
                request.refuse(version)
            }
            _ => Vec::new(),
        }
    }
}
